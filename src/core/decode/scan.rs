//! Scanner that goes through JSON token by token. `None` means that it cannot decide, not that the JSON is wrong: it does
//! not support escapes.
//!
//! The methods are inlined into their only caller, so that its position in the text stays in registers.

use std::ops::Range;

use super::block::BLOCK;
use super::digits::{integer_end, number_end, thirteen_digits};
use super::keys::FieldKey;
use super::marks::{first_mark, marks_of_block};
use super::{MAX_ID_BYTES, MAX_ID_DIGITS};

/// Bound on the levels of unknown values that are skipped.
const MAX_LEVELS: u32 = 8;

/// ```text
/// {"request_id":"r-1","user_id":"u-7","ts":17…
/// └─ passed ─┘└─ rest
///              1   1 1 1       1 1   1 1  1      marks: shifted as the rest is, so that the lowest one is the next
/// ```
#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner<'a> {
    json: &'a [u8],
    /// Text that has not been passed.
    rest: &'a [u8],
    /// Marks of the rest, as far as they are known: up to the last set bit.
    marks: u64,
}

impl<'a> Scanner<'a> {
    pub fn new(json: &'a [u8]) -> Self {
        Scanner {
            json,
            rest: json,
            marks: 0,
        }
    }

    /// Returns a scanner that has passed `n_passed` bytes.
    #[inline(always)]
    pub fn behind(json: &'a [u8], n_passed: usize) -> Self {
        let rest = json.get(n_passed..).unwrap_or_default();
        Scanner { json, rest, marks: 0 }
    }

    /// Calls back with the keys of an object, which must be all of the text, and the ranges of their values.
    #[inline(always)]
    pub fn entries(text: &'a [u8], mut each: impl FnMut(&'a [u8], Range<usize>) -> Option<()>) -> Option<()> {
        let mut json = Scanner::new(text);
        let mut more = json.enter(b'{', b'}')?;
        while more {
            let key = json.string()?;
            json.expect(b':')?;
            // Pass white space, so that the range starts with the value.
            json.peek()?;
            let start = json.n_passed();
            json = json.behind_value(MAX_LEVELS)?;
            each(key, start..json.n_passed())?;
            more = json.more(b'}')?;
        }
        json.is_at_end().then_some(())
    }

    /// Passes white space, and returns the byte after it without passing it.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<u8> {
        match self.rest {
            [byte, ..] if *byte > b' ' => Some(*byte),
            _ => {
                self.pass(space_len(self.rest));
                self.rest.first().copied()
            }
        }
    }

    /// Passes this punctuation, which must come next.
    #[inline(always)]
    pub fn expect(&mut self, punctuation: u8) -> Option<()> {
        if !self.comes(&[punctuation]) {
            self.pass(space_len(self.rest));
            if !self.comes(&[punctuation]) {
                return None;
            }
        }
        Some(())
    }

    /// Enters an array or object, and returns whether it contains anything. An empty one is passed.
    #[inline(always)]
    pub fn enter(&mut self, open: u8, close: u8) -> Option<bool> {
        self.expect(open)?;
        let has_any = self.peek()? != close;
        if !has_any {
            self.pass(1);
        }
        Some(has_any)
    }

    /// Passes a comma with the white space after it and returns true, or passes the end of an array or object and returns
    /// false.
    #[inline(always)]
    pub fn more(&mut self, close: u8) -> Option<bool> {
        if let [b',', b'"', ..] = self.rest {
            self.pass(1);
            return Some(true);
        }
        if self.peek()? == close {
            self.pass(1);
            return Some(false);
        }
        self.expect(b',')?;
        self.peek().map(|_| true)
    }

    /// Returns the number of bytes that have been passed.
    #[inline(always)]
    pub fn n_passed(&self) -> usize {
        self.json.len() - self.rest.len()
    }

    /// Returns the text that has not been passed.
    #[inline(always)]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Passes everything before `rest`, which must be a suffix of the text.
    #[inline(always)]
    pub fn pass_to(&mut self, rest: &'a [u8]) {
        self.rest = rest;
        self.marks = 0;
    }

    /// Passes `n` bytes.
    #[inline(always)]
    pub fn pass(&mut self, n: usize) {
        self.rest = &self.rest[n..];
        // Marks cover at most one block, and a longer shift would overflow.
        self.marks = if n < BLOCK { self.marks >> n } else { 0 };
    }

    /// Passes these bytes, if they come next.
    #[inline(always)]
    pub fn comes(&mut self, bytes: &[u8]) -> bool {
        let comes = self.rest.starts_with(bytes);
        if comes {
            self.pass(bytes.len());
        }
        comes
    }

    /// Passes these bytes, which must come next.
    #[inline(always)]
    pub fn expect_all(&mut self, bytes: &[u8]) -> Option<()> {
        self.comes(bytes).then_some(())
    }

    /// Passes a few bytes, which must come next. They are compared without a function call.
    #[inline(always)]
    pub fn expect_few(&mut self, bytes: &[u8]) -> Option<()> {
        let next = self.rest.get(..bytes.len())?;
        let is_equal = match bytes.len() {
            8..=16 => {
                next.first_chunk::<8>() == bytes.first_chunk() && next.last_chunk::<8>() == bytes.last_chunk()
            }
            4..=7 => {
                next.first_chunk::<4>() == bytes.first_chunk() && next.last_chunk::<4>() == bytes.last_chunk()
            }
            1 => next[0] == bytes[0],
            _ => next == bytes,
        };
        is_equal.then(|| self.pass(bytes.len()))
    }

    /// Checks that these bytes are all that is left.
    #[inline(always)]
    pub fn is_last(&self, bytes: &[u8]) -> Option<()> {
        (self.rest == bytes).then_some(())
    }

    /// Returns whether nothing but white space is left.
    #[inline(always)]
    pub fn is_at_end(&mut self) -> bool {
        self.rest.is_empty() || self.peek().is_none()
    }

    /// Passes this key and its colon if they come next, without white space between them.
    #[inline(always)]
    pub fn key(&mut self, key: FieldKey) -> bool {
        self.comes(key.spelling())
    }

    /// Passes a string and returns its contents, which are valid UTF-8.
    #[inline(always)]
    pub fn string(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        self.string_inside()
    }

    /// Passes the rest of a string whose first quote has been passed.
    #[inline(always)]
    pub fn string_inside(&mut self) -> Option<&'a [u8]> {
        if self.marks == 0 {
            self.marks = marks_of_block(self.json, self.n_passed());
            if self.marks == 0 {
                return self.long_or_foreign();
            }
        }
        let n = self.marks.trailing_zeros() as usize;
        let Some((inside, [b'"', rest @ ..])) = self.rest.split_at_checked(n) else {
            return self.long_or_foreign();
        };
        self.rest = rest;
        // Two shifts, because n + 1 may be the width of the marks.
        self.marks = self.marks >> n >> 1;
        Some(inside)
    }

    /// Passes a string that has more than a block left, or is not ASCII.
    #[inline(always)]
    fn long_or_foreign(&mut self) -> Option<&'a [u8]> {
        let (inside, rest) = self.rest.split_at_checked(text_len(self.rest)?)?;
        self.pass_to(rest.get(1..)?);
        Some(inside)
    }

    /// Passes an id or item, which is a string or an integer, and returns its text.
    #[inline(always)]
    pub fn id(&mut self) -> Option<&'a [u8]> {
        match self.peek()? {
            b'"' => self.pass(1),
            _ => return self.integer(),
        }
        self.id_inside()
    }

    /// Passes the rest of an id whose first quote has been passed.
    #[inline(always)]
    pub fn id_inside(&mut self) -> Option<&'a [u8]> {
        self.string_inside()
            .filter(|id| (1..=MAX_ID_BYTES).contains(&id.len()))
    }

    /// Passes an array of integers or strings of any length, and calls back with each element as it is found.
    #[inline(always)]
    pub fn ids(&mut self, mut each: impl FnMut(&'a [u8]) -> Option<()>) -> Option<()> {
        let mut more = self.enter(b'[', b']')?;
        while more {
            if self.peek()? == b'"' {
                self.pass(1);
                self.ids_in_quotes(&mut each)?;
            } else {
                each(self.integer()?)?;
            }
            more = self.more(b']')?;
        }
        Some(())
    }

    /// Calls back with one or more strings that have `","` or `", "` between them. The first quote must have been passed,
    /// and the last one is passed.
    #[inline(always)]
    pub fn ids_in_quotes(&mut self, each: &mut impl FnMut(&'a [u8]) -> Option<()>) -> Option<()> {
        loop {
            if let Some((id, [b'"', behind @ ..])) = self.short_string() {
                each(id)?;
                // Usually another string follows, whose first quote can be passed at once.
                if behind == b",\"" {
                    self.rest = &self.rest[id.len() + 3..];
                    self.marks = self.marks >> id.len() >> 3;
                    continue;
                }
                self.rest = &self.rest[id.len() + 1..];
                self.marks = self.marks >> id.len() >> 1;
            } else {
                each(self.string_inside()?)?;
            }
            if !self.comes(b",\"") && !self.comes(b", \"") {
                return Some(());
            }
        }
    }

    /// Returns the rest of a string and the three bytes from its quote on, if it ends in this block.
    #[inline(always)]
    fn short_string(&mut self) -> Option<(&'a [u8], &'a [u8; 3])> {
        if self.marks == 0 {
            self.marks = marks_of_block(self.json, self.n_passed());
            if self.marks == 0 {
                return None;
            }
        }
        let n = self.marks.trailing_zeros() as usize;
        self.rest.get(..n + 3)?.split_last_chunk()
    }

    /// Passes an integer and returns its decimal text; `0` for `-0`.
    #[inline(always)]
    fn integer(&mut self) -> Option<&'a [u8]> {
        let (text, rest) = self.rest.split_at_checked(integer_end(self.rest)?)?;
        self.pass_to(rest);
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        match digits {
            b"0" => Some(digits),
            _ => (digits.len() <= MAX_ID_DIGITS).then_some(text),
        }
    }

    /// Passes thirteen digits, as Unix milliseconds have them, and returns their value.
    #[inline(always)]
    pub fn epoch_ms(&mut self) -> Option<i64> {
        let digits: &[u8; 13] = self.rest.first_chunk()?;
        // Checked first, because nothing may be passed in vain.
        if digits[0] == b'0' {
            return None;
        }
        let number = thirteen_digits(digits)? as i64;
        self.pass(digits.len());
        Some(number)
    }

    /// Passes `null`, if it comes next.
    #[inline(always)]
    pub fn null(&mut self) -> bool {
        self.peek() == Some(b'n') && self.comes(b"null")
    }

    /// Skips a value.
    #[inline(always)]
    pub fn skip_value(&mut self) -> Option<()> {
        *self = self.behind_value(MAX_LEVELS)?;
        Some(())
    }

    /// Skips a value, which is rarely an array or object.
    #[inline(always)]
    pub fn skip_scalar(&mut self) -> Option<()> {
        match self.rest.first()? {
            b'"' => {
                self.pass(1);
                self.string_inside().map(drop)
            }
            b'0'..=b'9' | b'-' => {
                let n = match short_number_len(self.rest) {
                    Some(n) => n,
                    None => number_end(self.rest)?,
                };
                self.pass(n);
                Some(())
            }
            _ => self.skip_value(),
        }
    }

    /// Skips a value and returns its text.
    #[inline(always)]
    pub fn value(&mut self) -> Option<&'a str> {
        // Skip white space, so that the text starts with the value.
        self.peek()?;
        let start = self.n_passed();
        self.skip_value()?;
        std::str::from_utf8(&self.json[start..self.n_passed()]).ok()
    }

    /// Returns whether the number that was just skipped continues.
    #[inline(always)]
    pub fn is_in_number(&self) -> bool {
        matches!(self.rest.first(), Some(b'0'..=b'9' | b'.' | b'e' | b'E'))
    }

    /// Passes an unknown key and its value.
    #[inline(always)]
    pub fn skip_unknown(&mut self) -> Option<()> {
        *self = self.behind_unknown()?;
        Some(())
    }

    #[inline(never)]
    fn behind_unknown(mut self) -> Option<Self> {
        // A known name ends up here if white space precedes its colon. The parser reads such records.
        if FieldKey::is_name(self.string()?) {
            return None;
        }
        self.expect(b':')?;
        self.behind_value(MAX_LEVELS)
    }

    #[inline(never)]
    fn behind_value(mut self, levels: u32) -> Option<Self> {
        match self.peek()? {
            b'"' => self.string().map(drop)?,
            b't' => self.comes(b"true").then_some(())?,
            b'f' => self.comes(b"false").then_some(())?,
            b'n' => self.comes(b"null").then_some(())?,
            open @ (b'[' | b'{') => {
                // In ASCII, each closing bracket is two after its opening one.
                let close = open + 2;
                let levels = levels.checked_sub(1)?;
                let mut more = self.enter(open, close)?;
                while more {
                    if open == b'{' {
                        self.string()?;
                        self.expect(b':')?;
                    }
                    self = self.behind_value(levels)?;
                    more = self.more(close)?;
                }
            }
            _ => self.pass(number_end(self.rest)?),
        }
        Some(self)
    }
}

/// Returns the length of a number of a few digits, with or without a fraction, that a comma or bracket follows. `None` for any other.
#[inline(always)]
fn short_number_len(text: &[u8]) -> Option<usize> {
    let n_digits = |text: &[u8]| {
        text.iter()
            .take(8)
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let whole = n_digits(text);
    // JSON allows no leading zero.
    if whole == 0 || (whole > 1 && text[0] == b'0') {
        return None;
    }
    let end = match text.get(whole)? {
        b'.' => {
            let fraction = n_digits(&text[whole + 1..]);
            (fraction > 0).then_some(whole + 1 + fraction)?
        }
        _ => whole,
    };
    matches!(text.get(end)?, b',' | b'}' | b']').then_some(end)
}

#[cold]
#[inline(never)]
fn space_len(text: &[u8]) -> usize {
    let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    text.iter().take_while(is_space).count()
}

/// Returns the length of a string without escapes, of any characters.
#[inline(never)]
fn text_len(text: &[u8]) -> Option<usize> {
    let n = first_mark(text)?;
    if text[n] == b'"' {
        return Some(n);
    }
    let is_end = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
    let n = text.iter().position(is_end)?;
    (text[n] == b'"' && std::str::from_utf8(&text[..n]).is_ok()).then_some(n)
}
