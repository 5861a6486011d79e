//! Records of any shape are read without a panic, and explained consistently, for any bytes.

#![no_main]

#[path = "../../tests/core/decoding/shapes.rs"]
mod shapes;

libfuzzer_sys::fuzz_target!(|input: &[u8]| shapes::check(input));
