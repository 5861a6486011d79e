//! Leaf column of a Parquet file, read some rows at a time. A value is written as JSON only when it is asked for.

use std::ops::Range;
use std::rc::Rc;

use anyhow::{Context as _, bail};
use parquet::basic::Compression;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader, get_typed_column_reader};
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::file::reader::RowGroupReader;
use parquet::schema::types::ColumnDescriptor;

use super::Damaged;
use super::pages::Checked;
use super::texts::Texts;
use crate::decode::Cell;

/// Bytes of a row's JSON from which no more values are written. A dictionary can repeat a long text any number of times in very
/// few bytes.
pub(super) const MAX_BYTES: usize = 256 << 20;

/// Appends a value as JSON.
type Write<T> = Rc<dyn Fn(&T, &mut Vec<u8>)>;

/// Forms of a value: as JSON, and as a cell without JSON between, if it has one.
pub(super) struct Forms<T: ?Sized> {
    write: Write<T>,
    cell: Rc<dyn for<'a> Fn(&'a T) -> Cell<'a>>,
}

/// Forms of the values of a column, by their physical type.
#[derive(Clone)]
pub(super) enum Render {
    Bool(Forms<bool>),
    Bytes(Forms<[u8]>),
    Fixed(Forms<FixedLenByteArray>),
    Int32(Forms<i32>),
    Int64(Forms<i64>),
    Int96(Forms<Int96>),
    Float(Forms<f32>),
    Double(Forms<f64>),
}

impl<T: ?Sized> Forms<T> {
    /// Writes values as JSON, which is their only form.
    pub(super) fn json(write: impl Fn(&T, &mut Vec<u8>) + 'static) -> Forms<T> {
        Forms {
            write: Rc::new(write),
            cell: Rc::new(|_| Cell::Other),
        }
    }

    /// Reads values as cells, too. A cell must mean the same as the JSON.
    pub(super) fn or_cell(self, cell: impl for<'a> Fn(&'a T) -> Cell<'a> + 'static) -> Forms<T> {
        Forms {
            cell: Rc::new(cell),
            ..self
        }
    }
}

impl<T: ?Sized> Clone for Forms<T> {
    fn clone(&self) -> Forms<T> {
        Forms {
            write: Rc::clone(&self.write),
            cell: Rc::clone(&self.cell),
        }
    }
}

/// List or map without an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoEntry {
    /// It is null itself.
    NoList,
    EmptyList,
}

/// Leaf column and its current batch.
pub(super) struct Leaf {
    index: usize,
    render: Render,
    levels: Levels,
    repeats: bool,
    column: Option<Box<dyn LeafReader>>,
    batch: LeafBatch,
    /// Entries of the current row in the batch.
    row: Range<usize>,
    /// Values of the current row.
    row_values: Range<usize>,
    /// Entry of the row, and value, that [`Leaf::take`] passes next.
    next_place: usize,
    next_value: usize,
    /// Number of row groups that were opened.
    n_opened: u64,
}

/// Definition levels that matter here.
#[derive(Clone, Copy)]
struct Levels {
    /// Level of a value.
    value: i16,
    /// Lowest level of an entry in a list, which may be null; 0 without a list.
    entry: i16,
}

/// Levels of a batch of rows: two for each entry.
#[derive(Default)]
struct LeafBatch {
    definition: Vec<i16>,
    /// Repetition levels; 0 at the start of a row.
    repetition: Vec<i16>,
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
            repeats: column.max_rep_level() > 0,
            column: None,
            batch: LeafBatch::default(),
            row: 0..0,
            row_values: 0..0,
            next_place: 0,
            next_value: 0,
            n_opened: 0,
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
        self.n_opened += 1;
        let column = metadata.column_descr_ptr();
        let pages = row_group.get_column_page_reader(self.index)?;
        let pages = Box::new(Checked::new(pages, &column));
        if let Render::Bytes(forms) = &self.render
            && Texts::can_read(metadata)
        {
            let texts = Texts::default();
            let (column, pages) = texts.numbers(pages, &column)?;
            self.column = Some(Box::new(Numbered {
                reader: get_typed_column_reader(get_column_reader(column, pages)),
                forms: forms.clone(),
                numbers: Vec::new(),
                texts,
            }));
            return Ok(());
        }
        let reader = get_column_reader(column, pages);
        self.column = Some(match (self.render.clone(), reader) {
            (Render::Bool(forms), ColumnReader::BoolColumnReader(it)) => typed::<BoolType>(it, forms),
            (Render::Bytes(forms), ColumnReader::ByteArrayColumnReader(it)) => {
                Box::new(Typed::<ByteArrayType, [u8]> {
                    reader: it,
                    forms,
                    values: Vec::new(),
                    inner: |value| value.data(),
                })
            }
            (Render::Fixed(forms), ColumnReader::FixedLenByteArrayColumnReader(it)) => {
                typed::<FixedLenByteArrayType>(it, forms)
            }
            (Render::Int32(forms), ColumnReader::Int32ColumnReader(it)) => typed::<Int32Type>(it, forms),
            (Render::Int64(forms), ColumnReader::Int64ColumnReader(it)) => typed::<Int64Type>(it, forms),
            (Render::Int96(forms), ColumnReader::Int96ColumnReader(it)) => typed::<Int96Type>(it, forms),
            (Render::Float(forms), ColumnReader::FloatColumnReader(it)) => typed::<FloatType>(it, forms),
            (Render::Double(forms), ColumnReader::DoubleColumnReader(it)) => typed::<DoubleType>(it, forms),
            _ => return Err(Damaged.into()),
        });
        Ok(())
    }

    /// Loads the next `n_rows` rows. The file is damaged if there are fewer.
    pub(super) fn load(&mut self, n_rows: usize) -> anyhow::Result<()> {
        let column = self.column.as_mut().context(Damaged)?;
        self.batch.definition.clear();
        self.batch.repetition.clear();
        let n_read = column.read(n_rows, &mut self.batch)?;
        // A sound batch begins with a row and contains exactly the rows requested.
        let n_started = self.batch.repetition.iter().filter(|level| **level == 0).count();
        let begins = self.batch.repetition.first().is_none_or(|level| *level == 0);
        if n_read != n_rows || n_started != n_rows || !begins {
            return Err(Damaged.into());
        }
        (self.row, self.row_values) = (0..0, 0..0);
        Ok(())
    }

    /// Starts the next row.
    #[inline]
    pub(super) fn begin_row(&mut self) {
        let start = self.row.end;
        self.row = start..self.end_of_row(start);
        // Nulls have no value, so values are counted separately from entries.
        let is_value = |level: &&i16| **level == self.levels.value;
        let n_values = match &self.batch.definition[self.row.clone()] {
            [only] => usize::from(is_value(&only)),
            places => places.iter().filter(is_value).count(),
        };
        let first_value = self.row_values.end;
        self.row_values = first_value..first_value + n_values;
        self.rewind();
    }

    /// Starts the same row again.
    pub(super) fn rewind(&mut self) {
        (self.next_place, self.next_value) = (self.row.start, self.row_values.start);
    }

    #[inline]
    fn end_of_row(&self, start: usize) -> usize {
        if !self.repeats {
            return (start + 1).min(self.batch.definition.len());
        }
        // The next entry with level 0 starts another row.
        let rest = self.batch.repetition.get(start + 1..).unwrap_or_default();
        let n_more = rest.iter().take_while(|level| **level > 0).count();
        (start + 1 + n_more).min(self.batch.definition.len())
    }

    /// Returns the lowest definition level of an entry in a list.
    pub(super) fn entry_level(&self) -> i16 {
        self.levels.entry
    }

    pub(super) fn is_row_done(&self) -> bool {
        self.next_place == self.row.end
    }

    /// Returns the definition and repetition level of the row's next entry.
    pub(super) fn entry(&self) -> Option<(i16, i16)> {
        let has_more = self.next_place < self.row.end;
        has_more.then(|| {
            (
                self.batch.definition[self.next_place],
                self.batch.repetition[self.next_place],
            )
        })
    }

    /// Passes the row's next entry, and writes its value unless it is null. Returns whether there was a value.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) -> bool {
        let value = self.skip();
        value.inspect(|value| self.write(*value, out)).is_some()
    }

    /// Passes the row's next entry, and returns its value unless it is null.
    pub(super) fn skip(&mut self) -> Option<usize> {
        let (definition, _) = self.entry()?;
        self.next_place += 1;
        if definition != self.levels.value {
            return None;
        }
        self.next_value += 1;
        Some(self.next_value - 1)
    }

    /// Returns what a list or map is instead of its entries, if the current row has none.
    pub(super) fn no_entry(&self) -> Option<NoEntry> {
        let level = *self.batch.definition[self.row.clone()].first()?;
        match self.levels.entry - level {
            ..=0 => None,
            1 => Some(NoEntry::EmptyList),
            _ => Some(NoEntry::NoList),
        }
    }

    /// Writes a value as JSON.
    pub(super) fn write(&self, value: usize, out: &mut Vec<u8>) {
        if let Some(column) = &self.column
            && out.len() <= MAX_BYTES
        {
            column.write(value, out);
        }
    }

    /// Returns a value as a cell.
    #[inline]
    pub(super) fn cell(&self, value: usize) -> Cell<'_> {
        self.column
            .as_ref()
            .map_or(Cell::Other, |column| column.cell(value))
    }

    /// Returns the first value of the current row.
    #[inline]
    pub(super) fn first_value(&self) -> Option<usize> {
        self.row_values.clone().next()
    }

    /// Returns the values of the current row, if each of its entries has one: `None` if one is null, or the list is.
    #[inline]
    pub(super) fn values(&self) -> Option<Range<usize>> {
        (self.row.len() == self.row_values.len()).then(|| self.row_values.clone())
    }

    /// Returns the numbers of the values that are texts, and the texts; `None` if texts are not numbered.
    #[inline]
    pub(super) fn numbered(&self) -> Option<(&[i32], &Texts)> {
        self.column.as_ref()?.numbered()
    }

    /// Returns the number of row groups that were opened: each has its own dictionary.
    pub(super) fn n_opened(&self) -> u64 {
        self.n_opened
    }
}

/// Column reader whose physical type is hidden, with the values of its last rows.
trait LeafReader {
    /// Replaces the values, fills the levels, and returns the number of rows.
    fn read(&mut self, n_rows: usize, batch: &mut LeafBatch) -> anyhow::Result<usize>;

    fn write(&self, value: usize, out: &mut Vec<u8>);

    fn cell(&self, value: usize) -> Cell<'_>;

    fn numbered(&self) -> Option<(&[i32], &Texts)> {
        None
    }
}

struct Typed<T: DataType, V: ?Sized> {
    reader: ColumnReaderImpl<T>,
    forms: Forms<V>,
    values: Vec<T::T>,
    inner: fn(&T::T) -> &V,
}

fn typed<T: DataType>(reader: ColumnReaderImpl<T>, forms: Forms<T::T>) -> Box<dyn LeafReader> {
    Box::new(Typed::<T, T::T> {
        reader,
        forms,
        values: Vec::new(),
        inner: |value| value,
    })
}

impl<T: DataType, V: ?Sized> LeafReader for Typed<T, V> {
    fn read(&mut self, n_rows: usize, batch: &mut LeafBatch) -> anyhow::Result<usize> {
        read(&mut self.reader, n_rows, batch, &mut self.values)
    }

    fn write(&self, value: usize, out: &mut Vec<u8>) {
        (self.forms.write)((self.inner)(&self.values[value]), out);
    }

    fn cell(&self, value: usize) -> Cell<'_> {
        (self.forms.cell)((self.inner)(&self.values[value]))
    }
}

fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    n_rows: usize,
    batch: &mut LeafBatch,
    values: &mut Vec<T::T>,
) -> anyhow::Result<usize> {
    values.clear();
    let (definition, repetition) = (Some(&mut batch.definition), Some(&mut batch.repetition));
    let (n_read, _, n_places) = reader.read_records(n_rows, definition, repetition, values)?;
    // Parquet stores no levels for a column that is never null or never repeats. All of them are 0.
    batch.definition.resize(n_places, 0);
    batch.repetition.resize(n_places, 0);
    Ok(n_read)
}

/// Column of texts, read as their numbers.
struct Numbered {
    reader: ColumnReaderImpl<Int32Type>,
    forms: Forms<[u8]>,
    numbers: Vec<i32>,
    texts: Texts,
}

impl LeafReader for Numbered {
    fn read(&mut self, n_rows: usize, batch: &mut LeafBatch) -> anyhow::Result<usize> {
        let n_read = read(&mut self.reader, n_rows, batch, &mut self.numbers)?;
        self.texts.take_pages();
        Ok(n_read)
    }

    fn write(&self, value: usize, out: &mut Vec<u8>) {
        (self.forms.write)(self.texts.text(self.numbers[value]), out);
    }

    fn cell(&self, value: usize) -> Cell<'_> {
        (self.forms.cell)(self.texts.text(self.numbers[value]))
    }

    fn numbered(&self) -> Option<(&[i32], &Texts)> {
        Some((&self.numbers, &self.texts))
    }
}
