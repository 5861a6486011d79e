//! What stored cells are made of, where the ledger that they are read into keeps other things.

use super::LedgerError;
use super::columns::OwnColumns;
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
}

impl Stored {
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
