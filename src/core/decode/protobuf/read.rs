//! Reads values by their paths. A message is walked once; the last value of each field counts.
//!
//! Occurrences of a singular message must have been merged: see [`super::merged`].

use std::collections::HashMap;

use super::super::name::FieldName;
use super::super::value::{Array, Notation, Object, Text, Value};
use super::MAX_DEPTH;
use super::schema::{Default, FieldType, Meaning, MessageType, ProtobufField, ProtobufSchema, Rule, Types};
use super::wire::{self, Raw, Wire};
use crate::engine::event::Reason;

/// Message or map.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum ProtobufObject<'a> {
    Message {
        types: &'a Types,
        of: &'a MessageType,
        bytes: &'a [u8],
        depth: u32,
    },
    Map(Extent<'a>),
}

/// Repeated field.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct ProtobufArray<'a>(pub Extent<'a>);

/// Part of a message that contains all values of a repeated field or map, maybe with other fields between them.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Extent<'a> {
    pub types: &'a Types,
    pub field: &'a ProtobufField,
    pub bytes: &'a [u8],
    /// Levels around its values.
    pub depth: u32,
}

/// Occurrences of a field in a message.
#[derive(Clone, Copy, std::default::Default)]
struct Occurrences<'a> {
    last: Option<Raw<'a>>,
    start: usize,
    end: usize,
}

impl<'a> ProtobufObject<'a> {
    /// Takes a payload as a message.
    ///
    /// # Errors
    /// [`Reason::WrongType`] if the message type is not an object.
    pub fn of_payload(schema: &'a ProtobufSchema, bytes: &'a [u8]) -> Result<ProtobufObject<'a>, Reason> {
        let (types, of) = (schema.types(), schema.root());
        match types.object(of, bytes, 0) {
            Some(Value::Object(Object::Protobuf(object))) => Ok(object),
            Some(_) => Err(Reason::WrongType),
            None => Err(Reason::Malformed),
        }
    }

    /// Calls `take` with each value that `find` accepts by its name, or by its name in JSON.
    ///
    /// # Errors
    /// [`Reason::Malformed`] if the bytes are not a message. Errors of `take` are passed on.
    pub fn each<W>(
        self,
        mut find: impl FnMut(FieldName<'_>) -> Option<W>,
        mut take: impl FnMut(W, Value<'a>) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        let ProtobufObject::Message {
            types,
            of,
            bytes,
            depth,
        } = self
        else {
            return self.entries(|name, value| {
                let name = name?;
                let name = FieldName {
                    text: &name,
                    hash: None,
                };
                find(name).map_or(Ok(()), |wanted| take(wanted, value))
            });
        };
        each_value(types, of, bytes, depth, |field, value| {
            let name = FieldName {
                text: &field.name,
                hash: Some(field.hash),
            };
            let json_name = field.json_name.as_ref();
            let json_name = json_name.map(|(name, hash)| FieldName {
                text: name,
                hash: Some(*hash),
            });
            for wanted in [Some(name), json_name]
                .into_iter()
                .flatten()
                .filter_map(&mut find)
            {
                take(wanted, value.ok_or(Reason::Malformed)?)?;
            }
            Ok(())
        })
    }

    /// Calls back with the name and the value of each field, or with each entry of a map.
    ///
    /// # Errors
    /// [`Reason::Malformed`] if the bytes are not a message. Errors of the callback are passed on.
    pub fn entries(
        self,
        mut each: impl FnMut(Result<Text<'a>, Reason>, Value<'a>) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        match self {
            ProtobufObject::Message {
                types,
                of,
                bytes,
                depth,
            } => each_value(types, of, bytes, depth, |field, value| {
                each(Ok(Text::Borrowed(&field.name)), value.ok_or(Reason::Malformed)?)
            }),
            ProtobufObject::Map(extent) => {
                for (name, value) in extent.map_entries().ok_or(Reason::Malformed)? {
                    each(Ok(name), value)?;
                }
                Ok(())
            }
        }
    }

    /// Returns a kind and an index that together identify its type within the schema.
    pub fn type_id(self) -> (u8, u32) {
        match self {
            ProtobufObject::Message { of, .. } => (0, of.id),
            ProtobufObject::Map(extent) => (1, extent.field.id),
        }
    }

    pub fn bytes(self) -> &'a [u8] {
        match self {
            ProtobufObject::Message { bytes, .. } => bytes,
            ProtobufObject::Map(extent) => extent.bytes,
        }
    }
}

/// Calls back with each field that has a value; `None` for one that is malformed.
fn each_value<'a>(
    types: &'a Types,
    of: &'a MessageType,
    bytes: &'a [u8],
    depth: u32,
    mut each: impl FnMut(&'a ProtobufField, Option<Value<'a>>) -> Result<(), Reason>,
) -> Result<(), Reason> {
    let occurrences = occurrences(of, bytes).ok_or(Reason::Malformed)?;
    for (field, found) in of.fields.iter().zip(occurrences) {
        let value = match (field.is_repeated(), found.last) {
            (true, _) => {
                let bytes = &bytes[found.start..found.end];
                Some(Some(
                    Extent {
                        types,
                        field,
                        bytes,
                        depth,
                    }
                    .value(),
                ))
            }
            (false, Some(raw)) => types.singular(field, raw, depth),
            (false, None) => types.absent(field).map(Some),
        };
        if let Some(value) = value {
            each(field, value)?;
        }
    }
    Ok(())
}

/// Finds all fields of a message. `None` if its bytes are malformed.
fn occurrences<'a>(of: &MessageType, bytes: &'a [u8]) -> Option<Vec<Occurrences<'a>>> {
    let mut all = vec![Occurrences::default(); of.fields.len()];
    // Of each oneof, the place of the field that came last.
    let mut last_of = vec![None; of.n_oneofs];
    let mut wire = Wire::of(bytes);
    while !wire.is_at_end() {
        let start = bytes.len() - wire.rest.len();
        let tag = wire.tag()?;
        let raw = wire.raw(tag)?;
        let Some(place) = of.place(wire::number(tag)) else {
            continue;
        };
        let field = &of.fields[place];
        if !field.accepts(wire::wire_type(tag)) {
            continue;
        }
        let found = &mut all[place];
        if found.last.is_none() {
            found.start = start;
        }
        found.end = bytes.len() - wire.rest.len();
        found.last = Some(raw);
        if let Some(oneof) = field.oneof {
            last_of[oneof as usize] = Some(place);
        }
    }
    for (place, field) in of.fields.iter().enumerate() {
        let last = field.oneof.and_then(|oneof| last_of[oneof as usize]);
        if last.is_some_and(|last| last != place) {
            all[place].last = None;
        }
    }
    Some(all)
}

impl<'a> Extent<'a> {
    /// Returns the array or object of its values.
    pub fn value(self) -> Value<'a> {
        match self.field.rule {
            Rule::Map => Value::Object(Object::Protobuf(ProtobufObject::Map(self))),
            _ => Value::Array(Array::Protobuf(ProtobufArray(self))),
        }
    }

    /// Returns the entries of a map. Of equal keys, the last one counts. `None` if one is malformed.
    fn map_entries(self) -> Option<Vec<(Text<'a>, Value<'a>)>> {
        let Extent {
            types,
            field,
            bytes,
            depth,
        } = self;
        let entry_type = types.message(field.of.message()?);
        let (key, value) = (entry_type.field(1)?, entry_type.field(2)?);
        let mut entries: Vec<(Text, Value)> = Vec::new();
        let mut places = HashMap::new();
        let mut wire = Wire::of(bytes);
        while !wire.is_at_end() {
            let tag = wire.tag()?;
            let raw = wire.raw(tag)?;
            let (Raw::Sized(entry), true) = (raw, wire::number(tag) == field.number) else {
                continue;
            };
            let found = occurrences(entry_type, entry)?;
            let [found_key, found_value] = [1, 2].map(|number| {
                let place = entry_type.place(number);
                place.and_then(|place| found[place].last)
            });
            let name = match found_key {
                Some(raw) => types.value(key.of, raw, depth + 1)?,
                None => types.zero(key.of),
            };
            let name = match name {
                Value::Bool(_) => name.word().ok()?,
                name => name.text_or_integer().ok()?,
            };
            let value = match found_value {
                Some(raw) => types.value(value.of, raw, depth + 1)?,
                None => match value.of.message() {
                    Some(_) => types.value(value.of, Raw::Sized(&[]), depth + 1)?,
                    None => types.zero(value.of),
                },
            };
            match places.get(&*name) {
                Some(place) => entries[*place] = (name, value),
                None => {
                    places.insert(name.to_string(), entries.len());
                    entries.push((name, value));
                }
            }
        }
        Some(entries)
    }
}

impl<'a> ProtobufArray<'a> {
    pub fn elements(self) -> ProtobufElements<'a> {
        ProtobufElements {
            extent: self.0,
            wire: Wire::of(self.0.bytes),
            packed: Wire::of(&[]),
            is_at_end: false,
        }
    }
}

/// Elements of a repeated field. Bytes that are malformed yield one [`Value::Malformed`], and end the iteration.
pub(in super::super) struct ProtobufElements<'a> {
    extent: Extent<'a>,
    wire: Wire<'a>,
    /// Values that are packed into one.
    packed: Wire<'a>,
    is_at_end: bool,
}

impl<'a> ProtobufElements<'a> {
    /// `Some(None)` at the end, and `None` for malformed bytes.
    fn step(&mut self) -> Option<Option<Value<'a>>> {
        let Extent {
            types, field, depth, ..
        } = self.extent;
        loop {
            if !self.packed.is_at_end() {
                let raw = self.packed.raw(u32::from(field.of.wire_type()))?;
                return Some(Some(types.value(field.of, raw, depth)?));
            }
            if self.wire.is_at_end() {
                return Some(None);
            }
            let tag = self.wire.tag()?;
            let raw = self.wire.raw(tag)?;
            if wire::number(tag) != field.number || !field.accepts(raw.wire_type()) {
                continue;
            }
            match raw {
                Raw::Sized(packed) if field.is_packable() => self.packed = Wire::of(packed),
                raw => return Some(Some(types.value(field.of, raw, depth)?)),
            }
        }
    }
}

impl<'a> Iterator for ProtobufElements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if self.is_at_end {
            return None;
        }
        let step = self.step();
        self.is_at_end = !matches!(step, Some(Some(_)));
        match step {
            Some(value) => value,
            None => Some(Value::Malformed),
        }
    }
}

impl Types {
    /// Returns the value of a singular field. `None` if it counts as absent, and `Some(None)` if it is malformed.
    #[inline]
    pub fn singular<'a>(
        &'a self,
        field: &'a ProtobufField,
        raw: Raw<'a>,
        depth: u32,
    ) -> Option<Option<Value<'a>>> {
        let value = self.value(field.of, raw, depth);
        match (&field.rule, value) {
            // Without presence, the zero of its type is the same as no value.
            (Rule::Implicit, Some(Value::Text(b"") | Value::Bytes(b"", _))) => None,
            (Rule::Implicit, Some(Value::Integer(0))) => Some(Some(Value::Zero)),
            (_, value) => Some(value),
        }
    }

    /// Returns the value of a singular field that is not in its message; `None` if it is absent.
    pub fn absent<'a>(&'a self, field: &'a ProtobufField) -> Option<Value<'a>> {
        match &field.rule {
            Rule::Implicit => match self.zero(field.of) {
                Value::Text(b"") | Value::Bytes(b"", _) => None,
                Value::Integer(0) => Some(Value::Zero),
                zero => Some(zero),
            },
            Rule::Optional(default) => Some(match default.as_ref()? {
                Default::Bool(flag) => Value::Bool(*flag),
                Default::Integer(number) => Value::Integer(*number),
                Default::Unsigned(number) => unsigned(*number),
                Default::Float(number) => Value::Float(*number),
                Default::Text(text) => Value::Text(text.as_bytes()),
                Default::Bytes(bytes) => Value::Bytes(bytes, Notation::Hex),
            }),
            Rule::Repeated | Rule::Map => None,
        }
    }

    /// Returns the zero of a scalar type.
    fn zero(&self, of: FieldType) -> Value<'_> {
        match of {
            FieldType::Bool => Value::Bool(false),
            FieldType::Float | FieldType::Double => Value::Float(0.0),
            FieldType::Text => Value::Text(b""),
            FieldType::Bytes => Value::Bytes(b"", Notation::Hex),
            FieldType::Enum(id) => Value::Text(self.first_of(id).1.as_bytes()),
            _ => Value::Integer(0),
        }
    }

    /// Returns the value of a type, `depth` levels inside the record; `None` if its bytes are malformed.
    #[inline]
    pub fn value<'a>(&'a self, of: FieldType, raw: Raw<'a>, depth: u32) -> Option<Value<'a>> {
        Some(match (of, raw) {
            (FieldType::Text, Raw::Sized(text)) => Value::Text(text),
            (FieldType::Int64, Raw::Varint(number)) => Value::Integer(number as i64),
            (FieldType::Int32, Raw::Varint(number)) => Value::Integer(i64::from(number as i32)),
            (FieldType::Enum(id), Raw::Varint(number)) => match self.name_of(id, number as i32) {
                Some(name) => Value::Text(name.as_bytes()),
                None => Value::Integer(i64::from(number as i32)),
            },
            (FieldType::Message(id), Raw::Sized(bytes))
            | (FieldType::Group(id), Raw::Sized(bytes) | Raw::Group(bytes)) => {
                return self.object(self.message(id), bytes, depth + 1);
            }
            (FieldType::Bool, Raw::Varint(number)) => Value::Bool(number != 0),
            (FieldType::Uint64, Raw::Varint(number)) | (FieldType::Fixed64, Raw::Fixed64(number)) => {
                unsigned(number)
            }
            (FieldType::Uint32, Raw::Varint(number)) => Value::Integer(i64::from(number as u32)),
            (FieldType::Sint64, Raw::Varint(number)) => Value::Integer(zigzag(number)),
            (FieldType::Sint32, Raw::Varint(number)) => Value::Integer(zigzag(u64::from(number as u32))),
            (FieldType::Sfixed64, Raw::Fixed64(number)) => Value::Integer(number as i64),
            (FieldType::Fixed32, Raw::Fixed32(number)) => Value::Integer(i64::from(number)),
            (FieldType::Sfixed32, Raw::Fixed32(number)) => Value::Integer(i64::from(number as i32)),
            (FieldType::Float, Raw::Fixed32(bits)) => Value::Float(f32::from_bits(bits).into()),
            (FieldType::Double, Raw::Fixed64(bits)) => Value::Float(f64::from_bits(bits)),
            (FieldType::Bytes, Raw::Sized(bytes)) => Value::Bytes(bytes, Notation::Hex),
            // Fields have been selected by their wire types.
            _ => return None,
        })
    }

    /// Returns the value of a message.
    fn object<'a>(&'a self, of: &'a MessageType, bytes: &'a [u8], depth: u32) -> Option<Value<'a>> {
        if depth > MAX_DEPTH {
            return None;
        }
        let extent = || {
            let field = of.fields.first()?;
            Some(Extent {
                types: self,
                field,
                bytes,
                depth,
            })
        };
        Some(match of.meaning {
            Meaning::Fields => Value::Object(Object::Protobuf(ProtobufObject::Message {
                types: self,
                of,
                bytes,
                depth,
            })),
            Meaning::Timestamp { seconds, nanos } => {
                let found = occurrences(of, bytes)?;
                let number = |number| {
                    let place = of.place(number)?;
                    match found[place].last {
                        None => Some(0),
                        Some(raw) => self.value(of.fields[place].of, raw, depth)?.integer().ok(),
                    }
                };
                let (seconds, nanos): (i64, i64) = (number(seconds)?, number(nanos)?);
                let ms = seconds
                    .saturating_mul(1_000)
                    .saturating_add(nanos.div_euclid(1_000_000));
                Value::Time(ms)
            }
            Meaning::Wrapper => {
                let found = occurrences(of, bytes)?;
                let field = of.fields.first()?;
                match found[0].last {
                    Some(raw) => self.value(field.of, raw, depth)?,
                    None => self.zero(field.of),
                }
            }
            Meaning::Decimal => {
                let found = occurrences(of, bytes)?;
                let of_field = |number| found.get(of.place(number)?)?.last;
                let number = match of_field(1) {
                    Some(Raw::Sized(number)) => number,
                    _ => &[],
                };
                let scale = match of_field(3) {
                    Some(Raw::Varint(scale)) => u32::try_from(scale as i32).ok()?,
                    _ => 0,
                };
                Value::Bytes(number, Notation::Decimal { scale })
            }
            // Their only field.
            Meaning::Struct | Meaning::JsonList => {
                occurrences(of, bytes)?;
                extent()?.value()
            }
            Meaning::JsonValue => {
                let found = occurrences(of, bytes)?;
                let present = of.fields.iter().zip(found);
                let mut present = present.filter_map(|(field, found)| Some((field, found.last?)));
                match present.next_back() {
                    None => Value::Null,
                    Some((field, raw)) => match self.value(field.of, raw, depth)? {
                        // The only value of its enum.
                        _ if matches!(field.of, FieldType::Enum(_)) => Value::Null,
                        Value::Float(number) => json_number(number),
                        value => value,
                    },
                }
            }
        })
    }
}

/// Number of JSON, which has no type of its own for integers.
fn json_number<'a>(number: f64) -> Value<'a> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.fract() == 0.0 && number.abs() <= EXACT {
        true => Value::Integer(number as i64),
        false => Value::Float(number),
    }
}

fn unsigned<'a>(number: u64) -> Value<'a> {
    match i64::try_from(number) {
        Ok(number) => Value::Integer(number),
        Err(_) => Value::Unsigned(number),
    }
}

fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

impl PartialEq for ProtobufObject<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.type_id() == other.type_id() && std::ptr::eq(self.bytes(), other.bytes())
    }
}

impl PartialEq for ProtobufArray<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.field.id == other.0.field.id && std::ptr::eq(self.0.bytes, other.0.bytes)
    }
}
