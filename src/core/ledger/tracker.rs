//! One pair of partitions, from events to changes: the join, and the ledger it settles into.
//!
//! ```text
//! batches ─▶ engine ─▶ live changes ───────────────┐
//!              └─▶ settled lists ─▶ ledger ─▶ slots ┴─▶ PairDelta
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Cell, EncodedLedger, Keep, KeptAggregates, Ledger, SettledSlot};
use crate::engine::event::{Batch, Side};
use crate::engine::outcome::Counts;
use crate::engine::tally::Rows;
use crate::engine::watermark::Watermarks;
use crate::engine::{Arm, ArmId, ArmInSlot, Checkpoint, Engine, ResumeError, Rules, ShownLists};
use crate::metrics::Ranking;
use crate::metrics::catalogue::Catalogue;

/// Settled lists processed per event read: more than one, so that lists settle as fast as they arrive and a backlog shrinks.
const LISTS_AN_EVENT: usize = 2;
/// Additional settled lists processed with each batch, about 50 µs.
const LISTS_A_BATCH: usize = 1024;

/// Partition number shared by both topics of a pair.
pub type PairId = i32;

/// Changes of a pair by value, so that the board need not know their source.
#[derive(Debug, Default)]
pub struct PairDelta {
    /// Arms admitted since the last delta, in the order of the pair. Their numbers continue from earlier arms.
    pub arms: Vec<Arm>,
    /// Changes to arms in open slots by lists and clicks.
    pub live: Rows<ArmInSlot>,
    /// Items shown by new lists, if coverage is measured.
    pub shown: ShownLists,
    pub settled: Vec<SettledSlot>,
    /// Sums of users in cells that became complete, by ascending cell number.
    pub cells: Vec<(i64, Cell)>,
    /// Outcomes of records.
    pub counts: Counts,
    pub reach: CountingProgress,
}

/// Progress of a pair.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountingProgress {
    /// Last instant covered by settled slots, Unix ms.
    pub settled_end_ms: Option<i64>,
    /// Start of counting, Unix ms.
    pub begin_ms: Option<i64>,
    /// Smallest time of an accepted event, Unix ms.
    pub first_accepted_ms: Option<i64>,
    pub n_folded: u64,
    /// True if no sum has exceeded 64 bits.
    pub is_exact: bool,
}

/// Engine of a pair and its ledger.
#[derive(Debug)]
pub struct PairTracker {
    engine: Engine,
    ledger: Ledger,
    settled: Vec<SettledSlot>,
    /// Span whose cells contain only sums of users, if the ledger keeps one.
    users: Option<usize>,
    /// Number of arms already handed over.
    n_arms: usize,
    #[cfg(debug_assertions)]
    twin: twin::Twin,
}

impl PairTracker {
    /// Creates a tracker that counts from `begin_ms` on, or everything. If its ledger keeps a span with only sums of users,
    /// complete cells of that span leave with the changes.
    pub fn new(rules: Rules, ranking: Ranking, begin_ms: Option<i64>, keep: &Keep) -> PairTracker {
        let ledger = Ledger::new(&ranking, keep);
        PairTracker::with(Engine::new(rules, ranking, begin_ms), ledger, keep)
    }

    /// Resumes a tracker from a checkpoint and the ledger of the same moment, which keeps `keep`. The caller must read each
    /// topic from its resume point on; see [`Engine::resume`]. Deltas contain only later changes and none of the ledger's arms.
    ///
    /// # Errors
    /// [`ResumeError`] if these rules or this ledger cannot have produced the checkpoint.
    pub fn resume(
        rules: Rules,
        ranking: Ranking,
        keep: &Keep,
        from: &Checkpoint,
        ledger: Ledger,
    ) -> Result<PairTracker, ResumeError> {
        // With a ledger of another moment, lists would be lost or counted twice.
        if ledger.until_ms() != from.until_ms {
            return Err(ResumeError::Until);
        }
        let engine = Engine::resume(rules, ranking, from, ledger.arms())?;
        Ok(PairTracker::with(engine, ledger, keep))
    }

    /// Gives up copies, see [`Engine::give_up_copies`].
    pub fn give_up_copies(&mut self) -> Option<i64> {
        self.engine.give_up_copies()
    }

    fn with(engine: Engine, ledger: Ledger, keep: &Keep) -> PairTracker {
        PairTracker {
            engine,
            settled: Vec::new(),
            users: keep
                .spans
                .iter()
                .position(|span| span.kept == KeptAggregates::ByUser),
            n_arms: ledger.arms().len(),
            ledger,
            #[cfg(debug_assertions)]
            twin: twin::Twin::default(),
        }
    }

    /// Returns a tracker whose encoded ledger also has the removed cells of users, until [`let_go`](Self::let_go) drops them.
    pub fn keeping_cells(mut self) -> PairTracker {
        self.ledger.keep_taken();
        self
    }

    /// Drops the removed cells of users below this number.
    pub fn let_go(&mut self, below: i64) {
        self.users
            .iter()
            .for_each(|span| self.ledger.let_go(*span, below));
    }

    /// Takes the complete cells of users by number, before all other changes.
    pub fn take_cells(&mut self) -> Vec<(i64, Cell)> {
        let span = self.users;
        span.map(|span| self.ledger.take_complete(span))
            .unwrap_or_default()
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn watermarks_mut(&mut self) -> &mut Watermarks {
        self.engine.watermarks_mut()
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Uses this catalogue to count lists, starting with the next slot that opens.
    pub fn set_catalogue(&mut self, catalogue: Arc<Catalogue>) {
        self.engine.set_catalogue(catalogue);
    }

    /// Processes a batch as long as the open lists stay within `room_bytes`. The rest is shed.
    pub fn apply(&mut self, batch: &Batch, room_bytes: u64) {
        self.engine.apply(batch, room_bytes);
        let refused = self.engine.take_refused();
        // A list may be the first of its arm even if it is refused, so the ledger must know the arm.
        if !refused.is_empty() {
            self.admit();
            refused.iter().for_each(|list| self.ledger.refuse(list));
        }
        self.settle(LISTS_A_BATCH + LISTS_AN_EVENT * batch.events.len());
    }

    /// Counts the refused lists of these arms, which other pairs have admitted, even if none of the lists is accepted here.
    pub fn learn_arms(&mut self, arms: &BTreeSet<Arm>) {
        let unlisted: Vec<Arm> = self
            .ledger
            .unlisted()
            .map(|(arm, _)| arm.clone())
            .filter(|arm| arms.contains(arm))
            .collect();
        let Some(until_ms) = self.settled_until_ms().filter(|_| !unlisted.is_empty()) else {
            return;
        };
        let ids: Vec<ArmId> = unlisted
            .iter()
            .filter_map(|arm| self.engine.learn_arm(arm))
            .collect();
        self.admit();
        for id in ids {
            self.ledger.count_unlisted(id, until_ms);
        }
    }

    /// Makes an idle move (rule D7), see [`Engine::idle`].
    pub fn idle(&mut self, side: Side, live_end_ms: Option<i64>, until_ms: i64) {
        self.engine.idle(side, live_end_ms, until_ms);
    }

    /// Adds up to `n_lists` lists with a final outcome to the ledger and returns their number.
    pub fn settle(&mut self, n_lists: usize) -> usize {
        let PairTracker {
            engine,
            ledger,
            settled,
            ..
        } = self;
        if !engine.has_settled() {
            return 0;
        }
        // The ledger must know an arm before its first list.
        ledger.admit(&engine.arms()[ledger.arms().len()..]);
        let n_reported = engine.visit_settled(n_lists, |reported| settled.extend(ledger.take(reported)));
        // Slots without lists are not visited, but they are covered as well.
        ledger.cover_until(engine.settled_until_ms());
        n_reported
    }

    /// Settles everything, as at the end of a file.
    pub fn close_all(&mut self) {
        self.engine.close_all();
        self.settle(usize::MAX);
    }

    /// Returns the end of the time that the ledger covers, Unix ms, or `None` before the first record of the pair.
    pub fn settled_until_ms(&self) -> Option<i64> {
        self.engine.settled_until_ms()
    }

    /// Stops tracking the users of an experiment.
    pub fn forget_users(&mut self, experiment: &str) {
        self.ledger.forget_users(experiment);
    }

    /// Returns a checkpoint after a batch, or `None` while the tracker replays. `positions` is the offset of the next record of
    /// each topic, the topic of lists first. To match it, the ledger settles all waiting lists (50 ns each) and registers all
    /// admitted arms.
    pub fn checkpoint(&mut self, positions: &[(Side, i64)]) -> Option<Checkpoint> {
        if self.engine.is_replaying() {
            return None;
        }
        // The engine gives no checkpoint while settled lists wait for their visit.
        self.settle(usize::MAX);
        self.admit();
        let checkpoint = self.engine.checkpoint(positions)?;
        self.ledger.cover_until(checkpoint.until_ms);
        Some(Checkpoint {
            is_exact: checkpoint.is_exact && !self.ledger.overflowed(),
            ..checkpoint
        })
    }

    /// Registers arms newly admitted by the engine with the ledger.
    fn admit(&mut self) {
        self.ledger.admit(&self.engine.arms()[self.ledger.arms().len()..]);
    }

    /// Encodes the ledger. Its complete cells are kept only in encoded form from now on.
    pub fn encode_ledger(&mut self) -> EncodedLedger {
        self.ledger.pack();
        self.ledger.encode()
    }

    /// Notes that all records of a topic before this offset were read, see [`Engine::reached`].
    pub fn reached(&mut self, side: Side, offset: i64) {
        self.engine.reached(side, offset);
    }

    /// Takes the changes since the last call.
    pub fn take_delta(&mut self) -> PairDelta {
        let changes = self.engine.take_changes();
        let arms = self.engine.arms()[self.n_arms..].to_vec();
        self.n_arms += arms.len();
        let settled = std::mem::take(&mut self.settled);
        let is_exact = !changes.overflowed && !self.ledger.overflowed();
        // The covered time grows even if no list has settled.
        self.ledger.cover_until(self.engine.settled_until_ms());
        #[cfg(debug_assertions)]
        if is_exact {
            self.twin.check(&changes.live, &settled);
        }
        PairDelta {
            arms,
            live: changes.live,
            shown: changes.shown,
            settled,
            cells: self.take_cells(),
            counts: changes.counts,
            reach: CountingProgress {
                settled_end_ms: self.settled_until_ms().map(|until_ms| until_ms - 1),
                begin_ms: self.engine.begin_ms(),
                first_accepted_ms: self.engine.accepted_ms().map(|(first, _)| first),
                n_folded: self.engine.n_folded_arms(),
                is_exact,
            },
        }
    }
}

#[cfg(debug_assertions)]
mod twin {
    //! The live and the settled view sum up the same lists in two ways. Whenever a slot settles, they must agree.

    use std::collections::BTreeMap;

    use crate::engine::tally::Rows;
    use crate::engine::{ArmId, ArmInSlot};
    use crate::ledger::SettledSlot;

    /// Live changes of slots that have not settled yet.
    #[derive(Debug, Default)]
    pub struct Twin(BTreeMap<i64, BTreeMap<ArmId, Vec<i128>>>);

    impl Twin {
        /// # Panics
        /// If a settled slot is not the sum of its live changes.
        pub fn check(&mut self, live: &Rows<ArmInSlot>, settled: &[SettledSlot]) {
            for (of, terms) in live.iter() {
                let slot = self.0.entry(of.start_ms).or_default();
                let sums = slot.entry(of.arm).or_default();
                sums.resize(sums.len().max(terms.len()), 0);
                sums.iter_mut()
                    .zip(terms)
                    .for_each(|(sum, term)| *sum += i128::from(*term));
            }
            for slot in settled {
                let mut expected = self.0.remove(&slot.start_ms).unwrap_or_default();
                let mut reported: BTreeMap<ArmId, Vec<i128>> = slot
                    .tallies
                    .iter()
                    .map(|(arm, sums)| (arm, sums.iter().map(|sum| i128::from(*sum)).collect()))
                    .collect();
                expected.values_mut().chain(reported.values_mut()).for_each(trim);
                assert_eq!(
                    reported, expected,
                    "the slot of {} has settled as others than live",
                    slot.start_ms
                );
            }
        }
    }

    fn trim(sums: &mut Vec<i128>) {
        let n = sums.iter().rposition(|sum| *sum != 0).map_or(0, |last| last + 1);
        sums.truncate(n);
    }
}
