//! Contents of a seal, decoded under a configuration by readers that do not resume the pair.

use abgauge_core::engine::Checkpoint;
use abgauge_core::engine::event::Side;
use abgauge_core::journal::Header;
use abgauge_core::ledger::{CountingProgress, EncodedLedger, Keep, Ledger};
use abgauge_core::looks::{PairLooks, PairState};
use abgauge_core::metrics::Ranking;

use super::codec::{self, FormError};
use super::{keep, sides};
use crate::settings::Config;
use crate::store::keeper::Roles;

/// Prepared configuration for decoding pairs.
#[derive(Debug, Clone)]
pub struct PairDecoder {
    ranking: Ranking,
    keep: Keep,
    sides: &'static [Side],
}

/// A pair as it was sealed.
#[derive(Debug)]
pub struct DecodedState {
    pub checkpoint: Checkpoint,
    pub ledger: Ledger,
    /// Bytes of the ledger.
    encoded: EncodedLedger,
    incarnation_id: u64,
    looks: Option<PairLooks>,
}

impl PairDecoder {
    pub fn new(config: &Config) -> PairDecoder {
        PairDecoder {
            ranking: Ranking::new(&config.measures),
            keep: keep(config),
            sides: sides(config),
        }
    }

    /// # Errors
    /// If a daemon of this configuration would refuse it, or its totals do not end at its frontier.
    pub fn read(&self, header: &Header, roles: &Roles) -> Result<DecodedState, FormError> {
        let codec::DecodedPair {
            checkpoint,
            ledger: encoded,
            incarnation_id,
            looks,
        } = codec::read(header, roles, self.sides)?;
        let ledger = Ledger::decode(&encoded, &self.ranking, &self.keep);
        let ledger = ledger.map_err(FormError::Ledger)?;
        // Both come from one checkpoint, so a difference means that roles of two states were mixed.
        if ledger.until_ms() != checkpoint.until_ms {
            return Err(FormError::Until {
                ledger_ms: ledger.until_ms(),
                frontier_ms: checkpoint.until_ms,
            });
        }
        Ok(DecodedState {
            checkpoint,
            ledger,
            encoded,
            incarnation_id,
            looks,
        })
    }
}

impl DecodedState {
    /// Decodes like [`PairDecoder::read`], for callers with few pairs.
    ///
    /// # Errors
    /// The same.
    pub fn read(header: &Header, roles: &Roles, config: &Config) -> Result<DecodedState, FormError> {
        PairDecoder::new(config).read(header, roles)
    }

    pub fn reach(&self) -> CountingProgress {
        reach(&self.checkpoint, &self.ledger)
    }

    /// Converts it to the form that looks take.
    pub fn into_looks(self, header: &Header) -> PairState {
        let has_records = header.reaches.iter().any(|reach| reach.digest.n_events > 0);
        PairState {
            incarnation_id: self.incarnation_id,
            // An empty partition that was read to its end never settles, so looks do not wait for it.
            holds: header.frontier_ms.is_some() || has_records || !header.was_caught_up,
            until_ms: header.frontier_ms,
            ledger: self.encoded,
            looks: self.looks,
        }
    }
}

/// Returns the progress of a pair at a checkpoint, given its ledger at that moment.
pub fn reach(checkpoint: &Checkpoint, ledger: &Ledger) -> CountingProgress {
    CountingProgress {
        settled_end_ms: ledger.until_ms().map(|until_ms| until_ms - 1),
        begin_ms: checkpoint.begin_ms,
        first_accepted_ms: checkpoint.accepted.map(|accepted| accepted.first_ms),
        n_folded: checkpoint.folded.len() as u64,
        is_exact: checkpoint.is_exact,
    }
}
