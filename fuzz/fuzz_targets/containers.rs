//! Every Avro container file is read or refused with a message.

#![no_main]

mod scratch;

use std::sync::LazyLock;

use abgauge_core::evaluate::{Evaluator, Options};
use scratch::Scratch;

static FILE: LazyLock<Scratch> = LazyLock::new(Scratch::new);

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    FILE.fill(&[b"Obj\x01", input].concat());
    let mut evaluator = Evaluator::new(&Options::default());
    match evaluator.read_file(FILE.path(), &|_| {}) {
        Ok(_) => drop(evaluator.finish()),
        Err(error) => assert!(!format!("{error:#}").is_empty()),
    }
});
