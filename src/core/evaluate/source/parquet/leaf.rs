//! Leaf column of a Parquet file, read as JSON text, some rows at a time.

use std::rc::Rc;

use anyhow::{Context as _, bail, ensure};
use parquet::basic::Compression;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    FloatType, Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::file::reader::RowGroupReader;
use parquet::schema::types::ColumnDescriptor;

use super::Damaged;
use super::pages::Checked;

/// Bound on the bytes of JSON in one column of a batch.
const MAX_BYTES: u64 = 256 << 20;

/// Appends a value as JSON.
pub(super) type Write<T> = Rc<dyn Fn(&T, &mut Vec<u8>)>;

/// Function that writes the values of a column, by their physical type.
#[derive(Clone)]
pub(super) enum Render {
    Bool(Write<bool>),
    Bytes(Write<ByteArray>),
    Fixed(Write<FixedLenByteArray>),
    Int32(Write<i32>),
    Int64(Write<i64>),
    Int96(Write<Int96>),
    Float(Write<f32>),
    Double(Write<f64>),
}

/// Content of one entry of a leaf column. If nothing repeats, a row has exactly one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafValue<'a> {
    /// List or map that is null itself.
    NoList,
    EmptyList,
    Null,
    Json(&'a [u8]),
}

/// Leaf column and its current batch.
pub(super) struct Leaf {
    index: usize,
    render: Render,
    levels: Levels,
    column: Option<Box<dyn LeafReader>>,
    batch: LeafBatch,
    /// Index of the batch's entry at which the next row begins.
    next_place: usize,
    next_value: usize,
    /// End of the row that is read entry by entry.
    row_end: usize,
}

/// Definition levels that matter here.
#[derive(Clone, Copy)]
struct Levels {
    /// Level of a value.
    value: i16,
    /// Lowest level of an entry in a list, which may be null; 0 without a list.
    entry: i16,
}

/// Batch of rows as Parquet stores it: two levels for each entry, and the values without the nulls.
#[derive(Default)]
struct LeafBatch {
    definition: Vec<i16>,
    /// Repetition levels; 0 at the start of a row.
    repetition: Vec<i16>,
    json: Vec<u8>,
    /// Ends of the values in `json`.
    ends: Vec<usize>,
}

impl Leaf {
    /// Makes a column that is not open yet. `index` is its index among all leaf columns.
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
            row_end: 0,
        }
    }

    /// Starts reading a row group.
    pub(super) fn open(&mut self, row_group: &dyn RowGroupReader) -> anyhow::Result<()> {
        let metadata = row_group.metadata().column(self.index);
        // There is no decoder for these.
        let foreign = match metadata.compression() {
            Compression::BROTLI(_) => Some("brotli"),
            Compression::LZO => Some("LZO"),
            _ => None,
        };
        if let Some(packing) = foreign {
            let name = metadata.column_path().string();
            bail!(
                "column {name} is compressed with {packing}: write it with snappy, zstd, gzip, lz4 or none"
            );
        }
        let column = metadata.column_descr_ptr();
        let pages = row_group.get_column_page_reader(self.index)?;
        let pages = Box::new(Checked::new(pages, &column));
        let reader = get_column_reader(column, pages);
        self.column = Some(match (self.render.clone(), reader) {
            (Render::Bool(write), ColumnReader::BoolColumnReader(it)) => typed::<BoolType>(it, write),
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

    /// Loads the next `n_rows` rows. The file is damaged if there are fewer.
    pub(super) fn load(&mut self, n_rows: usize) -> anyhow::Result<()> {
        let column = self.column.as_mut().context(Damaged)?;
        let n_read = column.read(n_rows, &mut self.batch)?;
        // A sound batch begins with a row and contains exactly the rows requested.
        let n_started = self.batch.repetition.iter().filter(|level| **level == 0).count();
        let begins = self.batch.repetition.first().is_none_or(|level| *level == 0);
        if n_read != n_rows || n_started != n_rows || !begins {
            return Err(Damaged.into());
        }
        (self.next_place, self.next_value, self.row_end) = (0, 0, 0);
        Ok(())
    }

    /// Starts the next row, to be read entry by entry.
    pub(super) fn begin_row(&mut self) {
        self.row_end = self.end_of_row();
    }

    pub(super) fn is_row_done(&self) -> bool {
        self.next_place == self.row_end
    }

    /// Returns the definition and repetition level of the row's next entry.
    pub(super) fn entry(&self) -> Option<(i16, i16)> {
        let has_more = self.next_place < self.row_end;
        has_more.then(|| {
            (
                self.batch.definition[self.next_place],
                self.batch.repetition[self.next_place],
            )
        })
    }

    /// Passes the row's next entry, and returns its value unless it is null.
    pub(super) fn take(&mut self) -> Option<&[u8]> {
        let (definition, _) = self.entry()?;
        self.next_place += 1;
        if definition != self.levels.value {
            return None;
        }
        self.next_value += 1;
        Some(self.batch.value(self.next_value - 1))
    }

    fn end_of_row(&self) -> usize {
        // The next entry with level 0 starts another row.
        let rest = self
            .batch
            .repetition
            .get(self.next_place + 1..)
            .unwrap_or_default();
        let n_more = rest.iter().take_while(|level| **level > 0).count();
        (self.next_place + 1 + n_more).min(self.batch.definition.len())
    }

    /// Returns the entries of the next row, in order. There is at least one.
    pub(super) fn row(&mut self) -> impl Iterator<Item = LeafValue<'_>> {
        let end = self.end_of_row();
        let places = &self.batch.definition[self.next_place.min(end)..end];
        self.next_place = end;
        let mut value = self.next_value;
        let levels = self.levels;
        // Nulls have no value, so values are counted separately from entries.
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

/// Column reader whose physical type is hidden.
trait LeafReader {
    /// Fills the batch and returns the number of rows.
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
        // Parquet stores no levels for a column that is never null or never repeats. All of them are 0.
        batch.definition.resize(n_places, 0);
        batch.repetition.resize(n_places, 0);
        for value in &self.values {
            (self.write)(value, &mut batch.json);
            batch.ends.push(batch.json.len());
            // A dictionary can repeat a long text any number of times in very few bytes.
            ensure!(
                batch.json.len() as u64 <= MAX_BYTES,
                "{} rows take more than 256 MiB of memory: write shorter ones",
                n_rows
            );
        }
        Ok(n_read)
    }
}
