//! Validity period of a certificate.

use std::fmt;

use x509_cert::der::{self, Decode as _};

/// Certificate that was read. Nothing in it has been verified.
pub struct Certificate(x509_cert::Certificate);

impl Certificate {
    /// Reads a certificate in DER.
    ///
    /// # Errors
    /// If it is not a certificate.
    pub fn read(der: &[u8]) -> Result<Certificate, der::Error> {
        x509_cert::Certificate::from_der(der).map(Certificate)
    }

    /// Returns the start of the validity, Unix ms.
    pub fn valid_from_ms(&self) -> i64 {
        ms(&self.0.tbs_certificate().validity().not_before)
    }

    /// Returns the end of the validity, Unix ms.
    pub fn expires_ms(&self) -> i64 {
        ms(&self.0.tbs_certificate().validity().not_after)
    }
}

fn ms(time: &x509_cert::time::Time) -> i64 {
    i64::try_from(time.to_unix_duration().as_millis()).unwrap_or(i64::MAX)
}

/// Unix ms, formatted as RFC 3339.
pub struct ExpiryTime(pub i64);

impl fmt::Display for ExpiryTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => time.fmt(f),
            Err(_) => f.write_str("the end of time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn a_certificate_reports_its_validity_period() {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([]).expect("no names");
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2026, 4, 11);
        let certificate = params.self_signed(&key).expect("a certificate");
        let certificate = Certificate::read(certificate.der()).expect("it can be read");
        let reported =
            [certificate.valid_from_ms(), certificate.expires_ms()].map(|ms| ExpiryTime(ms).to_string());
        assert_eq!(reported, ["2026-01-01T00:00:00Z", "2026-04-11T00:00:00Z"]);
    }
}
