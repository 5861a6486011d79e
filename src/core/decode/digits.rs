//! Digits and other bytes, compared eight at a time.

/// Returns the end of the integer that the text begins with, in the syntax of JSON.
#[inline(never)]
pub(super) fn integer_end(json: &[u8]) -> Option<usize> {
    let digits = usize::from(json.first() == Some(&b'-'));
    let end = digits_end(json, digits)?;
    // JSON allows no leading zero.
    (end == digits + 1 || json.get(digits) != Some(&b'0')).then_some(end)
}

/// Returns the end of the digits that begin at `start`. There must be at least one.
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

/// Returns the end of the number that the text begins with, in the syntax of JSON.
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

/// Marks the bytes that are not digits. The lowest set bit belongs to the first such byte; no bit is set if all are digits.
/// Bytes after the first may be marked wrongly.
#[inline(always)]
fn non_digits(text: u64) -> u64 {
    // Adding 0x76 carries values from 10 on into the highest bit.
    let digits = text ^ 0x3030_3030_3030_3030;
    (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080
}

/// Returns the value of thirteen digits; `None` if some are not digits.
#[inline(always)]
pub(super) fn thirteen_digits(text: &[u8; 13]) -> Option<u64> {
    let high = u64::from_le_bytes(*text.first_chunk()?);
    let low = u64::from_le_bytes(*text.last_chunk()?);
    // The first three digits of `low` are the last three of `high`.
    if (non_digits(high) | non_digits(low)) != 0 {
        return None;
    }
    // The mask clears the three digits that `high` already has.
    Some(eight_digits(high) * 100_000 + eight_digits(low & !0xff_ffff))
}

/// Returns the value of eight digits, the first in the lowest byte. A byte 0 counts as the digit 0.
///
/// Combines neighbors: into pairs, then fours, then all (Lemire, "Quickly parsing eight digits").
#[inline(always)]
fn eight_digits(text: u64) -> u64 {
    let digits = text & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = digits.wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// Marks the bytes that are 0. The lowest set bit is the highest one of the first such byte; no bit is set if there is
/// none.
#[inline(always)]
pub(super) fn zeros(word: u64) -> u64 {
    word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080
}
