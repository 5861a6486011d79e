//! Key that user ids are hashed with before they are kept.

use std::fmt;

use siphasher::sip::SipHasher24;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Key of SipHash-2-4, the same in every process of one configuration. Every process gives a user the same hash, also after
/// a restart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UserKey([u8; 16]);

impl UserKey {
    /// Returns a hash that shows whether two processes have the same key, and reveals neither the secret nor the seed.
    pub fn marker(self, seed: u64) -> u64 {
        xxh3_128_with_seed(&self.0, seed) as u64
    }

    /// Makes the key from a secret text and the seed of the other hashes. Without them, a hash cannot be traced to its
    /// user. If the text is empty, the key depends on the seed alone and protects no user once the seed is known.
    pub fn of(secret: &str, seed: u64) -> UserKey {
        UserKey(xxh3_128_with_seed(secret.as_bytes(), seed).to_le_bytes())
    }

    // Not inlined, since it would take registers from the code that decodes the rest of a record.
    #[inline(never)]
    pub fn hash(&self, id: &[u8]) -> u64 {
        SipHasher24::new_with_key(&self.0).hash(id)
    }
}

impl fmt::Debug for UserKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vector from appendix A of Aumasson and Bernstein, SipHash: a fast short-input PRF, 2012.
    #[test]
    fn hashes_equal_siphash_2_4() {
        let key = UserKey(std::array::from_fn(|n| n as u8));
        let id: [u8; 15] = std::array::from_fn(|n| n as u8);
        assert_eq!(key.hash(&id), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn a_secret_and_a_seed_make_one_key() {
        let hash = |secret, seed| UserKey::of(secret, seed).hash(b"u-1");
        assert_eq!(hash("a secret of ours", 7), hash("a secret of ours", 7));
        let others = [hash("a secret of ours", 8), hash("another", 7), hash("", 7)];
        assert!(!others.contains(&hash("a secret of ours", 7)));
    }

    #[test]
    fn debug_output_hides_the_key() {
        assert_eq!(format!("{:?}", UserKey([7; 16])), "UserKey(..)");
    }
}
