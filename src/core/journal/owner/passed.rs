//! The states that a memory has passed through, to decide whether it continues a base.

use std::collections::VecDeque;

/// Half a day of seals, one every ten seconds.
const N_KEPT: usize = 4096;

/// Contents of states, the latest last.
#[derive(Debug, Default)]
pub struct Passed(VecDeque<u128>);

impl Passed {
    /// A memory that is restored from this.
    pub fn from_base(content: u128) -> Passed {
        Passed(VecDeque::from([content]))
    }

    pub fn push(&mut self, content: u128) {
        if self.0.back() == Some(&content) {
            return;
        }
        // Memory that is too far behind to be found here is restored from the base.
        if self.0.len() == N_KEPT {
            self.0.pop_front();
        }
        self.0.push_back(content);
    }

    /// The latest.
    pub fn last(&self) -> Option<u128> {
        self.0.back().copied()
    }

    pub fn has(&self, content: u128) -> bool {
        self.0.contains(&content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_a_bounded_number_of_states() {
        let mut passed = Passed::from_base(0);
        for content in 0..N_KEPT as u128 {
            passed.push(content);
        }
        assert!(passed.has(0) && passed.has(N_KEPT as u128 - 1));
        passed.push(N_KEPT as u128);
        assert!(!passed.has(0) && passed.has(1));
    }
}
