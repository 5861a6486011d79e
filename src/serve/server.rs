//! Accept loop: HTTP/1.1 with or without TLS, with a bound on connections and a deadline on everything that a client can
//! draw out.
//!
//! A connection has `timeout` for each of two things: to start a request, including the TLS handshake, and from the first
//! byte of a request to the last byte of its answer. A client that trickles or does not read is therefore cut off.
//!
//! Thousands of such clients cannot keep a scrape out either. If no slot is free for a new connection, the one that has
//! waited longest for a complete request is closed, slow or idle. If all have sent one, the connection whose client has
//! stalled longest within its answer is closed. If we owe an answer to all of them, the new connection waits in the
//! kernel's bounded backlog: the scrape is served later, while a 503 would lose it. A body that others need is called back
//! in the same way.
//!
//! An answer that does not end (server-sent events) may last while its client keeps up. The routes bound their number.

mod answer;
mod exchange;
mod slots;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use tracing::{debug, warn};

use self::exchange::{Exchange, Stage, WatchedStream};
use self::slots::{ConnectionSlot, ConnectionSlots};
use super::rate_limit::RateLimit;
use crate::settings;
use crate::telemetry::{HttpRefusal, Telemetry};

/// Time that a request in flight may still take once the daemon stops.
pub const GRACE: Duration = Duration::from_secs(2);

/// Maximum number of bytes in a request's head.
const MAX_HEAD_BYTES: usize = 32 * 1024;
/// Pause after the system has refused a connection for lack of files or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);
/// Maximum number of connections that the kernel queues until they are accepted. Beyond it, clients retry only after a
/// second.
const BACKLOG: i32 = 4096;

/// Origin of a request, among its extensions.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// Reason why the address cannot be listened on.
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

/// Binds the port. Connections wait in the backlog until [`serve`] runs.
pub fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse(address),
        io::ErrorKind::AddrNotAvailable => BindError::NotOurs(address),
        io::ErrorKind::PermissionDenied => BindError::NotPermitted(address),
        _ => BindError::Other(address, error),
    };
    let listener = TcpListener::bind(address).map_err(refused)?;
    // Tokio requires this of a socket that it takes over.
    listener.set_nonblocking(true).map_err(refused)?;
    // `std` listens with a short backlog. A second call only changes the length.
    socket2::SockRef::from(&listener)
        .listen(BACKLOG)
        .map_err(refused)?;
    Ok(listener)
}

/// Serves until `shutdown`. Then it stops accepting, immediately closes connections without a request and endless answers,
/// gives requests in flight `grace`, and cuts the rest.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<TlsAcceptor>,
    http: &settings::Http,
    telemetry: Arc<Telemetry>,
    shutdown: CancellationToken,
    grace: Duration,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let slots = ConnectionSlots::new(http.max_connections);
    let cut = CancellationToken::new();
    let reported = Arc::new(RateLimit::default());
    let connections = TaskTracker::new();
    loop {
        let (stream, peer, slot) = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        let connection = Connection {
            exchange: Arc::new(Exchange::new(http.timeout, slot)),
            peer,
            router: router.clone(),
            telemetry: Arc::clone(&telemetry),
            reported: Arc::clone(&reported),
            shutdown: shutdown.clone(),
        };
        let (tls, cut) = (tls.clone(), cut.clone());
        connections.spawn(async move {
            cut.run_until_cancelled(connection.run(stream, tls)).await;
        });
        // Its request may have arrived already. Let it be read before the next connection is accepted and may take this
        // one's slot.
        tokio::task::yield_now().await;
    }
    // New clients are refused at once, instead of waiting for an answer that never comes.
    drop(listener);
    connections.close();
    if tokio::time::timeout(grace, connections.wait()).await.is_err() {
        cut.cancel();
        connections.wait().await;
    }
    Ok(())
}

/// Returns the next connection, once there is a slot for it.
async fn accept(
    listener: &tokio::net::TcpListener,
    slots: &Arc<ConnectionSlots>,
) -> (TcpStream, Peer, ConnectionSlot) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, Peer(peer), slots.take().await),
            // The client has left before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn report_stalled(reported: &RateLimit, peer: Peer) {
    if let Some(unlogged_before) = reported.n_unlogged() {
        warn!(
            peer = %peer.0,
            unlogged_before,
            "cut a client that does not read its answer: abgauge_http_refused_total counts them as stalled or too_slow"
        );
    }
}

struct Connection {
    exchange: Arc<Exchange>,
    peer: Peer,
    router: Router,
    telemetry: Arc<Telemetry>,
    /// Rate limit of log lines about clients that do not read.
    reported: Arc<RateLimit>,
    shutdown: CancellationToken,
}

impl Connection {
    /// Serves the connection until the client ends it or its time is over.
    async fn run(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        // An answer goes out in few pieces, and none should wait for the next. If this fails, answers are only slower.
        let _ = stream.set_nodelay(true);
        let (exchange, telemetry) = (Arc::clone(&self.exchange), Arc::clone(&self.telemetry));
        let (reported, peer) = (Arc::clone(&self.reported), self.peer);
        tokio::select! {
            () = self.talk(stream, tls) => {}
            reason = exchange.ended() => if !exchange.is_between_requests() {
                telemetry.count_http_refusal(reason);
                if reason == HttpRefusal::Stalled || exchange.is_stuck() {
                    report_stalled(&reported, peer);
                }
            }
        }
    }

    async fn talk(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        let Some(tls) = tls else {
            return self.answer(stream).await;
        };
        let handshake = tokio::select! {
            handshake = tls.accept(stream) => handshake,
            () = self.shutdown.cancelled() => return,
        };
        match handshake {
            Ok(stream) => self.answer(stream).await,
            Err(error) => {
                self.telemetry.count_http_refusal(HttpRefusal::TlsHandshake);
                debug!(peer = %self.peer.0, %error, "TLS handshake failed");
            }
        }
    }

    async fn answer<S: AsyncRead + AsyncWrite + Unpin>(self, stream: S) {
        let io = WatchedStream {
            stream,
            exchange: Arc::clone(&self.exchange),
        };
        let service = service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
            self.exchange.asked();
            request.extensions_mut().insert(self.peer);
            let answer = self.router.clone().oneshot(request);
            async {
                let Ok(answer) = answer.await;
                Ok::<_, Infallible>(answer::watched(answer, &self.exchange))
            }
        });
        let http = http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(io), service);
        let mut http = std::pin::pin!(http);
        let ended = tokio::select! {
            ended = http.as_mut() => ended,
            () = self.shutdown.cancelled() => match self.exchange.stage() {
                // Nothing is owed here: an idle client has not sent a request, and a stream never ends by itself.
                Stage::Idle | Stage::Streaming => return,
                Stage::Asking | Stage::Answering => {
                    http.as_mut().graceful_shutdown();
                    http.await
                }
            },
        };
        if let Err(error) = ended {
            if error.is_parse() {
                self.telemetry.count_http_refusal(HttpRefusal::Malformed);
            }
            debug!(peer = %self.peer.0, %error, "connection ended");
        }
    }
}

#[cfg(test)]
mod tests;
