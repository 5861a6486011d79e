//! Encoding of numbers and texts as bytes: LEB128, with zigzag for signed numbers.

use std::collections::BTreeMap;
use std::fmt;

/// Reason to reject bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// The bytes are too short or too long.
    Length,
    /// A number or text is invalid, or not encoded in its only valid form.
    Number,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::Length => "it is truncated, or longer than declared",
            Malformed::Number => "a number in it is malformed",
        })
    }
}

impl std::error::Error for Malformed {}

/// Buffer that values are appended to.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    pub fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub fn number(&mut self, number: u64) {
        self.wide(number.into());
    }

    pub fn signed(&mut self, number: i128) {
        self.wide((number << 1 ^ number >> 127) as u128);
    }

    fn wide(&mut self, mut number: u128) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    /// Appends bytes without their length, which the reader must know.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends Unix ms, or 0 for `None`.
    pub fn time(&mut self, ms: Option<i64>) {
        self.byte(u8::from(ms.is_some()));
        ms.iter().for_each(|ms| self.signed((*ms).into()));
    }

    /// Appends a part with its length in front, so that readers can skip it without understanding it.
    pub fn part(&mut self, write: impl FnOnce(&mut Writer)) {
        let mut part = Writer::default();
        write(&mut part);
        self.number(part.0.len() as u64);
        self.0.extend_from_slice(&part.0);
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Reader of the output of a [`Writer`]. It accepts nothing else: each number has exactly one encoding.
#[derive(Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(Malformed::Length)?;
        self.0 = rest;
        Ok(*first)
    }

    pub fn flag(&mut self) -> Result<bool, Malformed> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed::Number),
        }
    }

    pub fn number(&mut self) -> Result<u64, Malformed> {
        u64::try_from(self.wide()?).map_err(|_| Malformed::Number)
    }

    pub fn signed(&mut self) -> Result<i128, Malformed> {
        let number = self.wide()?;
        Ok((number >> 1) as i128 ^ -((number & 1) as i128))
    }

    /// Reads a sum that is far enough from the limits of 128 bits for adding others to it.
    pub fn sum(&mut self) -> Result<i128, Malformed> {
        let sum = self.signed()?;
        let is_sound = sum.unsigned_abs() < 1 << 120;
        is_sound.then_some(sum).ok_or(Malformed::Number)
    }

    fn wide(&mut self) -> Result<u128, Malformed> {
        let first = self.byte()?;
        // Most numbers take a single byte.
        let mut number = u128::from(first & 0x7f);
        if first < 0x80 {
            return Ok(number);
        }
        for shift in (7..).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            // Reject bits beyond the 128th, and a last byte of 0, which the shortest encoding does not have.
            if shift > 126 || bits << shift >> shift != bits || byte == 0 {
                return Err(Malformed::Number);
            }
            number |= bits << shift;
            if byte < 0x80 {
                break;
            }
        }
        Ok(number)
    }

    /// Reads a count of values that follow. Each takes at least one byte, so a larger count is rejected.
    pub fn length(&mut self) -> Result<usize, Malformed> {
        let length = self.number()?;
        let is_inside = length <= self.0.len() as u64;
        is_inside.then_some(length as usize).ok_or(Malformed::Length)
    }

    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.part()?.0).map_err(|_| Malformed::Number)
    }

    /// Reads exactly `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (array, rest) = self.0.split_first_chunk().ok_or(Malformed::Length)?;
        self.0 = rest;
        Ok(*array)
    }

    pub fn part(&mut self) -> Result<Reader<'a>, Malformed> {
        let length = self.length()?;
        let (part, rest) = self.0.split_at(length);
        self.0 = rest;
        Ok(Reader(part))
    }

    /// Reads milliseconds, or another number that fits.
    pub fn ms(&mut self) -> Result<i64, Malformed> {
        i64::try_from(self.signed()?).map_err(|_| Malformed::Number)
    }

    /// Reads Unix ms, or `None` for 0.
    pub fn time(&mut self) -> Result<Option<i64>, Malformed> {
        self.flag()?.then(|| self.ms()).transpose()
    }

    /// Returns the bytes that are not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Checks that everything was read.
    ///
    /// # Errors
    /// If any bytes are left.
    pub fn end(&self) -> Result<(), Malformed> {
        self.0.is_empty().then_some(()).ok_or(Malformed::Length)
    }
}

/// Inserts a key that must be larger than all others, so that equal maps have only one encoding.
///
/// # Errors
/// If it is not the largest.
pub fn insert_last<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V) -> Result<(), Malformed> {
    if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
        return Err(Malformed::Number);
    }
    map.insert(key, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn written_values_are_read_back(numbers in prop::collection::vec(any::<i128>(), 0..9), text in ".{0,9}") {
            let mut to = Writer::default();
            to.text(&text);
            numbers.iter().for_each(|number| to.signed(*number));
            let bytes = to.into_bytes();
            let mut from = Reader::new(&bytes);
            prop_assert_eq!(from.text(), Ok(&*text));
            for number in numbers {
                prop_assert_eq!(from.signed(), Ok(number));
            }
            prop_assert_eq!(from.end(), Ok(()));
        }

        /// A number has a single encoding, so that equal numbers have equal bytes and vice versa.
        #[test]
        fn readable_bytes_equal_their_own_encoding(bytes in prop::collection::vec(any::<u8>(), 1..20)) {
            let mut from = Reader::new(&bytes);
            if let Ok(number) = from.signed() {
                let mut to = Writer::default();
                to.signed(number);
                let written = to.into_bytes();
                prop_assert_eq!(&bytes[..written.len()], &written[..]);
            }
        }
    }

    #[test]
    fn small_numbers_take_one_byte_and_the_largest_round_trip() {
        for (number, n_bytes) in [
            (0, 1),
            (-1, 1),
            (63, 1),
            (64, 2),
            (i128::MAX, 19),
            (i128::MIN, 19),
        ] {
            let mut to = Writer::default();
            to.signed(number);
            let bytes = to.into_bytes();
            assert_eq!(bytes.len(), n_bytes);
            assert_eq!(Reader::new(&bytes).signed(), Ok(number));
        }
    }
}
