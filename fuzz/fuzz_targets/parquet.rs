//! Every Parquet file is read or refused with a message, in our own format and by the paths of another one.

#![no_main]

mod scratch;

use std::sync::LazyLock;

use abgauge_core::decode::shape::{Paths, Shape};
use abgauge_core::evaluate::{Evaluator, Options};
use scratch::Scratch;

static FILE: LazyLock<Scratch> = LazyLock::new(Scratch::new);

/// Our own format, and one with objects as items and with a nested field.
static OPTIONS: LazyLock<[Options; 2]> = LazyLock::new(|| {
    let mut shape = Shape::default();
    shape.served.item_id = Paths::parse("id").ok();
    shape.served.request_id = Paths::parse("ctx.request_id").expect("a path");
    let mapped = Options {
        shape: Some(shape),
        ..Options::default()
    };
    [Options::default(), mapped]
});

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
        for options in &*OPTIONS {
            let mut evaluator = Evaluator::new(options);
            match evaluator.read_file(FILE.path(), &|_| {}) {
                Ok(_) => drop(evaluator.finish()),
                Err(error) => assert!(!format!("{error:#}").is_empty()),
            }
        }
    }
);
