//! The metrics that rank recommendations: which there are, and which columns of a tally they add to.
//!
//! A metric is a value of type [`Metric`], in a file of its own: two functions of one list's outcome, whose sums over
//! lists are its numerator and denominator. Sums are integers, or fixed point of [`FIXED_ONE`], so they do not depend
//! on the order of addition and can be taken away again exactly.

mod ctr;
mod hit_rate;
mod mrr;

use std::num::NonZeroU32;

/// Fixed point: the integer that stands for 1. A term is rounded to the nearest 2^-32, so a mean over lists is off
/// by at most 2^-33 = 1.2e-10.
pub const FIXED_ONE: i64 = 1 << 32;

/// What is known of one served list: all that a metric may ask.
#[derive(Debug, Clone, Copy)]
pub struct ListOutcome<'a> {
    /// L: positions of the list, copies included.
    pub n_items: u32,
    /// Bit r−1 says that the item at rank r was clicked; ranks of later copies of an item are never set.
    pub clicked: &'a [u32],
}

impl ListOutcome<'_> {
    /// min(k, L): positions shown in the top k.
    pub fn shown(&self, k: u32) -> u32 {
        self.n_items.min(k)
    }

    /// H_k: clicked items in the top k.
    pub fn hits(&self, k: u32) -> u32 {
        let mut hits = 0;
        let mut left = k;
        for word in self.clicked {
            if left < 32 {
                return hits + (word & ((1 << left) - 1)).count_ones();
            }
            hits += word.count_ones();
            left -= 32;
        }
        hits
    }

    /// The lowest clicked rank, counted from 1.
    pub fn first_rank(&self) -> Option<u32> {
        let word = self.clicked.iter().position(|word| *word != 0)?;
        Some(word as u32 * 32 + self.clicked[word].trailing_zeros() + 1)
    }
}

/// What the integers of a numerator stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Count,
    /// Multiples of 1 / [`FIXED_ONE`].
    Fixed,
}

/// A ratio of two sums over lists. `k` is `u32::MAX` where the whole list counts.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name in JSON, in the configuration and in the label `metric`.
    pub id: &'static str,
    /// Its gauge is `abgauge_` and this.
    pub gauge: &'static str,
    pub help: &'static str,
    pub unit: Unit,
    pub numerator: fn(&ListOutcome, k: u32) -> i64,
    pub denominator: Denominator,
}

/// What the sum of numerators is divided by.
#[derive(Debug, Clone, Copy)]
pub enum Denominator {
    /// The number of lists: a mean over all of them. They share one column.
    Lists,
    /// A sum of its own.
    Sum(fn(&ListOutcome, k: u32) -> i64),
}

/// Every metric that can be configured, in the order of export.
pub const CATALOGUE: [Metric; 3] = [hit_rate::HIT_RATE, ctr::CTR, mrr::MRR];

/// One metric at one k: the columns of every tally that it is the ratio of.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub metric: Metric,
    /// `None`: over the whole list.
    pub k: Option<NonZeroU32>,
    pub numerator: usize,
    pub denominator: usize,
}

impl Column {
    /// Its name in JSON: `mrr`, or `mrr@5`.
    pub fn key(&self) -> String {
        match self.k {
            Some(k) => format!("{}@{k}", self.metric.id),
            None => self.metric.id.to_owned(),
        }
    }

    /// The numerator as a number, e.g. the sum of reciprocal ranks.
    pub fn numerator(&self, sums: &[i128]) -> f64 {
        match self.metric.unit {
            Unit::Count => sums[self.numerator] as f64,
            Unit::Fixed => sums[self.numerator] as f64 / FIXED_ONE as f64,
        }
    }

    pub fn denominator(&self, sums: &[i128]) -> f64 {
        sums[self.denominator] as f64
    }

    /// Numerator ÷ denominator; none where nothing was counted.
    pub fn value(&self, sums: &[i128]) -> Option<f64> {
        (sums[self.denominator] != 0).then(|| self.numerator(sums) / self.denominator(sums))
    }
}

/// The columns of a tally under one configuration: which sums are kept for each arm and cell.
#[derive(Debug, Clone)]
pub struct Ranking {
    columns: Vec<Column>,
    width: usize,
}

/// Served lists.
pub const LISTS: usize = 0;
/// Positions shown, copies included: CTR's denominator over the whole list.
pub const ITEMS_SHOWN: usize = 1;
/// Distinct on-list items clicked: CTR's numerator over the whole list.
pub const CLICKS: usize = 2;
const N_BASES: usize = 3;

impl Ranking {
    /// Every metric of the catalogue at each of `ks` and over the whole list.
    pub fn new(ks: &[NonZeroU32]) -> Ranking {
        let mut columns = Vec::new();
        let mut width = N_BASES;
        for metric in CATALOGUE {
            for k in ks.iter().copied().map(Some).chain([None]) {
                let numerator = width;
                width += 1;
                let denominator = match metric.denominator {
                    Denominator::Lists => LISTS,
                    Denominator::Sum(_) => {
                        width += 1;
                        width - 1
                    }
                };
                columns.push(Column {
                    metric,
                    k,
                    numerator,
                    denominator,
                });
            }
        }
        Ranking { columns, width }
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How many integers a tally has.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Adds `sign` times what one list contributes.
    pub fn contribute(&self, list: &ListOutcome, sign: i64, tally: &mut [i64]) {
        let whole = u32::MAX;
        tally[LISTS] += sign;
        tally[ITEMS_SHOWN] += sign * i64::from(list.shown(whole));
        tally[CLICKS] += sign * i64::from(list.hits(whole));
        for column in &self.columns {
            let k = column.k.map_or(whole, NonZeroU32::get);
            tally[column.numerator] += sign * (column.metric.numerator)(list, k);
            if let Denominator::Sum(term) = column.metric.denominator {
                tally[column.denominator] += sign * term(list, k);
            }
        }
    }
}
