//! Routes: `/metrics`, `/healthz`, `/readyz`, the live page, its event stream, the runbooks, and the JSON API.

mod assets;
mod events;
mod runbooks;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::assets::{Assets, PAGE};
use self::events::Events;
use super::api::ApiChoice;
use super::encoding::{Encoding, gzip};
use super::feed::ViewFeed;
use super::renderer::{BodyReader, Failed, Renderer};
use super::view::{self, ViewParameters, charts};
use super::{Exporter, Scope};
use crate::board::snapshot::Snapshots;
use crate::settings;
use crate::telemetry::Severity;

/// Exact content type that Prometheus expects.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

const NOT_FOUND: &str = "not found; available are / (live page), /metrics, /api/v1/experiments, /api/v1/verdict, /api/v1/view, /healthz, /readyz and /runbooks\n";

/// Maximum number of pages with an event stream, but at most half of the connections. The rest are for scrapes.
const MAX_STREAMS: usize = 32;
/// Interval of keep-alives on a stream. Shorter if connections time out sooner.
const BEAT: Duration = Duration::from_secs(5);
/// Time limit for rendering a single view.
const PATIENCE: Duration = Duration::from_secs(8);

/// Builds all routes. They accept GET and HEAD only, except for verdicts. Streams end at `shutdown`.
pub fn router(exporter: Arc<Exporter>, http: &settings::Http, shutdown: CancellationToken) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/api/v1/experiments", get(experiments))
        .route("/api/v1/verdict", verdict::route())
        .route("/api/v1/view", get(view))
        .route("/api/v1/view/stream", get(view_stream))
        .route("/api/v1/view/charts", get(view_charts))
        .route("/healthz", get(|| async { answer(StatusCode::OK, PLAIN, "ok") }))
        .route("/readyz", get(ready))
        .route("/", get(page))
        .route("/page/{part}", get(page_part))
        .route("/runbooks", get(runbooks))
        .fallback(|| async { answer(StatusCode::NOT_FOUND, PLAIN, NOT_FOUND) })
        .method_not_allowed_fallback(|| async {
            answer(
                StatusCode::METHOD_NOT_ALLOWED,
                PLAIN,
                "only GET and HEAD are answered here\n",
            )
        })
        .with_state(Arc::new(Routes {
            feed: ViewFeed::new(Arc::clone(&exporter)),
            exporter,
            page: Assets::new(&http.frame_ancestors),
            metrics: Renderer::new(),
            experiments: Renderer::new(),
            charts: Renderer::new(),
            // Streams stay open, so they may not take the connections of all other requests.
            streams: Arc::new(Semaphore::new(MAX_STREAMS.min(http.max_connections / 2))),
            beat: BEAT.min(http.timeout / 3),
            shutdown,
        }))
}

struct Routes {
    exporter: Arc<Exporter>,
    metrics: Renderer<()>,
    /// Renderer by scope, by index of the window with time lines, and by their profile.
    experiments: Renderer<ApiChoice>,
    charts: Renderer<charts::ChartQuery>,
    feed: ViewFeed,
    page: Assets,
    /// One permit per stream.
    streams: Arc<Semaphore>,
    beat: Duration,
    shutdown: CancellationToken,
}

async fn metrics(State(routes): State<Arc<Routes>>, headers: HeaderMap) -> Response {
    let exporter = Arc::clone(&routes.exporter);
    let render = move |snapshots: &mut Snapshots, out: &mut Vec<u8>| exporter.metrics(snapshots, out);
    let encoding = Encoding::wanted(&headers);
    let body = routes.metrics.body((), encoding, render).await;
    body_reader(TEXT_FORMAT, encoding, body)
}

#[derive(Deserialize)]
struct TimelineQuery {
    /// Name of a sliding window.
    timelines: Option<String>,
    /// Profile of the time lines. The first one by default.
    profile: Option<String>,
    /// Scope of the partitions. This instance's by default.
    scope: Option<String>,
    /// `true` for the numerator and denominator of each metric of a view.
    parts: Option<String>,
}

async fn experiments(
    State(routes): State<Arc<Routes>>,
    Query(wanted): Query<TimelineQuery>,
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
                let message = format!("this window has no time lines; `timelines` is one of: {known}\n");
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
    let mut scopes = routes.exporter.scopes();
    let scope = wanted.scope.map_or(Some(Scope::Own), |name| {
        scopes.iter().copied().find(|known| known.name() == name)
    });
    let Some(scope) = scope else {
        // Their order depends on the partitions held at the moment, which must not change the message.
        scopes.sort_by_key(|scope| *scope != Scope::Own);
        let names: Vec<_> = scopes.into_iter().map(Scope::name).collect();
        let message = format!(
            "no such scope is shown; `scope` is one of: {}\n",
            names.join(", ")
        );
        return answer(StatusCode::BAD_REQUEST, PLAIN, message);
    };
    let has_parts = match wanted.parts.as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return answer(StatusCode::BAD_REQUEST, PLAIN, "`parts` is true or false\n"),
    };
    let choice = ApiChoice {
        scope,
        timelines,
        lines_of,
        has_parts,
    };
    let exporter = Arc::clone(&routes.exporter);
    let render =
        move |snapshots: &mut Snapshots, out: &mut Vec<u8>| exporter.experiments(choice, snapshots, out);
    let encoding = Encoding::wanted(&headers);
    let body = routes.experiments.body(choice, encoding, render).await;
    body_reader("application/json", encoding, body)
}

async fn ready(State(routes): State<Arc<Routes>>) -> Response {
    let telemetry = &routes.exporter.telemetry;
    let waiting_for = telemetry.waiting_for();
    if waiting_for.is_empty() {
        let warnings = telemetry.warnings();
        let critical = warnings
            .iter()
            .filter(|warning| warning.severity == Severity::Critical);
        let lines = critical.map(|warning| format!("\n{}", warning.message));
        return answer(
            StatusCode::OK,
            PLAIN,
            "ready".to_owned() + &lines.collect::<String>(),
        );
    }
    answer(
        StatusCode::SERVICE_UNAVAILABLE,
        PLAIN,
        waiting_for.join("\n") + "\n",
    )
}

/// Answers with the page's data, once.
async fn view(
    State(routes): State<Arc<Routes>>,
    Query(wanted): Query<ViewParameters>,
    headers: HeaderMap,
) -> Response {
    let mut watcher = routes.feed.watch(&view::ViewQuery::of(wanted, &routes.exporter));
    // A view that is watched already is there at once. A new one waits for an early round of the feed.
    let rendered_view = tokio::time::timeout(PATIENCE, watcher.wait_for(Option::is_some)).await;
    let body = match rendered_view.ok().and_then(Result::ok).as_deref() {
        Some(Some(Ok(rendering))) => Ok(rendering.json()),
        Some(_) => Err(Failed),
        None => {
            let busy = "the view was not rendered in time: try again\n";
            return answer(StatusCode::SERVICE_UNAVAILABLE, PLAIN, busy);
        }
    };
    let encoding = Encoding::wanted(&headers);
    let body = body.map(|json| match encoding {
        Encoding::Gzip => gzip(&json, Vec::new()).into(),
        Encoding::Identity => json,
    });
    rendered("application/json", encoding, body)
}

/// Answers with the page's data as server-sent events.
async fn view_stream(
    State(routes): State<Arc<Routes>>,
    Query(wanted): Query<ViewParameters>,
    headers: HeaderMap,
) -> Response {
    // The stream owns the permit, so it is free again as soon as the page leaves.
    let Ok(permit) = Arc::clone(&routes.streams).try_acquire_owned() else {
        let full = "too many pages follow the stream already: poll /api/v1/view instead\n";
        return answer(StatusCode::SERVICE_UNAVAILABLE, PLAIN, full);
    };
    let watcher = routes.feed.watch(&view::ViewQuery::of(wanted, &routes.exporter));
    let encoding = Encoding::wanted(&headers);
    let events = Events::new(watcher, encoding, routes.beat, routes.shutdown.clone(), permit);
    let mut response = answer(StatusCode::OK, "text/event-stream", events.into_body());
    // nginx buffers responses unless this header forbids it.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    let headers = response.headers_mut();
    headers.insert(unbuffered, HeaderValue::from_static("no"));
    set_encoding(headers, encoding);
    response
}

/// Answers with the data for an experiment's charts.
async fn view_charts(
    State(routes): State<Arc<Routes>>,
    Query(wanted): Query<charts::ChartParameters>,
    headers: HeaderMap,
) -> Response {
    let query = match charts::ChartQuery::of(wanted, &routes.exporter) {
        Ok(query) => query,
        Err(message) => return answer(StatusCode::BAD_REQUEST, PLAIN, message + "\n"),
    };
    let exporter = Arc::clone(&routes.exporter);
    let asked = query.clone();
    let render = move |_: &mut Snapshots, out: &mut Vec<u8>| charts::render(&exporter, &asked, out);
    let encoding = Encoding::wanted(&headers);
    let body = routes.charts.body(query, encoding, render).await;
    body_reader("application/json", encoding, body)
}

async fn page(State(routes): State<Arc<Routes>>, headers: HeaderMap) -> Response {
    routes.page.answer(PAGE, &headers)
}

async fn page_part(
    State(routes): State<Arc<Routes>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    routes.page.answer(&name, &headers)
}

async fn runbooks(State(routes): State<Arc<Routes>>, headers: HeaderMap) -> Response {
    routes.page.runbooks(&headers)
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

/// Builds a response with a shared body. The server watches how fast it is read.
fn body_reader(content_type: &'static str, encoding: Encoding, body: Result<BodyReader, Failed>) -> Response {
    match body {
        Err(failed) => rendered(content_type, encoding, Err(failed)),
        Ok(BodyReader { bytes, shared_body }) => {
            let mut response = rendered(content_type, encoding, Ok(bytes));
            response.extensions_mut().insert(shared_body);
            response
        }
    }
}

/// Builds a response with a rendered body, or an error if rendering failed.
fn rendered(content_type: &'static str, encoding: Encoding, body: Result<Bytes, Failed>) -> Response {
    let Ok(body) = body else {
        let failed = "cannot render: see the log\n";
        return answer(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, failed);
    };
    let mut response = answer(StatusCode::OK, content_type, body);
    set_encoding(response.headers_mut(), encoding);
    response
}

fn set_encoding(headers: &mut HeaderMap, encoding: Encoding) {
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if encoding == Encoding::Gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
}

#[cfg(test)]
mod tests;
