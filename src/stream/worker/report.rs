//! Reports of the worker: telemetry, readiness, and rate-limited log lines.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use abgauge_core::engine::Engine;
use abgauge_core::engine::event::{Reason, Side};
use abgauge_core::engine::outcome::{Counts, Outcome};
use abgauge_core::looks::GivenUp;
use abgauge_core::metrics::catalogue::Catalogue;
use tracing::{info, warn};

use super::events_ahead::{self, AheadWarning};
use super::has_any;
use super::loss_rates::{self, LossRates};
use super::pair::Pair;
use super::shard::UnreadableRecord;
use super::shards::Shards;
use super::stored::{StoredPairs, lost, malformed, not_cleaned, unsealed};
use super::unlisted;
use crate::logging::Losses;
use crate::settings::skips::{Skips, range_text};
use crate::settings::{Config, Limits};
use crate::stream::keys::{KeyAudit, KeyCounts, KeyFinding, KeySample, findings};
use crate::stream::timestamps::{TimestampFault, Timestamps};
use crate::stream::{Fault, FaultKind, TopicPartition};
use crate::telemetry::{Excess, PartitionState, Telemetry, Warning};

/// Interval at which gauges about partitions are set.
const REFRESH: Duration = Duration::from_millis(250);
/// A lasting fault, and each kind of unreadable record, is logged once in this time.
const LOG_AGAIN: Duration = Duration::from_secs(60);
/// Time for which a loss is shown on the page.
const TELL_LOSSES: Duration = Duration::from_secs(15 * 60);
/// Maximum number of different faults reported together.
const MAX_FAULTS: usize = 4;
/// Share of a topic's lists with one request id above which a producer is wrong.
const MAX_SHARED_ID: f64 = 0.01;

pub struct WorkerReport {
    pub telemetry: Arc<Telemetry>,
    topics: [String; 2],
    /// Records that are skipped already.
    skips: Skips,
    /// Warnings about settings.
    of_settings: Vec<Warning>,
    /// Warnings about data missing from the catalogue.
    of_catalogue: Vec<Warning>,
    metrics: Vec<&'static str>,
    /// Experiments whose statistics were given up.
    given_up: Vec<GivenUp>,
    max_statistics_bytes: u64,
    /// Current faults, all of one kind: an answer of another kind supersedes them.
    faults: Vec<Fault>,
    /// Faults that were logged recently, by message, and when.
    faults_logged: HashMap<String, Duration>,
    /// A fault was logged since the brokers last answered.
    fault_reported: bool,
    /// Time of the last log line about each kind of unreadable record, and the number of such records since then.
    invalid_logged: HashMap<(Side, Reason), (Duration, u64)>,
    shares: LossRates,
    limits: Limits,
    /// A topic's share is above its limit, by `Side as usize`, then `Excess as usize`.
    raised: [[bool; Excess::ALL.len()]; 2],
    /// Topics whose brokers accept records of any timestamp.
    timestamp_faults: Vec<(Side, TimestampFault)>,
    /// One per topic, once they are known.
    audits: Vec<KeyAudit>,
    findings: Vec<KeyFinding>,
    reported_keys: HashMap<String, KeyCounts>,
    waiting_for: Vec<String>,
    refreshed: Option<Duration>,
    shed: bool,
    /// Unreadable records were skipped.
    skipped: bool,
    /// The last message about each held partition, and when it was logged.
    held_logged: HashMap<i32, (String, Duration)>,
    left_out_reported: bool,
    folded_reported: bool,
    /// Time at which arms whose lists were all refused were last logged.
    unlisted_logged: Option<Duration>,
    /// A warning that the state topic is not cleaned was logged.
    not_cleaned_reported: bool,
    /// A warning about pairs that are paused because settled numbers wait to be stored was logged.
    unsealed_reported: bool,
    /// Number of losses of the state topic that were logged.
    n_lost_reported: u64,
    malformed_reported: bool,
    /// More than [`MAX_SHARED_ID`] of the records are lists that share one request id.
    ids_are_shared: bool,
    /// The times of a topic are 32-bit floats, by `Side as usize`.
    times_are_floats: [bool; 2],
    /// Settings `join.max_lists_per_click` and `limits.max_arms`.
    max_lists_per_click: u32,
    max_arms: u32,
    log_losses: LogLosses,
}

/// Log lines that could not be written.
#[derive(Debug, Default)]
struct LogLosses {
    losses: Losses,
    n_seen: u64,
    /// Time at which a loss was last seen.
    seen: Option<Duration>,
    /// Losses that the log has reported itself, once it could be written again.
    n_reported: u64,
}

/// The state of the worker in one round.
pub struct Round<'a> {
    pub shards: &'a Shards,
    pub stored: Option<&'a StoredPairs>,
    /// Time that counts suspension.
    pub lasting_ms: i64,
    pub live_end_ms: Option<i64>,
    /// Wall time, Unix ms, and steady time.
    pub now_ms: i64,
    pub steady_ms: i64,
    /// Time that a transaction may block a partition before it is reported.
    pub report_open_after_ms: i64,
    /// A + lateness.
    pub settle_after_ms: i64,
    pub exact: bool,
    /// Distinct ones.
    pub arms_folded: u64,
    pub arms_without_coverage: u64,
    /// The pairs on hold, each with its remedy.
    pub held: Vec<String>,
    pub waiting_for: Vec<String>,
}

impl WorkerReport {
    pub fn new(telemetry: Arc<Telemetry>, topics: [String; 2], config: &Config) -> WorkerReport {
        WorkerReport {
            telemetry,
            topics,
            skips: config.ingest.skips.clone(),
            of_settings: of_settings(config),
            of_catalogue: Vec::new(),
            metrics: config.measures.metrics.clone(),
            given_up: Vec::new(),
            max_statistics_bytes: config.limits.max_statistics_bytes,
            faults: Vec::new(),
            faults_logged: HashMap::new(),
            fault_reported: false,
            invalid_logged: HashMap::new(),
            shares: LossRates::new(),
            limits: config.limits.clone(),
            raised: [[false; Excess::ALL.len()]; 2],
            timestamp_faults: Vec::new(),
            audits: Vec::new(),
            findings: Vec::new(),
            reported_keys: HashMap::new(),
            waiting_for: vec!["starting".into()],
            refreshed: None,
            shed: false,
            skipped: false,
            held_logged: HashMap::new(),
            left_out_reported: false,
            folded_reported: false,
            unlisted_logged: None,
            not_cleaned_reported: false,
            unsealed_reported: false,
            n_lost_reported: 0,
            malformed_reported: false,
            ids_are_shared: false,
            times_are_floats: [false; 2],
            max_lists_per_click: config.join.max_lists_per_click,
            max_arms: config.limits.max_arms,
            log_losses: LogLosses::default(),
        }
    }

    pub fn watch_log(&mut self, losses: Losses) {
        self.log_losses.losses = losses;
    }

    pub fn counts(&mut self, counts: &Counts) {
        self.telemetry.add_counts(counts);
        self.shares.count(counts);
        if has_any(counts, Outcome::Skipped) {
            self.skipped = true;
            self.telemetry.mark_inexact();
        }
        if has_any(counts, Outcome::Shed) {
            self.telemetry.mark_inexact();
            if !self.shed {
                self.shed = true;
                warn!(
                    "records are shed because limits.max_state is reached: numbers are no longer exact; raise it, or shorten join.attribution"
                );
            }
        }
    }

    /// Sets the gauges that add up with the counters, so that one scrape sees both.
    pub fn engines<'a>(&self, engines: impl Iterator<Item = &'a Engine> + Clone) {
        self.telemetry.set_engine(
            engines.clone().map(Engine::n_open_lists).sum(),
            engines.clone().map(Engine::n_waiting).sum(),
            engines.map(Engine::state_bytes).sum(),
        );
    }

    /// A catalogue is in use from now on.
    pub fn catalogue(&mut self, catalogue: &Catalogue, now_ms: i64) {
        let lacks = catalogue.lacks(&self.metrics).into_iter();
        self.of_catalogue = lacks.map(Warning::new).collect();
        self.telemetry.set_catalogue(catalogue.len(), now_ms);
        info!(
            items = catalogue.len(),
            aspects = catalogue.n_aspects(),
            users = catalogue.n_users(),
            "loaded a catalogue"
        );
    }

    pub fn count_pair_restart(&self, partition: i32) {
        self.telemetry.count_pair_restart();
        warn!(
            partition,
            "the position is no longer in the log (retention, or a recreated topic): the pair is rebuilt as set by kafka.start; keep retention longer than the longest window + attribution"
        );
    }

    /// A partition is held. Logged once a minute while this lasts, and when more is known about it.
    pub fn held(&mut self, message: &str, partition: i32, uptime: Duration) {
        let reported = self.held_logged.get(&partition);
        // A changed message is logged at once, because it has new details.
        let is_reported = reported
            .is_some_and(|(reported, at)| reported == message && uptime.saturating_sub(*at) < LOG_AGAIN);
        if !is_reported {
            warn!(partition, "{message}");
            self.held_logged.insert(partition, (message.to_owned(), uptime));
        }
    }

    /// Notes that a partition is no longer held.
    pub fn continues(&mut self, partition: i32) {
        self.held_logged.remove(&partition);
    }

    /// An unreadable batch was skipped as configured: its contents are unknown.
    pub fn passed_over(
        &mut self,
        topic: &str,
        partition: i32,
        unreadable: i64,
        skipped: &RangeInclusive<i64>,
    ) {
        let skipped = range_text(skipped);
        warn!(
            topic,
            partition,
            "the batch at offset {unreadable} cannot be read: offsets {skipped} are skipped because of ingest.skip_records, and numbers are no longer exact"
        );
        self.continues(partition);
    }

    /// Never logs the payload: it may be private.
    pub fn unreadable(&mut self, record: &UnreadableRecord, uptime: Duration) {
        let (side, partition) = record.at;
        let kind = (side, record.reason);
        let last = self.invalid_logged.get_mut(&kind);
        if let Some((_, n_silent)) = last.filter(|(last, _)| uptime.saturating_sub(*last) < LOG_AGAIN) {
            *n_silent += 1;
            return;
        }
        let last = self.invalid_logged.insert(kind, (uptime, 0));
        let unlogged_before = last.map_or(0, |(_, n_silent)| n_silent);
        warn!(
            topic = self.topics[side as usize],
            partition,
            offset = record.offset,
            reason = record.reason.name(),
            unlogged_before,
            "skipped an unreadable record"
        );
    }

    /// A fault of the brokers. Logged once a minute while it lasts.
    pub fn fault(&mut self, fault: Fault, uptime: Duration) {
        if fault.kind == FaultKind::Silence && self.faults.iter().any(|f| f.kind == FaultKind::Barred) {
            return; // The current fault already says why they do not answer.
        }
        let words = fault_kind(&fault);
        self.faults_logged
            .retain(|_, last| uptime.saturating_sub(*last) < LOG_AGAIN);
        // Brokers that have just started may soon answer otherwise, so an uncertain fault keeps the worker from being
        // ready, but is not logged.
        if fault.kind != FaultKind::Uncertain && !self.faults_logged.contains_key(words) {
            warn!("{}", fault.message);
            self.faults_logged.insert(words.to_owned(), uptime);
            self.fault_reported = true;
        }
        // An answer of another kind supersedes the earlier faults, so only faults of this kind stay.
        self.faults.retain(|standing| standing.kind == fault.kind);
        match self
            .faults
            .iter()
            .position(|standing| fault_kind(standing) == words)
        {
            Some(same) => self.faults[same] = fault,
            None => {
                // The latest fault comes first, and the oldest is dropped.
                self.faults.truncate(MAX_FAULTS - 1);
                self.faults.insert(0, fault);
            }
        }
    }

    pub fn brokers_answer(&mut self) {
        let answered = !std::mem::take(&mut self.faults).is_empty();
        // A fault that was never logged has no end to log.
        if answered && std::mem::take(&mut self.fault_reported) {
            info!("the brokers answer");
        }
    }

    pub fn fault_messages(&self) -> impl Iterator<Item = String> {
        self.faults.iter().map(|fault| fault.message.clone())
    }

    pub fn round(&mut self, round: Round, uptime: Duration) {
        let is_other = round.waiting_for != self.waiting_for;
        let due = self
            .refreshed
            .is_none_or(|last| uptime.saturating_sub(last) >= REFRESH);
        if is_other || due {
            // Gauges come first: a reader that sees the daemon ready must see them, too.
            self.refresh(&round, uptime);
        }
        if is_other {
            if round.waiting_for.is_empty() {
                info!("ready");
            } else if self.waiting_for.is_empty() {
                warn!(waiting_for = ?round.waiting_for, "not ready");
            }
            self.telemetry.set_waiting_for(round.waiting_for.clone());
            self.waiting_for = round.waiting_for;
        }
    }

    fn refresh(&mut self, round: &Round, uptime: Duration) {
        self.refreshed = Some(uptime);
        if !round.exact {
            self.telemetry.mark_inexact();
        }
        self.set_gauges(round);
        self.look_at_keys();
        self.shares.advance(uptime);
        self.look_at_log(uptime);
        let mut particular = self.events_ahead(round);
        particular.extend(self.look_at_stored(round));
        particular.extend(self.look_at_unlisted(round, uptime));
        self.warn(round, particular);
    }

    /// Reports arms whose lists were all refused. Logged once a minute while this lasts.
    fn look_at_unlisted(&mut self, round: &Round, uptime: Duration) -> Vec<Warning> {
        let warnings = unlisted::warnings(round.shards);
        let is_due = self
            .unlisted_logged
            .is_none_or(|last| uptime.saturating_sub(last) >= LOG_AGAIN);
        if is_due && !warnings.is_empty() {
            warnings.iter().for_each(|warning| warn!("{}", warning.message));
            self.unlisted_logged = Some(uptime);
        }
        warnings
    }

    /// Reports how the state of pairs is stored.
    fn look_at_stored(&mut self, round: &Round) -> Vec<Warning> {
        let Some(stored) = round.stored else {
            return Vec::new();
        };
        let states = stored.states(round.shards, round.lasting_ms);
        let [not_cleaned, unsealed, lost] = [not_cleaned(&states), unsealed(stored, &states), lost(&states)];
        let malformed = malformed(stored.malformed_key(round.shards).as_ref());
        let n_lost = states.values().map(|state| state.lost).sum();
        // The count only grows, so each loss is logged once, however long its warning stays on the page.
        if let Some(warning) = lost.as_ref().filter(|_| n_lost > self.n_lost_reported) {
            warn!("{}", warning.message);
            self.n_lost_reported = n_lost;
        }
        let was_malformed = std::mem::replace(&mut self.malformed_reported, malformed.is_some());
        if let Some(warning) = malformed.as_ref().filter(|_| !was_malformed) {
            warn!("{}", warning.message);
        }
        if let Some(warning) = &not_cleaned
            && !std::mem::replace(&mut self.not_cleaned_reported, true)
        {
            warn!("{}", warning.message);
        }
        // This one has both edges in the log: an operator who sees partitions paused looks for the moment at which
        // reading continued.
        let was_reported = std::mem::replace(&mut self.unsealed_reported, unsealed.is_some());
        match &unsealed {
            Some(warning) if !was_reported => warn!("{}", warning.message),
            None if was_reported => {
                info!("storing final counts works again: reading of all partitions continues")
            }
            _ => {}
        }
        self.telemetry.set_stored(states);
        [not_cleaned, unsealed, lost, malformed]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Notes how topics stamp their records, as far as brokers report it. Logs changes.
    pub fn timestamps(&mut self, of: &[(Side, Timestamps)], brokers: &str, max_future_ms: i64) {
        for (side, timestamps) in of.iter().filter(|(_, timestamps)| timestamps.kind.is_some()) {
            let topic = &self.topics[*side as usize];
            let now = timestamps.judge(topic, brokers, max_future_ms);
            // The earlier fault is removed in any case: the brokers have answered for this topic, and that answer
            // replaces it.
            let place = self.timestamp_faults.iter().position(|(other, _)| other == side);
            let before = place.map(|place| self.timestamp_faults.remove(place).1);
            match (&before, &now) {
                (_, Some(now)) if before.as_ref() == Some(now) => {}
                (_, Some(now)) if now.unguarded => warn!("{now}"),
                (_, Some(now)) => info!("{now}"),
                (Some(_), None) => info!(topic, "its brokers now refuse events from the future"),
                _ => {}
            }
            self.timestamp_faults.extend(now.map(|now| (*side, now)));
        }
    }

    /// Records have moved M of their topic partition far ahead of our clock, or no longer do.
    pub fn event_ahead(&self, of: TopicPartition, pair: &Pair, now_ms: i64) {
        let Some(reported) = AheadWarning::of(of, pair) else {
            return;
        };
        let messages = events_ahead::messages(vec![reported], &self.topics, &self.skips, now_ms);
        let (topic, partition) = (&self.topics[of.0 as usize], of.1);
        for message in messages {
            warn!(topic, partition, "{message}");
        }
    }

    /// Events that make others late, the furthest ahead first.
    fn events_ahead(&self, round: &Round) -> Vec<Warning> {
        let reported = round.shards.pairs().flat_map(|(partition, pair)| {
            let of_side = move |side: Side| AheadWarning::of((side, partition), pair);
            Side::BOTH.into_iter().filter_map(of_side)
        });
        let reported: Vec<AheadWarning> = reported.collect();
        // Numbers are right until another event is late because of one that is ahead.
        let has_losses = reported.iter().any(AheadWarning::has_losses);
        let messages = events_ahead::messages(reported, &self.topics, &self.skips, round.now_ms);
        let warning = |message| match has_losses {
            true => Warning::critical(message),
            false => Warning::new(message),
        };
        let warnings = messages.into_iter().map(warning);
        warnings.map(|warning| warning.see("AbgaugeEventAhead")).collect()
    }

    fn look_at_log(&mut self, uptime: Duration) {
        let log = &mut self.log_losses;
        let n_lost = log.losses.n_lost();
        if n_lost > log.n_seen {
            (log.n_seen, log.seen) = (n_lost, Some(uptime));
            self.telemetry.set_log_lines_lost(n_lost);
        }
        log.seen = log.seen.filter(|seen| uptime.saturating_sub(*seen) < TELL_LOSSES);
        // The log can report its own losses only once it is writable again.
        if n_lost > log.n_reported && !log.losses.is_failing() {
            let lost = n_lost - std::mem::replace(&mut log.n_reported, n_lost);
            warn!(lost, "log lines are lost: cannot write to standard error");
        }
    }

    fn set_gauges(&self, round: &Round) {
        let pairs = round.shards.pairs();
        self.telemetry.set_partitions_owned(pairs.clone().count());
        let behind = |ms: i64| round.live_end_ms.map(|end| (end - ms) as f64 / 1000.0);
        for (partition, pair) in pairs.clone() {
            for log in &pair.logs {
                let ahead_ms = pair.ahead_ms(log.side, round.now_ms);
                let held_since_ms = log.held_up_since_ms(round.steady_ms, round.report_open_after_ms);
                let state = PartitionState {
                    lag: log.lag(),
                    held: pair
                        .held
                        .is_some_and(|held| held.side == log.side && held.is_reported()),
                    watermark_delay_seconds: pair.engine().watermark_ms(log.side).and_then(behind),
                    event_ahead_seconds: ahead_ms.map(|ms| ms as f64 / 1000.0),
                    // Steady time has no date, so its age is subtracted from the wall time.
                    open_transaction_since_seconds: held_since_ms
                        .map(|since_ms| (round.now_ms - (round.steady_ms - since_ms)) as f64 / 1000.0),
                };
                self.telemetry
                    .set_partition(&self.topics[log.side as usize], partition, state);
            }
            self.telemetry
                .set_frontier(partition, pair.tracker.settled_until_ms());
        }
        // The page is only as far as its slowest pair.
        let slowest_ms = pairs
            .filter_map(|(_, pair)| pair.tracker.settled_until_ms())
            .min();
        self.telemetry
            .set_settle_delay(slowest_ms.and_then(|ms| behind(ms + round.settle_after_ms)));
        let serving = round.shards.serving().map(|pair| pair.engine());
        // Every pair contributes to the totals only from the latest start on.
        let begin_ms = serving.clone().filter_map(Engine::begin_ms).max();
        let first_ms = serving
            .filter_map(|engine| engine.accepted_ms())
            .map(|(first, _)| first)
            .min();
        self.telemetry.set_since(begin_ms.or(first_ms));
    }

    pub fn set_audits(&mut self, audits: Vec<KeyAudit>) {
        self.audits = audits;
        // The new audits start at zero.
        self.reported_keys.clear();
    }

    /// Takes samples of the keys of each topic.
    pub fn keys(&mut self, of_topics: &[Vec<KeySample>]) {
        for (audit, samples) in self.audits.iter_mut().zip(of_topics) {
            audit.add(samples);
        }
    }

    fn look_at_keys(&mut self) {
        for audit in &self.audits {
            let counts = audit.counts();
            // The counters only grow, so the difference to the last report is added.
            let before = self
                .reported_keys
                .insert(audit.topic().to_owned(), counts)
                .unwrap_or_default();
            for ((finding, now), (_, before)) in counts.findings().zip(before.findings()) {
                self.telemetry
                    .add_key_findings(audit.topic(), finding, now - before);
            }
        }
        let audits: Vec<&KeyAudit> = self.audits.iter().collect();
        let findings = findings(&audits);
        for finding in findings.iter().filter(|finding| !self.findings.contains(finding)) {
            warn!("{finding}");
        }
        self.findings = findings;
    }

    /// Reports topics whose share of records that do not count, for some cause, is above its limit. Logs changes.
    fn look_at_shares(&mut self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let groups = self.sides_of_topics().iter();
        for (sides, excess) in groups.flat_map(|sides| Excess::ALL.map(|excess| (*sides, excess))) {
            let topic = &self.topics[sides[0] as usize];
            let limit = loss_rates::limit(excess, &self.limits);
            let share = self.shares.of(excess, sides).unwrap_or(0.0);
            let conflicts = self.shares.of_conflicts().unwrap_or(0.0);
            let warning = (share > limit).then(|| match excess {
                // The more specific explanation goes first: several lists under one id, or an old log.
                Excess::Duplicate if conflicts > limit && sides.contains(&Side::Served) => {
                    loss_rates::conflict_warning(topic, conflicts, limit)
                }
                Excess::Late if self.shares.is_old_log(sides) => loss_rates::old_log_warning(topic, share),
                _ => loss_rates::warning(excess, topic, share, limit),
            });
            // A topic that serves both sides is judged once, under its first side.
            let raised = &mut self.raised[sides[0] as usize][excess as usize];
            match (std::mem::replace(raised, warning.is_some()), &warning) {
                (false, Some(warning)) => warn!("{}", warning.message),
                (true, None) => info!(topic, of = excess.name(), "back within its limit"),
                _ => {}
            }
            self.telemetry.set_excess(topic, excess, warning.is_some());
            warnings.extend(warning);
        }
        warnings
    }

    /// Reports topics whose times went through a 32-bit float. Logs changes.
    fn look_at_times(&mut self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for sides in self.sides_of_topics() {
            let topic = &self.topics[sides[0] as usize];
            let warning = self.shares.float_times(sides).warning("events");
            let warning = warning.map(|text| format!("topic `{topic}`: {text}"));
            let are_floats = &mut self.times_are_floats[sides[0] as usize];
            match (std::mem::replace(are_floats, warning.is_some()), &warning) {
                (false, Some(warning)) => warn!("{warning}"),
                (true, None) => info!(topic, "times are no longer like 32-bit floats"),
                _ => {}
            }
            self.telemetry.set_float_times(topic, warning.is_some());
            warnings.extend(warning.map(|text| Warning::critical(text).see("AbgaugeLateRecords")));
        }
        warnings
    }

    /// The sides of each topic.
    fn sides_of_topics(&self) -> &'static [&'static [Side]] {
        let is_one_topic = self.topics[0] == self.topics[1];
        if is_one_topic {
            &[&Side::BOTH]
        } else {
            &[&[Side::Served], &[Side::Clicks]]
        }
    }

    /// Reports that many lists share one request id, and how their clicks count. Logs changes.
    fn look_at_shared_ids(&mut self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let topic = &self.topics[Side::Served as usize];
        let share = self.shares.of_shared_id().unwrap_or(0.0);
        let is_above = share > MAX_SHARED_ID;
        let warning = format!(
            "topic `{topic}`: {:.1}% of the records of the last minutes are lists that share one request id: in a slot they count as one list, and a click counts for the lists of many slots: let the producer give each list its own id",
            100.0 * share,
        );
        // The edge is logged, but the warning is made in each round, because its share changes.
        match (std::mem::replace(&mut self.ids_are_shared, is_above), is_above) {
            (false, true) => warn!("{warning}"),
            (true, false) => info!(topic, "lists have their own request ids again"),
            _ => {}
        }
        warnings.extend(is_above.then(|| Warning::new(warning)));
        let n_cut = self.shares.n_cut();
        if n_cut > 0 {
            warnings.push(Warning::new(format!(
                "{n_cut} clicks of the last minutes match more than join.max_lists_per_click ({}) lists of their request id, and count only for the first of these: let the producer give each list its own id, or raise it",
                self.max_lists_per_click
            )));
        }
        let see = |warning: Warning| warning.see("AbgaugeSharedRequestId");
        warnings.into_iter().map(see).collect()
    }

    /// Statistics of an experiment were given up.
    pub fn given_up(&mut self, given_up: GivenUp) {
        self.given_up.push(given_up);
    }

    fn of_given_up(&self, given_up: &GivenUp) -> Warning {
        let reached = format!(
            "limits.max_statistics ({} MiB) is reached; raise it, or configure fewer experiments or metrics, and restart",
            self.max_statistics_bytes >> 20
        );
        match given_up {
            GivenUp::Window(experiment) => Warning::new(format!(
                "intervals of experiment `{experiment}` in its window were dropped, and alerts based on them are silent: {reached}"
            )),
            GivenUp::Experiment(experiment) => Warning::critical(format!(
                "statistics of experiment `{experiment}` have stopped: {reached}"
            )),
        }
    }

    /// Reports problems that an operator should fix although numbers are shown.
    fn warn(&mut self, round: &Round, particular: Vec<Warning>) {
        let arms_without_coverage = round.arms_without_coverage;
        let mut warnings = self.of_settings.clone();
        warnings.extend_from_slice(&self.of_catalogue);
        let of_keys = |finding: &KeyFinding| {
            let message = finding.to_string();
            match finding {
                KeyFinding::Different { .. } | KeyFinding::Mixed { .. } => {
                    Warning::critical(message).see("AbgaugePartitionersDiffer")
                }
                KeyFinding::NoKeys { .. } => Warning::critical(message).see("AbgaugeMisplacedKeys"),
                // A custom partitioner that both topics use is harmless.
                KeyFinding::Foreign { .. } => Warning::new(message).see("AbgaugeMisplacedKeys"),
            }
        };
        warnings.extend(self.findings.iter().map(of_keys));
        warnings.extend(particular);
        // Refused batches change no shown number. The log and `check` name them.
        let unguarded = self.timestamp_faults.iter().filter(|(_, fault)| fault.unguarded);
        warnings.extend(unguarded.map(|(_, fault)| Warning::new(fault.to_string()).see("AbgaugeEventAhead")));
        if self.shed {
            let message = "limits.max_state was reached and records were shed: numbers are no longer exact";
            warnings.push(Warning::critical(message).see("AbgaugeRecordsShed"));
        }
        if self.skipped {
            let message = "records were skipped because of ingest.skip_records: numbers are not exact, as long as a start reads back to them";
            warnings.push(Warning::new(message).see("AbgaugeExactnessLost"));
        }
        let held = |message: &String| Warning::critical(message).see("AbgaugePartitionHeld");
        warnings.extend(round.held.iter().map(held));
        warnings.extend(self.look_at_shares());
        warnings.extend(self.look_at_times());
        warnings.extend(self.look_at_shared_ids());
        if round.arms_folded > 0 {
            let warning = format!(
                "limits.max_arms ({}) is reached: {} arms or more have no numbers of their own and count together as `__other__`: fix the producer if these are not your arms, otherwise raise limits.max_arms, and restart",
                self.max_arms, round.arms_folded
            );
            if !std::mem::replace(&mut self.folded_reported, true) {
                warn!("{warning}");
            }
            warnings.push(Warning::new(warning).see("AbgaugeArmsFolded"));
        }
        if arms_without_coverage > 0 {
            let warning =
                format!("limits.max_coverage is reached: arms without coverage: {arms_without_coverage}");
            if !std::mem::replace(&mut self.left_out_reported, true) {
                warn!("{warning}; raise it, or use a smaller catalogue");
            }
            warnings.push(Warning::new(warning).see("AbgaugeCoverageLeftOut"));
        }
        warnings.extend(self.given_up.iter().map(|given_up| self.of_given_up(given_up)));
        if self.log_losses.seen.is_some() {
            let warning = format!(
                "log lines that could not be written: {}; free the disk that standard error goes to, or check that its reader is running: these messages are missing in the log",
                self.log_losses.n_seen
            );
            warnings.push(Warning::new(warning).see("AbgaugeLogLinesLost"));
        }
        self.telemetry.set_warnings(warnings, round.now_ms);
    }
}

/// Legal but doubtful settings.
fn of_settings(config: &Config) -> Vec<Warning> {
    let doubts = config.doubts().into_iter().map(Warning::new);
    doubts
        .chain(config.remarks().into_iter().map(Warning::info))
        .collect()
}

/// The part of its message before the brackets, which hold the client's own varying text.
fn fault_kind(fault: &Fault) -> &str {
    fault.message.split('(').next().unwrap_or_default()
}
