//! Feed from pairs to looks: the sums of their users, and the progress of each pair. It is unused if pairs are stored,
//! because looks then read the current stored state of all pairs.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use abgauge_core::engine::Arm;
use abgauge_core::ledger::{PairDelta, PairId};
use abgauge_core::looks::PairNews;

use super::phase::Phase;

/// Error: the receiver of looks has ended.
#[derive(Debug)]
pub struct FeedClosed;

pub struct PairFeed {
    /// Receiver of the news; `None` if no experiment is looked at.
    sink: Option<SyncSender<PairNews>>,
    /// Event time between two looks, ms.
    every_ms: i64,
    owned: BTreeMap<PairId, bool>,
    pairs: BTreeMap<PairId, SentProgress>,
}

/// Progress of a pair that was already sent.
#[derive(Debug, Default)]
struct SentProgress {
    /// Number of complete cells: those below it.
    n_covered: Option<i64>,
    /// Arms admitted since the last message.
    arms: Vec<Arm>,
}

impl PairFeed {
    pub fn new(every_ms: i64) -> PairFeed {
        PairFeed {
            sink: None,
            every_ms,
            owned: BTreeMap::new(),
            pairs: BTreeMap::new(),
        }
    }

    /// Connects the receiver. If news arrives faster than looks are taken, the worker blocks.
    pub fn connect(&mut self, sink: SyncSender<PairNews>) {
        self.sink = Some(sink);
    }

    /// Sends the list of our pairs. Looks wait for each of them, except pairs that have caught up without ever having had a
    /// record.
    pub fn own<'a>(&mut self, phases: impl Iterator<Item = (PairId, &'a Phase)>) -> Result<(), FeedClosed> {
        if self.sink.is_none() {
            return Ok(());
        }
        let holds = |phase: &Phase| {
            let serving = phase.serving();
            serving.is_none_or(|pair| pair.tracker.settled_until_ms().is_some())
        };
        let owned: BTreeMap<PairId, bool> = phases.map(|(pair, phase)| (pair, holds(phase))).collect();
        // Checked in each hand-over, and sent only if it has changed.
        if owned == self.owned {
            return Ok(());
        }
        self.owned.clone_from(&owned);
        self.send(PairNews::Owned(owned))
    }

    /// Sends a pair's changes if another cell is complete.
    pub fn reached(&mut self, pair: PairId, delta: &mut PairDelta) -> Result<(), FeedClosed> {
        if self.sink.is_none() {
            return Ok(());
        }
        let reported = self.pairs.entry(pair).or_default();
        // Cells refer to arms by number, so new arms are collected until the next cell is sent.
        reported.arms.extend_from_slice(&delta.arms);
        let until_ms = delta.reach.settled_end_ms.map(|end_ms| end_ms + 1);
        let n_covered = until_ms.map(|until_ms| until_ms.div_euclid(self.every_ms));
        if n_covered <= reported.n_covered {
            return Ok(());
        }
        reported.n_covered = n_covered;
        let arms = std::mem::take(&mut reported.arms);
        self.send(PairNews::Reached {
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
    pub fn dropped(&mut self, pair: PairId) -> Result<(), FeedClosed> {
        self.send(PairNews::Dropped(pair))?;
        self.pairs.remove(&pair);
        Ok(())
    }

    fn send(&self, news: PairNews) -> Result<(), FeedClosed> {
        let sent = self.sink.as_ref().map(|sink| sink.send(news));
        sent.transpose().map_err(|_| FeedClosed)?;
        Ok(())
    }
}
