//! Splits bytes into lines, without a copy or an allocation for each.

use std::fmt;
use std::io::{self, ErrorKind, Read};

/// Memory bounds of a reader.
pub(super) struct ReadBounds {
    /// Bytes read at a time: few enough to stay in a core's cache, enough to make calls of the system rare.
    pub buffer: usize,
    /// A line of as many bytes is not looked at, so that a file without line ends does not fill the memory.
    pub line: usize,
    /// Reading ends at a line of as many bytes: a device may never end one.
    pub end: u64,
}

impl Default for ReadBounds {
    fn default() -> ReadBounds {
        ReadBounds {
            buffer: 256 << 10,
            line: MAX_LINE,
            end: 1 << 30,
        }
    }
}

pub(super) const MAX_LINE: usize = 64 << 20;

/// Lines that were too long to be looked at.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LongLines {
    n: u64,
    /// Number of the first one, and its bytes.
    first: (u64, u64),
}

impl LongLines {
    fn add(&mut self, number: u64, n_bytes: u64) {
        if self.n == 0 {
            self.first = (number, n_bytes);
        }
        self.n += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.n == 0
    }
}

impl fmt::Display for LongLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, n_bytes) = self.first;
        write!(f, "line {number} has {n_bytes} bytes")?;
        if self.n > 1 {
            write!(f, ", and {} later lines are too long as well", self.n - 1)?;
        }
        write!(
            f,
            "; only lines of less than 64 MiB ({MAX_LINE} bytes) are read: write one event per line, from a JSON array with \
             jq --compact-output '.[]'"
        )
    }
}

fn endless(number: u64, end: u64) -> io::Error {
    io::Error::other(format!(
        "line {number} has no end within {} MiB: it is not a file with one event per line",
        end >> 20
    ))
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Calls back with the number of each line, counted from 1, and its bytes without the white space around them.
///
/// Blank lines are counted and skipped. A line that reaches its bound is passed on as an empty one, and reported at the end. A
/// byte order mark before the first line is removed.
pub(super) fn each(
    mut input: impl Read,
    bounds: &ReadBounds,
    line: &mut dyn FnMut(u64, &[u8]),
) -> io::Result<LongLines> {
    let mut long = LongLines::default();
    let mut buffer = vec![0; bounds.buffer];
    // Number of bytes at the start of the buffer that belong to an unfinished line.
    let mut n_open = 0;
    // Bytes of that line that were dropped.
    let mut n_dropped = 0;
    let (mut number, mut n_lines) = (0, 0);
    let mut hand_over = |bytes: &[u8], n_dropped: u64| {
        number += 1;
        // Elsewhere these bytes are content.
        let bytes = match bytes.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if number == 1 => rest,
            _ => bytes,
        };
        let record = bytes.trim_ascii();
        // A line without its beginning must not be decoded.
        if n_dropped > 0 {
            long.add(number, n_dropped + bytes.len() as u64);
            line(number, b"");
        } else if !record.is_empty() {
            line(number, record);
        }
    };
    loop {
        // The beginning of a long line is dropped, which bounds the memory. Its other bytes are only counted.
        if n_open >= bounds.line {
            n_dropped += n_open as u64;
            n_open = 0;
        }
        if n_dropped >= bounds.end {
            return Err(endless(n_lines + 1, bounds.end));
        }
        // Doubling keeps the number of copies of a long line small.
        if n_open == buffer.len() {
            buffer.resize((2 * n_open).min(bounds.line), 0);
        }
        let end = match input.read(&mut buffer[n_open..]) {
            Ok(0) => break,
            Ok(n_read) => n_open + n_read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut start = 0;
        // The unfinished line has no line end in the bytes that were searched before.
        for line_end in memchr::memchr_iter(b'\n', &buffer[n_open..end]) {
            let line_end = n_open + line_end;
            hand_over(&buffer[start..line_end], n_dropped);
            n_lines += 1;
            n_dropped = 0;
            start = line_end + 1;
        }
        // The next read continues the unfinished line.
        buffer.copy_within(start..end, 0);
        n_open = end - start;
    }
    // The last line may lack a line end.
    if n_open > 0 || n_dropped > 0 {
        hand_over(&buffer[..n_open], n_dropped);
    }
    Ok(long)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives its parts one by one.
    struct Pieces(Vec<Vec<u8>>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            while self.0.first().is_some_and(Vec::is_empty) {
                self.0.remove(0);
            }
            let Some(part) = self.0.first_mut() else {
                return Ok(0);
            };
            let n = part.len().min(buffer.len());
            buffer[..n].copy_from_slice(&part[..n]);
            part.drain(..n);
            Ok(n)
        }
    }

    fn lines(input: impl Read, bounds: ReadBounds) -> Vec<(u64, String)> {
        let mut lines = Vec::new();
        let mut keep = |number, line: &[u8]| lines.push((number, String::from_utf8(line.to_vec()).unwrap()));
        each(input, &bounds, &mut keep).unwrap();
        lines
    }

    #[track_caller]
    fn check(text: &str, expected: &[(u64, &str)]) {
        let expected: Vec<(u64, String)> = expected
            .iter()
            .map(|(number, line)| (*number, (*line).to_owned()))
            .collect();
        assert_eq!(
            lines(text.as_bytes(), ReadBounds::default()),
            expected,
            "{text:?}"
        );
    }

    #[test]
    fn the_last_line_needs_no_newline() {
        check("", &[]);
        check("a", &[(1, "a")]);
        check("a\n", &[(1, "a")]);
        check("a\nb", &[(1, "a"), (2, "b")]);
    }

    #[test]
    fn blank_lines_are_skipped_but_counted() {
        check("\n\na\n \t\r\n\nb\n\n", &[(3, "a"), (6, "b")]);
    }

    #[test]
    fn accepts_windows_line_endings() {
        check("a\r\nb\r\n", &[(1, "a"), (2, "b")]);
    }

    #[test]
    fn skips_a_byte_order_mark_only_at_the_start() {
        check("\u{feff}{}\n\u{feff}{}\n", &[(1, "{}"), (2, "\u{feff}{}")]);
        check("\u{feff}", &[]);
    }

    #[test]
    fn an_overlong_line_is_empty_and_later_lines_are_complete() {
        for buffer in [1, 4, 5, 16] {
            let bounds = || ReadBounds {
                buffer,
                line: 16,
                end: 1000,
            };
            let (fits, too_long) = ("x".repeat(15), "y".repeat(100));
            let text = format!("a\n{too_long}\n{fits}\n{too_long}\nb\n{too_long}");
            let expected = [(1, "a"), (2, ""), (3, &*fits), (4, ""), (5, "b"), (6, "")];
            let found = lines(text.as_bytes(), bounds());
            let found: Vec<(u64, &str)> = found.iter().map(|(number, line)| (*number, &**line)).collect();
            assert_eq!(found, expected, "a buffer of {buffer}");
            let long = each(text.as_bytes(), &bounds(), &mut |_, _| {})
                .unwrap()
                .to_string();
            let reported = "line 2 has 100 bytes, and 2 later lines are too long as well; only lines of less than 64 MiB (67108864 bytes)";
            assert!(long.starts_with(reported), "{long}");
        }
    }

    #[test]
    fn an_endless_line_stops_reading() {
        let bounds = ReadBounds {
            buffer: 16,
            line: 64,
            end: 1 << 20,
        };
        let mut n_lines = 0;
        let outcome = each(b"a\n".chain(io::repeat(b'b')), &bounds, &mut |_, _| n_lines += 1);
        let reported = "line 2 has no end within 1 MiB: it is not a file with one event per line";
        assert_eq!(outcome.unwrap_err().to_string(), reported);
        assert_eq!(n_lines, 1);
    }

    #[test]
    fn delivers_the_lines_before_a_read_error() {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let mut n_lines = 0;
        let outcome = each(b"a\nb\nc".chain(Fails), &ReadBounds::default(), &mut |_, _| {
            n_lines += 1
        });
        assert_eq!(outcome.unwrap_err().to_string(), "broken");
        assert_eq!(n_lines, 2);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_text_arrives(
            parts in proptest::collection::vec("[ab \r\n\u{e9}]{0,12}", 0..12),
            buffer in 1_usize..20,
        ) {
            let text = parts.concat();
            let expected: Vec<(u64, String)> = (1..)
                .zip(text.lines())
                .map(|(number, line)| (number, line.trim_matches([' ', '\r']).to_owned()))
                .filter(|(_, line)| !line.is_empty())
                .collect();
            let parts = Pieces(parts.into_iter().map(String::into_bytes).collect());
            prop_assert_eq!(lines(parts, ReadBounds { buffer, line: 1 << 20, end: 1 << 30 }), expected);
        }
    }
}
