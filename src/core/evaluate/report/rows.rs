//! Evaluation as rows: one number each, with the names that it belongs to.

use std::num::NonZeroU32;

use super::{ControlDifference, ExperimentSums, Part, Report, experiments};
use crate::metrics::{CLICKS, LISTS};
use crate::statistics::MetricReport;

/// Fields that a comparison adds to a row.
pub(super) const COMPARISON: [&str; N_COMPARISON] = [
    "difference",
    "difference_percent",
    "lift_lower",
    "lift_upper",
    "p",
    "p_adjusted",
    "p_harm",
];
pub(super) const N_COMPARISON: usize = 7;

/// One number.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberRow<'a> {
    pub profile: &'a str,
    /// Start of its span, Unix ms; `None` over everything.
    pub start_ms: Option<i64>,
    /// `None` over all groups.
    pub group: Option<&'a str>,
    pub experiment: &'a str,
    pub arm: &'a str,
    /// Metric, or `lists` or `clicks`.
    pub metric: &'a str,
    /// Cut-off; `None` for the whole list.
    pub k: Option<NonZeroU32>,
    pub value: RowValue,
    /// Value of each of [`COMPARISON`].
    pub comparison: [Option<f64>; N_COMPARISON],
}

#[derive(Debug, Clone, Copy)]
pub(super) enum RowValue {
    Count(i128),
    Ratio {
        value: f64,
        numerator: f64,
        denominator: i128,
    },
}

impl<'a> Report<'a> {
    /// Calls back with each row: first over everything, then for each span, and then the same for each group.
    ///
    /// # Errors
    /// Fails if a callback does.
    pub(super) fn each_row(
        self,
        take: &mut dyn FnMut(&NumberRow<'a>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for part in [self.whole()].into_iter().chain(self.groups()) {
            let spans = part
                .spans
                .iter()
                .map(|(start_ms, totals)| (Some(*start_ms), totals));
            for (start_ms, totals) in [(None, part.total)].into_iter().chain(spans) {
                for (index, profile) in self.profiles() {
                    for experiment in experiments(totals) {
                        self.rows_of(part, start_ms, (index, profile), &experiment, take)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn rows_of(
        self,
        part: Part<'a>,
        start_ms: Option<i64>,
        (profile, name): (usize, &'a str),
        experiment: &ExperimentSums<'a>,
        take: &mut dyn FnMut(&NumberRow<'a>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let control = self.control_of(experiment);
        for (arm, sums) in &experiment.arms {
            let row = |metric, k, value| NumberRow {
                profile: name,
                start_ms,
                group: part.group,
                experiment: experiment.name,
                arm,
                metric,
                k,
                value,
                comparison: [None; N_COMPARISON],
            };
            for (what, column) in [("lists", LISTS), ("clicks", CLICKS)] {
                take(&row(what, None, RowValue::Count(sums[column])))?;
            }
            for column in self.columns(profile) {
                let Some(value) = column.value(sums) else {
                    continue;
                };
                // The control has no difference to itself.
                let control =
                    control.filter(|(control, _)| control != arm && self.is_comparable(experiment.name, arm));
                let difference =
                    control.and_then(|(_, control)| ControlDifference::of_sums(column, sums, control));
                // Statistics cover the first profile over the whole time only.
                let is_compared = profile == 0 && start_ms.is_none() && part.group.is_none();
                let metric = is_compared
                    .then(|| self.compared_metric(experiment.name, arm, column))
                    .flatten();
                let value = RowValue::Ratio {
                    value,
                    numerator: column.numerator(sums),
                    denominator: column.denominator(sums),
                };
                let row = row(column.metric.id, column.k, value);
                take(&NumberRow {
                    comparison: comparison(difference, metric),
                    ..row
                })?;
            }
        }
        Ok(())
    }
}

/// Returns one value for each of [`COMPARISON`].
fn comparison(
    difference: Option<ControlDifference>,
    metric: Option<&MetricReport>,
) -> [Option<f64>; N_COMPARISON] {
    let interval = metric.and_then(|metric| metric.interval);
    let of_metric = |p: fn(&MetricReport) -> Option<f64>| metric.and_then(p);
    [
        difference.map(|difference| difference.absolute),
        difference.and_then(|difference| difference.percent),
        interval.map(|interval| interval.lower),
        interval.map(|interval| interval.upper),
        of_metric(|metric| metric.p),
        of_metric(|metric| metric.p_adjusted),
        of_metric(|metric| metric.p_harm),
    ]
}
