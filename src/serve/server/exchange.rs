//! State of a connection, and its deadline.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::super::shared_body::SharedBody;
use super::slots::{ConnectionSlot, WaitReason};
use crate::telemetry::HttpRefusal;

pub(super) struct Exchange {
    timeout: Duration,
    slot: ConnectionSlot,
    now: Mutex<ExchangeState>,
    /// Notified when a deadline is set.
    hurried: Notify,
    /// Notified when the loan changes or ends.
    borrowed: Notify,
}

struct ExchangeState {
    stage: Stage,
    /// `None` without a deadline.
    deadline: Option<Instant>,
    /// Set when the whole answer is handed over and little of it is still unsent.
    is_whole: bool,
    /// Set once it has had a complete request.
    has_asked: bool,
    /// Set while the client does not read what is sent.
    is_stuck: bool,
    /// Loan of the body in flight, if others share it.
    shared_body: Option<Arc<SharedBody>>,
}

/// Stage of an exchange.
///
/// ```text
/// Idle ──first byte──▶ Asking ──whole head──▶ Answering ──last byte sent──▶ Idle
///                                              │     ▲
///                                              ▼     │ its end
///                                             Streaming
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Accepted or between requests, without a byte of a request.
    Idle,
    /// Part of a request's head received.
    Asking,
    /// Whole head received, last byte of the answer not yet sent. `timeout` runs since the first byte of the request.
    Answering,
    /// Answer without an end in flight. It may last, but its client must keep up.
    Streaming,
}

impl Exchange {
    pub fn new(timeout: Duration, slot: ConnectionSlot) -> Exchange {
        Exchange {
            timeout,
            slot,
            now: Mutex::new(ExchangeState {
                stage: Stage::Idle,
                deadline: Some(Instant::now() + timeout),
                is_whole: false,
                has_asked: false,
                is_stuck: false,
                shared_body: None,
            }),
            hurried: Notify::new(),
            borrowed: Notify::new(),
        }
    }

    pub fn stage(&self) -> Stage {
        self.now().stage
    }

    /// Returns whether it is idle after an answer. Closing it then is not a refusal.
    pub fn is_between_requests(&self) -> bool {
        let now = self.now();
        now.stage == Stage::Idle && now.has_asked
    }

    /// Notes that a byte has arrived.
    fn received(&self) {
        let mut now = self.now();
        // Only the first byte sets the deadline, so a client that trickles its request does not extend it.
        if now.stage == Stage::Idle {
            now.stage = Stage::Asking;
            now.deadline = Some(self.deadline());
        }
    }

    /// Notes that the whole head of a request has arrived.
    pub fn asked(&self) {
        let mut now = self.now();
        if now.stage == Stage::Idle {
            // The request arrived together with the previous one, so its first byte was not seen on its own.
            now.deadline = Some(self.deadline());
        }
        now.stage = Stage::Answering;
        now.is_whole = false;
        now.has_asked = true;
        now.is_stuck = false;
        self.slot.keep();
    }

    /// Notes that the answer has a shared body.
    pub fn borrows(&self, shared_body: Arc<SharedBody>) {
        self.now().shared_body = Some(shared_body);
        self.borrowed.notify_one();
    }

    /// Notes that the next answer does not end.
    pub fn streams(&self) {
        let mut now = self.now();
        now.stage = Stage::Streaming;
        now.deadline = None;
    }

    /// Notes that the whole answer has been handed over.
    pub fn is_whole(&self) {
        let mut now = self.now();
        now.is_whole = true;
        if now.stage == Stage::Streaming {
            now.stage = Stage::Answering;
            self.hurry(&mut now);
        }
    }

    /// Notes that the client does not take what is sent. Another connection may need the slot more.
    fn stuck(&self) {
        let mut now = self.now();
        if !matches!(now.stage, Stage::Answering | Stage::Streaming) {
            return;
        }
        if !std::mem::replace(&mut now.is_stuck, true) {
            self.slot.wait(WaitReason::Reader);
        }
        // An endless answer has no deadline until its client falls behind.
        if now.stage == Stage::Streaming && now.deadline.is_none() {
            self.hurry(&mut now);
        }
    }

    /// Notes that the client has taken part of its answer.
    fn sent(&self) {
        let mut now = self.now();
        self.continues(&mut now);
        if let Some(shared_body) = &now.shared_body {
            shared_body.read();
        }
    }

    fn continues(&self, now: &mut ExchangeState) {
        if std::mem::take(&mut now.is_stuck) {
            self.slot.keep();
        }
    }

    /// Notes that nothing is left to be sent.
    fn flushed(&self) {
        let mut now = self.now();
        self.continues(&mut now);
        match now.stage {
            // The client has caught up, so the stream may last.
            Stage::Streaming => now.deadline = None,
            // Handed over and flushed, so the connection is free for its next request.
            Stage::Answering if now.is_whole => {
                now.stage = Stage::Idle;
                now.deadline = Some(self.deadline());
                if now.shared_body.take().is_some() {
                    self.borrowed.notify_one();
                }
                self.slot.wait(WaitReason::Request);
            }
            _ => {}
        }
    }

    /// Waits until it must be closed, because its deadline has passed or another connection needs the slot or the memory
    /// more. Returns the reason.
    pub async fn ended(&self) -> HttpRefusal {
        tokio::select! {
            () = self.overdue() => HttpRefusal::TooSlow,
            () = self.called_back() => HttpRefusal::Stalled,
            () = self.slot.lost() => match self.is_stuck() {
                true => HttpRefusal::Stalled,
                false => HttpRefusal::NoSlot,
            },
        }
    }

    pub fn is_stuck(&self) -> bool {
        self.now().is_stuck
    }

    /// Waits until the body in flight is called back.
    async fn called_back(&self) {
        loop {
            // A connection has many answers, so this starts over whenever its loan changes.
            let shared_body = self.now().shared_body.clone();
            let Some(shared_body) = shared_body else {
                self.borrowed.notified().await;
                continue;
            };
            tokio::select! {
                // A loan that has just ended must not close the connection.
                biased;
                () = self.borrowed.notified() => {}
                () = shared_body.called_back() => return,
            }
        }
    }

    async fn overdue(&self) {
        loop {
            let deadline = self.now().deadline;
            match deadline {
                None => self.hurried.notified().await,
                Some(deadline) if deadline <= Instant::now() => return,
                // The deadline may have moved meanwhile, so it is read again after the sleep.
                Some(deadline) => tokio::time::sleep_until(deadline).await,
            }
        }
    }

    fn hurry(&self, now: &mut ExchangeState) {
        now.deadline = Some(self.deadline());
        self.hurried.notify_one();
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    fn now(&self) -> MutexGuard<'_, ExchangeState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stream that reports its traffic to its [`Exchange`].
pub(super) struct WatchedStream<S> {
    pub stream: S,
    pub exchange: Arc<Exchange>,
}

impl<S> WatchedStream<S> {
    fn written(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Pending => self.exchange.stuck(),
            Poll::Ready(_) => self.exchange.sent(),
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.exchange.received();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.written(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        match &flushed {
            // Bytes taken by TLS may be stuck here as well.
            Poll::Pending => self.exchange.stuck(),
            Poll::Ready(Ok(())) => self.exchange.flushed(),
            Poll::Ready(Err(_)) => {}
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
