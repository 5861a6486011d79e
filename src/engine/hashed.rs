//! A hasher for keys that are seeded hashes already: it takes their low bits.

use std::hash::{BuildHasherDefault, Hasher};

pub type Hashed = BuildHasherDefault<LowBits>;

#[derive(Debug, Default, Clone)]
pub struct LowBits(u64);

impl Hasher for LowBits {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Of small dense keys, such as an arm and a slot: spread by a multiplication (Fibonacci hashing).
    fn write_u64(&mut self, key: u64) {
        self.0 = (self.0.rotate_left(32) ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u32(&mut self, key: u32) {
        self.write_u64(u64::from(key));
    }

    fn write_i64(&mut self, key: i64) {
        self.write_u64(key as u64);
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }

    fn finish(&self) -> u64 {
        // The table takes the bucket from the low bits and the tag from the high ones; a product mixes upwards.
        self.0 ^ (self.0 >> 32)
    }
}
