//! Recall: the share of a list's relevant items that are in its top k.
//!
//! recall@k = H_k ÷ |G|, or ÷ min(k, |G|). Macro: its mean over lists, with 0 for a list without relevant items if the
//! population has it. Micro: Σ H_k ÷ Σ of the denominators over the lists of the population. Source: Manning, Raghavan and
//! Schütze, Introduction to Information Retrieval, 2008, 8.4.

use super::list::ratio;
use super::{Average, ListOutcome, Metric, MetricUnit, OffList, Ratio, RecallDenominator, Sum, Term};

pub const RECALL: Metric = Metric {
    id: "recall",
    name: "recall",
    gauge: "recall",
    help: "Clicked items in the top k, divided by all relevant items of the served list.",
    meaning: "Share of a list's clicked items that are in the top k.",
    unit: MetricUnit::Share,
    is_usual: true,
    needs: None,
    is_additive: true,
    counts_clicks: true,
    is_bounded: |_| true,
    ratio: |profile, k| {
        Some(match profile.recall_average {
            Average::Macro => Ratio::mean(
                Term::Recall(profile.recall_denominator, profile.off_list),
                k,
                profile.recall_population,
                profile,
            ),
            Average::Micro => Ratio {
                numerator: Sum::at(Term::Hits, k),
                denominator: Sum::at(
                    Term::Relevant(profile.recall_population, profile.off_list),
                    match profile.recall_denominator {
                        RecallDenominator::Relevant => None,
                        RecallDenominator::RelevantInK => k,
                    },
                ),
                factor: 1,
            },
        })
    },
};

pub(super) fn recall(list: &ListOutcome, k: u32, denominator: RecallDenominator, off_list: OffList) -> f64 {
    let relevant = list.relevant(off_list);
    let denominator = match denominator {
        RecallDenominator::Relevant => relevant,
        // Over the whole list, k is `u32::MAX` and does not bound anything.
        RecallDenominator::RelevantInK => relevant.min(k),
    };
    ratio(f64::from(list.hits(k)), denominator)
}

#[cfg(test)]
mod tests {
    use super::super::list::WHOLE;
    use super::super::worked::{CLICKED_AT_2_AND_5, EMPTY, default, term};
    use super::super::{Population, Profile};
    use super::*;

    #[test]
    fn relevant_off_list_clicks_lower_recall() {
        let at = |k, off_list| recall(&CLICKED_AT_2_AND_5, k, RecallDenominator::Relevant, off_list);
        assert_eq!(at(1, OffList::Ignore), 0.0);
        assert_eq!(at(2, OffList::Ignore), 1.0 / 2.0);
        assert_eq!(at(2, OffList::Relevant), 1.0 / 3.0, "one click was off the list");
        assert_eq!(at(5, OffList::Relevant), 2.0 / 3.0);
        let empty = recall(&EMPTY, 5, RecallDenominator::RelevantInK, OffList::Relevant);
        assert_eq!(empty, 0.0);
    }

    /// |G| is 3, and the top 2 can hold 2.
    #[test]
    fn a_cut_off_bounds_the_denominator_if_configured() {
        let at = |k| {
            recall(
                &CLICKED_AT_2_AND_5,
                k,
                RecallDenominator::RelevantInK,
                OffList::Relevant,
            )
        };
        assert_eq!(
            [at(1), at(2), at(5), at(WHOLE)],
            [0.0, 1.0 / 2.0, 2.0 / 3.0, 2.0 / 3.0]
        );
    }

    /// An empty list with an off-list click has a relevant item, but it is not in a population of lists that show
    /// something.
    #[test]
    fn a_micro_average_counts_the_relevant_items_of_its_population_only() {
        let beside = ListOutcome {
            n_off_list: 1,
            ..EMPTY
        };
        for (recall_population, expected) in [
            (Population::All, 1),
            (Population::Clicked, 1),
            (Population::ClickedWithList, 0),
        ] {
            let profile = Profile {
                recall_population,
                recall_average: Average::Micro,
                off_list: OffList::Relevant,
                ..default()
            };
            let ratio = (RECALL.ratio)(&profile, None).expect("it is defined");
            let relevant = term(ratio.denominator.term, &beside, ratio.denominator.k);
            assert_eq!(relevant, expected, "{recall_population:?}");
        }
    }
}
