//! What a certificate says of itself: whom it is for, who signed it, and from when to when it holds.

use std::fmt;
use std::net::IpAddr;

use x509_cert::der::{self, Decode as _};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Characters of a name that are told.
const MAX_CHARS: usize = 200;

/// One that was read, of whoever it is: nothing of it has been verified.
pub struct Certificate(x509_cert::Certificate);

impl Certificate {
    /// Reads DER.
    ///
    /// # Errors
    /// Where it is no certificate.
    pub fn read(der: &[u8]) -> Result<Certificate, der::Error> {
        x509_cert::Certificate::from_der(der).map(Certificate)
    }

    /// Epoch ms.
    pub fn valid_from_ms(&self) -> i64 {
        ms(&self.0.tbs_certificate().validity().not_before)
    }

    /// Epoch ms.
    pub fn expires_ms(&self) -> i64 {
        ms(&self.0.tbs_certificate().validity().not_after)
    }

    /// Such as `CN=kafka-1,O=example`, fit for a line of a log.
    pub fn subject(&self) -> String {
        told(&self.0.tbs_certificate().subject().to_string())
    }

    /// The subject of who signed it.
    pub fn issuer(&self) -> String {
        told(&self.0.tbs_certificate().issuer().to_string())
    }

    /// Whether `authority` has the name of who signed it.
    pub fn names_as_issuer(&self, authority: &Certificate) -> bool {
        self.0.tbs_certificate().issuer() == authority.0.tbs_certificate().subject()
    }

    /// Hosts and addresses that it is for, fit for a line of a log: where it has no hosts, its common name stands for one.
    pub fn hosts(&self) -> Vec<String> {
        let own = self.0.tbs_certificate();
        let named = own.get_extension::<SubjectAltName>().ok().flatten();
        let named = named.map_or(Vec::new(), |(_, names)| names.0);
        let has_host = named.iter().any(|name| matches!(name, GeneralName::DnsName(_)));
        let mut hosts: Vec<String> = named.iter().filter_map(host).collect();
        let common = own.subject().common_name().ok().flatten();
        hosts.extend(common.filter(|_| !has_host).map(|name| told(&name.value())));
        hosts
    }
}

fn host(name: &GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(told(name.as_str())),
        GeneralName::IpAddress(address) => {
            let bytes = address.as_bytes();
            let v4 = <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
            let address = v4.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from));
            address.map(|address| address.to_string())
        }
        _ => None,
    }
}

fn ms(time: &x509_cert::time::Time) -> i64 {
    i64::try_from(time.to_unix_duration().as_millis()).unwrap_or(i64::MAX)
}

/// A stranger has chosen it.
fn told(text: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric();
    let chars = text.chars().take(MAX_CHARS);
    chars.map(|c| if plain(c) { c } else { '?' }).collect()
}

/// Epoch ms as RFC 3339.
pub struct Time(pub i64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => time.fmt(f),
            Err(_) => f.write_str("the end of time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType, date_time_ymd};

    use super::*;

    fn certificate(change: impl Fn(&mut CertificateParams)) -> Certificate {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([]).expect("no names");
        params.distinguished_name.push(DnType::CommonName, "kafka-1");
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2026, 4, 11);
        change(&mut params);
        let certificate = params.self_signed(&key).expect("a certificate");
        Certificate::read(certificate.der()).expect("it can be read")
    }

    #[test]
    fn it_tells_from_when_to_when_and_by_whom() {
        let certificate = certificate(|_| {});
        assert_eq!(
            Time(certificate.valid_from_ms()).to_string(),
            "2026-01-01T00:00:00Z"
        );
        assert_eq!(Time(certificate.expires_ms()).to_string(), "2026-04-11T00:00:00Z");
        assert_eq!(certificate.subject(), "CN=kafka-1");
        assert_eq!(certificate.issuer(), "CN=kafka-1");
        assert!(certificate.names_as_issuer(&certificate));
    }

    #[test]
    fn the_common_name_is_a_host_where_there_is_no_other() {
        assert_eq!(certificate(|_| {}).hosts(), ["kafka-1"]);
        let named = certificate(|params| {
            let host = "kafka-1.example".try_into().expect("a name");
            params.subject_alt_names.push(SanType::DnsName(host));
            let address = SanType::IpAddress(IpAddr::from([10, 0, 0, 1]));
            params.subject_alt_names.push(address);
        });
        assert_eq!(named.hosts(), ["kafka-1.example", "10.0.0.1"]);
    }

    #[test]
    fn what_a_stranger_wrote_cannot_break_a_line() {
        let odd = certificate(|params| {
            let name = format!("a\nb\u{202e}c{}", "d".repeat(1000));
            params.distinguished_name.push(DnType::CommonName, name);
        });
        let subject = odd.subject();
        assert!(
            subject.len() <= MAX_CHARS && !subject.contains(['\n', '\u{202e}']),
            "{subject}"
        );
        assert!(odd.hosts()[0].starts_with("a?b?c"), "{:?}", odd.hosts());
    }
}
