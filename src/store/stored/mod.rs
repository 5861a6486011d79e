//! Stored pairs, as the daemon writes them and tools read them: the layer between ledger and engine on one side and records of
//! the state topic on the other.
//!
//! - [`codec`] encodes a pair as a header and roles, and decodes it.
//! - [`keep`](keep()) returns what the ledger of a stored pair keeps under a configuration.
//! - [`DecodedState`] is a decoded seal, for readers that do not resume the pair; [`rows`] lists its numbers one by one.

pub mod codec;
mod decoded;
mod keep;
#[cfg(feature = "parquet")]
mod parquet;
mod settled;

pub use self::decoded::{DecodedState, PairDecoder, reach};
pub use self::keep::{keep, sides};
#[cfg(feature = "parquet")]
pub use self::parquet::ParquetWriter;
pub use self::settled::{SettledRow, rows};
