//! Marks of 64 bytes, one bit each, by the widest instructions that every processor of the target has.

pub(super) const BLOCK: usize = u64::BITS as usize;

/// Returns whether a byte ends a string or needs a closer look: `"`, `\`, control characters, and everything that is not
/// ASCII.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn is_mark(byte: u8) -> bool {
    // Exchanges the quote, 0x22, and 0x20. Then, as signed numbers, all marks but `\` are at most 0x20.
    (byte ^ 0x02).cast_signed() <= 0x20 || byte == b'\\'
}

/// Returns the marks of a block. The lowest bit belongs to the first byte.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn marks(block: &[u8; BLOCK]) -> u64 {
    // SAFETY: the function needs only SSE2, which is part of x86-64.
    unsafe { x86_64::marks(block) }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) use self::portable::marks;

/// Implementation with SSE2: 40 instructions per block.
#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8, _mm_xor_si128,
    };

    use super::BLOCK;

    #[target_feature(enable = "sse2")]
    pub fn marks(block: &[u8; BLOCK]) -> u64 {
        let (quarters, _) = block.as_chunks();
        let marks = |quarter| u64::from(marks_of_16(quarter));
        marks(&quarters[0])
            | marks(&quarters[1]) << 16
            | marks(&quarters[2]) << 32
            | marks(&quarters[3]) << 48
    }

    /// Marks 16 bytes at once, with the same arithmetic as `is_mark`.
    #[target_feature(enable = "sse2")]
    fn marks_of_16(bytes: &[u8; 16]) -> u16 {
        // SAFETY: the load reads exactly these 16 bytes, and needs no alignment.
        let bytes: __m128i = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
        let exchanged = _mm_xor_si128(bytes, _mm_set1_epi8(0x02));
        let low = _mm_cmplt_epi8(exchanged, _mm_set1_epi8(0x21));
        let backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\'.cast_signed()));
        _mm_movemask_epi8(_mm_or_si128(low, backslash)) as u16
    }
}

/// Implementation for any processor, written so that the compiler vectorizes it: 70 instructions per block on x86-64.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    use super::{BLOCK, is_mark};

    pub fn marks(block: &[u8; BLOCK]) -> u64 {
        // Bit `row` of byte `column` is the mark of byte 8 × row + column of the block.
        let mut rows = [0; BLOCK];
        for (i, byte) in block.iter().enumerate() {
            rows[i] = if is_mark(*byte) { 1 << (i / 8) } else { 0 };
        }
        let rows = rows.as_chunks().0.iter().map(|row| u64::from_le_bytes(*row));
        transposed(rows.fold(0, |all, row| all | row))
    }

    /// Exchanges the rows and columns of 8 × 8 bits (Warren, Hacker's Delight, section 7-3).
    fn transposed(mut bits: u64) -> u64 {
        for (distance, mask) in [
            (7, 0x00aa_00aa_00aa_00aa),
            (14, 0x0000_cccc_0000_cccc),
            (28, 0x0000_0000_f0f0_f0f0),
        ] {
            let differ = (bits ^ bits >> distance) & mask;
            bits ^= differ ^ differ << distance;
        }
        bits
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one_by_one(block: &[u8; BLOCK]) -> u64 {
        let is_mark = |byte: u8| byte == b'"' || byte == b'\\' || byte < b' ' || !byte.is_ascii();
        (0..BLOCK).fold(0, |bits, at| bits | u64::from(is_mark(block[at])) << at)
    }

    #[track_caller]
    fn check(block: &[u8; BLOCK]) {
        let expected = one_by_one(block);
        assert_eq!(marks(block), expected, "{block:?}");
        assert_eq!(portable::marks(block), expected, "{block:?}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "slow there: the random blocks do")]
    fn every_byte_is_classified_at_any_position() {
        for byte in 0..=u8::MAX {
            for at in 0..BLOCK {
                let mut block = [b'x'; BLOCK];
                block[at] = byte;
                check(&block);
            }
        }
    }

    proptest! {
        // Miri is slow.
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

        #[test]
        fn marks_of_random_blocks_equal_the_marks_of_their_bytes(bytes in prop::collection::vec(any::<u8>(), BLOCK)) {
            check(bytes.first_chunk().expect("so many"));
        }
    }
}
