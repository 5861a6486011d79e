//! A leaf column of a Parquet file: its values as JSON text, some rows at a time.

use std::rc::Rc;

use anyhow::{Context as _, bail, ensure};
use parquet::basic::Compression;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::file::reader::RowGroupReader;
use parquet::schema::types::ColumnDescriptor;

use super::Damaged;
use super::pages::Checked;

/// Bytes of JSON that a batch may take in a column.
const MAX_BYTES: u64 = 256 << 20;

/// Appends a value as JSON.
pub(super) type Write<T> = Rc<dyn Fn(&T, &mut Vec<u8>)>;

/// How the values of a column are written, by their physical type.
#[derive(Clone)]
pub(super) enum Render {
    Bytes(Write<ByteArray>),
    Fixed(Write<FixedLenByteArray>),
    Int32(Write<i32>),
    Int64(Write<i64>),
    Int96(Write<Int96>),
    Float(Write<f32>),
    Double(Write<f64>),
}

/// What a row has at one place of a leaf column. Where nothing repeats, a row has one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafValue<'a> {
    /// The list or map itself is null.
    NoList,
    EmptyList,
    Null,
    Json(&'a [u8]),
}

/// One leaf column, and what is read of it.
pub(super) struct Leaf {
    index: usize,
    render: Render,
    levels: Levels,
    column: Option<Box<dyn LeafReader>>,
    batch: LeafBatch,
    /// Where the next row begins in the batch.
    next_place: usize,
    next_value: usize,
}

/// Definition levels that mean something.
#[derive(Clone, Copy)]
struct Levels {
    /// There is a value.
    value: i16,
    /// There is an entry of a list, be it null; 0 where there is no list.
    entry: i16,
}

/// A batch of rows as Parquet stores it: two levels for each place, and the values without the nulls.
#[derive(Default)]
struct LeafBatch {
    definition: Vec<i16>,
    /// 0 where a row begins.
    repetition: Vec<i16>,
    json: Vec<u8>,
    /// Ends of the values in `json`.
    ends: Vec<usize>,
}

impl Leaf {
    /// `index` is the column's among all leaf columns.
    pub(super) fn new(index: usize, column: &ColumnDescriptor, render: Render) -> Leaf {
        Leaf {
            index,
            render,
            levels: Levels {
                value: column.max_def_level(),
                entry: column.repeated_ancestor_def_level(),
            },
            column: None,
            batch: LeafBatch::default(),
            next_place: 0,
            next_value: 0,
        }
    }

    /// Begins to read a row group.
    pub(super) fn open(&mut self, row_group: &dyn RowGroupReader) -> anyhow::Result<()> {
        let metadata = row_group.metadata().column(self.index);
        let foreign = match metadata.compression() {
            Compression::BROTLI(_) => Some("brotli"),
            Compression::LZO => Some("LZO"),
            _ => None,
        };
        if let Some(packing) = foreign {
            let name = metadata.column_path().string();
            bail!("column {name} is packed with {packing}: write it with snappy, zstd, gzip, lz4 or none");
        }
        let column = metadata.column_descr_ptr();
        let pages = row_group.get_column_page_reader(self.index)?;
        let pages = Box::new(Checked::new(pages, &column));
        let reader = get_column_reader(column, pages);
        self.column = Some(match (self.render.clone(), reader) {
            (Render::Bytes(write), ColumnReader::ByteArrayColumnReader(it)) => {
                typed::<ByteArrayType>(it, write)
            }
            (Render::Fixed(write), ColumnReader::FixedLenByteArrayColumnReader(it)) => {
                typed::<FixedLenByteArrayType>(it, write)
            }
            (Render::Int32(write), ColumnReader::Int32ColumnReader(it)) => typed::<Int32Type>(it, write),
            (Render::Int64(write), ColumnReader::Int64ColumnReader(it)) => typed::<Int64Type>(it, write),
            (Render::Int96(write), ColumnReader::Int96ColumnReader(it)) => typed::<Int96Type>(it, write),
            (Render::Float(write), ColumnReader::FloatColumnReader(it)) => typed::<FloatType>(it, write),
            (Render::Double(write), ColumnReader::DoubleColumnReader(it)) => typed::<DoubleType>(it, write),
            _ => return Err(Damaged.into()),
        });
        Ok(())
    }

    /// Reads the next rows, as many as there must be.
    pub(super) fn load(&mut self, n_rows: usize) -> anyhow::Result<()> {
        let column = self.column.as_mut().context(Damaged)?;
        let n_read = column.read(n_rows, &mut self.batch)?;
        let n_begun = self.batch.repetition.iter().filter(|level| **level == 0).count();
        let begins = self.batch.repetition.first().is_none_or(|level| *level == 0);
        if n_read != n_rows || n_begun != n_rows || !begins {
            return Err(Damaged.into());
        }
        (self.next_place, self.next_value) = (0, 0);
        Ok(())
    }

    /// What the next row has, in order; at least one cell while there are rows.
    pub(super) fn row(&mut self) -> impl Iterator<Item = LeafValue<'_>> {
        let rest = self
            .batch
            .repetition
            .get(self.next_place + 1..)
            .unwrap_or_default();
        let n_more = rest.iter().take_while(|level| **level > 0).count();
        let end = (self.next_place + 1 + n_more).min(self.batch.definition.len());
        let places = &self.batch.definition[self.next_place.min(end)..end];
        self.next_place = end;
        let mut value = self.next_value;
        let levels = self.levels;
        self.next_value += places.iter().filter(|level| **level == levels.value).count();
        let batch = &self.batch;
        places.iter().map(move |level| match *level {
            level if level == levels.value => {
                value += 1;
                LeafValue::Json(batch.value(value - 1))
            }
            level if level >= levels.entry => LeafValue::Null,
            level if level == levels.entry - 1 => LeafValue::EmptyList,
            _ => LeafValue::NoList,
        })
    }
}

impl LeafBatch {
    fn value(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.json[start..self.ends[index]]
    }

    fn clear(&mut self) {
        self.definition.clear();
        self.repetition.clear();
        self.json.clear();
        self.ends.clear();
    }
}

/// A column whose physical type does not matter any more.
trait LeafReader {
    /// Fills the batch; gives the number of rows.
    fn read(&mut self, n_rows: usize, batch: &mut LeafBatch) -> anyhow::Result<usize>;
}

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    write: Write<T::T>,
    values: Vec<T::T>,
}

fn typed<T: DataType>(reader: ColumnReaderImpl<T>, write: Write<T::T>) -> Box<dyn LeafReader> {
    Box::new(Typed::<T> {
        reader,
        write,
        values: Vec::new(),
    })
}

impl<T: DataType> LeafReader for Typed<T> {
    fn read(&mut self, n_rows: usize, batch: &mut LeafBatch) -> anyhow::Result<usize> {
        batch.clear();
        self.values.clear();
        let (n_read, _, n_places) = self.reader.read_records(
            n_rows,
            Some(&mut batch.definition),
            Some(&mut batch.repetition),
            &mut self.values,
        )?;
        // Of what is never null, or never repeats, no levels are stored: all are 0.
        batch.definition.resize(n_places, 0);
        batch.repetition.resize(n_places, 0);
        for value in &self.values {
            (self.write)(value, &mut batch.json);
            batch.ends.push(batch.json.len());
            // A dictionary says a long text as often as it likes, in next to no bytes.
            ensure!(
                batch.json.len() as u64 <= MAX_BYTES,
                "{} rows take more than 256 MiB of memory: write shorter ones",
                n_rows
            );
        }
        Ok(n_read)
    }
}
