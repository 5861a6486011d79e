//! Why bytes are no ledger.

use std::fmt;

use super::Part;
use crate::bytes::Malformed;

/// Why bytes are no ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerError {
    /// They are of another version than this program reads.
    Version,
    /// They end too soon, or go on.
    Length,
    /// A number or a text is none, or is not written as it should be.
    Number,
    /// It has no such part, but says that it has.
    Missing(Part),
    /// The aggregate of this id is of a newer version than this program reads.
    Newer(&'static str),
}

impl From<Malformed> for LedgerError {
    fn from(malformed: Malformed) -> LedgerError {
        match malformed {
            Malformed::Length => LedgerError::Length,
            Malformed::Number => LedgerError::Number,
        }
    }
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LedgerError::Version => f.write_str("it is of a version that this program does not read"),
            LedgerError::Length => Malformed::Length.fmt(f),
            LedgerError::Number => Malformed::Number.fmt(f),
            LedgerError::Missing(part) => write!(f, "its part `{part}` is missing"),
            LedgerError::Newer(id) => {
                write!(
                    f,
                    "its aggregate `{id}` is of a newer version than this program reads"
                )
            }
        }
    }
}

impl std::error::Error for LedgerError {}
