//! Answers on their way: the end of each is told to its exchange, and those that do not end are bounded.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::super::loan::Loan;
use super::exchange::Exchange;

/// The content type of an answer that does not end: server-sent events.
const EVENTS: &[u8] = b"text/event-stream";

/// The answer, watched. One that does not end takes one of `streams` for as long as it lasts; where none is left it is
/// refused, so that scrapes keep their share of the connections.
pub(super) fn watched(mut answer: Response, exchange: &Arc<Exchange>, streams: &Arc<Semaphore>) -> Response {
    if let Some(loan) = answer.extensions_mut().remove::<Arc<Loan>>() {
        exchange.borrows(loan);
    }
    let content_type = answer.headers().get(header::CONTENT_TYPE);
    if !content_type.is_some_and(|value| value.as_bytes().starts_with(EVENTS)) {
        return answer.map(|body| Body::new(Watched::new(body, exchange, None)));
    }
    match Arc::clone(streams).try_acquire_owned() {
        Ok(permit) => {
            exchange.streams();
            answer.map(|body| Body::new(Watched::new(body, exchange, Some(permit))))
        }
        Err(_) => {
            let mut refusal = (StatusCode::SERVICE_UNAVAILABLE, TOO_MANY).into_response();
            let headers = refusal.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("30"));
            refusal.map(|body| Body::new(Watched::new(body, exchange, None)))
        }
    }
}

const TOO_MANY: &str =
    "too many pages are open: half of http.max_connections are for answers that do not end\n";

struct Watched {
    body: Body,
    exchange: Arc<Exchange>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Watched {
    fn new(body: Body, exchange: &Arc<Exchange>, permit: Option<OwnedSemaphorePermit>) -> Watched {
        Watched {
            body,
            exchange: Arc::clone(exchange),
            _permit: permit,
        }
    }
}

impl HttpBody for Watched {
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

impl Drop for Watched {
    /// The server lets go of a body once it has taken all of it.
    fn drop(&mut self) {
        self.exchange.is_whole();
    }
}
