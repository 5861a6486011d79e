//! Parquet files that we write: flat rows, compressed with zstd.

use std::io::Write;
use std::sync::Arc;

use anyhow::Context as _;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// File that is written a group of rows at a time.
pub struct ParquetFile<W: Write + Send>(SerializedFileWriter<W>);

/// Columns of one group. They are written in the order of the schema, each for all rows of the group.
pub struct Columns<'a, W: Write + Send>(SerializedRowGroupWriter<'a, W>);

impl<W: Write + Send> ParquetFile<W> {
    /// Starts a file. `schema` is in Parquet's own notation.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn new(out: W, schema: &str) -> anyhow::Result<ParquetFile<W>> {
        let schema = parse_message_type(schema).context("read the schema of the rows")?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        Ok(ParquetFile(file))
    }

    /// Writes a group of rows.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn group(&mut self, write: impl FnOnce(&mut Columns<W>) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut columns = Columns(self.0.next_row_group()?);
        write(&mut columns)?;
        columns.0.close()?;
        Ok(())
    }

    /// Writes the footer.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn finish(self) -> anyhow::Result<()> {
        self.0.close()?;
        Ok(())
    }
}

/// The next column, with a value or with an optional value for each row.
#[expect(clippy::missing_errors_doc, reason = "each fails if it cannot be written")]
impl<W: Write + Send> Columns<'_, W> {
    pub fn bools(&mut self, values: impl Iterator<Item = bool>) -> anyhow::Result<()> {
        self.write::<BoolType>(&values.collect::<Vec<_>>(), None)
    }

    pub fn doubles(&mut self, values: impl Iterator<Item = f64>) -> anyhow::Result<()> {
        self.write::<DoubleType>(&values.collect::<Vec<_>>(), None)
    }

    pub fn texts<'t>(&mut self, values: impl Iterator<Item = &'t str>) -> anyhow::Result<()> {
        self.write::<ByteArrayType>(&values.map(bytes).collect::<Vec<_>>(), None)
    }

    pub fn optional_texts<'t>(
        &mut self,
        values: impl Iterator<Item = Option<&'t str>>,
    ) -> anyhow::Result<()> {
        self.optional::<ByteArrayType>(values.map(|text| text.map(bytes)))
    }

    pub fn optional_ints(&mut self, values: impl Iterator<Item = Option<i32>>) -> anyhow::Result<()> {
        self.optional::<Int32Type>(values)
    }

    pub fn optional_longs(&mut self, values: impl Iterator<Item = Option<i64>>) -> anyhow::Result<()> {
        self.optional::<Int64Type>(values)
    }

    pub fn optional_doubles(&mut self, values: impl Iterator<Item = Option<f64>>) -> anyhow::Result<()> {
        self.optional::<DoubleType>(values)
    }

    fn optional<T: DataType>(&mut self, values: impl Iterator<Item = Option<T::T>>) -> anyhow::Result<()> {
        let values: Vec<Option<T::T>> = values.collect();
        // Absent values exist only as levels.
        let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        let values: Vec<T::T> = values.into_iter().flatten().collect();
        self.write::<T>(&values, Some(&levels))
    }

    fn write<T: DataType>(&mut self, values: &[T::T], levels: Option<&[i16]>) -> anyhow::Result<()> {
        let mut column = self.0.next_column()?.context("the schema has a column for it")?;
        column.typed::<T>().write_batch(values, levels, None)?;
        column.close()?;
        Ok(())
    }
}

fn bytes(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}
