//! Digits and other bytes, eight at a time where there are so many.

/// Where the integer ends that the text begins with, as JSON has it.
#[inline(never)]
pub(super) fn integer_end(json: &[u8]) -> Option<usize> {
    let digits = usize::from(json.first() == Some(&b'-'));
    let end = digits_end(json, digits)?;
    (end == digits + 1 || json.get(digits) != Some(&b'0')).then_some(end)
}

/// Where the digits end that begin at `start`: there is at least one.
fn digits_end(json: &[u8], start: usize) -> Option<usize> {
    let mut end = start;
    while let Some(eight) = json.get(end..)?.first_chunk() {
        let n = non_digits(u64::from_le_bytes(*eight)).trailing_zeros() as usize / 8;
        end += n;
        if n < 8 {
            return (end > start).then_some(end);
        }
    }
    let rest = json.get(end..)?.iter();
    end += rest.take_while(|byte| byte.is_ascii_digit()).count();
    (end > start).then_some(end)
}

/// Where the number ends that the text begins with, as JSON has it.
pub(super) fn number_end(json: &[u8]) -> Option<usize> {
    let mut end = integer_end(json)?;
    if json.get(end) == Some(&b'.') {
        end = digits_end(json, end + 1)?;
    }
    if let Some(b'e' | b'E') = json.get(end) {
        let has_sign = matches!(json.get(end + 1), Some(b'+' | b'-'));
        end = digits_end(json, end + 1 + usize::from(has_sign))?;
    }
    Some(end)
}

/// The lowest bit that is set belongs to the first byte that is no digit; none is set where all are digits.
#[inline(always)]
fn non_digits(text: u64) -> u64 {
    // Adding 0x76 carries 10 and more into the highest bit.
    let digits = text ^ 0x3030_3030_3030_3030;
    (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080
}

/// The number that thirteen digits are; none if they are not all digits.
#[inline(always)]
pub(super) fn thirteen_digits(text: &[u8; 13]) -> Option<u64> {
    let high = u64::from_le_bytes(*text.first_chunk()?);
    let low = u64::from_le_bytes(*text.last_chunk()?);
    // The first three digits of `low` are in `high` too.
    if (non_digits(high) | non_digits(low)) != 0 {
        return None;
    }
    Some(eight_digits(high) * 100_000 + eight_digits(low & !0xff_ffff))
}

/// The number that eight digits are, the first in the lowest byte; a byte 0 counts as one.
///
/// Puts neighbours together: pairs, then fours, then all (Lemire, "Quickly parsing eight digits").
#[inline(always)]
fn eight_digits(text: u64) -> u64 {
    let digits = text & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = digits.wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// The lowest bit that is set is the highest one of the first byte that is 0; none is set where none is.
#[inline(always)]
pub(super) fn zeros(word: u64) -> u64 {
    word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080
}
