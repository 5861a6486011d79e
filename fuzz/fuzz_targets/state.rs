//! Stored records are read or refused with a message. Writing what was read yields the same bytes, and a view of the records
//! is consistent.
//!
//! The first byte selects the content: a key, a claim, a seal, or lines of records. Checksums are corrected, because few
//! inputs would otherwise get past them.

#![no_main]

use std::fmt::Display;

use abgauge_core::journal::{Claim, RecordKey, Namespace, JournalRules, Seal, PartitionView};
use xxhash_rust::xxh3::xxh3_64;

fn with_checksum(body: &[u8]) -> Vec<u8> {
    [body, &xxh3_64(body).to_le_bytes()].concat()
}

/// Checks that a value read from bytes encodes to the same bytes, or that the error has a message.
fn both_ways<T, E: Display>(bytes: &[u8], read: Result<T, E>, write: impl Fn(&T) -> Vec<u8>) {
    match read {
        Ok(read) => assert_eq!(write(&read), bytes),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn key(input: &[u8]) {
    if let Some((namespace, key)) = RecordKey::parse(input) {
        assert_eq!(key.text(namespace).as_bytes(), input);
    }
}

/// Reads lines of records: key, tab, value. Without a tab the line is a tombstone.
fn view(input: &[u8]) {
    let namespace = Namespace::of("fingerprint", "group");
    let mut view = PartitionView::new(namespace, JournalRules::default());
    for line in input.split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(2, |byte| *byte == b'\t');
        let key = parts.next().unwrap_or_default();
        let key = String::from_utf8_lossy(key).replace("NS", &namespace.to_string());
        view.take(key.as_bytes(), parts.next());
    }
    let end = view.end(view.question(0)).expect("nothing was read since");
    if let Some((id, seal)) = end.in_force() {
        assert!(end.claim <= Some(id.session));
        if let Ok(seal) = seal {
            let _ = view.roles(seal);
        }
    }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((kind, rest)) = input.split_first() else {
        return;
    };
    match kind {
        b'k' => key(rest),
        b'c' => {
            let bytes = with_checksum(rest);
            both_ways(&bytes, Claim::decode(&bytes), Claim::encode);
        }
        b's' => {
            let bytes = with_checksum(rest);
            both_ways(&bytes, Seal::decode(&bytes), Seal::encode);
        }
        _ => view(rest),
    }
});
