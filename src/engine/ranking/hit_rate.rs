//! Hit ratio: the share of lists with at least one clicked item in the top k.
//!
//! hit ratio@k = mean over all lists of [H_k ≥ 1]. Source: Deshpande and Karypis, Item-based top-N recommendation
//! algorithms, ACM TOIS 22(1), 2004; a list without a click scores 0.

use super::{Denominator, ListOutcome, Metric, Unit};

pub const HIT_RATE: Metric = Metric {
    id: "hit_rate",
    gauge: "hit_ratio",
    help: "Share of served lists with at least one clicked item in the top k.",
    unit: Unit::Count,
    numerator: |list: &ListOutcome, k| i64::from(list.hits(k) > 0),
    denominator: Denominator::Lists,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Clicked at ranks 2 and 5 of a list of five.
    const LIST: ListOutcome = ListOutcome {
        n_items: 5,
        clicked: &[0b10010],
    };

    #[test]
    fn a_list_is_a_hit_from_its_first_clicked_rank_on() {
        let hit = |k| (HIT_RATE.numerator)(&LIST, k);
        assert_eq!([hit(1), hit(2), hit(5), hit(u32::MAX)], [0, 1, 1, 1]);
    }

    #[test]
    fn an_empty_list_counts_and_misses() {
        let empty = ListOutcome {
            n_items: 0,
            clicked: &[],
        };
        assert_eq!((HIT_RATE.numerator)(&empty, 10), 0);
        assert!(matches!(HIT_RATE.denominator, Denominator::Lists));
    }
}
