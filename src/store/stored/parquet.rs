//! Settled rows as Parquet.

use std::io::Write;
use std::sync::Arc;

use anyhow::Context as _;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::SettledRow;

/// Rows of a group, which is held in memory until it is complete.
const GROUP: usize = 65_536;

/// Columns in the order in which they are written.
const SCHEMA: &str = "message settled {
    optional int32 partition;
    required binary experiment (string);
    required binary arm (string);
    required binary span (string);
    optional int64 start (timestamp(millis, true));
    optional int64 end (timestamp(millis, true));
    required boolean complete;
    optional int64 since (timestamp(millis, true));
    required binary profile (string);
    required binary metric (string);
    optional int32 k;
    optional double value;
    optional double numerator;
    optional int64 denominator;
}";

/// Writer that takes rows, and writes a group of them at a time.
pub struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    rows: Vec<SettledRow>,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// # Errors
    /// Fails if it cannot be written.
    pub fn new(out: W) -> anyhow::Result<ParquetWriter<W>> {
        let schema = parse_message_type(SCHEMA).context("read the schema of settled rows")?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        Ok(ParquetWriter {
            file: SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?,
            rows: Vec::new(),
        })
    }

    /// # Errors
    /// Fails if it cannot be written.
    pub fn take(&mut self, row: SettledRow) -> anyhow::Result<()> {
        // Rows are held until a group is full, because the format writes one column after another.
        self.rows.push(row);
        match self.rows.len() < GROUP {
            true => Ok(()),
            false => self.write_group(),
        }
    }

    /// Writes the remaining rows and the footer.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        // A group without rows would be valid, but useless.
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.file.close()?;
        Ok(())
    }

    fn write_group(&mut self) -> anyhow::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let rows = rows.iter();
        let text = |text: &String| ByteArray::from(text.as_bytes().to_vec());
        let mut group = self.file.next_row_group()?;
        // The writer hands out columns in the order of the schema, so this order must be the same.
        optional::<Int32Type, _>(&mut group, rows.clone().map(|row| row.partition))?;
        required::<ByteArrayType, _>(&mut group, rows.clone().map(|row| text(&row.experiment)))?;
        required::<ByteArrayType, _>(&mut group, rows.clone().map(|row| text(&row.arm)))?;
        required::<ByteArrayType, _>(&mut group, rows.clone().map(|row| text(&row.span)))?;
        optional::<Int64Type, _>(&mut group, rows.clone().map(|row| row.start))?;
        optional::<Int64Type, _>(&mut group, rows.clone().map(|row| row.end))?;
        required::<BoolType, _>(&mut group, rows.clone().map(|row| row.complete))?;
        optional::<Int64Type, _>(&mut group, rows.clone().map(|row| row.since))?;
        required::<ByteArrayType, _>(&mut group, rows.clone().map(|row| text(&row.profile)))?;
        required::<ByteArrayType, _>(&mut group, rows.clone().map(|row| text(&row.metric)))?;
        optional::<Int32Type, _>(&mut group, rows.clone().map(|row| row.k.map(u32::cast_signed)))?;
        optional::<DoubleType, _>(&mut group, rows.clone().map(|row| row.value))?;
        optional::<DoubleType, _>(&mut group, rows.clone().map(|row| row.numerator))?;
        optional::<Int64Type, _>(&mut group, rows.map(|row| row.denominator))?;
        group.close()?;
        Ok(())
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
    // Absent values exist only as levels: the values themselves are those that are present.
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

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;
    use serde_json::Value;

    use super::*;

    fn row(number: u32) -> SettledRow {
        SettledRow {
            partition: number.is_multiple_of(2).then_some(number.cast_signed()),
            experiment: "ranker".to_owned(),
            arm: format!("é {number}"),
            span: "24m".to_owned(),
            start: Some(1_763_596_800_000),
            end: (number != 1).then_some(1_763_596_800_000 + i64::from(number)),
            complete: number == 2,
            since: None,
            profile: "default".to_owned(),
            metric: "mrr".to_owned(),
            k: (number > 0).then_some(number),
            value: Some(0.5),
            numerator: (number > 1).then_some(1.5),
            denominator: Some(-3),
        }
    }

    /// Compares a row from Parquet's own reader with its JSON.
    #[test]
    fn rows_read_back_equal_their_json() {
        let rows: Vec<SettledRow> = (0..4).map(row).collect();
        let path = tempfile::NamedTempFile::new().expect("a file");
        let mut writer = ParquetWriter::new(path.reopen().expect("it is there")).expect("a writer");
        for row in rows.clone() {
            writer.take(row).expect("it is taken");
        }
        writer.finish().expect("it is written");
        let reader = SerializedFileReader::new(path.reopen().expect("it is there")).expect("Parquet");
        let mut read: Vec<Vec<(String, Value)>> = reader
            .get_row_iter(None)
            .expect("rows")
            .map(|row| {
                let row = row.expect("a row");
                let fields = row.get_column_iter();
                fields.map(|(name, field)| (name.clone(), value(field))).collect()
            })
            .collect();
        let expected = rows.iter().map(|row| {
            let json = serde_json::to_value(row).expect("JSON");
            let json = json.as_object().expect("an object").clone();
            json.into_iter().collect()
        });
        let mut expected: Vec<Vec<(String, Value)>> = expected.collect();
        let by_name = |row: &mut Vec<(String, Value)>| row.sort_by(|one, other| one.0.cmp(&other.0));
        read.iter_mut().chain(&mut expected).for_each(by_name);
        assert_eq!(read, expected);
    }

    fn value(field: &Field) -> Value {
        match field {
            Field::Null => Value::Null,
            Field::Bool(value) => (*value).into(),
            Field::Int(value) => (*value).into(),
            Field::Long(value) => (*value).into(),
            Field::Double(value) => (*value).into(),
            Field::Str(value) => value.clone().into(),
            Field::TimestampMillis(ms) => {
                let time = jiff::Timestamp::from_millisecond(*ms).expect("a time");
                time.to_string().into()
            }
            other => panic!("{other:?}"),
        }
    }
}
