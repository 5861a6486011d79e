//! HTTP server for tests, with scripted replies and a record of the requests it received.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{self, Body};
use axum::http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;

/// Reply to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    Status(u16),
    /// Redirect to `/elsewhere` on the same server.
    Redirect,
    /// Success with a body that never ends.
    Endless,
    /// Closed connection.
    Close,
    /// No reply, with the connection kept open.
    Silence,
}

/// Request as received.
#[derive(Debug)]
pub struct Sent {
    pub method: String,
    pub path: String,
    pub headers: axum::http::HeaderMap,
    pub verdict: Value,
}

impl Sent {
    pub fn arm(&self) -> &str {
        self.verdict["arm"].as_str().expect("a name")
    }

    pub fn state(&self) -> &str {
        self.verdict["state"].as_str().expect("a state")
    }
}

/// Server on the loopback interface.
pub struct Server {
    pub address: SocketAddr,
    sent: UnboundedReceiver<Sent>,
}

/// Function that picks the reply to request `n`, counted from 0, by its verdict.
type Choice = dyn Fn(usize, &Value) -> Reply + Send + Sync;

struct Shared {
    choose: Box<Choice>,
    n_asked: Mutex<usize>,
    tell: UnboundedSender<Sent>,
}

impl Server {
    /// Starts a server that sends these replies in order, then 200.
    pub async fn replying(replies: &[Reply]) -> Server {
        let replies = replies.to_vec();
        Server::choosing(move |n, _| replies.get(n).copied().unwrap_or(Reply::Status(200))).await
    }

    pub async fn choosing(choose: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Server::start(listener, None, choose)
    }

    /// Starts a server that always replies 200.
    pub fn at(listener: TcpListener, tls: Option<TlsAcceptor>) -> Server {
        Server::start(listener, tls, |_, _| Reply::Status(200))
    }

    fn start(
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        choose: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static,
    ) -> Server {
        let address = listener.local_addr().expect("it listens");
        let (tell, sent) = unbounded_channel();
        let shared = Arc::new(Shared {
            choose: Box::new(choose),
            n_asked: Mutex::new(0),
            tell,
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (shared, tls) = (Arc::clone(&shared), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, shared).await,
                        // A client that does not trust our certificate disconnects.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, shared).await;
                            }
                        }
                    }
                });
            }
        });
        Server { address, sent }
    }

    /// Waits for the next request.
    pub async fn next(&mut self) -> Sent {
        let waited = tokio::time::timeout(Duration::from_secs(30), self.sent.recv());
        waited
            .await
            .expect("a request within 30 s")
            .expect("the server lives")
    }

    /// Returns whether no further request has arrived.
    pub fn is_silent(&mut self) -> bool {
        self.sent.try_recv().is_err()
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Shared>) {
    let service = service_fn(|request| answer(request, Arc::clone(&shared)));
    // Errors of the connection are expected: the tests provoke them.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Body>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body::to_bytes(Body::new(body), usize::MAX).await.expect("a body");
    let verdict: Value = serde_json::from_slice(&body).expect("JSON");
    let n = {
        let mut n_asked = shared.n_asked.lock().expect("nobody panics with it");
        *n_asked += 1;
        *n_asked - 1
    };
    let reply = (shared.choose)(n, &verdict);
    let sent = Sent {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head.headers,
        verdict,
    };
    // The test may have dropped its receiver.
    let _ = shared.tell.send(sent);
    let answer = Response::builder();
    match reply {
        Reply::Status(status) => Ok(answer.status(status).body(Body::empty()).expect("an answer")),
        Reply::Redirect => Ok(answer
            .status(StatusCode::TEMPORARY_REDIRECT)
            .header(header::LOCATION, "/elsewhere")
            .body(Body::empty())
            .expect("an answer")),
        Reply::Endless => {
            let pieces = futures_util::stream::repeat_with(|| Ok::<_, Infallible>(vec![b' '; 1 << 16]));
            Ok(answer.body(Body::from_stream(pieces)).expect("an answer"))
        }
        Reply::Close => Err(std::io::Error::other("closed")),
        Reply::Silence => std::future::pending().await,
    }
}
