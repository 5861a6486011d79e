//! Decimals of Avro and Parquet: an integer, and the number of its digits after the point.

/// Returns the integer of big-endian bytes in two's complement; `None` if it does not fit into 128 bits.
pub(crate) fn unscaled(bytes: &[u8]) -> Option<i128> {
    let is_negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let sign = if is_negative { 0xff } else { 0 };
    let (head, tail) = bytes.split_at(bytes.len().saturating_sub(size_of::<i128>()));
    let mut all = [sign; size_of::<i128>()];
    let start = all.len() - tail.len();
    all[start..].copy_from_slice(tail);
    let value = i128::from_be_bytes(all);
    // Leading bytes may only repeat the sign.
    let fits = head.iter().all(|byte| *byte == sign) && (value < 0) == is_negative;
    fits.then_some(value)
}

/// Returns an integer's text with its point moved to the left: `-1250` by 2 is `-12.50`.
pub(crate) fn moved_point(integer: &str, scale: usize) -> String {
    let (sign, digits) = match integer.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", integer),
    };
    // At least one digit, possibly 0, must precede the point.
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    match fraction {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moves_the_point() {
        for (integer, scale, expected) in [
            ("5", 0, "5"),
            ("-5", 0, "-5"),
            ("500", 2, "5.00"),
            ("0", 2, "0.00"),
            ("5", 2, "0.05"),
            ("-5", 2, "-0.05"),
            ("-1250", 2, "-12.50"),
            ("1200", 3, "1.200"),
            ("12", 2, "0.12"),
        ] {
            assert_eq!(moved_point(integer, scale), expected, "{integer} by {scale}");
        }
    }

    #[test]
    fn reads_integers_of_any_length_that_fit() {
        assert_eq!(unscaled(&[]), Some(0));
        assert_eq!(unscaled(&[0x80]), Some(-128));
        assert_eq!(unscaled(&[0x00, 0x80]), Some(128));
        let beyond = [&[0][..], &[0xff; 16]].concat();
        assert_eq!(unscaled(&beyond), None);
        let below = [&[0xff][..], &[0; 16]].concat();
        assert_eq!(unscaled(&below), None);
    }

    proptest! {
        #[test]
        fn reads_integers_with_repeated_sign_bytes(value: i128, n_more in 0_usize..20) {
            let sign = if value < 0 { 0xff } else { 0 };
            let bytes = [vec![sign; n_more], value.to_be_bytes().to_vec()].concat();
            prop_assert_eq!(unscaled(&bytes), Some(value));
        }
    }
}
