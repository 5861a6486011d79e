//! Common parts of our own requests, to the webhook or to another daemon: trust, secrets from files, connections.

use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use hyper::header::HeaderValue;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::settings::{HttpUrl, TlsFiles, UnusableFile, files};

/// Program name for the header `User-Agent`.
pub(crate) const AGENT: &str = concat!("abgauge/", env!("CARGO_PKG_VERSION"));

/// Setting or flag, with the file it names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    pub setting: &'static str,
    pub path: Option<&'a Path>,
}

/// Certificate and key that we show to a server, with the settings that name them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity<'a> {
    pub settings: [&'static str; 2],
    pub files: &'a TlsFiles,
}

/// Client of HTTP and HTTPS.
pub(crate) type HttpsClient = Client<HttpsConnector<HttpConnector>, Body>;

/// Creates a client without idle connections, because the next request may be hours away.
pub(crate) fn client(tls: ClientConfig) -> HttpsClient {
    client_with_pool(tls, 0)
}

/// Creates a client that keeps up to `n_idle` connections for further requests.
pub(crate) fn client_with_pool(tls: ClientConfig, n_idle: usize) -> HttpsClient {
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .build();
    Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(n_idle)
        .build(connector)
}

/// Returns a configuration that trusts the authorities in the file, or else the system's. Plain HTTP needs none.
///
/// # Errors
/// If the file cannot be used, or there is no file and the system has no authorities.
pub(crate) fn trusting(authorities: Named, url: &HttpUrl) -> Result<ClientConfig, UnusableFile> {
    trusting_as(authorities, None, url)
}

/// Returns the configuration of [`trusting`] for a client that has a certificate.
///
/// # Errors
/// The same, and if the certificate or its key cannot be used.
pub(crate) fn trusting_as(
    authorities: Named,
    identity: Option<Identity>,
    url: &HttpUrl,
) -> Result<ClientConfig, UnusableFile> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has suites for both versions");
    let setting = authorities.setting;
    let config = match authorities.path {
        Some(path) => config.with_root_certificates(read_authorities(setting, path)?),
        None if url.is_tls() => config.with_native_roots().map_err(|error| UnusableFile {
            setting,
            message: format!("without it the system's authorities are used, but it has none: {error}"),
            remedy: format!("install the package ca-certificates, or set {setting} to a file of authorities"),
        })?,
        None => config.with_root_certificates(RootCertStore::empty()),
    };
    match identity {
        None => Ok(config.with_no_client_auth()),
        Some(identity) => {
            let (chain, key) = identity.read()?;
            config
                .with_client_auth_cert(chain, key)
                .map_err(|error| identity.unusable(1, &error.to_string()))
        }
    }
}

impl Identity<'_> {
    fn read(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), UnusableFile> {
        let Identity { settings, files } = self;
        let text = files::read_for(settings[0], &files.certificate)?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let chain = chain.map_err(|error| self.unusable(0, &error.to_string()))?;
        if chain.is_empty() {
            return Err(self.unusable(0, "it has no certificate in PEM"));
        }
        let text = files::read_for(settings[1], &files.key)?;
        let key = PrivateKeyDer::from_pem_slice(&text);
        Ok((chain, key.map_err(|error| self.unusable(1, &error.to_string()))?))
    }

    fn unusable(&self, n: usize, why: &str) -> UnusableFile {
        let path = [&self.files.certificate, &self.files.key][n];
        UnusableFile {
            setting: self.settings[n],
            message: format!("{}: {why}", path.display()),
            remedy: "name a file in PEM with the certificate, and one with its private key; both may be in one file"
                .to_owned(),
        }
    }
}

fn read_authorities(setting: &'static str, path: &Path) -> Result<RootCertStore, UnusableFile> {
    let unusable = |why: String| UnusableFile {
        setting,
        message: format!("{}: no authority can be read: {why}", path.display()),
        remedy:
            "name a file in PEM (-----BEGIN CERTIFICATE-----) with the authorities that sign its certificate"
                .to_owned(),
    };
    let text = files::read_for(setting, path)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let added = certificate
            .map_err(|error| error.to_string())
            .and_then(|it| roots.add(it).map_err(|error| error.to_string()));
        added.map_err(unusable)?;
    }
    match roots.is_empty() {
        true => Err(unusable("it has none in PEM".to_owned())),
        false => Ok(roots),
    }
}

/// Reads the only line of a file into a secret header value with the prefix `scheme`. `remedy` describes the expected content.
///
/// # Errors
/// If the file cannot be read, or does not contain exactly one such line.
pub(crate) fn secret(
    setting: &'static str,
    path: &Path,
    scheme: &str,
    remedy: &str,
) -> Result<HeaderValue, UnusableFile> {
    let line = secret_line(setting, path, remedy)?;
    if !line.is_ascii() {
        return Err(unusable(
            setting,
            path,
            "has characters that no header should carry",
            remedy,
        ));
    }
    let value = HeaderValue::from_bytes(&[scheme.as_bytes(), &line].concat());
    let mut value = value.map_err(|_| unusable(setting, path, "is not a valid header value", remedy))?;
    // `Debug` masks sensitive values.
    value.set_sensitive(true);
    Ok(value)
}

/// Reads a secret from a file: a single line without control characters.
///
/// # Errors
/// The file cannot be read, or does not contain exactly one such line.
pub(crate) fn secret_line(setting: &'static str, path: &Path, remedy: &str) -> Result<Vec<u8>, UnusableFile> {
    let bytes = files::read_for(setting, path)?;
    let line = bytes.trim_ascii();
    let why = match () {
        () if line.is_empty() => "is empty",
        () if line.contains(&b'\n') => "has more than one line",
        () if line.iter().any(u8::is_ascii_control) => "has characters that no header should carry",
        () => return Ok(line.to_vec()),
    };
    Err(unusable(setting, path, why, remedy))
}

fn unusable(setting: &'static str, path: &Path, why: &str, remedy: &str) -> UnusableFile {
    UnusableFile {
        setting,
        message: format!("{} {why}", path.display()),
        remedy: remedy.to_owned(),
    }
}
