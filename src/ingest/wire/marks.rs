//! Where strings end, found for 64 bytes at a time, so that the length of a string costs next to nothing.

use super::block::{BLOCK, marks};

/// Finds marks, going forward.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks {
    /// Where the block begins whose marks are in `bits`, its first byte's lowest. At most what is asked for next.
    start: usize,
    /// 0 says nothing.
    bits: u64,
}

impl Marks {
    /// The first mark at or after `from`, which is behind the mark that was found before.
    #[inline(always)]
    pub fn next(&mut self, text: &[u8], from: usize) -> Option<usize> {
        let offset = from - self.start;
        if offset < BLOCK && self.bits >> offset != 0 {
            return Some(from + (self.bits >> offset).trailing_zeros() as usize);
        }
        (self.start, self.bits) = next_block(text, from);
        (self.bits != 0).then(|| self.start + self.bits.trailing_zeros() as usize)
    }
}

/// The first block from there on that has a mark, and its marks: none at the end of the text.
#[inline(never)]
fn next_block(text: &[u8], mut start: usize) -> (usize, u64) {
    while start < text.len() {
        let marks = marks_from(text, start);
        if marks != 0 {
            return (start, marks);
        }
        start += BLOCK;
    }
    (start, 0)
}

/// The marks of the block that begins there, in the text or at its end.
#[inline(never)]
pub(super) fn marks_of_block(text: &[u8], start: usize) -> u64 {
    if start == text.len() {
        0
    } else {
        marks_from(text, start)
    }
}

/// The same in place, and in the text. Where less than a block is left it is the last block of which the first bytes are dropped.
#[inline(always)]
fn marks_from(text: &[u8], start: usize) -> u64 {
    let Some(last) = text.len().checked_sub(BLOCK) else {
        return marks_of_short(text) >> start;
    };
    let begin = start.min(last);
    let block = text[begin..].first_chunk().expect("`last` leaves a block");
    marks(block) >> (start - begin)
}

/// The marks of a text that is shorter than a block.
#[cold]
#[inline(never)]
fn marks_of_short(text: &[u8]) -> u64 {
    let mut block = [b' '; BLOCK];
    block[..text.len()].copy_from_slice(text);
    marks(&block)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marks_one_by_one(text: &[u8]) -> Vec<usize> {
        let is_mark = |byte: u8| byte == b'"' || byte == b'\\' || byte < b' ' || !byte.is_ascii();
        (0..text.len()).filter(|&at| is_mark(text[at])).collect()
    }

    fn check(text: &[u8]) {
        let mut marks = Marks::default();
        let mut from = 0;
        let found = std::iter::from_fn(|| {
            let mark = marks.next(text, from)?;
            from = mark + 1;
            Some(mark)
        });
        assert_eq!(found.collect::<Vec<_>>(), marks_one_by_one(text), "{text:?}");
    }

    #[test]
    fn every_byte_is_a_mark_or_is_none_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            for n in 1..150 {
                for at in [0, n / 2, n - 1] {
                    let mut text = vec![b'x'; n];
                    text[at] = byte;
                    check(&text);
                }
            }
        }
        check(b"");
    }

    proptest! {
        #[test]
        fn marks_are_found_in_order_from_wherever_one_looks(
            text in prop::collection::vec(prop_oneof![20 => Just(b'x'), 1 => any::<u8>(), 1 => Just(b'"')], 0..400),
            skips in prop::collection::vec(0..90_usize, 0..20),
        ) {
            check(&text);
            let all = marks_one_by_one(&text);
            let mut marks = Marks::default();
            let mut from = 0;
            for skip in skips {
                from += skip;
                let expected = all.iter().copied().find(|&mark| mark >= from);
                let found = if from <= text.len() { marks.next(&text, from) } else { break };
                prop_assert_eq!(found, expected);
                let Some(mark) = found else { break };
                from = mark + 1;
            }
        }
    }
}
