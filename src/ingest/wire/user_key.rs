//! The key by which user ids are hashed before they are kept.

use std::fmt;

use siphasher::sip::SipHasher24;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// A key of SipHash-2-4, the same in every process of one configuration: each of them knows a user by the same hash, today
/// and after a restart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UserKey([u8; 16]);

impl UserKey {
    /// Tells whether two processes hash alike, and nothing of the secret or the seed.
    pub fn marker(self, seed: u64) -> u64 {
        xxh3_128_with_seed(&self.0, seed) as u64
    }

    /// The key that a secret text makes, with the seed of the other hashes; who knows neither cannot tell whose hash is whose.
    /// The text may be empty: then the seed alone makes the key, which protects nobody if it is known.
    pub fn of(secret: &str, seed: u64) -> UserKey {
        UserKey(xxh3_128_with_seed(secret.as_bytes(), seed).to_le_bytes())
    }

    // Not inlined: it would crowd what decodes the rest of a record out of the registers.
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

    /// From the paper, appendix A: Aumasson and Bernstein, SipHash: a fast short-input PRF, 2012.
    #[test]
    fn hashes_are_those_of_siphash_2_4() {
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
    fn nothing_shows_the_key() {
        assert_eq!(format!("{:?}", UserKey([7; 16])), "UserKey(..)");
    }
}
