//! A/B traffic with a known truth, for the demo, for tests and for trying out dashboards.
//!
//! A [`World`] defines who comes ([`population`]), their arms ([`design`], [`assignment`]) and the lists they are shown
//! ([`lists`]). [`model`] defines click probabilities, [`truth`] derives the true metrics, [`traffic`] draws events, and
//! [`driver`] and [`output`] carry them to Kafka or to a file. The same seed and settings give the same bytes on every
//! machine.

pub mod assignment;
mod day;
pub mod design;
pub mod draft;
pub mod driver;
mod heartbeat;
pub mod lists;
pub mod model;
pub mod noise;
pub mod output;
mod pace;
pub mod population;
pub mod progress;
pub mod random;
pub mod record;
pub mod traffic;
pub mod truth;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use abgauge_core::nouns::number_of;
use anyhow::{Result, bail};

pub use self::design::Design;
pub use self::draft::RecordKind;
pub use self::driver::{Driver, TrafficTopics};
pub use self::lists::Lengths;
pub use self::model::World;
pub use self::noise::Noise;
pub use self::population::{Activity, Population};
pub use self::record::SimulatedRecord;
pub use self::traffic::{Traffic, TrafficSettings};
pub use self::truth::Truth;
use crate::clock::Clock;
use crate::settings::{Properties, TopicKey};

/// Options of `abgauge simulate`.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// Kafka's address. Either this or `output` is set.
    pub brokers: Option<String>,
    /// Properties passed through to librdkafka.
    pub properties: Properties,
    /// File, or `-` for standard output: JSON lines, written as fast as possible.
    pub output: Option<PathBuf>,
    pub topics: TrafficTopics,
    /// Creates missing topics with `partitions` partitions.
    pub create_topics: bool,
    /// File to write while Kafka accepts the records.
    pub heartbeat: Option<PathBuf>,
    pub partitions: usize,
    /// Lists per second of wall time.
    pub rate: f64,
    /// Seconds of event time per second of wall time.
    pub speed: f64,
    /// Wall time, or `None` to run until stopped.
    pub duration: Option<Duration>,
    pub seed: u64,
    pub world: World,
    /// Varies the rate with the hour of the day (UTC).
    pub diurnal: bool,
    pub key: TopicKey,
    /// Event time of the first list, Unix ms. The default for Kafka lets traffic end now, or start now at speed 1. The
    /// default for a file is a fixed day, so that it is reproducible.
    pub start_ms: Option<i64>,
}

/// Range of event times, Unix ms: September 2001 to November 2286. Events of other times are invalid.
pub const EVENT_TIMES_MS: std::ops::Range<i64> = 1_000_000_000_000..10_000_000_000_000;

/// Lowest number of lists per second of event time: one per year.
const LOWEST_RATE: f64 = 1.0 / (365.0 * 86_400.0);

/// 2025-11-20 00:00:00 UTC.
const FILE_START_MS: i64 = 1_763_596_800_000;

/// Runs until the duration is over or `cancel` is set.
///
/// # Errors
/// Options contradict each other, a file cannot be written, or Kafka refuses or does not answer.
pub fn simulate(options: &SimulateOptions, cancel: &AtomicBool) -> Result<Summary> {
    let settings = settings(options, Clock::system().now_ms())?;
    let traffic = Traffic::new(settings);
    match (&options.brokers, &options.output) {
        (Some(brokers), None) => output::to_kafka(options, brokers, traffic, cancel),
        (None, Some(path)) => output::to_file(path, traffic, cancel),
        (None, None) => {
            bail!("nowhere to write to: give --brokers HOST:PORT, or --output FILE (- for standard output)")
        }
        (Some(_), Some(_)) => bail!("--brokers and --output exclude each other: give one of them"),
    }
}

fn settings(options: &SimulateOptions, now_ms: i64) -> Result<TrafficSettings> {
    let SimulateOptions { rate, speed, .. } = *options;
    if !(rate > 0.0 && rate <= 1e6) {
        bail!("--rate must be above 0 and at most 1000000 lists per second, not {rate}");
    }
    if !(speed > 0.0 && speed <= 1e6) {
        bail!("--speed must be above 0 and at most 1000000, not {speed}");
    }
    // The rate is per second of wall time, but traffic is drawn in event time.
    let lists_per_second = rate / speed;
    if lists_per_second < LOWEST_RATE {
        bail!(
            "--rate {rate} at --speed {speed} is less than one list per year of event time: raise --rate or lower --speed"
        );
    }
    let to_file = options.output.is_some();
    let duration_ms = options.duration.map(|wall| event_ms(wall, speed));
    let start_ms = match (options.start_ms, duration_ms) {
        (Some(start), _) => start,
        (None, _) if to_file => FILE_START_MS,
        // At the speed of the clock or below, event time never runs ahead of it.
        (None, _) if speed <= 1.0 => now_ms,
        (None, Some(duration)) => now_ms - duration,
        (None, None) => {
            bail!("a --speed above 1 runs ahead of the clock: give --duration, to end at now, or --start")
        }
    };
    check_times(start_ms, duration_ms.unwrap_or(0), speed)?;
    Ok(TrafficSettings {
        duration_ms,
        key: options.key,
        with_type: to_file || options.topics.served == options.topics.clicks,
        world: options.world.clone(),
        diurnal: options.diurnal,
        ..TrafficSettings::new(options.seed, lists_per_second, start_ms)
    })
}

/// Checks that all events of a simulation are valid.
///
/// # Errors
/// If event time leaves the range of valid times. The error names the options.
pub fn check_times(start_ms: i64, duration_ms: i64, speed: f64) -> Result<()> {
    let ends = [start_ms, start_ms.saturating_add(duration_ms)];
    if !ends.iter().all(|end| EVENT_TIMES_MS.contains(end)) {
        bail!(
            "with --speed {speed}, --duration goes beyond the range of valid event times, September 2001 to November 2286: lower one \
             of them"
        );
    }
    Ok(())
}

/// Returns the event time that passes in `wall`.
fn event_ms(wall: Duration, speed: f64) -> i64 {
    (wall.as_secs_f64() * speed * 1000.0) as i64
}

/// Records written, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    by_kind: [u64; RecordKind::ALL.len()],
}

impl Summary {
    fn count(&mut self, kind: RecordKind) {
        self.by_kind[kind as usize] += 1;
    }

    pub fn of(&self, kind: RecordKind) -> u64 {
        self.by_kind[kind as usize]
    }

    pub fn records(&self) -> u64 {
        self.by_kind.iter().sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [lists, clicks] = [RecordKind::List, RecordKind::Click].map(|kind| self.of(kind));
        let noise = self.records() - lists - clicks;
        let (lists, clicks) = (number_of(lists, "list"), number_of(clicks, "click"));
        write!(f, "{lists}, {clicks}, {} of noise", number_of(noise, "record"))
    }
}
