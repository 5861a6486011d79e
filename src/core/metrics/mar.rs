//! Mean average recall: recall at each hit, summed and divided by k or by the items shown.
//!
//! AR@k = Σ_{r≤k} h(r)·(H_r ÷ |G|) ÷ (k | min(k, L)). Source: rs_metrics, `mar`. Over the whole list, k is L.

use super::list::ratio;
use super::{ArDenominator, ListOutcome, Metric, MetricUnit, OffList, Ratio, Term};

pub const MAR: Metric = Metric {
    id: "mar",
    name: "MAR",
    gauge: "mar",
    help: "Mean over served lists of average recall in the top k.",
    meaning: "Mean average recall: recall at each clicked rank of the top k, averaged.",
    unit: MetricUnit::Score,
    is_usual: false,
    needs: None,
    is_additive: true,
    counts_clicks: true,
    is_bounded: |_| true,
    ratio: |profile, k| {
        let term = Term::AverageRecall(profile.ar_denominator, profile.off_list);
        Some(Ratio::mean(term, k, profile.population, profile))
    },
};

pub(super) fn average_recall(
    list: &ListOutcome,
    k: u32,
    denominator: ArDenominator,
    off_list: OffList,
) -> f64 {
    let relevant = list.relevant(off_list);
    let sum: f64 = (1..=list.hits(k))
        .map(|hits| ratio(f64::from(hits), relevant))
        .sum();
    let denominator = match denominator {
        ArDenominator::K => list.cut(k),
        ArDenominator::Shown => list.shown(k),
    };
    ratio(sum, denominator)
}

#[cfg(test)]
mod tests {
    use super::super::worked::{CLICKED_AT_2_AND_5, EMPTY};
    use super::*;

    #[test]
    fn each_denominator_by_hand() {
        // Recall is 1/3 at the first hit and 2/3 at the second.
        let at = |k, denominator| average_recall(&CLICKED_AT_2_AND_5, k, denominator, OffList::Relevant);
        let sum = 1.0 / 3.0 + 2.0 / 3.0;
        assert_eq!(at(10, ArDenominator::K), sum / 10.0);
        assert_eq!(at(10, ArDenominator::Shown), sum / 5.0);
        assert_eq!(at(4, ArDenominator::Shown), 1.0 / 3.0 / 4.0);
        assert_eq!(
            at(u32::MAX, ArDenominator::K),
            sum / 5.0,
            "over the whole list k is L"
        );
        let empty = average_recall(&EMPTY, 5, ArDenominator::Shown, OffList::Relevant);
        assert_eq!(empty, 0.0);
    }
}
