//! Protobuf: locates the fields of a record by the descriptors of its message type.
//!
//! A library compiles schema text to descriptors. The walk over a record's bytes is our own, because Protobuf must cost no more
//! than JSON: it reads the values that paths lead to, skips the others, and copies nothing.

mod descriptors;
mod imports;
mod merge;
mod read;
mod schema;
mod wire;

#[cfg(test)]
pub(super) use self::imports::compile;
pub(super) use self::merge::merged;
pub(super) use self::read::{Extent, ProtobufArray, ProtobufElements, ProtobufObject};
pub(super) use self::schema::{FieldType, Meaning, MessageType, ProtobufField, Rule, Types};
pub use self::schema::{ProtobufFile, ProtobufSchema};
pub(super) use self::wire::{Raw, Wire};

/// Bound on the depth of nested messages and groups, as for JSON.
const MAX_DEPTH: u32 = 127;
