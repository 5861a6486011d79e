//! HTTP requests to a running daemon.

use std::time::Duration;

use abgauge_core::table::visible;
use anyhow::{Context as _, bail};
use axum::body::{self, Body};
use hyper::header::{AUTHORIZATION, USER_AGENT};
use hyper::{Request, StatusCode, Uri};
use tokio::time::timeout;

use crate::https::{self, AGENT, Named};
use crate::settings::{HttpUrl, UnusableFile};
use crate::tools::cli::AskArgs;

/// Maximum size of an answer. A thousand arms with all metrics need a tenth of it.
const MAX_ANSWER: usize = 64 << 20;
/// Maximum length of an error answer that is shown.
const MAX_TOLD: usize = 200;
const TOKEN: &str = "write the token as one line; its hash must be in the daemon's http.bearer_tokens";

/// Fetches the body at `path` below the address.
///
/// # Errors
/// If there is no answer in time, or the answer is not a success. The message names a remedy.
pub(super) fn fetch(url: &HttpUrl, path: &str, asked: &AskArgs) -> anyhow::Result<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("start the asynchronous runtime")?;
    let request = request(url, path, asked)?;
    let authorities = Named {
        setting: "--ca-file",
        path: asked.ca_file.as_deref(),
    };
    let client = https::client(https::trusting(authorities, url).map_err(reported)?);
    let answered = runtime.block_on(async {
        // The limit includes the body, which a slow daemon may never finish.
        let answered = timeout(asked.timeout, async {
            let answer = client.request(request).await?;
            let status = answer.status();
            let body = body::to_bytes(Body::new(answer.into_body()), MAX_ANSWER).await?;
            anyhow::Ok((status, body))
        });
        answered.await.with_context(|| waited(asked.timeout))?
    });
    let (status, body) = answered.map_err(|error| anyhow::anyhow!(silent(url, asked, &error)))?;
    match status {
        StatusCode::OK => Ok(body.into()),
        StatusCode::UNAUTHORIZED if asked.token_file.is_some() => {
            bail!(
                "abgauge at {url} rejects the token of --token-file: its http.bearer_tokens must contain the token's hash (`abgauge hash token`)"
            )
        }
        StatusCode::UNAUTHORIZED => {
            bail!(
                "abgauge at {url} requires credentials: give --token-file FILE with a token whose hash is in its http.bearer_tokens"
            )
        }
        StatusCode::NOT_FOUND => bail!("{url} has no {path}: --from is the address of abgauge's page"),
        status if status.is_redirection() => {
            bail!("{url} answers {status}, and redirects are not followed: give --from the final address")
        }
        status => bail!("{url} answers {status}: {}", first_line(&body)),
    }
}

fn request(url: &HttpUrl, path: &str, asked: &AskArgs) -> anyhow::Result<Request<Body>> {
    let mut request = Request::get(below(url, path)?).header(USER_AGENT, AGENT);
    if let Some(file) = &asked.token_file {
        let token = https::secret("--token-file", file, "Bearer ", TOKEN).map_err(reported)?;
        request = request.header(AUTHORIZATION, token);
    }
    Ok(request.body(Body::empty())?)
}

/// Appends `path` to the address, which may itself contain a proxy's path.
fn below(url: &HttpUrl, path: &str) -> anyhow::Result<Uri> {
    let mut parts = url.uri().clone().into_parts();
    let base = url.uri().path().trim_end_matches('/');
    // The address may already be that of the numbers.
    let base = base.strip_suffix(path).unwrap_or(base);
    parts.path_and_query = Some(format!("{base}{path}").parse()?);
    Ok(Uri::from_parts(parts)?)
}

pub(super) fn reported(file: UnusableFile) -> anyhow::Error {
    let UnusableFile {
        setting,
        message,
        remedy,
    } = file;
    anyhow::anyhow!("{setting}: {message}: {remedy}")
}

fn waited(at_most: Duration) -> String {
    format!("no answer within {at_most:?} (--timeout)")
}

/// Returns the message for a daemon that does not answer.
fn silent(url: &HttpUrl, asked: &AskArgs, error: &anyhow::Error) -> String {
    let why = format!("{error:#}");
    let remedy = match asked.ca_file {
        _ if !why.contains("certificate") => {
            "--from is the address of its page, as in its log (`listening on …`; http.listen)"
        }
        None => "if your own authority has signed it, name that: --ca-file FILE",
        Some(_) => "--ca-file must name the authority that has signed it, and it must be for this host",
    };
    format!("abgauge at {url} does not answer: {why}: {remedy}")
}

fn first_line(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.trim().lines().next().unwrap_or("without a word");
    visible(&line.chars().take(MAX_TOLD).collect::<String>()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_found_under_the_path_of_a_proxy() {
        let uri = |text| {
            let url = HttpUrl::of_setting(text).expect("an address");
            below(&url, "/api/v1/experiments")
                .expect("an address")
                .to_string()
        };
        for text in [
            "http://a:9464",
            "http://a:9464/",
            "http://a:9464/api/v1/experiments",
        ] {
            assert_eq!(uri(text), "http://a:9464/api/v1/experiments");
        }
        assert_eq!(
            uri("https://a/tools/abgauge/?x=1"),
            "https://a/tools/abgauge/api/v1/experiments"
        );
    }
}
