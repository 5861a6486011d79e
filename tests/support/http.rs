//! A blocking HTTP client for loopback servers.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use ureq::Agent;

/// An answer with any status.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// Values by lower-case name.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// Gets `url` with these unescaped query parameters. Returns an error if no complete answer arrives within 30 s.
pub fn get(url: &str, query: &[(&str, &str)]) -> Result<Response, ureq::Error> {
    let mut answer = agent().get(url).query_pairs(query.iter().copied()).call()?;
    let headers = answer
        .headers()
        .iter()
        .map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    // A scrape of 300,000 series exceeds the client's default limit.
    let body = answer.body_mut().with_config().limit(1 << 30).read_to_string()?;
    Ok(Response {
        status: answer.status().as_u16(),
        headers,
        body,
    })
}

fn agent() -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(30)))
            .http_status_as_error(false)
            .proxy(None)
            // Reusing a connection to a server that has stopped would fail.
            .max_idle_connections(0)
            .build()
            .into()
    })
}
