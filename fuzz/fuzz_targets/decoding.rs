//! The decoder's shortcuts agree with its general paths for any bytes.

#![no_main]

#[path = "../../tests/core/decoding/both_ways.rs"]
mod both_ways;

libfuzzer_sys::fuzz_target!(|input: &[u8]| both_ways::check(input));
