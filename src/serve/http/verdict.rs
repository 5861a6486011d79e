//! Route of verdicts. Rollout controllers use GET, or POST with a body that is ignored.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use futures_util::StreamExt as _;

use super::super::verdict::{VerdictParameters, VerdictRefusal, verdict};
use super::{PLAIN, Routes, answer};

/// Maximum number of body bytes that are read and discarded. If unread bytes remain, the client may lose the answer.
const MAX_BODY_BYTES: usize = 64 * 1024;

pub(super) fn route() -> MethodRouter<Arc<Routes>> {
    get(ask).post(ask_with_body).fallback(|| async {
        let only = "only GET, HEAD and POST are answered here\n";
        answer(StatusCode::METHOD_NOT_ALLOWED, PLAIN, only)
    })
}

async fn ask_with_body(routes: State<Arc<Routes>>, wanted: Query<VerdictParameters>, body: Body) -> Response {
    pass_over(body).await;
    ask(routes, wanted).await
}

async fn ask(State(routes): State<Arc<Routes>>, Query(wanted): Query<VerdictParameters>) -> Response {
    match verdict(&routes.exporter, &wanted) {
        Ok((status, json)) => answer(status, "application/json", json),
        Err(VerdictRefusal { status, message }) => answer(status, PLAIN, message + "\n"),
    }
}

async fn pass_over(body: Body) {
    let mut pieces = body.into_data_stream();
    let mut left = MAX_BODY_BYTES;
    while let Some(Ok(piece)) = pieces.next().await {
        match left.checked_sub(piece.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
