//! Counters and gauges about the daemon itself in one registry, and its readiness.
//!
//! A gauge without a known value has no series. A counter whose labels are known in advance starts at 0, so that its rate
//! is right from the first event.

mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use abgauge_core::engine::event::{Reason, Side};
use abgauge_core::engine::outcome::{ClickResult, Counts, Outcome};
use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
#[cfg(target_os = "linux")]
use prometheus::process_collector::ProcessCollector;
use prometheus::{
    Encoder, Gauge, GaugeVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};
use serde::Serialize;

use self::stored::StoredGauges;
pub use self::stored::{Restore, StoredState, StoredStatus};

/// Telemetry shared by all modules. Every method may be called from any thread.
pub struct Telemetry {
    registry: Registry,
    version: String,
    /// Names by `Side as usize`, equal if one topic carries both kinds of event.
    topics: [String; 2],
    records: [[IntCounter; Outcome::OF_EVENTS.len()]; 2],
    /// Family for records with several events.
    records_family: IntCounterVec,
    /// Family that is shown from the first record with several events on.
    events_family: IntCounterVec,
    events: [[IntCounter; Outcome::OF_EVENTS.len()]; 2],
    shows_events: Once,
    invalid: [[IntCounter; Reason::ALL.len()]; 2],
    excess: IntGaugeVec,
    float_times: IntGaugeVec,
    click_results: [IntCounter; ClickResult::ALL.len()],
    conflicting_lists: IntCounter,
    repeated_items: IntCounter,
    skipped_elements: IntCounter,
    shared_id_lists: IntCounter,
    cut_clicks: IntCounter,
    bad_arms: IntCounterVec,
    rebalances: IntCounter,
    pair_restarts: IntCounter,
    key_findings: IntCounterVec,
    dead_letters: [IntCounter; DeadLetter::ALL.len()],
    http_refused: [IntCounter; HttpRefusal::ALL.len()],
    http_certificate_expiry: OptionalGauge,
    webhook_notices: [IntCounter; WebhookResult::ALL.len()],
    webhook_waiting: IntGauge,
    log_lines_lost: IntCounter,
    clicks_waiting: IntGauge,
    open_lists: IntGauge,
    state_bytes: IntGauge,
    state_max_bytes: OptionalGauge,
    partitions_owned: IntGauge,
    exact: IntGauge,
    ready: IntGauge,
    lag: IntGaugeVec,
    watermark_delay: GaugeVec,
    event_ahead: GaugeVec,
    open_transaction_since: GaugeVec,
    frontier: GaugeVec,
    global_behind: OptionalGauge,
    held: IntGaugeVec,
    settle_delay: OptionalGauge,
    since: OptionalGauge,
    catalog_items: OptionalGauge,
    catalog_loaded: OptionalGauge,
    catalog_reload_failed: OptionalGauge,
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

/// Kind of record that should be rare, as in the label `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// Unreadable records.
    Invalid,
    /// Late records and records of a settled slot.
    Late,
    Future,
    Duplicate,
    /// Clicks without a list.
    Unmatched,
}

impl Excess {
    pub const ALL: [Excess; 5] = [
        Excess::Invalid,
        Excess::Late,
        Excess::Future,
        Excess::Duplicate,
        Excess::Unmatched,
    ];

    /// Returns the value of the label `of`.
    pub fn name(self) -> &'static str {
        match self {
            Excess::Invalid => "invalid",
            Excess::Late => "late",
            Excess::Future => "future",
            Excess::Duplicate => "duplicate",
            Excess::Unmatched => "unmatched",
        }
    }
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

/// Fate of an unreadable record on its way to the dead-letter topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetter {
    /// Acknowledged by the broker.
    Delivered,
    /// Refused by the broker, or timed out.
    Failed,
    /// Discarded because too many were in flight already.
    Dropped,
}

impl DeadLetter {
    pub const ALL: [DeadLetter; 3] = [DeadLetter::Delivered, DeadLetter::Failed, DeadLetter::Dropped];

    /// Returns the value of the label `result`.
    pub fn name(self) -> &'static str {
        match self {
            DeadLetter::Delivered => "delivered",
            DeadLetter::Failed => "failed",
            DeadLetter::Dropped => "dropped",
        }
    }
}

/// Result of an attempt to call the webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookResult {
    /// Answered with success.
    Sent,
    /// Failed, to be tried again.
    Failed,
}

impl WebhookResult {
    pub const ALL: [WebhookResult; 2] = [WebhookResult::Sent, WebhookResult::Failed];

    /// Returns the value of the label `result`.
    pub fn name(self) -> &'static str {
        match self {
            WebhookResult::Sent => "sent",
            WebhookResult::Failed => "failed",
        }
    }
}

/// Reason why the HTTP server refused a request or a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpRefusal {
    /// Neither a token nor a password. A browser's first request has none.
    NoCredentials,
    WrongCredentials,
    TlsHandshake,
    /// Bytes that are not HTTP.
    Malformed,
    /// Client that did not finish its request or read its answer in time.
    TooSlow,
    /// Connection that gave up its slot to another one before it had sent a complete request.
    NoSlot,
    /// Client that did not read its answer while another connection needed the slot or the memory.
    Stalled,
    /// Password that was not checked because too many arrived.
    TooManyPasswords,
    /// Request for a host that is not served.
    ForeignHost,
}

impl HttpRefusal {
    pub const ALL: [HttpRefusal; 9] = [
        HttpRefusal::NoCredentials,
        HttpRefusal::WrongCredentials,
        HttpRefusal::TlsHandshake,
        HttpRefusal::Malformed,
        HttpRefusal::TooSlow,
        HttpRefusal::NoSlot,
        HttpRefusal::Stalled,
        HttpRefusal::TooManyPasswords,
        HttpRefusal::ForeignHost,
    ];

    /// Returns the value of the label `reason`.
    pub fn name(self) -> &'static str {
        match self {
            HttpRefusal::NoCredentials => "no_credentials",
            HttpRefusal::WrongCredentials => "wrong_credentials",
            HttpRefusal::TlsHandshake => "tls_handshake",
            HttpRefusal::Malformed => "malformed",
            HttpRefusal::TooSlow => "too_slow",
            HttpRefusal::NoSlot => "no_slot",
            HttpRefusal::Stalled => "stalled",
            HttpRefusal::TooManyPasswords => "too_many_passwords",
            HttpRefusal::ForeignHost => "foreign_host",
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
        let records = counters(
            &registry,
            "abgauge_records_total",
            "Records read, by outcome.",
            &["topic", "outcome"],
        );
        let events_family = IntCounterVec::new(
            Opts::new(
                "abgauge_events_total",
                "Events read, by outcome. Exported once a record has several events.",
            ),
            &["topic", "outcome"],
        );
        let events_family = events_family.expect("names and labels are valid");
        let invalid = counters(
            &registry,
            "abgauge_invalid_records_total",
            "Records that could not be decoded, by the first reason that applies.",
            &["topic", "reason"],
        );
        let click_results = counters(
            &registry,
            "abgauge_click_results_total",
            "Accepted clicks, by result.",
            &["result"],
        );
        let dead_letters = counters(
            &registry,
            "abgauge_dead_letters_total",
            "Unreadable records sent to the dead-letter topic, by result.",
            &["result"],
        );
        let http_refused = counters(
            &registry,
            "abgauge_http_refused_total",
            "Requests and connections refused by the HTTP server.",
            &["reason"],
        );
        let webhook_notices = counters(
            &registry,
            "abgauge_webhook_notices_total",
            "Attempts to call the webhook about an arm's change of state, by result. Failed attempts are retried.",
            &["result"],
        );
        family(
            &registry,
            IntGaugeVec::new,
            "abgauge_build_info",
            "Version of this program.",
            &["version"],
        )
        .with_label_values(&[version])
        .set(1);

        let telemetry = Telemetry {
            version: version.to_owned(),
            records: outcomes(&records, &topics),
            events: outcomes(&events_family, &topics),
            records_family: records,
            events_family,
            shows_events: Once::new(),
            invalid: Side::BOTH.map(|side| {
                Reason::ALL.map(|reason| invalid.with_label_values(&[&*topics[side as usize], reason.name()]))
            }),
            excess: family(
                &registry,
                IntGaugeVec::new,
                "abgauge_share_exceeded",
                "1 while the recent share of invalid, late, future or duplicate records, or of unmatched clicks, exceeds its setting in [limits], else 0.",
                &["topic", "of"],
            ),
            float_times: family(
                &registry,
                IntGaugeVec::new,
                "abgauge_float_times",
                "1 while most recent event times of a topic are multiples of 131,072 ms, like 32-bit floats, else 0.",
                &["topic"],
            ),
            bad_arms: counters(
                &registry,
                "abgauge_bad_arms_total",
                "Lists left out of this experiment because their arm is invalid.",
                &["experiment"],
            ),
            click_results: ClickResult::ALL.map(|result| click_results.with_label_values(&[result.name()])),
            dead_letters: DeadLetter::ALL.map(|result| dead_letters.with_label_values(&[result.name()])),
            http_refused: HttpRefusal::ALL.map(|reason| http_refused.with_label_values(&[reason.name()])),
            http_certificate_expiry: OptionalGauge::new(
                &registry,
                "abgauge_http_certificate_expiry_timestamp_seconds",
                "When the certificate of the HTTP server expires.",
            ),
            webhook_notices: WebhookResult::ALL
                .map(|result| webhook_notices.with_label_values(&[result.name()])),
            webhook_waiting: gauge(
                &registry,
                "abgauge_webhook_waiting",
                "Arms with a change of state that the webhook has not accepted yet.",
            ),
            log_lines_lost: counter(
                &registry,
                "abgauge_log_lines_lost_total",
                "Log lines that could not be written to standard error.",
            ),
            conflicting_lists: counter(
                &registry,
                "abgauge_conflicting_lists_total",
                "Copies of a list that show other items or arms than the list that counts.",
            ),
            repeated_items: counter(
                &registry,
                "abgauge_repeated_items_total",
                "Positions of accepted lists that repeat an item from a higher rank.",
            ),
            skipped_elements: counter(
                &registry,
                "abgauge_skipped_elements_total",
                "Elements of lists that are not items and were skipped because of events.served.skip_others.",
            ),
            shared_id_lists: counter(
                &registry,
                "abgauge_shared_id_lists_total",
                "Lists that share their request id with very many others. Their producer does not give each list an id of its own.",
            ),
            cut_clicks: counter(
                &registry,
                "abgauge_clicks_cut_total",
                "Clicks that match more lists than join.max_lists_per_click. Each counts only for the lists with the lowest offsets.",
            ),
            rebalances: counter(
                &registry,
                "abgauge_rebalances_total",
                "Changes in the set of assigned partitions.",
            ),
            pair_restarts: counter(
                &registry,
                "abgauge_pair_restarts_total",
                "Pairs of partitions rebuilt because their position was no longer in the log.",
            ),
            key_findings: counters(
                &registry,
                "abgauge_key_findings_total",
                "Sampled records by the one partitioner that puts their key into their partition: `foreign` if none does, `null` without a key. Keys that several partitioners put there are not counted.",
                &["topic", "finding"],
            ),
            clicks_waiting: gauge(
                &registry,
                "abgauge_clicks_waiting",
                "Accepted clicks waiting for their list.",
            ),
            open_lists: gauge(
                &registry,
                "abgauge_open_lists",
                "Served lists whose attribution window is still open.",
            ),
            state_bytes: gauge(
                &registry,
                "abgauge_state_bytes",
                "Memory used by open lists and waiting clicks.",
            ),
            state_max_bytes: OptionalGauge::new(
                &registry,
                "abgauge_state_max_bytes",
                "Bound on abgauge_state_bytes (limits.max_state). Records are shed beyond it.",
            ),
            partitions_owned: gauge(
                &registry,
                "abgauge_partitions_owned",
                "Pairs of partitions assigned to this process.",
            ),
            exact: gauge(
                &registry,
                "abgauge_exact",
                "1 until a record is shed or skipped, a sum overflows, or too many tallies wait ahead of time; then 0: the numbers are no longer exact.",
            ),
            ready: gauge(&registry, "abgauge_ready", "1 if restored and caught up, else 0."),
            lag: family(
                &registry,
                IntGaugeVec::new,
                "abgauge_consumer_lag_records",
                "Records between the read position and the end of the log.",
                &["topic", "partition"],
            ),
            watermark_delay: family(
                &registry,
                GaugeVec::new,
                "abgauge_watermark_delay_seconds",
                "How far the watermark of a partition is behind the live end, in event time.",
                &["topic", "partition"],
            ),
            event_ahead: family(
                &registry,
                GaugeVec::new,
                "abgauge_event_ahead_seconds",
                "How far the newest event of a partition is ahead of the clock. Shown only beyond join.lateness, when later events become late.",
                &["topic", "partition"],
            ),
            open_transaction_since: family(
                &registry,
                GaugeVec::new,
                "abgauge_open_transaction_since_timestamp_seconds",
                "Time since which an open transaction has been blocking a partition.",
                &["topic", "partition"],
            ),
            frontier: family(
                &registry,
                GaugeVec::new,
                "abgauge_frontier_timestamp_seconds",
                "Event time before which everything is settled; in the scope global, settled and stored.",
                &["partition", "scope"],
            ),
            global_behind: OptionalGauge::new(
                &registry,
                "abgauge_global_behind_seconds",
                "Seconds since the state topic was last read to its end, for the slowest partition.",
            ),
            held: family(
                &registry,
                IntGaugeVec::new,
                "abgauge_partition_held",
                "1 while a partition cannot advance because a batch is unreadable, else 0.",
                &["topic", "partition"],
            ),
            settle_delay: OptionalGauge::new(
                &registry,
                "abgauge_settle_delay_seconds",
                "How far settling is behind attribution + lateness, in event time, for the slowest pair.",
            ),
            since: OptionalGauge::new(
                &registry,
                "abgauge_since_timestamp_seconds",
                "Event time at which the window total begins.",
            ),
            catalog_items: OptionalGauge::new(
                &registry,
                "abgauge_catalog_items",
                "Items of the catalogue in use.",
            ),
            catalog_loaded: OptionalGauge::new(
                &registry,
                "abgauge_catalog_loaded_timestamp_seconds",
                "When the catalogue in use was loaded.",
            ),
            catalog_reload_failed: OptionalGauge::new(
                &registry,
                "abgauge_catalog_reload_failed",
                "1 if the last catalogue reload failed and the previous catalogue is still in use, else 0.",
            ),
            stored: StoredGauges::new(&registry),
            state: Mutex::new(TelemetryState {
                waiting_for: vec!["waiting for the first assignment of partitions".to_owned()],
                ..TelemetryState::default()
            }),
            topics,
            registry,
        };
        telemetry.exact.set(1);
        telemetry
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
        self.conflicting_lists.inc_by(counts.conflicting_lists);
        self.repeated_items.inc_by(counts.repeated_items);
        self.skipped_elements.inc_by(counts.skipped_elements);
        self.shared_id_lists.inc_by(counts.shared_id_lists);
        self.cut_clicks.inc_by(counts.cut_clicks);
        for (experiment, n) in &counts.bad_arms {
            self.bad_arms.with_label_values(&[experiment]).inc_by(*n);
        }
    }

    fn add_several(&self, side: Side, n: u64) {
        if n == 0 {
            return;
        }
        self.shows_events.call_once(|| {
            register(&self.registry, self.events_family.clone());
        });
        let labels = [&*self.topics[side as usize], Outcome::Several.name()];
        self.records_family.with_label_values(&labels).inc_by(n);
    }

    /// Counts a change of the owned partitions.
    pub fn count_rebalance(&self) {
        self.rebalances.inc();
    }

    /// Counts a pair that was dropped and rebuilt because its position had left the log.
    pub fn count_pair_restart(&self) {
        self.pair_restarts.inc();
    }

    /// Adds sampled keys with this `finding`. Creates the series even if `n` is 0.
    pub fn add_key_findings(&self, topic: &str, finding: &str, n: u64) {
        self.key_findings.with_label_values(&[topic, finding]).inc_by(n);
    }

    /// Sets whether the share of such records or clicks of a topic is above its limit.
    pub fn set_excess(&self, topic: &str, of: Excess, is_above: bool) {
        self.excess
            .with_label_values(&[topic, of.name()])
            .set(is_above.into());
    }

    /// Sets whether the times of a topic look like 32-bit floats.
    pub fn set_float_times(&self, topic: &str, are_floats: bool) {
        self.float_times
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

    /// Sets the expiry of the HTTP server's certificate, Unix ms, absent without TLS.
    pub fn set_certificate_expiry(&self, expires_ms: Option<i64>) {
        self.http_certificate_expiry.set(expires_ms.map(seconds));
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
        self.webhook_waiting.set(saturated(n_arms as u64));
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
        self.log_lines_lost
            .inc_by(n_lost.saturating_sub(self.log_lines_lost.get()));
    }

    /// Marks the numbers as inexact after a memory bound was reached. This lasts as long as the process.
    pub fn mark_inexact(&self) {
        self.exact.set(0);
    }

    /// Sets the totals over all engines.
    pub fn set_engine(&self, open_lists: u64, clicks_waiting: u64, state_bytes: u64) {
        self.open_lists.set(saturated(open_lists));
        self.clicks_waiting.set(saturated(clicks_waiting));
        self.state_bytes.set(saturated(state_bytes));
    }

    /// Sets the bound of `limits.max_state` for all engines together.
    pub fn set_state_bound(&self, max_state_bytes: u64) {
        self.state_max_bytes.set(Some(max_state_bytes as f64));
        self.state().max_state_bytes = Some(max_state_bytes);
    }

    pub fn set_partitions_owned(&self, n_pairs: usize) {
        self.partitions_owned.set(saturated(n_pairs as u64));
    }

    /// Returns the number of partitions that this instance holds.
    pub fn n_partitions_owned(&self) -> usize {
        usize::try_from(self.partitions_owned.get()).unwrap_or_default()
    }

    pub fn set_partition(&self, topic: &str, partition: i32, state: PartitionState) {
        let labels = [topic, &partition.to_string()];
        match state.lag {
            Some(lag) => self.lag.with_label_values(&labels).set(lag),
            None => forget(&self.lag, &labels),
        }
        for (gauge, value) in [
            (&self.watermark_delay, state.watermark_delay_seconds),
            (&self.event_ahead, state.event_ahead_seconds),
            (&self.open_transaction_since, state.open_transaction_since_seconds),
        ] {
            match value {
                Some(value) => gauge.with_label_values(&labels).set(value),
                None => forget(gauge, &labels),
            }
        }
        self.held.with_label_values(&labels).set(state.held.into());
        self.state()
            .partitions
            .insert((topic.to_owned(), partition), state);
    }

    /// Sets the start of the first unsettled slot of a pair, Unix ms.
    pub fn set_frontier(&self, partition: i32, frontier_ms: Option<i64>) {
        let labels = [&*partition.to_string(), OWN];
        match frontier_ms {
            Some(ms) => self.frontier.with_label_values(&labels).set(seconds(ms)),
            None => forget(&self.frontier, &labels),
        }
    }

    /// Sets the age of the global view and the frontiers it shows, by partition, Unix ms. Removes all other frontiers.
    pub fn set_global(&self, behind_seconds: Option<f64>, frontiers_ms: &[(i32, i64)]) {
        self.global_behind.set(behind_seconds);
        let partitions: BTreeSet<i32> = frontiers_ms.iter().map(|(partition, _)| *partition).collect();
        let before = std::mem::replace(&mut self.state().global_frontiers, partitions.clone());
        for gone in before.difference(&partitions) {
            forget(&self.frontier, &[&*gone.to_string(), GLOBAL]);
        }
        for (partition, ms) in frontiers_ms {
            let labels = [&*partition.to_string(), GLOBAL];
            self.frontier.with_label_values(&labels).set(seconds(*ms));
        }
    }

    /// Removes the series of this partition of both topics.
    pub fn forget_partition(&self, partition: i32) {
        let label = partition.to_string();
        for topic in &self.topics {
            forget(&self.lag, &[topic, &label]);
            for gauge in [
                &self.watermark_delay,
                &self.event_ahead,
                &self.open_transaction_since,
            ] {
                forget(gauge, &[topic, &label]);
            }
            forget(&self.held, &[topic, &label]);
        }
        forget(&self.frontier, &[&label, OWN]);
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
            self.stored.forget(*partition);
        }
        for (partition, of_pair) in &stored {
            self.stored.set(*partition, of_pair);
        }
        state.stored = stored;
    }

    pub fn set_settle_delay(&self, seconds: Option<f64>) {
        self.settle_delay.set(seconds);
        self.state().settle_delay_seconds = seconds;
    }

    /// Sets the start of `total`, Unix ms.
    pub fn set_since(&self, since_ms: Option<i64>) {
        self.since.set(since_ms.map(seconds));
    }

    /// Sets the size of the catalogue and the time since which it is in use, Unix ms.
    pub fn set_catalogue(&self, n_items: usize, taken_ms: i64) {
        self.catalog_items.set(Some(n_items as f64));
        self.catalog_loaded.set(Some(seconds(taken_ms)));
        let mut state = self.state();
        let catalog = state.catalog.get_or_insert_default();
        (catalog.items, catalog.taken_ms) = (n_items, taken_ms);
    }

    /// Sets or clears the reason why the last reload of the catalogue failed.
    pub fn set_reload_fault(&self, fault: Option<String>) {
        self.catalog_reload_failed
            .set(Some(f64::from(u8::from(fault.is_some()))));
        self.state().catalog.get_or_insert_default().reload_fault = fault;
    }

    /// Sets the reasons why the numbers are incomplete, one line each. An empty list means ready.
    pub fn set_waiting_for(&self, waiting_for: Vec<String>) {
        let mut state = self.state();
        state.was_ready |= waiting_for.is_empty();
        self.ready.set(i64::from(waiting_for.is_empty()));
        state.waiting_for = waiting_for;
    }

    /// Sets the worker's warnings.
    pub fn set_warnings(&self, warnings: Vec<Warning>) {
        self.state().warnings = warnings;
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
            exact: self.exact.get() == 1,
            records: Side::BOTH
                .map(|side| {
                    (
                        self.topics[side as usize].clone(),
                        values(Outcome::OF_EVENTS.map(Outcome::name), &self.events[side as usize]),
                    )
                })
                .into(),
            click_results: values(ClickResult::ALL.map(ClickResult::name), &self.click_results),
            clicks_waiting: self.clicks_waiting.get(),
            open_lists: self.open_lists.get(),
            state_bytes: self.state_bytes.get(),
            state_max_bytes: state.max_state_bytes,
            pair_restarts: self.pair_restarts.get(),
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

/// Gauge without a series until its value is known.
struct OptionalGauge(GaugeVec);

const NO_LABELS: [&str; 0] = [];

/// Values of the label `scope`.
const OWN: &str = "own";
const GLOBAL: &str = "global";

impl OptionalGauge {
    fn new(registry: &Registry, name: &str, help: &str) -> OptionalGauge {
        OptionalGauge(family(registry, GaugeVec::new, name, help, &NO_LABELS))
    }

    fn set(&self, value: Option<f64>) {
        match value {
            Some(value) => Gauge::set(&self.0.with_label_values(&NO_LABELS), value),
            None => forget(&self.0, &NO_LABELS),
        }
    }
}

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

fn counter(registry: &Registry, name: &str, help: &str) -> IntCounter {
    register(registry, IntCounter::new(name, help).expect("the name is valid"))
}

fn gauge(registry: &Registry, name: &str, help: &str) -> IntGauge {
    register(registry, IntGauge::new(name, help).expect("the name is valid"))
}

fn counters(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    family(registry, IntCounterVec::new, name, help, labels)
}

/// Registers a family of series that differ by labels.
fn family<F: Collector + Clone + 'static>(
    registry: &Registry,
    new: impl FnOnce(Opts, &[&str]) -> prometheus::Result<F>,
    name: &str,
    help: &str,
    labels: &[&str],
) -> F {
    register(
        registry,
        new(Opts::new(name, help), labels).expect("names and labels are valid"),
    )
}

fn register<C: Collector + Clone + 'static>(registry: &Registry, collector: C) -> C {
    registry
        .register(Box::new(collector.clone()))
        .expect("each name is registered once");
    collector
}

/// Removes a series, if it exists.
fn forget<B: MetricVecBuilder>(family: &MetricVec<B>, labels: &[&str]) {
    let _ = family.remove_label_values(labels);
}

#[cfg(test)]
mod tests;
