//! A hasher of few instructions for keys that are hashes already or small numbers.
//!
//! Ids are hashes that outsiders may choose the input of, with a seed that may be known: their bits alone would let them
//! fill one bucket. So each map multiplies by a random factor of its own, and folds the product (as wyhash does).

use std::hash::{BuildHasher, Hasher, RandomState};

#[derive(Debug, Clone)]
pub struct Hashed {
    factor: u64,
}

impl Default for Hashed {
    fn default() -> Hashed {
        Hashed {
            factor: RandomState::new().hash_one(0) | 1,
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
        let product = u128::from(self.state ^ key) * u128::from(self.factor);
        // The rotation keeps the order of two keys, and 0 from standing for itself.
        self.state = (product as u64 ^ (product >> 64) as u64).rotate_left(23) ^ self.factor;
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
        self.state
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The table takes the bucket from the low bits and the tag from the high ones.
    #[test]
    fn keys_that_share_bits_spread_over_buckets_and_tags() {
        let hashed = Hashed::default();
        for shift in [0, 7, 32, 48, 64, 100] {
            let hashes: Vec<u64> = (0..4096_u128).map(|n| hashed.hash_one(n << shift)).collect();
            let buckets: HashSet<u64> = hashes.iter().map(|hash| hash % 4096).collect();
            let tags: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            // Of 4096 random ones 2589 differ.
            assert!(buckets.len() > 1500, "{} buckets at {shift}", buckets.len());
            assert!(tags.len() > 100, "{} tags at {shift}", tags.len());
        }
    }

    #[test]
    fn no_two_maps_hash_alike() {
        let [one, other] = [Hashed::default(), Hashed::default()].map(|hashed| hashed.hash_one(7_u128));
        assert_ne!(one, other);
    }
}
