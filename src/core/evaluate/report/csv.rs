//! Evaluation as CSV (RFC 4180, lines ending in LF): one number per row, for other programs.

use std::io::Write;

use csv::Writer;

use super::rows::{COMPARISON, RowValue};
use super::{Report, time};
use crate::table::cell;

impl Report<'_> {
    /// Writes the header `profile,experiment,arm,metric,k,value,numerator,denominator` and the rows. `k` is empty for the
    /// whole list. Undefined metrics have no row. `lists` and `clicks` have neither k nor parts. Names are [cells](cell)
    /// that no spreadsheet takes for formulas.
    ///
    /// A series adds `start` after `profile`; it is empty in the rows over everything, which come first. Groups add `group`
    /// behind it, empty in the rows over all groups, which come first. A comparison adds
    /// `difference,difference_percent,lift_lower,lift_upper,p,p_adjusted,p_harm` at the end, empty for the control and for arms
    /// that are not comparable. From `lift_lower` on, only the first profile has them, in the rows over everything.
    ///
    /// # Errors
    /// The rows cannot be written.
    pub fn csv(self, out: impl Write) -> anyhow::Result<()> {
        let mut out = Writer::from_writer(out);
        let number = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
        self.row(
            &mut out,
            ["profile", "start", "group", "experiment", "arm", "metric", "k"].map(str::to_owned),
            ["value", "numerator", "denominator"].map(str::to_owned),
            COMPARISON.map(str::to_owned),
        )?;
        self.each_row(&mut |row| {
            let names = [
                cell(row.profile),
                row.start_ms.map(time).unwrap_or_default(),
                row.group.map(cell).unwrap_or_default(),
                cell(row.experiment),
                cell(row.arm),
                row.metric.to_owned(),
                row.k.map(|k| k.to_string()).unwrap_or_default(),
            ];
            let numbers = match row.value {
                RowValue::Count(n) => [n.to_string(), String::new(), String::new()],
                RowValue::Ratio {
                    value,
                    numerator,
                    denominator,
                } => [value.to_string(), numerator.to_string(), denominator.to_string()],
            };
            Ok(self.row(&mut out, names, numbers, row.comparison.map(number))?)
        })?;
        out.flush()?;
        Ok(())
    }

    /// Writes one row, without the fields that neither a series, groups nor a comparison needs.
    fn row<const N: usize>(
        self,
        out: &mut Writer<impl Write>,
        names: [String; 7],
        numbers: [String; 3],
        comparison: [String; N],
    ) -> csv::Result<()> {
        // The header goes through here as well, so it always has the fields of the rows.
        let [profile, start, group, names @ ..] = names;
        let start = self.evaluation.span_ms.map(|_| start);
        let group = self.evaluation.by.as_ref().map(|_| group);
        let comparison = self.evaluation.comparisons.as_ref().map(|_| comparison);
        let names = [profile].into_iter().chain(start).chain(group).chain(names);
        let numbers = numbers.into_iter().chain(comparison.into_iter().flatten());
        out.write_record(names.chain(numbers))
    }
}
