//! Parts of raw JSON text, and the values that fields may have.
//!
//! Raw text keeps what parsed numbers lose: `99999999999999999999` and `-0` are ids, `1.0` is not.

use std::borrow::Cow;

use super::digits::zeros;
use super::{MAX_ID_BYTES, MAX_ID_DIGITS};
use crate::engine::event::Reason;

/// Bound on the depth of nested arrays and objects, including the record itself.
const MAX_DEPTH: usize = 127;

/// Returns whether valid JSON nests deeper than [`MAX_DEPTH`].
pub(super) fn is_too_deep(json: &str) -> bool {
    // A quick count spares nearly all records the walk below.
    if n_openings(json) <= MAX_DEPTH {
        return false;
    }
    let mut depth = 0;
    let mut in_string = false;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                // The escaped byte may be a quote.
                bytes.next();
            }
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// Counts `[` and `{`, in strings, too. The compiler turns sums of bytes into vector instructions.
fn n_openings(json: &str) -> usize {
    let n_in = |chunk: &[u8]| {
        chunk
            .iter()
            .map(|byte| u8::from(matches!(byte, b'[' | b'{')))
            .sum::<u8>()
    };
    // Chunks of 255 bytes, so that each count fits a byte.
    json.as_bytes()
        .chunks(255)
        .map(|chunk| usize::from(n_in(chunk)))
        .sum()
}

/// Unescapes a string. Allocates only if there is an escape.
pub(super) fn text(quoted: &str) -> Result<Cow<'_, str>, Reason> {
    let inner = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .ok_or(Reason::WrongType)?;
    if first_of(inner.as_bytes(), [b'\\']) < inner.len() {
        // Half of a surrogate pair is valid syntax, but not valid text.
        serde_json::from_str(quoted)
            .map(Cow::Owned)
            .map_err(|_| Reason::NotJson)
    } else {
        Ok(Cow::Borrowed(inner))
    }
}

/// Returns the decimal text of an integer; `0` for `-0`.
pub(super) fn integer(number: &str) -> Result<&str, Reason> {
    let digits = number.strip_prefix('-').unwrap_or(number);
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(Reason::WrongType);
    }
    if digits.len() > MAX_ID_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Reason::Number);
    }
    // `-0` and `0` are the same id.
    Ok(if digits == "0" { digits } else { number })
}

/// Returns the text of an id or item, which is a string or an integer.
pub(super) fn id(raw: &str) -> Result<Cow<'_, str>, Reason> {
    if !raw.starts_with('"') {
        return integer(raw).map(Cow::Borrowed);
    }
    let id = text(raw)?;
    if (1..=MAX_ID_BYTES).contains(&id.len()) {
        Ok(id)
    } else {
        Err(Reason::IdLength)
    }
}

/// Returns the raw text of each element of an array, in order.
pub(super) fn elements(array: &str) -> Result<JsonParts<'_>, Reason> {
    match array.strip_prefix('[') {
        Some(inside) => Ok(JsonParts { inside, at: 0 }),
        None => Err(Reason::WrongType),
    }
}

/// Returns the raw text of each key and value of an object, in the order of the text.
pub(super) fn entries(object: &str) -> Result<impl Iterator<Item = (&str, &str)>, Reason> {
    let inside = object.strip_prefix('{').ok_or(Reason::WrongType)?;
    let mut parts = JsonParts { inside, at: 0 };
    Ok(std::iter::from_fn(move || Some((parts.next()?, parts.next()?))))
}

/// Parts between the commas and colons of an array or object. It is known to be valid JSON, so nothing is checked.
pub(super) struct JsonParts<'a> {
    inside: &'a str,
    at: usize,
}

impl<'a> Iterator for JsonParts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.inside.as_bytes();
        let is_between = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':');
        while bytes.get(self.at).is_some_and(is_between) {
            self.at += 1;
        }
        let start = self.at;
        let mut depth = 0;
        loop {
            match bytes.get(self.at)? {
                b'"' => self.at += string_len(&bytes[self.at..]),
                b'[' | b'{' => {
                    depth += 1;
                    self.at += 1;
                }
                b']' | b'}' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b']' | b'}' => break,
                byte if depth == 0 && is_between(byte) => break,
                _ => self.at += 1,
            }
        }
        (start < self.at).then(|| &self.inside[start..self.at])
    }
}

/// Returns the length of the string that the text begins with, including both quotes.
fn string_len(text: &[u8]) -> usize {
    let mut at = 1;
    loop {
        at += first_of(text.get(at..).unwrap_or_default(), [b'"', b'\\']);
        match text.get(at) {
            Some(b'"') => return at + 1,
            Some(_) => at += 2,
            None => return text.len(),
        }
    }
}

/// Returns the position of the first of these bytes, or the length of the text. Compares eight bytes at once.
fn first_of<const N: usize>(text: &[u8], sought: [u8; N]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    for (n, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let is_in = |byte: u8| zeros(word ^ (u64::from(byte) * 0x0101_0101_0101_0101));
        let found = sought.into_iter().fold(0, |found, byte| found | is_in(byte));
        if found != 0 {
            return 8 * n + found.trailing_zeros() as usize / 8;
        }
    }
    let in_rest = rest.iter().position(|byte| sought.contains(byte));
    text.len() - rest.len() + in_rest.unwrap_or(rest.len())
}
