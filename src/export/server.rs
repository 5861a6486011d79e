//! The accept loop: HTTP/1.1 with a bound on connections and a deadline on everything that a client can draw out.
//!
//! A connection has `timeout` for each of two things: to begin a request, and from the first byte of a request to the
//! last byte of its answer. So a client that trickles or does not read is cut, and a slot comes free in time. When
//! the last slot is taken, idle connections are closed, and as long as none is free each answer closes its connection;
//! newcomers wait in the kernel's bounded backlog. A scrape thus gets its turn, where a 503 would lose it.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use crate::config;

/// How long a request already begun may take once the daemon stops.
pub const GRACE: Duration = Duration::from_secs(2);

/// Bytes of a request's head.
const MAX_HEAD_BYTES: usize = 32 * 1024;
/// After the system has refused a connection for want of files or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Why the address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(
        "`http.listen`: {0} is in use: stop the other program or choose another port (ABGAUGE_HTTP__LISTEN)"
    )]
    InUse(SocketAddr),
    #[error(
        "`http.listen`: {0} is not an address of this machine: write 127.0.0.1 or 0.0.0.0 with the port \
         (ABGAUGE_HTTP__LISTEN)"
    )]
    NotOurs(SocketAddr),
    #[error("`http.listen`: {0} is not permitted: choose a port from 1024 on (ABGAUGE_HTTP__LISTEN)")]
    NotPermitted(SocketAddr),
    #[error("`http.listen`: cannot listen on {0}")]
    Other(SocketAddr, #[source] io::Error),
}

/// Takes the port; connections wait in the backlog until [`serve`] runs.
pub fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse(address),
        io::ErrorKind::AddrNotAvailable => BindError::NotOurs(address),
        io::ErrorKind::PermissionDenied => BindError::NotPermitted(address),
        _ => BindError::Other(address, error),
    };
    let listener = TcpListener::bind(address).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    Ok(listener)
}

/// Answers until `shutdown`. Then it accepts no one, closes connections without a request at once, gives requests
/// already begun `grace`, and cuts what is left.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    http: &config::Http,
    shutdown: CancellationToken,
    grace: Duration,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let slots = Arc::new(Semaphore::new(http.max_connections));
    let router = router.layer(axum::middleware::map_response({
        let slots = Arc::clone(&slots);
        move |response| std::future::ready(close_if_crowded(&slots, response))
    }));
    let crowded = watch::Sender::new(());
    let cut = CancellationToken::new();
    let connections = TaskTracker::new();
    loop {
        let (stream, slot) = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        let connection = Connection {
            exchange: Arc::new(Exchange::new(http.timeout)),
            shutdown: shutdown.clone(),
            crowded: crowded.subscribe(),
        };
        let (router, cut) = (router.clone(), cut.clone());
        connections.spawn(async move {
            cut.run_until_cancelled(connection.run(stream, router)).await;
            drop(slot);
        });
        if slots.available_permits() == 0 {
            crowded.send_replace(());
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(grace, connections.wait()).await.is_err() {
        cut.cancel();
        connections.wait().await;
    }
    Ok(())
}

/// The next connection, once there is a slot for it.
async fn accept(
    listener: &tokio::net::TcpListener,
    slots: &Arc<Semaphore>,
) -> (TcpStream, OwnedSemaphorePermit) {
    let slot = Arc::clone(slots)
        .acquire_owned()
        .await
        .expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, slot),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Ends the connection with this answer if no slot is free.
fn close_if_crowded(slots: &Semaphore, mut response: Response) -> Response {
    if slots.available_permits() == 0 {
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

struct Connection {
    exchange: Arc<Exchange>,
    shutdown: CancellationToken,
    /// Changes whenever the last slot has been taken.
    crowded: watch::Receiver<()>,
}

impl Connection {
    async fn run(mut self, stream: TcpStream, router: Router) {
        let io = Watched {
            stream,
            exchange: Arc::clone(&self.exchange),
        };
        let http = http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(io), TowerToHyperService::new(router));
        let mut http = std::pin::pin!(http);
        let mut stopping = false;
        loop {
            tokio::select! {
                ended = http.as_mut() => {
                    if let Err(error) = ended {
                        debug!(%error, "connection ended");
                    }
                    return;
                }
                () = self.exchange.overdue() => return,
                () = self.shutdown.cancelled(), if !stopping => {
                    stopping = true;
                    match self.exchange.stage() {
                        Stage::Fresh | Stage::Idle => return,
                        Stage::Busy => http.as_mut().graceful_shutdown(),
                    }
                }
                Ok(()) = self.crowded.changed() => match self.exchange.stage() {
                    Stage::Idle => return,
                    Stage::Busy => http.as_mut().graceful_shutdown(),
                    Stage::Fresh => {}
                },
            }
        }
    }
}

/// Where a connection stands, and until when it may stand there.
struct Exchange {
    timeout: Duration,
    now: Mutex<Standing>,
}

struct Standing {
    stage: Stage,
    deadline: Instant,
    /// Bytes of an answer have been written in this stage.
    answered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Accepted; no byte of a request yet.
    Fresh,
    /// From the first byte of a request to the last byte of its answer.
    Busy,
    /// Between requests.
    Idle,
}

impl Exchange {
    fn new(timeout: Duration) -> Exchange {
        Exchange {
            timeout,
            now: Mutex::new(Standing {
                stage: Stage::Fresh,
                deadline: Instant::now() + timeout,
                answered: false,
            }),
        }
    }

    fn now(&self) -> MutexGuard<'_, Standing> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stage(&self) -> Stage {
        self.now().stage
    }

    fn received(&self) {
        self.now().enter(Stage::Busy, self.timeout);
    }

    fn sending(&self) {
        let mut now = self.now();
        now.enter(Stage::Busy, self.timeout);
        now.answered = true;
    }

    /// Nothing is left to be sent.
    fn flushed(&self) {
        let mut now = self.now();
        if now.answered {
            now.enter(Stage::Idle, self.timeout);
        }
    }

    /// Waits until the deadline of a stage has passed; a new stage has a later one.
    async fn overdue(&self) {
        loop {
            let deadline = self.now().deadline;
            if deadline <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    }
}

impl Standing {
    fn enter(&mut self, stage: Stage, timeout: Duration) {
        if self.stage != stage {
            *self = Standing {
                stage,
                deadline: Instant::now() + timeout,
                answered: false,
            };
        }
    }
}

/// A stream that tells its [`Exchange`] what passes.
struct Watched {
    stream: TcpStream,
    exchange: Arc<Exchange>,
}

impl AsyncRead for Watched {
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

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.exchange.sending();
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.exchange.sending();
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.exchange.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
