//! A blocking HTTP client with optional TLS that sends exactly the given headers.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::http::Response;

/// The one authority that a client trusts.
#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Trusts the authority in this PEM file.
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

    /// Wraps a connection to this address in TLS.
    pub fn over(&self, stream: TcpStream, ip: IpAddr) -> StreamOwned<ClientConnection, TcpStream> {
        self.over_to(stream, ServerName::from(ip))
    }

    /// Wraps a connection in TLS. The certificate must be valid for `name`.
    fn over_to(
        &self,
        stream: TcpStream,
        name: ServerName<'static>,
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let connection = ClientConnection::new(Arc::clone(&self.0), name);
        StreamOwned::new(connection.expect("a name and a configuration"), stream)
    }
}

/// Sends `GET path` with these header lines on a new connection, over TLS if `trust` is given, and returns the answer.
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

/// A complete request, sent over TLS to a named host at a given address.
pub struct NamedRequest<'a> {
    pub method: &'a str,
    /// Full URL: `https://host:port/path?query`.
    pub url: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a str,
}

/// Sends a request for the URL's host to this address on a new connection, and returns the answer.
pub fn ask(address: SocketAddr, trust: &Trust, asked: &NamedRequest) -> io::Result<Response> {
    let rest = asked
        .url
        .strip_prefix("https://")
        .ok_or_else(|| io::Error::other("no https"))?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.split(':').next().unwrap_or_default().to_owned();
    let mut request = format!(
        "{} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n",
        asked.method
    );
    for (name, value) in asked.headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if !asked.body.is_empty() {
        request.push_str(&format!("Content-Length: {}\r\n", asked.body.len()));
    }
    request.push_str("\r\n");
    request.push_str(asked.body);
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    let answer = exchange(trust.over_to(stream, name), &request)?;
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
