//! What pairs tell the looks at experiments: whose users add up to what, and how far each has come. Where pairs are stored, nobody is
//! told here: looks go by what is in force of all pairs.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use super::life::Life;
use crate::engine::Arm;
use crate::ledger::{PairDelta, PairId};
use crate::looks::News;

/// Whoever takes looks has ended.
#[derive(Debug)]
pub struct NobodyListens;

pub struct Telling {
    /// None where no experiment is looked at.
    sink: Option<SyncSender<News>>,
    /// Event time between two looks, ms.
    every_ms: i64,
    owned: BTreeMap<PairId, bool>,
    pairs: BTreeMap<PairId, Told>,
}

/// What was told of a pair.
#[derive(Debug, Default)]
struct Told {
    /// Cells below this number are complete.
    n_covered: Option<i64>,
    /// Admitted since.
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

    /// Tells whoever listens there. If news come faster than looks are taken, the worker waits.
    pub fn tell(&mut self, sink: SyncSender<News>) {
        self.sink = Some(sink);
    }

    /// Tells which pairs are ours. Inspections wait for all but those that have caught up without ever having had a record.
    pub fn own<'a>(&mut self, lives: impl Iterator<Item = (PairId, &'a Life)>) -> Result<(), NobodyListens> {
        if self.sink.is_none() {
            return Ok(());
        }
        let holds = |life: &Life| {
            let serving = life.serving();
            serving.is_none_or(|pair| pair.tracker.settled_until_ms().is_some())
        };
        let owned: BTreeMap<PairId, bool> = lives.map(|(pair, life)| (pair, holds(life))).collect();
        if owned == self.owned {
            return Ok(());
        }
        self.owned.clone_from(&owned);
        self.send(News::Owned(owned))
    }

    /// Tells what has changed in a pair, once a cell is complete.
    pub fn reached(&mut self, pair: PairId, delta: &mut PairDelta) -> Result<(), NobodyListens> {
        if self.sink.is_none() {
            return Ok(());
        }
        let told = self.pairs.entry(pair).or_default();
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

    /// Tells that a pair begins anew, or went elsewhere.
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
