//! Click-through rate: items clicked ÷ items shown in the top k, over all lists.
//!
//! CTR@k = Σ H_k ÷ Σ min(k, L), a ratio of sums. A click counts once per item of a list, and an item that stands
//! twice in a list counts as clicked at its first rank only, as shown at both.

use super::{Denominator, ListOutcome, Metric, Unit};

pub const CTR: Metric = Metric {
    id: "ctr",
    gauge: "ctr",
    help: "Distinct clicked items divided by items shown, in the top k.",
    unit: Unit::Count,
    numerator: |list: &ListOutcome, k| i64::from(list.hits(k)),
    denominator: Denominator::Sum(shown),
};

/// min(k, L)
fn shown(list: &ListOutcome, k: u32) -> i64 {
    i64::from(list.shown(k))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_clicked_and_shown_items_of_the_top_k() {
        let list = ListOutcome {
            n_items: 5,
            clicked: &[0b10010],
        };
        let parts = |k| ((CTR.numerator)(&list, k), shown(&list, k));
        assert_eq!(parts(1), (0, 1));
        assert_eq!(parts(2), (1, 2));
        assert_eq!(parts(10), (2, 5));
    }

    #[test]
    fn counts_ranks_beyond_one_word_of_the_mask() {
        let list = ListOutcome {
            n_items: 70,
            clicked: &[1 << 31, 1, 1 << 5],
        };
        let hits = |k| (CTR.numerator)(&list, k);
        assert_eq!(
            [hits(31), hits(32), hits(33), hits(69), hits(70)],
            [0, 1, 2, 2, 3]
        );
    }
}
