//! Avro object container files: one schema, then blocks of records, which may be compressed.

use std::io::{ErrorKind, Read};

use anyhow::{Context as _, bail, ensure};
use flate2::read::DeflateDecoder;

use crate::decode::schema::{AvroSchema, RawRecord, Schema};

pub(super) const MAGIC: &[u8] = b"Obj\x01";
/// Length in bytes of the marker after each block.
const SYNC: usize = 16;
/// Bound on the bytes of a block, packed and unpacked. Writers make blocks of a few megabytes at most.
const MAX_BLOCK: u64 = 256 << 20;
/// Bound on the bytes of a name or value in the header.
const MAX_HEADER: u64 = 16 << 20;

/// Reads the records of a file from its first byte. Calls back with each record and its number, counted from 1.
pub(super) fn read(mut input: impl Read, record: &mut dyn FnMut(u64, RawRecord)) -> anyhow::Result<()> {
    let AvroHeader { schema, codec, sync } = AvroHeader::read(&mut input)?;
    let (mut packed, mut unpacked) = (Vec::new(), Vec::new());
    let mut number = 0;
    while let Some(n_records) = long_if_any(&mut input)? {
        ensure!(
            n_records >= 0,
            "it is damaged, or several Avro files were joined to one: name each of them"
        );
        let n_bytes = bounded(long(&mut input)?, MAX_BLOCK, "block")?;
        bytes(&mut input, n_bytes, &mut packed)?;
        let block = codec.unpack(&packed, &mut unpacked)?;
        let mut of_block = Vec::new();
        bytes(&mut input, SYNC as u64, &mut of_block)?;
        ensure!(
            of_block == sync,
            "it is damaged: a block does not end where it should"
        );
        let mut rest = block;
        for _ in 0..n_records {
            number += 1;
            let of_record = schema.passed(rest);
            let of_record = of_record
                .with_context(|| {
                format!("it is damaged: record {number} does not fit its schema, or nests more than 127 levels deep")
            })?;
            let (of_record, behind) = rest.split_at(of_record);
            rest = behind;
            let written = RawRecord {
                bytes: of_record,
                schema: Some(&schema),
            };
            record(number, written);
        }
        ensure!(
            rest.is_empty(),
            "it is damaged: a block has bytes after its records"
        );
    }
    Ok(())
}

struct AvroHeader {
    schema: Schema,
    codec: Codec,
    sync: Vec<u8>,
}

impl AvroHeader {
    fn read(input: &mut impl Read) -> anyhow::Result<AvroHeader> {
        let (mut schema, mut codec) = (None, Codec::Null);
        let mut magic = Vec::new();
        bytes(input, MAGIC.len() as u64, &mut magic)?;
        loop {
            let n_entries = long(input)?;
            if n_entries == 0 {
                break;
            }
            if n_entries < 0 {
                long(input)?;
            }
            for _ in 0..n_entries.unsigned_abs() {
                let mut entry = || {
                    let n_bytes = bounded(long(input)?, MAX_HEADER, "header field")?;
                    let mut value = Vec::new();
                    bytes(input, n_bytes, &mut value)?;
                    anyhow::Ok(value)
                };
                let (name, value) = (entry()?, entry()?);
                match name.as_slice() {
                    b"avro.schema" => schema = Some(value),
                    b"avro.codec" => codec = Codec::of(&value)?,
                    _ => {}
                }
            }
        }
        let mut sync = Vec::new();
        bytes(input, SYNC as u64, &mut sync)?;
        let schema = schema.context("it is damaged: its header has no schema")?;
        let text = std::str::from_utf8(&schema).context("it is damaged: its schema is not UTF-8")?;
        let schema = AvroSchema::parse(text)?;
        ensure!(!schema.has_no_bytes(), "its schema has no fields");
        let schema = Schema::Avro(schema);
        Ok(AvroHeader { schema, codec, sync })
    }
}

/// Compression of blocks.
#[derive(Debug, Clone, Copy)]
enum Codec {
    Null,
    Deflate,
    Snappy,
    Zstandard,
}

impl Codec {
    fn of(name: &[u8]) -> anyhow::Result<Codec> {
        Ok(match name {
            b"null" | b"" => Codec::Null,
            b"deflate" => Codec::Deflate,
            b"snappy" => Codec::Snappy,
            b"zstandard" => Codec::Zstandard,
            other => bail!(
                "its codec is not supported ({}): write it with the codec deflate, snappy, zstandard or null",
                String::from_utf8_lossy(other)
            ),
        })
    }

    /// Unpacks a block.
    fn unpack<'a>(self, packed: &'a [u8], unpacked: &'a mut Vec<u8>) -> anyhow::Result<&'a [u8]> {
        unpacked.clear();
        match self {
            Codec::Null => return Ok(packed),
            Codec::Deflate => {
                DeflateDecoder::new(packed)
                    .take(MAX_BLOCK + 1)
                    .read_to_end(unpacked)
                    .context("unpack deflate")?;
            }
            Codec::Zstandard => {
                let decoder = zstd::stream::read::Decoder::new(packed)?;
                decoder
                    .take(MAX_BLOCK + 1)
                    .read_to_end(unpacked)
                    .context("unpack zstandard")?;
            }
            Codec::Snappy => {
                let (block, sum) = packed
                    .split_last_chunk::<4>()
                    .context("it is damaged: a block has no checksum")?;
                let n_bytes = snap::raw::decompress_len(block).context("unpack snappy")?;
                bounded(n_bytes.try_into()?, MAX_BLOCK, "block")?;
                unpacked.resize(n_bytes, 0);
                snap::raw::Decoder::new()
                    .decompress(block, unpacked)
                    .context("unpack snappy")?;
                let is_sound = crc32fast::hash(unpacked) == u32::from_be_bytes(*sum);
                ensure!(is_sound, "it is damaged: a block does not match its checksum");
            }
        }
        bounded(unpacked.len().try_into()?, MAX_BLOCK, "block")?;
        Ok(unpacked)
    }
}

fn bounded(n_bytes: i64, most: u64, part: &str) -> anyhow::Result<u64> {
    let n_bytes = u64::try_from(n_bytes)
        .ok()
        .context("it is damaged: a length is negative")?;
    ensure!(
        n_bytes <= most,
        "a {part} has {n_bytes} bytes, and at most {most} are read: write smaller {part}s"
    );
    Ok(n_bytes)
}

/// Reads `n_bytes` bytes into `to`. It grows as they arrive, so a false length reserves no memory.
fn bytes(input: &mut impl Read, n_bytes: u64, to: &mut Vec<u8>) -> anyhow::Result<()> {
    to.clear();
    input.take(n_bytes).read_to_end(to)?;
    ensure!(
        to.len() as u64 == n_bytes,
        "it ends early: its Avro is truncated, or still being written"
    );
    Ok(())
}

/// Reads a zigzag integer. `None` at the end of the file.
fn long_if_any(input: &mut impl Read) -> anyhow::Result<Option<i64>> {
    let mut first = [0];
    match input.read_exact(&mut first) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        read => {
            read?;
            long(&mut first.chain(input)).map(Some)
        }
    }
}

fn long(input: &mut impl Read) -> anyhow::Result<i64> {
    let mut number = 0_u64;
    for n in 0..10 {
        let mut byte = Vec::new();
        bytes(input, 1, &mut byte)?;
        let byte = byte.first().copied().unwrap_or_default();
        // The tenth byte has the last bit.
        if n == 9 && byte > 1 {
            break;
        }
        number |= u64::from(byte & 0x7f) << (7 * n);
        if byte < 0x80 {
            return Ok((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    bail!("it is damaged: a number has more than 64 bits")
}
