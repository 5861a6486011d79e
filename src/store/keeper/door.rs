//! Door of the store for the pairs of a worker: settled numbers go in with the states that contain them, and come out once a state is
//! current.

use std::collections::BTreeMap;

use abgauge_core::journal::Header;
use abgauge_core::ledger::{PairDelta, PairId};

use super::pending::PendingNumbers;
use super::{KeeperHandle, Memory, Offer, Roles};

/// Pairs in a worker's memory, with their settled numbers that wait to be stored.
#[derive(Debug)]
pub struct Door {
    /// Handle for calls that do not concern a memory.
    pub keeper: KeeperHandle,
    pairs: BTreeMap<PairId, PairInMemory>,
}

#[derive(Debug)]
struct PairInMemory {
    incarnation: Memory,
    pending: PendingNumbers,
}

impl Door {
    pub fn new(keeper: KeeperHandle) -> Door {
        Door {
            keeper,
            pairs: BTreeMap::new(),
        }
    }

    /// Notes that the worker carried out an order: it dropped the pair's previous memory and made this one, whose settled
    /// numbers are shown up to `shown_end_ms` (Unix ms). Scrapes see this memory from now on.
    pub fn made(&mut self, pair: PairId, incarnation: Memory, shown_end_ms: Option<i64>) {
        let pending = PendingNumbers::shown_to(shown_end_ms);
        self.pairs.insert(pair, PairInMemory { incarnation, pending });
        self.keeper.made(pair, incarnation);
    }

    /// Returns the id for all states of a memory that [starts without stored state](super::KeeperOrder::Begin). No other such
    /// memory gets the same id, on this instance or another.
    pub fn incarnation_id(&self, pair: PairId) -> Option<u64> {
        let of = self.pairs.get(&pair)?;
        Some(self.keeper.new_incarnation_id(of.incarnation))
    }

    /// Notes that the pair is no longer in memory.
    pub fn forget(&mut self, pair: PairId) {
        if let Some(PairInMemory { incarnation, .. }) = self.pairs.remove(&pair) {
            self.keeper.forgotten(pair, incarnation);
        }
    }

    /// Takes the changes of a pair. Keeps the settled ones until a state that contains them is current, and returns the others.
    pub fn commit(&mut self, pair: PairId, delta: PairDelta) -> PairDelta {
        match self.pairs.get_mut(&pair) {
            Some(of) => of.pending.take(delta),
            None => delta,
        }
    }

    /// Offers a state that contains everything committed so far.
    pub fn offer(&mut self, pair: PairId, header: Header, roles: Roles) {
        if let Some(of) = self.pairs.get_mut(&pair) {
            let offer = self.keeper.offer(pair, of.incarnation, header, roles);
            of.pending.offered(offer);
        }
    }

    /// Announces that the pair is about to be given back, with its last state if it has one.
    pub fn leave(&mut self, pair: PairId, last: Option<(Header, Roles)>) {
        let of = self.pairs.get(&pair);
        let last = of.zip(last);
        let last = last.map(|(of, (header, roles))| (of.incarnation, header, roles));
        self.keeper.leave(pair, last);
    }

    /// Returns the settled changes in the state that is now current, in the order in which they were committed.
    pub fn release(&mut self, pair: PairId, current: Offer) -> Vec<PairDelta> {
        let of = self.pairs.get_mut(&pair);
        of.map_or_else(Vec::new, |of| of.pending.show(current))
    }

    /// Checks whether the waiting numbers of a pair exceed `room_bytes`. If they did before, they must first fall to half of
    /// that.
    pub fn is_full(&mut self, pair: PairId, room_bytes: u64) -> bool {
        let of = self.pairs.get_mut(&pair);
        of.is_some_and(|of| of.pending.measure(room_bytes))
    }

    /// Returns the size of the waiting numbers, if it was over the limit when last checked.
    pub fn too_many_bytes(&self, pair: PairId) -> Option<u64> {
        self.pairs.get(&pair)?.pending.too_many_bytes()
    }
}
