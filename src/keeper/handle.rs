//! The worker's side of the keeper.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::board::{Board, Status};
use crate::ledger::PairId;
use crate::state::{Bytes, Header, Role, Showing, Shown, Wanted};

/// The bytes of a state by role.
pub type Roles = BTreeMap<Role, Bytes>;

/// Which memory of a pair: another one after each [`Begin`](super::Order::Begin) and [`Restore`](super::Order::Restore).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Memory(pub(super) u64);

/// Which state: of two of one memory, the greater one is the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offer(pub(super) u64);

#[cfg(test)]
impl Offer {
    /// For tests of what goes by offers.
    pub fn of(number: u64) -> Offer {
        Offer(number)
    }
}

/// A state on its way to the keeper.
pub(super) struct Offered {
    pub memory: Memory,
    pub offer: Offer,
    pub header: Header,
    pub roles: Roles,
}

/// What the worker tells.
pub(super) enum Request {
    Assigned,
    Revoked,
    Forgotten(Memory),
    Offer(Offered),
    Leave(Option<Offered>),
    Committed { number: u64, is_known: bool },
    End,
}

/// Tells the keeper what happens to pairs, and reads what it has found. No call waits; all copies are one.
#[derive(Clone)]
pub struct Handle {
    requests: Sender<(PairId, Request)>,
    board: Arc<Board>,
    /// Numbers of memories and of offers.
    numbers: Arc<AtomicU64>,
    /// Random, and another one in each process.
    seed: u64,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl Handle {
    pub(super) fn new(
        requests: Sender<(PairId, Request)>,
        board: Arc<Board>,
        numbers: Arc<AtomicU64>,
        seed: u64,
    ) -> Handle {
        Handle {
            requests,
            board,
            numbers,
            seed,
        }
    }

    /// For the states of a pair that [begins](super::Order::Begin) with this memory: no other pair that begins has it, here or elsewhere.
    pub fn new_life(&self, memory: Memory) -> u64 {
        xxh3_64_with_seed(&memory.0.to_le_bytes(), self.seed)
    }

    fn tell(&self, pair: PairId, request: Request) {
        // Where the keeper has ended, its orders say so.
        let _ = self.requests.send((pair, request));
    }

    /// The group has given the pair.
    pub fn assigned(&self, pair: PairId) {
        self.tell(pair, Request::Assigned);
    }

    /// The group has taken the pair, or the membership is lost. Memory may stay, for the pair may come back.
    pub fn revoked(&self, pair: PairId) {
        self.tell(pair, Request::Revoked);
    }

    /// This memory is gone, without an order.
    pub fn forgotten(&self, pair: PairId, memory: Memory) {
        self.tell(pair, Request::Forgotten(memory));
    }

    /// What was in memory of the pair is thrown away, and this is made, as it was ordered: what scrapes find is of it from now on.
    pub fn made(&self, pair: PairId, memory: Memory) {
        self.board.made(pair, memory);
    }

    /// The pair as of a border of a batch. It is sealed if it is wanted and another than the last.
    pub fn offer(&self, pair: PairId, memory: Memory, header: Header, roles: Roles) -> Offer {
        let offered = self.offered(memory, header, roles);
        let offer = offered.offer;
        // Until the keeper has seen to it.
        self.board.wants_no_more(pair);
        self.tell(pair, Request::Offer(offered));
        offer
    }

    /// The pair is about to be given back: seals this state, if there is one, as soon as one can be. [`Left`](super::Order::Left) is the
    /// answer; from then on the pair counts as revoked.
    pub fn leave(&self, pair: PairId, last: Option<(Memory, Header, Roles)>) -> Option<Offer> {
        let last = last.map(|(memory, header, roles)| self.offered(memory, header, roles));
        let offer = last.as_ref().map(|offered| offered.offer);
        self.tell(pair, Request::Leave(last));
        offer
    }

    fn offered(&self, memory: Memory, header: Header, roles: Roles) -> Offered {
        Offered {
            memory,
            offer: Offer(self.numbers.fetch_add(1, Ordering::Relaxed)),
            header,
            roles,
        }
    }

    /// What the group says to a [`Commit`](super::Order::Commit): whether it knows this member and its generation. A failure that says
    /// nothing of that is no answer: the order comes again.
    pub fn committed(&self, pair: PairId, number: u64, is_known: bool) {
        self.tell(pair, Request::Committed { number, is_known });
    }

    /// Whether a state of the pair is to be offered: at once, if a cell has completed, or not. For every round.
    pub fn wants(&self, pair: PairId) -> Wanted {
        self.board.wants(pair)
    }

    /// What scrapes may show of the pair; they ask it with [`Clock::lasting_ms`](crate::clock::Clock::lasting_ms). Nothing that has
    /// settled while an order to make another memory is not obeyed.
    pub fn shown(&self, pair: PairId, now_ms: i64) -> Shown {
        self.board.shown(pair, now_ms)
    }

    /// What the owner of the pair lets be shown, whatever the worker has. None before it was first assigned.
    pub fn showing(&self, pair: PairId) -> Option<Showing> {
        self.board.showing(pair)
    }

    /// How the pair stands.
    pub fn status(&self, pair: PairId) -> Status {
        self.board.status(pair)
    }

    /// What keeps the state topic from being read or written, if anything does.
    pub fn fault(&self) -> Option<String> {
        self.board.faults.all()
    }

    pub(super) fn end(&self) {
        self.tell(0, Request::End);
    }
}
