//! Reasons to reject bytes as a ledger.

use std::fmt;

use super::Part;
use crate::bytes::Malformed;

/// Reason to reject bytes as a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerError {
    /// The bytes have a version that this program does not read.
    Version,
    /// The bytes are too short or too long.
    Length,
    /// A number or text is invalid, or not encoded in its only valid form.
    Number,
    /// A part is missing although another part refers to it.
    Missing(Part),
    /// The aggregate with this id was written in a newer version than this program reads.
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
            LedgerError::Version => f.write_str("it has a version that this program cannot read"),
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
