//! Cost of a scrape of 300,000 series, and effect of one scrape per second on ingest.
//!
//! A ready daemon is stopped while a backlog is produced, and reads it once resumed. Its progress is read once at the end of
//! a turn, since every scrape covers all series.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::stream::{Shape, Stream};
use crate::common::summary::Summary;
use crate::figure::Figure;
use crate::load::{self, QUICK_JOIN, Topics};
use crate::process::cpu_ns;
use crate::reading::{counted, stop};
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::support::wait;

/// Number of arms, more than enough to fill a scrape of the default `max_series`.
const N_ARMS: usize = 1_000;
const N_SERIES: usize = 300_000;
/// Number of lists in a backlog.
const BACKLOG: u64 = 2_500_000;
/// Settings with which quiet topics settle soon, and the group keeps a member that is stopped for long.
const MORE: &str = "idle_after = \"5s\"\n[kafka.properties]\n\"session.timeout.ms\" = 300000\n";
const N_SCRAPES: usize = 9;
const EVERY: Duration = Duration::from_secs(1);
/// Share of the time for a backlog after which a turn ends.
const SHARE: f64 = 0.8;

pub fn run(kafka: &Kafka, n_rounds: usize) -> Vec<Figure> {
    // Records of a turn are deleted in one of the next turns.
    let topics = Topics::short_lived(kafka, 512 << 20);
    let mut daemon = Daemon::run(&(topics.config(kafka) + QUICK_JOIN + MORE));
    daemon.wait_until_ready();
    let mut ingest = Ingest {
        kafka,
        topics,
        shape: Shape {
            mean_delay_ms: 100.0,
            ..Shape::with_arms(N_ARMS)
        },
        daemon,
        turn: Duration::ZERO,
    };
    ingest.calibrate();
    let n_series = ingest.n_series();
    let [plain_ms, gzip_ms] = ["identity", "gzip"].map(|encoding| ingest.scrapes(encoding));
    println!("\nrecords per second\n| round | not scraped | scraped every second |\n|---|---|---|");
    let rounds: Vec<[f64; 2]> = (1..=n_rounds)
        .map(|round| {
            let [without, with] = ingest.round(round);
            println!("| {round} | {without:.0} | {with:.0} |");
            [without, with]
        })
        .collect();
    stop(ingest.daemon);
    ingest.topics.delete(kafka);
    let ratio = Summary::of(rounds.iter().map(|[without, with]| with / without));
    vec![
        Figure::beside("scrape: series", n_series),
        Figure::at_most(
            "CPU of a scrape, ms",
            plain_ms.median,
            100.0,
            format!("{plain_ms:.1}"),
        ),
        Figure::beside("CPU of a scrape with gzip, ms", format!("{gzip_ms:.1}")),
        Figure::at_least(
            "ingest throughput scraped every second ÷ not scraped",
            ratio.median,
            0.95,
            ratio,
        ),
    ]
}

struct Ingest<'a> {
    kafka: &'a Kafka,
    topics: Topics,
    shape: Shape,
    daemon: Daemon,
    /// Duration of a turn.
    turn: Duration,
}

impl Ingest<'_> {
    /// Lets the daemon read one backlog to its end, which determines the duration of a turn.
    fn calibrate(&mut self) {
        self.produce();
        let start = Instant::now();
        self.finish();
        self.turn = start.elapsed().mul_f64(SHARE);
    }

    /// Returns the number of series in a full scrape.
    fn n_series(&self) -> usize {
        wait::until("a full scrape", wait::LONG, || {
            let n_series = n_series(&self.daemon.get("/metrics").body);
            (n_series >= N_SERIES * 9 / 10).then_some(n_series)
        })
    }

    /// Returns the daemon's CPU ms for a scrape while it has little else to do.
    fn scrapes(&self, encoding: &str) -> Summary {
        let costs = (0..N_SCRAPES).map(|_| {
            let before = cpu_ns(self.daemon.pid());
            self.scrape(encoding);
            let cpu_ms = (cpu_ns(self.daemon.pid()) - before) as f64 / 1e6;
            // The pause keeps a rendering from being shared by two scrapes.
            sleep(EVERY);
            cpu_ms
        });
        Summary::of(costs.collect::<Vec<_>>())
    }

    /// Reads a scrape and discards it. A real scraper is on another machine, so its work on tens of megabytes should not use
    /// this machine's two cores.
    fn scrape(&self, encoding: &str) {
        let address = self.daemon.address();
        let mut connection = TcpStream::connect(address).expect("the daemon listens");
        let head = format!(
            "GET /metrics HTTP/1.1\r\nHost: {address}\r\nAccept-Encoding: {encoding}\r\nConnection: close\r\n\r\n"
        );
        connection.write_all(head.as_bytes()).expect("a request");
        let mut buffer = vec![0; 256 << 10];
        let mut n_bytes = 0;
        loop {
            match connection.read(&mut buffer).expect("an answer") {
                0 => break,
                n => n_bytes += n,
            }
        }
        assert!(n_bytes > N_SERIES, "a full scrape: {n_bytes} bytes");
    }

    /// Returns records per second without and with scrapes. The order alternates between rounds.
    fn round(&mut self, round: usize) -> [f64; 2] {
        let with_first = round.is_multiple_of(2);
        let first = self.turn(with_first);
        let second = self.turn(!with_first);
        match with_first {
            true => [second, first],
            false => [first, second],
        }
    }

    /// Returns the records per second of one turn. A turn that outlasts its backlog is repeated with a shorter duration.
    fn turn(&mut self, scraped: bool) -> f64 {
        loop {
            let before = self.topics.n_records();
            self.produce();
            let start = Instant::now();
            self.scrape_until(start, scraped);
            let n_read = self.n_read() - before;
            let seconds = start.elapsed().as_secs_f64();
            if before + n_read < self.topics.n_records() {
                self.finish();
                return n_read as f64 / seconds;
            }
            self.turn = self.turn.mul_f64(SHARE);
        }
    }

    /// Waits until the turn ends, with a scrape every second if `scraped`.
    fn scrape_until(&self, start: Instant, scraped: bool) {
        let mut next = EVERY / 2;
        while scraped && next < self.turn {
            sleep(next.saturating_sub(start.elapsed()));
            self.scrape("identity");
            next += EVERY;
        }
        sleep(self.turn.saturating_sub(start.elapsed()));
    }

    fn n_read(&self) -> u64 {
        counted(&self.daemon, "abgauge_records_total", "")
    }

    /// Produces a backlog while the daemon is stopped, and resumes the daemon.
    fn produce(&mut self) {
        self.daemon.signal(libc::SIGSTOP);
        // The backlog spans a few seconds from now on: later than the previous one, and never in the daemon's future.
        let stream = Stream {
            n_lists: BACKLOG,
            start_ms: load::now_ms(),
            span_ms: 2_000,
            click_share: 0.2,
        };
        self.topics.append(self.kafka, &stream, &self.shape);
        self.daemon.signal(libc::SIGCONT);
    }

    fn finish(&mut self) {
        let n_sent = self.topics.n_records();
        wait::until("the backlog to be read", wait::LONG, || {
            (self.n_read() == n_sent).then_some(())
        });
    }
}

fn n_series(body: &str) -> usize {
    body.lines().filter(|line| !line.starts_with('#')).count()
}
