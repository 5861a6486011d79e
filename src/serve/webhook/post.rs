//! A single delivery attempt: a POST to the address in `[webhook]`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::body::Body;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HeaderValue, USER_AGENT};
use rustls::ClientConfig;
use tokio::time::timeout;

use crate::https::{self, AGENT, Named};
use crate::settings::{self, HttpUrl, UnusableFile};

/// Remedy in the message about an unusable secret file.
const SECRET: &str =
    "write the value of the header as one line of visible ASCII characters, such as `Bearer …`";

/// Sender of requests to one address. Its files are re-read for each attempt, so a renewed secret needs no restart.
pub(super) struct Post {
    webhook: Arc<settings::Webhook>,
}

/// Contents of the files.
struct WebhookCredentials {
    /// Value of the header.
    secret: Option<HeaderValue>,
    tls: ClientConfig,
}

impl Post {
    pub fn new(webhook: &settings::Webhook) -> Post {
        Post {
            webhook: Arc::new(webhook.clone()),
        }
    }

    pub fn url(&self) -> &HttpUrl {
        &self.webhook.url
    }

    /// Checks that the files can be read and used.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn check(&self) -> Result<(), UnusableFile> {
        WebhookCredentials::read(&self.webhook).map(|_| ())
    }

    /// Sends this JSON and waits for the response status. The response body is not read, and redirects are not followed.
    ///
    /// # Errors
    /// The reason why the request was not accepted, worded without any secret.
    pub async fn send(&self, json: Vec<u8>) -> anyhow::Result<()> {
        let webhook = Arc::clone(&self.webhook);
        // Files may be on a slow volume, so they are not read on a thread of the runtime.
        let read = tokio::task::spawn_blocking(move || WebhookCredentials::read(&webhook));
        let credentials = read.await.context("read the files")??;
        let request = self.request(credentials.secret.clone(), json)?;
        let answer = timeout(
            self.webhook.timeout,
            https::client(credentials.tls).request(request),
        )
        .await;
        let answer = answer.with_context(|| no_answer(self.webhook.timeout))??;
        let status = answer.status();
        match status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => {
                bail!("it answered {status}, and redirects are not followed")
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

impl WebhookCredentials {
    fn read(webhook: &settings::Webhook) -> Result<WebhookCredentials, UnusableFile> {
        let authorities = Named {
            setting: "webhook.ca_file",
            path: webhook.ca_file.as_deref(),
        };
        let secret = |path| https::secret("webhook.secret_file", path, "", SECRET);
        Ok(WebhookCredentials {
            secret: webhook.secret_file.as_deref().map(secret).transpose()?,
            tls: https::trusting(authorities, &webhook.url)?,
        })
    }
}
