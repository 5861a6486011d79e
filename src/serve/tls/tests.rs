//! Tests with real certificates.

use std::fs;
use std::path::PathBuf;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tempfile::TempDir;

use super::*;

const NAME: &str = "abgauge.test";

/// Self-signed certificate and its key, in PEM.
fn pair() -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new([NAME.to_owned()]).expect("a name");
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2026, 4, 11);
    let certificate = params.self_signed(&key).expect("a certificate");
    (certificate.pem(), key.serialize_pem())
}

struct Files {
    dir: TempDir,
}

impl Files {
    fn new() -> Files {
        Files {
            dir: tempfile::tempdir().expect("a directory"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn read(&self, certificate: &str, key: &str) -> Result<TlsIdentity, UnusableFile> {
        fs::write(self.path("crt"), certificate).expect("written");
        fs::write(self.path("key"), key).expect("written");
        TlsIdentity::read(&TlsFiles {
            certificate: self.path("crt"),
            key: self.path("key"),
        })
    }
}

#[track_caller]
fn check_refused(certificate: &str, key: &str, setting: &str, fragments: &[&str]) {
    let error = Files::new().read(certificate, key).err().expect("to be refused");
    assert_eq!(error.setting, setting, "{error:?}");
    let text = format!("{error} {}", error.remedy);
    for fragment in fragments {
        assert!(text.contains(fragment), "{fragment:?} is missing: {text}");
    }
}

#[test]
fn a_certificate_and_its_key_may_be_two_files_or_one() {
    let (certificate, key) = pair();
    let files = Files::new();
    files.read(&certificate, &key).expect("two files");
    fs::write(files.path("both"), format!("{key}{certificate}")).expect("written");
    let both = TlsFiles {
        certificate: files.path("both"),
        key: files.path("both"),
    };
    TlsIdentity::read(&both).expect("one file");
}

#[test]
fn an_invalid_file_is_reported_with_its_setting_and_a_fix() {
    let (certificate, key) = pair();
    let (_, other_key) = pair();
    check_refused(
        &certificate,
        &other_key,
        KEY,
        &["does not belong to the certificate", "must be first"],
    );
    check_refused(
        &key,
        &key,
        CERTIFICATE,
        &["it has none in PEM", "BEGIN CERTIFICATE"],
    );
    check_refused(&certificate, &certificate, KEY, &["it has none in PEM"]);
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    check_refused(&certificate, encrypted, KEY, &["it is encrypted", "openssl pkey"]);
    let no_der = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    check_refused(no_der, &key, CERTIFICATE, &["no certificate can be read"]);
    let no_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    check_refused(&certificate, no_key, KEY, &["this key cannot be used"]);
    let absent = TlsFiles {
        certificate: "/nowhere/tls.crt".into(),
        key: "/nowhere/tls.key".into(),
    };
    let error = TlsIdentity::read(&absent)
        .err()
        .expect("to be refused")
        .to_string();
    assert!(
        error.starts_with("http.tls_certificate: cannot read the file /nowhere/tls.crt: No such file"),
        "{error}"
    );
}

#[test]
fn no_content_of_a_file_is_shown() {
    let (certificate, _) = pair();
    let broken = "-----BEGIN PRIVATE KEY-----\nhunter2!\n-----END PRIVATE KEY-----\n";
    let error = Files::new()
        .read(&certificate, broken)
        .err()
        .expect("to be refused");
    assert!(!format!("{error:?} {error}").contains("hunter2"), "{error:?}");
}

#[test]
fn a_certificate_causes_a_doubt_outside_its_period_and_near_its_end() {
    let (certificate, key) = pair();
    let identity = Files::new().read(&certificate, &key).expect("sound");
    let ms = |text: &str| text.parse::<jiff::Timestamp>().expect("a time").as_millisecond();
    // A lifetime of 100 days has its warning in the last week.
    let table = [
        ("2025-12-31T23:59:59Z", Some(Doubt::NotYetValid)),
        ("2026-01-01T00:00:00Z", None),
        ("2026-04-03T23:00:00Z", None),
        ("2026-04-04T01:00:00Z", Some(Doubt::ExpiresSoon)),
        ("2026-04-11T00:00:01Z", Some(Doubt::Expired)),
    ];
    for (time, doubt) in table {
        assert_eq!(identity.doubt(ms(time)), doubt, "{time}");
    }
    let headlines = identity.say(Doubt::Expired);
    assert!(
        headlines.starts_with("http.tls_certificate: the certificate has expired at 2026-04-11T00:00:00Z"),
        "{headlines}"
    );
}
