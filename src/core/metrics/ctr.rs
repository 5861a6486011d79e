//! Click-through rate: items clicked ÷ items shown in the top k, over all lists.
//!
//! CTR@k = Σ H_k ÷ Σ min(k, L), a ratio of sums in every profile. A click counts once per item of a list. An item that is
//! twice in a list counts as shown at both ranks, but as clicked only at the first.

use super::{Metric, MetricUnit, OffList, Population, Ratio, Sum, Term};

pub const CTR: Metric = Metric {
    id: "ctr",
    name: "CTR",
    gauge: "ctr",
    help: "Distinct clicked items divided by items shown, in the top k.",
    meaning: "Click-through rate: items clicked divided by items shown, in the top k, over all lists.",
    unit: MetricUnit::Share,
    is_usual: true,
    needs: None,
    is_additive: true,
    counts_clicks: true,
    is_bounded: |_| true,
    ratio: |_, k| {
        Some(Ratio {
            numerator: Sum::at(Term::Hits, k),
            denominator: Sum::at(Term::Shown(Population::All, OffList::Ignore), k),
            factor: 1,
        })
    },
};

#[cfg(test)]
mod tests {
    use super::super::worked::{CLICKED_AT_2_AND_5, term};
    use super::*;

    #[test]
    fn counts_clicked_and_shown_items_of_the_top_k() {
        let ratio = |k| {
            let parts = (CTR.ratio)(&super::super::worked::default(), k).expect("it is defined");
            [parts.numerator, parts.denominator].map(|sum| term(sum.term, &CLICKED_AT_2_AND_5, sum.k))
        };
        assert_eq!(ratio(std::num::NonZeroU32::new(1)), [0, 1]);
        assert_eq!(ratio(std::num::NonZeroU32::new(2)), [1, 2]);
        assert_eq!(ratio(std::num::NonZeroU32::new(10)), [2, 5]);
        assert_eq!(ratio(None), [2, 5]);
    }
}
