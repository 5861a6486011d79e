//! Precision: clicked items in the top k, divided by k or by the items shown.
//!
//! precision@k = H_k ÷ (k | min(k, L)). Macro: its mean over lists. Micro: Σ H_k ÷ Σ of the denominators. Over the whole
//! list, k is L, so both denominators are the items shown. A list that shows nothing scores 0. Source: Manning, Raghavan
//! and Schütze, Introduction to Information Retrieval, 2008, section 8.4.

use super::list::WHOLE;
use super::{Average, Cut, Metric, MetricUnit, PrecisionDenominator, Profile, Ratio, Sum, Term};

pub const PRECISION: Metric = Metric {
    id: "precision",
    name: "precision",
    gauge: "precision",
    help: "Clicked items in the top k of a served list, divided by k.",
    meaning: "Share of the top k that was clicked.",
    unit: MetricUnit::Share,
    is_usual: true,
    needs: None,
    is_additive: true,
    counts_clicks: true,
    is_bounded: |_| true,
    ratio: |profile, k| Some(ratio(profile, k)),
};

fn ratio(profile: &Profile, k: Cut) -> Ratio {
    let population = profile.precision_population;
    match (profile.precision_average, profile.precision_denominator, k) {
        // Every list divides by the same k, so the mean of ratios is the ratio of sums. The sums then stay whole numbers.
        (_, PrecisionDenominator::K, Some(k)) => Ratio {
            numerator: Sum {
                term: Term::Hits,
                k: k.get(),
            },
            denominator: Sum {
                term: Term::lists(population, profile.off_list),
                k: WHOLE,
            },
            factor: k.get(),
        },
        (Average::Macro, ..) => Ratio::mean(Term::Precision, k, population, profile),
        (Average::Micro, ..) => Ratio {
            numerator: Sum::at(Term::Hits, k),
            denominator: Sum::at(Term::shown(population, profile.off_list), k),
            factor: 1,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::FIXED_ONE;
    use super::super::worked::{CLICKED_AT_2_AND_5, EMPTY, default, term};
    use super::*;
    use std::num::NonZeroU32;

    #[test]
    fn the_denominator_k_is_shared_by_all_lists() {
        let ratio = ratio(&default(), NonZeroU32::new(10));
        assert_eq!(
            term(ratio.numerator.term, &CLICKED_AT_2_AND_5, ratio.numerator.k),
            2
        );
        assert_eq!(
            (
                term(ratio.denominator.term, &CLICKED_AT_2_AND_5, WHOLE),
                ratio.factor
            ),
            (1, 10)
        );
    }

    #[test]
    fn the_denominator_min_k_l_is_the_number_of_shown_items() {
        let at = |k| term(Term::Precision, &CLICKED_AT_2_AND_5, k);
        assert_eq!([at(1), at(2), at(4)], [0, FIXED_ONE / 2, FIXED_ONE / 4]);
        assert_eq!(at(10), (FIXED_ONE * 2 + 2) / 5, "two of the five that are shown");
        assert_eq!(term(Term::Precision, &EMPTY, 10), 0);
    }
}
