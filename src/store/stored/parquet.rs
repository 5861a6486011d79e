//! Settled rows as Parquet.

use std::io::Write;

use abgauge_core::parquet_file::ParquetFile;

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
    file: ParquetFile<W>,
    rows: Vec<SettledRow>,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// # Errors
    /// Fails if it cannot be written.
    pub fn new(out: W) -> anyhow::Result<ParquetWriter<W>> {
        let file = ParquetFile::new(out, SCHEMA)?;
        Ok(ParquetWriter {
            file,
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
        self.file.finish()
    }

    fn write_group(&mut self) -> anyhow::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let rows = rows.iter();
        self.file.group(|columns| {
            columns.optional_ints(rows.clone().map(|row| row.partition))?;
            columns.texts(rows.clone().map(|row| &*row.experiment))?;
            columns.texts(rows.clone().map(|row| &*row.arm))?;
            columns.texts(rows.clone().map(|row| &*row.span))?;
            columns.optional_longs(rows.clone().map(|row| row.start))?;
            columns.optional_longs(rows.clone().map(|row| row.end))?;
            columns.bools(rows.clone().map(|row| row.complete))?;
            columns.optional_longs(rows.clone().map(|row| row.since))?;
            columns.texts(rows.clone().map(|row| &*row.profile))?;
            columns.texts(rows.clone().map(|row| &*row.metric))?;
            columns.optional_ints(rows.clone().map(|row| row.k.map(u32::cast_signed)))?;
            columns.optional_doubles(rows.clone().map(|row| row.value))?;
            columns.optional_doubles(rows.clone().map(|row| row.numerator))?;
            columns.optional_longs(rows.map(|row| row.denominator))
        })
    }
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
