//! Check of the host named in a request, against DNS rebinding.
//!
//! A web page may let its own name resolve to 127.0.0.1 and then read what this machine's browser can read. Its requests
//! name the host of that page. If we listen on a loopback address, a request must therefore name this machine or a
//! configured host. An IP address cannot be made to resolve to us, so on other addresses, requests by IP address are
//! answered even if hosts are configured.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Version, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use tracing::warn;

use super::rate_limit::RateLimit;
use super::server::Peer;
use crate::settings::{self, Host};
use crate::telemetry::{HttpRefusal, Telemetry};

const MALFORMED: &str = "a request names its host once: Host: NAME or NAME:PORT\n";

/// Outermost layer, in front of all routes and of authentication.
pub(super) struct Hosts {
    named: Vec<Host>,
    is_loopback: bool,
    telemetry: Arc<Telemetry>,
    reported: RateLimit,
}

/// Host named by a request.
enum RequestedHost {
    Host(Host),
    /// Absent, as HTTP/1.0 permits. No browser uses that version, but some probes do.
    Nobody,
    Malformed,
}

impl RequestedHost {
    fn of(request: &Request) -> RequestedHost {
        let mut headers = request.headers().get_all(header::HOST).iter();
        let (first, second) = (headers.next(), headers.next());
        let text = match (first, second) {
            // With two hosts, a proxy in front and this server might act on different ones.
            (_, Some(_)) => return RequestedHost::Malformed,
            (None, _) if request.version() >= Version::HTTP_11 => return RequestedHost::Malformed,
            (None, _) => None,
            (Some(value), None) => match value.to_str() {
                Ok(text) => Some(text),
                Err(_) => return RequestedHost::Malformed,
            },
        };
        // An absolute URI in the request line takes precedence over the header (RFC 9112, 3.2.2).
        let authority = request.uri().authority().map(|authority| authority.as_str());
        match authority.or(text).map(Host::of_request) {
            Some(Some(host)) => RequestedHost::Host(host),
            Some(None) => RequestedHost::Malformed,
            None => RequestedHost::Nobody,
        }
    }
}

impl Hosts {
    pub fn new(http: &settings::Http, telemetry: Arc<Telemetry>) -> Hosts {
        Hosts {
            named: http.hosts.clone(),
            is_loopback: http.listen.ip().is_loopback(),
            telemetry,
            reported: RateLimit::default(),
        }
    }

    /// Returns the router, restricted to these hosts.
    pub fn before(self: &Arc<Hosts>, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(Arc::clone(self), ask))
    }

    fn are_answered(&self, host: &Host) -> bool {
        let is_anybodys = !self.is_loopback && self.named.is_empty();
        let is_address_elsewhere = !self.is_loopback && matches!(host, Host::Ip(_));
        let is_named = || {
            self.named
                .iter()
                .any(|named| named == host || *named == Host::Any)
        };
        is_anybodys || is_address_elsewhere || host.is_loopback() || is_named()
    }

    fn refuse(&self, host: &Host, peer: Option<&Peer>) -> Response {
        self.telemetry.count_http_refusal(HttpRefusal::ForeignHost);
        if let Some(unlogged_before) = self.reported.n_unlogged() {
            let peer = peer.map(|peer| peer.0.to_string()).unwrap_or_default();
            warn!(
                peer,
                %host,
                unlogged_before,
                "refused a request for a foreign host: if a proxy or another name points here, add it to http.hosts"
            );
        }
        answer(StatusCode::MISDIRECTED_REQUEST, &refusal(host))
    }
}

/// Returns a message for the person who used that name.
fn refusal(host: &Host) -> String {
    let shown = host.to_string();
    let name = if shown.is_empty() { "NAME" } else { &shown };
    format!(
        "This server does not answer requests for host \"{shown}\". On this machine, use localhost. If a proxy or another name points here, set [http] hosts = [\"{name}\"] (ABGAUGE_HTTP__HOSTS={name}) and start it again.\n"
    )
}

fn answer(status: StatusCode, text: &str) -> Response {
    const HEADERS: [(header::HeaderName, &str); 2] = [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, HEADERS, text.to_owned()).into_response()
}

async fn ask(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    match RequestedHost::of(&request) {
        RequestedHost::Host(host) if !hosts.are_answered(&host) => {
            hosts.refuse(&host, request.extensions().get())
        }
        RequestedHost::Host(_) | RequestedHost::Nobody => next.run(request).await,
        RequestedHost::Malformed => {
            hosts.telemetry.count_http_refusal(HttpRefusal::Malformed);
            answer(StatusCode::BAD_REQUEST, MALFORMED)
        }
    }
}
