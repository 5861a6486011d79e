//! Every Parquet file is read or refused with a message.

#![no_main]

mod scratch;

use std::sync::LazyLock;

use abgauge_core::evaluate::{Evaluator, Options};
use scratch::Scratch;

static FILE: LazyLock<Scratch> = LazyLock::new(Scratch::new);

/// Ignores panics of the Parquet library, which occur for some damaged files. The program catches and reports them, so they
/// are not findings. A panic that is not caught still ends the fuzzer.
fn pass_over_panics_of_others() {
    let abort = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let file = panic.location().map_or("", |location| location.file());
        let is_of_others = file.contains("/registry/src/") || file.starts_with("/rustc/");
        if !is_of_others {
            abort(panic);
        }
    }));
}

libfuzzer_sys::fuzz_target!(
    init: pass_over_panics_of_others(),
    |input: &[u8]| {
        FILE.fill(input);
        let mut evaluator = Evaluator::new(&Options::default());
        if let Err(error) = evaluator.read_file(FILE.path(), &|_| {}) {
            assert!(!format!("{error:#}").is_empty());
            return;
        }
        evaluator.finish();
    }
);
