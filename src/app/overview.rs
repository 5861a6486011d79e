//! The global view: what is shown of it is there from the start; it is read once it is known how many partitions there are.

use std::sync::Arc;

use anyhow::Context as _;

use crate::board::Board;
use crate::clock::Clock;
use crate::config::Config;
use crate::engine::catalogue::Catalogue;
use crate::engine::ranking::Ranking;
use crate::export::GlobalScope;
use crate::global::{Global, Handle, Settings, Whole};
use crate::kafka::state_log::StateLog;
use crate::state::Namespace;
use crate::stored::Terms;

pub struct Overview {
    board: Arc<Board>,
    handle: Handle,
    clock: Clock,
    lease_ms: i64,
    thread: Option<Global>,
}

impl Overview {
    /// Nothing of it is older than `lease_ms`.
    pub fn new(config: &Config, ranking: &Ranking, lease_ms: i64, clock: Clock) -> Overview {
        Overview {
            board: Arc::new(Board::new(config, ranking)),
            handle: Handle::new(lease_ms, clock.clone()),
            clock,
            lease_ms,
            thread: None,
        }
    }

    pub fn scope(&self) -> GlobalScope {
        GlobalScope {
            source: Arc::new(Whole::new(Arc::clone(&self.board), self.handle.clone())),
            handle: self.handle.clone(),
        }
    }

    pub fn set_catalogue(&self, catalogue: &Arc<Catalogue>) {
        self.board.set_catalogue(Arc::clone(catalogue));
    }

    /// Begins to read the state topic, whose name is this.
    ///
    /// # Errors
    /// librdkafka refuses a property, or no thread can be started.
    pub fn start(
        &mut self,
        config: &Config,
        topic: &str,
        namespace: Namespace,
        n_partitions: u32,
    ) -> anyhow::Result<()> {
        let log = StateLog::start(&config.kafka, topic, namespace, self.clock.clone())
            .context("open the state topic for the global view")?;
        let join = &config.join;
        let settings = Settings {
            namespace,
            n_partitions: n_partitions as usize,
            lease_ms: self.lease_ms,
            settled_ahead_ms: join.max_future_ms - join.lateness_ms - join.attribution_ms,
        };
        let global = Global::start(
            log,
            settings,
            Terms::new(config),
            Arc::clone(&self.board),
            self.handle.clone(),
            None,
            self.clock.clone(),
        );
        self.thread = Some(global?);
        Ok(())
    }
}
