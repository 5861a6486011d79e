//! Keeps the stored state of the pairs: drives an [`Owner`](crate::state::Owner) for each, on a thread of its own, between a
//! [`Log`] and the worker.
//!
//! ```text
//!             requests                        append, ask
//! worker ────────────────▶  keeper            ───────────▶  log
//!        ◀────────────────  an owner for      ◀───────────
//!              orders       each pair          records, ends, acknowledgements
//!                             │
//! worker, scrapes ◀── board ──┘  what is wanted, what may be shown, how it stands
//! ```
//! It decides nothing that a rule of the state decides: it says when a question is due, and when a state is (every interval, stretched so
//! that the bytes written stay within bounds). No call of a [`Handle`] waits.
//!
//! # What the worker does
//!
//! - It tells what the group gives and takes, and asks [`Handle::wants`] in each round: a state is offered at a border of a batch if a
//!   cell has completed and that says [`Wanted::WhenDue`], or at once if it says so. It is that of a memory, which has the number that
//!   [`Order::Begin`] or [`Order::Restore`] gave it. The offer gets a number, too.
//! - Settled deltas wait with the number of the first offer that holds them; at [`Order::Show`] all up to that one are let go.
//! - An order for a pair that it has no longer is obeyed, or answered by [`Handle::forgotten`]: else the keeper would wait for states of a
//!   memory that there is not.
//! - Before it gives a pair back of its own accord it calls [`Handle::leave`], and waits for [`Order::Left`].

mod board;
mod faults;
mod handle;
mod pace;
mod pair;
mod rivals;
mod work;

use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::JoinHandle;

use anyhow::Context as _;

pub use self::board::{Restored, Status};
pub use self::handle::{Handle, Memory, Offer, Roles};
pub use self::work::{Work, work};
use crate::clock::Clock;
use crate::ledger::PairId;
use crate::state::{Header, Log, Refusal, Settings as OwnerSettings};
pub use crate::state::{Progress, Showing, Shown, Standing, Wanted};

/// So long a round waits for news, ms.
const WAIT_MS: u64 = 20;

/// What the keeper goes by.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Of each owner. The pairs are the partitions of its identity.
    pub owner: OwnerSettings,
    /// A pair is sealed so often, ms.
    pub interval_ms: i64,
    /// This instance writes no more than this in the long run.
    pub max_bytes_per_second: u64,
    /// Random, and another one for each process.
    pub seed: u64,
    /// So long a pair that is left is kept for its last state, ms.
    pub leave_ms: i64,
    /// The group has read the inputs before: a pair of which nothing is stored is worth a line of the log.
    pub has_read: bool,
}

/// What the worker is to do for a pair.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// There is no state: begin by the rule of a start, and offer where that is.
    Begin { memory: Memory },
    /// Throw memory away and make it anew from this state. It is that of an offer with this number.
    Restore {
        memory: Memory,
        offer: Offer,
        header: Header,
        roles: Roles,
    },
    /// The state that was offered with this number is in force: show what it holds.
    Show { offer: Offer },
    /// The group has given the pair to another: throw memory away.
    Drop,
    /// The pair cannot be counted.
    Refuse(Refusal),
    /// Commit the offsets of the pair, and say what becomes of it with this number.
    Commit { number: u64 },
    /// The pair may be given back: its last state is in force, or time is over.
    Left,
}

/// The thread, and what it orders. Dropping it ends the thread.
pub struct Keeper {
    handle: Option<Handle>,
    orders: Receiver<(PairId, Order)>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// # Errors
    /// The thread cannot be started.
    pub fn start(log: impl Log + Send + 'static, settings: Settings, clock: Clock) -> anyhow::Result<Keeper> {
        let (mut work, handle, orders) = work(log, settings, clock);
        let run = move || while work.round(WAIT_MS) {};
        let thread = std::thread::Builder::new().name("keeper".into()).spawn(run);
        Ok(Keeper {
            handle: Some(handle),
            orders,
            thread: Some(thread.context("start the thread that keeps the state")?),
        })
    }

    /// For the worker and for scrapes.
    pub fn handle(&self) -> Handle {
        self.handle.clone().expect("it is there until the drop")
    }

    /// The next order, if there is one.
    ///
    /// # Errors
    /// The thread has ended, which it does only where it panics.
    pub fn poll(&self) -> anyhow::Result<Option<(PairId, Order)>> {
        match self.orders.try_recv() {
            Ok(order) => Ok(Some(order)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => anyhow::bail!("the thread that keeps the state has ended"),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
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
