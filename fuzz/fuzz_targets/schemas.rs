//! A schema from a registry or a file is read, or refused with a message.
//!
//! The first byte selects Avro, the source of a Protobuf file, or a descriptor set.

#![no_main]

use abgauge_core::decode::schema::{AvroSchema, ProtobufFile};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((first, schema)) = input.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(schema);
    match first % 3 {
        0 => drop(AvroSchema::parse(&text).map_err(|fault| assert!(!fault.to_string().is_empty()))),
        1 => drop(ProtobufFile::parse(&text, &[]).map_err(|fault| assert!(!fault.to_string().is_empty()))),
        _ => drop(ProtobufFile::of_descriptors(schema).map_err(|fault| assert!(!fault.to_string().is_empty()))),
    }
});
