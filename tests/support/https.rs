//! A blocking HTTP client that speaks TLS where it is told whom to trust, and says no more than it is told.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::http::Response;

/// Whom a client trusts: one authority.
#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// The authority of this file.
    pub fn of(authority: &Path) -> Trust {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_file(authority).expect("a certificate");
        roots.add(certificate).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has suites for both versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Trust(Arc::new(config))
    }

    /// TLS over a connection to this address.
    pub fn over(&self, stream: TcpStream, ip: IpAddr) -> StreamOwned<ClientConnection, TcpStream> {
        let connection = ClientConnection::new(Arc::clone(&self.0), ServerName::from(ip));
        StreamOwned::new(connection.expect("a name and a configuration"), stream)
    }
}

/// The answer to `GET path` with these header lines, over TLS where `trust` is given; on a connection of its own.
pub fn get(
    address: SocketAddr,
    trust: Option<&Trust>,
    path: &str,
    headers: &[(&str, &str)],
) -> io::Result<Response> {
    let mut request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let answer = match trust {
        None => exchange(stream, &request)?,
        Some(trust) => exchange(trust.over(stream, address.ip()), &request)?,
    };
    parse(&answer).ok_or_else(|| io::Error::other(format!("no answer of HTTP: {answer:?}")))
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn parse(answer: &str) -> Option<Response> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?;
    let header = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_lowercase(), value.to_owned()))
    };
    Some(Response {
        status: status.parse().ok()?,
        headers: lines.filter_map(header).collect(),
        body: body.to_owned(),
    })
}
