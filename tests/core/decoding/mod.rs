//! Both ways of decoding agree on the inputs that fuzzing found, and explanations of records of other shapes match their events.

mod both_ways;
mod encoded;
mod shapes;

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

/// Bounds on a file and on all files, so that the test stays fast.
const MAX_FILES: usize = 400;
const MAX_BYTES: usize = 200_000;

/// Calls back with each input of the corpus in this folder of `tests/data`.
fn each_input(folder: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(folder);
    let (mut n_files, mut n_bytes) = (0, 0);
    for entry in fs::read_dir(folder).expect("the corpus is there") {
        let path = entry.expect("it can be listed").path();
        let input = fs::read(&path).expect("it can be read");
        check(&input);
        n_files += 1;
        n_bytes += input.len();
    }
    assert!((50..=MAX_FILES).contains(&n_files), "{n_files} files");
    assert!(n_bytes <= MAX_BYTES, "{n_bytes} bytes");
}

#[test]
fn both_decoders_agree_on_the_fuzzing_corpus() {
    each_input("decoding", |input| {
        both_ways::check(input);
        shapes::check(input);
    });
}

#[test]
fn encoded_records_of_the_fuzzing_corpus_are_read_alike_both_ways() {
    each_input("encoded", encoded::check);
}

/// Files of events that the documents show.
fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/events");
    let entries = fs::read_dir(folder).expect("the samples are there");
    let paths = entries.map(|entry| entry.expect("they can be listed").path());
    let is_sample = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    let mut samples: Vec<PathBuf> = paths.filter(is_sample).collect();
    samples.sort();
    samples
}

#[test]
fn explanations_match_the_decoder_on_samples_of_presets() {
    assert!(samples().len() >= 3);
    for sample in samples() {
        shapes::check(&fs::read(sample).expect("it can be read"));
    }
}

/// A part of the record put elsewhere in it: keys and values change places, come twice, or end early.
type Move = (prop::sample::Index, prop::sample::Index, prop::sample::Index);

fn moved(record: &mut Vec<u8>, (from, n, to): Move) {
    let from = from.index(record.len() + 1);
    let end = from + n.index((record.len() - from).min(40) + 1);
    let part = record[from..end].to_vec();
    let to = to.index(record.len() + 1);
    let over = to + part.len().min(record.len() - to);
    // Half of them overwrite what is there.
    record.splice(to..if part.len().is_multiple_of(2) { to } else { over }, part);
}

proptest! {
    #[test]
    fn explanations_match_the_decoder_on_damaged_samples(
        line in any::<prop::sample::Index>(),
        moves in prop::collection::vec(any::<Move>(), 0..4),
        bytes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..2),
    ) {
        let samples = samples().into_iter().map(|path| fs::read_to_string(path).expect("UTF-8"));
        let text: String = samples.collect();
        let lines: Vec<&str> = text.lines().collect();
        let mut record = line.get(&lines).as_bytes().to_vec();
        moves.into_iter().for_each(|part| moved(&mut record, part));
        for (at, byte) in bytes {
            if !record.is_empty() {
                let at = at.index(record.len());
                record[at] = byte;
            }
        }
        shapes::check(&record);
    }
}
