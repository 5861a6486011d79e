//! Framing: the bytes around a payload that name its schema, as clients of schema registries write them.
//!
//! | framing | bytes before the payload, or header |
//! |---|---|
//! | Confluent | `00`, an id of 4 bytes; for Protobuf the path of the message type |
//! | Apicurio 3 | `00`, an id of 4 bytes; for Protobuf a message with the name of the message type |
//! | Confluent, in a header | `__value_schema_id`: `00` and such an id, or `01` and 16 bytes |
//! | Apicurio 2 | `00`, an id of 8 bytes; for Protobuf that message |
//! | Apicurio, in a header | `apicurio.value.globalId` or `apicurio.value.contentId`: an id of 8 bytes; `apicurio.protobuf.type`: the name, which Apicurio 3 writes before the payload, too |
//! | Azure Schema Registry, in a header | `content-type`: `avro/binary+` and an id of 32 hexadecimal digits |
//! | Avro single object | `C3 01`, a fingerprint of 8 bytes, little-endian |
//! | AWS Glue | `03`, `00` or `05` (zlib), 16 bytes |
//!
//! Integers are big-endian unless noted.

use std::ffi::CStr;
use std::fmt;

/// Encoding of the records of a topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Json,
    Avro,
    Protobuf,
}

/// Framing of the records of a topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Framing {
    /// Any of the others except [`Framing::Apicurio2`], record by record.
    #[default]
    Detect,
    /// The record is its payload.
    None,
    Confluent,
    Apicurio2,
    /// Any of the headers.
    Header,
    SingleObject,
    Glue,
}

/// Identity of a schema, in its framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SchemaId {
    /// Id of Confluent's API.
    Id(u32),
    /// Globally unique id of Confluent's API.
    Guid([u8; 16]),
    /// Global id of Apicurio.
    Global(u64),
    /// Content id of Apicurio.
    Content(u64),
    /// CRC-64-AVRO of a schema in canonical form.
    Fingerprint(u64),
    /// Version id of AWS Glue.
    Glue([u8; 16]),
    /// Id of Azure Schema Registry.
    Azure([u8; 16]),
}

/// Record without its framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framed<'a> {
    pub id: SchemaId,
    /// Indexes that lead to the message type within a Protobuf file, or its name, which begins with a letter. Empty for other formats,
    /// and if neither is written.
    pub message: &'a [u8],
    pub payload: &'a [u8],
    /// The payload is compressed with zlib.
    pub is_compressed: bool,
}

/// Headers of a record.
pub trait Headers: fmt::Debug {
    /// Returns the value of the last header of this name.
    fn last(&self, name: &CStr) -> Option<&[u8]>;
}

/// Headers of a record that has none.
#[derive(Debug, Clone, Copy)]
pub struct NoHeaders;

impl Headers for NoHeaders {
    fn last(&self, _: &CStr) -> Option<&[u8]> {
        None
    }
}

const CONFLUENT_HEADER: &CStr = c"__value_schema_id";
const GLOBAL_ID_HEADER: &CStr = c"apicurio.value.globalId";
const CONTENT_ID_HEADER: &CStr = c"apicurio.value.contentId";
const TYPE_HEADER: &CStr = c"apicurio.protobuf.type";
const AZURE_HEADER: &CStr = c"content-type";

/// Headers that name the schema of a record, and its message type.
pub const HEADERS: [&CStr; 5] = [
    CONFLUENT_HEADER,
    GLOBAL_ID_HEADER,
    CONTENT_ID_HEADER,
    TYPE_HEADER,
    AZURE_HEADER,
];

/// Content type of Azure's clients, before the id.
const AZURE_CONTENT_TYPE: &[u8] = b"avro/binary+";

const MAGIC: u8 = 0;
const GUID_MAGIC: u8 = 1;
const SINGLE_OBJECT: [u8; 2] = [0xc3, 0x01];
/// Tag of a text in field 1 of a message.
const FIELD_1: u8 = 10;
const GLUE: u8 = 3;
const GLUE_ZLIB: u8 = 5;

/// Longest path of a message type. The first byte of a longer one could also be the first byte of a message.
const MAX_MESSAGE_DEPTH: i64 = 3;

impl Format {
    pub const ALL: [(&str, Format); 3] = [
        ("json", Format::Json),
        ("avro", Format::Avro),
        ("protobuf", Format::Protobuf),
    ];

    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Avro => "avro",
            Format::Protobuf => "protobuf",
        }
    }
}

impl Framing {
    pub const ALL: [(&str, Framing); 7] = [
        ("detect", Framing::Detect),
        ("none", Framing::None),
        ("confluent", Framing::Confluent),
        ("apicurio2", Framing::Apicurio2),
        ("header", Framing::Header),
        ("single_object", Framing::SingleObject),
        ("glue", Framing::Glue),
    ];

    /// Separates the framing from the payload. `None` if the record has none of the expected framings.
    pub fn of<'a>(self, format: Format, record: &'a [u8], headers: &'a dyn Headers) -> Option<Framed<'a>> {
        match self {
            Framing::None => None,
            Framing::Confluent => confluent(format, record),
            Framing::Apicurio2 => apicurio2(format, record),
            Framing::Header => header(format, record, headers).or_else(|| azure(format, record, headers)),
            Framing::SingleObject => single_object(record),
            Framing::Glue => glue(record),
            // A value that has its id in a header may begin with any byte.
            Framing::Detect => header(format, record, headers)
                .or_else(|| azure(format, record, headers))
                .or_else(|| confluent(format, record))
                .or_else(|| glue(record))
                .or_else(|| single_object(record).filter(|_| format == Format::Avro)),
        }
    }
}

fn confluent(format: Format, record: &[u8]) -> Option<Framed<'_>> {
    let (id, rest) = id_and_rest(record)?;
    let (message, payload) = message_type(format, rest)?;
    Some(Framed {
        id: SchemaId::Id(id),
        message,
        payload,
        is_compressed: false,
    })
}

fn id_and_rest(record: &[u8]) -> Option<(u32, &[u8])> {
    let (id, rest) = record.strip_prefix(&[MAGIC])?.split_first_chunk()?;
    Some((u32::from_be_bytes(*id), rest))
}

fn apicurio2(format: Format, record: &[u8]) -> Option<Framed<'_>> {
    let (id, rest) = record.strip_prefix(&[MAGIC])?.split_first_chunk()?;
    let (message, payload) = match format {
        Format::Protobuf => type_name(rest)?,
        Format::Json | Format::Avro => (&rest[..0], rest),
    };
    Some(Framed {
        id: SchemaId::Global(u64::from_be_bytes(*id)),
        message,
        payload,
        is_compressed: false,
    })
}

/// Splits off the name of the message type, which Apicurio writes before a Protobuf payload: a message with the name as its only
/// field.
fn type_name(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (named, payload) = sized(bytes)?;
    let (name, rest) = sized(named.strip_prefix(&[FIELD_1])?)?;
    (rest.is_empty() && is_name(name)).then_some((name, payload))
}

/// Returns whether bytes are the name of a message type, without a package.
fn is_name(bytes: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    bytes.first().is_some_and(is_letter) && bytes.iter().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

/// Splits off bytes that are preceded by their number.
fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (n, rest) = varint(bytes)?;
    rest.split_at_checked(usize::try_from(n).ok()?)
}

fn header<'a>(format: Format, record: &'a [u8], headers: &'a dyn Headers) -> Option<Framed<'a>> {
    let framed = |id, message| Framed {
        id,
        message,
        payload: record,
        is_compressed: false,
    };
    if let Some(value) = headers.last(CONFLUENT_HEADER) {
        if let Some((id, rest)) = id_and_rest(value) {
            return Some(framed(SchemaId::Id(id), rest));
        }
        let (guid, rest) = value.strip_prefix(&[GUID_MAGIC])?.split_first_chunk()?;
        // An absent path means the first message.
        let message = message_type(format, rest).map_or(&rest[..0], |(message, _)| message);
        return Some(framed(SchemaId::Guid(*guid), message));
    }
    let eight = |name| Some(u64::from_be_bytes(headers.last(name)?.try_into().ok()?));
    let id = eight(GLOBAL_ID_HEADER).map(SchemaId::Global);
    let id = id.or_else(|| eight(CONTENT_ID_HEADER).map(SchemaId::Content))?;
    let name = headers.last(TYPE_HEADER).filter(|_| format == Format::Protobuf);
    let name = name.unwrap_or_default();
    // Apicurio 3 writes the name twice.
    let behind_name = type_name(record).filter(|(written, _)| *written == name);
    Some(Framed {
        payload: behind_name.map_or(record, |(_, payload)| payload),
        ..framed(id, name)
    })
}

/// Reads the id that clients of Azure Schema Registry write into the content type: 32 hexadecimal digits.
fn azure<'a>(format: Format, record: &'a [u8], headers: &'a dyn Headers) -> Option<Framed<'a>> {
    let value = headers.last(AZURE_HEADER).filter(|_| format == Format::Avro)?;
    let digits: &[u8; 32] = value.strip_prefix(AZURE_CONTENT_TYPE)?.try_into().ok()?;
    let mut id = [0; 16];
    for (byte, digits) in id.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(digits[0])? << 4 | digit(digits[1])?) as u8;
    }
    Some(Framed {
        id: SchemaId::Azure(id),
        message: &[],
        payload: record,
        is_compressed: false,
    })
}

fn single_object(record: &[u8]) -> Option<Framed<'_>> {
    let (fingerprint, payload) = record.strip_prefix(&SINGLE_OBJECT)?.split_first_chunk()?;
    Some(Framed {
        id: SchemaId::Fingerprint(u64::from_le_bytes(*fingerprint)),
        message: &[],
        payload,
        is_compressed: false,
    })
}

fn glue(record: &[u8]) -> Option<Framed<'_>> {
    let (compression, rest) = record.strip_prefix(&[GLUE])?.split_first()?;
    let (id, payload) = rest.split_first_chunk()?;
    matches!(*compression, 0 | GLUE_ZLIB).then_some(Framed {
        id: SchemaId::Glue(*id),
        message: &[],
        payload,
        is_compressed: *compression == GLUE_ZLIB,
    })
}

/// Splits off the path or the name of the message type, if the format has one. `@kafkajs/confluent-schema-registry` writes neither:
/// the first byte of its records is the tag of a field, at least 8. The first byte of a path is twice its length.
fn message_type(format: Format, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if format != Format::Protobuf {
        return Some((&bytes[..0], bytes));
    }
    // The size of a name could also be the length of a path or the tag of a field. But then the bytes after it would hardly be
    // letters of exactly the name's length.
    if let Some(named) = type_name(bytes) {
        return Some(named);
    }
    let (n, mut rest) = zigzag(bytes)?;
    if !(-MAX_MESSAGE_DEPTH - 1..=MAX_MESSAGE_DEPTH).contains(&n) {
        return Some((&bytes[..0], bytes));
    }
    for _ in 0..usize::try_from(n).ok()? {
        (_, rest) = zigzag(rest)?;
    }
    Some(bytes.split_at(bytes.len() - rest.len()))
}

impl SchemaId {
    /// Returns whether a registry with Confluent's or Apicurio's API knows such ids.
    pub fn is_of_registry(self) -> bool {
        !matches!(
            self,
            SchemaId::Fingerprint(_) | SchemaId::Glue(_) | SchemaId::Azure(_)
        )
    }
}

impl<'a> Framed<'a> {
    /// A record without framing. Its id has no meaning.
    pub fn bare(record: &'a [u8]) -> Framed<'a> {
        Framed {
            id: SchemaId::Fingerprint(0),
            message: &[],
            payload: record,
            is_compressed: false,
        }
    }

    /// Returns the name of the message type without its package, if the record has it.
    pub fn message_name(&self) -> Option<&'a str> {
        std::str::from_utf8(self.message)
            .ok()
            .filter(|_| is_name(self.message))
    }

    /// Returns the indexes that lead to the message type: `[0]` for the first one of the file, `[1, 0]` for the first one
    /// within the second.
    pub fn message_indexes(&self) -> Vec<i32> {
        let mut rest = self.message;
        let mut indexes = Vec::new();
        if let Some((n, after)) = zigzag(rest) {
            rest = after;
            while let Some((index, after)) = zigzag(rest).filter(|_| indexes.len() as i64 != n) {
                rest = after;
                // An index that no file has finds no message.
                indexes.push(i32::try_from(index).unwrap_or(-1));
            }
        }
        if indexes.is_empty() {
            indexes.push(0);
        }
        indexes
    }
}

fn zigzag(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (number, rest) = varint(bytes)?;
    Some(((number >> 1) as i64 ^ -((number & 1) as i64), rest))
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (n, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[n + 1..]));
        }
    }
    None
}

impl fmt::Display for SchemaId {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let uuid = |out: &mut fmt::Formatter, bytes: &[u8; 16]| {
            for (n, byte) in bytes.iter().enumerate() {
                let dash = if matches!(n, 4 | 6 | 8 | 10) { "-" } else { "" };
                write!(out, "{dash}{byte:02x}")?;
            }
            Ok(())
        };
        match self {
            SchemaId::Id(id) => write!(out, "{id}"),
            SchemaId::Global(id) => write!(out, "{id}"),
            SchemaId::Content(id) => write!(out, "{id} (content)"),
            SchemaId::Guid(id) | SchemaId::Glue(id) | SchemaId::Azure(id) => uuid(out, id),
            SchemaId::Fingerprint(fingerprint) => write!(out, "{fingerprint:016x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct SomeHeaders<const N: usize>([(&'static CStr, Vec<u8>); N]);

    impl<const N: usize> Headers for SomeHeaders<N> {
        fn last(&self, name: &CStr) -> Option<&[u8]> {
            let (_, value) = self.0.iter().find(|(other, _)| *other == name)?;
            Some(value)
        }
    }

    fn detect(format: Format, record: &[u8]) -> Option<(SchemaId, Vec<i32>, &[u8])> {
        let framed = Framing::Detect.of(format, record, &NoHeaders)?;
        Some((framed.id, framed.message_indexes(), framed.payload))
    }

    /// The forms that clients of Confluent's registry write, the long form of the first message included.
    #[test]
    fn message_indexes_are_read_in_every_form() {
        for (path, indexes) in [
            (&[0][..], &[0][..]),
            (&[2, 0], &[0]),
            (&[2, 2], &[1]),
            (&[4, 2, 0], &[1, 0]),
            (&[2, 0x80, 0x02], &[128]),
        ] {
            let record = [&[0, 0, 0, 0, 7], path, &[8, 1]].concat();
            let expected = (SchemaId::Id(7), indexes.to_vec(), &[8, 1][..]);
            assert_eq!(detect(Format::Protobuf, &record), Some(expected), "{path:?}");
        }
        for broken in [&[][..], &[4, 2], &[0xff, 0xff], &[1, 0], &[7, 0]] {
            let record = [&[0, 0, 0, 0, 7], broken].concat();
            assert_eq!(detect(Format::Protobuf, &record), None, "{broken:?}");
        }
    }

    /// `@kafkajs/confluent-schema-registry` writes the message right behind the id.
    #[test]
    fn a_message_may_have_no_indexes() {
        for message in [
            &[8, 1][..],
            &[9, 0, 0, 0, 0, 0, 0, 0, 0],
            &[10, 2, b'r', b'7'],
            &[0x82, 1, 0],
        ] {
            let record = [&[0, 0, 0, 0, 7], message].concat();
            let framed = Framing::Detect.of(Format::Protobuf, &record, &NoHeaders);
            let framed = framed.expect("it has a prefix");
            assert_eq!(
                (framed.message, framed.payload),
                (&[][..], message),
                "{message:?}"
            );
        }
    }

    /// The sizes of some names are also valid lengths of paths, and the sizes of others are also tags of fields.
    #[test]
    fn apicurio_3_names_the_message_type_behind_four_bytes() {
        for name in ["A", "Ab", "List", "Click", "Impression", "List_of_16_bytes"] {
            let named = [&[name.len() as u8 + 2, 10, name.len() as u8], name.as_bytes()].concat();
            let record = [&[0, 0, 0, 0, 7], &named[..], &[8, 1]].concat();
            let framed = Framing::Detect.of(Format::Protobuf, &record, &NoHeaders);
            let framed = framed.expect("it has a prefix");
            let read = (framed.id, framed.message_name(), framed.payload);
            assert_eq!(read, (SchemaId::Id(7), Some(name), &[8, 1][..]));
        }
        // Ten bytes of text that are not a name.
        let message = b"\x0a\x0a\x08r-12345\xc3\xbc";
        let record = [&[0, 0, 0, 0, 7], &message[..]].concat();
        let framed = Framing::Confluent.of(Format::Protobuf, &record, &NoHeaders);
        assert_eq!(framed.expect("it has a prefix").payload, message);
    }

    #[test]
    fn eight_byte_ids_need_a_setting() {
        let record = [0, 0, 0, 0, 0, 0, 0, 0, 9, 2];
        let framed = Framing::Apicurio2.of(Format::Avro, &record, &NoHeaders);
        let framed = framed.expect("it has a prefix");
        assert_eq!((framed.id, framed.payload), (SchemaId::Global(9), &[2][..]));
        // The same bytes are also a valid record of the other framing.
        let (id, _, payload) = detect(Format::Avro, &record).expect("it has a prefix");
        assert_eq!((id, payload), (SchemaId::Id(0), &record[5..]));
    }

    #[test]
    fn apicurio_names_the_message_type() {
        let record = [&[0, 0, 0, 0, 0, 0, 0, 0, 9, 7, 10, 5][..], b"Click", &[8, 1]].concat();
        let framed = Framing::Apicurio2.of(Format::Protobuf, &record, &NoHeaders);
        let framed = framed.expect("it has a prefix");
        assert_eq!(
            (framed.message_name(), framed.payload),
            (Some("Click"), &[8, 1][..])
        );
        for broken in [&[][..], &[7, 10], &[7, 18, 5, b'C'], &[2, 10, 5]] {
            let record = [&[0, 0, 0, 0, 0, 0, 0, 0, 9][..], broken].concat();
            assert_eq!(
                Framing::Apicurio2.of(Format::Protobuf, &record, &NoHeaders),
                None,
                "{broken:?}"
            );
        }
    }

    #[test]
    fn a_header_goes_before_the_bytes_of_the_value() {
        let guid: Vec<u8> = (1..=16).collect();
        let value = [&[1], &guid[..], &[2, 2]].concat();
        let headers = SomeHeaders([(c"__value_schema_id", value)]);
        let record = [0, 0, 0, 0, 7, 0];
        let framed = Framing::Detect.of(Format::Protobuf, &record, &headers);
        let framed = framed.expect("it has a header");
        assert_eq!(framed.id.to_string(), "01020304-0506-0708-090a-0b0c0d0e0f10");
        assert_eq!((framed.message_indexes(), framed.payload), (vec![1], &record[..]));
        let headers = SomeHeaders([(c"apicurio.value.globalId", 513_u64.to_be_bytes().to_vec())]);
        let framed = Framing::Header.of(Format::Avro, &record, &headers);
        assert_eq!(framed.map(|framed| framed.id), Some(SchemaId::Global(513)));
    }

    /// The payload has no prefix, even if its first byte looks like one.
    #[test]
    fn the_content_type_of_azure_names_the_schema() {
        let record = [0, 0, 0, 0, 7, 2];
        let framed = |value: &[u8], format| {
            let headers = SomeHeaders([(c"content-type", value.to_vec())]);
            let framed = Framing::Detect.of(format, &record, &headers)?;
            Some((framed.id.to_string(), framed.payload.len()))
        };
        let value = b"avro/binary+0102030405060708090a0b0c0d0e0f10";
        let expected = ("01020304-0506-0708-090a-0b0c0d0e0f10".to_owned(), 6);
        assert_eq!(framed(value, Format::Avro), Some(expected));
        let confluent = Some(("7".to_owned(), 1));
        for value in [
            &b"application/avro"[..],
            b"avro/binary+1",
            b"avro/binary+",
            &[value, &b"1"[..]].concat(),
        ] {
            assert_eq!(framed(value, Format::Avro), confluent, "{value:?}");
        }
        assert_eq!(framed(value, Format::Json), confluent);
    }

    /// Apicurio 3 writes the name before the payload, although a header has it.
    #[test]
    fn a_name_that_a_header_has_is_skipped() {
        let headers = SomeHeaders([
            (c"apicurio.value.contentId", 9_u64.to_be_bytes().to_vec()),
            (c"apicurio.protobuf.type", b"Click".to_vec()),
        ]);
        for (record, payload) in [
            (&b"\x07\x0a\x05Click\x08\x01"[..], &b"\x08\x01"[..]),
            (b"\x08\x01", b"\x08\x01"),
            // Not the name in the header.
            (b"\x07\x0a\x05Clack\x08\x01", b"\x07\x0a\x05Clack\x08\x01"),
        ] {
            let framed = Framing::Detect.of(Format::Protobuf, record, &headers);
            let framed = framed.expect("it has a header");
            assert_eq!((framed.message_name(), framed.payload), (Some("Click"), payload));
        }
    }

    #[test]
    fn other_prefixes_are_detected() {
        let record = [&[0xc3, 1], &0x0102_u64.to_le_bytes()[..], &[5]].concat();
        let single = detect(Format::Avro, &record).expect("it has a prefix");
        assert_eq!((single.0, single.2), (SchemaId::Fingerprint(0x0102), &[5][..]));
        let record = [&[3, 5][..], &[9; 16], &[1, 2]].concat();
        let framed = Framing::Detect
            .of(Format::Avro, &record, &NoHeaders)
            .expect("a prefix");
        assert_eq!((framed.id, framed.is_compressed), (SchemaId::Glue([9; 16]), true));
        assert_eq!(detect(Format::Avro, &[2, b'r', 0]), None);
        assert_eq!(detect(Format::Avro, &[]), None);
        assert_eq!(Framing::None.of(Format::Avro, &[0; 9], &NoHeaders), None);
    }
}
