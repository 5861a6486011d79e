//! XXH3 of 4 to 16 bytes, the length of most ids and items, in a form that the compiler inlines.
//!
//! Values that depend only on the seed are computed once, not for every id. Hashes equal the reference implementation's.

/// Words of XXH3's secret that it mixes into short input.
const SECRET_8: u64 = 0x1cad_21f7_2c81_017c;
const SECRET_16: u64 = 0xdb97_9083_e96d_d4de;
const SECRET_24: u64 = 0x1f67_b3b7_a4a4_4072;
const SECRET_32: u64 = 0x78e5_c0cc_4ee6_79cb;
const SECRET_40: u64 = 0x2172_ffcc_7dd0_5a82;
const SECRET_48: u64 = 0x8e24_43f7_7446_08b8;

/// 64-bit XXH3 with one seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShortHash {
    /// Mask for 4 to 8 bytes.
    flip: u64,
    /// Masks for 9 to 16 bytes: one for the first eight, one for the last eight.
    flips: [u64; 2],
}

impl ShortHash {
    pub fn new(seed: u64) -> Self {
        let spread = seed ^ u64::from((seed as u32).swap_bytes()) << 32;
        ShortHash {
            flip: (SECRET_8 ^ SECRET_16).wrapping_sub(spread),
            flips: [
                (SECRET_24 ^ SECRET_32).wrapping_add(seed),
                (SECRET_40 ^ SECRET_48).wrapping_sub(seed),
            ],
        }
    }

    /// Returns the hash, or `None` if the text has another length.
    #[inline(always)]
    pub fn of(&self, text: &[u8]) -> Option<u64> {
        match text.len() {
            4..=8 => {
                const PRIME: u64 = 0x9fb2_1c65_1e98_df25;
                let first = u64::from(u32::from_le_bytes(*text.first_chunk()?));
                let last = u64::from(u32::from_le_bytes(*text.last_chunk()?));
                let keyed = (last | first << 32) ^ self.flip;
                let mixed = keyed ^ keyed.rotate_left(49) ^ keyed.rotate_left(24);
                let mixed = mixed.wrapping_mul(PRIME);
                let mixed = (mixed ^ (mixed >> 35).wrapping_add(text.len() as u64)).wrapping_mul(PRIME);
                Some(mixed ^ mixed >> 28)
            }
            9..=16 => {
                let first = u64::from_le_bytes(*text.first_chunk()?) ^ self.flips[0];
                let last = u64::from_le_bytes(*text.last_chunk()?) ^ self.flips[1];
                let product = u128::from(first) * u128::from(last);
                let mixed = (text.len() as u64)
                    .wrapping_add(first.swap_bytes())
                    .wrapping_add(last)
                    .wrapping_add(product as u64 ^ (product >> 64) as u64);
                let mixed = (mixed ^ mixed >> 37).wrapping_mul(0x1656_6791_9e37_79f9);
                Some(mixed ^ mixed >> 32)
            }
            _ => None,
        }
    }
}

/// Returns whether a text is ASCII, with the same few loads as its hash if it is short.
#[inline(always)]
pub(super) fn is_ascii(text: &[u8]) -> bool {
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    if let (Some(first), Some(last), ..=16) = (text.first_chunk::<8>(), text.last_chunk::<8>(), text.len()) {
        return (u64::from_le_bytes(*first) | u64::from_le_bytes(*last)) & HIGH_BITS == 0;
    }
    if let (Some(first), Some(last), ..=8) = (text.first_chunk::<4>(), text.last_chunk::<4>(), text.len()) {
        return (u32::from_le_bytes(*first) | u32::from_le_bytes(*last)) & HIGH_BITS as u32 == 0;
    }
    text.is_ascii()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    use super::*;

    proptest! {
        #[test]
        fn ascii_is_found_in_any_text(text in prop::collection::vec(0x70_u8..0x90, 0..20)) {
            prop_assert_eq!(is_ascii(&text), text.is_ascii());
            let ascii: Vec<u8> = text.iter().map(|byte| byte & 0x7f).collect();
            prop_assert!(is_ascii(&ascii));
        }

        #[test]
        fn short_hashes_equal_the_reference_implementation(
            text in prop::collection::vec(any::<u8>(), 0..20),
            seed in any::<u64>(),
        ) {
            let expected = (4..=16).contains(&text.len()).then(|| xxh3_64_with_seed(&text, seed));
            prop_assert_eq!(ShortHash::new(seed).of(&text), expected);
        }
    }
}
