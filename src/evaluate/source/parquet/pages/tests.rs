use std::io::Write as _;
use std::sync::Arc;

use flate2::write::GzEncoder;
use parquet::basic::{GzipLevel, Type as Physical};
use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type};

use super::*;

/// Of a dictionary of two entries, as pyarrow writes it.
const DICTIONARY: &[u8] = b"\x15\x04\x15\x26\x15\x4a\x4c\x15\x04\x15\x00\x12\x00\x00";
/// Of a page of three values, in the second form, with empty statistics.
const VALUES: &[u8] =
    b"\x15\x06\x15\x0a\x15\x0a\x5c\x15\x06\x15\x00\x15\x06\x15\x10\x15\x04\x15\x00\x12\x1c\x00\x00\x00";

#[test]
fn a_header_says_what_its_page_takes() {
    let dictionary = Header {
        n_bytes: 19,
        n_packed: 37,
        n_entries: 2,
        ..Header::default()
    };
    assert_eq!(Header::read(&mut &*DICTIONARY).unwrap(), dictionary);
    let values = Header {
        n_bytes: 5,
        n_packed: 5,
        n_values: 3,
        n_levels: 2,
        ..Header::default()
    };
    assert_eq!(Header::read(&mut &*VALUES).unwrap(), values);
}

#[test]
fn what_no_header_has_is_none() {
    for bytes in [
        &b""[..],
        b"\x15\x04",
        // A size in the form of a text, and below zero.
        b"\x15\x04\x18\x01x\x15\x4a\x00",
        b"\x15\x04\x15\x01\x15\x4a\x00",
        // A list, and structs without an end.
        b"\x15\x04\x15\x26\x15\x4a\x69\x15\x02\x00",
        &b"\x5c\x8c".repeat(50),
        // Ids beyond those that there are.
        &b"\xf5\x00".repeat(3000),
    ] {
        assert!(Header::read(&mut &*bytes).is_err(), "{bytes:x?}");
    }
}

/// What becomes of a column chunk of these bytes.
fn outcome(compression: Compression, bytes: &[u8]) -> Result<(), String> {
    let kind = Type::primitive_type_builder("item", Physical::BYTE_ARRAY)
        .build()
        .unwrap();
    let column = ColumnDescriptor::new(Arc::new(kind), 0, 0, ColumnPath::from("item"));
    let column = ColumnChunkMetaData::builder(Arc::new(column))
        .set_compression(compression)
        .set_data_page_offset(0)
        .set_total_compressed_size(bytes.len() as i64)
        .build()
        .unwrap();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    check(&file, &column).map_err(|error| error.to_string())
}

/// The header of a page of values, or of a dictionary.
fn header(is_dictionary: bool, n_bytes: usize, n_packed: usize, n_values: usize) -> Vec<u8> {
    let size = |value: usize| {
        let mut rest = 2 * value;
        let mut bytes = vec![0x15];
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    };
    let (kind, inner) = if is_dictionary { (2, 0x4c) } else { (0, 0x2c) };
    [
        size(kind),
        size(n_bytes),
        size(n_packed),
        vec![inner],
        size(n_values),
        vec![0, 0],
    ]
    .concat()
}

#[test]
fn pages_are_looked_at_to_the_last() {
    let page = [header(false, 5, 3, 7), b"abc".to_vec()].concat();
    let plain = Compression::UNCOMPRESSED;
    assert_eq!(outcome(plain, &page.repeat(3)), Ok(()));
    let damaged = Damaged.to_string();
    assert_eq!(
        outcome(plain, &[&page.repeat(2)[..], &page[..page.len() - 1]].concat()),
        Err(damaged.clone())
    );
    assert_eq!(outcome(plain, &[&page[..], b"\x18"].concat()), Err(damaged));
}

/// The reader takes memory for what a page says before it finds that it is not so: fuzzing ended by these.
#[test]
fn a_page_that_says_it_is_huge_is_refused_before_it_is_unpacked() {
    let plain = Compression::UNCOMPRESSED;
    let huge = "column item has a page of more than 256 MiB: write smaller ones".to_owned();
    let most = MAX_BYTES as usize;
    assert_eq!(outcome(plain, &header(false, most, 0, 1)), Ok(()));
    assert_eq!(outcome(plain, &header(false, most + 1, 0, 1)), Err(huge.clone()));
    assert_eq!(outcome(plain, &header(false, 100, 0, most / 4 + 1)), Err(huge));
    assert_eq!(outcome(plain, &header(true, 100, 0, 25)), Ok(()));
    assert_eq!(
        outcome(plain, &header(true, 100, 0, 26)),
        Err(Damaged.to_string())
    );
}

#[test]
fn a_page_that_unpacks_to_more_than_it_says_is_refused() {
    let mebibyte = {
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(&vec![0; 1 << 20]).unwrap();
        packed.finish().unwrap()
    };
    let gzip = Compression::GZIP(GzipLevel::default());
    let page = |n: usize| {
        let packed = mebibyte.repeat(n);
        [header(false, 100, packed.len(), 1), packed].concat()
    };
    let told = "column item has a page that may unpack to more than 256 MiB: write smaller ones".to_owned();
    assert_eq!(outcome(gzip, &page(256)), Ok(()));
    assert_eq!(outcome(gzip, &page(257)), Err(told.clone()));
    let lz4 = [header(false, 100, 2 << 20, 1), vec![0; 2 << 20]].concat();
    assert_eq!(outcome(Compression::LZ4, &lz4), Err(told));
    assert_eq!(outcome(Compression::LZ4_RAW, &lz4), Ok(()));
}
