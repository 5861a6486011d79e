//! A server that answers as it is told to, and tells what it was sent.

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

/// How it answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    Status(u16),
    /// To `/elsewhere` on the same server.
    Redirect,
    /// Success, and a body without an end.
    Endless,
    /// The connection is closed.
    Close,
    /// Nothing, and the connection stays.
    Silence,
}

/// A request as it came.
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

/// A server on this machine.
pub struct Server {
    pub address: SocketAddr,
    sent: UnboundedReceiver<Sent>,
}

/// Chooses a reply to the n-th request, from 0 on, by its verdict.
type Choice = dyn Fn(usize, &Value) -> Reply + Send + Sync;

struct Shared {
    choose: Box<Choice>,
    n_asked: Mutex<usize>,
    tell: UnboundedSender<Sent>,
}

impl Server {
    /// Answers with these one after the other, and then with 200.
    pub async fn replying(replies: &[Reply]) -> Server {
        let replies = replies.to_vec();
        Server::choosing(move |n, _| replies.get(n).copied().unwrap_or(Reply::Status(200))).await
    }

    pub async fn choosing(choose: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Server::start(listener, None, choose)
    }

    /// Answers with 200.
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
                        // A client that does not trust us leaves.
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

    /// The next request.
    pub async fn next(&mut self) -> Sent {
        let waited = tokio::time::timeout(Duration::from_secs(30), self.sent.recv());
        waited
            .await
            .expect("a request within 30 s")
            .expect("the server lives")
    }

    /// Whether nothing has come since.
    pub fn is_silent(&mut self) -> bool {
        self.sent.try_recv().is_err()
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Shared>) {
    let service = service_fn(|request| answer(request, Arc::clone(&shared)));
    // What goes wrong with it is what the tests are about.
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
    // Nobody may wait for it any more.
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
