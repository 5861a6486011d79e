//! `abgauge health`: asks a daemon on this machine whether it is well, as health checks of containers do.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned};

/// The longest answer that is read; those of the probes are a few lines.
const MAX_ANSWER: u64 = 64 * 1024;

/// Which of the two questions is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Does it live? `/healthz`.
    Alive,
    /// Has it caught up? `/readyz`.
    Ready,
}

/// Where the daemon listens, and how it wants to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub address: SocketAddr,
    pub tls: bool,
    /// A bearer token, where the probes are not open.
    pub token: Option<String>,
}

/// What it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// Asks within `timeout`.
///
/// # Errors
/// Nobody answers there, or not what a daemon would.
pub fn ask(target: &Target, question: Question, timeout: Duration) -> io::Result<Answer> {
    let end = Instant::now() + timeout;
    let stream = Bounded {
        stream: TcpStream::connect_timeout(&target.address, timeout)?,
        end,
    };
    if !target.tls {
        return request(stream, target, question);
    }
    let name = ServerName::from(target.address.ip());
    let connection = ClientConnection::new(client_config(), name).map_err(io::Error::other)?;
    request(StreamOwned::new(connection, stream), target, question)
}

/// A connection that fails once its time is over, however slowly its bytes come.
struct Bounded {
    stream: TcpStream,
    end: Instant,
}

impl Bounded {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.end.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

/// Who is waited for in vain tells `WouldBlock`, which says nothing to a reader.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
        _ => error,
    }
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer).map_err(timed_out)
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// An address that listens on every one is asked on the machine's own.
pub fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

fn request(mut stream: impl Read + Write, target: &Target, question: Question) -> io::Result<Answer> {
    let path = match question {
        Question::Alive => "/healthz",
        Question::Ready => "/readyz",
    };
    let host = target.address;
    let mut request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    if let Some(token) = &target.token {
        request.push_str(&format!("Authorization: Bearer {token}\r\n"));
    }
    stream.write_all(format!("{request}\r\n").as_bytes())?;
    let mut answer = Vec::new();
    let read = stream.take(MAX_ANSWER).read_to_end(&mut answer);
    // An answer that ends without TLS saying so is whole by its status.
    if let Err(error) = read
        && error.kind() != ErrorKind::UnexpectedEof
    {
        return Err(error);
    }
    parse(&String::from_utf8_lossy(&answer)).ok_or_else(|| io::Error::other("the answer is not HTTP"))
}

fn parse(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let mut words = head.strip_prefix("HTTP/1.")?.split_whitespace();
    let status = words.nth(1)?.parse().ok()?;
    Some(Answer {
        status,
        body: body.trim().to_owned(),
    })
}

fn client_config() -> Arc<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("ring has suites for both versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    Arc::new(config)
}

/// A daemon on this machine is asked by its address, which its certificate seldom names: as the kubelet's probes do, any
/// certificate is taken whose key the daemon holds.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer,
        _: &[CertificateDer],
        _: &ServerName,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_status_and_words() {
        let answer = parse("HTTP/1.1 503 Service Unavailable\r\nA: b\r\n\r\nwaiting for brokers\n");
        let expected = Answer {
            status: 503,
            body: "waiting for brokers".to_owned(),
        };
        assert_eq!(answer, Some(expected));
        for strange in [
            "",
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 abc\r\n\r\n",
            "HTTP/1.1 200 OK\r\n",
        ] {
            assert_eq!(parse(strange), None, "{strange:?}");
        }
    }

    #[test]
    fn who_listens_everywhere_is_asked_here() {
        for (listen, asked) in [
            ("0.0.0.0:9464", "127.0.0.1:9464"),
            ("[::]:9464", "[::1]:9464"),
            ("10.1.2.3:1", "10.1.2.3:1"),
        ] {
            let listen = listen.parse().expect("an address");
            assert_eq!(reachable(listen).to_string(), asked);
        }
    }
}
