//! Evaluation as Parquet: the rows and columns of CSV, with types.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;

use anyhow::Context as _;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::Report;
use super::rows::{COMPARISON, NumberRow, RowValue};

impl Report<'_> {
    /// Writes the rows of [`Report::csv`] with the same columns, as text, timestamps and numbers. Empty cells are null, and names are
    /// as they are in the events.
    ///
    /// # Errors
    /// The rows cannot be written.
    pub fn parquet(self, out: impl Write + Send) -> anyhow::Result<()> {
        let schema = parse_message_type(&self.schema()).context("read the schema of the rows")?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let mut rows = Vec::new();
        self.each_row(&mut |row| {
            rows.push(*row);
            Ok(())
        })?;
        let mut file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        self.columns_of(&mut group, &rows)?;
        group.close()?;
        file.close()?;
        Ok(())
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
    fn columns_of<W: Write + Send>(
        self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        rows: &[NumberRow],
    ) -> anyhow::Result<()> {
        let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        required::<ByteArrayType, W>(group, rows.iter().map(|row| text(row.profile)))?;
        if self.evaluation.span_ms.is_some() {
            optional::<Int64Type, W>(group, rows.iter().map(|row| row.start_ms))?;
        }
        if self.evaluation.by.is_some() {
            optional::<ByteArrayType, W>(group, rows.iter().map(|row| row.group.map(text)))?;
        }
        required::<ByteArrayType, W>(group, rows.iter().map(|row| text(row.experiment)))?;
        required::<ByteArrayType, W>(group, rows.iter().map(|row| text(row.arm)))?;
        required::<ByteArrayType, W>(group, rows.iter().map(|row| text(row.metric)))?;
        let k = |row: &NumberRow| row.k.and_then(|k| i32::try_from(k.get()).ok());
        optional::<Int32Type, W>(group, rows.iter().map(k))?;
        required::<DoubleType, W>(group, rows.iter().map(|row| row.value.value()))?;
        optional::<DoubleType, W>(group, rows.iter().map(|row| row.value.numerator()))?;
        optional::<Int64Type, W>(group, rows.iter().map(|row| row.value.denominator()))?;
        if self.evaluation.comparisons.is_some() {
            for index in 0..COMPARISON.len() {
                optional::<DoubleType, W>(group, rows.iter().map(|row| row.comparison[index]))?;
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

fn required<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: impl Iterator<Item = T::T>,
) -> anyhow::Result<()> {
    let values: Vec<T::T> = values.collect();
    write::<T, W>(group, &values, None)
}

fn optional<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: impl Iterator<Item = Option<T::T>>,
) -> anyhow::Result<()> {
    let values: Vec<Option<T::T>> = values.collect();
    // Absent values exist only as levels.
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    write::<T, W>(group, &values, Some(&levels))
}

fn write<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> anyhow::Result<()> {
    let mut column = group.next_column()?.context("the schema has a column for it")?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()?;
    Ok(())
}
