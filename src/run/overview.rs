//! Global view over all partitions: visible from the start, filled once the number of partitions is known.

use std::sync::Arc;

use abgauge_core::looks::Inbox;
use abgauge_core::metrics::Ranking;
use abgauge_core::metrics::catalogue::Catalogue;

use crate::board::Board;
use crate::clock::Clock;
use crate::serve::GlobalScope;
use crate::settings::Config;
use crate::store::global::{Global, GlobalBoard, Sources};
use crate::store::publications::Publications;
use crate::store::stored::PairDecoder;

pub struct Overview {
    board: Arc<GlobalBoard>,
    publications: Publications,
    clock: Clock,
    /// Inbox for looks, if experiments are configured.
    looks: Option<Arc<Inbox>>,
    thread: Option<Global>,
}

impl Overview {
    /// Creates an empty view that shows no state older than `lease_ms`.
    pub fn new(
        config: &Config,
        ranking: &Ranking,
        looks: Option<Arc<Inbox>>,
        lease_ms: i64,
        clock: Clock,
    ) -> Overview {
        let publications = Publications::new(lease_ms, clock.clone());
        let join = &config.join;
        let settled_ahead_ms = join.max_future_ms - join.lateness_ms - join.attribution_ms;
        let board = GlobalBoard::new(
            Board::new(config, ranking),
            publications.clone(),
            settled_ahead_ms,
            clock.clone(),
        );
        Overview {
            board: Arc::new(board),
            publications,
            clock,
            looks,
            thread: None,
        }
    }

    pub fn scope(&self) -> GlobalScope {
        GlobalScope {
            source: Arc::clone(&self.board) as _,
            publications: self.publications.clone(),
        }
    }

    /// Returns the handle through which the keeper publishes.
    pub fn publications(&self) -> Publications {
        self.publications.clone()
    }

    pub fn set_catalogue(&self, catalogue: &Arc<Catalogue>) {
        self.board.set_catalogue(catalogue);
    }

    /// Starts showing published states.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(&mut self, config: &Config) -> anyhow::Result<()> {
        let global = Global::start(Sources {
            publications: self.publications.clone(),
            decoder: PairDecoder::new(config),
            board: Arc::clone(&self.board),
            looks: self.looks.clone(),
            clock: self.clock.clone(),
        });
        self.thread = Some(global?);
        Ok(())
    }

    /// Checks that the threads are running.
    ///
    /// # Errors
    /// A thread has ended, so the global view would no longer change.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.looks.as_ref().is_some_and(|looks| looks.has_reader_left()) {
            anyhow::bail!(
                "the thread that makes analyses has stopped, which is a bug in abgauge: its log has the reason"
            );
        }
        if self.thread.as_ref().is_some_and(Global::has_ended) {
            anyhow::bail!(
                "the thread of the global view has stopped, which is a bug in abgauge: its log has the reason"
            );
        }
        Ok(())
    }
}

impl Drop for Overview {
    fn drop(&mut self) {
        self.looks.iter().for_each(|looks| looks.close());
    }
}
