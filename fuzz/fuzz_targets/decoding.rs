//! The decoder's short ways and its paths never disagree, whatever the bytes are.

#![no_main]

#[path = "../../tests/decoding/both_ways.rs"]
mod both_ways;

libfuzzer_sys::fuzz_target!(|input: &[u8]| both_ways::check(input));
