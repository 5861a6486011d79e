//! The sums that metrics are ratios of: what one list adds to each, as an integer.
//!
//! Counts are whole. Everything else is fixed point: a list's term is rounded once, to the nearest multiple of 2^-32.
//! So a mean over any number of lists is off by at most 2^-33 = 1.2e-10, and does not depend on the order of lists,
//! on partitions or on the instance; and a term can be taken away again exactly. Within a term, arithmetic is IEEE
//! double precision in a fixed order, and logarithms are `libm`'s, so that every machine gives the same bits.

use super::{
    ApDenominator, ArDenominator, ListOutcome, NdcgDiscount, NdcgIdeal, OffList, Population,
    RecallDenominator, ReciprocalRank, map, mar, mrr, ndcg, recall,
};

/// Fixed point: the integer that stands for 1.
pub const FIXED_ONE: i64 = 1 << 32;

/// The cut-off of a sum over whole lists.
pub const WHOLE: u32 = u32::MAX;

/// What the integers of a sum stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Count,
    /// Multiples of 1 / [`FIXED_ONE`].
    Fixed,
}

impl Unit {
    /// A sum as a number, in ones.
    pub fn to_number(self, sum: f64) -> f64 {
        match self {
            Unit::Count => sum,
            Unit::Fixed => sum / FIXED_ONE as f64,
        }
    }
}

/// What a list adds to a sum at a cut-off k.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Term {
    /// 1 for a list of the population.
    Lists(Population, OffList),
    /// min(k, L) of a list of the population.
    Shown(Population, OffList),
    /// 1 for a list that shows something, where the catalogue tells shares of users.
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
    /// AP@k, and 1 for a list without a relevant item of the population, if one is named.
    AveragePrecision(ApDenominator, OffList, Option<Population>),
    /// AR@k
    AverageRecall(ArDenominator, OffList),
    /// RR@k
    ReciprocalRank(ReciprocalRank),
    /// NDCG@k, and 1 as above.
    Ndcg(NdcgIdeal, NdcgDiscount, OffList, Option<Population>),
    /// α-NDCG@k; needs the catalogue.
    AlphaNdcg(OffList),
    /// The mean share of users of the items in the top k; needs the catalogue.
    Popularity,
    /// The mean surprisal of the items in the top k; needs the catalogue.
    Surprisal,
    /// Distinct catalogue items in any top k: no sum over lists, but a count over the window.
    Seen,
    /// Items of the catalogue.
    CatalogueSize,
}

/// What computes a term, and when.
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
    pub fn unit(self) -> Unit {
        match self {
            Term::Lists(..) | Term::Shown(..) | Term::WithShares | Term::Hit | Term::Hits => Unit::Count,
            Term::Relevant(..) | Term::Seen | Term::CatalogueSize => Unit::Count,
            _ => Unit::Fixed,
        }
    }

    pub(super) fn source(self) -> TermSource {
        match self {
            Term::Lists(Population::All | Population::WithList, _) => TermSource::Shown,
            Term::Shown(Population::All, _) => TermSource::Shown,
            Term::AveragePrecision(.., Some(_)) | Term::Ndcg(.., Some(_)) => TermSource::Shown,
            Term::WithShares | Term::Popularity | Term::Surprisal => TermSource::Catalogue,
            Term::AlphaNdcg(_) => TermSource::ClicksAndCatalogue,
            Term::Seen | Term::CatalogueSize => TermSource::Window,
            _ => TermSource::Clicks,
        }
    }

    /// What a list adds to the terms that follow from its outcome; 0 to the others.
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

/// The nearest fixed-point number, a half away from 0: as [`f64::round`] has it, which is a call of a function on
/// processors that need not have an instruction for it.
pub fn fixed(value: f64) -> i64 {
    let scaled = value * FIXED_ONE as f64;
    // The largest number below a half: a half itself would lift the one before it, too.
    (scaled + 0.5_f64.next_down().copysign(scaled)) as i64
}

/// numerator ÷ denominator, 0 where both are: a list that shows nothing has no hit.
pub(super) fn ratio(numerator: f64, denominator: u32) -> f64 {
    match denominator {
        0 => 0.0,
        _ => numerator / f64::from(denominator),
    }
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
