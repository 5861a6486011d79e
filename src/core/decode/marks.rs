//! Ends of strings, found for 64 bytes at a time, so that the length of a string costs almost nothing.

use super::block::{BLOCK, marks};

/// Returns the marks of the block at `start`, which may be the end of the text. The lowest bit belongs to the first byte.
#[inline(never)]
pub(super) fn marks_of_block(text: &[u8], start: usize) -> u64 {
    if start < text.len() {
        marks_from(text, start)
    } else {
        0
    }
}

/// Returns the position of the first mark in a text.
#[inline(never)]
pub(super) fn first_mark(text: &[u8]) -> Option<usize> {
    let mut starts = (0..text.len()).step_by(BLOCK);
    starts.find_map(|start| match marks_from(text, start) {
        0 => None,
        marks => Some(start + marks.trailing_zeros() as usize),
    })
}

/// Returns the marks from `start` on. If less than a block is left, they are taken from the last full block without its
/// first bytes.
#[inline(always)]
fn marks_from(text: &[u8], start: usize) -> u64 {
    let Some(last) = text.len().checked_sub(BLOCK) else {
        return marks_of_short(text) >> start;
    };
    let begin = start.min(last);
    let block = text[begin..].first_chunk().expect("`last` leaves a block");
    marks(block) >> (start - begin)
}

/// Returns the marks of a text that is shorter than a block.
#[cold]
#[inline(never)]
fn marks_of_short(text: &[u8]) -> u64 {
    // Spaces are not marks, so the padding adds none.
    let mut block = [b' '; BLOCK];
    block[..text.len()].copy_from_slice(text);
    marks(&block)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_mark(byte: u8) -> bool {
        byte == b'"' || byte == b'\\' || byte < b' ' || !byte.is_ascii()
    }

    #[track_caller]
    fn check(text: &[u8]) {
        assert_eq!(
            first_mark(text),
            text.iter().position(|byte| is_mark(*byte)),
            "{text:?}"
        );
        for start in 0..=text.len() {
            let block = text[start..].iter().take(BLOCK).enumerate();
            let expected = block.fold(0, |bits, (at, byte)| bits | u64::from(is_mark(*byte)) << at);
            assert_eq!(marks_of_block(text, start), expected, "{start} of {text:?}");
        }
    }

    #[test]
    fn every_byte_is_classified_at_any_position() {
        for byte in 0..=u8::MAX {
            for n in [1, 2, 63, 64, 65, 127, 128, 150] {
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
        fn marks_are_found_in_random_text(
            text in prop::collection::vec(prop_oneof![20 => Just(b'x'), 1 => any::<u8>(), 1 => Just(b'"')], 0..400),
        ) {
            check(&text);
        }
    }
}
