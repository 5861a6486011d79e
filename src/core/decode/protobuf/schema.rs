//! Tables of message types, made once from their descriptors.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use prost::Message as _;
use xxhash_rust::xxh3::xxh3_64;

use super::super::avro::SchemaFault;
use super::super::mapped::{Plans, ProtobufPlan};
use super::super::name::name_hash;
use super::super::schema::Schema;
use super::descriptors::{
    EnumDescriptor, Features, FieldDescriptor, FileDescriptor, FileSet, MessageDescriptor,
};
use super::imports;
use super::wire::{FIXED32, FIXED64, GROUP, SIZED, VARINT};

/// Message types of a `.proto` file and of the files that it imports.
#[derive(Debug)]
pub struct ProtobufFile {
    messages: Vec<Arc<Schema>>,
    by_name: HashMap<String, usize>,
    /// Message types of the main file, as in its text.
    main: Vec<Nesting>,
}

/// Message type, and those inside it.
#[derive(Debug)]
struct Nesting {
    /// Index into the message types of the file.
    message: usize,
    inner: Vec<Nesting>,
}

/// One message type of a file.
#[derive(Debug)]
pub struct ProtobufSchema {
    name: String,
    /// Hash of its file and name.
    hash: u64,
    root: u32,
    types: Arc<Types>,
    plans: Plans<ProtobufPlan>,
}

/// All types of a file.
#[derive(Debug, Default)]
pub(in super::super) struct Types {
    pub messages: Vec<MessageType>,
    pub enums: Vec<Vec<(i32, String)>>,
}

#[derive(Debug)]
pub(in super::super) struct MessageType {
    pub id: u32,
    pub name: String,
    pub meaning: Meaning,
    /// Ordered by number.
    pub fields: Vec<ProtobufField>,
    pub n_oneofs: usize,
    is_map_entry: bool,
}

/// Meaning of a message. The numbers are fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Meaning {
    Fields,
    Timestamp {
        seconds: u32,
        nanos: u32,
    },
    /// Message around one value.
    Wrapper,
    /// Decimal of Confluent's types.
    Decimal,
    /// Object, value and array of JSON.
    Struct,
    JsonValue,
    JsonList,
}

#[derive(Debug)]
pub(in super::super) struct ProtobufField {
    /// Index over all fields of all types.
    pub id: u32,
    pub number: u32,
    pub name: String,
    pub hash: u64,
    /// Its name in JSON, if that is another one and no other field has it.
    pub json_name: Option<(String, u64)>,
    pub of: FieldType,
    pub rule: Rule,
    /// Index of its oneof.
    pub oneof: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum FieldType {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Sfixed32,
    Fixed64,
    Sfixed64,
    Float,
    Double,
    Text,
    Bytes,
    Enum(u32),
    Message(u32),
    /// Message that is encoded as a group.
    Group(u32),
}

#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Rule {
    /// Value without presence: an absent one is the zero of its type.
    Implicit,
    /// Value with presence, and its default if it has one.
    Optional(Option<Default>),
    Repeated,
    /// Repeated entries, which are messages with a key and a value.
    Map,
}

/// Default of proto2.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) enum Default {
    Bool(bool),
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl ProtobufFile {
    /// Parses schema text, as a registry returns it, with the files that it imports: their names in `import`, and their texts.
    ///
    /// # Errors
    /// Fails if the text is not a `.proto` file, or imports a file that is not given.
    pub fn parse(text: &str, imports: &[(String, String)]) -> Result<ProtobufFile, SchemaFault> {
        ProtobufFile::of_descriptors(&imports::compile(text, imports)?)
    }

    /// Reads a descriptor set, as `protoc --descriptor_set_out` or `buf build` write it. Its last file is the main one. A field
    /// with a type from a file that is not in the set is not read.
    ///
    /// # Errors
    /// Fails if the bytes are not a descriptor set.
    pub fn of_descriptors(bytes: &[u8]) -> Result<ProtobufFile, SchemaFault> {
        let mut set = FileSet::decode(bytes)
            .map_err(|error| SchemaFault(format!("is not a set of Protobuf descriptors: {error}")))?;
        let Some(main) = set.files.pop() else {
            return Err(SchemaFault(
                "is a set of Protobuf descriptors without a file".to_owned(),
            ));
        };
        let missing = imports::missing(&set, &main)?;
        set.files.extend(missing);
        let mut builder = Builder::default();
        let main_types = builder.declare_file(&main)?;
        for file in &set.files {
            builder.declare_file(file)?;
        }
        for file in [&main].into_iter().chain(&set.files) {
            builder.define_file(file)?;
        }
        Ok(builder.finish(main_types, xxh3_64(bytes)))
    }

    /// Returns a message type by its indexes in the main file, outermost first, as Confluent's framing has them. `[0]` is the
    /// first message type.
    pub fn by_indexes(&self, indexes: &[i32]) -> Option<&Arc<Schema>> {
        let mut inside = &self.main;
        let mut found = None;
        for index in indexes {
            let nesting = inside.get(usize::try_from(*index).ok()?)?;
            found = Some(nesting.message);
            inside = &nesting.inner;
        }
        self.messages.get(found?)
    }

    /// Returns a message type by its full name, such as `shop.events.Click`.
    pub fn by_name(&self, name: &str) -> Option<&Arc<Schema>> {
        self.messages.get(*self.by_name.get(name)?)
    }

    /// Returns the full names of the message types at the top level of the main file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.main
            .iter()
            .filter_map(|nesting| match &*self.messages[nesting.message] {
                Schema::Protobuf(schema) => Some(schema.name()),
                Schema::Avro(_) => None,
            })
    }

    /// Returns the message type at the top level of the main file, if there is exactly one.
    pub fn only(&self) -> Option<&Arc<Schema>> {
        match &self.main[..] {
            [only] => self.messages.get(only.message),
            _ => None,
        }
    }
}

impl ProtobufSchema {
    /// Returns the full name of the message type.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(in super::super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(in super::super) fn plans(&self) -> &Plans<ProtobufPlan> {
        &self.plans
    }

    pub(in super::super) fn types(&self) -> &Types {
        &self.types
    }

    pub(in super::super) fn root(&self) -> &MessageType {
        self.types.message(self.root)
    }
}

impl Types {
    #[inline]
    pub fn message(&self, id: u32) -> &MessageType {
        &self.messages[id as usize]
    }

    /// Returns the name of a value of an enum.
    #[inline]
    pub fn name_of(&self, id: u32, number: i32) -> Option<&str> {
        let values = &self.enums[id as usize];
        let (_, name) = values.iter().find(|(known, _)| *known == number)?;
        Some(name)
    }

    /// Returns the first value of an enum.
    pub fn first_of(&self, id: u32) -> (i32, &str) {
        let first = self.enums[id as usize].first();
        first.map_or((0, ""), |(number, name)| (*number, name))
    }
}

impl MessageType {
    #[inline]
    pub fn place(&self, number: u32) -> Option<usize> {
        // Most messages number their fields without gaps.
        let guess = (number as usize).wrapping_sub(1);
        if self.fields.get(guess).is_some_and(|field| field.number == number) {
            return Some(guess);
        }
        self.fields
            .binary_search_by_key(&number, |field| field.number)
            .ok()
    }

    #[inline]
    pub fn field(&self, number: u32) -> Option<&ProtobufField> {
        self.place(number).map(|place| &self.fields[place])
    }
}

impl ProtobufField {
    /// Returns whether a path with this name, which has this hash, leads to the field.
    pub fn is_named(&self, hash: u64, name: &str) -> bool {
        let json_name = self.json_name.as_ref();
        (self.hash == hash && self.name == name)
            || json_name.is_some_and(|(json_name, json_hash)| *json_hash == hash && json_name == name)
    }

    /// Returns whether a path with this name leads to the field.
    pub fn has_name(&self, name: &str) -> bool {
        self.is_named(name_hash(name), name)
    }

    pub fn is_repeated(&self) -> bool {
        matches!(self.rule, Rule::Repeated | Rule::Map)
    }

    /// Returns whether a value with this wire type is one of the field.
    #[inline]
    pub fn accepts(&self, wire_type: u8) -> bool {
        let own = self.of.wire_type();
        wire_type == own || (wire_type == SIZED && self.is_packable())
    }

    /// Returns whether several values may be packed into one.
    pub fn is_packable(&self) -> bool {
        self.rule == Rule::Repeated && !matches!(self.of.wire_type(), SIZED | GROUP)
    }
}

impl FieldType {
    /// Returns the type with this number in descriptors, which name a message or an enum.
    fn of(
        number: i32,
        message: Option<u32>,
        id_of_enum: Option<u32>,
        features: Features,
    ) -> Option<FieldType> {
        Some(match number {
            1 => FieldType::Double,
            2 => FieldType::Float,
            3 => FieldType::Int64,
            4 => FieldType::Uint64,
            5 => FieldType::Int32,
            6 => FieldType::Fixed64,
            7 => FieldType::Fixed32,
            8 => FieldType::Bool,
            9 => FieldType::Text,
            10 => FieldType::Group(message?),
            11 if features.encoding == Some(Features::DELIMITED) => FieldType::Group(message?),
            11 => FieldType::Message(message?),
            12 => FieldType::Bytes,
            13 => FieldType::Uint32,
            14 => match id_of_enum {
                Some(id) => FieldType::Enum(id),
                // Without its names.
                None => FieldType::Int32,
            },
            15 => FieldType::Sfixed32,
            16 => FieldType::Sfixed64,
            17 => FieldType::Sint32,
            18 => FieldType::Sint64,
            _ => return None,
        })
    }

    #[inline]
    pub fn wire_type(self) -> u8 {
        match self {
            FieldType::Bool
            | FieldType::Int32
            | FieldType::Int64
            | FieldType::Uint32
            | FieldType::Uint64
            | FieldType::Sint32
            | FieldType::Sint64
            | FieldType::Enum(_) => VARINT,
            FieldType::Fixed64 | FieldType::Sfixed64 | FieldType::Double => FIXED64,
            FieldType::Fixed32 | FieldType::Sfixed32 | FieldType::Float => FIXED32,
            FieldType::Text | FieldType::Bytes | FieldType::Message(_) => SIZED,
            FieldType::Group(_) => GROUP,
        }
    }

    fn is_integer(self) -> bool {
        !matches!(
            self,
            FieldType::Bool
                | FieldType::Enum(_)
                | FieldType::Float
                | FieldType::Double
                | FieldType::Text
                | FieldType::Bytes
                | FieldType::Message(_)
                | FieldType::Group(_)
        )
    }

    /// Returns the message type of a field of messages.
    pub fn message(self) -> Option<u32> {
        match self {
            FieldType::Message(id) | FieldType::Group(id) => Some(id),
            _ => None,
        }
    }

    /// Parses a default of proto2. One that does not parse counts as none.
    fn default(self, text: &str) -> Option<Default> {
        Some(match self {
            FieldType::Bool => Default::Bool(text == "true"),
            FieldType::Float | FieldType::Double => Default::Float(text.parse().ok()?),
            FieldType::Text | FieldType::Enum(_) => Default::Text(text.to_owned()),
            FieldType::Bytes => Default::Bytes(unescaped(text)),
            FieldType::Uint64 | FieldType::Fixed64 => Default::Unsigned(text.parse().ok()?),
            FieldType::Message(_) | FieldType::Group(_) => return None,
            _ => Default::Integer(text.parse().ok()?),
        })
    }
}

/// Undoes the escapes of C, in which descriptors write bytes.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let is_octal = |byte: &&u8| (b'0'..=b'7').contains(*byte);
        let digits = rest.iter().take(3).take_while(is_octal);
        let digits: Vec<u8> = digits.map(|digit| digit - b'0').collect();
        if !digits.is_empty() {
            let number = digits
                .iter()
                .fold(0_u32, |number, digit| 8 * number + u32::from(*digit));
            bytes.push(number as u8);
            rest = &rest[digits.len()..];
        } else if let Some((escaped, behind)) = rest.split_first() {
            bytes.push(match escaped {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                other => *other,
            });
            rest = behind;
        }
    }
    bytes
}

/// Bound on the types of a file, and on their fields.
const MAX_TYPES: usize = 100_000;

#[derive(Default)]
struct Builder {
    types: Types,
    messages: HashMap<String, u32>,
    enums: HashMap<String, u32>,
    n_fields: u32,
}

impl Builder {
    /// Gives every type of a file an index, so that fields may refer to any.
    fn declare_file(&mut self, file: &FileDescriptor) -> Result<Vec<Nesting>, SchemaFault> {
        self.declare(&file.messages, &file.enums, &file.package)
    }

    fn declare(
        &mut self,
        messages: &[MessageDescriptor],
        enums: &[EnumDescriptor],
        within: &str,
    ) -> Result<Vec<Nesting>, SchemaFault> {
        for descriptor in enums {
            let values = descriptor.values.iter();
            let values = values.map(|value| (value.number, value.name.clone()));
            let id = self.types.enums.len() as u32;
            self.enums.insert(full_name(&descriptor.name, within), id);
            self.types.enums.push(values.collect());
        }
        let mut nestings = Vec::new();
        for descriptor in messages {
            let name = full_name(&descriptor.name, within);
            let id = self.types.messages.len();
            if id + self.types.enums.len() >= MAX_TYPES {
                return Err(SchemaFault(format!("has more than {MAX_TYPES} types")));
            }
            if self.messages.insert(name.clone(), id as u32).is_some() {
                return Err(SchemaFault(format!("defines `{name}` twice")));
            }
            self.types.messages.push(MessageType {
                id: id as u32,
                name: name.clone(),
                meaning: Meaning::Fields,
                fields: Vec::new(),
                n_oneofs: 0,
                is_map_entry: descriptor
                    .options
                    .as_ref()
                    .is_some_and(|options| options.is_map_entry),
            });
            nestings.push(Nesting {
                message: id,
                inner: self.declare(&descriptor.messages, &descriptor.enums, &name)?,
            });
        }
        Ok(nestings)
    }

    fn define_file(&mut self, file: &FileDescriptor) -> Result<(), SchemaFault> {
        let features = Features::default();
        let features = match &file.syntax[..] {
            "proto3" => Features {
                presence: Some(Features::IMPLICIT),
                ..features
            },
            // In proto2 as in editions, fields have presence unless they are declared otherwise.
            _ => features.with(file.options.as_ref().and_then(|options| options.features)),
        };
        for message in &file.messages {
            self.define(message, &file.package, features)?;
        }
        Ok(())
    }

    fn define(
        &mut self,
        message: &MessageDescriptor,
        within: &str,
        features: Features,
    ) -> Result<(), SchemaFault> {
        let features = features.with(message.options.as_ref().and_then(|options| options.features));
        let name = full_name(&message.name, within);
        let mut fields = Vec::new();
        for descriptor in &message.fields {
            fields.extend(self.field(descriptor, features));
        }
        fields.sort_by_key(|field| field.number);
        let faulty = |text: String| SchemaFault(format!("has {text} in the message type `{name}`"));
        if let Some(pair) = fields.windows(2).find(|pair| pair[0].number == pair[1].number) {
            return Err(faulty(format!("two fields with the number {}", pair[0].number)));
        }
        let mut names = HashSet::new();
        if let Some(twice) = fields.iter().find(|field| !names.insert(field.name.clone())) {
            return Err(faulty(format!("two fields `{}`", twice.name)));
        }
        // A JSON name must not hide another field.
        for field in &mut fields {
            let is_new = |(name, _): &(String, u64)| names.insert(name.clone());
            field.json_name = field.json_name.take().filter(is_new);
        }
        let id = self.messages[&name] as usize;
        let n_oneofs = fields.iter().filter_map(|field| field.oneof).max();
        let message_type = &mut self.types.messages[id];
        message_type.meaning = meaning(&name, &fields);
        message_type.n_oneofs = n_oneofs.map_or(0, |last| last as usize + 1);
        message_type.fields = fields;
        for inner in &message.messages {
            self.define(inner, &name, features)?;
        }
        Ok(())
    }

    /// `None` for a field whose type is not in the set.
    fn field(&mut self, field: &FieldDescriptor, features: Features) -> Option<ProtobufField> {
        const REPEATED: i32 = 3;
        let features = features.with(field.options.as_ref().and_then(|options| options.features));
        let type_name = field.type_name.strip_prefix('.').unwrap_or(&field.type_name);
        let message = self.messages.get(type_name).copied();
        let of = FieldType::of(field.of, message, self.enums.get(type_name).copied(), features)?;
        let is_map_entry = message.is_some_and(|id| self.types.message(id).is_map_entry);
        // The compiler puts an `optional` field of proto3 into a oneof of its own.
        let oneof = field.oneof.filter(|_| !field.is_proto3_optional);
        let has_presence =
            features.presence != Some(Features::IMPLICIT) || field.oneof.is_some() || of.message().is_some();
        let rule = match (field.label == REPEATED, has_presence) {
            (true, _) if is_map_entry => Rule::Map,
            (true, _) => Rule::Repeated,
            (false, true) => Rule::Optional(field.default.as_ref().and_then(|text| of.default(text))),
            (false, false) => Rule::Implicit,
        };
        let json_name = match &field.json_name[..] {
            "" => lower_camel(&field.name),
            name => name.to_owned(),
        };
        let id = self.n_fields;
        self.n_fields += 1;
        Some(ProtobufField {
            id,
            number: field.number.try_into().ok()?,
            name: field.name.clone(),
            hash: name_hash(&field.name),
            json_name: (json_name != field.name).then(|| {
                let hash = name_hash(&json_name);
                (json_name, hash)
            }),
            of,
            rule,
            oneof: oneof.and_then(|oneof| oneof.try_into().ok()),
        })
    }

    fn finish(self, main: Vec<Nesting>, hash: u64) -> ProtobufFile {
        let types = Arc::new(self.types);
        let schema = |message: &MessageType| {
            Arc::new(Schema::Protobuf(ProtobufSchema {
                name: message.name.clone(),
                hash: hash ^ name_hash(&message.name),
                root: message.id,
                types: Arc::clone(&types),
                plans: Plans::default(),
            }))
        };
        let names = types.messages.iter().enumerate();
        let names = names.filter(|(_, message)| !message.is_map_entry);
        ProtobufFile {
            by_name: names.map(|(id, message)| (message.name.clone(), id)).collect(),
            messages: types.messages.iter().map(schema).collect(),
            main,
        }
    }
}

/// Returns the meaning of a message type with these fields.
fn meaning(name: &str, fields: &[ProtobufField]) -> Meaning {
    let is_one = |field: &ProtobufField| !field.is_repeated() && field.of.is_integer();
    match (name, fields) {
        ("google.protobuf.Struct", [_]) => Meaning::Struct,
        ("google.protobuf.Value", _) => Meaning::JsonValue,
        ("google.protobuf.ListValue", [_]) => Meaning::JsonList,
        ("confluent.type.Decimal", _) => Meaning::Decimal,
        (
            "google.protobuf.DoubleValue"
            | "google.protobuf.FloatValue"
            | "google.protobuf.Int64Value"
            | "google.protobuf.UInt64Value"
            | "google.protobuf.Int32Value"
            | "google.protobuf.UInt32Value"
            | "google.protobuf.BoolValue"
            | "google.protobuf.StringValue"
            | "google.protobuf.BytesValue",
            [_],
        ) => Meaning::Wrapper,
        // Some producers declare the timestamp themselves.
        (_, [one, other]) if is_one(one) && is_one(other) && !name.ends_with("Duration") => {
            match (&one.name[..], &other.name[..]) {
                ("seconds", "nanos") => Meaning::Timestamp {
                    seconds: one.number,
                    nanos: other.number,
                },
                ("nanos", "seconds") => Meaning::Timestamp {
                    seconds: other.number,
                    nanos: one.number,
                },
                _ => Meaning::Fields,
            }
        }
        _ => Meaning::Fields,
    }
}

fn full_name(name: &str, within: &str) -> String {
    match within {
        "" => name.to_owned(),
        within => format!("{within}.{name}"),
    }
}

/// Returns the name that JSON has for a field.
fn lower_camel(name: &str) -> String {
    let mut camel = String::new();
    let mut is_upper = false;
    for letter in name.chars() {
        match letter {
            '_' => is_upper = true,
            letter if is_upper => {
                camel.push(letter.to_ascii_uppercase());
                is_upper = false;
            }
            letter => camel.push(letter),
        }
    }
    camel
}
