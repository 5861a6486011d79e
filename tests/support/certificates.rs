//! Certificates signed by the test's own authority, in files like an operator's.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};

/// An authority that signs certificates into a directory.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    dir: PathBuf,
    /// Certificate of the authority in PEM, which clients trust.
    pub file: PathBuf,
}

/// A certificate and its key in PEM, each in a file and both in a third.
#[derive(Clone)]
pub struct Signed {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Key followed by the certificate, the order that Kafka expects.
    pub both: PathBuf,
}

/// Validity period of a certificate.
#[derive(Clone, Copy)]
pub enum Validity {
    Now,
    Expired,
}

impl Authority {
    pub fn new(dir: &Path, name: &str) -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([]).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key).expect("a certificate");
        let file = dir.join(format!("{name}.pem"));
        fs::write(&file, certificate.pem()).expect("write the authority's certificate");
        Authority {
            issuer: Issuer::new(params, key),
            dir: dir.to_owned(),
            file,
        }
    }

    /// Signs a certificate with the common name `name` for these hosts and addresses. Writes `NAME.crt`, `NAME.key` and
    /// `NAME.both`, and replaces files of the same name.
    pub fn sign(&self, name: &str, hosts: &[&str], validity: Validity) -> Signed {
        let key = KeyPair::generate().expect("a key");
        let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = match validity {
            Validity::Now => date_time_ymd(2100, 1, 1),
            Validity::Expired => date_time_ymd(2020, 2, 1),
        };
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let file = |suffix: &str, text: String| {
            let path = self.dir.join(format!("{name}.{suffix}"));
            fs::write(&path, text).expect("write a certificate");
            path
        };
        Signed {
            certificate: file("crt", certificate.pem()),
            key: file("key", key.serialize_pem()),
            both: file("both", key.serialize_pem() + &certificate.pem()),
        }
    }
}
