//! Every file named under `[http]` is used or refused with a message that contains no secret.
//!
//! The first byte selects the content: hashes of tokens, names with hashes of passwords, a certificate with its key, or only
//! the bytes of a certificate.

#![no_main]

mod scratch;

use std::path::Path;
use std::sync::{Arc, LazyLock};

use abgauge::clock::Clock;
use abgauge::settings;
use abgauge::serve::secured::Secured;
use abgauge::telemetry::Telemetry;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use scratch::Scratch;

const SECRET: &str = "hunter2-is-the-secret";

static FILE: LazyLock<Scratch> = LazyLock::new(Scratch::new);
static SETTINGS: LazyLock<[settings::Http; 3]> = LazyLock::new(|| {
    ["BEARER_TOKENS_FILE", "BASIC_PASSWORDS_FILE", "TLS_CERTIFICATE"]
        .map(|setting| named(setting, FILE.path()))
});
static TELEMETRY: LazyLock<Arc<Telemetry>> =
    LazyLock::new(|| Arc::new(Telemetry::new("served", "clicks", "0")));

/// Returns settings in which one names this file.
fn named(setting: &str, path: &Path) -> settings::Http {
    let path = path.to_str().expect("it is of our making");
    let variables = [
        ("ABGAUGE_KAFKA__BROKERS".to_owned(), "a:1".to_owned()),
        (format!("ABGAUGE_HTTP__{setting}"), path.to_owned()),
    ];
    settings::load(None, variables.into_iter()).expect("sound").http
}

/// Encodes a certificate in PEM.
fn pem(der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((kind, content)) = input.split_first() else {
        return;
    };
    let http = &SETTINGS[usize::from(kind % 4).min(2)];
    if kind % 4 == 3 {
        FILE.fill(pem(content).as_bytes());
    } else {
        FILE.fill(content);
    }
    let reported = match Secured::open(http, &Clock::system(), Arc::clone(&TELEMETRY)) {
        Ok(_) => return,
        Err(unusable) => format!("{unusable} {unusable:?}"),
    };
    assert!(reported.starts_with("http."), "{reported}");
    assert!(!reported.contains(SECRET), "{reported}");
});
