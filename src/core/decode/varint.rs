//! Integers of variable length, as Avro and Protobuf write them: seven bits in each byte, the lowest first.

/// Passes an integer of at most 64 bits.
#[inline(always)]
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first()?;
    if *first < 0x80 {
        *bytes = rest;
        return Some(u64::from(*first));
    }
    let (number, n) = longer(bytes)?;
    *bytes = &bytes[n..];
    Some(number)
}

/// Returns an integer and the number of its bytes.
#[inline(never)]
fn longer(bytes: &[u8]) -> Option<(u64, usize)> {
    const ENDS: u64 = 0x8080_8080_8080_8080;
    if let Some(word) = bytes.first_chunk() {
        let word = u64::from_le_bytes(*word);
        let ends = !word & ENDS;
        if ends != 0 {
            // Bits up to the lowest end are the integer's own. Close the gaps between its sevens, then fourteens, then 28 bits.
            let sevens = word & (ends ^ (ends - 1)) & !ENDS;
            let fourteens = sevens & 0x007f_007f_007f_007f | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
            let halves = fourteens & 0x0000_3fff_0000_3fff | (fourteens & 0x3fff_0000_3fff_0000) >> 2;
            let number = halves & 0x0fff_ffff | (halves & 0x0fff_ffff_0000_0000) >> 4;
            return Some((number, ends.trailing_zeros() as usize / 8 + 1));
        }
    }
    let mut number = 0;
    for (n, byte) in bytes.iter().take(10).enumerate() {
        // The tenth byte has the last bit.
        if n == 9 && *byte > 1 {
            return None;
        }
        number |= u64::from(byte & 0x7f) << (7 * n);
        if *byte < 0x80 {
            return Some((number, n + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    #[track_caller]
    fn check(written: &[u8], expected: Option<u64>) {
        for n_behind in [0, 1, 10] {
            let behind = &[0xff_u8; 10][..n_behind];
            let all = [written, behind].concat();
            let mut bytes = &all[..];
            assert_eq!(take(&mut bytes), expected, "{all:?}");
            if expected.is_some() {
                assert_eq!(bytes, behind, "{all:?}");
            }
        }
    }

    #[test]
    fn integers_of_more_than_64_bits_are_refused() {
        let mut bytes = [0x80; 11];
        for n in 0..10 {
            bytes[n] = 1;
            check(&bytes[..=n], Some(1 << (7 * n)));
            bytes[n] = 0x80;
        }
        bytes[9] = 2;
        check(&bytes[..10], None);
        bytes[9] = 0x80;
        check(&bytes, None);
    }

    proptest! {
        #[test]
        fn integers_of_any_length_are_read(number in any::<u64>(), n_bits in 0_u32..64) {
            let number = number >> n_bits;
            let bytes = written(number);
            check(&bytes, Some(number));
            prop_assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
        }
    }
}
