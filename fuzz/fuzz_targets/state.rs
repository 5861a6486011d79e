//! Records of stored state are read or refused in words; what is read is what would be written, and a view of them holds together.
//!
//! The first byte says what the rest is: a key, a claim, a seal, or lines of records. What has a checksum gets the right one: else few
//! inputs would go beyond it.

#![no_main]

use std::fmt::Display;

use abgauge::state::{Claim, Key, Namespace, Rules, Seal, View};
use xxhash_rust::xxh3::xxh3_64;

fn with_checksum(body: &[u8]) -> Vec<u8> {
    [body, &xxh3_64(body).to_le_bytes()].concat()
}

/// What is read is written alike; what is not is refused in words.
fn both_ways<T, E: Display>(bytes: &[u8], read: Result<T, E>, write: impl Fn(&T) -> Vec<u8>) {
    match read {
        Ok(read) => assert_eq!(write(&read), bytes),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn key(input: &[u8]) {
    if let Some((namespace, key)) = Key::parse(input) {
        assert_eq!(key.text(namespace).as_bytes(), input);
    }
}

/// Each line is a record: key, tab, value; without a tab, a tombstone.
fn view(input: &[u8]) {
    let namespace = Namespace::of("fingerprint", "group");
    let mut view = View::new(namespace, Rules::default());
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
