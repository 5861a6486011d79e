//! One attempt: a POST to the address of `[webhook]`, and whether it was answered with success.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::body::Body;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use crate::config::{self, HttpUrl, UnusableFile, files};

const SECRET_FILE: &str = "webhook.secret_file";
const CA_FILE: &str = "webhook.ca_file";

const AGENT: &str = concat!("abgauge/", env!("CARGO_PKG_VERSION"));

/// Sends to one address. Its files are read anew for each attempt, so that a renewed secret needs no restart.
pub(super) struct Post {
    webhook: Arc<config::Webhook>,
}

/// What the files say.
struct Credentials {
    /// The value of the header.
    secret: Option<HeaderValue>,
    tls: ClientConfig,
}

impl Post {
    pub fn new(webhook: &config::Webhook) -> Post {
        Post {
            webhook: Arc::new(webhook.clone()),
        }
    }

    pub fn url(&self) -> &HttpUrl {
        &self.webhook.url
    }

    /// Reads the files.
    ///
    /// # Errors
    /// One that cannot be used.
    pub fn check(&self) -> Result<(), UnusableFile> {
        Credentials::read(&self.webhook).map(|_| ())
    }

    /// Sends this JSON, and waits for the status of the answer. Of the answer's body nothing is read, and a redirection is not
    /// followed.
    ///
    /// # Errors
    /// Why it was not taken, in words without any secret.
    pub async fn send(&self, json: Vec<u8>) -> anyhow::Result<()> {
        let webhook = Arc::clone(&self.webhook);
        let read = tokio::task::spawn_blocking(move || Credentials::read(&webhook));
        let credentials = read.await.context("read the files")??;
        let request = self.request(credentials.secret.clone(), json)?;
        let answer = timeout(self.webhook.timeout, client(credentials).request(request)).await;
        let answer = answer.with_context(|| no_answer(self.webhook.timeout))??;
        let status = answer.status();
        match status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => {
                bail!("it answered {status}, and redirections are not followed")
            }
            status => bail!("it answered {status}"),
        }
    }

    fn request(&self, secret: Option<HeaderValue>, json: Vec<u8>) -> anyhow::Result<Request<Body>> {
        let mut request = Request::post(self.webhook.url.uri().clone())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, AGENT);
        if let Some(secret) = secret {
            request = request.header(&self.webhook.header, secret);
        }
        Ok(request.body(Body::from(json))?)
    }
}

fn no_answer(within: Duration) -> String {
    format!("it did not answer within {within:?}")
}

/// A connection for one request: the next one may be hours away.
fn client(credentials: Credentials) -> Client<HttpsConnector<HttpConnector>, Body> {
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(credentials.tls)
        .https_or_http()
        .enable_http1()
        .build();
    Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .build(connector)
}

impl Credentials {
    fn read(webhook: &config::Webhook) -> Result<Credentials, UnusableFile> {
        Ok(Credentials {
            secret: webhook.secret_file.as_deref().map(secret).transpose()?,
            tls: tls(webhook)?,
        })
    }
}

/// The one line of the file.
fn secret(path: &Path) -> Result<HeaderValue, UnusableFile> {
    let unusable = |why: &str| UnusableFile {
        setting: SECRET_FILE,
        message: format!("{} {why}", path.display()),
        remedy: "write the value of the header as one line of visible ASCII characters, such as `Bearer …`"
            .to_owned(),
    };
    let bytes = files::read_for(SECRET_FILE, path)?;
    let line = bytes.trim_ascii();
    if line.is_empty() {
        return Err(unusable("is empty"));
    }
    if line.contains(&b'\n') {
        return Err(unusable("has more than one line"));
    }
    if !line.iter().all(|c| (b' '..=b'~').contains(c)) {
        return Err(unusable("has characters that no header should carry"));
    }
    let mut value = HeaderValue::from_bytes(line).map_err(|_| unusable("is not the value of a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Certificates are those that the file's authorities, or those of the system, have signed. Plain HTTP asks for none.
fn tls(webhook: &config::Webhook) -> Result<ClientConfig, UnusableFile> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has suites for both versions");
    let config = match &webhook.ca_file {
        Some(path) => config.with_root_certificates(authorities(path)?),
        None if webhook.url.is_tls() => config.with_native_roots().map_err(|error| UnusableFile {
            setting: "webhook.url",
            message: format!("the system has no authorities that could have signed a certificate: {error}"),
            remedy: "install the package ca-certificates, or set webhook.ca_file to a file of them"
                .to_owned(),
        })?,
        None => config.with_root_certificates(RootCertStore::empty()),
    };
    Ok(config.with_no_client_auth())
}

fn authorities(path: &Path) -> Result<RootCertStore, UnusableFile> {
    let unusable = |why: String| {
        UnusableFile {
        setting: CA_FILE,
        message: format!("{}: no authority can be read: {why}", path.display()),
        remedy: "name a file in PEM (-----BEGIN CERTIFICATE-----) of the authorities that sign the certificate there".to_owned(),
    }
    };
    let text = files::read_for(CA_FILE, path)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let added = certificate
            .map_err(|error| error.to_string())
            .and_then(|it| roots.add(it).map_err(|error| error.to_string()));
        added.map_err(unusable)?;
    }
    match roots.is_empty() {
        true => Err(unusable("there is none in PEM".to_owned())),
        false => Ok(roots),
    }
}
