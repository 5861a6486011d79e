//! One look whose time was fixed beforehand is worth more than all others: it gets 4/5 of α, the sequence 1/5.
//!
//! p = min(1, p_sequence/0.2, p_end/0.8), the last term from the planned look on. By the union bound it holds at every look.

use super::effect::Interval;

/// Told from the planned look on.
pub const PLANNED_NOTE: &str =
    "the planned look is taken: lifts and intervals are those of that look, and values and counts go on";
/// What the looks before and after the planned one may spend of α.
pub const SEQUENCE_SHARE: f64 = 0.2;
/// What the planned look may spend of α.
pub const END_SHARE: f64 = 0.8;

/// What the planned look has said of a metric; it is never said again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannedEnd {
    /// Two-sided, of a t test.
    pub p: f64,
    /// The t interval of the lift at 0.8 α.
    pub lift: Option<Interval>,
    /// The same for the numerator per assigned user.
    pub per_user: Option<Interval>,
}

/// The p of both together; `p_end` from the planned look on.
pub fn p(p_sequence: f64, p_end: Option<f64>) -> f64 {
    let of_end = p_end.map_or(1.0, |p| p / END_SHARE);
    (p_sequence / SEQUENCE_SHARE).min(of_end).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_counts_by_hand() {
        check(p(0.01, None), 0.05);
        check(p(0.01, Some(0.02)), 0.025);
        check(p(0.01, Some(0.4)), 0.05);
        check(p(0.5, Some(0.9)), 1.0);
    }

    #[track_caller]
    fn check(p: f64, expected: f64) {
        assert!((p - expected).abs() < 1e-15, "{p}");
    }
}
