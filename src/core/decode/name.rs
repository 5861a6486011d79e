//! Names of fields in schemas, which are compared with the names in paths once for each field of each record.

use xxhash_rust::xxh3::xxh3_64;

/// Name of a field, with its hash if it comes from a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldName<'a> {
    pub text: &'a str,
    /// `None` for a key of a map, which comes from the record.
    pub hash: Option<u64>,
}

impl FieldName<'_> {
    /// Returns whether the name is `text`, which has this hash.
    #[inline(always)]
    pub fn is(self, hash: u64, text: &str) -> bool {
        self.hash.is_none_or(|own| own == hash) && self.text == text
    }
}

pub(super) fn name_hash(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}
