//! Tables of any columns: CSV, plain or packed, and Parquet, a row at a time.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Cursor, Read};
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};

pub use super::columns::{Cells, NoColumn};
use super::{
    FileFormat, PARQUET_IN_A_STREAM, ProgressReader, ReadContext, Watch, is_standard_input, open, sniff,
    unpacked,
};

/// Bound on the bytes of a line.
const MAX_LINE: u64 = 64 << 20;

/// Bytes of the header that are searched for the delimiter.
const MAX_HEADER: u64 = 1 << 20;

/// Calls back with the number of each row, counted from 1 without the header, and its cells in the order of `columns`.
///
/// CSV has a header, is delimited by commas, semicolons or tabs, whichever its header has most of, and may be in gzip or zstd.
/// Standard input (`-`) is CSV. If `others` is given, cells of the other columns that hold text, numbers or booleans follow the ones of
/// `columns`, in the order of the names put there.
///
/// # Errors
/// Fails if the file cannot be read to its end, or lacks such a column; each error names the file.
pub fn read(
    path: &Path,
    columns: &[&str],
    others: Option<&mut Vec<String>>,
    watch: &dyn Fn(u64),
    mut row: impl FnMut(u64, Cells) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let row = &mut row;
    let watch: &Watch = &|n_bytes| {
        watch(n_bytes);
        Ok(())
    };
    let read = if is_standard_input(path) {
        text(std::io::stdin().lock(), columns, others, watch, row)
    } else {
        let file = open(path)?;
        match super::is_parquet(path) {
            true => rows(file, columns, others, watch, row),
            false => text(file, columns, others, watch, row),
        }
    };
    read.with_context(|| ReadContext::of(path))
}

#[cfg(feature = "parquet")]
fn rows(
    file: File,
    columns: &[&str],
    others: Option<&mut Vec<String>>,
    watch: &Watch,
    row: &mut dyn FnMut(u64, Cells) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    super::parquet::read_table(file, columns, others, watch, row)
}

#[cfg(not(feature = "parquet"))]
fn rows(
    _: File,
    _: &[&str],
    _: Option<&mut Vec<String>>,
    _: &Watch,
    _: &mut dyn FnMut(u64, Cells) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    bail!("it is Parquet, which this build cannot read: build with the feature `parquet`, or write CSV");
}

/// Reads CSV, compressed or not.
fn text(
    input: impl Read,
    columns: &[&str],
    others: Option<&mut Vec<String>>,
    watch: &Watch,
    row: &mut dyn FnMut(u64, Cells) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut input = ProgressReader::new(input, watch);
    let (format, head) = sniff(&mut input)?;
    let input = head.chain(input);
    match format {
        FileFormat::Lines | FileFormat::Array | FileFormat::Csv => csv(input, columns, others, row),
        FileFormat::Gzip | FileFormat::Zstd => csv(unpacked(format, input)?, columns, others, row),
        FileFormat::Parquet => bail!("{PARQUET_IN_A_STREAM}"),
        FileFormat::Avro | FileFormat::Foreign(_) => {
            bail!("its format is not supported ({format}): write CSV, plain or in gzip or zstd, or Parquet")
        }
    }
}

fn csv(
    input: impl Read,
    columns: &[&str],
    others: Option<&mut Vec<String>>,
    row: &mut dyn FnMut(u64, Cells) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut reader = reader(input)?;
    let header = header(&mut reader)?;
    let place = |column: &&str| {
        let mut found = header.iter().enumerate().filter(|(_, name)| name == column);
        match (found.next(), found.next()) {
            (Some((place, _)), None) => Ok(place),
            (Some(_), Some(_)) => bail!("it has several columns {column}: give each its own name"),
            (None, _) => {
                let known: Vec<&str> = header.iter().map(String::as_str).collect();
                Err(NoColumn::new(column, &known).into())
            }
        }
    };
    let mut places: Vec<usize> = columns.iter().map(place).collect::<anyhow::Result<_>>()?;
    if let Some(others) = others {
        let other_places: Vec<usize> = (0..header.len())
            .filter(|place| !places.contains(place))
            .collect();
        others.extend(other_places.iter().map(|place| header[*place].clone()));
        places.extend(other_places);
    }
    for (number, record) in (1..).zip(reader.records()) {
        let record = record.map_err(in_words)?;
        let cell = |place: &usize| {
            let text = record.get(*place).filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        row(number, places.iter().map(cell).collect())?;
    }
    Ok(())
}

/// Opens a table by its first row.
///
/// # Errors
/// It is empty, or JSON.
pub(super) fn reader<R: Read>(input: R) -> anyhow::Result<csv::Reader<impl Read + use<R>>> {
    // The bound must come before the parser, which would collect an endless line in memory.
    let mut input = BufReader::new(BoundedLines::new(input));
    let mut header = Vec::new();
    input.by_ref().take(MAX_HEADER).read_until(b'\n', &mut header)?;
    match header.trim_ascii_start().first() {
        None => bail!("it is empty: its first row names its columns"),
        Some(b'{' | b'[') => {
            bail!("it is JSON, not a table: events need no conversion, `abgauge evaluate FILE` reads them")
        }
        Some(_) => {}
    }
    let delimiter = delimiter(&header);
    // The parser reads the header again, now that the delimiter is known.
    let input = Cursor::new(header).chain(input);
    Ok(csv::ReaderBuilder::new().delimiter(delimiter).from_reader(input))
}

/// Returns the names of a table's columns.
pub(super) fn header(reader: &mut csv::Reader<impl Read>) -> anyhow::Result<Vec<String>> {
    let header = reader.headers().map_err(in_words)?;
    let name = |cell: &str| cell.trim_start_matches('\u{feff}').trim().to_owned();
    Ok(header.iter().map(name).collect())
}

/// Reader that fails at a line too long to be kept in memory, such as an endless one.
struct BoundedLines<R> {
    input: R,
    /// Bytes since the last end of a line.
    n_bytes: u64,
}

impl<R> BoundedLines<R> {
    fn new(input: R) -> BoundedLines<R> {
        BoundedLines { input, n_bytes: 0 }
    }
}

impl<R: Read> Read for BoundedLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.input.read(buffer)?;
        // Only bytes after the last line end belong to an unfinished line.
        match memchr::memrchr(b'\n', &buffer[..n_read]) {
            Some(last) => self.n_bytes = (n_read - last - 1) as u64,
            None => self.n_bytes += n_read as u64,
        }
        if self.n_bytes > MAX_LINE {
            let reported = format!(
                "it has a line of more than {} MiB: it is not a table of rows",
                MAX_LINE >> 20
            );
            return Err(io::Error::other(reported));
        }
        Ok(n_read)
    }
}

/// Describes the problem with a row.
pub(super) fn in_words(error: csv::Error) -> anyhow::Error {
    let line = error.position().map_or(0, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            anyhow!(
                "line {line} has {len} cells, but the header has {expected_len}: quote cells that contain a separator"
            )
        }
        csv::ErrorKind::Utf8 { .. } => {
            anyhow!("line {line} is not UTF-8 text: write the table in that encoding")
        }
        _ => error.into(),
    }
}

/// Returns the delimiter of the first line.
pub(super) fn delimiter(header: &[u8]) -> u8 {
    let n = |delimiter: u8| header.iter().filter(|byte| **byte == delimiter).count();
    // Of equal counts, `max_by_key` returns the last: a comma is preferred.
    let best = [b'\t', b';', b',']
        .into_iter()
        .max_by_key(|delimiter| n(*delimiter));
    best.unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str, columns: &[&str]) -> anyhow::Result<Vec<Cells>> {
        let mut rows = Vec::new();
        csv(text.as_bytes(), columns, None, &mut |_, cells| {
            rows.push(cells);
            Ok(())
        })?;
        Ok(rows)
    }

    #[test]
    fn finds_cells_by_header_with_any_separator() {
        let cell = |text: &str| Some(text.to_owned());
        for text in [
            "\u{feff}user,score,item\nu1,0.5,\"i,1\"\r\nu2,,i2\n",
            "user;score;item\nu1;0.5;i,1\nu2;;i2\n",
            "user\tscore\titem\nu1\t0.5\ti,1\nu2\t\ti2",
        ] {
            let rows = read_text(text, &["item", "user", "score"]).expect("a table");
            let expected = [
                vec![cell("i,1"), cell("u1"), cell("0.5")],
                vec![cell("i2"), cell("u2"), None],
            ];
            assert_eq!(rows, expected, "{text}");
        }
        assert_eq!(read_text("a\n1\n", &["a"]).expect("a table"), [[cell("1")]]);
    }

    #[test]
    fn other_columns_follow_the_requested_columns() {
        let (mut others, mut rows) = (Vec::new(), Vec::new());
        let text = "rel,user,,item\n0,u1,7,i1\n";
        csv(
            text.as_bytes(),
            &["item", "user"],
            Some(&mut others),
            &mut |_, cells| {
                rows.push(cells);
                Ok(())
            },
        )
        .expect("a table");
        assert_eq!(others, ["rel", ""]);
        assert_eq!(rows, [["i1", "u1", "0", "7"].map(|text| Some(text.to_owned()))]);
    }

    #[test]
    fn rejects_an_endless_line() {
        let endless = b"user,item\n1,".chain(io::repeat(b'2'));
        let error = csv(endless, &["user"], None, &mut |_, _| Ok(())).expect_err("it has no end");
        let reported = "it has a line of more than 64 MiB: it is not a table of rows";
        assert_eq!(error.to_string(), reported);
    }

    #[test]
    fn reports_a_missing_column_and_a_short_row() {
        let error = read_text("user,item\n1,2\n", &["users"]).expect_err("no such column");
        assert_eq!(
            error.to_string(),
            "it has no column users: its columns are user, item"
        );
        let error = read_text("user,item\n1\n", &["user"]).expect_err("a short row");
        assert_eq!(
            error.to_string(),
            "line 2 has 1 cells, but the header has 2: quote cells that contain a separator"
        );
        for (text, reported) in [
            ("", "it is empty"),
            ("{\"user\":1}\n", "it is JSON, not a table"),
            ("user,item,user\n1,2,3\n", "it has several columns user"),
        ] {
            let error = read_text(text, &["user"]).expect_err(text).to_string();
            assert!(error.contains(reported), "{error}");
        }
        let mut none = |_, _| Ok(());
        let error = csv(&b"user\n\xe4\n"[..], &["user"], None, &mut none).expect_err("Latin-1");
        assert!(error.to_string().contains("line 2 is not UTF-8 text"), "{error}");
    }
}
