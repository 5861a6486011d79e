//! For any bytes from a client, the server answers with one of its statuses or hangs up, and requires the token.

#![no_main]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use abgauge::board::Board;
use abgauge::clock::Clock;
use abgauge::settings;
use abgauge_core::metrics::Ranking;
use abgauge::serve::secured::Secured;
use abgauge::serve::{About, Exporter, http};
use abgauge::telemetry::Telemetry;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// SHA-256 of `0123456789abcdef0123456789abcdef`.
const HASH: &str = "3eb1bd439947eb762998e566ccc2e099c791118b2f40579cc4f7da2b5061b7f9";
const TOKEN: &[u8] = b"0123456789abcdef0123456789abcdef";

struct Server {
    runtime: Runtime,
    open: Router,
    guarded: Router,
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let settings = [("KAFKA__BROKERS", "a:1"), ("HTTP__BEARER_TOKENS", HASH)];
    let settings = settings.map(|(name, value)| (format!("ABGAUGE_{name}"), value.to_owned()));
    let config = settings::load(None, settings.into_iter()).expect("sound");
    let telemetry = Arc::new(Telemetry::new("served", "clicks", "0"));
    telemetry.set_waiting_for(vec![]);
    let ranking = Ranking::new(&config.measures);
    let exporter = Arc::new(Exporter {
        telemetry: Arc::clone(&telemetry),
        source: Arc::new(Board::new(&config, &ranking)),
        global: None,
        looks: Arc::default(),
        ranking,
        windows: config.windows.clone(),
        k: config.measures.ks.clone(),
        controls: config.experiment_controls(),
        experiments: BTreeMap::new(),
        about: About::default(),
        export: config.export.clone(),
        settle_after_ms: 0,
        started_ms: 0,
    });
    let open = http::router(exporter, &config.http, CancellationToken::new());
    let secured = Secured::open(&config.http, &Clock::system(), telemetry).expect("no file is named");
    Server {
        runtime: Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime"),
        guarded: secured.guard(open.clone()),
        open,
    }
});

/// Returns the complete answer to these bytes.
async fn answer(router: Router, input: &[u8]) -> Vec<u8> {
    let (mut client, server) = tokio::io::duplex(1 << 20);
    let connection = http1::Builder::new()
        .max_buf_size(32 * 1024)
        .serve_connection(TokioIo::new(server), TowerToHyperService::new(router));
    let talk = async {
        // The server may hang up before it has read everything.
        let _ = client.write_all(input).await;
        let _ = client.shutdown().await;
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        answer
    };
    let (_, answer) = tokio::join!(connection, talk);
    answer
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((first, input)) = input.split_first() else {
        return;
    };
    let is_open = first & 1 == 0;
    let router = if is_open { &SERVER.open } else { &SERVER.guarded };
    let answer = SERVER.runtime.block_on(answer(router.clone(), input));
    if answer.is_empty() {
        return;
    }
    let status = answer.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5));
    let status = status.map(|status| String::from_utf8_lossy(status).into_owned());
    let known = ["200", "400", "401", "404", "405", "414", "421", "431", "503"];
    assert!(
        status.as_deref().is_some_and(|status| known.contains(&status)),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    let has_token = input.windows(TOKEN.len()).any(|part| part == TOKEN);
    let tells = answer.windows(8).any(|part| part == b"abgauge_");
    assert!(
        is_open || has_token || !tells,
        "{}",
        String::from_utf8_lossy(&answer)
    );
});
