//! Terms of metrics: the integers that one list adds to the sums.
//!
//! Counts are whole. Everything else is fixed point: a list's term is rounded once, to the nearest multiple of 2^-32. So a
//! mean over any number of lists is off by at most 2^-33 = 1.2e-10, and does not depend on the order of lists, on
//! partitions or on the instance. A term can be subtracted again exactly. Within a term, arithmetic is IEEE double
//! precision in a fixed order, and logarithms are `libm`'s, so every machine computes the same bits.

use super::list::ratio;
use super::{
    ApDenominator, ArDenominator, ListOutcome, NdcgDiscount, NdcgIdeal, OffList, Population,
    RecallDenominator, ReciprocalRank, map, mar, mrr, ndcg, recall,
};

/// Fixed-point representation of 1.
pub const FIXED_ONE: i64 = 1 << 32;

/// Unit of a sum's integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SumUnit {
    Count,
    /// Multiples of 1 / [`FIXED_ONE`].
    Fixed,
}

impl SumUnit {
    /// Converts a sum to a number, in ones.
    pub fn to_number(self, sum: f64) -> f64 {
        match self {
            SumUnit::Count => sum,
            SumUnit::Fixed => sum / FIXED_ONE as f64,
        }
    }
}

/// Value that a list adds to a sum at a cut-off k.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Term {
    /// 1 for a list of the population.
    Lists(Population, OffList),
    /// min(k, L) of a list of the population.
    Shown(Population, OffList),
    /// 1 for a list that shows something, if the catalogue has shares of users.
    WithShares,
    /// [H_k ≥ 1]
    Hit,
    /// H_k
    Hits,
    /// H_k ÷ min(k, L)
    Precision,
    /// min(k, |G|) of a list of the population.
    Relevant(Population, OffList),
    /// H_k ÷ |G|, or ÷ min(k, |G|)
    Recall(RecallDenominator, OffList),
    /// AP@k. If a population is named, 1 for its lists without a relevant item.
    AveragePrecision(ApDenominator, OffList, Option<Population>),
    /// AR@k
    AverageRecall(ArDenominator, OffList),
    /// RR@k
    ReciprocalRank(ReciprocalRank),
    /// NDCG@k. If a population is named, 1 for its lists without a relevant item.
    Ndcg(NdcgIdeal, NdcgDiscount, OffList, Option<Population>),
    /// α-NDCG@k; needs the catalogue.
    AlphaNdcg(OffList),
    /// Mean share of users of the items in the top k; needs the catalogue.
    Popularity,
    /// Mean surprisal of the items in the top k; needs the catalogue.
    Surprisal,
    /// Distinct catalogue items in any top k: a count over the window, not a sum over lists.
    Seen,
    /// Items of the catalogue.
    CatalogueSize,
}

/// Source of a term's value, and the time at which it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TermSource {
    /// The list's outcome; not 0 even without a click.
    Shown,
    /// The catalogue, when the list is served.
    Catalogue,
    /// The list's outcome; 0 until the first click.
    Clicks,
    /// The catalogue, at each click.
    ClicksAndCatalogue,
    /// The window.
    Window,
}

impl Term {
    pub fn unit(self) -> SumUnit {
        match self {
            Term::Lists(..) | Term::Shown(..) | Term::WithShares | Term::Hit | Term::Hits => SumUnit::Count,
            Term::Relevant(..) | Term::Seen | Term::CatalogueSize => SumUnit::Count,
            _ => SumUnit::Fixed,
        }
    }

    /// Returns the name of the sum over lists: a plural noun, such as `lists with a click`, or `sum of …` if it is not a count.
    pub(super) fn name(self) -> &'static str {
        match self {
            Term::Lists(Population::All, _) => "lists",
            Term::Lists(Population::Clicked, _) | Term::Hit => "lists with a click",
            Term::Lists(Population::ClickedWithList, _) => "lists with items and a click",
            Term::Lists(Population::WithList, _) | Term::WithShares => "lists with items",
            Term::Shown(Population::All | Population::WithList, _) => "items shown",
            Term::Shown(Population::Clicked | Population::ClickedWithList, _) => {
                "items shown by lists with a click"
            }
            Term::Hits => "clicks",
            Term::Precision => "sum of precisions",
            Term::Relevant(..) => "items clicked",
            Term::Recall(..) => "sum of recalls",
            Term::AveragePrecision(..) => "sum of average precisions",
            Term::AverageRecall(..) => "sum of average recalls",
            Term::ReciprocalRank(_) => "sum of reciprocal ranks",
            Term::Ndcg(..) => "sum of NDCG",
            Term::AlphaNdcg(_) => "sum of α-NDCG",
            Term::Popularity => "sum of mean shares of users",
            Term::Surprisal => "sum of mean surprisals",
            Term::Seen => "items of the catalogue shown",
            Term::CatalogueSize => "items of the catalogue",
        }
    }

    pub(super) fn source(self) -> TermSource {
        match self {
            Term::Lists(Population::All | Population::WithList, _) => TermSource::Shown,
            Term::Shown(Population::All, _) => TermSource::Shown,
            // These are 1 as long as nothing is relevant, so a new list adds to them before its first click.
            Term::AveragePrecision(.., Some(_)) | Term::Ndcg(.., Some(_)) => TermSource::Shown,
            Term::WithShares | Term::Popularity | Term::Surprisal => TermSource::Catalogue,
            Term::AlphaNdcg(_) => TermSource::ClicksAndCatalogue,
            Term::Seen | Term::CatalogueSize => TermSource::Window,
            _ => TermSource::Clicks,
        }
    }

    /// Returns the list's value for a term that depends only on its outcome; 0 for the others.
    pub fn of(self, list: &ListOutcome, k: u32, discounts: &ndcg::Discounts) -> i64 {
        match self {
            Term::Lists(population, off_list) => i64::from(population.has(list, off_list)),
            Term::Shown(population, off_list) => {
                i64::from(list.shown(k)) * i64::from(population.has(list, off_list))
            }
            Term::Hit => i64::from(list.hits(k) > 0),
            Term::Hits => i64::from(list.hits(k)),
            Term::Precision => fixed(ratio(f64::from(list.hits(k)), list.shown(k))),
            Term::Relevant(population, off_list) => {
                i64::from(list.relevant(off_list).min(k)) * i64::from(population.has(list, off_list))
            }
            Term::Recall(denominator, off_list) => fixed(recall::recall(list, k, denominator, off_list)),
            // Before the general cases below: without a relevant item, the ratio is undefined and the profile sets it to 1.
            Term::AveragePrecision(_, off_list, Some(population))
            | Term::Ndcg(.., off_list, Some(population))
                if list.relevant(off_list) == 0 =>
            {
                FIXED_ONE * i64::from(population.has(list, off_list))
            }
            Term::AveragePrecision(denominator, off_list, _) => {
                fixed(map::average_precision(list, k, denominator, off_list))
            }
            Term::AverageRecall(denominator, off_list) => {
                fixed(mar::average_recall(list, k, denominator, off_list))
            }
            Term::ReciprocalRank(ranks) => fixed(mrr::reciprocal_rank(list, k, ranks)),
            Term::Ndcg(ideal, discount, off_list, _) => {
                fixed(ndcg::ndcg(list, k, ideal, off_list, discounts.table(discount)))
            }
            Term::AlphaNdcg(_)
            | Term::WithShares
            | Term::Popularity
            | Term::Surprisal
            | Term::Seen
            | Term::CatalogueSize => 0,
        }
    }
}

impl Population {
    fn has(self, list: &ListOutcome, off_list: OffList) -> bool {
        match self {
            Population::All => true,
            Population::Clicked => list.relevant(off_list) > 0,
            Population::ClickedWithList => list.relevant(off_list) > 0 && list.n_items > 0,
            Population::WithList => list.n_items > 0,
        }
    }
}

/// Rounds to the nearest fixed-point number, halves away from 0, like [`f64::round`]. That one is a function call on
/// processors that may lack the instruction.
pub fn fixed(value: f64) -> i64 {
    let scaled = value * FIXED_ONE as f64;
    // Adds the largest number below one half. Adding one half itself would round the number just below one half up to 1.
    (scaled + 0.5_f64.next_down().copysign(scaled)) as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_term_is_within_half_a_unit_of_the_true_one() {
        for rank in 1..=1000_u32 {
            let true_value = FIXED_ONE as f64 / f64::from(rank);
            let error = fixed(1.0 / f64::from(rank)) as f64 - true_value;
            assert!(error.abs() <= 0.5, "rank {rank}: {error}");
        }
    }

    proptest! {
        #[test]
        fn rounds_as_the_standard_library_does(value: f64, small in -9.0..9.0, halves in -(1_i64 << 52)..1 << 52) {
            let half = halves as f64 / 2.0 / FIXED_ONE as f64;
            for value in [value, small, half, half.next_up(), half.next_down()] {
                prop_assert_eq!(fixed(value), (value * FIXED_ONE as f64).round() as i64);
            }
        }
    }
}
