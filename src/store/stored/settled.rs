//! Settled numbers as rows, for use elsewhere: one row per arm, span of time, profile, metric and cut-off.

use std::collections::BTreeSet;

use abgauge_core::ledger::{Ledger, Numbers};
use abgauge_core::metrics::{CLICKS, Column, LISTS, Ranking};
use serde::{Serialize, Serializer};

use super::DecodedState;
use crate::settings::display_ms;

/// A number of one arm in one span of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettledRow {
    /// `None`: all pairs together.
    pub partition: Option<i32>,
    pub experiment: String,
    pub arm: String,
    /// `total`, or the length of a cell, such as `24m`.
    pub span: String,
    /// Unix ms; absent if counting began with the first record.
    #[serde(serialize_with = "as_time")]
    pub start: Option<i64>,
    /// Exclusive end. For totals it is the frontier, and over all pairs the furthest one.
    #[serde(serialize_with = "as_time")]
    pub end: Option<i64>,
    /// True once nothing can be added any more; never for totals.
    pub complete: bool,
    /// Time from which the metric, or the span, was counted, if not from its start.
    #[serde(serialize_with = "as_time")]
    pub since: Option<i64>,
    pub profile: String,
    /// A metric, or `lists` or `clicks`.
    pub metric: String,
    /// `None`: over the whole list.
    pub k: Option<u32>,
    /// `None` if the denominator is 0.
    pub value: Option<f64>,
    /// Absent for `lists` and `clicks`.
    pub numerator: Option<f64>,
    pub denominator: Option<i64>,
}

fn as_time<S: Serializer>(ms: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    let time = ms.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    // A time outside the calendar is written as a number: an unreadable value is better than a lost one.
    match (time, ms) {
        (Some(time), _) => serializer.collect_str(&time),
        (None, Some(ms)) => serializer.serialize_i64(*ms),
        (None, None) => serializer.serialize_none(),
    }
}

/// Source of rows.
struct RowSource<'a> {
    partition: Option<i32>,
    ranking: &'a Ranking,
    ledger: &'a Ledger,
    begin_ms: Option<i64>,
    until_ms: Option<i64>,
}

/// A span of time.
struct TimeRange {
    span: String,
    start: Option<i64>,
    end: Option<i64>,
    complete: bool,
    since: Option<i64>,
}

/// Returns the rows of these pairs, one pair after another if they are separate, then over all of them. Pairs without a
/// frontier have none.
pub fn rows(
    mut pairs: Vec<(i32, DecodedState)>,
    ranking: &Ranking,
    by_partition: bool,
    take: &mut dyn FnMut(SettledRow) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    pairs.retain(|(_, contents)| contents.ledger.until_ms().is_some());
    if by_partition {
        for (
            partition,
            DecodedState {
                checkpoint, ledger, ..
            },
        ) in &pairs
        {
            let part = RowSource {
                partition: Some(*partition),
                ranking,
                ledger,
                begin_ms: checkpoint.begin_ms,
                until_ms: ledger.until_ms(),
            };
            part.rows(take)?;
        }
    }
    let begins = pairs.iter().map(|(_, contents)| contents.checkpoint.begin_ms);
    // `None` is the lowest: if one pair has counted since its first record, all of them together have no later begin.
    let begin_ms = begins.min().flatten();
    let until_ms = pairs
        .iter()
        .filter_map(|(_, contents)| contents.ledger.until_ms())
        .max();
    let mut ledgers = pairs.into_iter().map(|(_, contents)| contents.ledger);
    let Some(mut all) = ledgers.next() else {
        return Ok(());
    };
    ledgers.for_each(|mut ledger| all.merge(&mut ledger));
    let part = RowSource {
        partition: None,
        ranking,
        ledger: &all,
        begin_ms,
        until_ms,
    };
    part.rows(take)
}

impl RowSource<'_> {
    fn rows(&self, take: &mut dyn FnMut(SettledRow) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let ledger = self.ledger;
        let of_total = |experiment: &str| TimeRange {
            span: "total".to_owned(),
            // The later of the two times, because `None` is the lowest.
            start: ledger.total_start_ms(experiment).max(self.begin_ms),
            end: self.until_ms,
            complete: false,
            since: ledger.total_since().sums,
        };
        self.of(ledger.total(), &of_total, take)?;
        for (index, span) in ledger.spans().iter().enumerate() {
            let since = ledger.cells_since(index).sums;
            for (number, numbers) in ledger.cells(index) {
                let start_ms = number.saturating_mul(span.cell_ms);
                let of_cell = |_: &str| TimeRange {
                    span: display_ms(span.cell_ms),
                    start: Some(start_ms),
                    end: Some(start_ms.saturating_add(span.cell_ms)),
                    complete: ledger.is_complete(index, number),
                    // A cell that began after the change has counted everything from its start.
                    since: since.filter(|since_ms| *since_ms > start_ms),
                };
                self.of(numbers, &of_cell, take)?;
            }
        }
        Ok(())
    }

    fn of(
        &self,
        numbers: Numbers<'_>,
        when: &dyn Fn(&str) -> TimeRange,
        take: &mut dyn FnMut(SettledRow) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        // Sorted by name, because the numbers of arms differ between pairs.
        let arms = self.ledger.arms();
        let by_name: BTreeSet<_> = numbers
            .sums
            .iter()
            .map(|(arm, sums)| {
                let name = &arms[*arm as usize];
                (&*name.experiment, &*name.arm, sums)
            })
            .collect();
        for (experiment, arm, sums) in by_name {
            let row = |since, profile: &str, metric: &str| {
                let TimeRange {
                    span,
                    start,
                    end,
                    complete,
                    ..
                } = when(experiment);
                SettledRow {
                    partition: self.partition,
                    experiment: experiment.to_owned(),
                    arm: arm.to_owned(),
                    span,
                    start,
                    end,
                    complete,
                    since,
                    profile: profile.to_owned(),
                    metric: metric.to_owned(),
                    k: None,
                    value: None,
                    numerator: None,
                    denominator: None,
                }
            };
            let profiles = self.ranking.profiles();
            for (index, profile) in profiles.iter().enumerate() {
                for (metric, column) in [("lists", LISTS), ("clicks", CLICKS)] {
                    take(SettledRow {
                        value: Some(sums[column] as f64),
                        ..row(when(experiment).since, &profile.name, metric)
                    })?;
                }
                // Distinct counts do not add up, so they have no rows.
                let columns = self.ranking.columns().iter();
                for column in columns.filter(|column| column.profile == index && column.metric.is_additive) {
                    take(SettledRow {
                        k: column.k.map(std::num::NonZeroU32::get),
                        value: column.value(sums),
                        numerator: Some(column.numerator(sums)),
                        denominator: i64::try_from(column.denominator(sums)).ok(),
                        ..row(
                            self.since(&when(experiment), column),
                            &profile.name,
                            column.metric.id,
                        )
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Returns the time from which a metric was counted in a span, if not from its start.
    fn since(&self, when: &TimeRange, column: &Column) -> Option<i64> {
        let sums = [column.numerator, column.denominator];
        let since = sums.map(|sum| self.ledger.column_since_ms(sum));
        // A value exists only from the time at which all its inputs were counted.
        let since = since.into_iter().chain([when.since]).max().flatten();
        since.filter(|since_ms| when.start.is_none_or(|start_ms| *since_ms > start_ms))
    }
}
