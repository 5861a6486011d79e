//! Contents of a stored ledger, for a ledger that may keep other things.

use std::collections::BTreeSet;

use super::columns::OwnColumns;
use super::{Aggregate, KeptAggregates, LedgerError, Span, Users};
use crate::bytes::Reader;

/// Contents of a stored ledger, as seen by the ledger that resumes it.
#[derive(Debug)]
pub struct StoredLedger {
    /// End of the covered time, Unix ms. Anything new starts here.
    pub until_ms: Option<i64>,
    /// Column of this ledger for each stored column.
    pub columns: OwnColumns,
    /// Users tracked by the ledger that resumes.
    pub users: Users,
    /// Users tracked by the stored ledger.
    pub stored_users: Users,
    /// For each arm, true if its tracked users can be resumed.
    pub users_go_on: Vec<bool>,
    /// For each arm, true if its total can be resumed.
    pub totals_go_on: Vec<bool>,
    pub total: Option<KeptAggregates>,
    pub spans: Vec<Span>,
    /// Aggregates in the order of their encoding.
    pub aggregates: Vec<StoredAggregate>,
}

/// Name and version of a stored aggregate.
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

impl StoredLedger {
    /// Checks that this program can read the stored version of an aggregate.
    ///
    /// # Errors
    /// If it is newer.
    pub fn check<A: Aggregate>(&self) -> Result<(), LedgerError> {
        let is_newer = |stored: &StoredAggregate| stored.id == A::ID && stored.version > A::VERSION;
        if self.aggregates.iter().any(is_newer) {
            return Err(LedgerError::Newer(A::ID));
        }
        Ok(())
    }

    /// Returns whether the tracked users of an experiment can be resumed.
    pub fn users_go_on_in(&self, experiment: &str) -> bool {
        self.users
            .can_resume(&self.stored_users, experiment, self.until_ms)
    }

    /// Reads a row of sums into one with the width of this ledger. New columns are 0.
    pub fn row(&self, from: &mut Reader, width: usize) -> Result<Vec<i128>, LedgerError> {
        let mut row = vec![0; width];
        for column in &self.columns {
            let sum = from.sum()?;
            // A stored column that no longer exists is read and dropped.
            column.iter().for_each(|column| row[*column] = sum);
        }
        Ok(row)
    }
}
