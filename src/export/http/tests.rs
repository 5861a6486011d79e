//! Claims about the routes.

use std::collections::HashMap;
use std::num::NonZeroU32;

use axum::http::{Method, Request};
use tower::ServiceExt as _;

use super::super::fixture::{self, HIT, arm};
use super::*;
use crate::snapshot::{Snapshot, Source};
use crate::telemetry::Telemetry;

struct Board;

impl Source for Board {
    fn snapshot_into(&self, timelines: Option<usize>, snapshot: &mut Snapshot) {
        let mut arm = arm("e", "a", [&[HIT]; 3], [&[]; 3]);
        arm.timelines = timelines.map(|window| {
            let timeline = crate::snapshot::Timeline {
                start_ms: 0,
                cell_ms: fixture::windows()[window].cell_ms(),
                cells: vec![],
            };
            [timeline.clone(), timeline]
        });
        *snapshot = fixture::snapshot(vec![arm]);
    }
}

struct Answer {
    status: u16,
    headers: HashMap<String, String>,
    body: String,
}

/// Answers to `method uri` of a daemon that waits for this.
fn ask(method: Method, uri: &str, waiting_for: &[&str]) -> Answer {
    let telemetry = Arc::new(Telemetry::new("served", "clicks", "0.1.0"));
    telemetry.set_waiting_for(waiting_for.iter().map(|it| it.to_string()).collect());
    let router = router(Arc::new(Exporter {
        telemetry,
        source: Arc::new(Board),
        ranking: fixture::ranking(),
        windows: fixture::windows(),
        k: vec![NonZeroU32::MIN],
        export: fixture::export(),
        settle_after_ms: 1_920_000,
    }));
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .body(Body::empty())
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let response = router.oneshot(request).await.unwrap();
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        Answer {
            status: response.status().as_u16(),
            headers: headers.collect(),
            body: {
                let body = axum::body::to_bytes(response.into_body(), usize::MAX)
                    .await
                    .unwrap();
                String::from_utf8(body.to_vec()).unwrap()
            },
        }
    })
}

#[test]
fn metrics_come_in_the_text_format() {
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
fn until_first_ready_only_telemetry_is_shown() {
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
fn readiness_names_what_it_waits_for() {
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
fn the_page_may_load_nothing_from_elsewhere() {
    for (path, content_type) in [
        ("/", "text/html"),
        ("/page.css", "text/css"),
        ("/page.js", "text/javascript"),
    ] {
        let answer = ask(Method::GET, path, &[]);
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.headers["content-type"],
            format!("{content_type}; charset=utf-8")
        );
        assert_eq!(answer.headers["content-security-policy"], CONTENT_SECURITY_POLICY);
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers["referrer-policy"], "no-referrer");
        assert_eq!(answer.headers["cache-control"], "no-cache");
    }
}

#[test]
fn time_lines_are_asked_for_by_the_name_of_a_window() {
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
fn time_lines_are_of_a_profile_that_is_measured() {
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
fn other_methods_and_paths_are_refused_in_words() {
    for path in ["/metrics", "/", "/api/v1/experiments", "/healthz"] {
        let refused = ask(Method::POST, path, &[]);
        assert_eq!(refused.status, 405);
        assert_eq!(refused.headers["allow"], "GET,HEAD");
    }
    let missing = ask(Method::GET, "/metric", &[]);
    assert_eq!(missing.status, 404);
    for path in ["/metrics", "/api/v1/experiments", "/healthz", "/readyz"] {
        assert!(missing.body.contains(path));
    }
}

#[test]
fn at_most_a_few_bodies_wait_for_their_readers() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let renderer = Renderer {
            patience: Duration::from_millis(50),
            ..Renderer::default()
        };
        let render = |out: &mut Vec<u8>| {
            out.push(b'x');
            Ok(())
        };
        let mut unread = Vec::new();
        for _ in 0..MAX_BODIES {
            unread.push(renderer.answer(PLAIN, render).await);
            assert_eq!(unread.last().unwrap().status(), 200);
        }
        assert_eq!(renderer.answer(PLAIN, render).await.status(), 503);
        unread.pop();
        assert_eq!(renderer.answer(PLAIN, render).await.status(), 200);
    });
}

#[test]
fn a_failed_rendering_is_an_error_and_not_the_last() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let renderer = Renderer::default();
        for _ in 0..=MAX_BODIES {
            let failed = renderer.answer(PLAIN, |_| anyhow::bail!("out of order")).await;
            assert_eq!(failed.status(), 500);
        }
        let panicked = renderer.answer(PLAIN, |_| panic!("out of order")).await;
        assert_eq!(panicked.status(), 500);
        assert_eq!(renderer.answer(PLAIN, |_| Ok(())).await.status(), 200);
    });
}
