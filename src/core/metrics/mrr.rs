//! Mean reciprocal rank: of the first clicked rank, or summed over all of them.
//!
//! RR@k = 1 ÷ (first clicked rank ≤ k), or 0 without one. Source: Voorhees, The TREC-8 question answering track report,
//! 1999. Summed: Σ_{r≤k} h(r) ÷ r, which can exceed 1.

use super::{Cut, ListOutcome, Metric, MetricUnit, Ratio, ReciprocalRank, Term, Truncation};

pub const MRR: Metric = Metric {
    id: "mrr",
    name: "MRR",
    gauge: "mrr",
    help: "Mean over served lists of 1 / rank of the first click in the top k, or 0 if there is none.",
    meaning: "Mean reciprocal rank: 1 ÷ the first clicked rank in the top k, 0 without one.",
    unit: MetricUnit::Score,
    is_usual: true,
    needs: None,
    is_additive: true,
    counts_clicks: true,
    is_bounded: |profile| profile.reciprocal_rank == ReciprocalRank::First,
    ratio: |profile, k| {
        let term = Term::ReciprocalRank(profile.reciprocal_rank);
        reported(profile.rr_truncation, k).then(|| Ratio::mean(term, k, profile.population, profile))
    },
};

/// Returns whether a metric of this truncation has a value at this cut.
pub(super) fn reported(truncation: Truncation, k: Cut) -> bool {
    truncation == Truncation::AtK || k.is_none()
}

pub(super) fn reciprocal_rank(list: &ListOutcome, k: u32, ranks: ReciprocalRank) -> f64 {
    let reciprocals = list.ranks(k).map(|rank| 1.0 / f64::from(rank));
    match ranks {
        // Without a click there is nothing to take, and the sum is 0.
        ReciprocalRank::First => reciprocals.take(1).sum(),
        ReciprocalRank::Sum => reciprocals.sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::worked::CLICKED_AT_2_AND_5;
    use super::*;

    #[test]
    fn the_first_clicked_rank_within_k_decides() {
        let score = |k| reciprocal_rank(&CLICKED_AT_2_AND_5, k, ReciprocalRank::First);
        assert_eq!([score(1), score(2), score(5)], [0.0, 0.5, 0.5]);
    }

    #[test]
    fn the_sum_includes_every_clicked_rank() {
        let score = |k| reciprocal_rank(&CLICKED_AT_2_AND_5, k, ReciprocalRank::Sum);
        assert_eq!([score(1), score(2), score(5)], [0.0, 0.5, 0.5 + 1.0 / 5.0]);
    }

    #[test]
    fn an_untruncated_metric_exists_only_over_the_whole_list() {
        let ten = std::num::NonZeroU32::new(10);
        let none = Truncation::None;
        assert_eq!([reported(none, ten), reported(none, None)], [false, true]);
        assert_eq!(
            [reported(Truncation::AtK, ten), reported(Truncation::AtK, None)],
            [true; 2]
        );
    }
}
