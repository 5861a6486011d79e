//! Global view: the current seals of all pairs, whichever instance owns them, on a board of its own.
//!
//! ```text
//! state topic, all partitions ─▶ Onlooker ─ newly current ─▶ decode ─▶ Board: each pair replaced as a whole
//!                                   │                          └─────▶ Audience
//!                                   └─ age of its ends ──────▶ Handle ─▶ scrapes: shown, or withheld and why
//! ```
//! It reads and never writes. The shown state of a pair was current when the end of its partition was last asked for. Ends
//! are asked for often enough that none is older than the lease. If the brokers do not answer, the whole view is withheld.

mod global_board;
mod handle;
mod rounds;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use abgauge_core::journal::{Header, Log, Namespace};
use abgauge_core::ledger::PairId;
use anyhow::Context as _;

pub use self::global_board::GlobalBoard;
pub use self::handle::GlobalHandle;
pub use self::rounds::GlobalWork;
use crate::board::Board;
use crate::clock::Clock;
use crate::store::keeper::Roles;
use crate::store::stored::PairDecoder;

/// Longest wait for news in a round, ms.
const WAIT_MS: u64 = 20;

/// Settings of the view.
#[derive(Debug, Clone)]
pub struct GlobalSettings {
    pub namespace: Namespace,
    pub n_partitions: usize,
    /// Age of an end from which nothing is shown, ms.
    pub lease_ms: i64,
    /// Bound on how far ahead of the clock a settled window may end, ms; usually negative.
    pub settled_ahead_ms: i64,
}

/// Inputs and outputs of the view.
pub struct Sources<L> {
    /// Log that states are read from.
    pub log: L,
    pub settings: GlobalSettings,
    pub terms: PairDecoder,
    /// Board that shows the states, as far as `handle` permits.
    pub board: Arc<Board>,
    pub handle: GlobalHandle,
    pub audience: Option<Box<dyn Audience>>,
    pub clock: Clock,
}

/// State that is newly current.
pub struct NewState<'a> {
    pub pair: PairId,
    pub header: &'a Header,
    pub roles: &'a Roles,
}

/// Receiver of newly current states. It runs on the thread of the view and must not block.
pub trait Audience: Send {
    /// Takes a state. States of one pair arrive in the order in which they were current, but some are skipped.
    fn seen(&mut self, seen: NewState<'_>);
}

/// Thread of the global view. Dropping this ends it.
pub struct Global {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Global {
    /// Starts the thread that reads the log and shows its states.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(sources: Sources<impl Log + Send + 'static>) -> anyhow::Result<Global> {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut work = GlobalWork::new(sources);
        let run = {
            let is_over = Arc::clone(&is_over);
            move || {
                // The flag orders no other memory, so relaxed access is enough. A round waits only briefly, so the thread ends
                // soon.
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
    /// Returns whether the thread has ended. This happens only if it panics.
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
