//! Ten thousand clients that never finish their request leave a scrape under a second.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::daemon;
use crate::support::certificates::{Authority, Validity};
use crate::support::https::{self, Trust};
use crate::support::tools;

const WANTED: usize = 10_000;
/// Files that this process needs beside the connections.
const OTHER_FILES: usize = 300;
const N_SCRAPES: usize = 30;
/// No scrape may take longer.
const BOUND: Duration = Duration::from_secs(1);
/// All slow clients stand within this, or the test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// As many connections as the system lets this process hold, at most ten thousand.
fn n_connections() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both calls read or write the one struct, which lives as long.
    let allowed = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
    };
    let n = WANTED.min(allowed.saturating_sub(OTHER_FILES));
    if n < WANTED {
        println!("only {n} connections: the system allows {allowed} open files");
    }
    assert!(n >= 500, "{allowed} open files are too few to tell anything");
    n
}

/// A client that begins and never finishes; none where the system has no port left for a moment.
fn begin(address: SocketAddr, with: &[u8]) -> Option<TcpStream> {
    let mut client = TcpStream::connect_timeout(&address, BOUND).ok()?;
    // The server may have closed it already.
    let _ = client.write_all(with);
    Some(client)
}

/// Says that it is over, also where a scrape fails: a thread that nobody stops would keep the test from its end.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Scrapes while the clients stand, and while each of them comes again and again; returns the longest that one took.
fn slowest_scrape(address: SocketAddr, trust: Option<&Trust>, beginnings: &[&[u8]]) -> Duration {
    let n = n_connections();
    let opened = Instant::now();
    let mut clients: VecDeque<_> = (0..n)
        .take_while(|_| opened.elapsed() < PATIENCE)
        .filter_map(|n| begin(address, beginnings[n % beginnings.len()]))
        .collect();
    assert!(clients.len() > n * 9 / 10, "{} of {n}", clients.len());
    println!("{} slow clients in {:?}", clients.len(), opened.elapsed());
    let scrape = || {
        let begin = Instant::now();
        let answer = https::get(address, trust, "/metrics", &[]).expect("a scrape");
        assert!(answer.status == 200 && answer.body.contains("abgauge_build_info"));
        begin.elapsed()
    };
    let round = || {
        let mut times: Vec<Duration> = (0..N_SCRAPES).map(|_| scrape()).collect();
        times.sort_unstable();
        println!(
            "{N_SCRAPES} scrapes: median {:?}, slowest {:?}",
            times[N_SCRAPES / 2],
            times[N_SCRAPES - 1]
        );
        times[N_SCRAPES - 1]
    };
    // What else the machine does may hold up a scrape for a second, seldom twice; a server that lets clients keep a scrape
    // out does so in each round. So one round in which every scrape is fast is enough.
    let slowest = || match round() {
        slowest if slowest < BOUND => slowest,
        slowest => slowest.min(round()),
    };
    let standing = slowest();
    let (stop, n_again) = (AtomicBool::new(false), AtomicUsize::new(0));
    let coming = thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                clients.pop_front();
                clients.extend(begin(address, beginnings[0]));
                n_again.fetch_add(1, Ordering::Relaxed);
            }
        });
        let _stop = StopAtEnd(&stop);
        slowest()
    });
    println!("{n_again:?} came again");
    standing.max(coming)
}

#[test]
fn ten_thousand_slow_clients_leave_a_scrape_under_a_second() {
    let plain = daemon("timeout = \"5m\"\n");
    let beginnings: [&[u8]; 3] = [b"", b"G", b"GET /metrics HTTP/1.1\r\nHost: slow\r\nX: "];
    let time = slowest_scrape(plain.address(), None, &beginnings);
    assert!(time < BOUND, "{time:?}");

    let dir = tools::temporary_dir("certificates");
    let authority = Authority::new(dir.path(), "authority");
    let both = authority.sign("server", &["127.0.0.1"], Validity::Now).both;
    let secured = daemon(&format!("timeout = \"5m\"\ntls_certificate = {both:?}\n"));
    // Nothing at all, and the begin of a handshake that promises 512 bytes.
    let beginnings: [&[u8]; 2] = [b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"];
    let trust = Trust::of(&authority.file);
    let time = slowest_scrape(secured.address(), Some(&trust), &beginnings);
    assert!(time < BOUND, "{time:?}");
}
