//! Evaluation as Parquet: the rows and columns of CSV, with types.

use std::fmt::Write as _;
use std::io::Write;

use super::Report;
use super::rows::{COMPARISON, NumberRow, RowValue};
use crate::parquet_file::{Columns, ParquetFile};

impl Report<'_> {
    /// Writes the rows of [`Report::csv`] with the same columns, as text, timestamps and numbers. Empty cells are null, and names are
    /// as they are in the events.
    ///
    /// # Errors
    /// The rows cannot be written.
    pub fn parquet(self, out: impl Write + Send) -> anyhow::Result<()> {
        let mut rows = Vec::new();
        self.each_row(&mut |row| {
            rows.push(*row);
            Ok(())
        })?;
        let mut file = ParquetFile::new(out, &self.schema())?;
        file.group(|columns| self.write_columns(columns, &rows))?;
        file.finish()
    }

    fn schema(self) -> String {
        let mut schema = "message evaluation { required binary profile (string);".to_owned();
        if self.evaluation.span_ms.is_some() {
            schema.push_str(" optional int64 start (timestamp(millis, true));");
        }
        if self.evaluation.by.is_some() {
            schema.push_str(" optional binary group (string);");
        }
        schema.push_str(
            " required binary experiment (string); required binary arm (string); required binary metric (string); \
             optional int32 k; required double value; optional double numerator; optional int64 denominator;",
        );
        if self.evaluation.comparisons.is_some() {
            for name in COMPARISON {
                let _ = write!(schema, " optional double {name};");
            }
        }
        schema + " }"
    }

    /// Writes all columns, in the order of the schema.
    fn write_columns<W: Write + Send>(self, out: &mut Columns<W>, rows: &[NumberRow]) -> anyhow::Result<()> {
        let rows = rows.iter();
        out.texts(rows.clone().map(|row| row.profile))?;
        if self.evaluation.span_ms.is_some() {
            out.optional_longs(rows.clone().map(|row| row.start_ms))?;
        }
        if self.evaluation.by.is_some() {
            out.optional_texts(rows.clone().map(|row| row.group))?;
        }
        out.texts(rows.clone().map(|row| row.experiment))?;
        out.texts(rows.clone().map(|row| row.arm))?;
        out.texts(rows.clone().map(|row| row.metric))?;
        out.optional_ints(
            rows.clone()
                .map(|row| row.k.and_then(|k| i32::try_from(k.get()).ok())),
        )?;
        out.doubles(rows.clone().map(|row| row.value.value()))?;
        out.optional_doubles(rows.clone().map(|row| row.value.numerator()))?;
        out.optional_longs(rows.clone().map(|row| row.value.denominator()))?;
        if self.evaluation.comparisons.is_some() {
            for index in 0..COMPARISON.len() {
                out.optional_doubles(rows.clone().map(|row| row.comparison[index]))?;
            }
        }
        Ok(())
    }
}

impl RowValue {
    fn value(self) -> f64 {
        match self {
            RowValue::Count(n) => n as f64,
            RowValue::Ratio { value, .. } => value,
        }
    }

    fn numerator(self) -> Option<f64> {
        match self {
            RowValue::Count(_) => None,
            RowValue::Ratio { numerator, .. } => Some(numerator),
        }
    }

    /// `None` for a count, and beyond 64 bits.
    fn denominator(self) -> Option<i64> {
        match self {
            RowValue::Count(_) => None,
            RowValue::Ratio { denominator, .. } => denominator.try_into().ok(),
        }
    }
}
