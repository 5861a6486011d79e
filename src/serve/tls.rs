//! TLS of the HTTP server: a certificate and its key from files, which can be replaced at run time.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::serve::certificate::{Certificate, ExpiryTime};
use crate::settings::{TlsFiles, UnusableFile, files};

const CERTIFICATE: &str = "http.tls_certificate";
const KEY: &str = "http.tls_key";
const DAY_MS: i64 = 86_400_000;

/// Certificate with its chain and matching key.
pub struct TlsIdentity {
    certified: Arc<CertifiedKey>,
    /// Start of validity, Unix ms.
    valid_from_ms: i64,
    /// End of validity, Unix ms.
    expires_ms: i64,
}

/// Reason why clients may reject the certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    NotYetValid,
    /// Less than a tenth of its lifetime and less than a week left.
    ExpiresSoon,
    Expired,
}

impl TlsIdentity {
    /// Reads both files.
    ///
    /// # Errors
    /// A file cannot be read or parsed, or the key belongs to another certificate. An expired certificate is not an error
    /// but a [`Doubt`].
    pub fn read(files: &TlsFiles) -> Result<TlsIdentity, UnusableFile> {
        let text = files::read_for(CERTIFICATE, &files.certificate)?;
        let chain = chain(&files.certificate, &text)?;
        // A file that holds both is read once, so that a replacement in between cannot mix two versions.
        let key = match files.key == files.certificate {
            true => key(&files.key, &text)?,
            false => key(&files.key, &files::read_for(KEY, &files.key)?)?,
        };
        let own = Certificate::read(&chain[0]).map_err(|error| no_certificate(&files.certificate, &error))?;
        let key = provider().key_provider.load_private_key(key);
        let key = key.map_err(|error| UnusableFile {
            setting: KEY,
            message: format!("{}: this key cannot be used: {error}", files.key.display()),
            remedy: "use an ECDSA (P-256, P-384), Ed25519 or RSA key (2048 to 8192 bits)".to_owned(),
        })?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            // A key whose public part is unknown cannot be compared, which does not make it wrong.
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(Error::InconsistentKeys(_)) => {
                return Err(UnusableFile {
                    setting: KEY,
                    message: format!(
                        "the key in {} does not belong to the certificate in {}",
                        files.key.display(),
                        files.certificate.display()
                    ),
                    remedy: "name the key that belongs to the certificate; the server's own certificate must be first in its file"
                        .to_owned(),
                });
            }
            Err(error) => return Err(no_certificate(&files.certificate, &error)),
        }
        Ok(TlsIdentity {
            certified: Arc::new(certified),
            valid_from_ms: own.valid_from_ms(),
            expires_ms: own.expires_ms(),
        })
    }

    /// Returns the end of validity, Unix ms.
    pub fn expires_ms(&self) -> i64 {
        self.expires_ms
    }

    /// Returns the doubt about its validity at `now_ms`, if any.
    pub fn doubt(&self, now_ms: i64) -> Option<Doubt> {
        // A week would be too early for certificates that live only for days.
        let soon_ms = (7 * DAY_MS).min((self.expires_ms - self.valid_from_ms) / 10);
        match now_ms {
            now if now < self.valid_from_ms => Some(Doubt::NotYetValid),
            now if now > self.expires_ms => Some(Doubt::Expired),
            now if now > self.expires_ms - soon_ms => Some(Doubt::ExpiresSoon),
            _ => None,
        }
    }

    /// Returns the doubt in words, with the remedy.
    pub fn say(&self, doubt: Doubt) -> String {
        let (what, ms) = match doubt {
            Doubt::NotYetValid => ("is not valid before", self.valid_from_ms),
            Doubt::ExpiresSoon => ("expires at", self.expires_ms),
            Doubt::Expired => ("has expired at", self.expires_ms),
        };
        format!(
            "{CERTIFICATE}: the certificate {what} {}, and clients refuse it outside of its validity: replace it, abgauge reads it again automatically",
            ExpiryTime(ms)
        )
    }
}

impl fmt::Display for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "valid until {}", ExpiryTime(self.expires_ms))
    }
}

fn chain(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, UnusableFile> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(text)
        .collect::<Result<_, _>>()
        .map_err(|error| no_certificate(path, &error))?;
    match chain.is_empty() {
        true => Err(no_certificate(path, &"it has none in PEM")),
        false => Ok(chain),
    }
}

fn no_certificate(path: &Path, error: &dyn fmt::Display) -> UnusableFile {
    UnusableFile {
        setting: CERTIFICATE,
        message: format!("{}: no certificate can be read: {error}", path.display()),
        remedy: "name a file in PEM (-----BEGIN CERTIFICATE-----): the server's own certificate, then those between it \
                 and its authority"
            .to_owned(),
    }
}

fn key(path: &Path, text: &[u8]) -> Result<PrivateKeyDer<'static>, UnusableFile> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| {
        // The PEM label of an encrypted key is another one, so the parser finds no key at all.
        let is_encrypted = text
            .windows(ENCRYPTED.len())
            .any(|part| part == ENCRYPTED.as_bytes());
        let (why, remedy) = match error {
            pem::Error::NoItemsFound if is_encrypted => (
                "it is encrypted".to_owned(),
                "remove the password (`openssl pkey -in OLD -out NEW`), and let only abgauge's user read the file",
            ),
            pem::Error::NoItemsFound => ("it has none in PEM".to_owned(), NAME_A_KEY),
            error => (error.to_string(), NAME_A_KEY),
        };
        UnusableFile {
            setting: KEY,
            message: format!("{}: no private key can be read: {why}", path.display()),
            remedy: remedy.to_owned(),
        }
    })
}

const ENCRYPTED: &str = "ENCRYPTED";
const NAME_A_KEY: &str = "name the file of the certificate's key in PEM (-----BEGIN PRIVATE KEY-----)";

fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// Server side of TLS 1.2 and 1.3.
pub struct Tls {
    current: Arc<Current>,
    config: Arc<ServerConfig>,
}

#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Tls {
    pub fn new(identity: &TlsIdentity) -> Tls {
        let current = Arc::new(Current(RwLock::new(Arc::clone(&identity.certified))));
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has suites for both versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&current) as _);
        // The server speaks only HTTP/1.1, so clients must not negotiate HTTP/2.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Tls {
            current,
            config: Arc::new(config),
        }
    }

    /// Replaces the certificate for all new connections.
    pub fn replace(&self, identity: &TlsIdentity) {
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&identity.certified);
    }

    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}

#[cfg(test)]
mod tests;
