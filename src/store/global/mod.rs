//! Global view: the current states of all pairs, whichever instance owns them, on a board of its own.
//!
//! ```text
//! keeper ── current states ──▶ Publications ─▶ decode ─▶ GlobalBoard: each pair replaced as a whole
//!        ── age of the ends ─▶      │             └────▶ looks
//!                                   └─▶ scrapes: shown, or withheld and why
//! ```
//! The shown state of a pair was current when the end of its partition was last asked for. The keeper asks often enough that no end is
//! older than the lease. If the brokers do not answer, the whole view is withheld.

mod global_board;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use abgauge_core::journal::Sealed;
use abgauge_core::ledger::PairId;
use abgauge_core::looks::Inbox;
use anyhow::Context as _;

pub use self::global_board::GlobalBoard;
use super::publications::Publications;
use crate::clock::Clock;
use crate::store::stored::PairDecoder;

/// Pause while the next state must wait.
const WAIT: Duration = Duration::from_millis(20);
/// Rest after decoding a state, as a multiple of the time it took, so that decoding takes a tenth of a core at most.
const REST: i64 = 9;

/// Inputs and outputs of the view.
pub struct Sources {
    pub publications: Publications,
    pub decoder: PairDecoder,
    /// Board that shows the states.
    pub board: Arc<GlobalBoard>,
    /// Inbox for looks, if experiments are configured. States of one pair arrive in the order in which they were current, but some
    /// are skipped.
    pub looks: Option<Arc<Inbox>>,
    pub clock: Clock,
}

/// Everything the thread owns. Tests drive it directly.
struct GlobalWork {
    sources: Sources,
    /// Content hashes of the states that are shown.
    contents: BTreeMap<PairId, u128>,
    /// Time before which only first states are decoded.
    free_from_ms: i64,
}

impl GlobalWork {
    fn new(sources: Sources) -> GlobalWork {
        GlobalWork {
            sources,
            contents: BTreeMap::new(),
            free_from_ms: i64::MIN,
        }
    }

    /// Shows the next waiting state: first states of pairs at once, later ones from time to time. Returns whether there was
    /// one.
    fn show_next(&mut self) -> bool {
        let started_ms = self.sources.clock.steady_ms();
        let is_free = started_ms >= self.free_from_ms;
        let Some((pair, state)) = self.sources.publications.next(is_free) else {
            return false;
        };
        self.show(pair, &state);
        let now_ms = self.sources.clock.steady_ms();
        // The rest is proportional to the work, so that many states cannot occupy the core.
        self.free_from_ms = now_ms + REST * (now_ms - started_ms);
        true
    }

    fn show(&mut self, pair: PairId, state: &Sealed) {
        let Sources {
            publications,
            decoder,
            board,
            looks,
            ..
        } = &self.sources;
        let (header, content) = (&state.seal.header, state.seal.content);
        let frontier_ms = header.frontier_ms.filter(|_| header.was_caught_up);
        // A new owner seals the same content again, which needs no decoding.
        if self.contents.get(&pair) == Some(&content) {
            return publications.shown(pair, frontier_ms);
        }
        let decoded = match decoder.read(header, &state.roles) {
            Ok(decoded) => decoded,
            Err(unusable) => return publications.refuse(pair, unusable.to_string()),
        };
        board.replace(pair, &decoded, header.was_caught_up);
        self.contents.insert(pair, content);
        publications.shown(pair, frontier_ms);
        if let Some(looks) = looks {
            looks.put(publications.n_partitions(), pair, decoded.into_looks(header));
        }
    }
}

/// Thread of the global view. Dropping this ends it.
pub struct Global {
    publications: Publications,
    thread: Option<JoinHandle<()>>,
}

impl Global {
    /// Starts the thread that shows published states.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(sources: Sources) -> anyhow::Result<Global> {
        let publications = sources.publications.clone();
        let mut work = GlobalWork::new(sources);
        let run = move || {
            while work.sources.publications.wait() {
                if !work.show_next() {
                    std::thread::sleep(WAIT);
                }
            }
        };
        let thread = std::thread::Builder::new().name("global".into()).spawn(run);
        Ok(Global {
            publications,
            thread: Some(thread.context("start the thread of the global view")?),
        })
    }

    /// Returns whether the thread has ended. This happens only if it panics.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Global {
    fn drop(&mut self) {
        self.publications.end();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the global view panicked");
        }
    }
}

#[cfg(test)]
mod tests;
