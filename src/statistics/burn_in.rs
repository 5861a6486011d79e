//! Until when too little is known of two arms for any test: buckets in use, and clicks to be expected.
//!
//! Expected clicks are lists_a × (hits_T + hits_C)/(lists_T + lists_C), not those seen, so that an arm which gets none leaves it too.

use std::fmt;

/// Buckets of 256 that both arms must have a list in: some 500 users, none of which is counted.
pub const MIN_BUCKETS: usize = 220;
/// Lists with a click to be expected in each arm.
pub const MIN_EXPECTED_HITS: f64 = 100.0;

/// What is known of one arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Buckets with a list.
    pub occupied: usize,
    pub lists: f64,
    /// Lists with a click.
    pub hits: f64,
}

/// How far two arms have come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BurnIn {
    /// Of the arm that has less.
    pub occupied: usize,
    /// Of the arm that has less; 0 where nobody has a list.
    pub expected_hits: f64,
}

impl BurnIn {
    pub fn new(arms: [Seen; 2]) -> BurnIn {
        let [one, other] = arms;
        let rate = (one.hits + other.hits) / (one.lists + other.lists);
        let expected = one.lists.min(other.lists) * rate;
        BurnIn {
            occupied: one.occupied.min(other.occupied),
            expected_hits: if expected.is_finite() { expected } else { 0.0 },
        }
    }

    /// Whether tests by bucket are calibrated: all that those of lists need.
    pub fn has_buckets(&self) -> bool {
        self.occupied >= MIN_BUCKETS
    }

    /// Whether tests of what users click are calibrated.
    pub fn is_done(&self) -> bool {
        self.has_buckets() && self.expected_hits >= MIN_EXPECTED_HITS
    }
}

/// What is still missing.
impl fmt::Display for BurnIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hits = format!(
            "{:.0} of {MIN_EXPECTED_HITS} expected hits",
            self.expected_hits.floor()
        );
        match (self.has_buckets(), self.expected_hits >= MIN_EXPECTED_HITS) {
            (true, _) => f.write_str(&hits),
            (false, true) => write!(f, "users in {} of {MIN_BUCKETS} buckets", self.occupied),
            (false, false) => write!(f, "users in {} of {MIN_BUCKETS} buckets, {hits}", self.occupied),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_without_a_click_leaves_it_too() {
        let control = Seen {
            occupied: 256,
            lists: 900.0,
            hits: 200.0,
        };
        let arm = Seen {
            occupied: 220,
            lists: 900.0,
            hits: 0.0,
        };
        assert_eq!(BurnIn::new([arm, control]).expected_hits, 100.0);
        assert!(BurnIn::new([arm, control]).is_done());
        assert!(!BurnIn::new([Seen { occupied: 219, ..arm }, control]).is_done());
    }

    #[test]
    fn says_what_is_missing() {
        let says = |occupied, expected_hits| {
            BurnIn {
                occupied,
                expected_hits,
            }
            .to_string()
        };
        assert_eq!(says(131, 500.0), "users in 131 of 220 buckets");
        assert_eq!(says(256, 64.9), "64 of 100 expected hits");
        assert_eq!(says(3, 0.0), "users in 3 of 220 buckets, 0 of 100 expected hits");
    }

    #[test]
    fn before_the_first_list_nothing_is_expected() {
        let none = Seen {
            occupied: 0,
            lists: 0.0,
            hits: 0.0,
        };
        assert_eq!(BurnIn::new([none, none]).expected_hits, 0.0);
    }
}
