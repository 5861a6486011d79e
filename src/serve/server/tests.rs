//! Tests of the accept loop with real sockets.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream as Client;
use std::time::Instant as Moment;

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::Extension;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header;
use axum::routing::get;
use http_body::Frame;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::*;
use crate::serve::shared_body::SharedBody;
use crate::serve::tls::{Tls, TlsIdentity};
use crate::settings::TlsFiles;

const TIMEOUT: Duration = Duration::from_millis(400);
/// Time longer than anything immediate and shorter than `TIMEOUT`.
const SOON: Duration = Duration::from_millis(250);
const NEVER: Duration = Duration::from_secs(10);
/// Size larger than the kernel's buffers for one connection.
const BIG: usize = 64 << 20;

struct Server {
    runtime: Runtime,
    address: SocketAddr,
    telemetry: Arc<Telemetry>,
    shutdown: CancellationToken,
    /// Loan of the answer at `/lent`.
    shared_body: Arc<SharedBody>,
    task: JoinHandle<io::Result<()>>,
}

fn server(max_connections: usize, timeout: Duration) -> Server {
    server_with(max_connections, timeout, None)
}

fn server_with(max_connections: usize, timeout: Duration, tls: Option<TlsAcceptor>) -> Server {
    let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let shared_body = Arc::new(SharedBody::default());
    let body_reader = Arc::clone(&shared_body);
    let router = Router::new()
        .route(
            "/lent",
            get(|| async { (Extension(body_reader), "x".repeat(BIG) + "end") }),
        )
        .route("/", get(|| async { "ok" }))
        .route("/big", get(|| async { "x".repeat(BIG) }))
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(SOON).await;
                "slow"
            }),
        )
        .route("/events", get(|| async { events("tick\n\n".into()) }))
        .route("/flood", get(|| async { events(vec![b'x'; 1 << 20].into()) }))
        .route("/stuck", get(std::future::pending::<()>));
    let http = settings::Http {
        listen: address,
        max_connections,
        timeout,
        ..settings::load(
            None,
            [("ABGAUGE_KAFKA__BROKERS".to_owned(), "a:1".to_owned())].into_iter(),
        )
        .unwrap()
        .http
    };
    let runtime = Runtime::new().unwrap();
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let telemetry = Arc::new(Telemetry::new("served", "clicks", "0"));
    let reported = Arc::clone(&telemetry);
    let task = runtime.spawn(async move { serve(listener, router, tls, &http, reported, stop, GRACE).await });
    Server {
        runtime,
        address,
        telemetry,
        shutdown,
        shared_body,
        task,
    }
}

/// Answer without an end that repeats this chunk.
fn events(chunk: Bytes) -> ([(header::HeaderName, &'static str); 1], Body) {
    let ticks = Ticks {
        every: tokio::time::interval(Duration::from_millis(20)),
        chunk,
    };
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::new(ticks))
}

struct Ticks {
    every: tokio::time::Interval,
    chunk: Bytes,
}

impl HttpBody for Ticks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        ready!(self.every.poll_tick(cx));
        Poll::Ready(Some(Ok(Frame::data(self.chunk.clone()))))
    }
}

impl Server {
    fn connect(&self) -> Client {
        let client = Client::connect(self.address).unwrap();
        client.set_read_timeout(Some(NEVER)).unwrap();
        client
    }

    /// Opens a connection and sends this.
    fn send(&self, request: &str) -> Client {
        let mut client = self.connect();
        client.write_all(request.as_bytes()).unwrap();
        client
    }

    /// Stops the server and returns its refusals so far.
    fn refused(self) -> Vec<(HttpRefusal, u64)> {
        let telemetry = Arc::clone(&self.telemetry);
        self.stop();
        let counts = HttpRefusal::ALL.map(|reason| (reason, telemetry.n_http_refused(reason)));
        counts.into_iter().filter(|(_, n)| *n > 0).collect()
    }

    /// Stops the server and returns how long that took.
    fn stop(self) -> Duration {
        let begin = Moment::now();
        self.shutdown.cancel();
        self.runtime.block_on(self.task).unwrap().unwrap();
        begin.elapsed()
    }
}

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";

/// Reads an answer up to the body `ok` and leaves the connection open.
fn read_ok(client: &mut Client) -> String {
    let mut text = String::new();
    let mut byte = [0];
    while !text.ends_with("\r\n\r\nok") {
        assert_eq!(client.read(&mut byte).unwrap(), 1, "closed after {text:?}");
        text.push(char::from(byte[0]));
    }
    text
}

/// Waits until the server closes the connection. Returns the text read and the time taken.
fn until_closed(client: &mut Client) -> (String, Duration) {
    let begin = Moment::now();
    let mut rest = Vec::new();
    match client.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    (String::from_utf8(rest).unwrap(), begin.elapsed())
}

#[test]
fn a_connection_serves_many_requests_at_any_age() {
    let server = server(4, TIMEOUT);
    let mut client = server.connect();
    for _ in 0..3 {
        client.write_all(REQUEST.as_bytes()).unwrap();
        assert!(read_ok(&mut client).starts_with("HTTP/1.1 200 OK\r\n"));
        std::thread::sleep(SOON);
    }
}

#[test]
fn a_client_that_trickles_its_request_is_disconnected() {
    let server = server(4, TIMEOUT);
    let mut client = server.connect();
    let begin = Moment::now();
    for _ in 0..200 {
        if client.write_all(b"a").is_err() {
            break;
        }
        std::thread::sleep(TIMEOUT / 20);
    }
    let (answer, _) = until_closed(&mut client);
    assert_eq!(answer, "");
    assert!(
        begin.elapsed() >= TIMEOUT && begin.elapsed() < 4 * TIMEOUT,
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn a_silent_client_is_disconnected() {
    let server = server(4, TIMEOUT);
    let (_, after) = until_closed(&mut server.connect());
    assert!(after >= TIMEOUT / 2 && after < 4 * TIMEOUT, "{after:?}");
}

#[test]
fn an_idle_connection_is_closed_after_the_timeout() {
    let server = server(4, TIMEOUT);
    let mut client = server.send(REQUEST);
    read_ok(&mut client);
    let (_, after) = until_closed(&mut client);
    assert!(after >= TIMEOUT / 2 && after < 4 * TIMEOUT, "{after:?}");
}

#[test]
fn disconnections_are_counted_by_reason_except_idle_ones() {
    let server = server(4, TIMEOUT);
    let mut clients = [
        server.connect(),
        server.send("GET"),
        server.send("nonsense\r\n\r\n"),
        server.send(REQUEST),
    ];
    clients.iter_mut().for_each(|client| {
        until_closed(client);
    });
    assert_eq!(
        server.refused(),
        [(HttpRefusal::Malformed, 1), (HttpRefusal::TooSlow, 2)]
    );
}

#[test]
fn a_client_that_does_not_read_its_answer_is_disconnected() {
    let server = server(1, TIMEOUT);
    let mut deaf = server.send("GET /big HTTP/1.1\r\nHost: test\r\n\r\n");
    // Its slot becomes free although it never reads.
    let mut next = server.send(REQUEST);
    read_ok(&mut next);
    let mut rest = Vec::new();
    let _ = deaf.read_to_end(&mut rest);
    assert!(rest.len() < BIG, "all {BIG} bytes arrived");
}

#[test]
fn a_request_that_takes_too_long_is_aborted() {
    let server = server(4, TIMEOUT);
    let (answer, after) = until_closed(&mut server.send("GET /stuck HTTP/1.1\r\nHost: test\r\n\r\n"));
    assert_eq!(answer, "");
    assert!(after < 4 * TIMEOUT, "{after:?}");
}

#[test]
fn a_head_over_its_bound_is_refused() {
    let server = server(4, NEVER);
    let head = format!(
        "GET / HTTP/1.1\r\nHost: test\r\nX: {}\r\n\r\n",
        "x".repeat(2 * MAX_HEAD_BYTES)
    );
    let mut client = server.connect();
    let _ = client.write_all(head.as_bytes());
    let (answer, after) = until_closed(&mut client);
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
        "{answer:?}"
    );
    assert!(after < NEVER / 2);
}

#[test]
fn a_full_server_drops_the_longest_wait_for_a_request() {
    let server = server(2, NEVER);
    let mut first = server.send("GET");
    std::thread::sleep(SOON / 5);
    let mut second = server.send("GET / HTTP/1.1\r\nHost: ");
    std::thread::sleep(SOON / 5);
    let begin = Moment::now();
    read_ok(&mut server.send(REQUEST));
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    let (answer, _) = until_closed(&mut first);
    assert_eq!(answer, "");
    second.write_all(b"test\r\n\r\n").unwrap();
    read_ok(&mut second);
    drop(second);
    assert_eq!(server.refused(), [(HttpRefusal::NoSlot, 1)]);
}

#[test]
fn unfinished_requests_never_lock_out_a_client() {
    let server = server(8, NEVER);
    let mut slow = Vec::new();
    for n in 0..500 {
        slow.push(server.send(["", "G", "GET / HTTP/1.1\r\n"][n % 3]));
        if n % 100 == 99 {
            let begin = Moment::now();
            read_ok(&mut server.send(REQUEST));
            assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
        }
    }
}

#[test]
fn a_newcomer_waits_while_all_connections_have_requests() {
    let server = server(1, TIMEOUT);
    let mut held = server.send("GET /stuck HTTP/1.1\r\nHost: test\r\n\r\n");
    std::thread::sleep(SOON / 5);
    let begin = Moment::now();
    read_ok(&mut server.send(REQUEST));
    assert!(begin.elapsed() >= TIMEOUT / 2, "{:?}", begin.elapsed());
    until_closed(&mut held);
}

#[test]
fn a_client_that_reads_nothing_makes_room() {
    let server = server(2, NEVER);
    let deaf: Vec<_> = (0..6)
        .map(|_| {
            let mut deaf = server.send("GET /big HTTP/1.1\r\nHost: test\r\n\r\n");
            assert_eq!(status(&mut deaf), "HTTP/1.1 200");
            deaf
        })
        .collect();
    let begin = Moment::now();
    read_ok(&mut server.send(REQUEST));
    assert!(begin.elapsed() < NEVER / 4, "{:?}", begin.elapsed());
    drop(deaf);
    assert_eq!(server.refused(), [(HttpRefusal::Stalled, 5)]);
}

#[test]
fn a_slow_reader_stays_while_others_wait_longer() {
    let server = server(2, NEVER);
    let mut slow = server.send("GET /big HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    let (mut n, mut piece) = (0, vec![0; 1 << 20]);
    while n < BIG {
        let read = slow.read(&mut piece).unwrap();
        assert_ne!(read, 0, "cut after {n} bytes");
        n += read;
        server.send("G");
    }
}

#[test]
fn a_reclaimed_body_disconnects_only_its_unfinished_readers() {
    let server = server(4, NEVER);
    let mut deaf = server.send("GET /lent HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(status(&mut deaf), "HTTP/1.1 200");
    // This client got the same body and has read all of it.
    let mut keen = server.send("GET /lent HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut text = vec![0; BIG];
    keen.read_exact(&mut text).unwrap();
    while !text.ends_with(b"end") {
        let n = keen.read(&mut text).unwrap();
        text.truncate(n);
        assert_ne!(n, 0, "cut");
        if !text.ends_with(b"end") {
            text.resize(BIG, 0);
        }
    }
    server.shared_body.call_back();
    let mut rest = Vec::new();
    let _ = deaf.read_to_end(&mut rest);
    assert!(rest.len() < BIG, "all {BIG} bytes arrived");
    keen.write_all(REQUEST.as_bytes()).unwrap();
    read_ok(&mut keen);
    assert_eq!(server.refused(), [(HttpRefusal::Stalled, 1)]);
}

#[test]
fn idle_connections_make_room() {
    let server = server(2, NEVER);
    let mut first = server.send(REQUEST);
    read_ok(&mut first);
    let mut second = server.send(REQUEST);
    read_ok(&mut second);
    let begin = Moment::now();
    read_ok(&mut server.send(REQUEST));
    assert!(begin.elapsed() < NEVER / 2, "{:?}", begin.elapsed());
    let (_, after) = until_closed(&mut first);
    assert!(after < NEVER / 2, "{after:?}");
}

/// Reads the head of an endless answer and its first event.
fn read_event(client: &mut Client) {
    let mut text = String::new();
    let mut byte = [0];
    while !text.ends_with("tick\n\n") {
        assert_eq!(client.read(&mut byte).unwrap(), 1, "closed after {text:?}");
        text.push(char::from(byte[0]));
    }
}

const EVENTS: &str = "GET /events HTTP/1.1\r\nHost: test\r\n\r\n";

#[test]
fn an_endless_answer_lasts_while_it_is_read() {
    let server = server(4, TIMEOUT);
    let mut client = server.send(EVENTS);
    let begin = Moment::now();
    while begin.elapsed() < 3 * TIMEOUT {
        read_event(&mut client);
    }
}

#[test]
fn an_endless_answer_keeps_its_slot() {
    let server = server(3, NEVER);
    let mut streams = [server.send(EVENTS), server.send(EVENTS)];
    streams.iter_mut().for_each(read_event);
    for _ in 0..20 {
        read_ok(&mut server.send(REQUEST));
    }
    streams.iter_mut().for_each(read_event);
}

#[test]
fn a_reader_that_falls_behind_an_endless_answer_is_disconnected() {
    let server = server(2, TIMEOUT);
    let mut deaf = server.send("GET /flood HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(status(&mut deaf), "HTTP/1.1 200");
    let begin = Moment::now();
    while server.telemetry.n_http_refused(HttpRefusal::TooSlow) == 0 {
        assert!(begin.elapsed() < NEVER / 2, "it still has its slot");
        std::thread::sleep(TIMEOUT / 20);
    }
    assert!(begin.elapsed() >= TIMEOUT / 2, "{:?}", begin.elapsed());
}

fn status(client: &mut Client) -> String {
    let mut status = [0; 12];
    client.read_exact(&mut status).unwrap();
    String::from_utf8(status.to_vec()).unwrap()
}

#[test]
fn an_endless_answer_does_not_delay_shutdown() {
    let server = server(4, NEVER);
    let mut stream = server.send(EVENTS);
    read_event(&mut stream);
    let took = server.stop();
    assert!(took < GRACE / 2, "{took:?}");
    until_closed(&mut stream);
}

/// Server with a self-signed certificate, and a client configuration that trusts it.
fn secured(max_connections: usize, timeout: Duration) -> (Server, Arc<ClientConfig>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("both.pem");
    std::fs::write(&file, certificate.pem() + &key.serialize_pem()).unwrap();
    let files = TlsFiles {
        certificate: file.clone(),
        key: file,
    };
    let tls = Tls::new(&TlsIdentity::read(&files).unwrap());
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(certificate.pem().as_bytes()).unwrap();
    roots.add(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (
        server_with(max_connections, timeout, Some(tls.acceptor())),
        Arc::new(client),
    )
}

/// Answer to a request over TLS.
fn ask_secured(server: &Server, trust: &Arc<ClientConfig>, request: &str) -> String {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::clone(trust), name).unwrap();
    let mut stream = StreamOwned::new(connection, server.connect());
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

const LAST_REQUEST: &str = "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";

#[test]
fn a_tls_server_answers_and_stops_like_a_plain_one() {
    let (server, trust) = secured(4, NEVER);
    let answer = ask_secured(&server, &trust, LAST_REQUEST);
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok"),
        "{answer}"
    );
    let big = ask_secured(&server, &trust, &LAST_REQUEST.replace("/ ", "/big "));
    assert!(big.len() > BIG, "{} bytes", big.len());
    // Without TLS there is no answer.
    let (answer, _) = until_closed(&mut server.send(REQUEST));
    assert!(!answer.contains("ok"), "{answer}");
    let mut fresh = server.connect();
    let took = server.stop();
    assert!(took < GRACE / 2, "{took:?}");
    until_closed(&mut fresh);
}

#[test]
fn an_unfinished_handshake_is_aborted_and_makes_room() {
    let (patient, trust) = secured(2, NEVER);
    // The bytes start a handshake record.
    let mut slow: Vec<_> = (0..6).map(|_| patient.send("\x16\x03\x01")).collect();
    let begin = Moment::now();
    let answer = ask_secured(&patient, &trust, LAST_REQUEST);
    assert!(answer.ends_with("ok"), "{answer}");
    assert!(begin.elapsed() < NEVER / 4, "{:?}", begin.elapsed());
    until_closed(&mut slow[0]);

    let (hasty, _) = secured(4, TIMEOUT);
    let (_, after) = until_closed(&mut hasty.send("\x16\x03\x01"));
    assert!(after >= TIMEOUT / 2 && after < 4 * TIMEOUT, "{after:?}");
}

#[test]
fn an_idle_connection_does_not_delay_shutdown() {
    let server = server(4, NEVER);
    let mut idle = server.send(REQUEST);
    read_ok(&mut idle);
    let mut fresh = server.connect();
    let took = server.stop();
    assert!(took < GRACE / 2, "{took:?}");
    until_closed(&mut idle);
    until_closed(&mut fresh);
}

#[test]
fn a_request_in_progress_is_answered_during_shutdown() {
    let server = server(4, NEVER);
    let mut client = server.send("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n");
    std::thread::sleep(SOON / 5);
    let address = server.address;
    let took = server.stop();
    assert!(took < GRACE, "{took:?}");
    let (answer, _) = until_closed(&mut client);
    assert!(answer.ends_with("slow"), "{answer:?}");
    assert!(Client::connect(address).is_err(), "a newcomer was let in");
}

#[test]
fn shutdown_waits_no_longer_than_the_grace_period() {
    let server = server(4, NEVER);
    let mut client = server.send("GET /stuck HTTP/1.1\r\nHost: test\r\n\r\n");
    std::thread::sleep(SOON / 5);
    let took = server.stop();
    assert!(took >= GRACE && took < 2 * GRACE, "{took:?}");
    until_closed(&mut client);
}

#[test]
fn an_address_in_use_is_named_with_a_fix() {
    let taken = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = taken.local_addr().unwrap();
    assert_eq!(
        bind(address).unwrap_err().to_string(),
        format!(
            "`http.listen`: {address} is in use: stop the other program or choose another port \
             (ABGAUGE_HTTP__LISTEN)"
        )
    );
    let foreign = bind("192.0.2.1:9464".parse().unwrap()).unwrap_err();
    assert!(matches!(foreign, BindError::NotOurs(_)), "{foreign}");
}
