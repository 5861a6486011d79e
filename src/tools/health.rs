//! Health check of a daemon on this machine (`abgauge health`), as used by containers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::body::{self, Body};
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONNECTION, HOST};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Maximum length of a response. The probes answer with a few lines.
const MAX_ANSWER: usize = 64 * 1024;

/// Probe to request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthQuestion {
    /// Liveness of the process: `/healthz`.
    Alive,
    /// Readiness, that is, having caught up: `/readyz`.
    Ready,
}

/// Address of the daemon, and how to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub address: SocketAddr,
    pub tls: bool,
    /// Bearer token, if the probes need one.
    pub token: Option<String>,
}

/// Response of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthAnswer {
    pub status: u16,
    pub body: String,
}

/// Requests a probe and waits at most `at_most` for the response.
///
/// # Errors
/// If there is no response in time, or it is not from a daemon.
pub async fn ask(
    target: &Target,
    question: HealthQuestion,
    at_most: Duration,
) -> anyhow::Result<HealthAnswer> {
    let asked = async {
        let stream = TcpStream::connect(target.address).await?;
        if !target.tls {
            return request(stream, target, question).await;
        }
        // The name only has to be valid, because the names in the certificate are not checked.
        let name = ServerName::from(target.address.ip());
        let connector = TlsConnector::from(client_config());
        request(connector.connect(name, stream).await?, target, question).await
    };
    let answered = timeout(at_most, asked).await;
    answered.with_context(|| format!("no answer within {at_most:?}"))?
}

/// Replaces an unspecified address, on which a server listens everywhere, by the loopback address.
pub fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

async fn request(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    target: &Target,
    question: HealthQuestion,
) -> anyhow::Result<HealthAnswer> {
    let path = match question {
        HealthQuestion::Alive => "/healthz",
        HealthQuestion::Ready => "/readyz",
    };
    let mut request = Request::get(path)
        .header(HOST, target.address.to_string())
        // One request per connection, so its task ends with the answer.
        .header(CONNECTION, "close");
    if let Some(token) = &target.token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Body::empty()).context("the token cannot be sent")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the response. Errors before that also reach the sender.
    tokio::spawn(connection);
    let answer = sender.send_request(request).await?;
    let status = answer.status().as_u16();
    let body = body::to_bytes(Body::new(answer.into_body()), MAX_ANSWER).await?;
    Ok(HealthAnswer {
        status,
        body: String::from_utf8_lossy(&body).trim().to_owned(),
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

/// Verifier that accepts any certificate whose key the daemon holds. A daemon on this machine is asked by address, which its
/// certificate rarely contains. The kubelet's probes do the same.
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
    fn a_wildcard_listener_is_reached_on_loopback() {
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
