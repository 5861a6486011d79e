//! Rows of Parquet, cell by cell or as records of JSON.
//!
//! Only the columns of events are read, a few rows at a time. A null is an absent field. With the shape of other events, columns are
//! located by its paths; without one, they are named like our own fields.

mod leaf;
mod nested;
mod pages;
mod render;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod texts;

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Context as _, bail, ensure};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;

use self::leaf::{Leaf, MAX_BYTES};
use self::nested::Nested;
use self::rows::RowPlan;
use super::columns::{Cells, EventFields};
use super::{Records, TableRow, Watch};
use crate::decode::Decoder;
use crate::engine::event::{Batch, Kind, Position};

/// Number of rows that are read at a time.
const BATCH: usize = 512;
/// First and last bytes of a complete file.
const MAGIC: &[u8] = b"PAR1";

#[derive(Debug, thiserror::Error)]
#[error("it is damaged: its parts do not fit together")]
struct Damaged;

/// Reads the records of a file, with the number of each row, counted from 1. `watch` is called with the file's bytes in proportion to
/// the rows read.
pub(super) fn read(
    file: File,
    fields: &EventFields,
    watch: &Watch,
    records: &mut dyn Records,
) -> anyhow::Result<()> {
    let mut json = Vec::new();
    let mut plan = OnceCell::new();
    let open = |schema: &SchemaDescriptor| schema::fields(schema, fields);
    each_row(file, watch, open, |number, fields, (places, layout)| {
        let row = &mut CurrentRow {
            fields,
            places,
            plan: &mut plan,
        };
        if records.row(number, row) {
            return Ok(());
        }
        all_leaves(fields, &mut |leaf| {
            leaf.rewind();
            Ok(())
        })?;
        json.clear();
        let mut is_sound = true;
        layout.write(&mut json, &mut |index, out| {
            let written = fields[index].write_row(out);
            is_sound &= written.is_some();
            written.unwrap_or_default()
        });
        if !is_sound {
            return Err(Damaged.into());
        }
        ensure!(
            json.len() <= MAX_BYTES,
            "row {number} takes more than 256 MiB of memory: write shorter ones"
        );
        records.record(number, json.as_slice().into());
        Ok(())
    })
}

/// Row that is decoded by a plan, which is made for the first one.
struct CurrentRow<'r> {
    fields: &'r mut [Nested],
    places: &'r [Vec<String>],
    plan: &'r mut OnceCell<Option<RowPlan>>,
}

impl TableRow for CurrentRow<'_> {
    fn decode(&mut self, decoder: &Decoder, kind: Option<Kind>, at: Position, batch: &mut Batch) -> bool {
        self.plan
            .get_or_init(|| RowPlan::new(decoder, self.fields, self.places));
        let plan = self.plan.get_mut().and_then(Option::as_mut);
        plan.is_some_and(|plan| plan.decode(self.fields, decoder, kind, at, batch))
    }
}

/// Reads a table. Calls back with the number of each row, counted from 1, and the text of its cells in these columns.
pub(super) fn read_table(
    file: File,
    columns: &[&str],
    others: Option<&mut Vec<String>>,
    watch: &Watch,
    row: &mut dyn FnMut(u64, Cells) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let open = |schema: &SchemaDescriptor| {
        let mut fields = schema::columns(schema, columns)?;
        if let Some(others) = others {
            let (names, further) = schema::other_columns(schema, columns);
            others.extend(names);
            fields.extend(further);
        }
        Ok((fields, ()))
    };
    each_row(file, watch, open, |number, fields, ()| {
        let cells = fields.iter_mut().map(|field| match field {
            Nested::Leaf(leaf) => text_of(leaf),
            _ => None,
        });
        row(number, cells.collect())
    })
}

/// Returns the text of the row's value. `None` for a null or an empty text.
fn text_of(leaf: &Leaf) -> Option<String> {
    let mut json = Vec::new();
    leaf.write(leaf.first_value()?, &mut json);
    match &json[..] {
        [b'"', ..] => serde_json::from_slice(&json).ok(),
        _ => String::from_utf8(json).ok(),
    }
    .filter(|text| !text.is_empty())
}

/// Calls back with each row, and with what `open` returns besides the fields.
fn each_row<T>(
    mut file: File,
    watch: &Watch,
    open: impl FnOnce(&SchemaDescriptor) -> anyhow::Result<(Vec<Nested>, T)>,
    mut row: impl FnMut(u64, &mut [Nested], &T) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let n_bytes = file.metadata()?.len();
    // The footer is at the end, so a file that is still being written has none. Report that, and not a damaged
    // footer.
    if !is_whole(&mut file, n_bytes)? {
        bail!("it ends early: its Parquet is truncated, or still being written");
    }
    let reader = sound(|| SerializedFileReader::new(file).context("read the footer of Parquet"))?;
    let (mut fields, opened) = open(reader.metadata().file_metadata().schema_descr())?;
    let n_rows_in_all = u64::try_from(reader.metadata().file_metadata().num_rows()).context(Damaged)?;
    let mut progress = ReadProgress {
        n_bytes,
        n_rows: n_rows_in_all,
        n_reported: 0,
        watch,
    };
    let mut number = 0;
    for index in 0..reader.num_row_groups() {
        let row_group = reader.get_row_group(index)?;
        sound(|| all_leaves(&mut fields, &mut |leaf| leaf.open(&*row_group)))?;
        let mut n_left = usize::try_from(row_group.metadata().num_rows()).context(Damaged)?;
        while n_left > 0 {
            // A row group may have millions of rows, so only some of them are in memory.
            let n_rows = n_left.min(BATCH);
            sound(|| all_leaves(&mut fields, &mut |leaf| leaf.load(n_rows)))?;
            for _ in 0..n_rows {
                number += 1;
                fields.iter_mut().for_each(Nested::begin_row);
                row(number, &mut fields, &opened)?;
            }
            n_left -= n_rows;
            progress.read(number)?;
        }
    }
    // If the footer and the row groups disagree, rows are missing.
    if number != n_rows_in_all {
        return Err(Damaged.into());
    }
    Ok(progress.finish()?)
}

/// Runs the Parquet reader, which sometimes panics on a damaged file. A panic becomes an error.
fn sound<T>(read: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(Damaged.into()))
}

fn all_leaves(
    fields: &mut [Nested],
    act: &mut dyn FnMut(&mut Leaf) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut result = Ok(());
    let mut until_error = |leaf: &mut Leaf| {
        if result.is_ok() {
            result = act(leaf);
        }
    };
    fields
        .iter_mut()
        .for_each(|field| field.each_leaf(&mut until_error));
    result
}

fn is_whole(file: &mut File, n_bytes: u64) -> std::io::Result<bool> {
    let mut end = [0; MAGIC.len()];
    let start = n_bytes.saturating_sub(end.len() as u64);
    file.seek(SeekFrom::Start(start))?;
    Ok(start >= MAGIC.len() as u64 && file.read_exact(&mut end).is_ok() && end == MAGIC)
}

/// Progress in bytes, in proportion to the rows read.
struct ReadProgress<'a> {
    n_bytes: u64,
    n_rows: u64,
    n_reported: u64,
    watch: &'a Watch<'a>,
}

impl ReadProgress<'_> {
    fn read(&mut self, n_rows: u64) -> io::Result<()> {
        // The product may exceed 64 bits.
        let share = u128::from(self.n_bytes) * u128::from(n_rows) / u128::from(self.n_rows.max(1));
        let n_read = u64::try_from(share).unwrap_or(self.n_bytes).min(self.n_bytes);
        let n_new = n_read - self.n_reported;
        self.n_reported = n_read;
        (self.watch)(n_new)
    }

    fn finish(self) -> io::Result<()> {
        (self.watch)(self.n_bytes - self.n_reported)
    }
}
