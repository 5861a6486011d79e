//! The routes: `/metrics`, `/healthz`, `/readyz`, the live page and the JSON API.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;

use super::Exporter;
use super::encoding::Encoding;
use super::renderer::{Refusal, Renderer};
use crate::snapshot::Snapshot;

/// What Prometheus asks for, to the letter.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// The page runs only what this server sends, talks to no other, and is framed by no one.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'";

const NOT_FOUND: &str =
    "not found; here are / (live page), /metrics, /api/v1/experiments, /healthz and /readyz\n";

/// All routes. GET and HEAD only.
pub fn router(exporter: Arc<Exporter>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/api/v1/experiments", get(experiments))
        .route("/healthz", get(|| async { answer(StatusCode::OK, PLAIN, "ok") }))
        .route("/readyz", get(ready))
        .route(
            "/",
            get(|| page("text/html; charset=utf-8", include_str!("page/index.html"))),
        )
        .route(
            "/page.css",
            get(|| page("text/css; charset=utf-8", include_str!("page/page.css"))),
        )
        .route(
            "/page.js",
            get(|| page("text/javascript; charset=utf-8", include_str!("page/page.js"))),
        )
        .fallback(|| async { answer(StatusCode::NOT_FOUND, PLAIN, NOT_FOUND) })
        .method_not_allowed_fallback(|| async {
            answer(
                StatusCode::METHOD_NOT_ALLOWED,
                PLAIN,
                "only GET and HEAD are answered here\n",
            )
        })
        .with_state(Arc::new(Routes {
            exporter,
            metrics: Renderer::new(),
            experiments: Renderer::new(),
        }))
}

struct Routes {
    exporter: Arc<Exporter>,
    metrics: Renderer<()>,
    /// By the window whose time lines are wanted, and their profile.
    experiments: Renderer<(Option<usize>, usize)>,
}

async fn metrics(State(routes): State<Arc<Routes>>, headers: HeaderMap) -> Response {
    let exporter = Arc::clone(&routes.exporter);
    let render = move |snapshot: &mut Snapshot, out: &mut Vec<u8>| exporter.metrics(snapshot, out);
    let encoding = Encoding::wanted(&headers);
    let body = routes.metrics.body((), encoding, render).await;
    rendered(TEXT_FORMAT, encoding, body)
}

#[derive(Deserialize)]
struct Wanted {
    /// The name of a sliding window.
    timelines: Option<String>,
    /// The profile by which they are; else the first one.
    profile: Option<String>,
}

async fn experiments(
    State(routes): State<Arc<Routes>>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Response {
    let windows = &routes.exporter.windows;
    let timelines = match wanted.timelines {
        None => None,
        Some(name) => match windows.iter().position(|window| window.name == name) {
            Some(window) => Some(window),
            None => {
                let names: Vec<_> = windows.iter().map(|window| window.name.as_str()).collect();
                let known = names.join(", ");
                let message = format!("no such window has time lines; `timelines` is one of: {known}\n");
                return answer(StatusCode::BAD_REQUEST, PLAIN, message);
            }
        },
    };
    let profiles = routes.exporter.ranking.profiles();
    let lines_of = wanted.profile.map_or(Some(0), |name| {
        profiles.iter().position(|known| known.name == name)
    });
    let Some(lines_of) = lines_of else {
        let names: Vec<_> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        let message = format!(
            "no such profile is measured; `profile` is one of: {}\n",
            names.join(", ")
        );
        return answer(StatusCode::BAD_REQUEST, PLAIN, message);
    };
    let exporter = Arc::clone(&routes.exporter);
    let render = move |snapshot: &mut Snapshot, out: &mut Vec<u8>| {
        exporter.experiments(timelines, lines_of, snapshot, out)
    };
    let encoding = Encoding::wanted(&headers);
    let key = (timelines, lines_of);
    let body = routes.experiments.body(key, encoding, render).await;
    rendered("application/json", encoding, body)
}

async fn ready(State(routes): State<Arc<Routes>>) -> Response {
    let waiting_for = routes.exporter.telemetry.waiting_for();
    if waiting_for.is_empty() {
        return answer(StatusCode::OK, PLAIN, "ready");
    }
    answer(
        StatusCode::SERVICE_UNAVAILABLE,
        PLAIN,
        waiting_for.join("\n") + "\n",
    )
}

async fn page(content_type: &'static str, text: &'static str) -> Response {
    let mut response = answer(StatusCode::OK, content_type, text);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(CONTENT_SECURITY_POLICY),
    );
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    const HEADERS: [(HeaderName, &str); 2] = [
        (header::CACHE_CONTROL, "no-cache"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (
        status,
        [(header::CONTENT_TYPE, content_type)],
        HEADERS,
        body.into(),
    )
        .into_response()
}

/// An answer of what was rendered, or why it was not.
fn rendered(content_type: &'static str, encoding: Encoding, body: Result<Bytes, Refusal>) -> Response {
    let mut response = match body {
        Ok(body) => answer(StatusCode::OK, content_type, body),
        Err(Refusal::Busy) => {
            let busy = "too many answers are being sent to slow readers: try again\n";
            return answer(StatusCode::SERVICE_UNAVAILABLE, PLAIN, busy);
        }
        Err(Refusal::Failed) => {
            let failed = "cannot render: see the log\n";
            return answer(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, failed);
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if encoding == Encoding::Gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

#[cfg(test)]
mod tests;
