//! Metrics that rank recommendations, and the sums that they are ratios of.
//!
//! Each [`Metric`] has a file of its own: its formula, its source, and cases worked by hand. Under the choices of a
//! [`Profile`] it is a [`Ratio`] of two sums over lists ([`Term`]s at a cut-off). [`Ranking`] lays out the sums of all
//! metrics and profiles as the columns of a tally, each sum once. Sums are integers, so they do not depend on the order of
//! addition and can be subtracted again exactly.

mod alpha_ndcg;
pub mod by_name;
pub mod catalogue;
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
mod parts;
mod popularity;
mod precision;
pub mod profile;
mod recall;
mod sources;
mod surprisal;
mod term;

use std::num::NonZeroU32;

use serde::Serialize;

pub use alpha_ndcg::{ALPHA_NDCG, Relevant};
pub use columns::{
    CLICKS, Column, CoverageColumns, ITEMS_SHOWN, LISTS, Measures, Ranking, RankingBuffers, to_float,
};
pub use ctr::CTR;
pub use list::ListOutcome;
use list::WHOLE;
pub use parts::{PartNames, Parts};
pub use profile::{
    ApDenominator, ArDenominator, Average, NdcgDiscount, NdcgIdeal, OffList, Population,
    PrecisionDenominator, Profile, RecallDenominator, ReciprocalRank, Truncation, WithoutRelevant,
};
pub use term::{FIXED_ONE, SumUnit, Term, fixed};

/// Cut-off; `None` for the whole list.
pub type Cut = Option<NonZeroU32>;

/// Row that describes a metric. Configuration, gauges, JSON, sentences and the page are derived from it.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Name in JSON, in the configuration and in the label `metric`.
    pub id: &'static str,
    /// Name in sentences and on the page, such as `hit ratio`.
    pub name: &'static str,
    /// Name of the gauge without the prefix `abgauge_`.
    pub gauge: &'static str,
    /// Help text of the gauge.
    pub help: &'static str,
    /// Explanation on the page, true under every profile.
    pub meaning: &'static str,
    pub unit: MetricUnit,
    /// Set if it is measured by default.
    pub is_usual: bool,
    /// Data that a catalogue must have for it. `None` if it needs no catalogue.
    pub needs: Option<CatalogueData>,
    /// Set if its parts add up over partitions and instances. Distinct counts do not.
    pub is_additive: bool,
    /// Set if its numerator is 0 for a list without a click.
    pub counts_clicks: bool,
    /// Returns whether no value can exceed 1 under a profile. Counts of items, sums, bits, and ratios to a greedy ideal can.
    pub is_bounded: fn(&Profile) -> bool,
    /// Returns the ratio under a profile at a cut-off, or `None` if the metric is not defined there.
    pub ratio: fn(&Profile, Cut) -> Option<Ratio>,
}

/// Data of a catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogueData {
    /// The items themselves.
    Items,
    /// Share of users who touched an item.
    Shares,
    /// Aspects of an item.
    Aspects,
}

/// Unit of a metric's values, which decides how they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricUnit {
    /// Share, written in percent.
    Share,
    /// Number without a unit.
    Score,
    /// Number of items of a list.
    Items,
    Bits,
}

impl MetricUnit {
    /// Returns the number of digits after the decimal point.
    pub fn digits(self) -> usize {
        match self {
            MetricUnit::Share | MetricUnit::Bits => 2,
            MetricUnit::Score => 4,
            MetricUnit::Items => 3,
        }
    }
}

/// Metrics in the order of export.
pub const METRICS: [Metric; 14] = [
    hit_rate::HIT_RATE,
    CTR,
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

/// Metric that decides an experiment if no primary metric is configured.
pub const DEFAULT_PRIMARY: Metric = CTR;

/// Returns the ids of the metrics that are measured by default.
pub fn usual_ids() -> Vec<&'static str> {
    let usual = METRICS.iter().filter(|metric| metric.is_usual);
    usual.map(|metric| metric.id).collect()
}

impl Metric {
    /// Returns the metric with this id or this gauge name.
    pub fn named(name: &str) -> Option<Metric> {
        METRICS
            .into_iter()
            .find(|metric| metric.id == name || metric.gauge == name)
    }

    /// Returns whether it is measured only with a catalogue.
    pub fn needs_catalogue(&self) -> bool {
        self.needs.is_some()
    }
}

/// Sum over lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sum {
    pub term: Term,
    /// Cut-off; `u32::MAX` for the whole list.
    pub k: u32,
}

impl Sum {
    pub fn at(term: Term, k: Cut) -> Sum {
        let k = k.map_or(WHOLE, NonZeroU32::get);
        Sum { term, k }
    }

    /// Returns its name in the plural, such as `clicks in the top 10`.
    pub fn name(&self) -> String {
        let Sum { term, k } = self;
        match term {
            _ if *k == WHOLE => term.name().to_owned(),
            Term::Relevant(..) => format!("{}, at most {k} of each list", term.name()),
            _ => format!("{} in the top {k}", term.name()),
        }
    }
}

/// Ratio: numerator ÷ (factor × denominator).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    pub numerator: Sum,
    pub denominator: Sum,
    pub factor: u32,
}

impl Ratio {
    /// Returns the names of both parts.
    pub fn names(&self) -> PartNames {
        let denominator = self.denominator.name();
        PartNames {
            numerator: self.numerator.name(),
            denominator: match self.factor {
                1 => denominator,
                // Only a cut-off is a factor: each list has that many places.
                k => format!("places in the top {k} of {denominator}"),
            },
        }
    }

    /// Returns the mean of a term at a cut-off over the lists of a population.
    fn mean(term: Term, k: Cut, population: Population, profile: &Profile) -> Ratio {
        Ratio {
            numerator: Sum::at(term, k),
            denominator: Sum::at(Term::lists(population, profile.off_list), None),
            factor: 1,
        }
    }
}

impl Term {
    /// Returns the term that counts the lists of a population. Relevance does not matter if all lists count, or all that
    /// show something.
    fn lists(population: Population, off_list: OffList) -> Term {
        match population {
            Population::All | Population::WithList => Term::Lists(population, OffList::Ignore),
            _ => Term::Lists(population, off_list),
        }
    }

    /// Returns the term that counts the items shown by the lists of a population.
    fn shown(population: Population, off_list: OffList) -> Term {
        match population {
            // Empty lists show nothing.
            Population::All | Population::WithList => Term::Shown(Population::All, OffList::Ignore),
            _ => Term::Shown(population, off_list),
        }
    }
}

/// Lists for the worked cases of the metrics.
#[cfg(test)]
mod worked {
    use super::*;

    /// List of five items, with clicks at ranks 2 and 5 and on an item that it does not show.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn names(metric: &str, profile: &str, k: u32) -> [String; 2] {
        let metric = Metric::named(metric).expect("it is known");
        let profile = Profile::named(profile).expect("it is known");
        let ratio = (metric.ratio)(&profile, NonZeroU32::new(k)).expect("it is defined");
        let PartNames {
            numerator,
            denominator,
        } = ratio.names();
        [numerator, denominator]
    }

    #[test]
    fn the_parts_of_each_metric_are_named_by_hand() {
        // 0 stands for the whole list.
        let by_hand = [
            (
                "hit_rate",
                "default",
                5,
                "lists with a click in the top 5",
                "lists",
            ),
            (
                "ctr",
                "default",
                5,
                "clicks in the top 5",
                "items shown in the top 5",
            ),
            ("ctr", "default", 0, "clicks", "items shown"),
            ("mrr", "default", 0, "sum of reciprocal ranks", "lists"),
            ("ndcg", "default", 5, "sum of NDCG in the top 5", "lists"),
            (
                "precision",
                "default",
                5,
                "clicks in the top 5",
                "places in the top 5 of lists",
            ),
            ("precision", "default", 0, "sum of precisions", "lists"),
            ("recall", "default", 0, "sum of recalls", "lists with a click"),
            ("map", "default", 0, "sum of average precisions", "lists"),
            ("map_by_k", "default", 0, "sum of average precisions", "lists"),
            ("mar", "default", 0, "sum of average recalls", "lists"),
            ("hits", "default", 0, "clicks", "lists"),
            ("alpha_ndcg", "default", 0, "sum of α-NDCG", "lists"),
            (
                "coverage",
                "default",
                5,
                "items of the catalogue shown in the top 5",
                "items of the catalogue",
            ),
            (
                "popularity",
                "default",
                0,
                "sum of mean shares of users",
                "lists with items",
            ),
            (
                "surprisal",
                "default",
                0,
                "sum of mean surprisals",
                "lists with items",
            ),
            ("recall", "summed", 5, "clicks in the top 5", "items clicked"),
            (
                "precision",
                "recommenders",
                5,
                "clicks in the top 5",
                "places in the top 5 of lists with items and a click",
            ),
            ("mrr", "ranx", 0, "sum of reciprocal ranks", "lists with a click"),
            ("precision", "lenskit", 0, "sum of precisions", "lists with items"),
        ];
        for (metric, profile, k, numerator, denominator) in by_hand {
            let found = names(metric, profile, k);
            assert_eq!(found, [numerator, denominator], "{metric}@{k} of {profile}");
        }
        for metric in METRICS {
            assert!(by_hand.iter().any(|(id, ..)| *id == metric.id), "{}", metric.id);
        }
    }

    #[test]
    fn a_bounded_recall_names_its_bound() {
        let profile = Profile {
            recall_average: Average::Micro,
            recall_denominator: RecallDenominator::RelevantInK,
            ..worked::default()
        };
        let ratio = (recall::RECALL.ratio)(&profile, NonZeroU32::new(5)).expect("it is defined");
        assert_eq!(ratio.names().denominator, "items clicked, at most 5 of each list");
    }
}
