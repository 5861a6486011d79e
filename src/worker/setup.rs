//! The worker's part of the configuration, and the pairs that begin by it.

use super::pair::{Pair, PartitionLog};
use super::rules;
use super::start::StartRule;
use crate::config::Config;
use crate::engine::event::Side;
use crate::engine::ranking::Ranking;
use crate::engine::{Checkpoint, LogCheckpoint, ResumeError, Rules};
use crate::ingest::LogStart;
use crate::ingest::skips::Skips;
use crate::ledger::{Keep, Ledger, LedgerError, PairTracker, Parts, Users};
use crate::state::{Identity, Topic};
use crate::stored;

/// Topics read far ahead of their twins may fill 1/n of the bound on state: 16 MiB of 4 GiB.
const AHEAD_PART: u64 = 256;

pub struct Setup {
    pub rules: Rules,
    ranking: Ranking,
    /// What the ledger of a pair keeps.
    keep: Keep,
    pub start: StartRule,
    /// Where pairs are stored, if they are.
    pub state_topic: Option<String>,
    fingerprint: String,
    pub skips: Skips,
    pub idle_after_ms: i64,
    /// How long after its time a list settles, in a stream that goes on.
    pub settle_after_ms: i64,
    /// Bytes of state that topics may fill by being read far ahead of their twins.
    pub max_ahead_bytes: u64,
    /// Bytes of what has settled that may wait to be stored.
    pub max_unsealed_bytes: u64,
    /// By `Side as usize`.
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

    /// Whether pairs are stored.
    pub fn keeps_state(&self) -> bool {
        self.state_topic.is_some()
    }

    /// Tells the users of an experiment no longer apart in pairs that begin from now on.
    pub fn forget_users(&mut self, experiment: &str) {
        self.keep.users.forget(experiment);
    }

    /// The sides that have a topic of their own.
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

    /// What is counted, as long as the brokers have not told more of it.
    pub fn identity(&self, n_pairs: i32) -> Identity {
        let topic = |side: &Side| Topic {
            name: self.topic(*side).to_owned(),
            id: 0,
        };
        Identity {
            fingerprint: self.fingerprint.clone(),
            topics: self.sides().iter().map(topic).collect(),
            n_partitions: n_pairs as u32,
        }
    }

    /// A ledger that goes on with what is stored of one.
    pub fn decode(&self, parts: &Parts) -> Result<Ledger, LedgerError> {
        Ledger::decode(parts, &self.ranking, &self.keep)
    }

    /// Whether something is asked of an experiment, so that the users of it are told apart.
    pub fn keeps_users(&self) -> bool {
        self.keep.users != Users::Nobody
    }

    /// A pair that goes on from a checkpoint, with its ledger of that moment.
    pub fn resume(&self, partition: i32, from: &Checkpoint, ledger: Ledger) -> Result<Pair, ResumeError> {
        let (rules, ranking) = (self.rules.clone(), self.ranking.clone());
        let tracker = PairTracker::resume(rules, ranking, &self.keep, from, ledger)?;
        let tracker = self.kept(tracker);
        let log = |log: &LogCheckpoint| {
            let skips = self.skips.of((log.side, partition));
            // Its end is not known yet.
            PartitionLog::new(log.side, log.resume.offset, log.position.offset).skipping(skips)
        };
        Ok(Pair::new(
            tracker,
            from.logs_for_copies().map(|read| log(&read)).collect(),
        ))
    }

    /// Where pairs are stored, so are their cells of users, for as long as looks need them.
    fn kept(&self, tracker: PairTracker) -> PairTracker {
        if self.keeps_state() {
            tracker.keeping_cells()
        } else {
            tracker
        }
    }

    /// A pair that begins now, by the start rule.
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
