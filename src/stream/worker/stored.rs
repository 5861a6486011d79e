//! Pairs with stored state: obeys the keeper, offers it states, and withholds settled deltas until a seal contains them.

mod looks;
mod remedy;
mod rot;
mod status;

use std::collections::BTreeSet;
use std::sync::Arc;

use abgauge_core::engine::View;
use abgauge_core::engine::event::Side;
use abgauge_core::engine::{Checkpoint, Replayed};
use abgauge_core::journal::{Header, LogIdentity};
use abgauge_core::ledger::PairId;
use abgauge_core::looks::{PairLooks, UpTo};
use tracing::{info, warn};

use self::remedy::{remedy, restart};
pub use self::rot::{lost, malformed};
pub use self::status::{not_cleaned, unsealed};
use super::Worker;
use super::pair::{LostPosition, Pair};
use super::phase::Phase;
use super::stored_pair::StoredPair;
use crate::store::keeper::{self, Door, KeeperHandle, Memory, Offer, Roles, Urgency};
use crate::store::stored::codec::{self, FormError};
use crate::store::stored::reach;
use crate::stream::{Fault, FaultKind, LogStart, Order, Question};

/// The pairs of this process, and the door of the store.
pub struct StoredPairs {
    topic: String,
    pub(super) door: Door,
    identity: LogIdentity,
    /// Pairs whose last state is still to be sealed.
    leaving: BTreeSet<PairId>,
    /// Fault of the topic itself.
    unfit: Option<String>,
}

/// Returns the facts about the stored state of a pair, if it is in memory.
fn stored(phase: &Phase) -> Option<&StoredPair> {
    phase.pair()?.stored.as_ref()
}

impl StoredPairs {
    /// Returns the fault that keeps the state from being read or written, if there is one.
    pub fn fault(&self) -> Option<String> {
        let fault = self.door.keeper.fault();
        fault.map(|fault| format!("the state topic: {fault}"))
    }

    /// Returns whether the pair must pause because its settled numbers that wait to be stored exceed `room_bytes`. It resumes
    /// once enough is stored. A replaying pair never pauses: nothing settles during the replay, and no state can be stored
    /// before it ends.
    pub fn must_wait(&mut self, partition: PairId, pair: &Pair, room_bytes: u64) -> bool {
        self.door.is_full(partition, room_bytes) && !pair.engine().is_replaying()
    }

    /// Returns the facts about a pair that has just started without stored state.
    pub fn begun(&self, pair: PairId) -> Option<StoredPair> {
        Some(StoredPair::new(self.door.incarnation_id(pair)?))
    }
}

impl Worker {
    /// Starts to store the state of pairs and to resume them from their stored state.
    pub(super) fn keep(&mut self, keeper: KeeperHandle, identity: LogIdentity) {
        self.report.brokers_answer();
        self.orders.push(Order::Subscribe);
        let lease = keeper.clone();
        let (clock, telemetry) = (self.clock.clone(), Arc::clone(&self.report.telemetry));
        self.board.show_while(Arc::new(move |pair| {
            // Live numbers also wait until this instance was ready once.
            let shown = lease.shown(pair, clock.lasting_ms());
            [shown.live && telemetry.was_ready(), shown.settled.is_some()]
        }));
        self.stored = Some(StoredPairs {
            topic: self.setup.state_topic.clone().unwrap_or_default(),
            door: Door::new(keeper),
            identity,
            leaving: BTreeSet::new(),
            unfit: None,
        });
    }

    /// Seals the current state of each pair before the pair is given back.
    pub(super) fn leave_stored(&mut self) {
        let Some(stored) = &mut self.stored else { return };
        for (partition, pair) in self.shards.pairs_mut() {
            // A pair that is still replaying has no checkpoint: its last seal stays the current state.
            let checkpoint = pair.checkpoint();
            let state = checkpoint.and_then(|checkpoint| pair.state(&checkpoint, &stored.identity));
            stored.door.leave(partition, state);
            stored.leaving.insert(partition);
        }
    }

    /// Returns whether any last state is still to be sealed.
    pub fn is_leaving(&self) -> bool {
        self.stored
            .as_ref()
            .is_some_and(|stored| !stored.leaving.is_empty())
    }

    /// Carries out an order of the keeper for a pair.
    pub(super) fn obey(&mut self, pair: PairId, order: keeper::KeeperOrder) {
        match order {
            keeper::KeeperOrder::Begin { incarnation } => self.start_stored(pair, incarnation),
            keeper::KeeperOrder::Restore {
                incarnation,
                offer,
                header,
                roles,
            } => {
                if let Err(refused) = self.restore(pair, incarnation, offer, &header, &roles) {
                    self.refuse(pair, &format!("{refused}. {}", restart(pair)));
                }
            }
            keeper::KeeperOrder::Show { offer } => self.show_offer(pair, offer),
            keeper::KeeperOrder::Drop => {
                self.forget_memory(pair);
            }
            keeper::KeeperOrder::Refuse(refusal) => {
                self.refuse(pair, &format!("{refusal}. {}", remedy(&refusal, pair)));
            }
            keeper::KeeperOrder::Commit { number } => self.commit_for(pair, number),
            keeper::KeeperOrder::Left => {
                self.stored
                    .iter_mut()
                    .for_each(|stored| _ = stored.leaving.remove(&pair));
            }
        }
    }

    /// Starts a pair without stored state by the start rule.
    fn start_stored(&mut self, partition: PairId, incarnation: Memory) {
        if !self.is_ours(partition, incarnation) {
            return;
        }
        self.forget_memory(partition);
        if let Some(stored) = &mut self.stored {
            stored.door.made(partition, incarnation, None);
        }
        self.shards.change(partition, |phase| phase.restored(None));
        // Open answers are about other positions. The start of this pair is asked for at once.
        self.questions.start_epoch();
        self.questions.hasten_starts();
        self.restart_clocks();
    }

    /// Resumes a pair from its stored state.
    fn restore(
        &mut self,
        partition: PairId,
        incarnation: Memory,
        offer: Offer,
        header: &Header,
        roles: &Roles,
    ) -> anyhow::Result<()> {
        if !self.is_ours(partition, incarnation) {
            return Ok(());
        }
        // The board adds the restored sums, so the former ones must be gone.
        self.forget_memory(partition);
        let sides = self.setup.sides();
        let read = codec::read(header, roles, sides)?;
        let checkpoint = read.checkpoint;
        let looks = read.looks.filter(|_| self.setup.keeps_users());
        let up_to = |looks: PairLooks| UpTo::of(&looks.users).map(|up_to| (looks, up_to));
        let looks = looks.map(up_to).transpose().map_err(FormError::Looks)?;
        let ledger = self.setup.decode(&read.ledger).map_err(FormError::Ledger)?;
        self.board.resume(partition, &ledger, reach(&checkpoint, &ledger));
        let mut pair = self.setup.resume(partition, &checkpoint, ledger)?;
        // The bytes of the cells stay until looks no longer need them.
        pair.tracker.take_cells();
        if let Some(catalogue) = &self.catalogue {
            pair.tracker.set_catalogue(Arc::clone(catalogue));
        }
        pair.stored = Some(StoredPair {
            was_caught_up: header.was_caught_up,
            is_exact: header.is_exact,
            counted: status::counted(&checkpoint),
            offered_until_ms: checkpoint.until_ms,
            looks,
            known: Some(header.identity.clone()),
            ..StoredPair::new(read.incarnation_id)
        });
        if let Some(stored) = &mut self.stored {
            // From here on, scrapes may show the settled numbers of this memory.
            let shown_end_ms = checkpoint.until_ms.map(|until_ms| until_ms - 1);
            stored.door.made(partition, incarnation, shown_end_ms);
        }
        info!(partition, ?offer, "resumed from stored state");
        self.shards.change(partition, |phase| phase.restored(Some(pair)));
        self.questions.start_epoch();
        self.questions.hasten_starts();
        self.restart_clocks();
        Ok(())
    }

    /// Gives up the copies of a pair that has just been restored if their lists have left the log. The pair may then resume
    /// without them.
    pub(super) fn give_up_copies(&mut self, partition: PairId, logs: &[(Side, LogStart)]) {
        // Only right after a restore: later the pair has read on, and needs all of its positions.
        if !self.shards.phase(partition).is_some_and(Phase::is_restored) {
            return;
        }
        let Some(pair) = self.shards.known_mut(partition) else {
            return;
        };
        if !pair.give_up_copies(logs) {
            return;
        }
        if let Some(catalogue) = &self.catalogue {
            pair.tracker.set_catalogue(Arc::clone(catalogue));
        }
        if pair.is_within(logs) {
            let topic = self.setup.topic(Side::Served);
            warn!(
                partition,
                topic,
                "final lists are no longer in the log: if copies of them still arrive, they count as lists. Retention must be longer than an instance may be down"
            );
        }
    }

    /// Returns whether the logs still have the pair's position. A stored pair never restarts from the log, because that would
    /// lose its stored state. If memory that was read further has lost its position, it is dropped and restored from the stored
    /// state. If that has no position either, the pair is refused.
    pub(super) fn is_where_it_was_stored(&mut self, partition: PairId, logs: &[(Side, LogStart)]) -> bool {
        let phase = self.shards.phase(partition).filter(|_| self.stored.is_some());
        let Some(phase) = phase else { return true };
        let Some(strayed) = phase.pair().and_then(|pair| pair.strayed(logs)) else {
            return true;
        };
        if phase.is_restored() {
            self.refuse(partition, &self.why_lost(partition, strayed));
        } else {
            self.forget_memory(partition);
        }
        false
    }

    fn why_lost(&self, partition: PairId, strayed: LostPosition) -> String {
        let LostPosition {
            side,
            position,
            low,
            high,
        } = strayed;
        let topic = self.setup.topic(side);
        let (why, remedy) = match position < low {
            true => (
                format!(
                    "offsets {position} to {} were deleted (retention.ms, retention.bytes)",
                    low - 1
                ),
                " Retention must be longer than an instance may be down.",
            ),
            false => ("it was recreated, or truncated".to_owned(), ""),
        };
        format!(
            "partition {partition} of topic `{topic}` would be read again from offset {position}, but has offsets {low} to {high}: {why}. {}{remedy}",
            restart(partition)
        )
    }

    /// Notes how far the logs have been read again. A log that is another one than was counted is refused.
    pub(super) fn replay(&mut self) {
        let mut others = Vec::new();
        for (partition, pair) in self.shards.pairs_mut() {
            if !pair.engine().is_replaying() {
                continue;
            }
            let reached: Vec<(Side, i64)> = pair.positions().collect();
            for (side, position) in reached {
                pair.tracker.reached(side, position);
                // The digest of the replayed events differs from the stored one.
                if pair.engine().replayed(side) == Some(Replayed::Other) {
                    others.push((partition, side));
                }
            }
        }
        for (partition, side) in others {
            let topic = self.setup.topic(side).to_owned();
            self.refuse(
                partition,
                &format!(
                    "topic `{topic}` no longer has the records that were counted; it was recreated, or truncated. {}",
                    restart(partition)
                ),
            );
        }
    }

    /// Shows the numbers in a state that has become current.
    fn show_offer(&mut self, partition: PairId, offer: Offer) {
        let Some(stored) = &mut self.stored else { return };
        let pair = self.shards.known_mut(partition);
        let Some(own) = pair.and_then(|pair| pair.stored.as_mut()) else {
            return;
        };
        let is_complete = own.sealed();
        for delta in stored.door.release(partition, offer) {
            self.board.merge(partition, &delta);
        }
        if is_complete {
            self.board.show_in(View::Settled, partition);
            self.note_restored();
        }
    }

    /// Notes whether the settled numbers of all pairs are shown.
    fn note_restored(&mut self) {
        if self
            .shards
            .phases()
            .all(|(_, phase)| stored(phase).is_some_and(StoredPair::is_complete))
        {
            self.report.telemetry.note_restored();
        }
    }

    /// Offers the states that are wanted, after all changes were handed over.
    pub(super) fn offer_states(&mut self) {
        let Some(stored) = &mut self.stored else { return };
        for (partition, pair) in self.shards.pairs_mut() {
            let wants = stored.door.keeper.wants(partition);
            if wants == Urgency::No || (wants == Urgency::WhenDue && !pair.changed_since_offer()) {
                continue;
            }
            let Some(checkpoint) = pair.checkpoint() else {
                continue;
            };
            // Taking the checkpoint may have settled more: merge it, so that the board matches the state.
            let live = stored.door.commit(partition, pair.tracker.take_delta());
            self.board.merge(partition, &live);
            self.report.counts(&live.counts);
            if let Some((header, roles)) = pair.state(&checkpoint, &stored.identity) {
                stored.door.offer(partition, header, roles);
            }
        }
    }

    /// Returns whether the pair is ours. If not, reports to the keeper that this memory does not exist.
    fn is_ours(&self, partition: PairId, incarnation: Memory) -> bool {
        let phase = self.shards.phase(partition);
        let is_ours = phase.is_some_and(|phase| !matches!(phase, Phase::Parked(_)));
        if let Some(stored) = self.stored.as_ref().filter(|_| !is_ours) {
            stored.door.keeper.forgotten(partition, incarnation);
        }
        is_ours
    }

    /// Drops a pair from memory.
    fn forget_memory(&mut self, partition: PairId) {
        let Some(phase) = self.shards.remove(partition) else {
            return;
        };
        if let Some(pair) = phase.into_pair() {
            self.forget(partition, &pair);
        }
        self.shards.insert(partition, Phase::Restoring);
    }

    fn commit_for(&mut self, partition: PairId, number: u64) {
        let pair = self.shards.phase(partition).and_then(Phase::pair);
        let positions = pair.into_iter().flat_map(Pair::positions);
        let positions = positions
            .map(|(side, position)| ((side, partition), position))
            .collect();
        self.orders.push(Order::Ask(Question::Commit {
            epoch: self.questions.epoch(),
            pair: partition,
            number,
            positions,
        }));
    }

    /// Passes on the group's answer to a commit: whether it knows this member.
    pub(super) fn is_known_to_group(&self, partition: PairId, number: u64, is_known: bool) {
        self.stored
            .iter()
            .for_each(|stored| stored.door.keeper.committed(partition, number, is_known));
    }

    fn refuse(&mut self, partition: PairId, why: &str) {
        self.fatal = Some(Fault {
            message: format!("cannot resume partition {partition} from its stored state: {why}"),
            kind: FaultKind::Fatal,
        });
    }
}

impl Pair {
    /// Takes a checkpoint, unless the pair is still replaying its logs.
    fn checkpoint(&mut self) -> Option<Checkpoint> {
        let positions: Vec<(Side, i64)> = self.positions().collect();
        self.tracker.checkpoint(&positions)
    }

    /// Returns whether more has settled since the last offer.
    fn changed_since_offer(&self) -> bool {
        let own = self.stored.as_ref();
        own.is_some_and(|own| self.tracker.settled_until_ms() > own.offered_until_ms)
    }

    /// Encodes the pair at a checkpoint, if it is stored.
    fn state(&mut self, checkpoint: &Checkpoint, now: &LogIdentity) -> Option<(Header, Roles)> {
        let parts = self.tracker.encode_ledger();
        Some(self.stored.as_mut()?.state(checkpoint, parts, now))
    }
}
