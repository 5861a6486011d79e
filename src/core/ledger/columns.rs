//! Columns of sums: the stored name of each, and since when it is summed.

use std::collections::HashMap;
use std::ops::Range;

use super::LedgerError;
use super::keep::Keep;
use crate::bytes::{Reader, Writer};
use crate::metrics::Ranking;

/// Columns in the order of the ranking.
#[derive(Debug)]
pub struct Columns {
    /// Names, as in [`Ranking::ids`].
    ids: Vec<String>,
    /// Start of each sum, Unix ms. `None`: since the start of the ledger.
    since_ms: Vec<Option<i64>>,
    /// Columns of distinct items. They start together, because an item has one number for all cut-offs.
    distinct: Range<usize>,
}

/// Column of this ledger for each stored column, or `None` if it no longer exists.
pub type OwnColumns = Vec<Option<usize>>;

impl Columns {
    pub fn new(ranking: &Ranking, keep: &Keep) -> Columns {
        Columns {
            ids: ranking.ids(keep.catalogue),
            since_ms: vec![None; ranking.width()],
            distinct: ranking.coverage().map_or(0..0, |columns| columns.seen.clone()),
        }
    }

    pub fn since_ms(&self, column: usize) -> Option<i64> {
        self.since_ms[column]
    }

    /// Returns since when all columns are summed, Unix ms.
    pub fn all_since_ms(&self) -> Option<i64> {
        self.since_ms.iter().copied().max().flatten()
    }

    /// Merges with the columns of another ledger: common sums are complete only from the later start on.
    pub fn merge(&mut self, other: &Columns) {
        let all = self.since_ms.iter_mut().zip(&other.since_ms);
        all.for_each(|(own, other)| *own = (*own).max(*other));
    }

    pub fn encode(&self, to: &mut Writer) {
        to.number(self.ids.len() as u64);
        for (id, since_ms) in self.ids.iter().zip(&self.since_ms) {
            to.text(id);
            to.time(*since_ms);
        }
    }

    /// Resumes columns stored until `until_ms`. New columns start there.
    pub fn resume(&mut self, from: &mut Reader, until_ms: Option<i64>) -> Result<OwnColumns, LedgerError> {
        let mut stored = HashMap::new();
        for number in 0..from.length()? {
            let (id, since_ms) = (from.text()?, from.time()?);
            if stored.insert(id, (number, since_ms)).is_some() {
                return Err(LedgerError::Number);
            }
        }
        let mut own = vec![None; stored.len()];
        // An item has one class for all cut-offs. A new cut-off would need classes that were not stored, so all of them restart.
        let mut distinct = self.ids[self.distinct.clone()].iter();
        let distinct_go_on = distinct.all(|id| stored.contains_key(&**id));
        for (column, id) in self.ids.iter().enumerate() {
            let continues = distinct_go_on || !self.distinct.contains(&column);
            let found = stored.get(&**id).filter(|_| continues);
            self.since_ms[column] = found.map_or(until_ms, |(_, since_ms)| *since_ms);
            found
                .into_iter()
                .for_each(|(number, _)| own[*number] = Some(column));
        }
        Ok(own)
    }
}
