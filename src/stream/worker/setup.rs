//! Worker's part of the configuration, and construction of pairs from it.

use abgauge_core::engine::event::Side;
use abgauge_core::engine::{Checkpoint, LogCheckpoint, ResumeError, Rules};
use abgauge_core::journal::{CountedTopic, LogIdentity};
use abgauge_core::ledger::{EncodedLedger, Keep, Ledger, LedgerError, PairTracker, Users};
use abgauge_core::metrics::Ranking;

use super::pair::{Pair, PartitionLog};
use super::rules;
use super::start::StartRule;
use crate::settings::Config;
use crate::settings::skips::Skips;
use crate::store::stored;
use crate::stream::LogStart;

/// Divisor of the bound on state, for topics read far ahead of their twins: 16 MiB of 4 GiB.
const AHEAD_PART: u64 = 256;

pub struct Setup {
    pub rules: Rules,
    ranking: Ranking,
    /// Contents of each pair's ledger.
    keep: Keep,
    pub start: StartRule,
    /// Topic that pairs are stored in, if any.
    pub state_topic: Option<String>,
    fingerprint: String,
    pub skips: Skips,
    pub idle_after_ms: i64,
    /// Time from a list to its settling, in a stream that does not pause.
    pub settle_after_ms: i64,
    /// Bound on the bytes of state that topics read far ahead of their twins may take.
    pub max_ahead_bytes: u64,
    /// Bound on the bytes of settled numbers that wait to be stored.
    pub max_unsealed_bytes: u64,
    /// Topic names by `Side as usize`.
    pub topics: [String; 2],
    pub brokers: String,
}

impl Setup {
    pub fn new(config: &Config, ranking: Ranking) -> Setup {
        let kafka = &config.kafka;
        Setup {
            rules: rules(config),
            ranking,
            keep: stored::keep(config),
            start: StartRule::new(config),
            state_topic: config.state.as_ref().map(|state| state.topic.clone()),
            fingerprint: config.fingerprint(),
            skips: config.ingest.skips.clone(),
            idle_after_ms: config.join.idle_after_ms,
            settle_after_ms: config.join.settle_after_ms(),
            max_ahead_bytes: config.limits.max_state_bytes / AHEAD_PART,
            max_unsealed_bytes: config.limits.max_unsealed_bytes(),
            topics: [kafka.served_topic.clone(), kafka.clicks_topic.clone()],
            brokers: kafka.brokers.clone(),
        }
    }

    /// Returns whether pairs are stored.
    pub fn keeps_state(&self) -> bool {
        self.state_topic.is_some()
    }

    /// Stops keeping the users of an experiment apart, in pairs that start from now on.
    pub fn forget_users(&mut self, experiment: &str) {
        self.keep.users.forget(experiment);
    }

    /// Returns the sides that have a topic of their own.
    pub fn sides(&self) -> &'static [Side] {
        if self.rules.one_topic {
            &[Side::Served]
        } else {
            &Side::BOTH
        }
    }

    pub fn topic(&self, side: Side) -> &str {
        &self.topics[side as usize]
    }

    /// Returns the identity of the counted topics, as far as it is known before the brokers answer.
    pub fn identity(&self, n_pairs: i32) -> LogIdentity {
        // Only the brokers know topic ids. They are filled in before the identity is stored.
        let topic = |side: &Side| CountedTopic {
            name: self.topic(*side).to_owned(),
            id: 0,
        };
        LogIdentity {
            fingerprint: self.fingerprint.clone(),
            topics: self.sides().iter().map(topic).collect(),
            n_partitions: n_pairs as u32,
        }
    }

    /// Decodes a ledger that continues from its stored bytes.
    pub fn decode(&self, parts: &EncodedLedger) -> Result<Ledger, LedgerError> {
        Ledger::decode(parts, &self.ranking, &self.keep)
    }

    /// Returns whether users are kept apart, because some experiment needs statistics.
    pub fn keeps_users(&self) -> bool {
        self.keep.users != Users::Nobody
    }

    /// Resumes a pair from a checkpoint and the ledger of the same moment.
    pub fn resume(&self, partition: i32, from: &Checkpoint, ledger: Ledger) -> Result<Pair, ResumeError> {
        let (rules, ranking) = (self.rules.clone(), self.ranking.clone());
        let tracker = PairTracker::resume(rules, ranking, &self.keep, from, ledger)?;
        let tracker = self.kept(tracker);
        let log = |log: &LogCheckpoint| {
            let skips = self.skips.of((log.side, partition));
            // The log's end is not known yet.
            PartitionLog::new(log.side, log.resume.offset, log.position.offset).skipping(skips)
        };
        Ok(Pair::new(
            tracker,
            from.logs_for_copies().map(|read| log(&read)).collect(),
        ))
    }

    /// Makes a tracker keep its cells of users if pairs are stored. Looks read them from the stored state.
    fn kept(&self, tracker: PairTracker) -> PairTracker {
        if self.keeps_state() {
            tracker.keeping_cells()
        } else {
            tracker
        }
    }

    /// Starts a pair now, by the start rule.
    pub fn begin(&self, partition: i32, logs: &[(Side, LogStart)], now_ms: i64) -> Pair {
        let seek_ms = self.start.seek_ms(now_ms);
        let begin_ms = self
            .start
            .begin_ms(logs.iter().map(|(_, log)| log), seek_ms, now_ms);
        let (rules, ranking) = (self.rules.clone(), self.ranking.clone());
        let tracker = self.kept(PairTracker::new(rules, ranking, begin_ms, &self.keep));
        let log = |(side, log): &(Side, LogStart)| {
            let skips = self.skips.of((*side, partition));
            PartitionLog::new(*side, self.start.offset(log, seek_ms), log.high).skipping(skips)
        };
        Pair::new(tracker, logs.iter().map(log).collect())
    }
}
