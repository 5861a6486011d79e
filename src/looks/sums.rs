//! Sums by user bucket as the statistics take them: a column for each term, 0 where a bucket has no list.

use std::borrow::Cow;

use crate::engine::ranking::{CLICKS, Column, LISTS, Ranking, to_float};
use crate::ledger::{BucketSums, N_BUCKETS, merge_buckets};
use crate::statistics::{ArmTotals, Terms};

/// The metrics that are compared: those of the first profile whose sums add up over users. Coverage has none.
pub fn compared(ranking: &Ranking) -> impl Iterator<Item = &Column> {
    let columns = ranking.columns().iter();
    columns.filter(|column| column.profile == 0 && column.metric.is_additive())
}

/// What an arm adds up to in an epoch, in several pairs. `users` are its first exposures, where they are counted.
pub fn arm_totals(pairs: &[&BucketSums], users: Option<f64>, ranking: &Ranking) -> ArmTotals {
    let sums = whole(pairs);
    let zeros = || vec![0.0; N_BUCKETS];
    let [mut lists, mut hits, mut clicks] = [zeros(), zeros(), zeros()];
    let mut metrics: Vec<(&Column, Terms)> = compared(ranking)
        .map(|column| {
            let [numerators, denominators] = [zeros(), zeros()];
            (
                column,
                Terms {
                    numerators,
                    denominators,
                },
            )
        })
        .collect();
    for (bucket, sums) in sums.iter() {
        let bucket = usize::from(*bucket);
        lists[bucket] = to_float(sums[LISTS]);
        hits[bucket] = to_float(sums[ranking.width()]);
        clicks[bucket] = to_float(sums[CLICKS]);
        for (column, terms) in &mut metrics {
            terms.numerators[bucket] = column.numerator(sums);
            terms.denominators[bucket] = to_float(column.denominator(sums));
        }
    }
    let metrics = metrics.into_iter();
    ArmTotals {
        lists,
        hits,
        clicks,
        users,
        metrics: metrics.map(|(column, terms)| (column.key(), terms)).collect(),
    }
}

/// What all pairs add up to together.
fn whole<'a>(pairs: &[&'a BucketSums]) -> Cow<'a, BucketSums> {
    let Some((first, others)) = pairs.split_first() else {
        return Cow::default();
    };
    let mut sums = Cow::Borrowed(*first);
    for other in others {
        merge_buckets(sums.to_mut(), other);
    }
    sums
}
