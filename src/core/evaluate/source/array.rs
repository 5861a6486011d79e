//! A JSON array of records, as exports of databases and notebooks have it.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Read};

use anyhow::Context as _;
use serde::Deserializer as _;
use serde::de::{SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::lines::MAX_LINE;
use crate::decode::schema::RawRecord;

/// Calls back with each element and its number, counted from 1. An element has as many bytes as a line may have.
pub(super) fn each(input: impl Read, record: &mut dyn FnMut(u64, RawRecord)) -> anyhow::Result<()> {
    let n_bytes = Cell::new(0);
    let input = BoundedElements {
        input,
        n_bytes: &n_bytes,
        too_long: "an element has 64 MiB or more: write one event per line",
    };
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(input));
    let elements = ArrayVisitor {
        n_bytes: &n_bytes,
        record,
    };
    let read = json.deserialize_seq(elements).and_then(|()| json.end());
    read.context("read its JSON array")
}

struct ArrayVisitor<'a> {
    /// Bytes since the last element.
    n_bytes: &'a Cell<usize>,
    record: &'a mut dyn FnMut(u64, RawRecord),
}

impl<'de> Visitor<'de> for ArrayVisitor<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("an array of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(element) = elements.next_element::<Box<RawValue>>()? {
            number += 1;
            (self.record)(number, element.get().as_bytes().into());
            self.n_bytes.set(0);
        }
        Ok(())
    }
}

/// Input that ends with an error at an element that is too long.
pub(super) struct BoundedElements<'a, R> {
    pub input: R,
    /// Bytes since the last element. The reader of elements resets it.
    pub n_bytes: &'a Cell<usize>,
    /// Message of the error.
    pub too_long: &'static str,
}

impl<R: Read> Read for BoundedElements<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.n_bytes.get() >= MAX_LINE {
            return Err(io::Error::other(self.too_long));
        }
        let n_read = self.input.read(buffer)?;
        self.n_bytes.set(self.n_bytes.get() + n_read);
        Ok(n_read)
    }
}
