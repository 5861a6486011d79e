//! Merges the parts of messages that occur more than once in a record. Almost no record needs it, so others are only checked.
//!
//! Protobuf allows a message to be split: the fields of all its occurrences are those of one message, which is the same as the
//! bytes of all occurrences in a row. If a oneof has several values, the last one counts, and earlier messages are dropped.

use prost::encoding::encode_varint;

use super::MAX_DEPTH;
use super::schema::{MessageType, ProtobufSchema, Types};
use super::wire::{self, GROUP, Raw, SIZED, Wire};

/// Returns the bytes of a record with each singular message merged; `None` if none occurs twice.
pub(in super::super) fn merged(schema: &ProtobufSchema, bytes: &[u8]) -> Option<Vec<u8>> {
    let (types, root) = (schema.types(), schema.root());
    if !occurs_twice(types, root, bytes, 0) {
        return None;
    }
    let mut to = Vec::with_capacity(bytes.len());
    merge(types, root, bytes, 0, &mut to);
    Some(to)
}

/// Returns whether a singular message occurs twice. Malformed bytes are left to their reader.
fn occurs_twice(types: &Types, of: &MessageType, bytes: &[u8], depth: u32) -> bool {
    let mut seen = 0_u128;
    let mut wire = Wire::of(bytes);
    while !wire.is_at_end() && depth <= MAX_DEPTH {
        let Some(tag) = wire.tag() else { return false };
        let Some(raw) = wire.raw(tag) else { return false };
        let Some(place) = of.place(wire::number(tag)) else {
            continue;
        };
        let field = &of.fields[place];
        let (Some(inner), Raw::Sized(bytes) | Raw::Group(bytes)) = (field.of.message(), raw) else {
            continue;
        };
        if !field.accepts(raw.wire_type()) {
            continue;
        }
        if !field.is_repeated() {
            // Fields beyond the width of `seen` count as if they had occurred.
            let bit = 1_u128.checked_shl(place as u32).unwrap_or(0);
            if bit == 0 || seen & bit != 0 {
                return true;
            }
            seen |= bit;
        }
        if occurs_twice(types, types.message(inner), bytes, depth + 1) {
            return true;
        }
    }
    false
}

/// Message of a singular field, on its way into the merged record.
struct Pending {
    place: usize,
    tag: u32,
    bytes: Vec<u8>,
    is_broken: bool,
}

impl Pending {
    /// Adds an occurrence. A later one must not complete a field that this one cuts off.
    fn add(&mut self, bytes: &[u8]) {
        if !self.is_broken {
            self.bytes.extend(bytes);
            self.is_broken = !is_whole(bytes);
        }
    }
}

fn is_whole(bytes: &[u8]) -> bool {
    let mut wire = Wire::of(bytes);
    while !wire.is_at_end() {
        if wire.tag().and_then(|tag| wire.raw(tag)).is_none() {
            return false;
        }
    }
    true
}

fn merge(types: &Types, of: &MessageType, bytes: &[u8], depth: u32, to: &mut Vec<u8>) {
    let mut pending: Vec<Pending> = Vec::new();
    let mut wire = Wire::of(bytes);
    while !wire.is_at_end() {
        let all = wire.rest;
        let read = wire.tag().and_then(|tag| Some((tag, wire.raw(tag)?)));
        let (Some((tag, raw)), true) = (read, depth <= MAX_DEPTH) else {
            // Malformed from here on, which the reader finds, too.
            to.extend(all);
            break;
        };
        let written = &all[..all.len() - wire.rest.len()];
        let place = of.place(wire::number(tag));
        let Some(place) = place.filter(|place| of.fields[*place].accepts(raw.wire_type())) else {
            to.extend(written);
            continue;
        };
        let field = &of.fields[place];
        if field.oneof.is_some() {
            pending.retain(|earlier| earlier.place == place || of.fields[earlier.place].oneof != field.oneof);
        }
        match (field.of.message(), raw) {
            (Some(inner), Raw::Sized(bytes) | Raw::Group(bytes)) if field.is_repeated() => {
                let mut merged = Vec::new();
                merge(types, types.message(inner), bytes, depth + 1, &mut merged);
                write(tag, &merged, to);
            }
            (Some(_), Raw::Sized(bytes) | Raw::Group(bytes)) => {
                let parts = pending.iter_mut().find(|pending| pending.place == place);
                let parts = match parts {
                    Some(parts) => parts,
                    None => {
                        pending.push(Pending {
                            place,
                            tag,
                            bytes: Vec::new(),
                            is_broken: false,
                        });
                        pending.last_mut().expect("it was just pushed")
                    }
                };
                parts.add(bytes);
            }
            _ => to.extend(written),
        }
    }
    for Pending {
        place, tag, bytes, ..
    } in pending
    {
        let Some(inner) = of.fields[place].of.message() else {
            continue;
        };
        let mut merged = Vec::new();
        merge(types, types.message(inner), &bytes, depth + 1, &mut merged);
        write(tag, &merged, to);
    }
}

/// Writes a message behind its tag.
fn write(tag: u32, bytes: &[u8], to: &mut Vec<u8>) {
    encode_varint(tag.into(), to);
    match wire::wire_type(tag) {
        GROUP => {
            to.extend(bytes);
            encode_varint((tag + 1).into(), to);
        }
        _ => {
            debug_assert_eq!(wire::wire_type(tag), SIZED);
            encode_varint(bytes.len() as u64, to);
            to.extend(bytes);
        }
    }
}
