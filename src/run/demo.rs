//! `abgauge demo`: the whole system with nothing installed.
//!
//! An embedded broker, simulated traffic with a known truth, and the unmodified daemon run on one clock, which the
//! simulator drives. The clock advances only as far as everything up to it has been produced, so compressed time changes no
//! number.

mod lifts;
mod scene;
mod screen;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use self::scene::Scene;
use self::screen::Screen;
use crate::board::snapshot::Snapshot;
use crate::clock::Clock;
use crate::logging::Losses;
use crate::run::{Daemon, StopSignal};
use crate::serve::Exporter;
use crate::serve::server::BindError;
use crate::settings::{self, Config, Start, TopicKey};
use crate::stream::kafka::embedded::Embedded;
use crate::stream::kafka::producer::Producer;
use crate::telemetry::StreamStatus;
use crate::tools::simulate::{self, Driver, Summary, Traffic, TrafficSettings, TrafficTopics, World};

const N_PARTITIONS: i32 = 4;
const LINGER: Duration = Duration::from_millis(2);
/// Interval between redraws of the table, and between printed lines without a terminal.
const REDRAW: Duration = Duration::from_millis(500);
const LINE: Duration = Duration::from_secs(10);
/// Maximum number of records in flight. The embedded broker keeps 5 MiB per partition, far more than these records take.
const MAX_UNREAD: u64 = 10_000;
/// Time limit for counting the last records.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// Wall time.
    pub duration: Duration,
    /// Lists per second of wall time.
    pub rate: f64,
    /// Seconds of event time per second of wall time.
    pub speed: f64,
    pub seed: u64,
    pub world: World,
    /// Varies the rate with the hour of the day (UTC).
    pub diurnal: bool,
    pub port: u16,
}

/// Runs until the duration is over, or until a signal to `stop`.
///
/// # Errors
/// The port is taken, or a part failed.
pub async fn run(options: &DemoOptions, log: Losses, mut stop: StopSignal) -> anyhow::Result<()> {
    let duration_ms = (options.duration.as_secs_f64() * options.speed * 1000.0) as i64;
    // Event time reaches the present when the run is over.
    let start_ms = Clock::system().now_ms() - duration_ms;
    simulate::check_times(start_ms, duration_ms, options.speed)?;
    let (clock, hand) = Clock::simulated(start_ms);
    let topics = TrafficTopics {
        served: "served".into(),
        clicks: "clicks".into(),
    };
    let broker = Embedded::start(&[&topics.served, &topics.clicks], N_PARTITIONS)?;
    let config = configuration(broker.bootstrap(), options)?;
    let settings = TrafficSettings {
        duration_ms: Some(duration_ms),
        world: options.world.clone(),
        diurnal: options.diurnal,
        key: TopicKey::User,
        ..TrafficSettings::new(options.seed, options.rate / options.speed, start_ms)
    };
    let traffic = Traffic::new(settings);
    let scene = Scene::new(
        traffic.truth(&config.measures.ks),
        &config.measures,
        options.duration,
    );
    let mut daemon = Daemon::start(&config, clock, log).map_err(in_words_of_the_demo)?;
    let exporter = Arc::clone(&daemon.exporter);
    let mut screen = Screen::new();
    screen.say(&scene::introduction(options, daemon.address));

    let producer = Producer::connect(broker.bootstrap(), &settings::Properties::default(), LINGER)?;
    let driver = Driver::new(traffic, producer, topics, options.speed).with_hand(hand);
    let wall = Clock::system();
    let cancel = Arc::new(AtomicBool::new(false));
    let mut produce = tokio::task::spawn_blocking({
        let (cancel, exporter, wall) = (Arc::clone(&cancel), Arc::clone(&exporter), wall.clone());
        let duration = options.duration;
        move || {
            let is_over = || cancel.load(Ordering::Relaxed) || wall.uptime() > duration;
            driver.run(&cancel, |_, summary| wait_for_reader(summary, &exporter, is_over))
        }
    });
    let show = async {
        let mut tick = tokio::time::interval(if screen.in_place() { REDRAW } else { LINE });
        // The first tick comes at once, when there is nothing to show yet.
        tick.tick().await;
        loop {
            tick.tick().await;
            let (snapshot, status) = look(&exporter);
            if screen.in_place() {
                screen.draw(&table(&scene, &exporter, &snapshot, &status, wall.uptime()));
            } else {
                let headlines = exporter.headlines(&snapshot);
                screen.say(&scene.line(&snapshot, &headlines, &status, wall.uptime()));
            }
        }
    };
    let (produced, result) = tokio::select! {
        produced = &mut produce => (Some(produced), Ok(())),
        () = stop.received() => (None, Ok(())),
        error = daemon.ended() => (None, Err(error)),
        () = show => (None, Ok(())),
    };
    // Whatever has ended the wait, the simulator must stop before its result is taken.
    cancel.store(true, Ordering::Relaxed);
    let produced = match produced {
        Some(produced) => produced,
        None => produce.await,
    };
    let result = result.and(
        produced
            .context("the simulator panicked")
            .and_then(|result| result),
    );
    if let Ok(summary) = &result {
        wait_until_read(&exporter, summary.records()).await;
        let (snapshot, status) = look(&exporter);
        screen.draw(&table(&scene, &exporter, &snapshot, &status, wall.uptime()));
        screen.say(&scene::closing(summary.records(), &status));
    }
    daemon.stop().await;
    result.map(|_| ())
}

/// Returns the default configuration on the embedded broker, with comparisons in its experiments. The broker cannot seek by
/// time, so everything is read.
fn configuration(brokers: &str, options: &DemoOptions) -> anyhow::Result<Config> {
    let set = |name: &str, value: String| (format!("ABGAUGE_{name}"), value);
    let settings = [
        set("KAFKA__BROKERS", brokers.to_owned()),
        set("HTTP__LISTEN", format!("127.0.0.1:{}", options.port)),
    ];
    let mut config = settings::load(None, settings.into_iter()).context("configure the demo")?;
    config.kafka.start = Start::Earliest;
    config.kafka.key = TopicKey::User;
    config.experiments = lifts::asked(&options.world.design);
    config.is_demo = true;
    Ok(config)
}

/// Replaces settings in an error by the demo's options, because its user does not know the settings.
fn in_words_of_the_demo(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(BindError::InUse(address)) => {
            anyhow!(
                "{address} is in use: stop the other program, or choose another --port (0 for any free one)"
            )
        }
        Some(BindError::NotPermitted(address)) => {
            anyhow!("{address} is not permitted: choose a --port from 1024 on (0 for any free one)")
        }
        _ => error,
    }
}

fn table(
    scene: &Scene,
    exporter: &Exporter,
    snapshot: &Snapshot,
    status: &StreamStatus,
    elapsed: Duration,
) -> Vec<String> {
    let headlines = exporter.headlines(snapshot);
    scene.table(snapshot, &headlines, &exporter.looks.shown(), status, elapsed)
}

fn look(exporter: &Exporter) -> (Snapshot, StreamStatus) {
    (exporter.source.snapshot(None), exporter.telemetry.status())
}

/// Holds the simulator back while the daemon is behind, because the embedded broker drops records that it has no room for.
fn wait_for_reader(summary: &Summary, exporter: &Exporter, is_over: impl Fn() -> bool) {
    let n_unread = || {
        summary
            .records()
            .saturating_sub(n_read(&exporter.telemetry.status()))
    };
    while n_unread() > MAX_UNREAD && !is_over() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for a limited time until everything produced is counted.
async fn wait_until_read(exporter: &Exporter, n_produced: u64) {
    let all_read = async {
        while n_read(&exporter.telemetry.status()) < n_produced {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // If the time was not enough, the closing words report it.
    let _ = tokio::time::timeout(PATIENCE, all_read).await;
}

/// Returns the number of records read, whatever their outcome.
fn n_read(status: &StreamStatus) -> u64 {
    status
        .records
        .values()
        .flat_map(|outcomes| outcomes.values())
        .sum()
}
