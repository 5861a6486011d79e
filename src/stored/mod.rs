//! What is stored of pairs, as the daemon writes it and tools read it: between the ledger and the engine on one side, and records of the
//! state topic on the other.
//!
//! - [`form`] makes a header and roles of a pair, and reads them again.
//! - [`keep`](keep()) says what the ledger of a stored pair keeps under a configuration.
//! - [`Reader`] reads the whole topic, to the ends of all partitions, in no group. It can delete what a namespace has.
//! - [`Contents`] is what those make of a seal who do not go on with it: the ledger under a configuration; [`rows`] has its numbers one
//!   by one.

mod contents;
pub mod form;
mod keep;
#[cfg(feature = "parquet")]
mod parquet;
mod reader;
mod settled;

pub use self::contents::{Contents, Terms, Unusable, reach};
pub use self::keep::{keep, sides};
#[cfg(feature = "parquet")]
pub use self::parquet::ParquetWriter;
pub use self::reader::{Forgotten, Reader, Unread};
pub use self::settled::{SettledRow, rows};
