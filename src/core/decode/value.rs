//! Value of a field in any encoding: the border between locating fields and the rules for their values.
//!
//! Each encoding locates fields in its own way. Behind this border the rules are the same, so an event gives the same result in
//! every encoding.

use std::fmt::Write as _;
use std::ops::Deref;

use jiff::Timestamp;
use jiff::tz::Offset;

use super::decimal::{moved_point, unscaled};
use super::name::FieldName;
use super::shape::{TsUnit, Zone};
use super::{MAX_ID_BYTES, avro, json, protobuf, time};
use crate::engine::event::Reason;

/// Value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    /// Raw JSON text.
    Json(&'a str),
    Null,
    Bool(bool),
    Integer(i64),
    /// Integer that does not fit into 63 bits.
    Unsigned(u64),
    /// Integer 0 that may just as well be absent.
    Zero,
    Float(f64),
    /// UTF-8, which is checked only when it is read.
    Text(&'a [u8]),
    /// Bytes that are not text.
    Bytes(&'a [u8], Notation),
    /// Unix ms.
    Time(i64),
    /// Milliseconds since 1970 in an unspecified zone.
    LocalTime(i64),
    Array(Array<'a>),
    Object(Object<'a>),
    /// Bytes that do not fit their schema.
    Malformed,
}

/// Array in a record with a schema.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Array<'a> {
    Avro(avro::AvroArray<'a>),
    Protobuf(protobuf::ProtobufArray<'a>),
}

/// Object in a record with a schema.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Object<'a> {
    Avro(avro::AvroObject<'a>),
    Protobuf(protobuf::ProtobufObject<'a>),
}

/// Text form of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// Lowercase hexadecimal digits.
    Hex,
    /// `123e4567-e89b-12d3-a456-426614174000`, from 16 bytes.
    Uuid,
    /// Decimal number: a big-endian integer in two's complement, divided by this power of ten.
    Decimal { scale: u32 },
}

/// Text of a value.
#[derive(Debug, Clone)]
pub(super) enum Text<'a> {
    Borrowed(&'a str),
    Owned(String),
    Short(InlineText),
}

/// Text of up to 40 bytes, which needs no allocation: any integer of 128 bits, or a UUID.
#[derive(Debug, Clone, Copy)]
pub(super) struct InlineText {
    bytes: [u8; 40],
    len: u8,
}

impl<'a> Value<'a> {
    pub fn is_null(self) -> bool {
        matches!(self, Value::Null | Value::Json("null"))
    }

    pub fn is_text(self) -> bool {
        match self {
            Value::Json(raw) => raw.starts_with('"'),
            value => matches!(
                value,
                Value::Text(_) | Value::Bytes(_, Notation::Hex | Notation::Uuid)
            ),
        }
    }

    pub fn is_array(self) -> bool {
        match self {
            Value::Json(raw) => raw.starts_with('['),
            value => matches!(value, Value::Array(_)),
        }
    }

    pub fn is_object(self) -> bool {
        match self {
            Value::Json(raw) => raw.starts_with('{'),
            value => matches!(value, Value::Object(_)),
        }
    }

    /// Returns the text of a string.
    pub fn text(self) -> Result<Text<'a>, Reason> {
        match self {
            Value::Json(raw) => json::text(raw).map(Text::from),
            Value::Text(text) => utf8(text).map(Text::Borrowed),
            Value::Bytes(bytes, notation) => notation.text(bytes),
            Value::Malformed => Err(Reason::Malformed),
            _ => Err(Reason::WrongType),
        }
    }

    /// Returns the decimal text of an integer; `0` for `-0`.
    pub fn integer_text(self) -> Result<Text<'a>, Reason> {
        match self {
            Value::Json(raw) => json::integer(raw).map(Text::Borrowed),
            Value::Integer(number) => Ok(Text::Short(InlineText::of(format_args!("{number}")))),
            Value::Unsigned(number) => Ok(Text::Short(InlineText::of(format_args!("{number}")))),
            Value::Zero => Ok(Text::Borrowed("0")),
            Value::Bytes(bytes, Notation::Decimal { scale }) => {
                // `5.00` is 5, whatever the scale of the schema.
                let number = decimal_text(bytes, scale).ok_or(Reason::Number)?;
                let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
                match fraction.bytes().all(|digit| digit == b'0') {
                    true => json::integer(whole).map(|whole| Text::Owned(whole.to_owned())),
                    false => Err(Reason::Number),
                }
            }
            Value::Float(_) => Err(Reason::Number),
            Value::Malformed => Err(Reason::Malformed),
            _ => Err(Reason::WrongType),
        }
    }

    pub fn integer(self) -> Result<i64, Reason> {
        match self {
            Value::Integer(number) => Ok(number),
            value => value.integer_text()?.parse().map_err(|_| Reason::Number),
        }
    }

    /// Returns the text of a string or an integer, of any length.
    pub fn text_or_integer(self) -> Result<Text<'a>, Reason> {
        match self {
            Value::Integer(_)
            | Value::Unsigned(_)
            | Value::Zero
            | Value::Float(_)
            | Value::Bytes(_, Notation::Decimal { .. }) => self.integer_text(),
            Value::Json(raw) if !raw.starts_with('"') => self.integer_text(),
            value => value.text(),
        }
    }

    /// Returns the text of an id or item, which is a string or an integer.
    #[inline]
    pub fn id(self) -> Result<Text<'a>, Reason> {
        match self {
            Value::Json(raw) => json::id(raw).map(Text::from),
            value => {
                let id = value.text_or_integer()?;
                match (1..=MAX_ID_BYTES).contains(&id.len()) {
                    true => Ok(id),
                    false => Err(Reason::IdLength),
                }
            }
        }
    }

    /// Returns a name: text, or an integer, `true` or `false`, as some systems name arms.
    pub fn word(self) -> Result<Text<'a>, Reason> {
        match self {
            Value::Json(raw @ ("true" | "false")) => Ok(Text::Borrowed(raw)),
            Value::Bool(flag) => Ok(Text::Borrowed(if flag { "true" } else { "false" })),
            value => value.text_or_integer(),
        }
    }

    /// Returns the Unix ms of a time. Numbers are in `unit`, or else milliseconds. Text without a zone is in `zone`.
    pub fn time(self, unit: Option<TsUnit>, zone: Option<Zone>) -> Result<i64, Reason> {
        match self {
            // Arrays hold calendar fields, which have no unit.
            value if value.is_array() => value.calendar(zone),
            Value::Json(raw) => match unit {
                None => time::epoch_ms_of(raw, zone),
                Some(unit) => time::in_unit(raw, unit, zone),
            },
            Value::Integer(number) => match unit {
                None | Some(TsUnit::Milliseconds) => time::integer_ms(number),
                Some(unit) => time::number_ms(&InlineText::of(format_args!("{number}")), unit),
            },
            Value::Unsigned(number) => match unit {
                None | Some(TsUnit::Milliseconds) => Err(Reason::TsRange),
                Some(unit) => time::number_ms(&format!("{number}"), unit),
            },
            Value::Zero => Err(Reason::MissingField),
            Value::Float(number) => match unit {
                None => Err(Reason::Number),
                Some(unit) => time::number_ms(&format!("{number}"), unit),
            },
            Value::Bytes(bytes, Notation::Decimal { scale }) => match unit {
                None => time::integer_ms(self.integer()?),
                Some(unit) => time::number_ms(&decimal_text(bytes, scale).ok_or(Reason::Number)?, unit),
            },
            Value::Text(text) => match unit {
                None => time::text_ms_in(utf8(text)?, zone),
                Some(unit) => time::text_in_unit(utf8(text)?, unit, zone),
            },
            Value::Time(ms) => time::within_ms(ms).ok_or(Reason::TsRange),
            Value::LocalTime(ms) => {
                let zone = zone.ok_or(Reason::TsRange)?;
                time::within_ms(ms.saturating_sub(zone.ahead_ms())).ok_or(Reason::TsRange)
            }
            Value::Malformed => Err(Reason::Malformed),
            Value::Null | Value::Bool(_) | Value::Bytes(..) | Value::Array(_) | Value::Object(_) => {
                Err(Reason::WrongType)
            }
        }
    }

    /// Returns the Unix ms of calendar fields, `[2025,11,20,0,0]`.
    fn calendar(self, zone: Option<Zone>) -> Result<i64, Reason> {
        let zone = zone.ok_or(Reason::WrongType)?;
        let number = |number: Value| number.integer_text()?.parse().map_err(|_| Reason::TsRange);
        let numbers = self
            .elements()?
            .map(number)
            .collect::<Result<Vec<u32>, Reason>>()?;
        time::calendar_ms(&numbers, zone)
    }

    /// Reads a flag, quoted or not. `null`, empty, `false` and 0 are false; `true`, other integers and times are true.
    pub fn is_true(self) -> Result<bool, Reason> {
        let word = match self {
            Value::Json(raw) => raw.trim_matches('"'),
            Value::Text(text) => utf8(text)?,
            Value::Null => return Ok(false),
            Value::Bool(flag) => return Ok(flag),
            Value::Integer(number) => return Ok(number != 0),
            Value::Unsigned(_) => return Ok(true),
            Value::Zero => return Ok(false),
            Value::Time(ms) | Value::LocalTime(ms) => return Ok(ms != 0),
            Value::Bytes(_, Notation::Decimal { .. }) => return Ok(&*self.integer_text()? != "0"),
            Value::Array(_) => return self.time(None, Some(Zone::UTC)).map(|_| true),
            Value::Float(_) => return Err(Reason::Number),
            Value::Malformed => return Err(Reason::Malformed),
            Value::Bytes(..) | Value::Object(_) => return Err(Reason::WrongType),
        };
        match word {
            "true" | "True" => Ok(true),
            "" | "false" | "False" | "null" => Ok(false),
            number => {
                // The flag may be the time of the click, in any zone.
                let is_time = || self.time(None, Some(Zone::UTC)).is_ok();
                let number = json::integer(number).map(|number| number != "0");
                number.or_else(|reason| is_time().then_some(true).ok_or(reason))
            }
        }
    }

    /// Returns the elements of an array.
    pub fn elements(self) -> Result<Elements<'a>, Reason> {
        match self {
            Value::Json(raw) => json::elements(raw).map(Elements::Json),
            Value::Array(Array::Avro(array)) => Ok(Elements::Avro(array.elements())),
            Value::Array(Array::Protobuf(array)) => Ok(Elements::Protobuf(array.elements())),
            Value::Malformed => Err(Reason::Malformed),
            _ => Err(Reason::WrongType),
        }
    }

    /// Calls back with the name and the value of each field of an object.
    pub fn each_entry(
        self,
        mut each: impl FnMut(Result<Text<'a>, Reason>, Value<'a>) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        match self {
            Value::Json(raw) => {
                for (name, value) in json::entries(raw)? {
                    each(json::text(name).map(Text::from), Value::Json(value))?;
                }
                Ok(())
            }
            Value::Object(object) => object.entries(each),
            Value::Malformed => Err(Reason::Malformed),
            _ => Err(Reason::WrongType),
        }
    }

    /// Unwraps an array of one text; returns any other value as it is.
    pub fn only_text(self) -> Value<'a> {
        if !self.is_array() {
            return self;
        }
        let only = || {
            let mut elements = self.elements().ok()?;
            let only = elements.next().filter(|only| only.is_text())?;
            elements.next().is_none().then_some(only)
        };
        only().unwrap_or(self)
    }

    /// Returns whether both come from the same place in a record.
    pub fn is_same_place(self, other: Value) -> bool {
        match (self, other) {
            (Value::Json(one), Value::Json(other)) => std::ptr::eq(one, other),
            (Value::Text(one), Value::Text(other)) => std::ptr::eq(one, other),
            // Other values have no place of their own, and equal ones are interchangeable.
            (one, other) => one == other,
        }
    }

    /// Returns a kind, a type and bytes that together identify the value within its schema. `None` for values that are rarely
    /// repeated.
    #[inline(always)]
    pub fn identity(&self) -> Option<(u8, u32, &'a [u8])> {
        Some(match *self {
            Value::Json(raw) => (0, 0, raw.as_bytes()),
            Value::Null => (1, 0, &[]),
            Value::Bool(flag) => (2 + u8::from(flag), 0, &[]),
            Value::Text(text) => (4, 0, text),
            Value::Array(Array::Avro(array)) => (5, array.type_id(), array.bytes()),
            Value::Object(Object::Avro(object)) => (6, object.type_id(), object.bytes()),
            Value::Array(Array::Protobuf(array)) => (5, array.0.field.id, array.0.bytes),
            Value::Object(Object::Protobuf(object)) => {
                let (kind, id) = object.type_id();
                (6 + kind, id, object.bytes())
            }
            Value::Zero => (8, 0, &[]),
            Value::Integer(number) => (8, number.try_into().ok()?, &[]),
            _ => return None,
        })
    }

    /// Returns the value as JSON, for explanations.
    pub fn to_json(self) -> String {
        let mut json = String::new();
        self.write_json(&mut json);
        json
    }

    fn write_json(self, to: &mut String) {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Value::Json(raw) => to.push_str(raw),
            Value::Null => to.push_str("null"),
            Value::Bool(flag) => to.push_str(if flag { "true" } else { "false" }),
            Value::Bytes(bytes, Notation::Decimal { scale }) => {
                to.push_str(&decimal_text(bytes, scale).unwrap_or_else(|| quoted(HIDDEN)));
            }
            Value::Text(_) | Value::Bytes(..) => {
                to.push_str(&self.text().map_or_else(|_| quoted(HIDDEN), |text| quoted(&text)));
            }
            Value::Malformed => to.push_str(&quoted(HIDDEN)),
            array @ Value::Array(_) => {
                to.push('[');
                for (n, element) in array.elements().into_iter().flatten().enumerate() {
                    to.push_str(if n > 0 { "," } else { "" });
                    element.write_json(to);
                }
                to.push(']');
            }
            Value::Object(object) => {
                let mut n = 0;
                to.push('{');
                let _ = object.entries(|name, value| {
                    let name = name?;
                    to.push_str(if n > 0 { "," } else { "" });
                    to.push_str(&quoted(&name));
                    to.push(':');
                    value.write_json(to);
                    n += 1;
                    Ok(())
                });
                // The fields behind a damaged one are left out.
                to.push('}');
            }
            Value::Integer(number) | Value::Time(number) => {
                let _ = write!(to, "{number}");
            }
            Value::Unsigned(number) => {
                let _ = write!(to, "{number}");
            }
            Value::Zero => to.push('0'),
            // As text without a zone, because a number would have one.
            Value::LocalTime(ms) => match Timestamp::from_millisecond(ms) {
                Ok(time) => to.push_str(&quoted(&Offset::UTC.to_datetime(time).to_string())),
                Err(_) => to.push_str(&quoted(HIDDEN)),
            },
            Value::Float(number) if number.is_finite() => {
                let _ = write!(to, "{number}");
            }
            // JSON has no number for it.
            Value::Float(number) => to.push_str(&quoted(&number.to_string())),
        }
    }
}

impl<'a> Object<'a> {
    /// Calls `take` with each value that `find` accepts by its name.
    ///
    /// # Errors
    /// [`Reason::Malformed`] if the bytes do not fit the schema. Errors of `take` are passed on.
    pub fn each<W>(
        self,
        find: impl FnMut(FieldName<'_>) -> Option<W>,
        take: impl FnMut(W, Value<'a>) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        match self {
            Object::Avro(object) => object.each(find, take),
            Object::Protobuf(object) => object.each(find, take),
        }
    }

    /// Calls back with the name and the value of each field.
    fn entries(
        self,
        mut each: impl FnMut(Result<Text<'a>, Reason>, Value<'a>) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        match self {
            Object::Avro(object) => object.each(
                |name| Some(name.text),
                |name, value| each(Ok(Text::Borrowed(name)), value),
            ),
            Object::Protobuf(object) => object.entries(each),
        }
    }
}

/// Returns whether a JSON array is accepted as a time, given a zone.
pub fn is_time_array(array: &str) -> bool {
    let array = Value::Json(array);
    array.is_array() && array.time(None, Some(Zone::UTC)).is_ok()
}

fn utf8(text: &[u8]) -> Result<&str, Reason> {
    std::str::from_utf8(text).map_err(|_| Reason::Malformed)
}

/// Elements of an array.
pub(super) enum Elements<'a> {
    Json(json::JsonParts<'a>),
    Avro(avro::AvroElements<'a>),
    Protobuf(protobuf::ProtobufElements<'a>),
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    #[inline]
    fn next(&mut self) -> Option<Value<'a>> {
        match self {
            Elements::Json(parts) => parts.next().map(Value::Json),
            Elements::Avro(elements) => elements.next(),
            Elements::Protobuf(elements) => elements.next(),
        }
    }
}

impl Notation {
    fn text<'a>(self, bytes: &[u8]) -> Result<Text<'a>, Reason> {
        match self {
            Notation::Hex => Ok(Text::Owned(hex(bytes))),
            Notation::Uuid => {
                let digits = hex(bytes);
                let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| digits.get(part));
                match parts {
                    [Some(a), Some(b), Some(c), Some(d), Some(e)] => {
                        Ok(Text::Short(InlineText::of(format_args!("{a}-{b}-{c}-{d}-{e}"))))
                    }
                    _ => Err(Reason::WrongType),
                }
            }
            // A number.
            Notation::Decimal { .. } => Err(Reason::WrongType),
        }
    }
}

/// Replacement for a value that JSON cannot hold.
const HIDDEN: &str = "…";

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Returns the text of a decimal; `None` if it has more than 128 bits or an absurd scale.
fn decimal_text(bytes: &[u8], scale: u32) -> Option<String> {
    let number = unscaled(bytes).filter(|_| scale <= 38)?;
    Some(moved_point(&number.to_string(), scale as usize))
}

impl InlineText {
    pub fn of(text: std::fmt::Arguments) -> InlineText {
        let mut short = InlineText {
            bytes: [0; 40],
            len: 0,
        };
        short
            .write_fmt(text)
            .expect("a number or UUID has at most 40 bytes");
        short
    }
}

impl std::fmt::Write for InlineText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let start = usize::from(self.len);
        let end = start + text.len();
        let place = self.bytes.get_mut(start..end).ok_or(std::fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len = end as u8;
        Ok(())
    }
}

impl Deref for InlineText {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("only text is written to it")
    }
}

impl Deref for Text<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Owned(text) => text,
            Text::Short(text) => text,
        }
    }
}

impl Text<'_> {
    pub fn into_owned(self) -> String {
        match self {
            Text::Owned(text) => text,
            text => (*text).to_owned(),
        }
    }
}

impl<'a> From<std::borrow::Cow<'a, str>> for Text<'a> {
    fn from(text: std::borrow::Cow<'a, str>) -> Text<'a> {
        match text {
            std::borrow::Cow::Borrowed(text) => Text::Borrowed(text),
            std::borrow::Cow::Owned(text) => Text::Owned(text),
        }
    }
}
