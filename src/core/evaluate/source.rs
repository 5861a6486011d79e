//! Reads files and standard input for `evaluate`, whatever their compression, as records.
//!
//! The file type is detected from the first bytes, not from the name. Lines are read one by one. Rows of CSV are converted to JSON
//! records, and so are rows of Parquet that cannot be decoded cell by cell; records of Avro are decoded directly.

mod array;
mod avro;
mod columns;
mod lines;
#[cfg(feature = "parquet")]
mod parquet;
mod rows;
pub mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;

use anyhow::{Context as _, bail};
use flate2::bufread::MultiGzDecoder;

pub use self::columns::EventFields;
pub use self::lines::LongLines;
use self::lines::ReadBounds;
use crate::decode::Decoder;
use crate::decode::schema::RawRecord;
use crate::engine::event::{Batch, Kind, Position};

/// Bytes of packed data that are read at a time.
const PACKED_BUFFER: usize = 128 << 10;
/// Bytes between two calls of `watch`.
const TOLD_AT_A_TIME: u64 = 64 << 10;
/// zstd's largest window (`--long=31`), in powers of two: the file decides how much memory decompression takes.
const ZSTD_WINDOW_LOG: u32 = 31;
/// Error for Parquet from standard input or a pipe, whose end cannot be read first.
const PARQUET_IN_A_STREAM: &str =
    "it is Parquet, which can be read only from a file: save it to a file, and pass the file's name";
/// Name of a format that is not text, and not known either.
const BINARY: &str = "binary data";
/// Number of first bytes used to detect the format.
const HEAD: usize = 512;

/// Callback with the number of bytes read since the last call. An error ends the reading.
pub(super) type Watch<'a> = dyn Fn(u64) -> io::Result<()> + 'a;

/// Destination of the records of a file, with their places.
pub(super) trait Records {
    fn record(&mut self, number: u64, record: RawRecord);

    /// Takes a row of a table. Returns false if it must come as a record.
    #[cfg_attr(
        not(feature = "parquet"),
        expect(dead_code, reason = "only Parquet has rows that are not text")
    )]
    fn row(&mut self, _number: u64, _row: &mut dyn TableRow) -> bool {
        false
    }
}

/// Row of a table that can be decoded without a record of it.
pub(super) trait TableRow {
    /// Decodes the row like its record. Returns false, with the batch unchanged, if the record has to be decoded.
    fn decode(&mut self, decoder: &Decoder, kind: Option<Kind>, at: Position, batch: &mut Batch) -> bool;
}

impl<F: FnMut(u64, RawRecord)> Records for F {
    fn record(&mut self, number: u64, record: RawRecord) {
        self(number, record);
    }
}

/// Context of an error: a file was opened, but its content cannot be read.
#[derive(Debug)]
pub struct ReadContext {
    name: String,
}

impl ReadContext {
    fn of(path: &Path) -> ReadContext {
        ReadContext {
            name: name(path).into_owned(),
        }
    }

    /// Returns whether the content of a file caused this error, and not the system that reads it.
    pub fn is_to_blame(error: &anyhow::Error) -> bool {
        let is_of_system = |cause: &(dyn std::error::Error + 'static)| {
            let cause = cause.downcast_ref::<io::Error>();
            cause.is_some_and(|cause| cause.raw_os_error().is_some())
        };
        error.is::<ReadContext>() && !error.chain().any(is_of_system)
    }
}

impl fmt::Display for ReadContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read {}", self.name)
    }
}

/// Calls back with each record of a file (standard input for `-`) and its place: the number of its line, or of its
/// record in Avro or row in Parquet, from 1.
///
/// Reads JSON lines, an array of records, or CSV, also in gzip (any number of members) and zstd (any number of frames), Avro container
/// files, and Parquet with the feature `parquet`. Of a table, the columns of `fields` are read. White space around a line is removed, and blank lines are skipped. A line of 64 MiB or more is not read into
/// memory: it comes as an empty record, which is not JSON, and is reported at the end. `watch` gets the number of bytes of the
/// file read since its last call, before decompression.
///
/// # Errors
/// Fails if the file cannot be read to its end, or has a format or a column that cannot be read. Each error names the file.
/// Records may have come before.
pub fn read(
    path: &Path,
    fields: &EventFields,
    watch: &dyn Fn(u64),
    mut record: impl FnMut(u64, RawRecord),
) -> anyhow::Result<LongLines> {
    read_while(
        path,
        fields,
        &|n_bytes| {
            watch(n_bytes);
            Ok(())
        },
        &mut record,
    )
}

/// Reads a file like [`read`], until `watch` fails.
///
/// # Errors
/// Fails like [`read`], and with the error of `watch`.
pub(super) fn read_while(
    path: &Path,
    fields: &EventFields,
    watch: &Watch,
    records: &mut dyn Records,
) -> anyhow::Result<LongLines> {
    if is_standard_input(path) {
        let input = ProgressReader::new(io::stdin().lock(), watch);
        let record = &mut |number, record: RawRecord| records.record(number, record);
        return stream(input, fields, record).with_context(|| ReadContext::of(path));
    }
    let file = open(path)?;
    read_file(file, fields, watch, records).with_context(|| ReadContext::of(path))
}

/// Calls back with each record of a stream, as [`read`] does; Parquet can be read from a file only.
///
/// # Errors
/// Fails if the stream cannot be read to its end, or has a format that cannot be read.
pub fn read_stream(
    input: impl Read,
    fields: &EventFields,
    mut record: impl FnMut(u64, RawRecord),
) -> anyhow::Result<LongLines> {
    stream(input, fields, &mut record)
}

/// Returns whether a file is Parquet; false if it cannot be opened, for which [`read`] reports the reason.
pub fn is_parquet(path: &Path) -> bool {
    let format = || Some(sniff(&mut File::open(path).ok()?).ok()?.0);
    // A pipe cannot be Parquet, which needs seeking.
    is_regular_file(path) && format() == Some(FileFormat::Parquet)
}

/// Returns the name of a path in messages.
pub fn name(path: &Path) -> Cow<'_, str> {
    if is_standard_input(path) {
        Cow::Borrowed("standard input")
    } else {
        path.to_string_lossy()
    }
}

/// Returns the bytes of all files; `None` if one of them is not a file.
pub fn total_bytes(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Option<u64> {
    paths
        .into_iter()
        .map(|path| {
            let path = path.as_ref();
            is_regular_file(path)
                .then(|| Some(std::fs::metadata(path).ok()?.len()))
                .flatten()
        })
        .sum()
}

/// Returns whether a path leads to a file that can be read several times, not to a pipe.
pub(super) fn is_regular_file(path: &Path) -> bool {
    !is_standard_input(path) && std::fs::metadata(path).is_ok_and(|found| found.is_file())
}

fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

fn open(path: &Path) -> anyhow::Result<File> {
    let open = || {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            bail!("it is a directory: name the files in it");
        }
        Ok(file)
    };
    open().with_context(|| format!("open {}", name(path)))
}

fn read_file(
    mut file: File,
    fields: &EventFields,
    watch: &Watch,
    records: &mut dyn Records,
) -> anyhow::Result<LongLines> {
    let metadata = file.metadata()?;
    // A pipe cannot be rewound, so the bytes that were read to detect the format are put in front again.
    if !metadata.is_file() {
        let record = &mut |number, record: RawRecord| records.record(number, record);
        return stream(ProgressReader::new(file, watch), fields, record);
    }
    let (format, head) = sniff(&mut file)?;
    if format == FileFormat::Parquet {
        return rows_of_parquet(file, fields, watch, records).map(|()| LongLines::default());
    }
    let input = ProgressReader::new(head.chain(file), watch);
    let record = &mut |number, record: RawRecord| records.record(number, record);
    unpack(format, input, fields, record)
}

/// Reads input that can be read only once, from start to end.
fn stream(
    mut input: impl Read,
    fields: &EventFields,
    record: &mut dyn FnMut(u64, RawRecord),
) -> anyhow::Result<LongLines> {
    let (format, head) = sniff(&mut input)?;
    if format == FileFormat::Parquet {
        bail!("{PARQUET_IN_A_STREAM}");
    }
    unpack(format, head.chain(input), fields, record)
}

#[cfg(feature = "parquet")]
fn rows_of_parquet(
    file: File,
    fields: &EventFields,
    watch: &Watch,
    records: &mut dyn Records,
) -> anyhow::Result<()> {
    parquet::read(file, fields, watch, records)
}

#[cfg(not(feature = "parquet"))]
fn rows_of_parquet(_: File, _: &EventFields, _: &Watch, _: &mut dyn Records) -> anyhow::Result<()> {
    bail!(
        "it is Parquet, which this build cannot read: build with the feature `parquet`, or write JSON lines"
    );
}

fn unpack(
    format: FileFormat,
    input: impl Read,
    fields: &EventFields,
    record: &mut dyn FnMut(u64, RawRecord),
) -> anyhow::Result<LongLines> {
    match format {
        FileFormat::Lines => {
            let mut line = |number, line: &[u8]| record(number, line.into());
            Ok(lines::each(input, &ReadBounds::default(), &mut line)?)
        }
        FileFormat::Array => array::each(input, record).map(|()| LongLines::default()),
        FileFormat::Csv => rows::each(input, fields, record).map(|()| LongLines::default()),
        FileFormat::Avro => avro::read(input, record).map(|()| LongLines::default()),
        FileFormat::Gzip | FileFormat::Zstd => inner_lines(format, unpacked(format, input)?, fields, record),
        FileFormat::Foreign(BINARY) => bail!(
            "its format is not supported ({format}): write JSON lines or CSV, plain or in gzip or zstd, Avro, or Parquet; a record of \
             a topic in Avro or Protobuf is checked in its topic: abgauge check --connect"
        ),
        FileFormat::Parquet | FileFormat::Foreign(_) => {
            bail!(
                "its format is not supported ({format}): write JSON lines or CSV, plain or in gzip or zstd, Avro, or Parquet"
            )
        }
    }
}

/// Reads a file packed in zstd or gzip.
fn unpacked<'r>(format: FileFormat, input: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let packed = BufReader::with_capacity(PACKED_BUFFER, input);
    if format != FileFormat::Zstd {
        return Ok(Box::new(MultiGzDecoder::new(packed)));
    }
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG)?;
    Ok(Box::new(decoder))
}

/// Reads the lines in a packed file.
fn inner_lines(
    packing: FileFormat,
    mut input: impl Read,
    fields: &EventFields,
    record: &mut dyn FnMut(u64, RawRecord),
) -> anyhow::Result<LongLines> {
    let explain = |error: io::Error| match error.kind() {
        ErrorKind::UnexpectedEof => anyhow::anyhow!("it ends early: its {packing} is truncated"),
        _ => anyhow::Error::new(error).context(format!("unpack {packing}")),
    };
    let (format, head) = sniff(&mut input).map_err(explain)?;
    // Read as lines, a file within a file would only give unreadable records.
    if format == FileFormat::Array {
        return array::each(head.chain(input), record).map(|()| LongLines::default());
    }
    if format == FileFormat::Csv {
        return rows::each(head.chain(input), fields, record).map(|()| LongLines::default());
    }
    if format != FileFormat::Lines {
        bail!("it is {format} within {packing}: decompress the {packing} first");
    }
    let mut line = |number, line: &[u8]| record(number, line.into());
    lines::each(head.chain(input), &ReadBounds::default(), &mut line).map_err(explain)
}

/// File format, as detected from the first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileFormat {
    Lines,
    /// JSON array.
    Array,
    Csv,
    Gzip,
    Zstd,
    Avro,
    Parquet,
    /// Format that is detected only for its error message: read as lines, each one would be reported as not JSON.
    Foreign(&'static str),
}

impl fmt::Display for FileFormat {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(match self {
            FileFormat::Lines => "lines",
            FileFormat::Array => "a JSON array",
            FileFormat::Csv => "CSV",
            FileFormat::Gzip => "gzip",
            FileFormat::Zstd => "zstd",
            FileFormat::Avro => "Avro",
            FileFormat::Parquet => "Parquet",
            FileFormat::Foreign(name) => name,
        })
    }
}

impl FileFormat {
    fn of(head: &[u8]) -> FileFormat {
        match head {
            [0x1f, 0x8b, ..] => FileFormat::Gzip,
            // The second one starts a skippable frame; parallel compressors write it first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => FileFormat::Zstd,
            [b'P', b'A', b'R', b'1', ..] => FileFormat::Parquet,
            [b'P', b'A', b'R', b'E', ..] => FileFormat::Foreign("encrypted Parquet"),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => FileFormat::Foreign("Arrow (Feather)"),
            [b'O', b'b', b'j', 1, ..] => FileFormat::Avro,
            [b'O', b'R', b'C', ..] => FileFormat::Foreign("ORC"),
            [b'B', b'Z', b'h', ..] => FileFormat::Foreign("bzip2"),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => FileFormat::Foreign("xz"),
            [0x04, 0x22, 0x4d, 0x18, ..] => FileFormat::Foreign("lz4"),
            [b'P', b'K', 3, 4, ..] => FileFormat::Foreign("zip"),
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => FileFormat::Foreign("UTF-16"),
            _ if is_binary(head) => FileFormat::Foreign(BINARY),
            _ if head.trim_ascii_start().starts_with(b"[") => FileFormat::Array,
            _ if rows::is_csv(head) => FileFormat::Csv,
            _ => FileFormat::Lines,
        }
    }
}

/// Returns whether three in ten bytes cannot be UTF-8 text. A few such bytes are errors in records, reported one by one.
fn is_binary(head: &[u8]) -> bool {
    let is_control = |byte: &u8| byte.is_ascii_control() && !b"\t\n\r".contains(byte);
    let mut n_odd = head.iter().filter(|byte| is_control(byte)).count();
    // The last character may be cut off.
    if std::str::from_utf8(head).is_err_and(|error| error.error_len().is_some()) {
        n_odd += head.iter().filter(|byte| !byte.is_ascii()).count();
    }
    n_odd * 10 > head.len() * 3
}

/// Returns the format, and the bytes read to detect it, which must be read again.
fn sniff(input: &mut impl Read) -> io::Result<(FileFormat, Cursor<Vec<u8>>)> {
    let mut head = Vec::with_capacity(HEAD);
    input.take(HEAD as u64).read_to_end(&mut head)?;
    Ok((FileFormat::of(&head), Cursor::new(head)))
}

/// Reports the bytes read, many at a time, as each report may redraw the progress.
struct ProgressReader<'a, R> {
    inner: R,
    n_untold: u64,
    watch: &'a Watch<'a>,
}

impl<'a, R> ProgressReader<'a, R> {
    fn new(inner: R, watch: &'a Watch<'a>) -> Self {
        ProgressReader {
            inner,
            n_untold: 0,
            watch,
        }
    }
}

impl<R: Read> Read for ProgressReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.inner.read(buffer)?;
        self.n_untold += n_read as u64;
        // The last report comes with the end, so that all reports add up to the size of the file.
        if n_read == 0 || self.n_untold >= TOLD_AT_A_TIME {
            (self.watch)(std::mem::take(&mut self.n_untold))?;
        }
        Ok(n_read)
    }
}
