//! What fuzzing found worth keeping is read alike by both ways of the decoder; and records of other shapes are explained as
//! they are read.

mod both_ways;
mod shapes;

use std::fs;
use std::path::Path;

/// Neither a file nor all of them grow beyond what is read in a moment.
const MAX_FILES: usize = 300;
const MAX_BYTES: usize = 200_000;

#[test]
fn the_corpus_of_fuzzing_is_read_alike_by_both_ways() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/decoding");
    let (mut n_files, mut n_bytes) = (0, 0);
    for entry in fs::read_dir(folder).expect("the corpus is there") {
        let path = entry.expect("it can be listed").path();
        let input = fs::read(&path).expect("it can be read");
        both_ways::check(&input);
        shapes::check(&input);
        n_files += 1;
        n_bytes += input.len();
    }
    assert!((50..=MAX_FILES).contains(&n_files), "{n_files} files");
    assert!(n_bytes <= MAX_BYTES, "{n_bytes} bytes");
}

#[test]
fn the_samples_of_the_presets_are_explained_as_they_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/events");
    let mut n_files = 0;
    for entry in fs::read_dir(folder).expect("the samples are there") {
        let path = entry.expect("they can be listed").path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            shapes::check(&fs::read(path).expect("they can be read"));
            n_files += 1;
        }
    }
    assert!(n_files >= 3, "{n_files} files");
}
