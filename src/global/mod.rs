//! The global view: what the seals in force say of all pairs, whoever holds them, on a board of its own.
//!
//! ```text
//! state topic, all partitions ─▶ Onlooker ─ newly in force ─▶ decode ─▶ Board: each pair replaced as a whole
//!                                   │                           └─────▶ Audience
//!                                   └─ how old its ends are ──▶ Handle ─▶ scrapes: shown, or withheld and why
//! ```
//! It reads, and writes nothing. What it shows of a pair was in force when the end of its partition was last asked for; ends are asked for
//! so often that none is older than the lease, unless the brokers do not answer: then all of it is withheld.

mod handle;
mod shown;
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::Context as _;

pub use self::handle::Handle;
pub use self::shown::Whole;
pub use self::work::Work;
use crate::board::Board;
use crate::clock::Clock;
use crate::keeper::Roles;
use crate::ledger::PairId;
use crate::state::{Header, Log, Namespace};
use crate::stored::Terms;

/// So long a round waits for news, ms.
const WAIT_MS: u64 = 20;

/// What the view goes by.
#[derive(Debug, Clone)]
pub struct Settings {
    pub namespace: Namespace,
    pub n_partitions: usize,
    /// Nothing is shown whose end was asked for longer ago, ms.
    pub lease_ms: i64,
    /// No settled window is shown to end further ahead of the clock, ms; mostly negative.
    pub settled_ahead_ms: i64,
}

/// What the view is made of.
pub struct Sources<L> {
    /// Where states are read.
    pub log: L,
    pub settings: Settings,
    pub terms: Terms,
    /// Where they are shown, as `handle` tells.
    pub board: Arc<Board>,
    pub handle: Handle,
    pub audience: Option<Box<dyn Audience>>,
    pub clock: Clock,
}

/// A state that is newly in force.
pub struct Seen<'a> {
    pub pair: PairId,
    pub header: &'a Header,
    pub roles: &'a Roles,
}

/// Who hears what is newly in force, on the thread of the view: it must not wait.
pub trait Audience: Send {
    /// Of one pair, states come in the order in which they were in force; some are passed over.
    fn seen(&mut self, seen: Seen<'_>);
}

/// The thread. Dropping it ends the thread.
pub struct Global {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Global {
    /// Reads the log and shows what it says.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(sources: Sources<impl Log + Send + 'static>) -> anyhow::Result<Global> {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut work = Work::new(sources);
        let run = {
            let is_over = Arc::clone(&is_over);
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    work.round(WAIT_MS);
                }
            }
        };
        let thread = std::thread::Builder::new().name("global".into()).spawn(run);
        Ok(Global {
            is_over,
            thread: Some(thread.context("start the thread of the global view")?),
        })
    }
}

impl Global {
    /// Whether its thread has ended, which it does only where it panics.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Global {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the global view panicked");
        }
    }
}

#[cfg(test)]
mod tests;
