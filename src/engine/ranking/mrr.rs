//! Mean reciprocal rank: the mean of 1 ÷ the first clicked rank, 0 where nothing in the top k was clicked.
//!
//! RR@k = 1 ÷ (first clicked rank ≤ k). Source: Voorhees, The TREC-8 question answering track report, 1999.
//! Each term is rounded to 2^-32, so the mean is off by at most 1.2e-10.

use super::{Denominator, FIXED_ONE, ListOutcome, Metric, Unit};

pub const MRR: Metric = Metric {
    id: "mrr",
    gauge: "mrr",
    help: "Mean over served lists of 1 / the first clicked rank in the top k, 0 without one.",
    unit: Unit::Fixed,
    numerator: |list: &ListOutcome, k| match list.first_rank() {
        Some(rank) if rank <= k => reciprocal(i64::from(rank)),
        _ => 0,
    },
    denominator: Denominator::Lists,
};

/// 1 / rank in fixed point, to the nearest.
fn reciprocal(rank: i64) -> i64 {
    (FIXED_ONE + rank / 2) / rank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_clicked_rank_within_k_decides() {
        let list = ListOutcome {
            n_items: 5,
            clicked: &[0b10010],
        };
        let score = |k| (MRR.numerator)(&list, k);
        assert_eq!([score(1), score(2), score(5)], [0, FIXED_ONE / 2, FIXED_ONE / 2]);
    }

    #[test]
    fn a_reciprocal_is_within_half_a_unit_of_the_true_one() {
        for rank in 1..=1000_i64 {
            let error = reciprocal(rank) as f64 - FIXED_ONE as f64 / rank as f64;
            assert!(error.abs() <= 0.5, "rank {rank}: {error}");
        }
    }
}
