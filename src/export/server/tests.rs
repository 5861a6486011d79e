//! Claims about the accept loop, with real sockets.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream as Client;
use std::time::Instant as Moment;

use axum::routing::get;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::*;

const TIMEOUT: Duration = Duration::from_millis(400);
/// Longer than anything that is to happen at once, shorter than `TIMEOUT`.
const SOON: Duration = Duration::from_millis(250);
const NEVER: Duration = Duration::from_secs(10);
/// More than what the kernel buffers of one connection.
const BIG: usize = 64 << 20;

struct Server {
    runtime: Runtime,
    address: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<io::Result<()>>,
}

fn server(max_connections: usize, timeout: Duration) -> Server {
    let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new()
        .route("/", get(|| async { "ok" }))
        .route("/big", get(|| async { "x".repeat(BIG) }))
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(SOON).await;
                "slow"
            }),
        )
        .route("/stuck", get(std::future::pending::<()>));
    let http = config::Http {
        listen: address,
        max_connections,
        timeout,
    };
    let runtime = Runtime::new().unwrap();
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let task = runtime.spawn(async move { serve(listener, router, &http, stop, GRACE).await });
    Server {
        runtime,
        address,
        shutdown,
        task,
    }
}

impl Server {
    fn connect(&self) -> Client {
        let client = Client::connect(self.address).unwrap();
        client.set_read_timeout(Some(NEVER)).unwrap();
        client
    }

    /// A connection that has sent this.
    fn send(&self, request: &str) -> Client {
        let mut client = self.connect();
        client.write_all(request.as_bytes()).unwrap();
        client
    }

    /// Stops it; how long that took.
    fn stop(self) -> Duration {
        let begin = Moment::now();
        self.shutdown.cancel();
        self.runtime.block_on(self.task).unwrap().unwrap();
        begin.elapsed()
    }
}

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";

/// The answer up to the body `ok`, with the connection left open.
fn read_ok(client: &mut Client) -> String {
    let mut text = String::new();
    let mut byte = [0];
    while !text.ends_with("\r\n\r\nok") {
        assert_eq!(client.read(&mut byte).unwrap(), 1, "closed after {text:?}");
        text.push(char::from(byte[0]));
    }
    text
}

/// Waits until the server closes the connection, and for how long that took.
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
fn answers_again_and_again_on_one_connection_whatever_its_age() {
    let server = server(4, TIMEOUT);
    let mut client = server.connect();
    for _ in 0..3 {
        client.write_all(REQUEST.as_bytes()).unwrap();
        assert!(read_ok(&mut client).starts_with("HTTP/1.1 200 OK\r\n"));
        std::thread::sleep(SOON);
    }
}

#[test]
fn a_client_that_trickles_its_request_is_cut() {
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
fn a_client_that_never_speaks_is_cut() {
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
fn a_client_that_does_not_read_its_answer_is_cut() {
    let server = server(1, TIMEOUT);
    let mut deaf = server.send("GET /big HTTP/1.1\r\nHost: test\r\n\r\n");
    // Its slot comes free although it never reads.
    let mut next = server.send(REQUEST);
    read_ok(&mut next);
    let mut rest = Vec::new();
    let _ = deaf.read_to_end(&mut rest);
    assert!(rest.len() < BIG, "all {BIG} bytes arrived");
}

#[test]
fn a_request_that_takes_too_long_is_cut() {
    let server = server(4, TIMEOUT);
    let (answer, after) = until_closed(&mut server.send("GET /stuck HTTP/1.1\r\nHost: test\r\n\r\n"));
    assert_eq!(answer, "");
    assert!(after < 4 * TIMEOUT, "{after:?}");
}

#[test]
fn a_head_beyond_its_bound_is_refused() {
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
fn beyond_the_cap_a_newcomer_waits_until_a_slot_is_free() {
    let server = server(2, TIMEOUT);
    let begin = Moment::now();
    let _held = [server.send("GET"), server.send("GET")];
    std::thread::sleep(SOON / 5);
    let mut third = server.send(REQUEST);
    read_ok(&mut third);
    assert!(
        begin.elapsed() >= TIMEOUT / 2,
        "answered beside two others after {:?}",
        begin.elapsed()
    );
    assert!(begin.elapsed() < 4 * TIMEOUT, "{:?}", begin.elapsed());
}

#[test]
fn idle_connections_make_room() {
    let server = server(2, NEVER);
    let mut first = server.send(REQUEST);
    read_ok(&mut first);
    let begin = Moment::now();
    for _ in 0..4 {
        read_ok(&mut server.send(REQUEST));
    }
    assert!(begin.elapsed() < NEVER / 2, "{:?}", begin.elapsed());
    let (_, after) = until_closed(&mut first);
    assert!(after < NEVER / 2, "{after:?}");
}

#[test]
fn an_answer_closes_its_connection_while_no_slot_is_free() {
    let server = server(2, NEVER);
    let mut both = [server.connect(), server.connect()];
    std::thread::sleep(SOON / 5);
    both[0].write_all(REQUEST.as_bytes()).unwrap();
    let (answer, after) = until_closed(&mut both[0]);
    assert!(
        answer.contains("connection: close") && after < NEVER / 2,
        "{after:?} {answer}"
    );
}

#[test]
fn an_idle_connection_does_not_hold_up_the_end() {
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
fn a_request_already_begun_is_answered_at_the_end() {
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
fn the_end_waits_no_longer_than_the_grace() {
    let server = server(4, NEVER);
    let mut client = server.send("GET /stuck HTTP/1.1\r\nHost: test\r\n\r\n");
    std::thread::sleep(SOON / 5);
    let took = server.stop();
    assert!(took >= GRACE && took < 2 * GRACE, "{took:?}");
    until_closed(&mut client);
}

#[test]
fn a_port_that_is_taken_is_named_with_the_remedy() {
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
