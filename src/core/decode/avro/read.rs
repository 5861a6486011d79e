//! Reads and skips values. The bytes may be damaged, so every length and index is checked, and nesting is bounded.

use super::super::name::FieldName;
use super::super::value::{Array, Object, Value};
use super::super::varint;
use super::schema::{AvroField, AvroSchema, AvroType, NumberMeaning, TypeId};
use crate::engine::event::Reason;

/// Bound on the depth of nested values, as for JSON.
const MAX_DEPTH: u32 = 127;

/// Record or map.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct AvroObject<'a> {
    id: TypeId,
    of: Fields<'a>,
    bytes: AvroBytes<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Fields<'a> {
    Record(&'a [AvroField]),
    /// Map to values of this type.
    Map(TypeId),
}

#[derive(Debug, Clone, Copy)]
pub(in super::super) struct AvroArray<'a> {
    id: TypeId,
    of: TypeId,
    bytes: AvroBytes<'a>,
}

/// Bytes still to be read, `depth` levels inside the record.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct AvroBytes<'a> {
    schema: &'a AvroSchema,
    rest: &'a [u8],
    depth: u32,
}

/// Returns the length in bytes of the value at the start of `all`; `None` if it does not fit the schema.
pub(in super::super) fn n_bytes(schema: &AvroSchema, all: &[u8]) -> Option<usize> {
    let mut bytes = AvroBytes {
        schema,
        rest: all,
        depth: 0,
    };
    bytes.pass(schema.root())?;
    Some(all.len() - bytes.rest.len())
}

impl<'a> AvroObject<'a> {
    /// Takes a payload as a record. Its bytes are checked when they are read.
    ///
    /// # Errors
    /// [`Reason::WrongType`] if the schema has another type here, [`Reason::Malformed`] if a union has no such branch.
    pub fn of_payload(schema: &'a AvroSchema, payload: &'a [u8]) -> Result<AvroObject<'a>, Reason> {
        let mut bytes = AvroBytes {
            schema,
            rest: payload,
            depth: 0,
        };
        let mut id = schema.root();
        if let AvroType::Union(branches) = schema.of(id) {
            let branch = bytes.long().and_then(|branch| usize::try_from(branch).ok());
            let branch = branch.and_then(|branch| branches.get(branch));
            id = *branch.ok_or(Reason::Malformed)?;
        }
        match schema.of(id) {
            AvroType::Record(fields) => Ok(AvroObject {
                id,
                of: Fields::Record(fields),
                bytes,
            }),
            _ => Err(Reason::WrongType),
        }
    }

    /// Returns the fields of a record, and its bytes. `None` for a map.
    pub fn fields(self) -> Option<(&'a [AvroField], AvroBytes<'a>)> {
        match self.of {
            Fields::Record(fields) => Some((fields, self.bytes)),
            Fields::Map(_) => None,
        }
    }

    /// Calls `take` with each value that `find` accepts by its name.
    ///
    /// # Errors
    /// [`Reason::Malformed`] if the bytes do not fit the schema or some are left over. Errors of `take` are passed on.
    pub fn each<W>(
        self,
        mut find: impl FnMut(FieldName<'a>) -> Option<W>,
        mut take: impl FnMut(W, Value<'a>) -> Result<(), Reason>,
    ) -> Result<(), Reason> {
        let AvroObject { of, mut bytes, .. } = self;
        let mut see = |bytes: &mut AvroBytes<'a>, name, id| match find(name) {
            None => bytes.pass(id).ok_or(Reason::Malformed),
            Some(wanted) => take(wanted, bytes.value(id).ok_or(Reason::Malformed)?),
        };
        match of {
            Fields::Record(fields) => {
                for field in fields {
                    let name = FieldName {
                        text: &field.name,
                        hash: Some(field.hash),
                    };
                    see(&mut bytes, name, field.of)?;
                }
            }
            Fields::Map(of) => {
                let mut n_left = 0;
                while bytes.has_next(None, &mut n_left).ok_or(Reason::Malformed)? {
                    let text = bytes.sized().and_then(|text| std::str::from_utf8(text).ok());
                    let name = FieldName {
                        text: text.ok_or(Reason::Malformed)?,
                        hash: None,
                    };
                    see(&mut bytes, name, of)?;
                }
            }
        }
        match bytes.is_at_end() {
            true => Ok(()),
            false => Err(Reason::Malformed),
        }
    }

    /// Returns the index of its type in the schema.
    pub fn type_id(self) -> u32 {
        self.id
    }

    pub fn bytes(self) -> &'a [u8] {
        self.bytes.rest
    }
}

impl<'a> AvroArray<'a> {
    #[inline]
    pub fn elements(self) -> AvroElements<'a> {
        AvroElements {
            array: self,
            n_left: 0,
            is_at_end: false,
        }
    }

    /// Returns the index of its type in the schema.
    pub fn type_id(self) -> u32 {
        self.id
    }

    pub fn bytes(self) -> &'a [u8] {
        self.bytes.rest
    }
}

/// Elements of an array. Bytes that do not fit the schema yield one [`Value::Malformed`], and end the iteration.
pub(in super::super) struct AvroElements<'a> {
    array: AvroArray<'a>,
    /// Elements left in this block.
    n_left: u64,
    is_at_end: bool,
}

impl<'a> Iterator for AvroElements<'a> {
    type Item = Value<'a>;

    #[inline]
    fn next(&mut self) -> Option<Value<'a>> {
        if self.is_at_end {
            return None;
        }
        let AvroArray { of, bytes, .. } = &mut self.array;
        let value = match bytes.has_next(Some(*of), &mut self.n_left) {
            Some(true) => bytes.value(*of),
            Some(false) if bytes.rest.is_empty() => {
                self.is_at_end = true;
                return None;
            }
            Some(false) | None => None,
        };
        self.is_at_end = value.is_none();
        Some(value.unwrap_or(Value::Malformed))
    }
}

impl<'a> AvroBytes<'a> {
    #[inline(always)]
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    #[inline(always)]
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(taken)
    }

    /// Zigzag integer of at most 64 bits.
    #[inline(always)]
    fn long(&mut self) -> Option<i64> {
        varint::take(&mut self.rest).map(zigzag)
    }

    #[inline(always)]
    pub fn sized(&mut self) -> Option<&'a [u8]> {
        let n = self.long()?;
        self.take(n.try_into().ok()?)
    }

    /// Returns the bytes that `behind` has passed.
    #[inline(always)]
    pub fn before(&self, behind: &AvroBytes<'a>) -> &'a [u8] {
        &self.rest[..self.rest.len() - behind.rest.len()]
    }

    /// Checks that `n` texts are UTF-8.
    #[inline(never)]
    pub fn check_texts(mut self, n: u64) -> Option<()> {
        for _ in 0..n {
            std::str::from_utf8(self.sized()?).ok()?;
        }
        Some(())
    }

    /// Returns whether another element of this type follows in a sequence of blocks, with `n_left` in the current one. For a map,
    /// pass no type.
    #[inline(always)]
    pub fn has_next(&mut self, of: Option<TypeId>, n_left: &mut u64) -> Option<bool> {
        if *n_left == 0 {
            *n_left = self.block()?;
            if *n_left == 0 {
                return Some(false);
            }
            // Any number of elements without bytes would fit, and keep us busy.
            if of.is_some_and(|of| self.schema.is_empty(of)) {
                return None;
            }
        }
        *n_left -= 1;
        Some(true)
    }

    /// Enters a block of an array or map, and returns the number of its elements. Each of them has at least a byte.
    #[inline(always)]
    pub fn block(&mut self) -> Option<u64> {
        let n = self.long()?;
        if n < 0 {
            // The number of the block's bytes, which the elements show anyway.
            self.long()?;
        }
        let n = n.unsigned_abs();
        (n <= self.rest.len() as u64).then_some(n)
    }

    /// Reads a value.
    #[inline]
    pub fn value(&mut self, id: TypeId) -> Option<Value<'a>> {
        let id = self.within_unions(id)?;
        Some(match self.type_of(id) {
            // Unions have been entered.
            AvroType::Union(_) => return None,
            AvroType::Text => Value::Text(self.sized()?),
            AvroType::Integer(meaning) => meaning.value(self.long()?),
            AvroType::Array(of) => {
                let bytes = self.within(id)?;
                Value::Array(Array::Avro(AvroArray { id, of: *of, bytes }))
            }
            AvroType::Map(of) => Value::Object(Object::Avro(AvroObject {
                id,
                of: Fields::Map(*of),
                bytes: self.within(id)?,
            })),
            AvroType::Record(fields) => Value::Object(Object::Avro(AvroObject {
                id,
                of: Fields::Record(fields),
                bytes: self.within(id)?,
            })),
            AvroType::Null => Value::Null,
            AvroType::Boolean => match self.byte()? {
                0 => Value::Bool(false),
                1 => Value::Bool(true),
                _ => return None,
            },
            AvroType::Float => Value::Float(f32::from_le_bytes(*self.take(4)?.first_chunk()?).into()),
            AvroType::Double => Value::Float(f64::from_le_bytes(*self.take(8)?.first_chunk()?)),
            AvroType::Bytes(notation) => {
                let bytes = self.sized()?;
                match notation {
                    Some(notation) => Value::Bytes(bytes, *notation),
                    None => Value::Text(bytes),
                }
            }
            AvroType::Fixed(size, notation) => Value::Bytes(self.take(*size)?, *notation),
            AvroType::Enum(symbols) => {
                let symbol = usize::try_from(self.long()?).ok()?;
                Value::Text(symbols.get(symbol)?.as_bytes())
            }
        })
    }

    /// Skips a value that contains others, and returns its bytes, so that they can be read later.
    #[inline]
    fn within(&mut self, id: TypeId) -> Option<AvroBytes<'a>> {
        let all = self.rest;
        self.pass(id)?;
        Some(AvroBytes {
            schema: self.schema,
            rest: &all[..all.len() - self.rest.len()],
            depth: self.depth + 1,
        })
    }

    /// Skips a value.
    pub fn pass(&mut self, id: TypeId) -> Option<()> {
        match self.type_of(id) {
            AvroType::Text | AvroType::Bytes(_) => self.sized().map(drop),
            AvroType::Integer(_) => self.long().map(drop),
            AvroType::Union(branches) => {
                let branch = usize::try_from(self.long()?).ok()?;
                self.pass(*branches.get(branch)?)
            }
            // A few nested names may mean very many fields without bytes.
            AvroType::Record(_) if self.schema.is_empty(id) => Some(()),
            AvroType::Record(fields) => {
                for field in fields {
                    self.pass_inner(field.of)?;
                }
                Some(())
            }
            AvroType::Array(of) => self.pass_blocks(*of, false),
            AvroType::Map(of) => self.pass_blocks(*of, true),
            AvroType::Null => Some(()),
            AvroType::Boolean => self.take(1).map(drop),
            AvroType::Float => self.take(4).map(drop),
            AvroType::Double => self.take(8).map(drop),
            AvroType::Fixed(size, _) => self.take(*size).map(drop),
            AvroType::Enum(_) => self.long().map(drop),
        }
    }

    #[inline(always)]
    fn pass_inner(&mut self, id: TypeId) -> Option<()> {
        self.enter()?;
        match self.type_of(id) {
            // Most values are texts, which need no call.
            AvroType::Text => self.sized().map(drop)?,
            _ => self.pass(id)?,
        }
        self.leave();
        Some(())
    }

    /// Goes one level deeper; `None` beyond the bound.
    #[inline(always)]
    pub fn enter(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth <= MAX_DEPTH).then_some(())
    }

    #[inline(always)]
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    #[inline(always)]
    pub fn type_of(&self, id: TypeId) -> &'a AvroType {
        self.schema.of(id)
    }

    #[inline(always)]
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Follows unions to a type that is not a union.
    #[inline(always)]
    pub fn within_unions(&mut self, mut id: TypeId) -> Option<TypeId> {
        while let AvroType::Union(branches) = self.type_of(id) {
            let branch = usize::try_from(self.long()?).ok()?;
            id = *branches.get(branch)?;
        }
        Some(id)
    }

    fn pass_blocks(&mut self, of: TypeId, is_map: bool) -> Option<()> {
        let mut n_left = 0;
        while self.has_next((!is_map).then_some(of), &mut n_left)? {
            if is_map {
                self.sized()?;
            }
            self.pass_inner(of)?;
        }
        Some(())
    }
}

#[inline(always)]
fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

impl NumberMeaning {
    #[inline(always)]
    fn value<'a>(self, number: i64) -> Value<'a> {
        match self {
            NumberMeaning::None => Value::Integer(number),
            // Most times are milliseconds, and a division takes longer than the rest.
            NumberMeaning::Since {
                per_ms: 1,
                is_local: false,
            } => Value::Time(number),
            NumberMeaning::Since { per_ms, is_local } => match (number.div_euclid(per_ms), is_local) {
                (ms, false) => Value::Time(ms),
                (ms, true) => Value::LocalTime(ms),
            },
            NumberMeaning::Days => Value::LocalTime(number.saturating_mul(86_400_000)),
        }
    }
}

impl PartialEq for AvroObject<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.bytes.rest, other.bytes.rest)
    }
}

impl PartialEq for AvroArray<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.bytes.rest, other.bytes.rest)
    }
}
