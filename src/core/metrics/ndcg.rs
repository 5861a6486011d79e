//! Normalized discounted cumulative gain, with binary gain.
//!
//! DCG@k = Σ_{r≤k} h(r) ÷ discount(r), where the discount is log2(r+1), or max(1, log2(r)) as in Järvelin and Kekäläinen.
//! NDCG@k = DCG@k ÷ the DCG of a list with hits at ranks 1 to the ideal length. Over the whole list, the ideal length `k`
//! is L, and `min(k,|G|)` is |G|. Source: Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM
//! TOIS 20(4), 2002, with the discount of Burges et al., ICML 2005. A click has no grade, so 2^g − 1 is 1.

use super::mrr::reported;
use super::{ListOutcome, Metric, MetricUnit, NdcgDiscount, NdcgIdeal, OffList, Ratio, Term};

pub const NDCG: Metric = Metric {
    id: "ndcg",
    name: "NDCG",
    gauge: "ndcg",
    help: "Mean over served lists of the normalised discounted cumulative gain in the top k.",
    meaning: "Clicked items discounted by the logarithm of their rank, divided by the same sum for the best order.",
    unit: MetricUnit::Score,
    is_usual: true,
    needs: None,
    is_additive: true,
    counts_clicks: true,
    is_bounded: |_| true,
    ratio: |profile, k| {
        let full = profile.full_without_relevant(profile.population);
        let term = Term::Ndcg(profile.ndcg_ideal, profile.ndcg_discount, profile.off_list, full);
        reported(profile.ndcg_truncation, k).then(|| Ratio::mean(term, k, profile.population, profile))
    },
};

pub(super) fn ndcg(
    list: &ListOutcome,
    k: u32,
    ideal: NdcgIdeal,
    off_list: OffList,
    discounts: &DiscountTable,
) -> f64 {
    let relevant = list.relevant(off_list);
    let n_ideal = match ideal {
        // Without a cut-off, ranx and trec_eval take all of G even if the list is shorter.
        NdcgIdeal::RelevantInK => relevant.min(k),
        NdcgIdeal::RelevantShown => relevant.min(list.shown(k)),
        NdcgIdeal::Relevant => relevant,
        NdcgIdeal::K => list.cut(k),
    };
    let gain: f64 = list.ranks(k).map(|rank| discounts.of(rank)).sum();
    match n_ideal {
        0 => 0.0,
        _ => gain / discounts.ideal(n_ideal),
    }
}

/// Discounts of both kinds, precomputed for the ranks that lists usually have.
#[derive(Debug, Clone)]
pub struct Discounts {
    next_rank: DiscountTable,
    rank: DiscountTable,
}

#[derive(Debug, Clone)]
pub struct DiscountTable {
    compute: fn(u32) -> f64,
    of: Box<[f64]>,
    /// Running sums of the discounts.
    sums: Box<[f64]>,
}

/// Number of ranks whose discounts are always kept.
const N_KEPT: u32 = 1024;

impl Discounts {
    /// Computes the discounts of the usual ranks, or of all up to `longest` if that is more.
    pub fn new(longest: u32) -> Discounts {
        Discounts {
            next_rank: DiscountTable::new(|rank| 1.0 / libm::log2(f64::from(rank) + 1.0), longest),
            rank: DiscountTable::new(|rank| 1.0 / libm::log2(f64::from(rank)).max(1.0), longest),
        }
    }

    pub fn table(&self, discount: NdcgDiscount) -> &DiscountTable {
        match discount {
            NdcgDiscount::NextRank => &self.next_rank,
            NdcgDiscount::Rank => &self.rank,
        }
    }

    /// Returns 1 ÷ log2(rank + 1); ranks are counted from 1.
    pub fn of(&self, rank: u32) -> f64 {
        self.next_rank.of(rank)
    }
}

impl DiscountTable {
    fn new(compute: fn(u32) -> f64, longest: u32) -> DiscountTable {
        let of: Box<[f64]> = (1..=longest.max(N_KEPT)).map(compute).collect();
        let mut sum = 0.0;
        let sums = of.iter().map(|discount| {
            sum += discount;
            sum
        });
        DiscountTable {
            compute,
            sums: sums.collect(),
            of,
        }
    }

    /// Returns the gain of a hit at a rank, counted from 1.
    fn of(&self, rank: u32) -> f64 {
        let kept = self.of.get(rank as usize - 1).copied();
        kept.unwrap_or_else(|| (self.compute)(rank))
    }

    /// Returns the DCG of a list with hits at ranks 1 to n, n ≥ 1.
    fn ideal(&self, n: u32) -> f64 {
        // Continue the running sum in the same order, so that the bits do not depend on how many are kept.
        let kept = self.sums.len().min(n as usize);
        let further = (kept as u32 + 1..=n).map(self.compute);
        further.fold(self.sums[kept - 1], |sum, discount| sum + discount)
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::WHOLE;
    use super::super::worked::{CLICKED_AT_2_AND_5, EMPTY};
    use super::*;

    fn at(k: u32, ideal: NdcgIdeal, off_list: OffList) -> f64 {
        ndcg(&CLICKED_AT_2_AND_5, k, ideal, off_list, &table())
    }

    fn table() -> DiscountTable {
        Discounts::new(0).next_rank
    }

    #[test]
    fn each_ideal_length_by_hand() {
        use NdcgIdeal::*;
        let (one, two, three, four, five) = (
            1.0,
            1.0 / 3_f64.log2(),
            0.5,
            1.0 / 5_f64.log2(),
            1.0 / 6_f64.log2(),
        );
        let gain = two + five;
        let check =
            |value: f64, expected: f64| assert!((value - expected).abs() < 1e-15, "{value} {expected}");
        // |G| is 3, including the click off the list.
        check(at(10, RelevantInK, OffList::Relevant), gain / (one + two + three));
        check(at(10, RelevantInK, OffList::Ignore), gain / (one + two));
        check(at(2, RelevantInK, OffList::Relevant), two / (one + two));
        check(at(2, Relevant, OffList::Relevant), two / (one + two + three));
        check(
            at(5, K, OffList::Relevant),
            gain / (one + two + three + four + five),
        );
        check(
            at(u32::MAX, K, OffList::Relevant),
            gain / (one + two + three + four + five),
        );
        let short = ListOutcome {
            n_items: 1,
            clicked: &[1],
            n_off_list: 2,
        };
        check(ndcg(&short, 10, RelevantShown, OffList::Relevant, &table()), 1.0);
    }

    /// ranx and pytrec_eval compute their `ndcg` like this if there is no cut-off.
    #[test]
    fn the_ideal_of_a_whole_list_has_all_relevant_items() {
        let one_of_two = ListOutcome {
            n_items: 1,
            clicked: &[1],
            n_off_list: 1,
        };
        let discounts = table();
        let at = |k| {
            ndcg(
                &one_of_two,
                k,
                NdcgIdeal::RelevantInK,
                OffList::Relevant,
                &discounts,
            )
        };
        assert_eq!(at(1), 1.0);
        assert_eq!(at(WHOLE), at(5));
        assert!((at(WHOLE) - 1.0 / (1.0 + 1.0 / 3_f64.log2())).abs() < 1e-15);
    }

    #[test]
    fn a_list_without_relevant_items_scores_0() {
        for ideal in [NdcgIdeal::RelevantInK, NdcgIdeal::K] {
            assert_eq!(ndcg(&EMPTY, u32::MAX, ideal, OffList::Ignore, &table()), 0.0);
        }
    }

    #[test]
    fn discounts_are_computed_beyond_the_cached_ones() {
        let Discounts { next_rank, rank } = Discounts::new(0);
        for discounts in [next_rank, rank] {
            let discount = discounts.compute;
            assert_eq!(discounts.of(1), 1.0);
            assert_eq!(discounts.of(4000), discount(4000));
            let sum = |n: u32| (1..=n).map(discount).fold(0.0, |a, b| a + b);
            for n in [1, 1024, 1025, 3000] {
                assert_eq!(discounts.ideal(n), sum(n), "{n}");
            }
        }
    }

    /// The clicks are at ranks 2 and 5 and one is off the list: log2(2) is 1, and log2(5) divides the other.
    #[test]
    fn discounting_by_rank_leaves_rank_2_undiscounted() {
        let discounts = Discounts::new(0);
        let discounts = discounts.table(NdcgDiscount::Rank);
        let at = |k| {
            let ideal = NdcgIdeal::RelevantInK;
            ndcg(&CLICKED_AT_2_AND_5, k, ideal, OffList::Relevant, discounts)
        };
        let third = 1.0 / 3_f64.log2();
        assert_eq!(at(2), 1.0 / 2.0);
        assert!((at(5) - (1.0 + 1.0 / 5_f64.log2()) / (2.0 + third)).abs() < 1e-15);
    }
}
