//! Columns of a tally: the sums kept for each arm and cell, each stored once however many metrics share it.
//!
//! ```text
//!  0      1       2       │ known when a list is served │ known at clicks      │ known of a window
//!  lists  shown   clicks  │ outcome │ catalogue         │ outcome │ catalogue  │ distinct items
//!  └── what a new list adds to ───────────────────────┘
//! ```

use std::num::NonZeroU32;
use std::ops::Range;

use super::alpha_ndcg::AlphaNdcg;
use super::ndcg::Discounts;
use super::popularity::means_of_top;
use super::term::TermSource;
use super::{
    ListOutcome, METRICS, Metric, OffList, PartNames, Parts, Population, Profile, Ratio, Relevant, Sum,
    SumUnit, Term, fixed, profile, usual_ids,
};
use crate::metrics::catalogue::{Catalogue, Shares, UNKNOWN};

/// Metrics, profiles and cut-offs to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Measures {
    /// Profiles. Values of the first one have no label `profile`.
    pub profiles: Vec<Profile>,
    /// Ids of metrics. A profile shows those that its source has.
    pub metrics: Vec<&'static str>,
    /// Cut-offs, ascending. The whole list is always measured, too.
    pub ks: Vec<NonZeroU32>,
    /// α of α-NDCG.
    pub alpha: f64,
    /// Set if there is a catalogue. Without one, the metrics that need it are left out.
    pub catalogue: bool,
}

impl Measures {
    /// Returns the usual metrics of the profile `default`.
    pub fn usual(ks: &[NonZeroU32]) -> Measures {
        Measures {
            profiles: Profile::named(profile::DEFAULT).into_iter().collect(),
            metrics: usual_ids(),
            ks: ks.to_vec(),
            alpha: 0.5,
            catalogue: false,
        }
    }

    /// Returns the metrics that a profile shows, in the order of export.
    fn metrics_of<'a>(&'a self, profile: &'a Profile) -> impl Iterator<Item = Metric> + 'a {
        METRICS.into_iter().filter(|metric| {
            self.metrics.contains(&metric.id)
                && profile.metrics.contains(&metric.id)
                && (self.catalogue || !metric.needs_catalogue())
        })
    }
}

/// One metric of one profile at one k: a ratio of two columns of every tally.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub metric: Metric,
    /// Index among the profiles.
    pub profile: usize,
    /// Cut-off; `None` for the whole list.
    pub k: Option<NonZeroU32>,
    pub numerator: usize,
    pub unit: SumUnit,
    pub denominator: usize,
    /// Factor on the sum in the denominator's column.
    pub factor: u32,
}

impl Column {
    /// Returns the name in JSON: `mrr`, or `mrr@5`.
    pub fn key(&self) -> String {
        match self.k {
            Some(k) => format!("{}@{k}", self.metric.id),
            None => self.metric.id.to_owned(),
        }
    }

    /// Returns the numerator as a number, e.g. the sum of reciprocal ranks.
    pub fn numerator(&self, sums: &[i128]) -> f64 {
        self.unit.to_number(to_float(sums[self.numerator]))
    }

    /// Returns the denominator, e.g. the number of lists.
    pub fn denominator(&self, sums: &[i128]) -> i128 {
        self.denominator_of(sums[self.denominator])
    }

    /// Returns the denominator for a given sum in its column.
    pub fn denominator_of(&self, sum: i128) -> i128 {
        sum * i128::from(self.factor)
    }

    /// Returns numerator ÷ denominator, or `None` if nothing was counted.
    pub fn value(&self, sums: &[i128]) -> Option<f64> {
        self.parts(sums).map(Parts::value)
    }

    /// Returns the parts of the value, or `None` if nothing was counted.
    pub fn parts(&self, sums: &[i128]) -> Option<Parts> {
        let denominator = self.denominator(sums);
        (denominator != 0).then(|| Parts {
            numerator: self.numerator(sums),
            denominator: to_float(denominator),
        })
    }
}

/// Converts a sum to a float. Nearly all sums fit into 64 bits, for which there is an instruction.
pub fn to_float(sum: i128) -> f64 {
    match i64::try_from(sum) {
        Ok(sum) => sum as f64,
        Err(_) => wide_to_float(sum),
    }
}

#[cold]
#[inline(never)]
fn wide_to_float(sum: i128) -> f64 {
    sum as f64
}

/// Served lists.
pub const LISTS: usize = 0;
/// Positions shown, copies included: CTR's denominator over the whole list.
pub const ITEMS_SHOWN: usize = 1;
/// Distinct on-list items clicked: CTR's numerator over the whole list.
pub const CLICKS: usize = 2;
const N_BASES: usize = 3;

/// Columns that are filled with counts of distinct items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoverageColumns {
    /// Range with one column for each cut-off.
    pub seen: Range<usize>,
    /// Column of the catalogue's size.
    pub size: usize,
    /// Cut-offs, ascending, the whole list last.
    pub ks: Vec<u32>,
}

/// Layout of a tally's columns under one configuration.
#[derive(Debug, Clone)]
pub struct Ranking {
    profiles: Vec<Profile>,
    columns: Vec<Column>,
    sums: Vec<Sum>,
    /// Number of sums that a new list adds to.
    n_of_new_list: usize,
    /// Columns that the catalogue decides when a list is served.
    of_catalogue: Range<usize>,
    shares: SharesColumns,
    /// Columns that the catalogue decides at each click.
    of_aspects: ColumnBlock,
    coverage: Option<CoverageColumns>,
    alpha: f64,
    discounts: Discounts,
}

/// Adjacent columns that have the same source.
#[derive(Debug, Clone)]
struct ColumnBlock {
    columns: Range<usize>,
    terms: Vec<TermColumns>,
}

/// Adjacent columns of one term, one for each cut-off.
#[derive(Debug, Clone)]
struct TermColumns {
    term: Term,
    /// Index of the first column within its block.
    first: usize,
    /// Cut-offs, ascending.
    ks: Vec<u32>,
}

/// Columns measured by shares of users, if there are any. The catalogue's columns are the lists, and then for each cut-off
/// the measured means, popularity first.
#[derive(Debug, Clone)]
struct SharesColumns {
    /// Cut-offs ascending, the whole list last.
    ks: Vec<u32>,
    of: MeasuredShares,
}

#[derive(Debug, Clone, Copy)]
enum MeasuredShares {
    Popularity,
    Surprisal,
    Both,
}

/// Bound on the ranks whose discounts are kept. Each takes 32 bytes: two tables, each with the discount and its running
/// sum.
const MAX_KEPT_RANKS: u32 = 100_000;

/// Scratch buffers of [`Ranking`].
#[derive(Debug)]
pub struct RankingBuffers {
    alpha_ndcg: AlphaNdcg,
    /// Shares of users for the items of one list.
    shares: Vec<Shares>,
}

impl Ranking {
    pub fn new(measures: &Measures) -> Ranking {
        let mut sums = vec![
            Sum::at(Term::Lists(Population::All, OffList::Ignore), None),
            Sum::at(Term::Shown(Population::All, OffList::Ignore), None),
            Sum::at(Term::Hits, None),
        ];
        let ratios = ratios(measures);
        for sum in ratios
            .iter()
            .flat_map(|(.., ratio)| [ratio.numerator, ratio.denominator])
        {
            if !sums.contains(&sum) {
                sums.push(sum);
            }
        }
        // Keeps the cut-offs of one term together, ascending. Popularity and surprisal alternate instead, since one pass
        // over a list computes both at each k.
        let gathered = sums.clone();
        let first_of = |sum: &Sum| gathered.iter().position(|other| other.term == sum.term);
        sums[N_BASES..].sort_by_key(|sum| match sum.term {
            Term::WithShares => (sum.term.source(), None, 0),
            Term::Popularity => (sum.term.source(), Some(sum.k as usize), 0),
            Term::Surprisal => (sum.term.source(), Some(sum.k as usize), 1),
            _ => (sum.term.source(), first_of(sum), sum.k),
        });
        Ranking::of_sums(measures, &ratios, sums)
    }

    fn of_sums(
        measures: &Measures,
        ratios: &[(usize, Metric, Option<NonZeroU32>, Ratio)],
        sums: Vec<Sum>,
    ) -> Ranking {
        let place = |sum: &Sum| sums.iter().position(|other| other == sum);
        let place = |sum: &Sum| place(sum).expect("every sum of a ratio was gathered");
        let columns = ratios.iter().map(|(profile, metric, k, ratio)| Column {
            metric: *metric,
            profile: *profile,
            k: *k,
            numerator: place(&ratio.numerator),
            unit: ratio.numerator.term.unit(),
            denominator: place(&ratio.denominator),
            factor: ratio.factor,
        });
        let of_catalogue = ColumnBlock::of(TermSource::Catalogue, &sums);
        let of_window = ColumnBlock::of(TermSource::Window, &sums);
        let of_term = |term: Term| of_window.terms.iter().find(|columns| columns.term == term);
        let in_window = |first: usize| of_window.columns.start + first;
        Ranking {
            profiles: measures.profiles.clone(),
            // Sums are sorted by source, so those of a new list come before all that depend on clicks.
            n_of_new_list: of_catalogue.columns.end,
            shares: SharesColumns::of(&sums[of_catalogue.columns.clone()]),
            of_catalogue: of_catalogue.columns,
            of_aspects: ColumnBlock::of(TermSource::ClicksAndCatalogue, &sums),
            coverage: of_term(Term::Seen)
                .zip(of_term(Term::CatalogueSize))
                .map(|(seen, size)| CoverageColumns {
                    seen: in_window(seen.first)..in_window(seen.first + seen.ks.len()),
                    size: in_window(size.first),
                    ks: seen.ks.clone(),
                }),
            alpha: measures.alpha,
            discounts: Discounts::new(measures.ks.last().map_or(0, |k| k.get().min(MAX_KEPT_RANKS))),
            columns: columns.collect(),
            sums,
        }
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns whether a metric cannot exceed 1 under its profile.
    pub fn is_bounded(&self, column: &Column) -> bool {
        (column.metric.is_bounded)(&self.profiles[column.profile])
    }

    /// Returns the names of a column's numerator and denominator.
    pub fn names_of_parts(&self, column: &Column) -> PartNames {
        let ratio = Ratio {
            numerator: self.sums[column.numerator],
            denominator: self.sums[column.denominator],
            factor: column.factor,
        };
        ratio.names()
    }

    pub fn profiles(&self) -> &[Profile] {
        &self.profiles
    }

    /// Returns the sums of a tally, by column.
    pub fn sums(&self) -> &[Sum] {
        &self.sums
    }

    /// Returns the α of α-NDCG.
    pub(super) fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Returns the number of sums in a tally.
    pub fn width(&self) -> usize {
        self.sums.len()
    }

    /// Returns how many leading sums a list adds to before its first click.
    pub fn n_of_new_list(&self) -> usize {
        self.n_of_new_list
    }

    /// Returns the columns for counts of distinct items, if coverage is measured.
    pub fn coverage(&self) -> Option<&CoverageColumns> {
        self.coverage.as_ref()
    }

    /// Returns whether a click on an item outside of the list changes any number.
    pub fn counts_off_list(&self) -> bool {
        self.profiles
            .iter()
            .any(|profile| profile.off_list == OffList::Relevant)
    }

    /// Returns whether a list must keep its items' places in the catalogue.
    pub fn needs_places(&self) -> bool {
        !self.of_catalogue.is_empty() || self.needs_aspects() || self.coverage.is_some()
    }

    /// Returns whether α-NDCG is measured.
    pub fn needs_aspects(&self) -> bool {
        !self.of_aspects.terms.is_empty()
    }

    /// Returns the columns that [`Self::contribute_items`] fills.
    pub fn columns_of_catalogue(&self) -> Range<usize> {
        self.of_catalogue.clone()
    }

    /// Returns the columns that [`Self::contribute_aspects`] fills.
    pub fn columns_of_aspects(&self) -> Range<usize> {
        self.of_aspects.columns.clone()
    }

    pub fn scratch(&self) -> RankingBuffers {
        RankingBuffers {
            alpha_ndcg: AlphaNdcg::new(self.alpha),
            shares: Vec::new(),
        }
    }

    /// Writes the contribution of one list's outcome into `tally`, which is as wide as the ranking.
    pub fn contribute(&self, list: &ListOutcome, tally: &mut [i64]) {
        for (column, sum) in tally.iter_mut().zip(&self.sums) {
            *column = sum.term.of(list, sum.k, &self.discounts);
        }
    }

    /// Writes a list's contribution to the [columns of the catalogue](Self::columns_of_catalogue), and appends its items'
    /// places. `items` are hashes in rank order.
    pub fn contribute_items(
        &self,
        items: &[u64],
        catalogue: &Catalogue,
        scratch: &mut RankingBuffers,
        places: &mut Vec<u32>,
        sums: &mut [i64],
    ) {
        let start = places.len();
        places.resize(start + items.len(), UNKNOWN);
        let shares = &mut scratch.shares;
        shares.resize(items.len(), Shares::default());
        let places = places[start..].iter_mut();
        for ((item, place), shares) in items.iter().zip(places).zip(&mut *shares) {
            (*place, *shares) = catalogue.look_up(*item);
        }
        self.contribute_shares(catalogue, shares, sums);
    }

    /// Writes the same contribution, given the places of the items in rank order.
    pub fn contribute_places(
        &self,
        places: &[u32],
        catalogue: &Catalogue,
        scratch: &mut RankingBuffers,
        sums: &mut [i64],
    ) {
        let shares = &mut scratch.shares;
        shares.clear();
        shares.extend(places.iter().map(|place| catalogue.shares(*place)));
        self.contribute_shares(catalogue, shares, sums);
    }

    fn contribute_shares(&self, catalogue: &Catalogue, shares: &[Shares], sums: &mut [i64]) {
        // Without such columns, no metric is measured by shares of users.
        let Some((lists, means)) = sums.split_first_mut() else {
            return;
        };
        // Without numbers of users no list counts, so the metrics are undefined.
        *lists = i64::from(!shares.is_empty() && catalogue.n_users() > 0);
        let ks = &self.shares.ks;
        match self.shares.of {
            MeasuredShares::Popularity => {
                means_of_top(shares, ks, |item| [item.popularity], means.as_chunks_mut().0);
            }
            MeasuredShares::Surprisal => {
                means_of_top(shares, ks, |item| [item.surprisal], means.as_chunks_mut().0);
            }
            MeasuredShares::Both => {
                let both = |item: &Shares| [item.popularity, item.surprisal];
                means_of_top(shares, ks, both, means.as_chunks_mut().0);
            }
        }
    }

    /// Adds `sign` times a list's contribution to the [columns of aspects](Self::columns_of_aspects). It depends on the
    /// aspects of its relevant items.
    pub fn contribute_aspects(
        &self,
        relevant: &Relevant,
        catalogue: &Catalogue,
        sign: i64,
        scratch: &mut RankingBuffers,
        sums: &mut [i64],
    ) {
        for columns in &self.of_aspects.terms {
            let Term::AlphaNdcg(off_list) = columns.term else {
                continue;
            };
            let alpha_ndcg = &mut scratch.alpha_ndcg;
            let values = &mut sums[columns.first..];
            alpha_ndcg.at(
                &columns.ks,
                relevant,
                off_list,
                catalogue,
                &self.discounts,
                |index, value| {
                    values[index] += sign * fixed(value);
                },
            );
        }
    }
}

impl ColumnBlock {
    /// Returns the block of one source. All sums but the bases must be sorted by source.
    fn of(source: TermSource, sums: &[Sum]) -> ColumnBlock {
        let sorted = &sums[N_BASES..];
        let start = sorted.partition_point(|sum| sum.term.source() < source);
        let end = sorted.partition_point(|sum| sum.term.source() <= source);
        let mut first = 0;
        let terms = sorted[start..end].chunk_by(|a, b| a.term == b.term).map(|sums| {
            let columns = TermColumns {
                term: sums[0].term,
                first,
                ks: sums.iter().map(|sum| sum.k).collect(),
            };
            first += sums.len();
            columns
        });
        ColumnBlock {
            terms: terms.collect(),
            columns: N_BASES + start..N_BASES + end,
        }
    }
}

impl SharesColumns {
    fn of(sums: &[Sum]) -> SharesColumns {
        let ks = |term: Term| -> Vec<u32> {
            let of_term = sums.iter().filter(|sum| sum.term == term);
            of_term.map(|sum| sum.k).collect()
        };
        let [popularity, surprisal] = [Term::Popularity, Term::Surprisal].map(ks);
        if popularity.is_empty() {
            let of = MeasuredShares::Surprisal;
            return SharesColumns { ks: surprisal, of };
        }
        let of = match surprisal.is_empty() {
            true => MeasuredShares::Popularity,
            false => MeasuredShares::Both,
        };
        // Both have the same cut-offs, so one list serves both.
        debug_assert!(surprisal.is_empty() || popularity == surprisal);
        SharesColumns { ks: popularity, of }
    }
}

/// Returns every metric of every profile at every k, in the order of export.
fn ratios(measures: &Measures) -> Vec<(usize, Metric, Option<NonZeroU32>, Ratio)> {
    let mut ratios = Vec::new();
    for (index, profile) in measures.profiles.iter().enumerate() {
        for metric in measures.metrics_of(profile) {
            for k in measures.ks.iter().copied().map(Some).chain([None]) {
                if let Some(ratio) = (metric.ratio)(profile, k) {
                    ratios.push((index, metric, k, ratio));
                }
            }
        }
    }
    ratios
}
