//! Goes through JSON token by token. Says `None` where it cannot tell, which is not to say that the JSON is wrong: it
//! knows no escapes.
//!
//! The methods are inlined into their one user, so that its place in the text stays in registers.

use std::ops::Range;

use super::digits::{integer_end, number_end, thirteen_digits};
use super::keys::Key;
use super::marks::{Marks, marks_of_block};
use super::{MAX_ID_BYTES, MAX_ID_DIGITS};

/// Levels of unknown values that are passed over.
const MAX_LEVELS: u32 = 8;

#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner<'a> {
    json: &'a [u8],
    /// The next byte to read.
    at: usize,
    marks: Marks,
}

impl<'a> Scanner<'a> {
    pub fn new(json: &'a [u8]) -> Self {
        Scanner {
            json,
            at: 0,
            marks: Marks::default(),
        }
    }

    /// Hands on the keys of an object, which is all of the text, and the places of their values.
    #[inline(always)]
    pub fn entries(text: &'a [u8], mut each: impl FnMut(&'a [u8], Range<usize>) -> Option<()>) -> Option<()> {
        let mut json = Scanner::new(text);
        let mut more = json.enter(b'{', b'}')?;
        while more {
            let key = json.string()?;
            json.expect(b':')?;
            json.peek()?;
            let start = json.at;
            json = json.behind_value(MAX_LEVELS)?;
            each(key, start..json.at)?;
            more = json.more(b'}')?;
        }
        json.is_at_end().then_some(())
    }

    /// The next byte, which is no white space: that is passed. It stays the next.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<u8> {
        match self.json.get(self.at) {
            Some(&byte) if byte > b' ' => Some(byte),
            _ => {
                self.at = space_end(self.json, self.at);
                self.json.get(self.at).copied()
            }
        }
    }

    /// Passes this punctuation, which must come next.
    #[inline(always)]
    pub fn expect(&mut self, punctuation: u8) -> Option<()> {
        if self.json.get(self.at) != Some(&punctuation) {
            self.at = space_end(self.json, self.at);
            if self.json.get(self.at) != Some(&punctuation) {
                return None;
            }
        }
        self.at += 1;
        Some(())
    }

    /// Enters an array or object: whether it has anything in it. If not, it has been passed.
    #[inline(always)]
    pub fn enter(&mut self, open: u8, close: u8) -> Option<bool> {
        self.expect(open)?;
        let has_any = self.peek()? != close;
        self.at += usize::from(!has_any);
        Some(has_any)
    }

    /// Passes a comma, behind which there is more, and white space, or the end of an array or object.
    #[inline(always)]
    pub fn more(&mut self, close: u8) -> Option<bool> {
        if self.json.get(self.at) != Some(&b',') && self.peek()? != b',' {
            self.expect(close)?;
            return Some(false);
        }
        self.at += 1;
        self.peek()?;
        Some(true)
    }

    /// How many bytes have been passed.
    #[inline(always)]
    pub fn n_passed(&self) -> usize {
        self.at
    }

    /// What has not been passed.
    #[inline(always)]
    pub fn rest(&self) -> &'a [u8] {
        self.json.get(self.at..).unwrap_or_default()
    }

    /// Passes what is before this place.
    #[inline(always)]
    pub fn pass_to(&mut self, end: usize) {
        self.at = end;
    }

    /// Whether nothing but white space is left.
    #[inline(always)]
    pub fn is_at_end(&mut self) -> bool {
        self.at == self.json.len() || self.peek().is_none()
    }

    /// Passes this key and its colon, if that is what comes next, written as usual.
    #[inline(always)]
    pub fn key(&mut self, key: Key) -> bool {
        self.word(key.spelling()).is_some()
    }

    /// The inside of a string: valid UTF-8.
    #[inline(always)]
    pub fn string(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        self.string_inside()
    }

    /// The rest of a string whose first quote has been passed.
    #[inline(always)]
    fn string_inside(&mut self) -> Option<&'a [u8]> {
        let rest = self.json.get(self.at..)?;
        let mut n = self.marks.next(self.json, self.at)? - self.at;
        match rest.get(n)? {
            b'"' => {}
            0x80.. => n = text_len(rest)?,
            _ => return None,
        }
        self.at += n + 1;
        rest.get(..n)
    }

    /// The text of an id or item: a string, or an integer.
    #[inline(always)]
    pub fn id(&mut self) -> Option<&'a [u8]> {
        if self.peek()? != b'"' {
            return self.integer();
        }
        self.at += 1;
        self.id_inside()
    }

    /// The rest of an id that is a string whose first quote has been passed.
    #[inline(always)]
    fn id_inside(&mut self) -> Option<&'a [u8]> {
        self.string_inside().filter(|id| is_id(id))
    }

    /// Hands on the ids of an array, each as it is found, and passes the array.
    #[inline(always)]
    pub fn ids(&mut self, mut each: impl FnMut(&'a [u8]) -> Option<()>) -> Option<()> {
        let mut more = self.enter(b'[', b']')?;
        while more {
            if self.peek()? == b'"' {
                self.at += 1;
                self.ids_in_quotes(&mut each)?;
            } else {
                each(self.integer()?)?;
            }
            more = self.more(b']')?;
        }
        Some(())
    }

    /// Hands on ids that are strings, one or more with `","` or `", "` between them. The first quote has been passed, and in the
    /// end the last one.
    ///
    /// The marks of what is left stay in a register: a shift takes the place of a subtraction, a shift and a comparison.
    #[inline(always)]
    fn ids_in_quotes(&mut self, each: &mut impl FnMut(&'a [u8]) -> Option<()>) -> Option<()> {
        let mut rest = self.rest();
        let mut marks = 0;
        loop {
            if marks == 0 {
                marks = marks_of_block(self.json, self.json.len() - rest.len());
                if marks == 0 {
                    break;
                }
            }
            let n = marks.trailing_zeros() as usize;
            let text = rest.get(..n + 3);
            let Some((id, [b'"', behind @ ..])) = text.and_then(|text| text.split_last_chunk::<3>()) else {
                break;
            };
            if id.is_empty() {
                return None;
            }
            each(id)?;
            if behind == b",\"" {
                (marks, rest) = (marks >> n >> 3, &rest[n + 3..]);
            } else if behind == b", " && rest.get(n + 3) == Some(&b'"') {
                (marks, rest) = (marks >> n >> 4, &rest[n + 4..]);
            } else {
                self.at = self.json.len() - rest.len() + n + 1;
                return Some(());
            }
        }
        self.at = self.json.len() - rest.len();
        each(self.id_inside()?)
    }

    /// The decimal text of an integer, `0` for `-0`.
    #[inline(always)]
    fn integer(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        self.at = integer_end(self.json, start)?;
        let text = self.json.get(start..self.at)?;
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        match digits {
            b"0" => Some(digits),
            _ => (digits.len() <= MAX_ID_DIGITS).then_some(text),
        }
    }

    /// The number that thirteen digits are, as epoch milliseconds have them.
    #[inline(always)]
    pub fn epoch_ms(&mut self) -> Option<i64> {
        let digits: &[u8; 13] = self.json.get(self.at..)?.first_chunk()?;
        self.at += digits.len();
        let number = thirteen_digits(digits)? as i64;
        (digits[0] != b'0').then_some(number)
    }

    /// Passes `null`, if it comes next.
    #[inline(always)]
    pub fn null(&mut self) -> bool {
        self.peek() == Some(b'n') && self.word(b"null").is_some()
    }

    #[inline(always)]
    fn word(&mut self, word: &[u8]) -> Option<()> {
        if !self.json.get(self.at..)?.starts_with(word) {
            return None;
        }
        self.at += word.len();
        Some(())
    }

    /// Passes a key that is not known, and its value.
    #[inline(always)]
    pub fn skip_unknown(&mut self) -> Option<()> {
        *self = self.behind_unknown()?;
        Some(())
    }

    #[inline(never)]
    fn behind_unknown(mut self) -> Option<Self> {
        if Key::is_name(self.string()?) {
            return None;
        }
        self.expect(b':')?;
        self.behind_value(MAX_LEVELS)
    }

    #[inline(never)]
    fn behind_value(mut self, levels: u32) -> Option<Self> {
        match self.peek()? {
            b'"' => self.string().map(drop)?,
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            open @ (b'[' | b'{') => {
                // In ASCII two behind.
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
            _ => self.at = number_end(self.json, self.at)?,
        }
        Some(self)
    }
}

#[inline(always)]
fn is_id(text: &[u8]) -> bool {
    (1..=MAX_ID_BYTES).contains(&text.len())
}

#[cold]
#[inline(never)]
fn space_end(json: &[u8], start: usize) -> usize {
    let rest = json.get(start..).unwrap_or_default();
    let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    start + rest.iter().take_while(is_space).count()
}

/// The length of a string without escapes, whatever letters are in it.
#[cold]
#[inline(never)]
fn text_len(text: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
    let n = text.iter().position(is_end)?;
    (text[n] == b'"' && std::str::from_utf8(&text[..n]).is_ok()).then_some(n)
}
