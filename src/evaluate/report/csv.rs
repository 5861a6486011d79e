//! An evaluation as CSV (RFC 4180, lines ending in LF): one number a row, for other programs.

use std::io::Write;

use csv::Writer;

use super::{Difference, ExperimentSums, Report, experiments, time};
use crate::engine::ranking::{CLICKS, LISTS};
use crate::table::cell;

impl<'a> Report<'a> {
    /// `profile,experiment,arm,metric,k,value,numerator,denominator`, a header above it. `k` is empty over the whole list;
    /// undefined metrics have no row; `lists` and `clicks` have neither k nor parts. Names are [cells](cell) that no
    /// spreadsheet takes for formulas.
    ///
    /// A series has `start` after `profile`, empty in the rows over everything, which come first. A comparison has
    /// `difference,difference_percent` at the end, empty for the control.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn csv(self, out: impl Write) -> anyhow::Result<()> {
        let mut out = Writer::from_writer(out);
        self.row(
            &mut out,
            ["profile", "start", "experiment", "arm", "metric", "k"],
            ["value", "numerator", "denominator"],
            ["difference", "difference_percent"],
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
                self.row(out, names, [&sums[column].to_string(), "", ""], ["", ""])?;
            }
            for column in self.columns(profile) {
                let Some(value) = column.value(sums) else {
                    continue;
                };
                let control = control.filter(|(control, _)| control != arm);
                let difference = control.and_then(|(_, control)| Difference::of_sums(column, sums, control));
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
                    differences(difference).each_ref().map(String::as_str),
                )?;
            }
        }
        Ok(())
    }

    /// One row, without the fields that neither a series nor a comparison asks for.
    fn row(
        self,
        out: &mut Writer<impl Write>,
        names: [&str; 6],
        numbers: [&str; 3],
        differences: [&str; 2],
    ) -> csv::Result<()> {
        let [profile, start, names @ ..] = names;
        let start = self.evaluation.span_ms.map(|_| start);
        let differences = self.control.map(|_| differences);
        let names = [profile].into_iter().chain(start).chain(names).map(cell);
        let numbers = numbers.into_iter().chain(differences.into_iter().flatten());
        out.write_record(names.chain(numbers.map(str::to_owned)))
    }
}

fn differences(difference: Option<Difference>) -> [String; 2] {
    let absolute = difference.map(|difference| difference.absolute);
    let percent = difference.and_then(|difference| difference.percent);
    [absolute, percent].map(|number| number.map(|number| number.to_string()).unwrap_or_default())
}
