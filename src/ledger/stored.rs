//! What stored cells are made of, where the ledger that they are read into keeps other things.

use std::collections::BTreeSet;

use super::columns::OwnColumns;
use super::{Aggregate, Kept, LedgerError, Span};
use crate::bytes::Reader;

/// What was stored, as seen from the ledger that goes on with it.
#[derive(Debug)]
pub struct Stored {
    /// End of what it covers, epoch ms: what is new begins here.
    pub until_ms: Option<i64>,
    /// The number here of each stored column.
    pub columns: OwnColumns,
    /// By arm: whether what there is of its users goes on.
    pub users_go_on: Vec<bool>,
    /// By arm: whether its total goes on.
    pub totals_go_on: Vec<bool>,
    pub total: Option<Kept>,
    pub spans: Vec<Span>,
    /// In the order of their bytes.
    pub aggregates: Vec<StoredAggregate>,
}

/// An aggregate that was stored.
#[derive(Debug)]
pub struct StoredAggregate {
    pub id: String,
    version: u64,
}

impl StoredAggregate {
    pub fn decode_all(from: &mut Reader) -> Result<Vec<StoredAggregate>, LedgerError> {
        let (mut all, mut ids) = (Vec::new(), BTreeSet::new());
        for _ in 0..from.length()? {
            let id = from.text()?.to_owned();
            if !ids.insert(id.clone()) {
                return Err(LedgerError::Number);
            }
            let version = from.number()?;
            all.push(StoredAggregate { id, version });
        }
        Ok(all)
    }
}

impl Stored {
    /// # Errors
    /// If this aggregate is of a newer version there.
    pub fn check<A: Aggregate>(&self) -> Result<(), LedgerError> {
        let is_newer = |stored: &StoredAggregate| stored.id == A::ID && stored.version > A::VERSION;
        if self.aggregates.iter().any(is_newer) {
            return Err(LedgerError::Newer(A::ID));
        }
        Ok(())
    }

    /// Reads a row of sums, into one of the own width: 0 in columns that are new.
    pub fn row(&self, from: &mut Reader, width: usize) -> Result<Vec<i128>, LedgerError> {
        let mut row = vec![0; width];
        for column in &self.columns {
            let sum = from.sum()?;
            column.iter().for_each(|column| row[*column] = sum);
        }
        Ok(row)
    }
}
