//! One pair of partitions, from its events to its changes: the join, and the ledger that it settles into.
//!
//! ```text
//! batches ─▶ engine ─▶ live changes ───────────────┐
//!              └─▶ settled lists ─▶ ledger ─▶ slots ┴─▶ PairDelta
//! ```

use std::sync::Arc;

use super::{Cell, Keep, Kept, Ledger, Parts, SettledSlot};
use crate::engine::catalogue::Catalogue;
use crate::engine::event::{Batch, Side};
use crate::engine::outcome::Counts;
use crate::engine::ranking::Ranking;
use crate::engine::tally::Rows;
use crate::engine::watermark::Watermarks;
use crate::engine::{Arm, ArmInSlot, Checkpoint, Engine, Replayed, ResumeError, Rules, ShownLists};

/// Settled lists that are processed for each event read: lists settle as fast as they arrive, and a backlog shrinks.
const LISTS_AN_EVENT: usize = 2;
/// Settled lists that are processed with each batch, besides those: about 50 µs.
const LISTS_A_BATCH: usize = 1024;

/// The partition number that both topics of a pair share.
pub type PairId = i32;

/// What has changed in a pair, by value: the board need not know where it comes from.
#[derive(Debug, Default)]
pub struct PairDelta {
    /// Arms that the pair has admitted since, in its order: their numbers go on from those before.
    pub arms: Vec<Arm>,
    /// What lists and clicks have added to their arms in open slots.
    pub live: Rows<ArmInSlot>,
    /// What new lists have shown, where coverage is measured.
    pub shown: ShownLists,
    pub settled: Vec<SettledSlot>,
    /// What users add up to, in cells that have become complete: by number, ascending.
    pub cells: Vec<(i64, Cell)>,
    /// Outcomes of records.
    pub counts: Counts,
    pub reach: Reach,
}

/// How far a pair has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reach {
    /// The last instant that its settled slots cover, epoch ms.
    pub settled_end_ms: Option<i64>,
    /// Where it begins to count, epoch ms.
    pub begin_ms: Option<i64>,
    /// The smallest time of an accepted event, epoch ms.
    pub first_accepted_ms: Option<i64>,
    pub n_folded: u64,
    /// No sum has exceeded 64 bits.
    pub is_exact: bool,
}

/// The engine of a pair and its ledger.
#[derive(Debug)]
pub struct PairTracker {
    engine: Engine,
    ledger: Ledger,
    settled: Vec<SettledSlot>,
    /// The span of the cells of users alone, if its ledger keeps any.
    users: Option<usize>,
    /// Number of arms that were handed over.
    n_arms: usize,
    #[cfg(debug_assertions)]
    twin: twin::Twin,
}

impl PairTracker {
    /// A tracker that counts from `begin_ms` on, or everything. If its ledger keeps one span of users alone, its complete cells leave
    /// with the changes.
    pub fn new(rules: Rules, ranking: Ranking, begin_ms: Option<i64>, keep: &Keep) -> PairTracker {
        let ledger = Ledger::new(&ranking, keep);
        PairTracker::with(Engine::new(rules, ranking, begin_ms), ledger, keep)
    }

    /// A tracker that goes on from a checkpoint with the ledger of that moment, which keeps this. It is to read each topic from
    /// its resume point on: see [`Engine::resume`]. Its deltas go on from there: the arms of the ledger are in none.
    ///
    /// # Errors
    /// [`ResumeError`] if these rules, or this ledger, cannot have made the checkpoint.
    pub fn resume(
        rules: Rules,
        ranking: Ranking,
        keep: &Keep,
        from: &Checkpoint,
        ledger: Ledger,
    ) -> Result<PairTracker, ResumeError> {
        if ledger.until_ms() != from.until_ms {
            return Err(ResumeError::Until);
        }
        let engine = Engine::resume(rules, ranking, from, ledger.arms())?;
        Ok(PairTracker::with(engine, ledger, keep))
    }

    /// See [`Engine::give_up_copies`].
    pub fn give_up_copies(&mut self) -> Option<i64> {
        self.engine.give_up_copies()
    }

    fn with(engine: Engine, ledger: Ledger, keep: &Keep) -> PairTracker {
        PairTracker {
            engine,
            settled: Vec::new(),
            users: keep.spans.iter().position(|span| span.kept == Kept::ByUser),
            n_arms: ledger.arms().len(),
            ledger,
            #[cfg(debug_assertions)]
            twin: twin::Twin::default(),
        }
    }

    /// The same; the bytes of its ledger have the cells of users that have left too, until they are [let go](Self::let_go).
    pub fn keeping_cells(mut self) -> PairTracker {
        self.ledger.keep_taken();
        self
    }

    /// Drops the cells of users that have left, below this number.
    pub fn let_go(&mut self, below: i64) {
        self.users
            .iter()
            .for_each(|span| self.ledger.let_go(*span, below));
    }

    /// Takes the complete cells of users, by number, ahead of all other changes.
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

    /// Counts lists with this catalogue, starting with the next slot that opens.
    pub fn set_catalogue(&mut self, catalogue: Arc<Catalogue>) {
        self.engine.set_catalogue(catalogue);
    }

    /// Processes a batch, as long as the state stays within `room_bytes`; what does not fit is shed.
    pub fn apply(&mut self, batch: &Batch, room_bytes: u64) {
        self.engine.apply(batch, room_bytes);
        let refused = self.engine.take_refused();
        if !refused.is_empty() {
            self.admit();
            refused.iter().for_each(|list| self.ledger.refuse(list));
        }
        self.settle(LISTS_A_BATCH + LISTS_AN_EVENT * batch.events.len());
    }

    /// Makes an idle move (rule D7): see [`Engine::idle`].
    pub fn idle(&mut self, side: Side, live_end_ms: Option<i64>, until_ms: i64) {
        self.engine.idle(side, live_end_ms, until_ms);
    }

    /// Adds up to `n_lists` lists with a final outcome to the ledger; returns their number.
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
        ledger.admit(&engine.arms()[ledger.arms().len()..]);
        let n_told = engine.visit_settled(n_lists, |told| settled.extend(ledger.take(told)));
        ledger.cover_until(engine.settled_until_ms());
        n_told
    }

    /// Settles everything, as at the end of a file.
    pub fn close_all(&mut self) {
        self.engine.close_all();
        self.settle(usize::MAX);
    }

    /// Whether lists wait for [`Self::settle`].
    pub fn has_settled(&self) -> bool {
        self.engine.has_settled()
    }

    /// The end of what its ledger covers, epoch ms; none before the pair had a record.
    pub fn settled_until_ms(&self) -> Option<i64> {
        self.engine.settled_until_ms()
    }

    /// Tells the users of an experiment no longer apart.
    pub fn forget_users(&mut self, experiment: &str) {
        self.ledger.forget_users(experiment);
    }

    /// What it stands at after a batch, given the offset of the next record of each of its topics, the one of lists first.
    /// Its ledger covers as much, and has all arms that were admitted: what waits to settle is settled first (50 ns a list). None
    /// while it replays.
    pub fn checkpoint(&mut self, positions: &[(Side, i64)]) -> Option<Checkpoint> {
        if self.engine.is_replaying() {
            return None;
        }
        self.settle(usize::MAX);
        self.admit();
        let checkpoint = self.engine.checkpoint(positions)?;
        self.ledger.cover_until(checkpoint.until_ms);
        Some(Checkpoint {
            is_exact: checkpoint.is_exact && !self.ledger.overflowed(),
            ..checkpoint
        })
    }

    /// Names to the ledger the arms that the engine has admitted since.
    fn admit(&mut self) {
        self.ledger.admit(&self.engine.arms()[self.ledger.arms().len()..]);
    }

    /// The bytes of its ledger, whose complete cells are kept as bytes alone from now on.
    pub fn encode_ledger(&mut self) -> Parts {
        self.ledger.pack();
        self.ledger.encode()
    }

    /// Whether a topic is still to be read again up to the position of the checkpoint. Until then it makes no idle move.
    pub fn is_replaying(&self) -> bool {
        self.engine.is_replaying()
    }

    /// Notes that all records of a topic before this offset were read: see [`Engine::reached`].
    pub fn reached(&mut self, side: Side, offset: i64) {
        self.engine.reached(side, offset);
    }

    /// What has come of reading a topic again; none if the tracker was not resumed.
    pub fn replayed(&self, side: Side) -> Option<Replayed> {
        self.engine.replayed(side)
    }

    /// Takes the changes since the last call.
    pub fn take_delta(&mut self) -> PairDelta {
        let changes = self.engine.take_changes();
        let arms = self.engine.arms()[self.n_arms..].to_vec();
        self.n_arms += arms.len();
        let settled = std::mem::take(&mut self.settled);
        let is_exact = !changes.overflowed && !self.ledger.overflowed();
        // Also where no list has settled.
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
            reach: Reach {
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
    //! The live view and the settled view add up the same lists in two ways. Whenever a slot settles, they must agree.

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
                let mut told: BTreeMap<ArmId, Vec<i128>> = slot
                    .tallies
                    .iter()
                    .map(|(arm, sums)| (arm, sums.iter().map(|sum| i128::from(*sum)).collect()))
                    .collect();
                expected.values_mut().chain(told.values_mut()).for_each(trim);
                assert_eq!(
                    told, expected,
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
