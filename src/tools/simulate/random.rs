//! Random numbers that are the same on every machine: integers, and floats computed with +, ×, ÷ and √ only, which IEEE 754
//! fixes.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// Stream of numbers determined by its seed.
#[derive(Debug, Clone)]
pub struct Random(Pcg64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(Pcg64::seed_from_u64(seed))
    }

    /// Draws uniformly from [0, 1).
    pub fn uniform(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        // A double holds 53 bits exactly, so rounding never gives 1.
        (self.0.next_u64() >> 11) as f64 * STEP
    }

    /// Returns true with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Draws uniformly from 0..n.
    pub fn below(&mut self, n: u64) -> u64 {
        scale(self.0.next_u64(), n)
    }

    /// Draws uniformly from low..high.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below(high.abs_diff(low)) as i64
    }

    /// Draws from 0..n, low numbers far more often: the square of a uniform number, so P(x < i) = √(i/n).
    pub fn skewed(&mut self, n: u64) -> u64 {
        let u = self.uniform();
        // The cast goes through a signed integer, for which the processor has an instruction.
        (n as f64 * (u * u)) as i64 as u64
    }

    /// Draws from 0..n, low numbers more often, but less so than [`skewed`](Random::skewed): P(x < i) = (i/n)^(2/3).
    pub fn uneven(&mut self, n: u64) -> u64 {
        let u = self.uniform();
        (n as f64 * (u * u.sqrt())) as i64 as u64
    }
}

/// Maps uniform `bits` to 0..n.
pub fn scale(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}
