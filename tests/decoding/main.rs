//! What fuzzing found worth keeping is read alike by both ways of the decoder.

mod both_ways;

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
        n_files += 1;
        n_bytes += input.len();
    }
    assert!((50..=MAX_FILES).contains(&n_files), "{n_files} files");
    assert!(n_bytes <= MAX_BYTES, "{n_bytes} bytes");
}
