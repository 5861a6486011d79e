//! A hasher of few instructions for keys that are hashes already or small numbers.
//!
//! Ids are hashes that outsiders may choose the input of, with a seed that may be known: their bits alone would let them
//! fill one bucket. So each map multiplies by a random factor of its own, folds the product (as wyhash does), and multiplies
//! once more at the end: one product alone spreads some sequences badly, by one factor of some dozens.

use std::hash::{BuildHasher, Hasher, RandomState};

/// 2^64 ÷ the golden ratio, whose bits follow no pattern.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Debug, Clone)]
pub struct Hashed {
    factor: u64,
}

impl Default for Hashed {
    fn default() -> Hashed {
        Hashed {
            factor: random_factors()[0],
        }
    }
}

impl BuildHasher for Hashed {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded {
            factor: self.factor,
            state: 0,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Folded {
    factor: u64,
    state: u64,
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, key: u64) {
        // The rotation keeps the order of two keys, and 0 from standing for itself.
        self.state = folded(self.state ^ key, self.factor).rotate_left(23) ^ self.factor;
    }

    fn write_u32(&mut self, key: u32) {
        self.write_u64(u64::from(key));
    }

    fn write_i64(&mut self, key: i64) {
        self.write_u64(key as u64);
    }

    fn write_u128(&mut self, key: u128) {
        self.write_u64(key as u64);
        self.write_u64((key >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        folded(self.state, GOLDEN)
    }
}

/// Two odd random numbers.
pub fn random_factors() -> [u64; 2] {
    let random = RandomState::new();
    [0_u8, 1].map(|n| random.hash_one(n) | 1)
}

/// Both halves of a product of 128 bits, one over the other.
pub fn folded(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The table takes the bucket from the low bits and the tag from the high ones.
    #[test]
    fn keys_that_share_bits_spread_over_buckets_and_tags() {
        let maps = (0..50).flat_map(|_| [0, 7, 32, 48, 64, 100].map(|shift| (Hashed::default(), shift)));
        for (hashed, shift) in maps {
            let hashes: Vec<u64> = (0..4096_u128).map(|n| hashed.hash_one(n << shift)).collect();
            let buckets: HashSet<u64> = hashes.iter().map(|hash| hash % 4096).collect();
            let tags: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            // Of 4096 random ones 2589 differ.
            assert!(buckets.len() > 2300, "{} buckets at {shift}", buckets.len());
            assert!(tags.len() > 100, "{} tags at {shift}", tags.len());
        }
    }

    #[test]
    fn no_two_maps_hash_alike() {
        let [one, other] = [Hashed::default(), Hashed::default()].map(|hashed| hashed.hash_one(7_u128));
        assert_ne!(one, other);
    }
}
