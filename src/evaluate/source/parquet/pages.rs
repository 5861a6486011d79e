//! Headers of pages, looked at before what is behind them is unpacked: the reader of Parquet takes as much memory as they say.
//!
//! A header is a struct in Thrift's compact protocol. Only what a page header may have is taken for one, so that this reads
//! no header otherwise than the reader does.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek as _, SeekFrom};

use anyhow::{Context as _, bail, ensure};
use flate2::bufread::MultiGzDecoder;
use parquet::basic::Compression;
use parquet::file::metadata::ColumnChunkMetaData;

use super::Damaged;

/// Bytes that a page may unpack to. Most writers end a page at 1 MiB.
pub(super) const MAX_BYTES: u64 = 256 << 20;
/// Values and nulls that a page may hold: those that repeat take next to nothing in it, and 4 bytes each once they are read.
const MAX_VALUES: u64 = MAX_BYTES / 4;
/// What a byte of gzip becomes at most, and what a byte of LZ4 does. Neither is held to the size that its page says.
const MOST_OF_GZIP: u64 = 1_032;
const MOST_OF_LZ4: u64 = 255;
/// Bytes of headers that are read at a time.
const BUFFER: usize = 1 << 10;
/// Structs within structs.
const MAX_DEPTH: u32 = 8;

/// Looks at every page of a column of a row group.
///
/// # Errors
/// Where a page would take too much memory, or its header is none.
pub(super) fn check(file: &File, column: &ColumnChunkMetaData) -> anyhow::Result<()> {
    let (start, n_bytes) = column.byte_range();
    let end = start.checked_add(n_bytes).context(Damaged)?;
    let mut input = BufReader::with_capacity(BUFFER, file);
    let mut at = input.seek(SeekFrom::Start(start))?;
    while at < end {
        let header = Header::read(&mut (&mut input).take(end - at)).map_err(|_| Damaged)?;
        let data = input.stream_position()?;
        at = data.checked_add(header.n_packed).context(Damaged)?;
        ensure!(at <= end, Damaged);
        let name = || column.column_path().string();
        if header.n_bytes > MAX_BYTES || header.n_values > MAX_VALUES {
            bail!(
                "column {} has a page of more than 256 MiB: write smaller ones",
                name()
            );
        }
        // A value of a dictionary takes 4 bytes at least.
        ensure!(header.n_entries <= header.n_bytes / 4, Damaged);
        let is_bomb = match column.compression() {
            Compression::GZIP(_) if header.n_packed > MAX_BYTES / MOST_OF_GZIP => {
                header.unpacks_too_far(&mut input)?
            }
            Compression::LZ4 => header.n_packed > MAX_BYTES / MOST_OF_LZ4,
            _ => false,
        };
        if is_bomb {
            bail!(
                "column {} has a page that may unpack to more than 256 MiB: write smaller ones",
                name()
            );
        }
        input.seek(SeekFrom::Start(at))?;
    }
    Ok(())
}

/// What a header says that asks for memory.
#[derive(Debug, Default, PartialEq, Eq)]
struct Header {
    /// Unpacked.
    n_bytes: u64,
    n_packed: u64,
    n_values: u64,
    /// Values of a dictionary.
    n_entries: u64,
    /// Bytes of levels before what is packed.
    n_levels: u64,
}

impl Header {
    fn read(input: &mut impl BufRead) -> io::Result<Header> {
        let mut header = Header::default();
        fields(input, MAX_DEPTH, 0, &mut |outer, id, value| {
            let size = u64::try_from(value).map_err(|_| no_header());
            match (outer, id) {
                (0, 2) => header.n_bytes = size?,
                (0, 3) => header.n_packed = size?,
                (7, 1) => header.n_entries = size?,
                (5 | 8, 1) => header.n_values = size?,
                (8, 5 | 6) => header.n_levels += size?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(header)
    }

    /// Unpacks the page that comes next, and keeps nothing of it.
    fn unpacks_too_far(&self, input: &mut impl BufRead) -> anyhow::Result<bool> {
        let n_packed = self.n_packed.checked_sub(self.n_levels).context(Damaged)?;
        io::copy(&mut input.take(self.n_levels), &mut io::sink())?;
        let unpacked = MultiGzDecoder::new(input.take(n_packed));
        // One that is not packed, or damaged, is for the reader to tell.
        let n_bytes = io::copy(&mut unpacked.take(MAX_BYTES + 1), &mut io::sink()).unwrap_or(0);
        Ok(n_bytes > MAX_BYTES)
    }
}

const BOOLEANS: [u8; 2] = [1, 2];
const BYTE: u8 = 3;
const INT16: u8 = 4;
const INT32: u8 = 5;
const INT64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const STRUCT: u8 = 12;

/// Calls back with each 32-bit integer of the header and of the structs in it: the struct's id, 0 for the header itself; its
/// own; its value.
fn fields(
    input: &mut impl BufRead,
    depth: u32,
    outer: i16,
    found: &mut impl FnMut(i16, i16, i32) -> io::Result<()>,
) -> io::Result<()> {
    let depth = depth.checked_sub(1).ok_or_else(no_header)?;
    let mut id = 0_i16;
    loop {
        let head = byte(input)?;
        let kind = head & 0x0f;
        if kind == 0 {
            return Ok(());
        }
        id = match i16::from(head >> 4) {
            0 => zigzag(input)? as i16,
            delta => id.checked_add(delta).ok_or_else(no_header)?,
        };
        // The reader goes by the id alone.
        let expected = match (outer, id) {
            (0, 1..=4) | (5, 1..=4) | (7, 1..=2) | (8, 1..=6) => Some(INT32),
            (0, 5..=8) => Some(STRUCT),
            _ => None,
        };
        if expected.is_some_and(|expected| expected != kind) {
            return Err(no_header());
        }
        match kind {
            kind if BOOLEANS.contains(&kind) => {}
            BYTE => _ = byte(input)?,
            INT32 => found(outer, id, zigzag(input)? as i32)?,
            INT16 | INT64 => _ = zigzag(input)?,
            DOUBLE => skip(input, 8)?,
            BINARY => {
                let n_bytes = varint(input)?;
                skip(input, n_bytes)?;
            }
            STRUCT if outer == 0 => fields(input, depth, id, found)?,
            // Statistics, of which nothing is read.
            STRUCT => fields(input, depth, -1, found)?,
            // Lists and maps: no header has any.
            _ => return Err(no_header()),
        }
    }
}

fn no_header() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn byte(input: &mut impl BufRead) -> io::Result<u8> {
    let mut byte = [0];
    input.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// As the reader takes it, also where it has more bits than there are.
fn varint(input: &mut impl BufRead) -> io::Result<u64> {
    let (mut value, mut shift) = (0, 0_u32);
    loop {
        let byte = byte(input)?;
        value |= u64::from(byte & 0x7f).wrapping_shl(shift);
        if byte < 0x80 {
            return Ok(value);
        }
        shift = shift.checked_add(7).ok_or_else(no_header)?;
    }
}

fn zigzag(input: &mut impl BufRead) -> io::Result<i64> {
    let value = varint(input)?;
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}

fn skip(input: &mut impl BufRead, n_bytes: u64) -> io::Result<()> {
    match io::copy(&mut input.take(n_bytes), &mut io::sink())? {
        n if n == n_bytes => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests;
