//! The key by which user ids are hashed before they are kept.

use std::fmt;

use siphasher::sip::SipHasher24;

/// SipHash-2-4 with 128 random bits of the operating system. Nobody is told the key, it is never stored, and it ends with
/// the process: no hash of a user outlives it or is compared with another process's.
#[derive(Clone, Copy)]
pub(super) struct UserKey(pub(super) [u8; 16]);

impl UserKey {
    /// A new one.
    pub fn random() -> UserKey {
        let mut key = [0; 16];
        getrandom::fill(&mut key).expect("the operating system gives random bytes");
        UserKey(key)
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
    fn nothing_shows_the_key() {
        assert_eq!(format!("{:?}", UserKey([7; 16])), "UserKey(..)");
    }
}
