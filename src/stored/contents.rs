//! What a seal holds, read under a configuration by who does not go on with it.

use std::fmt;

use super::form::{self, FormError};
use super::{keep, sides};
use crate::config::Config;
use crate::engine::Checkpoint;
use crate::engine::ranking::Ranking;
use crate::keeper::Roles;
use crate::ledger::Ledger;
use crate::state::Header;

/// A pair as it was sealed.
#[derive(Debug)]
pub struct Contents {
    pub checkpoint: Checkpoint,
    pub ledger: Ledger,
}

/// Why it cannot be gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unusable {
    Form(FormError),
    /// Totals and frontier are not of one moment.
    Until {
        ledger_ms: Option<i64>,
        frontier_ms: Option<i64>,
    },
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::Form(error) => error.fmt(f),
            Unusable::Until {
                ledger_ms,
                frontier_ms,
            } => write!(
                f,
                "its totals end at {}, and its frontier is {} (epoch ms)",
                told(*ledger_ms),
                told(*frontier_ms)
            ),
        }
    }
}

fn told(ms: Option<i64>) -> String {
    ms.map_or_else(|| "nothing".to_owned(), |ms| ms.to_string())
}

impl Contents {
    /// # Errors
    /// [`Unusable`] if a daemon of this configuration would refuse it, or its totals do not end at its frontier.
    pub fn read(header: &Header, roles: &Roles, config: &Config) -> Result<Contents, Unusable> {
        let form::Read {
            checkpoint, ledger, ..
        } = form::read(header, roles, sides(config)).map_err(Unusable::Form)?;
        let ledger = Ledger::decode(&ledger, &Ranking::new(&config.measures), &keep(config));
        let ledger = ledger.map_err(|error| Unusable::Form(FormError::Ledger(error)))?;
        if ledger.until_ms() != checkpoint.until_ms {
            return Err(Unusable::Until {
                ledger_ms: ledger.until_ms(),
                frontier_ms: checkpoint.until_ms,
            });
        }
        Ok(Contents { checkpoint, ledger })
    }
}
