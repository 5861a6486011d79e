//! Readers of a large `/metrics` that stop reading.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};

use crate::support::certificates::{Authority, Validity};
use crate::support::crowd::Crowd;
use crate::support::exposition::Exposition;
use crate::support::https::{self, Trust};
use crate::support::{tools, wait};

const MAX_CONNECTIONS: usize = 64;
/// Time limit of an abandoned reader.
const TIMEOUT: &str = "5m";
/// Limit for a scrape next to stalled readers, unless four times its duration without them is more.
const BOUND: Duration = Duration::from_secs(10);

/// A client that reads the first byte of its answer and then stops. Its receive buffer is small.
struct Stalled {
    _plain: Option<TcpStream>,
    _secured: Option<StreamOwned<ClientConnection, TcpStream>>,
}

fn stalled(crowd: &Crowd, trust: Option<&Trust>) -> Stalled {
    let stream = TcpStream::connect(crowd.daemon.address()).expect("it listens");
    let few: libc::c_int = 4096;
    // SAFETY: the option takes a number that outlives the call.
    let set = unsafe {
        let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVBUF);
        let len = libc::socklen_t::try_from(size_of_val(&few)).expect("small");
        libc::setsockopt(stream.as_raw_fd(), level, name, (&raw const few).cast(), len)
    };
    assert_eq!(set, 0);
    stream.set_read_timeout(Some(wait::PATIENCE)).expect("a span");
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n",
        crowd.daemon.address()
    );
    let mut first = [0];
    match trust {
        None => {
            let mut stream = stream;
            stream.write_all(request.as_bytes()).expect("sent");
            stream.read_exact(&mut first).expect("the begin of an answer");
            Stalled {
                _plain: Some(stream),
                _secured: None,
            }
        }
        Some(trust) => {
            let mut stream = trust.over(stream, crowd.daemon.address().ip());
            stream.write_all(request.as_bytes()).expect("sent");
            stream.read_exact(&mut first).expect("the begin of an answer");
            Stalled {
                _plain: None,
                _secured: Some(stream),
            }
        }
    }
}

/// Checks that scrapes are not slowed down by five stalled readers, nor by as many as there are connections.
fn check(crowd: &Crowd, trust: Option<&Trust>) {
    let start = Instant::now();
    let scrape = || {
        let begin = Instant::now();
        let answer = https::get(crowd.daemon.address(), trust, "/metrics", &[]).expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.body);
        (begin.elapsed(), answer.body)
    };
    let alone = (0..3).map(|_| scrape().0).max().expect("three");
    println!("{} bytes; alone {alone:?}", scrape().1.len());
    let mut all = Vec::new();
    for n in [5, MAX_CONNECTIONS, 2 * MAX_CONNECTIONS] {
        while all.len() < n {
            all.push(stalled(crowd, trust));
        }
        let slowest = (0..4).map(|_| scrape().0).max().expect("four");
        println!("beside {n} stalled readers {slowest:?}");
        assert!(slowest < BOUND.max(4 * alone), "{slowest:?}, alone {alone:?}");
    }
    let metrics = Exposition::parse(&scrape().1).expect("metrics");
    let n = metrics.value("abgauge_http_refused_total", &[("reason", "stalled")]);
    println!("{n:?} were cut");
    assert!(n.is_some_and(|n| n > 5.0), "{n:?}");
    let log = crowd.daemon.log();
    let n_reported = log.matches("does not read its answer").count() as u64;
    let n_minutes = start.elapsed().as_secs() / 60;
    assert!(
        (1..=1 + n_minutes).contains(&n_reported),
        "it is told once a minute: {log}"
    );
}

#[test]
fn stalled_readers_do_not_block_scrapes() {
    let http = format!("max_connections = {MAX_CONNECTIONS}\ntimeout = {TIMEOUT:?}\n");
    check(&Crowd::start_with(&http, None), None);
}

#[test]
fn stalled_readers_do_not_block_scrapes_over_tls() {
    let dir = tools::temporary_dir("certificates");
    let authority = Authority::new(dir.path(), "authority");
    let both = authority.sign("server", &["127.0.0.1"], Validity::Now).both;
    let trust = Trust::of(&authority.file);
    let http =
        format!("max_connections = {MAX_CONNECTIONS}\ntimeout = {TIMEOUT:?}\ntls_certificate = {both:?}\n");
    check(&Crowd::start_with(&http, Some(&trust)), Some(&trust));
}
