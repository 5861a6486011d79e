//! Sums by user bucket in the form that statistics take: a column for each term, 0 for a bucket without a list.

use std::borrow::Cow;

use crate::ledger::{BucketSums, N_BUCKETS, RefusedCounts};
use crate::metrics::{CLICKS, Column, DEFAULT_PRIMARY, LISTS, Ranking, to_float};
use crate::statistics::{ArmTotals, RefusedLists, Terms};

/// Returns the metrics that are compared: metrics of the first profile whose sums add up over users. Coverage is left out.
pub fn compared(ranking: &Ranking) -> impl Iterator<Item = &Column> + Clone {
    let columns = ranking.columns().iter();
    columns.filter(|column| column.profile == 0 && column.metric.is_additive)
}

/// Returns the key of the default primary: CTR at the largest cut-off, else the first of these metrics.
pub fn default_primary<'a>(columns: impl Iterator<Item = &'a Column> + Clone) -> Option<String> {
    let primary = columns
        .clone()
        .find(|column| column.metric.id == DEFAULT_PRIMARY.id);
    let metric = primary.or(columns.clone().next())?.metric.id;
    let of_metric = columns.filter(|column| column.metric.id == metric);
    // None, the whole list, is smaller than any cut-off, so it is chosen only if there is none.
    of_metric.max_by_key(|column| column.k).map(Column::key)
}

/// Sums up an arm in an epoch over several pairs. `users` are its first exposures, if they are counted.
pub fn arm_totals(pairs: &[&BucketSums], users: Option<f64>, ranking: &Ranking) -> ArmTotals {
    let sums = whole(pairs);
    let columns = FloatColumns::new(&sums);
    let metrics = compared(ranking).map(|column| {
        let numerators = columns.of(column.numerator).iter();
        let terms = Terms {
            numerators: numerators.map(|sum| column.unit.to_number(*sum)).collect(),
            denominators: match column.factor {
                1 => columns.of(column.denominator).to_vec(),
                _ => multiples(&sums, column),
            },
        };
        (column.key(), terms)
    });
    ArmTotals {
        lists: columns.of(LISTS).to_vec(),
        hits: columns.of(ranking.width()).to_vec(),
        clicks: columns.of(CLICKS).to_vec(),
        users,
        lists_without_user: 0.0,
        capped_lists: 0.0,
        top_user_lists: None,
        refused: RefusedLists::default(),
        metrics: metrics.collect(),
    }
}

/// Converts refused lists to the form that statistics take.
pub fn refused_lists(counts: &RefusedCounts) -> RefusedLists {
    let mut by_bucket = vec![0.0; N_BUCKETS];
    for (bucket, n) in &counts.by_bucket {
        by_bucket[usize::from(*bucket)] = *n as f64;
    }
    let hours = counts.by_hour.values();
    RefusedLists {
        by_bucket,
        by_hour: hours
            .map(|hour| [hour.refused, hour.accepted].map(|n| n as f64))
            .collect(),
    }
}

/// Merges all pairs. It copies only if there are several.
fn whole<'a>(pairs: &[&'a BucketSums]) -> Cow<'a, BucketSums> {
    let Some((first, others)) = pairs.split_first() else {
        return Cow::default();
    };
    let mut sums = Cow::Borrowed(*first);
    for other in others {
        sums.to_mut().merge(other);
    }
    sums
}

/// Computes the denominators of a metric that are multiples of a sum. Multiplying before converting rounds only once.
fn multiples(sums: &BucketSums, column: &Column) -> Vec<f64> {
    let mut denominators = vec![0.0; N_BUCKETS];
    for (bucket, row) in sums.rows() {
        denominators[usize::from(bucket)] = to_float(column.denominator_of(row.get(column.denominator)));
    }
    denominators
}

/// Sums as floats, column by column, each converted once.
struct FloatColumns(Vec<f64>);

/// Distance from column to column. With a power of two, the numbers of a bucket would compete for the same cache sets.
const STRIDE: usize = N_BUCKETS + 8;

impl FloatColumns {
    fn new(sums: &BucketSums) -> FloatColumns {
        let mut numbers = vec![0.0; sums.n_columns() * STRIDE];
        for (bucket, row) in sums.rows() {
            let places = numbers.iter_mut().skip(bucket.into()).step_by(STRIDE);
            match row.narrow() {
                Some(row) => places.zip(row).for_each(|(number, sum)| *number = *sum as f64),
                None => places
                    .zip(row.iter())
                    .for_each(|(number, sum)| *number = to_float(sum)),
            }
        }
        FloatColumns(numbers)
    }

    /// Returns a column by bucket, all zeros if no bucket has a list.
    fn of(&self, column: usize) -> &[f64] {
        let numbers = self.0.get(column * STRIDE..column * STRIDE + N_BUCKETS);
        numbers.unwrap_or(&[0.0; N_BUCKETS])
    }
}
