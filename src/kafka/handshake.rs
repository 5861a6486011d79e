//! Why a broker's certificate is refused, by a handshake of our own: librdkafka says only that it is.
//!
//! Nothing is said to the broker but hello, and it ends as soon as the certificate is shown. It is judged by the authorities
//! that librdkafka was told of. What is found explains a refusal, and never lets anybody in.

use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore, SignatureScheme};

use crate::certificate::{Certificate, Time};
use crate::clock::Clock;
use crate::config;

/// For all of it: to resolve the name, to connect, to be shown the certificate.
const WITHIN: Duration = Duration::from_secs(3);
/// Hosts, and authorities, that are told.
const MAX_TOLD: usize = 5;
/// Files that are read of a directory of authorities.
const MAX_FILES: usize = 1000;

/// Why a certificate is refused, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Goes on after the broker's address.
    pub what: String,
    pub remedy: String,
}

/// Why the certificate of this broker is refused. None where it shows none, or where nothing is wrong with it as far as we
/// can tell. Takes some seconds at most.
pub fn cause(kafka: &config::Kafka, broker: &Broker) -> Option<Cause> {
    let chain = broker.shown().inspect_err(|error| {
        tracing::debug!(%error, broker = broker.address(), "could not look at a certificate that was refused");
    });
    judge(broker, &chain.ok()?, &Trust::of(kafka), Clock::system().now_ms())
}

/// Where a broker was reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Broker {
    host: String,
    port: u16,
}

impl Broker {
    /// The one that librdkafka complains of, in words such as `ssl://kafka-1:9093/bootstrap: SSL handshake failed: …`.
    pub fn of(complaint: &str) -> Option<Broker> {
        let (_, behind) = complaint.split_once("://")?;
        let (host, behind) = match behind.strip_prefix('[') {
            Some(behind) => behind.split_once("]:")?,
            None => behind.split_once(':')?,
        };
        let n_digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        let port = behind[..n_digits].parse().ok()?;
        Some(Broker {
            host: host.to_owned(),
            port,
        })
    }

    fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The certificate that it shows, and those behind it.
    fn shown(&self) -> io::Result<Chain> {
        let (tell, told) = mpsc::sync_channel(1);
        let broker = self.clone();
        // Nothing else bounds the time that it takes to resolve a name.
        std::thread::Builder::new()
            .name("handshake".into())
            .spawn(move || tell.send(broker.greeted(Instant::now() + WITHIN)))?;
        told.recv_timeout(WITHIN)
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    fn greeted(&self, deadline: Instant) -> io::Result<Chain> {
        let mut stream = self.connected(deadline)?;
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        let provider = ring::default_provider();
        let onlooker = Arc::new(Onlooker {
            schemes: provider.signature_verification_algorithms.supported_schemes(),
            seen: Mutex::default(),
        });
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&onlooker) as _)
            .with_no_client_auth();
        let mut talk = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        while talk.is_handshaking() {
            let left = left(deadline)?;
            stream.set_write_timeout(Some(left))?;
            stream.set_read_timeout(Some(left))?;
            if talk.wants_write() {
                talk.write_tls(&mut stream)?;
            } else if talk.read_tls(&mut stream)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            } else if let Err(error) = talk.process_new_packets() {
                let seen = onlooker
                    .seen
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
                return seen.ok_or_else(|| io::Error::other(error));
            }
        }
        Err(io::Error::other("the handshake ended without a certificate"))
    }

    fn connected(&self, deadline: Instant) -> io::Result<TcpStream> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in (&*self.host, self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left(deadline)?) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.checked_duration_since(Instant::now());
    left.filter(|left| !left.is_zero())
        .ok_or_else(|| io::ErrorKind::TimedOut.into())
}

/// The broker's own certificate first.
type Chain = Vec<CertificateDer<'static>>;

/// Sees what is shown, and refuses it whatever it is.
#[derive(Debug)]
struct Onlooker {
    schemes: Vec<SignatureScheme>,
    seen: Mutex<Option<Chain>>,
}

impl ServerCertVerifier for Onlooker {
    fn verify_server_cert(
        &self,
        own: &CertificateDer,
        others: &[CertificateDer],
        _: &ServerName,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let chain = std::iter::once(own).chain(others);
        let chain = chain.map(|certificate| certificate.clone().into_owned());
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(chain.collect());
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

/// By what librdkafka judges certificates.
struct Trust {
    authorities: Authorities,
    /// Whether the name must fit.
    checks_host: bool,
}

enum Authorities {
    /// Those of the system, as librdkafka finds them.
    System,
    /// Those of a setting, and how messages call it.
    Named(String, Vec<CertificateDer<'static>>),
    /// Not to be read, at least not by us.
    Unknown,
}

impl Trust {
    fn of(kafka: &config::Kafka) -> Trust {
        let property = |name: &str| kafka.properties.0.get(name).map(String::as_str);
        let location = property("ssl.ca.location").filter(|location| !location.is_empty());
        let authorities = match (property("ssl.ca.pem"), location) {
            (Some(pem), _) => Authorities::named(
                "ssl.ca.pem",
                CertificateDer::pem_slice_iter(pem.as_bytes()).collect(),
            ),
            (None, None | Some("probe")) => Authorities::System,
            (None, Some(path)) => Authorities::named(path, in_files(Path::new(path))),
        };
        Trust {
            authorities,
            checks_host: property("ssl.endpoint.identification.algorithm") != Some("none"),
        }
    }
}

impl Authorities {
    fn named<E>(name: &str, found: Result<Vec<CertificateDer<'static>>, E>) -> Authorities {
        match found {
            Ok(found) if !found.is_empty() => Authorities::Named(name.to_owned(), found),
            _ => Authorities::Unknown,
        }
    }
}

/// Of a file, or of all in a directory that can be read.
fn in_files(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    if !path.is_dir() {
        let found = CertificateDer::pem_file_iter(path).map_err(io::Error::other)?;
        return found.collect::<Result<_, _>>().map_err(io::Error::other);
    }
    let entries = std::fs::read_dir(path)?.take(MAX_FILES).flatten();
    let files = entries
        .map(|entry| entry.path())
        .filter(|path: &PathBuf| path.is_file());
    let found = files.filter_map(|file| CertificateDer::pem_file_iter(file).ok());
    Ok(found.flat_map(Iterator::flatten).collect())
}

/// All that is wrong with a chain.
fn judge(broker: &Broker, chain: &Chain, trust: &Trust, now_ms: i64) -> Option<Cause> {
    let read: Vec<Certificate> = chain
        .iter()
        .map(|der| Certificate::read(der))
        .collect::<Result<_, _>>()
        .ok()?;
    let mut faults = of_time(&read, trust, now_ms);
    faults.extend(of_host(broker, chain, &read[0], trust));
    faults.extend(of_authority(chain, &read, trust, now_ms, faults.is_empty()));
    let (what, remedies): (Vec<String>, Vec<String>) = faults.into_iter().unzip();
    (!what.is_empty()).then(|| Cause {
        what: format!("that of {} {}", broker.address(), what.join(", and ")),
        remedy: remedies.join("; "),
    })
}

/// What is wrong, and what to do.
type Fault = (String, String);

fn of_time(chain: &[Certificate], trust: &Trust, now_ms: i64) -> Vec<Fault> {
    let own = chain.iter().enumerate().map(|(place, certificate)| {
        let whose = match place {
            0 => String::new(),
            _ => format!("comes with that of `{}`, which ", certificate.subject()),
        };
        (whose, certificate)
    });
    let authorities = trust.authorities.that_signed(chain);
    let authorities = authorities.iter().map(|(name, authority)| {
        let whose = format!("is signed by `{}`, whose own in {name} ", authority.subject());
        (whose, authority)
    });
    let fault = |(whose, certificate): (String, &Certificate)| {
        let (from_ms, to_ms) = (certificate.valid_from_ms(), certificate.expires_ms());
        if now_ms > to_ms {
            let what = format!("{whose}has expired at {}", Time(to_ms));
            Some((what, "renew it".to_owned()))
        } else if now_ms < from_ms {
            let what = format!("{whose}is not valid before {}", Time(from_ms));
            Some((
                what,
                "check the clock of this machine, and wait or renew it".to_owned(),
            ))
        } else {
            None
        }
    };
    own.chain(authorities).filter_map(fault).collect()
}

fn of_host(broker: &Broker, chain: &Chain, own: &Certificate, trust: &Trust) -> Option<Fault> {
    let host = &broker.host;
    let name = ServerName::try_from(host.as_str()).ok()?;
    let parsed = ParsedCertificate::try_from(&chain[0]).ok()?;
    let hosts = own.hosts();
    // A common name fits too, where there is no host beside it.
    let fits = verify_server_name(&parsed, &name).is_ok()
        || hosts.iter().any(|other| other.eq_ignore_ascii_case(host));
    (trust.checks_host && !fits).then(|| {
        let what = format!("is for {}, not for `{host}`", listed(&hosts));
        let remedy = "use a name that it has, in kafka.brokers and in the brokers' advertised.listeners, or have it issued \
                      for this name too";
        (what, remedy.to_owned())
    })
}

/// Where the system's authorities count, which we do not know, the last that can be wrong is.
fn of_authority(
    chain: &Chain,
    read: &[Certificate],
    trust: &Trust,
    now_ms: i64,
    is_all_else_right: bool,
) -> Option<Fault> {
    let signer = read.last()?.issuer();
    let set = "name the authority that has signed it in kafka.properties.\"ssl.ca.location\"";
    match &trust.authorities {
        Authorities::Unknown => None,
        Authorities::System => is_all_else_right.then(|| {
            let what = format!(
                "is signed by `{signer}`, which this system does not trust, and ssl.ca.location is not set"
            );
            (what, set.to_owned())
        }),
        Authorities::Named(name, authorities) => (!leads_to(authorities, chain, now_ms)).then(|| {
            let what = match trust.authorities.that_signed(read).is_empty() {
                false => format!("is signed by another `{signer}` than that in {name}"),
                true => {
                    let known = authorities.iter().filter_map(|der| Certificate::read(der).ok());
                    let known: Vec<String> = known.map(|authority| authority.subject()).collect();
                    format!("is signed by `{signer}`, and {name} has {}", listed(&known))
                }
            };
            (what, set.to_owned())
        }),
    }
}

impl Authorities {
    /// Those that have the name of who signed the last of these, and where they are named.
    fn that_signed(&self, chain: &[Certificate]) -> Vec<(&str, Certificate)> {
        let (Authorities::Named(name, known), Some(last)) = (self, chain.last()) else {
            return Vec::new();
        };
        let known = known.iter().filter_map(|der| Certificate::read(der).ok());
        let signed = known.filter(|authority| last.names_as_issuer(authority));
        signed.map(|authority| (name.as_str(), authority)).collect()
    }
}

/// Whether one of the authorities has signed it, whatever else is wrong with it.
fn leads_to(authorities: &[CertificateDer<'static>], chain: &Chain, now_ms: i64) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities.iter().cloned());
    let Ok(own) = ParsedCertificate::try_from(&chain[0]) else {
        return true;
    };
    let now = UnixTime::since_unix_epoch(Duration::from_millis(now_ms.unsigned_abs()));
    let CryptoProvider {
        signature_verification_algorithms: algorithms,
        ..
    } = ring::default_provider();
    let verified = verify_server_cert_signed_by_trust_anchor(&own, &roots, &chain[1..], now, algorithms.all);
    let is_stranger = |error: &rustls::Error| {
        matches!(
            error,
            rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature
            )
        )
    };
    !verified.is_err_and(|error| is_stranger(&error)) || authorities.contains(&chain[0])
}

fn listed(names: &[String]) -> String {
    let told: Vec<String> = names
        .iter()
        .take(MAX_TOLD)
        .map(|name| format!("`{name}`"))
        .collect();
    match names.len() {
        0 => "nobody".to_owned(),
        n if n > MAX_TOLD => format!("{} and {} more", told.join(", "), n - MAX_TOLD),
        _ => told.join(", "),
    }
}

#[cfg(test)]
mod tests;
