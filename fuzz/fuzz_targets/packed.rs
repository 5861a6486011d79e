//! Lines are read alike in any compression. Damaged input is refused with a message, whatever its unpacked size.

#![no_main]

use std::hash::{DefaultHasher, Hasher as _};
use std::io::Write as _;

use abgauge_core::evaluate::source::{EventFields, read_stream};
use abgauge_core::evaluate::{Evaluator, Options};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Summary of the records, since an archive bomb has many.
#[derive(Debug, PartialEq)]
struct Records {
    n: u64,
    last: u64,
    hash: u64,
}

fn records(input: &[u8]) -> Result<Records, String> {
    let mut hasher = DefaultHasher::new();
    let (mut n, mut last) = (0, 0);
    let read = read_stream(input, &EventFields::default(), |number, record| {
        assert!(number > last, "line {number} comes after {last}");
        if record.schema.is_none() {
            assert_eq!(record.bytes, record.bytes.trim_ascii(), "without white space around it");
        }
        (n, last) = (n + 1, number);
        hasher.write_u64(number);
        hasher.write(record.bytes);
    });
    read.map_err(|error| format!("{error:#}"))?;
    Ok(Records {
        n,
        last,
        hash: hasher.finish(),
    })
}

fn gzip(input: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(input).expect("memory takes it");
    packed.finish().expect("memory takes it")
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let records_of_input = records(input);
    if let Err(error) = &records_of_input {
        assert!(!error.is_empty());
    }
    let zstd = zstd::encode_all(input, 1).expect("memory takes it");
    for packed in [gzip(input), zstd] {
        match (records(&packed), &records_of_input) {
            (Ok(unpacked), Ok(plain)) => assert_eq!(unpacked, *plain),
            (Ok(unpacked), Err(error)) => panic!("{unpacked:?} is packed, and plain: {error}"),
            // The unpacked content is itself compressed, or a file of another type.
            (Err(error), _) => assert!(error.contains(" within "), "{error}"),
        }
    }
    let mut evaluator = Evaluator::new(&Options::default());
    let read = evaluator.read("input", input);
    assert_eq!(read.is_ok(), records_of_input.is_ok());
    evaluator.finish();
});
