//! Avro and Protobuf records are read the same directly and by paths, for any bytes.

#![no_main]

#[path = "../../tests/core/decoding/encoded.rs"]
mod encoded;

libfuzzer_sys::fuzz_target!(|input: &[u8]| encoded::check(input));
