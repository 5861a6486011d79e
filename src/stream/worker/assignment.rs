//! Assignment and revocation: pairs arrive, start where their logs allow, and leave.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use abgauge_core::engine::event::Side;
use abgauge_core::engine::outcome::{ClickResult, Counts};
use tracing::{error, info};

use super::pair::Pair;
use super::phase::Phase;
use super::{StartPhase, Worker};
use crate::stream::keys::KeyAudit;
use crate::stream::{Fault, FaultKind, GroupState, LogStart, Order, Question, TopicCounts, TopicPartition};

impl Worker {
    pub(super) fn topics_known(&mut self, counts: Result<TopicCounts, Fault>) {
        let counts = match counts {
            Ok(counts) => counts,
            Err(fault) => return self.fault(fault),
        };
        self.report.brokers_answer();
        let before = self.counts.replace(counts);
        // A running daemon only reports the difference, and continues with what it can read.
        if self.phase == StartPhase::Topics
            && let Some(message) = self.unequal()
        {
            let kind = FaultKind::Fatal;
            return self.fault(Fault { message, kind });
        }
        if before == Some(counts) {
            return;
        }
        // Keys have moved to the new partitions, so the stored state no longer fits.
        if let Some(message) = before.and_then(|before| self.outgrown(before)) {
            let kind = FaultKind::Fatal;
            return self.fault(Fault { message, kind });
        }
        // The partition of a key depends on the number of partitions, so audits start again.
        if let Some(n) = u32::try_from(counts.served).ok().and_then(NonZeroU32::new) {
            let topics = &self.setup.topics[..self.setup.sides().len()];
            let audits: Vec<_> = topics.iter().map(|topic| KeyAudit::new(topic, n)).collect();
            self.shards.set_audits(&audits);
            self.report.set_audits(audits);
        }
        if self.phase == StartPhase::Topics {
            self.phase = StartPhase::Joining;
            // With stored state, the worker subscribes once the keeper exists.
            self.orders.push(match self.setup.keeps_state() {
                true => Order::Keep(self.setup.identity(counts.served)),
                false => Order::Subscribe,
            });
        }
    }

    pub(super) fn assigned(&mut self, partitions: &[TopicPartition]) {
        self.report.telemetry.count_rebalance();
        self.questions.start_epoch();
        self.phase = StartPhase::Owning;
        // Records may have been produced while the group was rebalancing, so no idle time carries over.
        self.restart_clocks();
        let whole = self.whole_pairs(partitions);
        info!(partitions = ?whole, "assigned");
        self.membership.assigned(whole.len());
        // A changed number of partitions triggers a new assignment.
        self.orders.push(Order::Ask(Question::Topics));
        self.take_over(&whole);
        if self.shards.locating().is_empty() {
            // Nothing is assigned, or its stored state is not known yet.
            self.orders.push(Order::Assign(Vec::new()));
        } else {
            // The client reads nothing before the bounds of the logs are known.
            let question = self.ask_starts();
            self.questions.asked_at_once();
            self.orders.push(Order::Ask(question));
        }
    }

    /// Returns the pairs whose topics are all assigned to us.
    fn whole_pairs(&self, partitions: &[TopicPartition]) -> BTreeSet<i32> {
        let given: BTreeSet<&TopicPartition> = partitions.iter().collect();
        let is_whole = |partition: &i32| {
            self.setup
                .sides()
                .iter()
                .all(|side| given.contains(&(*side, *partition)))
        };
        let numbers: BTreeSet<i32> = partitions.iter().map(|(_, partition)| *partition).collect();
        let (whole, broken): (BTreeSet<i32>, BTreeSet<i32>) = numbers.into_iter().partition(is_whole);
        if !broken.is_empty() {
            error!(
                partitions = ?broken,
                "the group assigned a partition of one topic only, which is not read: give both topics the same number of \
                 partitions, and every member partition.assignment.strategy=range"
            );
        }
        whole
    }

    /// Makes exactly these pairs ours.
    fn take_over(&mut self, whole: &BTreeSet<i32>) {
        let mut known = self.shards.take();
        for partition in whole {
            let phase = Phase::assigned(known.remove(partition), self.stored.is_some());
            if let Some(stored) = &self.stored {
                stored.door.keeper.assigned(*partition);
            }
            self.shards.insert(*partition, phase);
        }
        // A pair that moved to another member loses its state here.
        for (partition, phase) in known {
            if let Some(pair) = phase.into_pair() {
                self.forget(partition, &pair);
            }
        }
    }

    /// Drops all pairs until the group assigns partitions of our topics.
    pub(super) fn misassigned(&mut self, others: &[String]) {
        self.report.telemetry.count_rebalance();
        self.questions.start_epoch();
        self.phase = StartPhase::Joining;
        self.membership
            .misassigned(others, &self.setup.topics, self.clocks.uptime());
        self.orders.push(Order::Assign(Vec::new()));
    }

    pub(super) fn group_known(&mut self, state: Result<GroupState, Fault>) {
        match (state, self.counts) {
            (Ok(state), Some(counts)) => {
                self.report.brokers_answer();
                self.membership
                    .known(state, counts, &self.setup.topics, self.clocks.uptime());
            }
            (Err(fault), _) => self.fault(fault),
            (Ok(_), None) => {}
        }
    }

    pub(super) fn revoked(&mut self) {
        self.report.telemetry.count_rebalance();
        self.membership.revoked();
        // The last changes are handed over and committed while the pairs are still here.
        self.hand_over();
        self.commit();
        self.questions.start_epoch();
        self.phase = StartPhase::Joining;
        for (partition, phase) in self.shards.take() {
            if let Some(stored) = &self.stored {
                stored.door.keeper.revoked(partition);
            }
            if phase.reading().is_some() {
                self.hide(partition);
            }
            match phase.revoked() {
                Some(parked) => self.shards.insert(partition, parked),
                // Its memory was empty. The keeper is to order another one if it comes back.
                None => self
                    .stored
                    .iter_mut()
                    .for_each(|stored| stored.door.forget(partition)),
            }
        }
        self.orders.push(Order::Unassign);
        info!("released all partitions; waiting for the group");
    }

    fn hide(&self, partition: i32) {
        self.board.hide(partition);
        self.report.telemetry.forget_partition(partition);
    }

    /// Drops the state of a pair: clicks that waited for a list stay undecided.
    pub(super) fn forget(&mut self, partition: i32, pair: &Pair) {
        let mut counts = Counts::default();
        // Every accepted click gets a result. Waiting ones get it here, since their lists can no longer be found.
        counts.count_results(ClickResult::Undecided, pair.engine().n_own_waiting());
        self.report.counts(&counts);
        self.stored
            .iter_mut()
            .for_each(|stored| stored.door.forget(partition));
        self.board.remove(partition);
        let reported = self.telling.dropped(partition);
        self.note_reported(reported);
    }

    pub(super) fn starts_known(&mut self, starts: Result<BTreeMap<TopicPartition, LogStart>, Fault>) {
        let starts = match starts {
            Ok(starts) => starts,
            Err(fault) => return self.fault(fault),
        };
        self.report.brokers_answer();
        let locating = self.shards.locating();
        if locating.is_empty() {
            return; // Asked twice, and answered before.
        }
        let now_ms = self.clock.now_ms();
        for partition in locating {
            // A pair needs the bounds of all its topics.
            let of_side = |side: &Side| Some((*side, *starts.get(&(*side, partition))?));
            let logs: Option<Vec<_>> = self.setup.sides().iter().map(of_side).collect();
            if let Some(logs) = logs {
                self.located(partition, &logs, now_ms);
            }
        }
        self.assign_pairs();
    }

    /// A pair whose position is no longer in the log restarts by the start rule, and this is reported, unless the pair is
    /// stored.
    fn located(&mut self, partition: i32, logs: &[(Side, LogStart)], now_ms: i64) {
        self.give_up_copies(partition, logs);
        // A stored pair is restored or refused, but never restarts from the log.
        if !self.is_where_it_was_stored(partition, logs) {
            return;
        }
        let Some(phase) = self.shards.remove(partition) else {
            return;
        };
        let (phase, given_up) = phase.located(logs, || self.begin(partition, logs, now_ms));
        if let Some(pair) = given_up {
            self.report.count_pair_restart(partition);
            self.forget(partition, &pair);
        }
        self.shards.insert(partition, phase);
    }

    fn begin(&self, partition: i32, logs: &[(Side, LogStart)], now_ms: i64) -> Pair {
        let mut pair = self.setup.begin(partition, logs, now_ms);
        pair.stored = self.stored.as_ref().and_then(|stored| stored.begun(partition));
        if let Some(catalogue) = &self.catalogue {
            pair.tracker.set_catalogue(Arc::clone(catalogue));
        }
        pair
    }

    pub(super) fn offset_lost(&mut self, (_, partition): TopicPartition) {
        // The records read so far have been read, although their pair is dropped.
        self.hand_over();
        // For a held pair, the client got lost in the unreadable batch.
        if self.shards.get_mut(partition).is_none_or(|pair| pair.is_held()) {
            return;
        }
        self.shards.change(partition, Phase::position_lost);
        self.hide(partition);
        // Open answers are about positions that are no longer valid.
        self.questions.start_epoch();
        self.restart_clocks();
    }
}
