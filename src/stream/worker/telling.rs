//! Feed from pairs to looks: the sums of their users, and the progress of each pair. It is unused if pairs are stored,
//! because looks then read the current stored state of all pairs.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use abgauge_core::engine::Arm;
use abgauge_core::ledger::{PairDelta, PairId};
use abgauge_core::looks::News;

use super::life::Life;

/// Error: the receiver of looks has ended.
#[derive(Debug)]
pub struct NobodyListens;

pub struct Telling {
    /// Receiver of the news; `None` if no experiment is looked at.
    sink: Option<SyncSender<News>>,
    /// Event time between two looks, ms.
    every_ms: i64,
    owned: BTreeMap<PairId, bool>,
    pairs: BTreeMap<PairId, Told>,
}

/// Progress of a pair that was already sent.
#[derive(Debug, Default)]
struct Told {
    /// Number of complete cells: those below it.
    n_covered: Option<i64>,
    /// Arms admitted since the last message.
    arms: Vec<Arm>,
}

impl Telling {
    pub fn new(every_ms: i64) -> Telling {
        Telling {
            sink: None,
            every_ms,
            owned: BTreeMap::new(),
            pairs: BTreeMap::new(),
        }
    }

    /// Connects the receiver. If news arrives faster than looks are taken, the worker blocks.
    pub fn tell(&mut self, sink: SyncSender<News>) {
        self.sink = Some(sink);
    }

    /// Sends the list of our pairs. Looks wait for each of them, except pairs that have caught up without ever having had a
    /// record.
    pub fn own<'a>(&mut self, lives: impl Iterator<Item = (PairId, &'a Life)>) -> Result<(), NobodyListens> {
        if self.sink.is_none() {
            return Ok(());
        }
        let holds = |life: &Life| {
            let serving = life.serving();
            serving.is_none_or(|pair| pair.tracker.settled_until_ms().is_some())
        };
        let owned: BTreeMap<PairId, bool> = lives.map(|(pair, life)| (pair, holds(life))).collect();
        // Checked in each hand-over, and sent only if it has changed.
        if owned == self.owned {
            return Ok(());
        }
        self.owned.clone_from(&owned);
        self.send(News::Owned(owned))
    }

    /// Sends a pair's changes if another cell is complete.
    pub fn reached(&mut self, pair: PairId, delta: &mut PairDelta) -> Result<(), NobodyListens> {
        if self.sink.is_none() {
            return Ok(());
        }
        let told = self.pairs.entry(pair).or_default();
        // Cells refer to arms by number, so new arms are collected until the next cell is sent.
        told.arms.extend_from_slice(&delta.arms);
        let until_ms = delta.reach.settled_end_ms.map(|end_ms| end_ms + 1);
        let n_covered = until_ms.map(|until_ms| until_ms.div_euclid(self.every_ms));
        if n_covered <= told.n_covered {
            return Ok(());
        }
        told.n_covered = n_covered;
        let arms = std::mem::take(&mut told.arms);
        self.send(News::Reached {
            pair,
            arms,
            cells: std::mem::take(&mut delta.cells),
            until_ms,
        })
    }

    /// Event time between two looks, ms.
    pub fn every_ms(&self) -> i64 {
        self.every_ms
    }

    /// Sends that a pair restarts or was moved to another instance.
    pub fn dropped(&mut self, pair: PairId) -> Result<(), NobodyListens> {
        self.send(News::Dropped(pair))?;
        self.pairs.remove(&pair);
        Ok(())
    }

    fn send(&self, news: News) -> Result<(), NobodyListens> {
        let sent = self.sink.as_ref().map(|sink| sink.send(news));
        sent.transpose().map_err(|_| NobodyListens)?;
        Ok(())
    }
}
