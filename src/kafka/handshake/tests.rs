//! Claims about certificates that a server on this machine shows.

use std::io::Read as _;
use std::net::TcpListener;
use std::thread::JoinHandle;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};

use super::*;

const HOST: &str = "localhost";

struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with the key of its own.
struct Signed {
    chain: Chain,
    key: PrivateKeyDer<'static>,
}

impl Authority {
    fn new(name: &str, change: impl Fn(&mut CertificateParams)) -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([]).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        change(&mut params);
        let certificate = params.self_signed(&key).expect("a certificate");
        Authority {
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, key),
        }
    }

    fn sign(&self, hosts: &[&str], change: impl Fn(&mut CertificateParams)) -> Signed {
        let key = KeyPair::generate().expect("a key");
        let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("names");
        params.distinguished_name.push(DnType::CommonName, "broker");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2100, 1, 1);
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Signed {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        }
    }

    fn trusted(&self) -> Trust {
        Trust {
            authorities: Authorities::Named("ca.crt".to_owned(), vec![self.certificate.clone()]),
            checks_host: true,
        }
    }
}

fn nothing(_: &mut CertificateParams) {}

fn expired(params: &mut CertificateParams) {
    params.not_after = date_time_ymd(2020, 2, 1);
}

/// Shows the certificate to the first who comes, by TLS 1.2 or 1.3, and asks for one where `is_mutual`.
fn serve(signed: &Signed, version: &'static rustls::SupportedProtocolVersion) -> (Broker, JoinHandle<()>) {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .expect("a version")
        .with_no_client_auth()
        .with_single_cert(signed.chain.clone(), signed.key.clone_key())
        .expect("a pair");
    let listener = TcpListener::bind((HOST, 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody comes");
        let mut talk = ServerConnection::new(Arc::new(config)).expect("sound");
        // Refused, as it should be.
        let _ = talk.complete_io(&mut stream);
    });
    let host = HOST.to_owned();
    (Broker { host, port }, server)
}

/// What is said of a certificate that a server shows, without the address.
fn said(signed: &Signed, trust: &Trust) -> Option<(String, String)> {
    let said = [&rustls::version::TLS12, &rustls::version::TLS13].map(|version| {
        let (broker, server) = serve(signed, version);
        let chain = broker.shown().expect("a chain");
        server.join().expect("no panic");
        assert_eq!(chain, signed.chain);
        let cause = judge(&broker, &chain, trust, 1_763_596_800_000)?;
        let begin = format!("that of {HOST}:{} ", broker.port);
        let what = cause
            .what
            .strip_prefix(&begin)
            .expect("it begins with the address");
        Some((what.to_owned(), cause.remedy))
    });
    let [one, other] = said;
    assert_eq!(one, other, "whatever the version of TLS");
    one
}

#[track_caller]
fn check_said(signed: &Signed, trust: &Trust, what: &str, remedy: &str) {
    let (said, to_do) = said(signed, trust).expect("a cause");
    assert_eq!(said, what);
    assert!(to_do.contains(remedy), "{to_do}");
}

#[test]
fn a_certificate_without_a_fault_has_no_cause() {
    let authority = Authority::new("ours", nothing);
    assert_eq!(
        said(&authority.sign(&[HOST], nothing), &authority.trusted()),
        None
    );
    let mut pinned = authority.trusted();
    let signed = authority.sign(&[HOST], nothing);
    pinned.authorities = Authorities::Named("ca.crt".to_owned(), signed.chain.clone());
    assert_eq!(said(&signed, &pinned), None, "itself may be named as trusted");
    let common = authority.sign(&[], |params| {
        params.distinguished_name.push(DnType::CommonName, HOST)
    });
    assert_eq!(said(&common, &authority.trusted()), None, "as librdkafka has it");
}

#[test]
fn each_fault_is_told_from_the_others() {
    let authority = Authority::new("ours", nothing);
    let ours = authority.trusted();
    check_said(
        &authority.sign(&[HOST], expired),
        &ours,
        "has expired at 2020-02-01T00:00:00Z",
        "renew it",
    );
    let early = |params: &mut CertificateParams| params.not_before = date_time_ymd(2099, 1, 1);
    check_said(
        &authority.sign(&[HOST], early),
        &ours,
        "is not valid before 2099-01-01T00:00:00Z",
        "clock",
    );
    check_said(
        &authority.sign(&["elsewhere.test", "10.0.0.1"], nothing),
        &ours,
        "is for `elsewhere.test`, `10.0.0.1`, not for `localhost`",
        "kafka.brokers",
    );
    check_said(
        &Authority::new("stranger", nothing).sign(&[HOST], nothing),
        &ours,
        "is signed by `CN=stranger`, and ca.crt has `CN=ours`",
        "kafka.properties.\"ssl.ca.location\"",
    );
    check_said(
        &Authority::new("ours", nothing).sign(&[HOST], nothing),
        &ours,
        "is signed by another `CN=ours` than that in ca.crt",
        "kafka.properties.\"ssl.ca.location\"",
    );
}

#[test]
fn all_faults_are_told_at_once() {
    let authority = Authority::new("ours", nothing);
    let signed = authority.sign(&["elsewhere.test"], expired);
    let what = "has expired at 2020-02-01T00:00:00Z, and is for `elsewhere.test`, not for `localhost`";
    check_said(&signed, &authority.trusted(), what, "renew it; use a name");
}

#[test]
fn an_authority_expires_too() {
    let old = Authority::new("ours", |params| {
        params.not_before = date_time_ymd(2019, 1, 1);
        expired(params);
    });
    let what = "is signed by `CN=ours`, whose own in ca.crt has expired at 2020-02-01T00:00:00Z";
    check_said(&old.sign(&[HOST], nothing), &old.trusted(), what, "renew it");
}

#[test]
fn the_settings_say_what_is_trusted() {
    let stranger = Authority::new("stranger", nothing).sign(&[HOST], nothing);
    let of = |properties: &[(&str, &str)]| {
        let named = properties.iter().map(|(name, value)| {
            let name = name.to_uppercase().replace('.', "_");
            (format!("ABGAUGE_KAFKA__PROPERTIES__{name}"), (*value).to_owned())
        });
        let brokers = [("ABGAUGE_KAFKA__BROKERS".to_owned(), "a:1".to_owned())];
        let config = config::load(None, brokers.into_iter().chain(named)).expect("sound");
        Trust::of(&config.kafka)
    };
    let what = "is signed by `CN=stranger`, which this system does not trust, and ssl.ca.location is not set";
    check_said(&stranger, &of(&[]), what, "name the authority");
    assert_eq!(said(&stranger, &of(&[("ssl.ca.location", "/nowhere")])), None);
    let anywhere = of(&[("ssl.endpoint.identification.algorithm", "none")]);
    let misnamed = Authority::new("stranger", nothing).sign(&["elsewhere.test"], nothing);
    check_said(&misnamed, &anywhere, what, "name the authority");
    let ours = Authority::new("ours", nothing);
    let dir = tempfile::tempdir().expect("a directory");
    let key = KeyPair::generate().expect("a key");
    let other = CertificateParams::new([])
        .expect("no names")
        .self_signed(&key)
        .expect("signed");
    std::fs::write(dir.path().join("other.pem"), other.pem()).expect("written");
    std::fs::write(dir.path().join("README"), "not a certificate").expect("written");
    let path = dir.path().display().to_string();
    let misplaced = ours.sign(&[HOST], nothing);
    let said = said(&misplaced, &of(&[("ssl.ca.location", &path)])).expect("a cause");
    assert!(said.0.starts_with("is signed by `CN=ours`, and "), "{said:?}");
}

#[test]
fn a_broker_is_found_in_what_librdkafka_says() {
    let found = |text: &str| Broker::of(text).map(|broker| (broker.host, broker.port));
    let complaint = "ssl://kafka-1.example:9093/bootstrap: SSL handshake failed: certificate verify failed";
    assert_eq!(found(complaint), Some(("kafka-1.example".to_owned(), 9093)));
    assert_eq!(
        found("sasl_ssl://[::1]:9094/1: no"),
        Some(("::1".to_owned(), 9094))
    );
    for other in [
        "",
        "SSL handshake failed",
        "ssl://kafka",
        "ssl://kafka:x",
        "ssl://a:99999/1",
    ] {
        assert_eq!(found(other), None, "{other}");
    }
}

#[test]
fn a_server_that_says_nothing_is_left_in_time() {
    let listener = TcpListener::bind((HOST, 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody comes");
        let mut hello = Vec::new();
        let _ = stream.read_to_end(&mut hello);
    });
    let host = HOST.to_owned();
    let begin = Instant::now();
    let within = Duration::from_millis(100);
    let left = Broker { host, port }.greeted(begin + within);
    assert!(
        left.is_err() && begin.elapsed() < WITHIN,
        "{left:?} after {:?}",
        begin.elapsed()
    );
    server.join().expect("it was left");
}
