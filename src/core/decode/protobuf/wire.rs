//! Wire format: tags, integers of variable length, and lengths. The bytes may be damaged, so everything is checked.

use super::super::varint;
use super::MAX_DEPTH;

/// Value as it is encoded, before its type gives it a meaning.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Raw<'a> {
    Varint(u64),
    Fixed64(u64),
    Sized(&'a [u8]),
    Group(&'a [u8]),
    Fixed32(u32),
}

/// Bytes still to be read.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Wire<'a> {
    pub rest: &'a [u8],
}

/// Wire types.
pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const SIZED: u8 = 2;
pub(super) const GROUP: u8 = 3;
const END_OF_GROUP: u8 = 4;
pub(super) const FIXED32: u8 = 5;

impl<'a> Wire<'a> {
    #[inline(always)]
    pub fn of(bytes: &'a [u8]) -> Wire<'a> {
        Wire { rest: bytes }
    }

    #[inline(always)]
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline(always)]
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(taken)
    }

    /// Integer of at most 64 bits.
    #[inline(always)]
    pub fn varint(&mut self) -> Option<u64> {
        varint::take(&mut self.rest)
    }

    #[inline(always)]
    pub fn sized(&mut self) -> Option<&'a [u8]> {
        let n = self.varint()?;
        self.take(usize::try_from(n).ok()?)
    }

    /// Tag of the next field: its number times eight, plus its wire type.
    #[inline(always)]
    pub fn tag(&mut self) -> Option<u32> {
        let tag = u32::try_from(self.varint()?).ok()?;
        // No field has the number 0.
        (tag >= 8).then_some(tag)
    }

    /// Passes this tag, if it comes next in its shortest form and has one or two bytes.
    #[inline(always)]
    pub fn comes(&mut self, tag: u32) -> bool {
        let rest = match self.rest {
            [only, rest @ ..] if u32::from(*only) == tag => rest,
            [low @ 0x80..=0xff, high @ 1..0x80, rest @ ..]
                if u32::from(low & 0x7f) | u32::from(*high) << 7 == tag =>
            {
                rest
            }
            _ => return false,
        };
        self.rest = rest;
        true
    }

    /// Passes the value behind a tag.
    #[inline(always)]
    pub fn pass(&mut self, tag: u32) -> Option<()> {
        match wire_type(tag) {
            SIZED => self.sized().map(drop),
            _ => self.raw(tag).map(drop),
        }
    }

    /// Reads the value behind a tag.
    #[inline]
    pub fn raw(&mut self, tag: u32) -> Option<Raw<'a>> {
        Some(match wire_type(tag) {
            VARINT => Raw::Varint(self.varint()?),
            FIXED64 => Raw::Fixed64(u64::from_le_bytes(*self.take(8)?.first_chunk()?)),
            SIZED => Raw::Sized(self.sized()?),
            GROUP => Raw::Group(self.group(tag, 0)?),
            FIXED32 => Raw::Fixed32(u32::from_le_bytes(*self.take(4)?.first_chunk()?)),
            _ => return None,
        })
    }

    /// Passes the rest of a group, and returns its fields.
    fn group(&mut self, start: u32, depth: u32) -> Option<&'a [u8]> {
        if depth == MAX_DEPTH {
            return None;
        }
        let all = self.rest;
        loop {
            let before = self.rest.len();
            let tag = self.tag()?;
            match wire_type(tag) {
                GROUP => {
                    self.group(tag, depth + 1)?;
                }
                END_OF_GROUP => return (number(tag) == number(start)).then(|| &all[..all.len() - before]),
                _ => {
                    self.raw(tag)?;
                }
            }
        }
    }
}

#[inline(always)]
pub(super) fn number(tag: u32) -> u32 {
    tag >> 3
}

#[inline(always)]
pub(super) fn wire_type(tag: u32) -> u8 {
    (tag & 7) as u8
}

impl Raw<'_> {
    /// Returns the wire type with which it was written.
    pub fn wire_type(self) -> u8 {
        match self {
            Raw::Varint(_) => VARINT,
            Raw::Fixed64(_) => FIXED64,
            Raw::Sized(_) => SIZED,
            Raw::Group(_) => GROUP,
            Raw::Fixed32(_) => FIXED32,
        }
    }
}
