//! Counters and gauges about the daemon itself in one registry, and its readiness.
//!
//! A gauge without a known value has no series. A counter whose labels are known in advance starts at 0, so that its rate
//! is right from the first event.

mod families;
mod labels;
mod series;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use abgauge_core::engine::event::{Reason, Side};
use abgauge_core::engine::outcome::{ClickResult, Counts, Outcome};
#[cfg(target_os = "linux")]
use prometheus::process_collector::ProcessCollector;
use prometheus::{Encoder, IntCounter, IntCounterVec, Registry, TextEncoder};
use serde::Serialize;

use self::families::Families;
pub use self::families::rows;
pub use self::labels::{DeadLetter, Excess, HttpRefusal, WebhookResult};
use self::series::set;
pub use self::series::{Kind, Series};
use self::stored::StoredGauges;
pub use self::stored::{Restore, StoredState, StoredStatus};

/// Telemetry shared by all modules. Every method may be called from any thread.
pub struct Telemetry {
    registry: Registry,
    version: String,
    /// Names by `Side as usize`, equal if one topic carries both kinds of event.
    topics: [String; 2],
    families: Families,
    records: [[IntCounter; Outcome::OF_EVENTS.len()]; 2],
    events: [[IntCounter; Outcome::OF_EVENTS.len()]; 2],
    invalid: [[IntCounter; Reason::ALL.len()]; 2],
    click_results: [IntCounter; ClickResult::ALL.len()],
    dead_letters: [IntCounter; DeadLetter::ALL.len()],
    http_refused: [IntCounter; HttpRefusal::ALL.len()],
    webhook_notices: [IntCounter; WebhookResult::ALL.len()],
    stored: StoredGauges,
    state: Mutex<TelemetryState>,
}

#[derive(Default)]
struct TelemetryState {
    waiting_for: Vec<String>,
    warnings: Vec<Warning>,
    webhook_warning: Option<Warning>,
    look_warnings: Vec<Warning>,
    was_ready: bool,
    was_restored: bool,
    catalog: Option<CatalogStatus>,
    settle_delay_seconds: Option<f64>,
    max_state_bytes: Option<u64>,
    partitions: BTreeMap<(String, i32), PartitionState>,
    stored: BTreeMap<i32, StoredState>,
    /// Partitions with a frontier in the scope `global`.
    global_frontiers: BTreeSet<i32>,
}

impl TelemetryState {
    fn warnings(&self) -> Vec<Warning> {
        self.warnings
            .iter()
            .chain(&self.webhook_warning)
            .chain(&self.look_warnings)
            .cloned()
            .collect()
    }
}

/// Delay of one partition of one topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct PartitionState {
    /// Records between the read position and the end of the log.
    pub lag: Option<i64>,
    /// Distance of its watermark behind the live end, in event time.
    pub watermark_delay_seconds: Option<f64>,
    /// Distance of its newest event ahead of our clock, if more than the lateness.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_ahead_seconds: Option<f64>,
    /// Start of the open transaction that blocks it, Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_transaction_since_seconds: Option<f64>,
    /// Set while an unreadable batch keeps it from advancing.
    pub held: bool,
}

/// Problem that the operator should fix although numbers are shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    pub severity: Severity,
    /// Sentence with the problem and its remedy.
    pub message: String,
    /// Heading in docs/runbooks.md, which the daemon serves at `/runbooks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runbook: Option<&'static str>,
    /// Wall time of the first round with this problem, Unix ms. None if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<i64>,
}

/// Severity, in the words of docs/runbooks.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Correct numbers. The problem needs attention eventually.
    Info,
    /// Numbers that are doubtful, or soon will be.
    Warning,
    /// Numbers that are missing or wrong now.
    Critical,
}

impl Warning {
    pub fn new(message: impl Into<String>) -> Warning {
        Warning {
            severity: Severity::Warning,
            message: message.into(),
            runbook: None,
            since_ms: None,
        }
    }

    pub fn info(message: impl Into<String>) -> Warning {
        Warning {
            severity: Severity::Info,
            ..Warning::new(message)
        }
    }

    pub fn critical(message: impl Into<String>) -> Warning {
        Warning {
            severity: Severity::Critical,
            ..Warning::new(message)
        }
    }

    /// Adds a runbook.
    pub fn see(self, runbook: &'static str) -> Warning {
        Warning {
            runbook: Some(runbook),
            ..self
        }
    }
}

impl Telemetry {
    /// Creates telemetry that is not ready, and exact. If both topics are the same, their counts add up under one label.
    pub fn new(served_topic: &str, clicks_topic: &str, version: &str) -> Telemetry {
        let registry = Registry::new();
        #[cfg(target_os = "linux")]
        registry
            .register(Box::new(ProcessCollector::for_self()))
            .expect("nothing else is registered yet");

        let topics = [served_topic.to_owned(), clicks_topic.to_owned()];
        let families = Families::new(&registry);
        families.build_info.with_label_values(&[version]).set(1);
        families.exact.set(1);
        Telemetry {
            version: version.to_owned(),
            records: outcomes(&families.records, &topics),
            events: outcomes(&families.events.family, &topics),
            invalid: topics.each_ref().map(|topic| {
                Reason::ALL.map(|reason| families.invalid.with_label_values(&[topic, reason.name()]))
            }),
            click_results: ClickResult::ALL
                .map(|result| families.click_results.with_label_values(&[result.name()])),
            dead_letters: DeadLetter::ALL
                .map(|result| families.dead_letters.with_label_values(&[result.name()])),
            http_refused: HttpRefusal::ALL
                .map(|reason| families.http_refused.with_label_values(&[reason.name()])),
            webhook_notices: WebhookResult::ALL
                .map(|result| families.webhook_notices.with_label_values(&[result.name()])),
            stored: StoredGauges::new(&registry),
            families,
            state: Mutex::new(TelemetryState {
                waiting_for: vec!["waiting for the first assignment of partitions".to_owned()],
                ..TelemetryState::default()
            }),
            topics,
            registry,
        }
    }

    /// Adds the counts of a batch.
    pub fn add_counts(&self, counts: &Counts) {
        for side in Side::BOTH {
            for (place, outcome) in Outcome::OF_EVENTS.into_iter().enumerate() {
                self.records[side as usize][place].inc_by(counts.outcome(side, outcome));
                self.events[side as usize][place].inc_by(counts.events(side, outcome));
            }
            self.add_several(side, counts.outcome(side, Outcome::Several));
            for (reason, counter) in Reason::ALL.into_iter().zip(&self.invalid[side as usize]) {
                counter.inc_by(counts.invalid(side, reason));
            }
        }
        for (result, counter) in ClickResult::ALL.into_iter().zip(&self.click_results) {
            counter.inc_by(counts.result(result));
        }
        self.families.conflicting_lists.inc_by(counts.conflicting_lists);
        self.families.repeated_items.inc_by(counts.repeated_items);
        self.families.skipped_elements.inc_by(counts.skipped_elements);
        self.families.shared_id_lists.inc_by(counts.shared_id_lists);
        self.families.cut_clicks.inc_by(counts.cut_clicks);
        for (experiment, n) in &counts.bad_arms {
            self.families.bad_arms.with_label_values(&[experiment]).inc_by(*n);
        }
    }

    fn add_several(&self, side: Side, n: u64) {
        if n == 0 {
            return;
        }
        self.families.events.show();
        let labels = [&*self.topics[side as usize], Outcome::Several.name()];
        self.families.records.with_label_values(&labels).inc_by(n);
    }

    /// Counts a change of the owned partitions.
    pub fn count_rebalance(&self) {
        self.families.rebalances.inc();
    }

    /// Counts a pair that was dropped and rebuilt because its position had left the log.
    pub fn count_pair_restart(&self) {
        self.families.pair_restarts.inc();
    }

    /// Adds sampled keys with this `finding`. Creates the series even if `n` is 0.
    pub fn add_key_findings(&self, topic: &str, finding: &str, n: u64) {
        self.families
            .key_findings
            .with_label_values(&[topic, finding])
            .inc_by(n);
    }

    /// Sets whether the share of such records or clicks of a topic is above its limit.
    pub fn set_excess(&self, topic: &str, of: Excess, is_above: bool) {
        self.families
            .excess
            .with_label_values(&[topic, of.name()])
            .set(is_above.into());
    }

    /// Sets whether the times of a topic look like 32-bit floats.
    pub fn set_float_times(&self, topic: &str, are_floats: bool) {
        self.families
            .float_times
            .with_label_values(&[topic])
            .set(are_floats.into());
    }

    pub fn add_dead_letters(&self, result: DeadLetter, n: u64) {
        self.dead_letters[result as usize].inc_by(n);
    }

    pub fn count_http_refusal(&self, reason: HttpRefusal) {
        self.http_refused[reason as usize].inc();
    }

    pub fn n_http_refused(&self, reason: HttpRefusal) -> u64 {
        self.http_refused[reason as usize].get()
    }

    /// Sets the address of the page. Without one the family is absent.
    pub fn set_page(&self, url: &str) {
        self.families.page_info.with_label_values(&[url]).set(1);
    }

    /// Sets the expiry of the HTTP server's certificate, Unix ms, absent without TLS.
    pub fn set_certificate_expiry(&self, expires_ms: Option<i64>) {
        self.families.http_certificate_expiry.set(expires_ms.map(seconds));
    }

    /// Counts an attempt to call the webhook.
    pub fn count_webhook_notice(&self, result: WebhookResult) {
        self.webhook_notices[result as usize].inc();
    }

    pub fn n_webhook_notices(&self, result: WebhookResult) -> u64 {
        self.webhook_notices[result as usize].get()
    }

    /// Sets the number of arms with a change that was not delivered yet.
    pub fn set_webhook_waiting(&self, n_arms: usize) {
        self.families.webhook_waiting.set(saturated(n_arms as u64));
    }

    /// Sets or clears the warning about a webhook that accepts nothing.
    pub fn set_webhook_warning(&self, warning: Option<Warning>) {
        self.state().webhook_warning = warning;
    }

    /// Sets the warnings of the latest look.
    pub fn set_look_warnings(&self, warnings: Vec<Warning>) {
        self.state().look_warnings = warnings;
    }

    /// Sets the number of log lines lost since the start.
    pub fn set_log_lines_lost(&self, n_lost: u64) {
        self.families
            .log_lines_lost
            // `n_lost` is a total, but a counter takes increments.
            .inc_by(n_lost.saturating_sub(self.families.log_lines_lost.get()));
    }

    /// Marks the numbers as inexact after a memory bound was reached. This lasts as long as the process.
    pub fn mark_inexact(&self) {
        self.families.exact.set(0);
    }

    /// Sets the totals over all engines.
    pub fn set_engine(&self, open_lists: u64, clicks_waiting: u64, state_bytes: u64) {
        self.families.open_lists.set(saturated(open_lists));
        self.families.clicks_waiting.set(saturated(clicks_waiting));
        self.families.state_bytes.set(saturated(state_bytes));
    }

    /// Sets the bound of `limits.max_state` for all engines together.
    pub fn set_state_bound(&self, max_state_bytes: u64) {
        self.families.state_max_bytes.set(Some(max_state_bytes as f64));
        self.state().max_state_bytes = Some(max_state_bytes);
    }

    pub fn set_partitions_owned(&self, n_pairs: usize) {
        self.families.partitions_owned.set(saturated(n_pairs as u64));
    }

    /// Returns the number of partitions that this instance holds.
    pub fn n_partitions_owned(&self) -> usize {
        usize::try_from(self.families.partitions_owned.get()).unwrap_or_default()
    }

    pub fn set_partition(&self, topic: &str, partition: i32, state: PartitionState) {
        self.set_partition_gauges(topic, partition, Some(state));
        self.state()
            .partitions
            .insert((topic.to_owned(), partition), state);
    }

    /// Sets the gauges of a partition of a topic. Without a state, it has none.
    fn set_partition_gauges(&self, topic: &str, partition: i32, state: Option<PartitionState>) {
        let labels = [topic, &partition.to_string()];
        let families = &self.families;
        set(&families.lag, &labels, state.and_then(|state| state.lag));
        set(&families.held, &labels, state.map(|state| state.held.into()));
        let seconds = |read: fn(PartitionState) -> Option<f64>| state.and_then(read);
        for (gauge, value) in [
            (
                &families.watermark_delay,
                seconds(|state| state.watermark_delay_seconds),
            ),
            (&families.event_ahead, seconds(|state| state.event_ahead_seconds)),
            (
                &families.open_transaction_since,
                seconds(|state| state.open_transaction_since_seconds),
            ),
        ] {
            set(gauge, &labels, value);
        }
    }

    /// Sets the start of the first unsettled slot of a pair, Unix ms.
    pub fn set_frontier(&self, partition: i32, frontier_ms: Option<i64>) {
        let labels = [&*partition.to_string(), OWN];
        set(&self.families.frontier, &labels, frontier_ms.map(seconds));
    }

    /// Sets the age of the global view and the frontiers it shows, by partition, Unix ms. Removes all other frontiers.
    pub fn set_global(&self, behind_seconds: Option<f64>, frontiers_ms: &[(i32, i64)]) {
        self.families.global_behind.set(behind_seconds);
        let partitions: BTreeSet<i32> = frontiers_ms.iter().map(|(partition, _)| *partition).collect();
        let before = std::mem::replace(&mut self.state().global_frontiers, partitions.clone());
        // A frontier that is no longer shown must not stay at its last value.
        for gone in before.difference(&partitions) {
            set(&self.families.frontier, &[&*gone.to_string(), GLOBAL], None);
        }
        for (partition, ms) in frontiers_ms {
            let labels = [&*partition.to_string(), GLOBAL];
            set(&self.families.frontier, &labels, Some(seconds(*ms)));
        }
    }

    /// Removes the series of this partition of both topics.
    pub fn forget_partition(&self, partition: i32) {
        for topic in &self.topics {
            self.set_partition_gauges(topic, partition, None);
        }
        self.set_frontier(partition, None);
        self.state()
            .partitions
            .retain(|(_, other), _| *other != partition);
    }

    /// Sets the state of storage for each pair of this process. Removes the series of all other pairs.
    pub fn set_stored(&self, stored: BTreeMap<i32, StoredState>) {
        let mut state = self.state();
        for partition in state
            .stored
            .keys()
            .filter(|partition| !stored.contains_key(partition))
        {
            self.stored.set(*partition, None);
        }
        for (partition, of_pair) in &stored {
            self.stored.set(*partition, Some(of_pair));
        }
        state.stored = stored;
    }

    pub fn set_settle_delay(&self, seconds: Option<f64>) {
        self.families.settle_delay.set(seconds);
        self.state().settle_delay_seconds = seconds;
    }

    /// Sets the start of `total`, Unix ms.
    pub fn set_since(&self, since_ms: Option<i64>) {
        self.families.since.set(since_ms.map(seconds));
    }

    /// Sets the size of the catalogue and the time since which it is in use, Unix ms.
    pub fn set_catalogue(&self, n_items: usize, taken_ms: i64) {
        self.families.catalog_items.set(Some(n_items as f64));
        self.families.catalog_loaded.set(Some(seconds(taken_ms)));
        let mut state = self.state();
        let catalog = state.catalog.get_or_insert_default();
        (catalog.items, catalog.taken_ms) = (n_items, taken_ms);
    }

    /// Sets or clears the reason why the last reload of the catalogue failed.
    pub fn set_reload_fault(&self, fault: Option<String>) {
        self.families
            .catalog_reload_failed
            .set(Some(f64::from(u8::from(fault.is_some()))));
        self.state().catalog.get_or_insert_default().reload_fault = fault;
    }

    /// Sets the reasons why the numbers are incomplete, one line each. An empty list means ready.
    pub fn set_waiting_for(&self, waiting_for: Vec<String>) {
        let mut state = self.state();
        // Never reset: once there were numbers, they stay visible while the daemon catches up again.
        state.was_ready |= waiting_for.is_empty();
        self.families.ready.set(i64::from(waiting_for.is_empty()));
        state.waiting_for = waiting_for;
    }

    /// Sets the worker's warnings. A new problem gets this wall time, Unix ms; a known one keeps its time.
    pub fn set_warnings(&self, mut warnings: Vec<Warning>, now_ms: i64) {
        let mut state = self.state();
        for warning in &mut warnings {
            // Counts in messages grow, so a problem is identified by its runbook if it has one.
            let is_same = |before: &&Warning| match warning.runbook {
                Some(runbook) => before.runbook == Some(runbook),
                None => before.message == warning.message,
            };
            let since_ms = state
                .warnings
                .iter()
                .find(is_same)
                .and_then(|before| before.since_ms);
            warning.since_ms = since_ms.or(Some(now_ms));
        }
        state.warnings = warnings;
    }

    pub fn is_ready(&self) -> bool {
        self.state().waiting_for.is_empty()
    }

    /// Returns whether the daemon has ever been ready. From then on live numbers are shown.
    pub fn was_ready(&self) -> bool {
        self.state().was_ready
    }

    /// Marks the stored state of all partitions as current: settled numbers are shown from now on, before the daemon is
    /// ready.
    pub fn note_restored(&self) {
        self.state().was_restored = true;
    }

    /// Returns whether there are numbers to show: the daemon was ready once, or the stored state of all its partitions was
    /// current.
    pub fn has_numbers(&self) -> bool {
        let state = self.state();
        state.was_ready || state.was_restored
    }

    pub fn waiting_for(&self) -> Vec<String> {
        self.state().waiting_for.clone()
    }

    /// Returns all problems that the operator should fix although numbers are shown.
    pub fn warnings(&self) -> Vec<Warning> {
        self.state().warnings()
    }

    /// Appends all series in Prometheus' text format, families sorted by name.
    pub fn render(&self, out: &mut Vec<u8>) -> anyhow::Result<()> {
        Ok(TextEncoder::new().encode(&self.registry.gather(), out)?)
    }

    /// Returns the health of the stream for the JSON API.
    pub fn status(&self) -> StreamStatus {
        let state = self.state();
        StreamStatus {
            ready: state.waiting_for.is_empty(),
            waiting_for: state.waiting_for.clone(),
            warnings: state.warnings(),
            exact: self.families.exact.get() == 1,
            records: Side::BOTH
                .map(|side| {
                    (
                        self.topics[side as usize].clone(),
                        values(Outcome::OF_EVENTS.map(Outcome::name), &self.events[side as usize]),
                    )
                })
                .into(),
            click_results: values(ClickResult::ALL.map(ClickResult::name), &self.click_results),
            clicks_waiting: self.families.clicks_waiting.get(),
            open_lists: self.families.open_lists.get(),
            state_bytes: self.families.state_bytes.get(),
            state_max_bytes: state.max_state_bytes,
            pair_restarts: self.families.pair_restarts.get(),
            settle_delay_seconds: state.settle_delay_seconds,
            catalog: state.catalog.clone(),
            partitions: state
                .partitions
                .iter()
                .map(|((topic, partition), state)| PartitionStatus {
                    topic: topic.clone(),
                    partition: *partition,
                    state: *state,
                })
                .collect(),
            stored: state
                .stored
                .iter()
                .map(|(partition, state)| StoredStatus {
                    partition: *partition,
                    state: state.clone(),
                })
                .collect(),
            version: self.version.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, TelemetryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Health of the stream in the JSON API.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamStatus {
    pub ready: bool,
    pub waiting_for: Vec<String>,
    pub warnings: Vec<Warning>,
    pub exact: bool,
    /// Number of records by topic, then outcome.
    pub records: BTreeMap<String, BTreeMap<&'static str, u64>>,
    pub click_results: BTreeMap<&'static str, u64>,
    pub clicks_waiting: i64,
    pub open_lists: i64,
    pub state_bytes: i64,
    /// Bound set by `limits.max_state`, once it is known.
    pub state_max_bytes: Option<u64>,
    /// Pairs rebuilt because their position had left the log.
    pub pair_restarts: u64,
    /// Delay of settling behind attribution + lateness, in event time, for the slowest pair.
    pub settle_delay_seconds: Option<f64>,
    /// Present with a catalogue.
    pub catalog: Option<CatalogStatus>,
    /// Partitions sorted by topic, then number.
    pub partitions: Vec<PartitionStatus>,
    /// Stored state by partition, with `[state]` only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stored: Vec<StoredStatus>,
    pub version: String,
}

/// Catalogue in use.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CatalogStatus {
    pub items: usize,
    /// Time since which it is in use, Unix ms.
    pub taken_ms: i64,
    /// Reason why the last attempt to read another one failed.
    pub reload_fault: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionStatus {
    pub topic: String,
    pub partition: i32,
    #[serde(flatten)]
    pub state: PartitionState,
}

/// Values of the label `scope`.
const OWN: &str = "own";
const GLOBAL: &str = "global";

fn values<const N: usize>(
    names: [&'static str; N],
    counters: &[IntCounter; N],
) -> BTreeMap<&'static str, u64> {
    names
        .into_iter()
        .zip(counters.iter().map(IntCounter::get))
        .collect()
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

fn saturated(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Creates counters by topic and outcome.
fn outcomes(family: &IntCounterVec, topics: &[String; 2]) -> [[IntCounter; Outcome::OF_EVENTS.len()]; 2] {
    let of = |topic: &String| {
        Outcome::OF_EVENTS.map(|outcome| family.with_label_values(&[&**topic, outcome.name()]))
    };
    topics.each_ref().map(of)
}

#[cfg(test)]
mod tests;
