//! Answers in flight, whose end is reported to their exchange.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header;
use axum::response::Response;
use http_body::{Frame, SizeHint};

use super::super::shared_body::SharedBody;
use super::exchange::Exchange;

/// Content type of an answer that does not end: server-sent events.
const EVENTS: &[u8] = b"text/event-stream";

/// Wraps an answer so that its exchange follows it.
pub(super) fn watched(mut answer: Response, exchange: &Arc<Exchange>) -> Response {
    if let Some(shared_body) = answer.extensions_mut().remove::<Arc<SharedBody>>() {
        exchange.borrows(shared_body);
    }
    let content_type = answer.headers().get(header::CONTENT_TYPE);
    if content_type.is_some_and(|value| value.as_bytes().starts_with(EVENTS)) {
        exchange.streams();
    }
    let exchange = Arc::clone(exchange);
    answer.map(|body| Body::new(WatchedBody { body, exchange }))
}

struct WatchedBody {
    body: Body,
    exchange: Arc<Exchange>,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for WatchedBody {
    /// Reports the end: the server drops a body once it has taken all of it.
    fn drop(&mut self) {
        self.exchange.is_whole();
    }
}
