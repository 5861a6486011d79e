//! Conditions for the worker to be ready, in plain words.

use abgauge_core::nouns::number_of;

use super::pair::Pair;
use super::phase::Phase;
use super::{StartPhase, Worker};
use crate::stream::TopicCounts;

impl Worker {
    pub(super) fn waiting_for(&self) -> Vec<String> {
        let mut waiting: Vec<String> = self.report.fault_messages().collect();
        waiting.extend(self.unequal());
        waiting.extend(self.membership.waiting_for());
        match self.phase {
            StartPhase::Topics => waiting.push("waiting for the brokers to describe the topics".into()),
            // With stored state, nothing is subscribed to before the keeper is there.
            StartPhase::Joining if self.setup.keeps_state() && self.stored.is_none() => {
                waiting.push("waiting for the brokers to describe the state topic".into());
            }
            StartPhase::Joining => waiting.push("waiting for the group to assign partitions".into()),
            StartPhase::Owning => {
                waiting.extend(self.restoring());
                if let Some(stored) = &self.stored {
                    waiting.extend(stored.fault());
                    waiting.extend(stored.rot(&self.shards, self.clock.lasting_ms()));
                }
                waiting.extend(self.locating());
                if self.shards.serving().next().is_none()
                    && self.shards.pairs().all(|(_, pair)| pair.is_held())
                {
                    waiting.extend(self.held()); // Nothing would be shown.
                }
                waiting.extend(self.replaying());
                waiting.extend(self.open_transactions());
            }
        }
        waiting
    }

    /// The problem if the topics differ in their number of partitions.
    pub(super) fn unequal(&self) -> Option<String> {
        let TopicCounts { served, clicks } = self.counts.filter(|counts| counts.served != counts.clicks)?;
        let [served_topic, clicks_topic] = &self.setup.topics;
        Some(format!(
            "topic `{served_topic}` has {} and topic `{clicks_topic}` has {clicks}: a click must be in the partition of its list, so give both the same number, and the same key",
            number_of(served, "partition")
        ))
    }

    /// Returns the problem if the topics now have more partitions than the stored state.
    pub(super) fn outgrown(&self, before: TopicCounts) -> Option<String> {
        let now = self.counts.filter(|_| self.setup.keeps_state())?;
        let (topic, stored, n) = match before.served != now.served {
            true => (&self.setup.topics[0], before.served, now.served),
            false => (&self.setup.topics[1], before.clicks, now.clicks),
        };
        Some(format!(
            "topic `{topic}` now has {}, but the stored state has {stored}: keys move to other partitions, so totals cannot be resumed. Give both topics the same number, set state.topic to another name, run `abgauge check --create-topics`, and restart",
            number_of(n, "partition")
        ))
    }

    /// Describes the pairs whose stored state is not known yet.
    fn restoring(&self) -> Option<String> {
        let restoring = self.shards.phases().filter(|(_, phase)| phase.is_restoring());
        let partitions: Vec<i32> = restoring.map(|(partition, _)| partition).collect();
        self.stored.as_ref()?.restoring(&partitions)
    }

    /// Pairs whose start is not known yet.
    fn locating(&self) -> Vec<String> {
        let mut waiting = Vec::new();
        let locating = self.shards.locating();
        if !locating.is_empty() {
            waiting.push(format!("finding where to start partitions {locating:?}"));
        }
        let phases = self.shards.phases().filter(|(_, phase)| phase.is_locating());
        let is_lost = |phase: &Phase| phase.pair().is_some_and(|pair| pair.position_lost);
        for (partition, _) in phases.filter(|(_, phase)| is_lost(phase)) {
            waiting.push(format!(
                "restarting partition {partition}: its position was no longer in the log"
            ));
        }
        waiting
    }

    /// Pairs that are catching up.
    fn replaying(&self) -> Vec<String> {
        let message = |(partition, phase): (i32, &Phase)| {
            // A pair whose hold is reported reads nothing until it is released. It has its own message with a remedy.
            let is_held = |pair: &Pair| pair.held.is_some_and(|held| held.is_reported());
            let pair = phase.replaying().filter(|pair| !is_held(pair))?;
            let stored = self.stored.as_ref();
            if let Some(message) = stored.and_then(|stored| stored.reading_again(partition, pair)) {
                return Some(message);
            }
            let why = if pair.position_lost {
                ", again: its position was no longer in the log"
            } else {
                ""
            };
            let left = pair.n_left();
            Some(format!(
                "catching up in partition {partition}: {} to read{why}",
                number_of(left, "record")
            ))
        };
        self.shards.phases().filter_map(message).collect()
    }

    /// Topic partitions that wait for a transaction to end, a line each.
    fn open_transactions(&self) -> impl Iterator<Item = String> {
        let steady_ms = self.clock.steady_ms();
        let now_ms = self.clock.now_ms();
        let logs = self
            .shards
            .pairs()
            .flat_map(|(partition, pair)| pair.logs.iter().map(move |log| (partition, log)));
        logs.filter_map(move |(partition, log)| {
            let since_ms = log.held_up_since_ms(steady_ms, self.setup.idle_after_ms)?;
            Some(format!(
                "partition {partition} of topic `{}` is blocked: a transaction open since {} or longer hides {}; its producer must commit or abort it (kafka-transactions.sh find-hanging)",
                self.setup.topic(log.side),
                time(now_ms - (steady_ms - since_ms)),
                number_of(log.lag().unwrap_or(0), "record"),
            ))
        })
    }
}

/// Formats a time as RFC 3339, in UTC and whole seconds.
fn time(ms: i64) -> String {
    let time = jiff::Timestamp::from_second(ms.div_euclid(1000));
    time.map_or_else(|_| ms.to_string(), |time| time.to_string())
}
