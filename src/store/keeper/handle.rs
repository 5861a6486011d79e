//! Handle through which the worker and scrapes talk to the keeper.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use abgauge_core::journal::{Header, Role, SharedBytes, ShownState, Urgency, Visibility};
use abgauge_core::ledger::PairId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Memory;
use super::status_board::{KeeperBoard, PairStatus};

/// State of a pair: its bytes by role.
pub type Roles = BTreeMap<Role, SharedBytes>;

/// Number of an offered state. Within one memory, a greater number is a later state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offer(pub(super) u64);

#[cfg(test)]
impl Offer {
    /// Makes an offer with a given number, for tests that compare offers.
    pub fn of(number: u64) -> Offer {
        Offer(number)
    }
}

/// State on its way to the keeper.
pub(super) struct Offered {
    pub incarnation: Memory,
    pub offer: Offer,
    pub header: Header,
    pub roles: Roles,
}

/// Message from the worker to the keeper.
pub(super) enum KeeperRequest {
    Assigned,
    Revoked,
    Forgotten(Memory),
    Offer(Offered),
    Leave(Option<Offered>),
    Committed { number: u64, is_known: bool },
    End,
}

/// Handle that reports events of pairs to the keeper, and reads its results. Calls never block. Clones share one keeper.
#[derive(Clone)]
pub struct KeeperHandle {
    pub(super) requests: Sender<(PairId, KeeperRequest)>,
    pub(super) board: Arc<KeeperBoard>,
    /// Counter that numbers memories and offers.
    pub(super) numbers: Arc<AtomicU64>,
    /// Random number, different in each process.
    pub(super) seed: u64,
}

impl fmt::Debug for KeeperHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl KeeperHandle {
    /// Returns an id for the states of a pair that starts with this memory.
    pub(super) fn new_incarnation_id(&self, incarnation: Memory) -> u64 {
        xxh3_64_with_seed(&incarnation.0.to_le_bytes(), self.seed)
    }

    fn send(&self, pair: PairId, request: KeeperRequest) {
        // If the keeper has ended, `Keeper::poll` reports that.
        let _ = self.requests.send((pair, request));
    }

    /// Reports that the group assigned the pair.
    pub fn assigned(&self, pair: PairId) {
        self.send(pair, KeeperRequest::Assigned);
    }

    /// Reports that the group revoked the pair, or that the membership is lost. The memory may stay, since the pair may
    /// come back.
    pub fn revoked(&self, pair: PairId) {
        self.send(pair, KeeperRequest::Revoked);
    }

    /// Reports that this memory is gone although no order dropped it.
    pub fn forgotten(&self, pair: PairId, incarnation: Memory) {
        self.send(pair, KeeperRequest::Forgotten(incarnation));
    }

    /// Reports that the worker obeyed an order: it dropped the pair's previous memory and made this one. Scrapes see this
    /// one from now on.
    pub fn made(&self, pair: PairId, incarnation: Memory) {
        self.board.made(pair, incarnation);
    }

    /// Offers the pair's state as of the end of a batch. It is sealed if a state is wanted and it differs from the last
    /// one.
    pub fn offer(&self, pair: PairId, incarnation: Memory, header: Header, roles: Roles) -> Offer {
        let offered = self.offered(incarnation, header, roles);
        let offer = offered.offer;
        // No further offer is wanted until the keeper has processed this one.
        self.board.wants_no_more(pair);
        self.send(pair, KeeperRequest::Offer(offered));
        offer
    }

    /// Announces that the pair is about to be given back. The last state, if any, is sealed as soon as possible. The keeper
    /// answers with [`Left`](super::KeeperOrder::Left). From then on the pair counts as revoked.
    pub fn leave(&self, pair: PairId, last: Option<(Memory, Header, Roles)>) -> Option<Offer> {
        let last = last.map(|(incarnation, header, roles)| self.offered(incarnation, header, roles));
        let offer = last.as_ref().map(|offered| offered.offer);
        self.send(pair, KeeperRequest::Leave(last));
        offer
    }

    fn offered(&self, incarnation: Memory, header: Header, roles: Roles) -> Offered {
        Offered {
            incarnation,
            offer: Offer(self.numbers.fetch_add(1, Ordering::Relaxed)),
            header,
            roles,
        }
    }

    /// Reports the group's answer to a [`Commit`](super::KeeperOrder::Commit): whether it knows this member and its generation.
    /// Do not report a failure that leaves this open, because the order is repeated.
    pub fn committed(&self, pair: PairId, number: u64, is_known: bool) {
        self.send(pair, KeeperRequest::Committed { number, is_known });
    }

    /// Returns whether to offer a state of the pair: at once, only if a cell has completed, or not at all. The worker asks
    /// in every round.
    pub fn wants(&self, pair: PairId) -> Urgency {
        self.board.wants(pair)
    }

    /// Returns what scrapes may show of the pair. `now_ms` is [`Clock::lasting_ms`](crate::clock::Clock::lasting_ms).
    /// Settled numbers are hidden while the worker has not yet obeyed an order to make another memory.
    pub fn shown(&self, pair: PairId, now_ms: i64) -> ShownState {
        self.board.shown(pair, now_ms)
    }

    /// Returns what the pair's owner allows to be shown, whatever memory the worker has. `None` before the pair is first
    /// assigned.
    pub fn showing(&self, pair: PairId) -> Option<Visibility> {
        self.board.showing(pair)
    }

    pub fn status(&self, pair: PairId) -> PairStatus {
        self.board.status(pair)
    }

    /// Returns why the state topic cannot be read or written, if that is so.
    pub fn fault(&self) -> Option<String> {
        self.board.faults.all()
    }

    /// Returns whether a permission to read or write the state topic is missing.
    pub fn is_forbidden(&self) -> bool {
        self.board.faults.is_forbidden()
    }

    pub(super) fn end(&self) {
        self.send(0, KeeperRequest::End);
    }
}
