//! Keeper of the stored state: the thread that follows the state topic. It holds one view of each partition, with an
//! [`Owner`](abgauge_core::journal::Owner) over it if the pair was assigned here.
//!
//! ```text
//!             requests                        append, ask
//! worker ────────────────▶  keeper            ───────────▶  log
//!        ◀────────────────  a view for each   ◀───────────
//!              orders       partition, with    records, ends, acknowledgements
//!                           owners │ and onlookers
//! worker, scrapes ◀── board ───────┤  what is wanted, what may be shown, the status
//! global view, looks ◀─────────────┘  publications: states that are newly current
//! ```
//! The keeper decides nothing that a rule of the state decides. It only schedules questions and seals. A seal is due every
//! interval, and the interval is stretched to keep the written bytes within their bound. No call of a [`KeeperHandle`] blocks.
//!
//! If the global view subscribes, partitions of other instances are followed too, a few at a time, and only while no pair of this
//! instance is still being read.
//!
//! # Duties of the worker
//!
//! - It reports which pairs the group assigns and revokes.
//! - It asks [`KeeperHandle::wants`] in each round and offers states at batch boundaries: at once for [`Urgency::AtOnce`], or for
//!   [`Urgency::WhenDue`] if a cell has completed. A state belongs to a memory, whose number came with [`KeeperOrder::Begin`] or
//!   [`KeeperOrder::Restore`]. The offer gets a number, too.
//! - It commits its deltas to a [`Door`], which holds the settled ones back until [`KeeperOrder::Show`] names an offer that contains
//!   them.
//! - It obeys an order for a pair that it no longer has, or answers with [`KeeperHandle::forgotten`]. Otherwise the keeper would
//!   wait for states of a memory that does not exist.
//! - It calls [`KeeperHandle::leave`] and waits for [`KeeperOrder::Left`] before it gives a pair back voluntarily.

mod conflicting_instances;
mod door;
mod followed;
mod handle;
mod pace;
mod pair;
mod pending;
mod rounds;
mod status_board;

use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::JoinHandle;

use abgauge_core::journal::{Header, Log, OwnerSettings, Refusal};
pub use abgauge_core::journal::{LogProgress, OwnerStatus, ShownState, Urgency, Visibility};
use abgauge_core::ledger::PairId;
use anyhow::Context as _;

pub use self::door::Door;
pub use self::handle::{KeeperHandle, Offer, Roles};
pub use self::rounds::{KeeperWork, work};
pub use self::status_board::{PairStatus, Restored};
use crate::clock::Clock;
use crate::store::publications::Publications;

/// Longest wait for news in a round, ms.
const WAIT_MS: u64 = 20;

/// Settings of the keeper.
#[derive(Debug, Clone)]
pub struct KeeperSettings {
    /// Settings of each owner. The pairs are the partitions of its identity.
    pub owner: OwnerSettings,
    /// Interval between two seals of a pair, ms.
    pub interval_ms: i64,
    /// Long-run bound on the bytes that this instance writes.
    pub max_bytes_per_second: u64,
    /// Random number, different in each process.
    pub seed: u64,
    /// Longest time for which a pair that is being given back waits for its last state, ms.
    pub leave_ms: i64,
    /// Set if the group has read the inputs before. Then a pair without stored state is worth a line in the log.
    pub has_read: bool,
}

/// Number of one incarnation of a pair in the worker's memory. Each [`Begin`](KeeperOrder::Begin) and
/// [`Restore`](KeeperOrder::Restore) creates a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Memory(u64);

/// Order to the worker for one pair.
#[derive(Debug, Clone, PartialEq)]
pub enum KeeperOrder {
    /// Start by the start rule, since there is no state. Offer the state at that point.
    Begin { incarnation: Memory },
    /// Drop the memory and rebuild it from this state, which counts as the offer with this number.
    Restore {
        incarnation: Memory,
        offer: Offer,
        header: Header,
        roles: Roles,
    },
    /// Show the contents of this offer: it is the current state.
    Show { offer: Offer },
    /// Drop the memory: the group has given the pair to another instance.
    Drop,
    /// Stop counting the pair.
    Refuse(Refusal),
    /// Commit the pair's offsets, and report the outcome with this number.
    Commit { number: u64 },
    /// Give the pair back: its last state is current, or the time is over.
    Left,
}

/// Thread that keeps the state, and its orders. Dropping this ends the thread.
pub struct Keeper {
    handle: Option<KeeperHandle>,
    orders: Receiver<(PairId, KeeperOrder)>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread. With `publications`, it follows all partitions and publishes their current states.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        log: impl Log + Send + 'static,
        settings: KeeperSettings,
        publications: Option<Publications>,
        clock: Clock,
    ) -> anyhow::Result<Keeper> {
        let (mut work, handle, orders) = work(log, settings, publications, clock);
        let run = move || while work.round(WAIT_MS) {};
        let thread = std::thread::Builder::new().name("keeper".into()).spawn(run);
        Ok(Keeper {
            handle: Some(handle),
            orders,
            thread: Some(thread.context("start the thread that keeps the state")?),
        })
    }

    /// Returns a handle for the worker or for scrapes.
    pub fn handle(&self) -> KeeperHandle {
        self.handle.clone().expect("it is there until the drop")
    }

    /// Returns the next order, if there is one.
    ///
    /// # Errors
    /// The thread has ended. This happens only if it panics.
    pub fn poll(&self) -> anyhow::Result<Option<(PairId, KeeperOrder)>> {
        match self.orders.try_recv() {
            Ok(order) => Ok(Some(order)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => anyhow::bail!("the thread that keeps the state has ended"),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The thread ends at this message, so it must be sent before the join.
        if let Some(handle) = self.handle.take() {
            handle.end();
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that keeps the state panicked");
        }
    }
}
