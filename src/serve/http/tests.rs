//! Tests of the routes.

use std::collections::HashMap;
use std::io::Read as _;

use abgauge_core::looks::Experiment;
use axum::body::BodyDataStream;
use axum::http::{Method, Request};
use futures_util::StreamExt as _;
use tower::ServiceExt as _;

use super::super::fixture::{self, HIT, arm, run};
use super::*;
use crate::board::snapshot::{ArmSnapshot, Snapshot, SnapshotSource, Timeline};
use crate::telemetry::Telemetry;

struct Board;

impl SnapshotSource for Board {
    fn snapshot_into(&self, timelines: Option<usize>, snapshot: &mut Snapshot) {
        let mut arm = arm("e", "a", [&[HIT]; 3], [&[]; 3]);
        arm.timelines = timelines.map(|window| {
            let timeline = crate::board::snapshot::Timeline {
                start_ms: 0,
                cell_ms: fixture::windows()[window].cell_ms(),
                cells: vec![],
            };
            [timeline.clone(), timeline]
        });
        *snapshot = fixture::snapshot(vec![arm]);
    }

    fn timelines(&self, _: usize, arms: &[&ArmSnapshot]) -> Vec<Option<[Timeline; 2]>> {
        arms.iter().map(|_| None).collect()
    }
}

struct Answer {
    status: u16,
    headers: HashMap<String, String>,
    body: String,
}

/// Answer to `method uri` of a daemon with these reasons for not being ready.
fn ask(method: Method, uri: &str, waiting_for: &[&str]) -> Answer {
    ask_packed(method, uri, waiting_for, None)
}

/// Answer to a client that accepts an encoding, decompressed.
fn ask_packed(method: Method, uri: &str, waiting_for: &[&str], accepted: Option<&str>) -> Answer {
    let telemetry = Arc::new(Telemetry::new("served", "clicks", "0.1.0"));
    telemetry.set_waiting_for(waiting_for.iter().map(|it| it.to_string()).collect());
    let exporter = Exporter {
        telemetry,
        ..fixture::exporter(Arc::new(Board))
    };
    let request = Request::builder().method(method).uri(uri);
    let request = match accepted {
        Some(accepted) => request.header("accept-encoding", accepted),
        None => request,
    };
    send(exporter, request.body(Body::empty()).unwrap())
}

fn send(exporter: Exporter, request: Request<Body>) -> Answer {
    send_to(exporter, &fixture::http(64), request)
}

fn send_to(exporter: Exporter, http: &settings::Http, request: Request<Body>) -> Answer {
    let router = router(Arc::new(exporter), http, CancellationToken::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let response = router.oneshot(request).await.unwrap();
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        let headers: HashMap<String, String> = headers.collect();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX)
            .await
            .unwrap();
        let mut text = String::new();
        match headers.get("content-encoding").map(String::as_str) {
            Some("gzip") if !body.is_empty() => {
                flate2::read::GzDecoder::new(&*body)
                    .read_to_string(&mut text)
                    .unwrap();
            }
            _ => text = String::from_utf8(body.to_vec()).unwrap(),
        }
        Answer {
            status,
            headers,
            body: text,
        }
    })
}

#[test]
fn metrics_are_served_in_the_text_format() {
    let answer = ask(Method::GET, "/metrics", &[]);
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.headers["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    assert!(answer.body.contains("\nabgauge_ready 1\n"));
    assert!(answer.body.contains("\nabgauge_hit_ratio{experiment=\"e\""));
}

#[test]
fn only_telemetry_is_served_until_first_ready() {
    let answer = ask(Method::GET, "/metrics", &["the broker"]);
    assert!(answer.body.contains("\nabgauge_ready 0\n"));
    assert!(!answer.body.contains("abgauge_hit_ratio"));
    let answer = ask(Method::GET, "/api/v1/experiments", &["the broker"]);
    assert!(answer.body.contains(r#""experiments":{}"#), "{}", answer.body);
    assert!(
        answer.body.contains(r#""waiting_for":["the broker"]"#),
        "{}",
        answer.body
    );
}

#[test]
fn readiness_lists_its_pending_conditions() {
    let waiting = ask(
        Method::GET,
        "/readyz",
        &["partition 3: 12 records behind", "the broker"],
    );
    assert_eq!(
        (waiting.status, &*waiting.body),
        (503, "partition 3: 12 records behind\nthe broker\n")
    );
    let ready = ask(Method::GET, "/readyz", &[]);
    assert_eq!((ready.status, &*ready.body), (200, "ready"));
    let alive = ask(Method::GET, "/healthz", &["the broker"]);
    assert_eq!((alive.status, &*alive.body), (200, "ok"));
}

#[test]
fn only_configured_origins_may_frame_the_page() {
    let http = settings::Http {
        frame_ancestors: vec![
            "https://wiki.example".to_owned(),
            "https://*.corp.example:8443".to_owned(),
        ],
        ..fixture::http(64)
    };
    for path in ["/", "/runbooks"] {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let answer = send_to(fixture::exporter(Arc::new(Board)), &http, request);
        let policy = &answer.headers["content-security-policy"];
        let (_, ancestors) = policy.split_once("; frame-ancestors ").unwrap();
        assert_eq!(ancestors, "https://wiki.example https://*.corp.example:8443");
    }
}

#[test]
fn the_page_cannot_load_external_resources() {
    for (path, content_type) in [
        ("/", "text/html"),
        ("/page/page.css", "text/css"),
        ("/page/page.js", "text/javascript"),
        ("/page/words.js", "text/javascript"),
        ("/runbooks", "text/html"),
    ] {
        let answer = ask(Method::GET, path, &[]);
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.headers["content-type"],
            format!("{content_type}; charset=utf-8")
        );
        assert_eq!(
            answer.headers["content-security-policy"],
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'"
        );
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers["referrer-policy"], "no-referrer");
        assert_eq!(answer.headers["cache-control"], "no-cache");
    }
}

#[test]
fn timelines_are_requested_by_window_name() {
    let asked = ask(Method::GET, "/api/v1/experiments?timelines=1h", &[]);
    assert_eq!(asked.headers["content-type"], "application/json");
    assert!(
        asked.body.contains(r#""timeline":{"start_ms":0,"cell_ms":60000"#),
        "{}",
        asked.body
    );
    let plain = ask(Method::GET, "/api/v1/experiments", &[]);
    assert!(!plain.body.contains("timeline\""), "{}", plain.body);
    for unknown in ["total", "", "7m"] {
        let refused = ask(
            Method::GET,
            &format!("/api/v1/experiments?timelines={unknown}"),
            &[],
        );
        assert_eq!(refused.status, 400);
        assert!(refused.body.contains("5m, 1h"), "{}", refused.body);
    }
}

#[test]
fn parts_are_shown_on_request() {
    let of = |query: &str| ask(Method::GET, &format!("/api/v1/experiments{query}"), &[]);
    // Profiles always name the parts.
    let has_parts = |body: &str| body.contains(r#""parts":{"hit_rate@1":{"numerator":0,"#);
    assert!(has_parts(&of("?parts=true").body));
    for without in ["", "?parts=false"] {
        let shown = of(without);
        assert_eq!((shown.status, has_parts(&shown.body)), (200, false));
    }
    let refused = of("?parts=1");
    assert_eq!(
        (refused.status, &*refused.body),
        (400, "`parts` is true or false\n")
    );
}

#[test]
fn timelines_require_a_measured_profile() {
    let of = |name: &str| {
        let path = format!("/api/v1/experiments?timelines=1h&profile={name}");
        ask(Method::GET, &path, &[])
    };
    assert_eq!(of("default").status, 200);
    let refused = of("ranx");
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("one of: default"), "{}", refused.body);
}

#[test]
fn head_has_the_headers_of_get_and_no_body() {
    let get = ask(Method::GET, "/healthz", &[]);
    let head = ask(Method::HEAD, "/healthz", &[]);
    assert_eq!((head.status, &*head.body), (200, ""));
    assert_eq!(head.headers["content-length"], get.body.len().to_string());
    assert_eq!(head.headers["content-type"], get.headers["content-type"]);
    assert_eq!(ask(Method::HEAD, "/metrics", &[]).status, 200);
}

#[test]
fn other_methods_and_paths_are_refused_with_a_message() {
    for path in [
        "/metrics",
        "/",
        "/api/v1/experiments",
        "/api/v1/view/stream",
        "/api/v1/view/charts",
        "/healthz",
        "/runbooks",
    ] {
        let refused = ask(Method::POST, path, &[]);
        assert_eq!(refused.status, 405);
        assert_eq!(refused.headers["allow"], "GET,HEAD");
    }
    for missing in ["/metric", "/page/", "/page/nothing.js", "/page/..%2Fhttp.rs"] {
        let missing = ask(Method::GET, missing, &[]);
        assert_eq!(missing.status, 404);
        for path in [
            "/metrics",
            "/api/v1/experiments",
            "/api/v1/verdict",
            "/api/v1/view",
            "/healthz",
            "/readyz",
            "/runbooks",
        ] {
            assert!(missing.body.contains(path));
        }
    }
}

#[test]
fn a_scope_can_be_requested_only_if_it_is_shown() {
    let own = ask(Method::GET, "/api/v1/experiments?scope=own", &[]);
    assert_eq!(own.status, 200);
    assert!(!own.body.contains(r#""scope""#), "there is nothing to choose");
    let unknown = ask(Method::GET, "/api/v1/experiments?scope=global", &[]);
    assert_eq!(
        (unknown.status, &*unknown.body),
        (400, "no such scope is shown; `scope` is one of: own\n")
    );
    let (clock, _hand) = crate::clock::Clock::simulated(0);
    let exporter = Exporter {
        global: Some(crate::serve::GlobalScope {
            source: Arc::new(Board),
            publications: crate::store::publications::Publications::new(15_000, clock),
        }),
        ..fixture::exporter(Arc::new(Board))
    };
    let request = Request::builder().uri("/api/v1/experiments?scope=global");
    let global = send(exporter, request.body(Body::empty()).unwrap());
    let global: serde_json::Value = serde_json::from_str(&global.body).unwrap();
    assert_eq!(global["scope"], "global");
    let withheld = &global["global"]["withheld"];
    assert_eq!(withheld, "the number of partitions is not known yet");
}

/// Answer of a daemon that compares the arms of experiment `e`.
fn ask_for_verdict(method: Method, query: &str, body: impl Into<Body>) -> Answer {
    let experiment = Experiment {
        settings: Some(fixture::looks::settings()),
        ..Experiment::default()
    };
    let exporter = Exporter {
        experiments: [("e".to_owned(), experiment)].into(),
        looks: fixture::looks::published("e", fixture::looks::compared()),
        ..fixture::exporter(Arc::new(Board))
    };
    let uri = format!("/api/v1/verdict?{query}");
    let request = Request::builder().method(method).uri(uri);
    send(exporter, request.body(body.into()).unwrap())
}

#[test]
fn a_verdict_is_served_to_get_and_to_post_with_any_body() {
    let got = ask_for_verdict(Method::GET, "experiment=e", "");
    assert_eq!(
        (got.status, &*got.headers["content-type"]),
        (200, "application/json")
    );
    assert!(got.body.contains(r#""result":"hold""#), "{}", got.body);
    for body in [Vec::new(), b"{\"name\": \"canary\"".to_vec(), vec![b'x'; 1 << 20]] {
        let posted = ask_for_verdict(Method::POST, "experiment=e", body);
        assert_eq!((posted.status, &posted.body), (200, &got.body));
    }
    let head = ask_for_verdict(Method::HEAD, "experiment=e&gate=promote", "");
    assert_eq!((head.status, &*head.body), (409, ""));
    let closed = ask_for_verdict(Method::POST, "experiment=e&gate=promote", "{}");
    assert_eq!((closed.status, closed.body), (409, got.body));
}

#[test]
fn a_missing_verdict_gets_a_message_and_no_result() {
    let unknown = ask_for_verdict(Method::GET, "experiment=other", "");
    assert_eq!(
        (unknown.status, &*unknown.headers["content-type"]),
        (404, "text/plain; charset=utf-8")
    );
    assert!(unknown.body.contains("`e`") && unknown.body.ends_with('\n'));
    let twice = ask_for_verdict(Method::GET, "experiment=e&experiment=e", "");
    assert_eq!(twice.status, 400);
    let refused = ask_for_verdict(Method::PUT, "experiment=e", "");
    assert_eq!(
        (refused.status, &*refused.headers["allow"]),
        (405, "GET,HEAD,POST")
    );
    assert!(refused.body.contains("GET, HEAD and POST"), "{}", refused.body);
}

#[test]
fn an_answer_is_compressed_on_request_without_changing_its_text() {
    for uri in ["/metrics", "/api/v1/experiments?timelines=1h", "/api/v1/view"] {
        let plain = ask(Method::GET, uri, &[]);
        assert_eq!(plain.headers.get("content-encoding"), None);
        assert_eq!(plain.headers["vary"], "accept-encoding");
        let packed = ask_packed(Method::GET, uri, &[], Some("gzip, deflate"));
        assert_eq!(packed.headers["content-encoding"], "gzip");
        assert_eq!(packed.headers["vary"], "accept-encoding");
        assert_eq!(packed.headers["content-type"], plain.headers["content-type"]);
        assert_eq!(without_process(&packed.body), without_process(&plain.body));
        let refused = ask_packed(Method::GET, uri, &[], Some("gzip;q=0, identity"));
        assert_eq!(refused.headers.get("content-encoding"), None);
        assert_eq!(without_process(&refused.body), without_process(&plain.body));
    }
}

/// Memory and processor use of this process change from moment to moment.
fn without_process(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines.filter(|line| !line.contains("process_")).collect()
}

#[test]
fn head_has_the_headers_of_a_compressed_answer() {
    let head = ask_packed(Method::HEAD, "/metrics", &[], Some("gzip"));
    assert_eq!((head.status, &*head.body), (200, ""));
    assert_eq!(head.headers["content-encoding"], "gzip");
    let got = ask_packed(Method::GET, "/healthz", &[], Some("gzip"));
    assert_eq!(
        got.headers.get("content-encoding"),
        None,
        "two bytes are not packed"
    );
}

/// Router of a daemon that is ready, with this bound on connections.
fn ready_router(max_connections: usize, shutdown: CancellationToken) -> Router {
    let exporter = Arc::new(fixture::exporter(Arc::new(Board)));
    router(exporter, &fixture::http(max_connections), shutdown)
}

async fn follow(router: &Router, uri: &str) -> Response {
    let request = Request::builder().uri(uri).body(Body::empty()).unwrap();
    router.clone().oneshot(request).await.unwrap()
}

async fn next(events: &mut BodyDataStream) -> Option<String> {
    let event = events.next().await?.unwrap();
    Some(String::from_utf8(event.to_vec()).unwrap())
}

#[test]
fn a_stream_sends_the_view_then_beats_and_ends_with_the_daemon() {
    run(async {
        let shutdown = CancellationToken::new();
        let router = ready_router(64, shutdown.clone());
        let response = follow(&router, "/api/v1/view/stream?window=1h").await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        let mut events = response.into_body().into_data_stream();
        let mut first = next(&mut events).await.unwrap();
        while first.starts_with("event: beat") {
            first = next(&mut events).await.unwrap();
        }
        let json = first
            .strip_prefix("data: ")
            .and_then(|rest| rest.strip_suffix("\n\n"));
        let json: serde_json::Value = serde_json::from_str(json.unwrap()).unwrap();
        assert_eq!(json["chosen"]["window"], "1h");
        // Rounds are two seconds apart, keep-alives a third of the connection's timeout.
        assert_eq!(next(&mut events).await.unwrap(), "event: beat\ndata: 1\n\n");
        shutdown.cancel();
        while next(&mut events).await.is_some() {}
    });
}

#[test]
fn a_compressed_stream_is_valid_gzip_to_its_end() {
    run(async {
        let shutdown = CancellationToken::new();
        let router = ready_router(64, shutdown.clone());
        let request = Request::builder().uri("/api/v1/view/stream");
        let request = request.header("accept-encoding", "gzip, deflate, br");
        let request = request.body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["content-encoding"], "gzip");
        assert_eq!(response.headers()["vary"], "accept-encoding");
        let mut events = response.into_body().into_data_stream();
        let mut sent = Vec::new();
        let unpacked = |sent: &[u8]| {
            let mut text = Vec::new();
            let whole = flate2::read::GzDecoder::new(sent).read_to_end(&mut text);
            (String::from_utf8(text).unwrap(), whole.is_ok())
        };
        let is_there = |text: &str| ["data: {", "event: beat\n"].iter().all(|it| text.contains(it));
        while !is_there(&unpacked(&sent).0) {
            sent.extend_from_slice(&events.next().await.unwrap().unwrap());
        }
        assert!(!unpacked(&sent).1, "it goes on");
        shutdown.cancel();
        while let Some(rest) = events.next().await {
            sent.extend_from_slice(&rest.unwrap());
        }
        assert!(unpacked(&sent).1, "it has an end");
    });
}

#[test]
fn streams_take_at_most_half_of_the_connections() {
    run(async {
        let router = ready_router(5, CancellationToken::new());
        let one = follow(&router, "/api/v1/view/stream").await;
        let two = follow(&router, "/api/v1/view/stream").await;
        assert_eq!((one.status().as_u16(), two.status().as_u16()), (200, 200));
        let third = follow(&router, "/api/v1/view/stream").await;
        assert_eq!(third.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(follow(&router, "/api/v1/view").await.status(), StatusCode::OK);
        drop(one);
        let instead = follow(&router, "/api/v1/view/stream").await;
        assert_eq!(instead.status(), StatusCode::OK);
    });
}
