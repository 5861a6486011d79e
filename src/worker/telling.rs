//! What pairs tell the looks at experiments: whose users add up to what, and how far each has come.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use super::life::Life;
use crate::engine::Arm;
use crate::ledger::{PairDelta, PairId};
use crate::looks::{News, Resumed};

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
    /// News that were told.
    n_told: u64,
}

/// What was told of a pair.
#[derive(Debug, Default)]
struct Told {
    /// Cells below this number are complete.
    n_covered: Option<i64>,
    /// Admitted since.
    arms: Vec<Arm>,
    /// News that had been told when it began, or went on.
    since: u64,
}

impl Telling {
    pub fn new(every_ms: i64) -> Telling {
        Telling {
            sink: None,
            every_ms,
            owned: BTreeMap::new(),
            pairs: BTreeMap::new(),
            n_told: 0,
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

    /// Whether anybody listens.
    pub fn is_heard(&self) -> bool {
        self.sink.is_some()
    }

    /// Tells that a pair goes on with what was stored of it.
    pub fn resumed(&mut self, resumed: Resumed) -> Result<(), NobodyListens> {
        let (pair, until_ms) = (resumed.pair, resumed.until_ms);
        self.send(News::Resumed(Box::new(resumed)))?;
        let told = Told {
            n_covered: until_ms.map(|until_ms| until_ms.div_euclid(self.every_ms)),
            arms: Vec::new(),
            since: self.n_told,
        };
        self.pairs.insert(pair, told);
        Ok(())
    }

    /// Tells that a pair begins anew, or went elsewhere.
    pub fn dropped(&mut self, pair: PairId) -> Result<(), NobodyListens> {
        self.send(News::Dropped(pair))?;
        let told = Told {
            since: self.n_told,
            ..Told::default()
        };
        self.pairs.insert(pair, told);
        Ok(())
    }

    /// Whether somebody who has heard so many news knows of what there is of a pair now.
    pub fn is_known(&self, pair: PairId, n_news: u64) -> bool {
        let told = self.pairs.get(&pair);
        told.is_some_and(|told| told.since <= n_news)
    }

    fn send(&mut self, news: News) -> Result<(), NobodyListens> {
        let sent = self.sink.as_ref().map(|sink| sink.send(news));
        sent.transpose().map_err(|_| NobodyListens)?;
        self.n_told += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn resumed(pair: PairId) -> Resumed {
        Resumed {
            pair,
            arms: Vec::new(),
            cells: Vec::new(),
            until_ms: Some(1_999),
            whole_from_ms: None,
            begin_anew: Vec::new(),
            as_of: None,
        }
    }

    fn delta(until_ms: i64) -> PairDelta {
        let mut delta = PairDelta::default();
        delta.reach.settled_end_ms = Some(until_ms - 1);
        delta
    }

    /// What was stored of its former life must not be taken for that of its present one.
    #[test]
    fn whoever_has_not_heard_that_a_pair_began_anew_or_went_on_does_not_know_it() {
        let (sink, heard) = sync_channel(9);
        let mut telling = Telling::new(1_000);
        telling.tell(sink);
        assert!(!telling.is_known(0, 9), "nothing was told of it");
        telling.reached(0, &mut delta(1_000)).expect("it is heard");
        assert!(telling.is_known(0, 1));
        telling.dropped(0).expect("it is heard");
        assert_eq!([1, 2].map(|n_news| telling.is_known(0, n_news)), [false, true]);
        telling.resumed(resumed(0)).expect("it is heard");
        assert_eq!([2, 3].map(|n_news| telling.is_known(0, n_news)), [false, true]);
        telling.reached(0, &mut delta(2_000)).expect("it is heard");
        assert_eq!([2, 3].map(|n_news| telling.is_known(0, n_news)), [false, true]);
        drop(telling);
        assert_eq!(heard.iter().count(), 4);
    }

    #[test]
    fn a_pair_that_goes_on_tells_no_cell_twice() {
        let (sink, heard) = sync_channel(9);
        let mut telling = Telling::new(1_000);
        telling.tell(sink);
        telling.resumed(resumed(0)).expect("it is heard");
        for until_ms in [1_999, 2_000] {
            telling.reached(0, &mut delta(until_ms)).expect("it is heard");
        }
        drop(telling);
        let heard: Vec<News> = heard.iter().collect();
        assert!(
            matches!(
                heard[..],
                [
                    News::Resumed(_),
                    News::Reached {
                        until_ms: Some(2_000),
                        ..
                    }
                ]
            ),
            "{heard:?}"
        );
    }
}
