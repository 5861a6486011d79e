//! The routes: `/metrics`, `/healthz`, `/readyz`, the live page and the JSON API.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::error;

use super::Exporter;

/// What Prometheus asks for, to the letter.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// The page runs only what this server sends, talks to no other, and is framed by no one.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'";

const NOT_FOUND: &str =
    "not found; here are / (live page), /metrics, /api/v1/experiments, /healthz and /readyz\n";

/// Answers of one route that may be under way at once, each with its own copy of the numbers.
const MAX_BODIES: usize = 4;
/// How long a request waits for its turn among them.
const PATIENCE: Duration = Duration::from_secs(3);

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
            metrics: Renderer::default(),
            experiments: Renderer::default(),
        }))
}

struct Routes {
    exporter: Arc<Exporter>,
    metrics: Renderer,
    experiments: Renderer,
}

async fn metrics(State(routes): State<Arc<Routes>>) -> Response {
    let exporter = Arc::clone(&routes.exporter);
    let render = move |out: &mut Vec<u8>| exporter.metrics(out);
    routes.metrics.answer(TEXT_FORMAT, render).await
}

#[derive(Deserialize)]
struct Wanted {
    /// The name of a sliding window.
    timelines: Option<String>,
    /// The profile by which they are; else the first one.
    profile: Option<String>,
}

async fn experiments(State(routes): State<Arc<Routes>>, Query(wanted): Query<Wanted>) -> Response {
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
    let render = move |out: &mut Vec<u8>| exporter.experiments(timelines, lines_of, out);
    routes.experiments.answer("application/json", render).await
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

/// Renders one body at a time, away from the async threads, and keeps at most [`MAX_BODIES`] alive until they are
/// sent: so any number of scrapes, however slow their readers, costs bounded memory.
struct Renderer {
    bodies: Arc<Semaphore>,
    /// Held while rendering; the size of the last body, which the next is likely to have.
    turn: Arc<Mutex<usize>>,
    patience: Duration,
}

impl Default for Renderer {
    fn default() -> Renderer {
        Renderer {
            bodies: Arc::new(Semaphore::new(MAX_BODIES)),
            turn: Arc::default(),
            patience: PATIENCE,
        }
    }
}

impl Renderer {
    async fn answer(
        &self,
        content_type: &'static str,
        render: impl FnOnce(&mut Vec<u8>) -> anyhow::Result<()> + Send + 'static,
    ) -> Response {
        let permit = tokio::time::timeout(self.patience, Arc::clone(&self.bodies).acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            let busy = "too many answers are being sent to slow readers: try again\n";
            return answer(StatusCode::SERVICE_UNAVAILABLE, PLAIN, busy);
        };
        let turn = Arc::clone(&self.turn);
        let rendered = tokio::task::spawn_blocking(move || {
            let mut size = turn.lock().unwrap_or_else(PoisonError::into_inner);
            let mut bytes = Vec::with_capacity(*size + *size / 8);
            render(&mut bytes)?;
            *size = bytes.len();
            anyhow::Ok(Bytes::from_owner(Sending {
                bytes,
                _permit: permit,
            }))
        });
        match rendered
            .await
            .map_err(anyhow::Error::from)
            .and_then(|rendered| rendered)
        {
            Ok(bytes) => answer(StatusCode::OK, content_type, bytes),
            Err(error) => {
                error!(%error, content_type, "cannot render an answer");
                answer(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    PLAIN,
                    "cannot render: see the log\n",
                )
            }
        }
    }
}

/// A body that gives its place back once its last byte is sent.
struct Sending {
    bytes: Vec<u8>,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Sending {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests;
