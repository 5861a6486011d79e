//! Mean average precision: precision at each hit, summed and divided by one of seven denominators.
//!
//! AP@k = Σ_{r≤k} h(r)·P(r) ÷ denominator, with P(r) = H_r ÷ r. Over the whole list, k is L. Source for |G|: Buckley and
//! Voorhees, Evaluating evaluation measure stability, SIGIR 2000. The other denominators come from the libraries (see the
//! profiles).

use super::list::ratio;
use super::mrr::reported;
use super::{ApDenominator, Cut, ListOutcome, Metric, MetricUnit, OffList, Profile, Ratio, Term};

pub const MAP: Metric = Metric {
    id: "map",
    name: "MAP",
    gauge: "map",
    help: "Mean over served lists of average precision in the top k.",
    meaning: "Mean average precision: precision at each clicked rank of the top k, averaged.",
    unit: MetricUnit::Score,
    is_usual: true,
    needs: None,
    is_additive: true,
    counts_clicks: true,
    is_bounded: |profile| profile.ap_denominator != ApDenominator::None,
    ratio: |profile, k| mean(profile, k, profile.ap_denominator),
};

/// MAP as RecTools computes it with `divide_by_k`.
pub const MAP_BY_K: Metric = Metric {
    id: "map_by_k",
    name: "MAP by k",
    gauge: "map_by_k",
    help: "Mean over served lists of average precision in the top k, with the sum divided by k.",
    meaning: "MAP with its sum always divided by k.",
    unit: MetricUnit::Score,
    is_usual: false,
    needs: None,
    is_additive: true,
    counts_clicks: true,
    is_bounded: |_| true,
    ratio: |profile, k| mean(profile, k, ApDenominator::K),
};

fn mean(profile: &Profile, k: Cut, denominator: ApDenominator) -> Option<Ratio> {
    let full = profile.full_without_relevant(profile.map_population);
    let term = Term::AveragePrecision(denominator, profile.off_list, full);
    reported(profile.ap_truncation, k).then(|| Ratio::mean(term, k, profile.map_population, profile))
}

pub(super) fn average_precision(
    list: &ListOutcome,
    k: u32,
    denominator: ApDenominator,
    off_list: OffList,
) -> f64 {
    // At the nth clicked rank there are n hits.
    let hits = (1..).zip(list.ranks(k));
    let sum: f64 = hits.map(|(hits, rank)| f64::from(hits) / f64::from(rank)).sum();
    let relevant = list.relevant(off_list);
    let denominator = match denominator {
        ApDenominator::K => list.cut(k),
        ApDenominator::Shown => list.shown(k),
        ApDenominator::Relevant => relevant,
        ApDenominator::RelevantInK => relevant.min(list.cut(k)),
        ApDenominator::RelevantShown => relevant.min(list.shown(k)),
        ApDenominator::Hits => list.hits(k),
        ApDenominator::None => 1,
    };
    ratio(sum, denominator)
}

#[cfg(test)]
mod tests {
    use super::super::worked::{CLICKED_AT_2_AND_5, EMPTY};
    use super::*;

    #[test]
    fn each_denominator_by_hand() {
        use ApDenominator::*;
        // Precision is 1/2 at the first hit and 2/5 at the second. |G| is 3, including the click off the list.
        let sum = 1.0 / 2.0 + 2.0 / 5.0;
        let at = |k, denominator| average_precision(&CLICKED_AT_2_AND_5, k, denominator, OffList::Relevant);
        assert_eq!(
            [at(10, K), at(10, Shown), at(10, None)],
            [sum / 10.0, sum / 5.0, sum]
        );
        assert_eq!([at(10, Relevant), at(10, RelevantInK)], [sum / 3.0; 2]);
        assert_eq!([at(10, RelevantShown), at(1, RelevantShown)], [sum / 3.0, 0.0]);
        assert_eq!([at(10, Hits), at(4, Hits), at(1, Hits)], [sum / 2.0, 0.5, 0.0]);
        assert_eq!([at(2, Relevant), at(2, RelevantInK)], [0.5 / 3.0, 0.5 / 2.0]);
        assert_eq!(at(u32::MAX, K), sum / 5.0, "over the whole list k is L");
        assert_eq!(at(1, None), 0.0);
    }

    #[test]
    fn ignored_off_list_clicks_are_not_in_g() {
        let at = |denominator| average_precision(&CLICKED_AT_2_AND_5, 10, denominator, OffList::Ignore);
        assert_eq!(at(ApDenominator::Relevant), 0.9 / 2.0);
        assert_eq!(
            average_precision(&EMPTY, 10, ApDenominator::RelevantShown, OffList::Ignore),
            0.0
        );
    }
}
