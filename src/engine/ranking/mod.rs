//! The metrics that rank recommendations: which there are, and which sums they are ratios of.
//!
//! A [`Metric`] stands in a file of its own: its formula, its source, and cases worked by hand. Under the choices of a
//! [`Profile`] it is a [`Ratio`] of two sums over lists ([`Term`]s at a cut-off); [`Ranking`] lays the sums of all
//! metrics and profiles out as the columns of a tally, each sum once. Sums are integers, so they do not depend on the
//! order of addition and can be taken away again exactly.

mod alpha_ndcg;
mod columns;
mod coverage;
mod ctr;
mod hit_rate;
mod hits;
mod ids;
mod list;
mod map;
mod mar;
mod mrr;
mod ndcg;
mod popularity;
mod precision;
pub mod profile;
mod recall;
mod sources;
mod surprisal;
mod term;

use std::num::NonZeroU32;

pub use alpha_ndcg::{ALPHA_NDCG, Relevant};
pub use columns::{
    CLICKS, Column, CoverageColumns, ITEMS_SHOWN, LISTS, Measures, Ranking, RankingBuffers, to_float,
};
pub use list::ListOutcome;
pub use profile::{
    ApDenominator, ArDenominator, Average, NdcgDiscount, NdcgIdeal, OffList, Population,
    PrecisionDenominator, Profile, RecallDenominator, ReciprocalRank, Truncation, WithoutRelevant,
};
use term::WHOLE;
pub use term::{FIXED_ONE, Term, Unit, fixed};

/// A cut-off; `None` stands for the whole list.
pub type Cut = Option<NonZeroU32>;

/// What is known of a metric whatever the profile.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name in JSON, in the configuration and in the label `metric`.
    pub id: &'static str,
    /// Its gauge is `abgauge_` and this.
    pub gauge: &'static str,
    pub help: &'static str,
    pub needs_catalogue: bool,
    /// What it is under a profile at a cut-off; none where it is not defined there.
    pub ratio: fn(&Profile, Cut) -> Option<Ratio>,
}

/// Every metric, in the order of export.
pub const METRICS: [Metric; 14] = [
    hit_rate::HIT_RATE,
    ctr::CTR,
    mrr::MRR,
    ndcg::NDCG,
    precision::PRECISION,
    recall::RECALL,
    map::MAP,
    map::MAP_BY_K,
    mar::MAR,
    hits::HITS,
    alpha_ndcg::ALPHA_NDCG,
    coverage::COVERAGE,
    popularity::POPULARITY,
    surprisal::SURPRISAL,
];

/// Ids of the metrics that are measured where none are chosen.
pub const USUAL: [&str; 7] = ["hit_rate", "ctr", "mrr", "ndcg", "precision", "recall", "map"];

impl Metric {
    /// The metric of this id, or of this gauge's name.
    pub fn named(name: &str) -> Option<Metric> {
        METRICS
            .into_iter()
            .find(|metric| metric.id == name || metric.gauge == name)
    }

    /// Whether parts of it add up over partitions and instances; distinct counts do not.
    pub fn is_additive(&self) -> bool {
        self.id != coverage::COVERAGE.id
    }

    /// Whether its numerator is 0 for a list without a click.
    pub fn counts_clicks(&self) -> bool {
        let of_what_is_shown = [
            coverage::COVERAGE.id,
            popularity::POPULARITY.id,
            surprisal::SURPRISAL.id,
        ];
        !of_what_is_shown.contains(&self.id)
    }
}

/// A sum over lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sum {
    pub term: Term,
    /// `u32::MAX` over the whole list.
    pub k: u32,
}

impl Sum {
    pub fn at(term: Term, k: Cut) -> Sum {
        let k = k.map_or(WHOLE, NonZeroU32::get);
        Sum { term, k }
    }
}

/// numerator ÷ (factor × denominator).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    pub numerator: Sum,
    pub denominator: Sum,
    pub factor: u32,
}

impl Ratio {
    /// The mean of a term at a cut-off over the lists of a population.
    fn mean(term: Term, k: Cut, population: Population, profile: &Profile) -> Ratio {
        Ratio {
            numerator: Sum::at(term, k),
            denominator: Sum::at(Term::lists(population, profile.off_list), None),
            factor: 1,
        }
    }
}

impl Term {
    /// Lists of a population; counting all lists, or all that show something, needs no relevance.
    fn lists(population: Population, off_list: OffList) -> Term {
        match population {
            Population::All | Population::WithList => Term::Lists(population, OffList::Ignore),
            _ => Term::Lists(population, off_list),
        }
    }

    /// Items shown by the lists of a population.
    fn shown(population: Population, off_list: OffList) -> Term {
        match population {
            // Empty lists show nothing.
            Population::All | Population::WithList => Term::Shown(Population::All, OffList::Ignore),
            _ => Term::Shown(population, off_list),
        }
    }
}

/// The lists that the metrics' cases are worked on.
#[cfg(test)]
mod worked {
    use super::*;

    /// Five items, those at ranks 2 and 5 clicked, and one that it does not show.
    pub const CLICKED_AT_2_AND_5: ListOutcome = ListOutcome {
        n_items: 5,
        clicked: &[0b10010],
        n_off_list: 1,
    };

    pub const EMPTY: ListOutcome = ListOutcome {
        n_items: 0,
        clicked: &[],
        n_off_list: 0,
    };

    pub fn term(term: Term, list: &ListOutcome, k: u32) -> i64 {
        term.of(list, k, &ndcg::Discounts::new(0))
    }

    pub fn default() -> Profile {
        Profile::named(profile::DEFAULT).expect("it is there")
    }
}
