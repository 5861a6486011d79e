//! Burn-in: two arms are not tested until they have enough buckets in use and enough expected clicks.
//!
//! Expected clicks are lists_a × (hits_T + hits_C)/(lists_T + lists_C). They are not the observed ones, so an arm without clicks
//! leaves burn-in too.

use std::fmt;

/// Buckets of 256 in which both arms must have a list. About 500 users fill them, without counting any.
pub const MIN_BUCKETS: usize = 220;
/// Expected lists with a click in each arm.
pub const MIN_EXPECTED_HITS: f64 = 100.0;

/// Data of one arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BurnInArm {
    /// Buckets with a list.
    pub occupied: usize,
    pub lists: f64,
    /// Lists with a click.
    pub hits: f64,
}

/// Progress of two arms.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BurnIn {
    /// Buckets of the arm with fewer.
    pub occupied: usize,
    /// Expected lists with a click in the arm with fewer. 0 without lists.
    pub expected_hits: f64,
}

impl BurnIn {
    pub fn new(arms: [BurnInArm; 2]) -> BurnIn {
        let [one, other] = arms;
        let rate = (one.hits + other.hits) / (one.lists + other.lists);
        // Both arms share one rate, so an arm without clicks is not kept in burn-in.
        let expected = one.lists.min(other.lists) * rate;
        BurnIn {
            occupied: one.occupied.min(other.occupied),
            expected_hits: if expected.is_finite() { expected } else { 0.0 },
        }
    }

    /// Reports whether tests by bucket are calibrated. Tests of lists need no more.
    pub fn has_buckets(&self) -> bool {
        self.occupied >= MIN_BUCKETS
    }

    /// Reports whether tests of clicks are calibrated.
    pub fn is_done(&self) -> bool {
        self.has_buckets() && self.expected_hits >= MIN_EXPECTED_HITS
    }
}

/// Writes the missing part.
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
    fn an_arm_without_a_click_leaves_burn_in() {
        let control = BurnInArm {
            occupied: 256,
            lists: 900.0,
            hits: 200.0,
        };
        let arm = BurnInArm {
            occupied: 220,
            lists: 900.0,
            hits: 0.0,
        };
        assert_eq!(BurnIn::new([arm, control]).expected_hits, 100.0);
        assert!(BurnIn::new([arm, control]).is_done());
        assert!(!BurnIn::new([BurnInArm { occupied: 219, ..arm }, control]).is_done());
    }

    #[test]
    fn displays_the_missing_buckets_and_hits() {
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
    fn no_hits_are_expected_before_the_first_list() {
        let none = BurnInArm {
            occupied: 0,
            lists: 0.0,
            hits: 0.0,
        };
        assert_eq!(BurnIn::new([none, none]).expected_hits, 0.0);
    }
}
