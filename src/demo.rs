//! `abgauge demo`: the whole of it with nothing installed.
//!
//! An embedded broker, simulated traffic with a known truth, and the daemon as it is, on one clock that the simulator
//! drives: it advances only as far as everything up to it has been produced, so compressed time changes no number.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use console::Term;

use crate::app::{Daemon, stop_signal};
use crate::clock::Clock;
use crate::config::{self, Config, Key, Start};
use crate::engine::ranking::{CLICKS, Column, LISTS, Ranking};
use crate::export::Exporter;
use crate::kafka::embedded::Embedded;
use crate::kafka::producer::Producer;
use crate::simulate::{Driver, Settings, Topics, Traffic, Truth};
use crate::snapshot::{ArmSnapshot, View};

const N_PARTITIONS: i32 = 4;
const LINGER: Duration = Duration::from_millis(2);
/// The k that the table compares at.
const K: NonZeroU32 = NonZeroU32::new(5).expect("5 is not zero");
/// How often the table is drawn anew, and how often a line is printed where there is no terminal.
const REDRAW: Duration = Duration::from_secs(1);
const LINE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct Options {
    /// Wall time.
    pub duration: Duration,
    /// Lists per second of wall time.
    pub rate: f64,
    /// Seconds of event time per second of wall time.
    pub speed: f64,
    pub seed: u64,
    pub port: u16,
}

/// Runs to the end of the duration, or until a signal.
///
/// # Errors
/// A port that is taken, or a part that failed.
pub async fn run(options: &Options) -> anyhow::Result<()> {
    let signal = stop_signal();
    let duration_ms = (options.duration.as_secs_f64() * options.speed * 1000.0) as i64;
    let start_ms = Clock::system().now_ms() - duration_ms;
    let (clock, hand) = Clock::simulated(start_ms);
    let topics = Topics {
        served: "served".into(),
        clicks: "clicks".into(),
    };
    let broker = Embedded::start(&[&topics.served, &topics.clicks], N_PARTITIONS)?;
    let config = configuration(broker.bootstrap(), options.port)?;
    let settings = Settings {
        duration_ms: Some(duration_ms),
        ..Settings::new(options.seed, options.rate / options.speed, start_ms)
    };
    let traffic = Traffic::new(settings);
    let scene = Scene {
        truth: traffic.truth(&config.k),
        ks: config.k.clone(),
    };
    let mut daemon = Daemon::start(&config, clock)?;
    let address = daemon.address;
    let mut screen = Screen::new();
    screen.line(&format!(
        "live page  http://{address}/\nmetrics    http://{address}/metrics"
    ));

    let producer = Producer::connect(broker.bootstrap(), &config::Properties::default(), LINGER)?;
    let driver = Driver::new(traffic, producer, topics, options.speed).with_hand(hand);
    let cancel = Arc::new(AtomicBool::new(false));
    let produce = tokio::task::spawn_blocking({
        let cancel = Arc::clone(&cancel);
        move || driver.run(&cancel, |_, _| ())
    });
    let exporter = Arc::clone(&daemon.exporter);
    let show = async {
        let mut tick = tokio::time::interval(if screen.in_place { REDRAW } else { LINE });
        tick.tick().await;
        loop {
            tick.tick().await;
            screen.show(&scene, &exporter);
        }
    };
    let result = tokio::select! {
        result = produce => result.context("the simulator panicked").and_then(|result| result.map(|_| ())),
        result = signal => result,
        error = daemon.ended() => Err(error),
        () = show => Ok(()),
    };
    cancel.store(true, Ordering::Relaxed);
    if result.is_ok() {
        wait_until_read(&exporter).await;
    }
    screen.finish(&scene, &exporter);
    daemon.stop().await;
    result
}

/// The defaults, on the embedded broker: it cannot seek by time, so everything is read.
fn configuration(brokers: &str, port: u16) -> anyhow::Result<Config> {
    let set = |name: &str, value: String| (format!("ABGAUGE_{name}"), value);
    let settings = [
        set("KAFKA__BROKERS", brokers.to_owned()),
        set("HTTP__LISTEN", format!("127.0.0.1:{port}")),
    ];
    let mut config = config::load(None, settings.into_iter()).context("configure the demo")?;
    config.kafka.start = Start::Earliest;
    config.kafka.key = Key::Request;
    Ok(config)
}

/// Waits, not for long, until everything produced has been counted.
async fn wait_until_read(exporter: &Exporter) {
    let read = || {
        exporter
            .telemetry
            .status()
            .partitions
            .iter()
            .all(|partition| partition.state.lag == Some(0))
    };
    for _ in 0..40 {
        // The lag is asked for twice a second: the answer in hand may be older than the last record.
        tokio::time::sleep(Duration::from_millis(50)).await;
        if read() {
            tokio::time::sleep(Duration::from_millis(700)).await;
            if read() {
                return;
            }
        }
    }
}

/// What the measured values are compared with.
struct Scene {
    truth: Vec<Truth>,
    ks: Vec<NonZeroU32>,
}

impl Scene {
    fn truths(&self) -> BTreeMap<(&str, &str, &str), f64> {
        self.truth
            .iter()
            .map(|truth| ((truth.experiment, truth.arm, truth.key.as_str()), truth.value))
            .collect()
    }
}

/// The terminal, or the lines of a log.
struct Screen {
    term: Term,
    in_place: bool,
    /// Lines of the table that is drawn, to be drawn over.
    drawn: usize,
}

impl Screen {
    fn new() -> Screen {
        Screen {
            term: Term::stdout(),
            in_place: std::io::stdout().is_terminal(),
            drawn: 0,
        }
    }

    /// Output that nobody reads any more is no reason to stop.
    fn line(&self, text: &str) {
        let _ = self.term.write_line(text);
    }

    fn show(&mut self, scene: &Scene, exporter: &Exporter) {
        if self.in_place {
            self.redraw(&table(scene, exporter));
        } else {
            self.line(&summary(exporter));
        }
    }

    fn finish(&mut self, scene: &Scene, exporter: &Exporter) {
        self.redraw(&table(scene, exporter));
    }

    fn redraw(&mut self, text: &str) {
        if self.in_place {
            let _ = self.term.clear_last_lines(self.drawn);
        }
        self.line(text);
        self.drawn = text.lines().count();
    }
}

fn summary(exporter: &Exporter) -> String {
    let status = exporter.telemetry.status();
    let snapshot = exporter.source.snapshot(None);
    let lists = |view| -> i128 { snapshot.arms.iter().map(|arm| total(arm, view)[LISTS]).sum() };
    let until = snapshot
        .live_end_ms
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let until = until.map_or_else(|| "nothing read yet".to_owned(), |time| format!("{time:.0}"));
    format!(
        "event time {until}: {} lists counted live, {} settled (each once for each experiment), {} clicks waiting",
        lists(View::Live),
        lists(View::Settled),
        status.clicks_waiting
    )
}

/// Measured beside true values, settled lists since the start.
fn table(scene: &Scene, exporter: &Exporter) -> String {
    let snapshot = exporter.source.snapshot(None);
    let truths = scene.truths();
    let ranking = Ranking::new(&scene.ks);
    let columns: Vec<&Column> = ranking
        .columns()
        .iter()
        .filter(|column| column.k == Some(K))
        .collect();
    let mut table = crate::table::new();
    let mut header = ["experiment", "arm", "settled lists", "clicks"]
        .map(String::from)
        .to_vec();
    header.extend(
        columns
            .iter()
            .flat_map(|column| [column.key(), "true".to_owned()]),
    );
    table.set_header(header);
    for arm in &snapshot.arms {
        let sums = total(arm, View::Settled);
        let mut row = vec![arm.experiment.to_string(), arm.arm.to_string()];
        row.extend([LISTS, CLICKS].map(|column| sums[column].to_string()));
        for column in &columns {
            let key = column.key();
            let truth = truths.get(&(&*arm.experiment, &*arm.arm, key.as_str())).copied();
            row.extend([column.value(sums), truth].map(|value| match value {
                Some(value) => format!("{value:.4}"),
                None => "–".to_owned(),
            }));
        }
        table.add_row(row);
    }
    crate::table::align_numbers(&mut table, 2);
    format!("{table}\n{}", summary(exporter))
}

/// Sums since the start.
fn total(arm: &ArmSnapshot, view: View) -> &[i128] {
    let windows = &arm.sums[view as usize];
    windows.last().map_or(&[], |sums| sums)
}
