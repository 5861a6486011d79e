//! Hashes of the names in records: users with a key, everything else with a seed.

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

use super::short_hash::ShortHash;
use super::user_key::UserKey;
use super::{MAX_ID_BYTES, MAX_LABEL_BYTES};

/// XXH3 with one seed: 128 bits if a collision would merge unrelated requests or arms, 64 bits for items. Users have a key
/// instead, which copies of this value share.
#[derive(Debug, Clone, Copy)]
pub struct Hashes {
    seed: u64,
    short: ShortHash,
    /// `None` if users are not distinguished.
    users: Option<UserKey>,
}

impl Hashes {
    pub(super) fn new(seed: u64, users: UserKey) -> Self {
        Hashes {
            seed,
            short: ShortHash::new(seed),
            users: Some(users),
        }
    }

    pub(super) fn with_users(self, users: Option<UserKey>) -> Self {
        Hashes { users, ..self }
    }

    // Not inlined: the compiler would compute everything that depends on the seed at the start of every record, needed or
    // not.
    #[inline(never)]
    pub fn request(&self, id: &[u8]) -> u128 {
        xxh3_128_with_seed(id, self.seed)
    }

    /// Hashes an id of several parts; a click may lack some of them. The length of each part precedes it, so `ab`, `c`
    /// differs from `a`, `bc`, and an absent part differs from every text.
    pub fn composite<'a>(&self, parts: impl Iterator<Item = Option<&'a [u8]>>) -> u128 {
        let mut joined = Vec::new();
        for part in parts {
            // No part is this long, so the value marks an absent one.
            let length = part.map_or(u32::MAX, |part| part.len() as u32);
            joined.extend(length.to_le_bytes());
            joined.extend(part.unwrap_or_default());
        }
        xxh3_128_with_seed(&joined, self.seed)
    }

    /// Hashes a user; 0 if users are not distinguished.
    pub fn user(&self, id: &[u8]) -> u64 {
        self.users.map_or(0, |key| key.hash(id))
    }

    #[inline(always)]
    pub fn item(&self, id: &[u8]) -> u64 {
        self.short.of(id).unwrap_or_else(|| self.long(id))
    }

    /// Hashes an item. `None` if the text is too short or too long for one.
    #[inline(always)]
    pub(super) fn checked_item(&self, text: &[u8]) -> Option<u64> {
        match self.short.of(text) {
            None => self.checked_long(text),
            short => short,
        }
    }

    #[inline(never)]
    fn checked_long(&self, text: &[u8]) -> Option<u64> {
        (1..=MAX_ID_BYTES).contains(&text.len()).then(|| self.long(text))
    }

    #[inline(never)]
    fn long(&self, id: &[u8]) -> u64 {
        xxh3_64_with_seed(id, self.seed)
    }

    /// Hashes the length of the experiment's name as one byte, then both names, so `ab`, `c` differs from `a`, `bc`. Both
    /// names have 1 to 128 bytes, as in every [`ArmName`](crate::engine::event::ArmName); further bytes are not hashed.
    pub fn arm(&self, experiment: &str, arm: &str) -> u128 {
        let (experiment, arm) = (label_bytes(experiment), label_bytes(arm));
        let mut joined = [0; 1 + 2 * MAX_LABEL_BYTES];
        let border = 1 + experiment.len();
        let end = border + arm.len();
        joined[0] = experiment.len() as u8;
        joined[1..border].copy_from_slice(experiment);
        joined[border..end].copy_from_slice(arm);
        xxh3_128_with_seed(&joined[..end], self.seed)
    }
}

fn label_bytes(label: &str) -> &[u8] {
    let bytes = label.as_bytes();
    &bytes[..bytes.len().min(MAX_LABEL_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_seed(seed: u64) -> Hashes {
        Hashes::new(seed, UserKey::of("", seed))
    }

    /// Values of python-xxhash 3 with seed 7. They show if a new version or an edit changes hashes.
    #[test]
    fn hashes_equal_the_reference_implementation() {
        let hash = with_seed(7);
        assert_eq!(hash.request(b"r-1"), 0xe957_0548_f800_e55f_13fc_53e7_ca31_5631);
        assert_eq!(hash.item(b"i5"), 0x81ae_c9fa_333d_3b39);
        assert_eq!(
            hash.arm("ranker", "neural"),
            0xd26c_1fb7_f4af_b273_aacb_7c61_00fa_dd64
        );
    }

    #[test]
    fn user_hashes_depend_on_the_key() {
        let hash = with_seed(7);
        assert_eq!(hash.user(b"u-1"), with_seed(7).user(b"u-1"));
        assert_ne!(hash.user(b"u-1"), hash.user(b"u-2"));
        let other = hash.with_users(Some(UserKey::of("a secret of ours", 7)));
        assert_ne!(hash.user(b"u-1"), other.user(b"u-1"));
        assert_ne!(hash.user(b"u-1"), hash.item(b"u-1"));
    }

    #[test]
    fn arm_hashes_depend_on_where_the_experiment_ends() {
        let hash = with_seed(7);
        assert_ne!(hash.arm("ab", "c"), hash.arm("a", "bc"));
        let long = "x".repeat(MAX_LABEL_BYTES);
        assert_ne!(hash.arm(&long, "c"), hash.arm("c", &long));
    }

    #[test]
    fn composite_ids_differ_if_parts_shift_or_are_absent() {
        let hash = with_seed(7);
        let all: [&[Option<&[u8]>]; 6] = [
            &[Some(b"ab"), Some(b"c")],
            &[Some(b"a"), Some(b"bc")],
            &[Some(b"abc"), None],
            &[Some(b"abc")],
            &[Some(b"abc"), Some(b"")],
            &[Some(b"abc"), None, Some(b"c")],
        ];
        let ids: std::collections::BTreeSet<u128> = all
            .iter()
            .map(|parts| hash.composite(parts.iter().copied()))
            .collect();
        assert_eq!(ids.len(), all.len());
    }

    #[test]
    fn hashes_depend_on_the_seed() {
        assert_ne!(with_seed(7).request(b"r-1"), with_seed(8).request(b"r-1"));
        assert_ne!(with_seed(7).arm("e", "a"), with_seed(8).arm("e", "a"));
    }
}
