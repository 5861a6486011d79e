//! What the worker says about itself: telemetry, readiness, and log lines that do not flood.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::has_shed;
use super::invalid_share::InvalidShare;
use super::pair::Pair;
use super::shard::Unreadable;
use crate::config::Config;
use crate::engine::Engine;
use crate::engine::catalogue::Catalogue;
use crate::engine::event::{Reason, Side};
use crate::engine::outcome::Counts;
use crate::ingest::keys::{Finding, KeyAudit, KeyCounts, findings};
use crate::ingest::{Fault, FaultKind};
use crate::telemetry::{PartitionState, Telemetry};

/// How often gauges about partitions are set.
const REFRESH: Duration = Duration::from_millis(250);
/// A fault that lasts, and a kind of unreadable record, are logged once in this time.
const LOG_AGAIN: Duration = Duration::from_secs(60);
/// As many different faults are told at once.
const MAX_FAULTS: usize = 4;

pub struct Report {
    telemetry: Arc<Telemetry>,
    topics: [String; 2],
    /// Legal but doubtful settings.
    doubts: Vec<String>,
    /// What is wrong, all of one kind: an answer of another kind tells what has become of the earlier ones.
    faults: Vec<Fault>,
    /// Faults that were logged lately, by what is wrong, and when.
    faults_logged: HashMap<String, Duration>,
    /// A fault was logged since the brokers last answered.
    fault_told: bool,
    invalid_logged: HashMap<(Side, Reason), LogLimit>,
    invalid_share: InvalidShare,
    /// From `limits.max_invalid_share`.
    max_invalid_share: f64,
    /// By `Side as usize`: a topic's share is above that.
    too_many_invalid: [bool; 2],
    findings: Vec<Finding>,
    reported_keys: HashMap<String, KeyCounts>,
    waiting_for: Vec<String>,
    refreshed: Option<Duration>,
    shed: bool,
    left_out_told: bool,
}

#[derive(Debug, Clone, Copy)]
struct LogLimit {
    last: Duration,
    n_silent: u64,
}

/// What a round of the worker looks at.
pub struct Progress<'a> {
    pub pairs: &'a [(i32, &'a Pair)],
    pub live_end_ms: Option<i64>,
    /// A + lateness.
    pub settle_after_ms: i64,
    pub audits: &'a [KeyAudit],
    pub exact: bool,
    pub arms_without_coverage: u64,
    pub waiting_for: Vec<String>,
}

impl Report {
    pub fn new(telemetry: Arc<Telemetry>, topics: [String; 2], config: &Config) -> Report {
        Report {
            telemetry,
            topics,
            doubts: config.warnings(),
            faults: Vec::new(),
            faults_logged: HashMap::new(),
            fault_told: false,
            invalid_logged: HashMap::new(),
            invalid_share: InvalidShare::new(),
            max_invalid_share: config.limits.max_invalid_share,
            too_many_invalid: [false; 2],
            findings: Vec::new(),
            reported_keys: HashMap::new(),
            waiting_for: vec!["the start".into()],
            refreshed: None,
            shed: false,
            left_out_told: false,
        }
    }

    pub fn counts(&mut self, counts: &Counts) {
        self.telemetry.add_counts(counts);
        self.invalid_share.count(counts);
        if has_shed(counts) {
            self.telemetry.lost_exactness();
            if !self.shed {
                self.shed = true;
                warn!(
                    "records are shed since limits.max_state is reached: numbers are no longer exact; raise it, or \
                     shorten join.attribution"
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
    pub fn catalogue(&self, catalogue: &Catalogue, now_ms: i64) {
        self.telemetry.set_catalogue(catalogue.len(), now_ms);
        info!(
            items = catalogue.len(),
            aspects = catalogue.n_aspects(),
            users = catalogue.n_users(),
            "took a catalogue"
        );
    }

    pub fn rebalanced(&self) {
        self.telemetry.rebalanced();
    }

    pub fn forget_partition(&self, partition: i32) {
        self.telemetry.forget_partition(partition);
    }

    pub fn pair_restarted(&self, partition: i32) {
        self.telemetry.pair_restarted();
        warn!(
            partition,
            "the position has left the log (retention, or a topic made anew): the pair is rebuilt by the rule of \
             kafka.start; keep retention longer than the longest window + attribution"
        );
    }

    /// Never the payload: what a record holds is nobody's business but its owner's.
    pub fn unreadable(&mut self, record: &Unreadable, uptime: Duration) {
        let (side, partition) = record.at;
        let limit = self
            .invalid_logged
            .entry((side, record.reason))
            .or_insert(LogLimit {
                last: Duration::ZERO,
                n_silent: u64::MAX,
            });
        if limit.n_silent != u64::MAX && uptime.saturating_sub(limit.last) < LOG_AGAIN {
            limit.n_silent += 1;
            return;
        }
        let unlogged_before = if limit.n_silent == u64::MAX {
            0
        } else {
            limit.n_silent
        };
        *limit = LogLimit {
            last: uptime,
            n_silent: 0,
        };
        warn!(
            topic = self.topics[side as usize],
            partition,
            offset = record.offset,
            reason = record.reason.name(),
            unlogged_before,
            "skipped a record that cannot be read"
        );
    }

    /// The brokers do not do what we want; logged once a minute while it lasts.
    pub fn fault(&mut self, fault: Fault, uptime: Duration) {
        if fault.kind == FaultKind::Silence && self.faults.iter().any(|f| f.kind == FaultKind::Barred) {
            return; // What stands already says why they do not answer.
        }
        let words = what_is_wrong(&fault);
        self.faults_logged
            .retain(|_, last| uptime.saturating_sub(*last) < LOG_AGAIN);
        if !self.faults_logged.contains_key(words) {
            warn!("{}", fault.message);
            self.faults_logged.insert(words.to_owned(), uptime);
            self.fault_told = true;
        }
        self.faults.retain(|standing| standing.kind == fault.kind);
        match self
            .faults
            .iter()
            .position(|standing| what_is_wrong(standing) == words)
        {
            Some(same) => self.faults[same] = fault,
            None => {
                self.faults.truncate(MAX_FAULTS - 1);
                self.faults.insert(0, fault);
            }
        }
    }

    pub fn brokers_answer(&mut self) {
        let answered = !std::mem::take(&mut self.faults).is_empty();
        if answered && std::mem::take(&mut self.fault_told) {
            info!("the brokers answer");
        }
    }

    pub fn fault_messages(&self) -> impl Iterator<Item = String> {
        self.faults.iter().map(|fault| fault.message.clone())
    }

    pub fn round(&mut self, progress: Progress, uptime: Duration) {
        let due = self
            .refreshed
            .is_none_or(|last| uptime.saturating_sub(last) >= REFRESH);
        if progress.waiting_for != self.waiting_for {
            if progress.waiting_for.is_empty() {
                info!("ready");
            } else if self.waiting_for.is_empty() {
                warn!(waiting_for = ?progress.waiting_for, "not ready");
            }
            self.telemetry.set_waiting_for(progress.waiting_for.clone());
            self.waiting_for.clone_from(&progress.waiting_for);
        }
        if !due {
            return;
        }
        self.refreshed = Some(uptime);
        if !progress.exact {
            self.telemetry.lost_exactness();
        }
        self.set_gauges(&progress);
        self.look_at_keys(progress.audits);
        self.invalid_share.advance(uptime);
        self.warn(progress.arms_without_coverage);
    }

    fn set_gauges(&self, progress: &Progress) {
        let engines = || progress.pairs.iter().map(|(_, pair)| &pair.engine);
        self.telemetry.set_partitions_owned(progress.pairs.len());
        let behind = |ms: i64| progress.live_end_ms.map(|end| (end - ms) as f64 / 1000.0);
        for (partition, pair) in progress.pairs {
            for log in &pair.logs {
                let state = PartitionState {
                    lag: log.lag(),
                    watermark_delay_seconds: pair.engine.watermark_ms(log.side).and_then(behind),
                };
                self.telemetry
                    .set_partition(&self.topics[log.side as usize], *partition, state);
            }
            self.telemetry.set_frontier(*partition, pair.engine.frontier_ms());
        }
        let slowest_ms = engines().filter_map(|engine| engine.frontier_ms()).min();
        self.telemetry
            .set_settle_delay(slowest_ms.and_then(|ms| behind(ms + progress.settle_after_ms)));
        let caught_up = || {
            progress
                .pairs
                .iter()
                .filter(|(_, pair)| pair.caught_up)
                .map(|(_, pair)| &pair.engine)
        };
        let begin_ms = caught_up().filter_map(|engine| engine.begin_ms()).max();
        let first_ms = caught_up()
            .filter_map(|engine| engine.accepted_ms())
            .map(|(first, _)| first)
            .min();
        self.telemetry.set_since(begin_ms.or(first_ms));
    }

    fn look_at_keys(&mut self, audits: &[KeyAudit]) {
        for audit in audits {
            let counts = audit.counts();
            let before = self
                .reported_keys
                .insert(audit.topic().to_owned(), counts)
                .unwrap_or_default();
            for (finding, now, before) in [
                ("null", counts.null, before.null),
                ("murmur2", counts.murmur2, before.murmur2),
                ("crc32", counts.crc32, before.crc32),
                ("foreign", counts.foreign, before.foreign),
            ] {
                self.telemetry
                    .add_key_findings(audit.topic(), finding, now - before);
            }
        }
        let audits: Vec<&KeyAudit> = audits.iter().collect();
        let findings = findings(&audits);
        for finding in findings.iter().filter(|finding| !self.findings.contains(finding)) {
            warn!("{finding}");
        }
        self.findings = findings;
    }

    /// Tells topics of which more cannot be read than the limit allows; logs where one begins or ends to be such.
    fn look_at_invalid_shares(&mut self) -> Vec<String> {
        let one_topic = self.topics[0] == self.topics[1];
        let groups: &[&[Side]] = if one_topic {
            &[&Side::BOTH]
        } else {
            &[&[Side::Served], &[Side::Clicks]]
        };
        let mut warnings = Vec::new();
        for sides in groups {
            let topic = &self.topics[sides[0] as usize];
            let share = self.invalid_share.of(sides).unwrap_or(0.0);
            let is_above = share > self.max_invalid_share;
            let warning = format!(
                "topic `{topic}`: {:.1}% of the records of the last minutes cannot be read, more than \
                 limits.max_invalid_share ({}%): abgauge_invalid_records_total has the reasons, and `abgauge check --sample` \
                 tells what is wrong with a record",
                100.0 * share,
                100.0 * self.max_invalid_share,
            );
            let was_above = std::mem::replace(&mut self.too_many_invalid[sides[0] as usize], is_above);
            match (was_above, is_above) {
                (false, true) => warn!("{warning}"),
                (true, false) => info!(topic, "records can be read again"),
                _ => {}
            }
            self.telemetry.set_too_many_invalid(topic, is_above);
            warnings.extend(is_above.then_some(warning));
        }
        warnings
    }

    /// Tells what an operator should mend although numbers are shown.
    fn warn(&mut self, arms_without_coverage: u64) {
        let mut warnings = self.doubts.clone();
        warnings.extend(self.findings.iter().map(Finding::to_string));
        if self.shed {
            warnings.push(
                "limits.max_state was reached and records were shed: numbers are no longer exact".into(),
            );
        }
        warnings.extend(self.look_at_invalid_shares());
        if arms_without_coverage > 0 {
            let warning =
                format!("limits.max_coverage is reached: arms without coverage: {arms_without_coverage}");
            if !std::mem::replace(&mut self.left_out_told, true) {
                warn!("{warning}; raise it, or take a smaller catalogue");
            }
            warnings.push(warning);
        }
        self.telemetry.set_warnings(warnings);
    }
}

/// The part of its message before the brackets: in them are the client's own words, which change each time.
fn what_is_wrong(fault: &Fault) -> &str {
    fault.message.split('(').next().unwrap_or_default()
}
