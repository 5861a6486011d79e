//! Evaluation as CSV (RFC 4180, lines ending in LF): one number per row, for other programs.

use std::io::Write;

use csv::Writer;

use super::{ControlDifference, ExperimentSums, Report, experiments, time};
use crate::metrics::{CLICKS, LISTS};
use crate::statistics::MetricReport;
use crate::table::cell;

/// Fields that a comparison adds to a row.
const COMPARISON: [&str; N_COMPARISON] = [
    "difference",
    "difference_percent",
    "lift_lower",
    "lift_upper",
    "p",
    "p_adjusted",
    "p_harm",
];
const N_COMPARISON: usize = 7;

impl<'a> Report<'a> {
    /// Writes the header `profile,experiment,arm,metric,k,value,numerator,denominator` and the rows. `k` is empty for the
    /// whole list. Undefined metrics have no row. `lists` and `clicks` have neither k nor parts. Names are [cells](cell)
    /// that no spreadsheet takes for formulas.
    ///
    /// A series adds `start` after `profile`; it is empty in the rows over everything, which come first. A comparison adds
    /// `difference,difference_percent,lift_lower,lift_upper,p,p_adjusted,p_harm` at the end, empty for the control and for arms
    /// that are not comparable. From `lift_lower` on, only the first profile has them, in the rows over everything.
    ///
    /// # Errors
    /// The rows cannot be written.
    pub fn csv(self, out: impl Write) -> anyhow::Result<()> {
        let mut out = Writer::from_writer(out);
        self.row(
            &mut out,
            ["profile", "start", "experiment", "arm", "metric", "k"],
            ["value", "numerator", "denominator"],
            COMPARISON,
        )?;
        let spans = self.evaluation.spans.iter();
        let spans = spans.map(|(start_ms, totals)| (time(*start_ms), totals));
        let all = [(String::new(), &self.evaluation.total)];
        for (start, totals) in all.into_iter().chain(spans) {
            for (index, profile) in self.profiles() {
                for experiment in experiments(totals) {
                    self.experiment(&mut out, index, [profile, &start], &experiment)?;
                }
            }
        }
        out.flush()?;
        Ok(())
    }

    fn experiment(
        self,
        out: &mut Writer<impl Write>,
        profile: usize,
        [name, start]: [&str; 2],
        experiment: &ExperimentSums<'a>,
    ) -> csv::Result<()> {
        let control = self.control_of(experiment);
        for (arm, sums) in &experiment.arms {
            for (what, column) in [("lists", LISTS), ("clicks", CLICKS)] {
                let names = [name, start, experiment.name, arm, what, ""];
                self.row(
                    out,
                    names,
                    [&sums[column].to_string(), "", ""],
                    [""; N_COMPARISON],
                )?;
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
                let is_compared = profile == 0 && start.is_empty();
                let metric = is_compared
                    .then(|| self.compared_metric(experiment.name, arm, column))
                    .flatten();
                let k = column.k.map(|k| k.to_string()).unwrap_or_default();
                let numbers = [
                    value.to_string(),
                    column.numerator(sums).to_string(),
                    column.denominator(sums).to_string(),
                ];
                self.row(
                    out,
                    [name, start, experiment.name, arm, column.metric.id, &k],
                    numbers.each_ref().map(String::as_str),
                    comparison(difference, metric).each_ref().map(String::as_str),
                )?;
            }
        }
        Ok(())
    }

    /// Writes one row, without the fields that neither a series nor a comparison needs.
    fn row(
        self,
        out: &mut Writer<impl Write>,
        names: [&str; 6],
        numbers: [&str; 3],
        comparison: [&str; N_COMPARISON],
    ) -> csv::Result<()> {
        // The header goes through here as well, so it always has the fields of the rows.
        let [profile, start, names @ ..] = names;
        let start = self.evaluation.span_ms.map(|_| start);
        let comparison = self.evaluation.comparisons.as_ref().map(|_| comparison);
        let names = [profile].into_iter().chain(start).chain(names).map(cell);
        let numbers = numbers.into_iter().chain(comparison.into_iter().flatten());
        out.write_record(names.chain(numbers.map(str::to_owned)))
    }
}

/// Returns one field for each of [`COMPARISON`].
fn comparison(
    difference: Option<ControlDifference>,
    metric: Option<&MetricReport>,
) -> [String; N_COMPARISON] {
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
    .map(|number| number.map(|number| number.to_string()).unwrap_or_default())
}
