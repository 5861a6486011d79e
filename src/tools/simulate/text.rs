//! Text assembled from short parts. Each part is copied with its whole capacity, which takes a few moves and no call; the
//! bytes beyond its end are overwritten by the next part.

use std::fmt;

/// ASCII text of at most `N` bytes.
#[derive(Debug, Clone, Copy)]
pub struct ShortText<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> ShortText<N> {
    /// Creates a short text.
    ///
    /// # Panics
    /// The text does not fit.
    pub fn new(text: &str) -> ShortText<N> {
        let mut short = ShortText::default();
        short.push(text);
        short
    }

    fn push(&mut self, text: &str) {
        let end = self.len + text.len();
        self.bytes[self.len..end].copy_from_slice(text.as_bytes());
        self.len = end;
    }

    /// Appends a number.
    ///
    /// # Panics
    /// The result does not fit.
    pub fn with_number(mut self, number: u64) -> ShortText<N> {
        self.push(itoa::Buffer::new().format(number));
        self
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<const N: usize> fmt::Display for ShortText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().escape_ascii().fmt(f)
    }
}

impl<const N: usize> Default for ShortText<N> {
    fn default() -> ShortText<N> {
        ShortText {
            bytes: [b' '; N],
            len: 0,
        }
    }
}

/// Capacity larger than any text assembled here, including the room of its last part.
const ROOM: usize = 1024;

/// Text under construction.
#[derive(Debug)]
pub struct TextBuffer {
    bytes: Box<[u8; ROOM]>,
    len: usize,
}

impl Default for TextBuffer {
    fn default() -> TextBuffer {
        TextBuffer {
            bytes: Box::new([b' '; ROOM]),
            len: 0,
        }
    }
}

impl TextBuffer {
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns the position of the next part.
    pub fn end(&self) -> usize {
        self.len
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline]
    pub fn put(&mut self, part: &[u8]) {
        let end = self.len + part.len();
        self.bytes[self.len..end].copy_from_slice(part);
        self.len = end;
    }

    #[inline]
    pub fn put_short<const N: usize>(&mut self, part: &ShortText<N>) {
        self.bytes[self.len..self.len + N].copy_from_slice(&part.bytes);
        self.len += part.len;
    }

    pub fn put_number(&mut self, number: i64) {
        self.put(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Replaces the byte at `index`, or appends it if the text ends there.
    pub fn put_at(&mut self, index: usize, byte: u8) {
        self.bytes[index] = byte;
        self.len = self.len.max(index + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_after_the_end_of_a_part_are_overwritten() {
        let mut text = TextBuffer::default();
        text.put_short(&ShortText::<8>::new("ab"));
        text.put(b"c");
        text.put_short(&ShortText::<32>::new("r-").with_number(u64::MAX));
        text.put_number(-5);
        text.put_at(0, b'A');
        assert_eq!(text.as_bytes(), b"Abcr-18446744073709551615-5");
        text.put_at(text.end(), b'!');
        assert_eq!(text.as_bytes().last(), Some(&b'!'));
        text.clear();
        assert_eq!((text.end(), text.as_bytes()), (0, b"".as_slice()));
    }

    #[test]
    fn a_short_text_is_as_long_as_its_parts() {
        assert_eq!(ShortText::<4>::default().as_bytes(), b"");
        assert_eq!(ShortText::<4>::new("u-").with_number(17).as_bytes(), b"u-17");
        assert_eq!(ShortText::<8>::new("u-17").to_string(), "u-17");
    }
}
