//! Rounding of numbers in messages, the same as on the page.

/// Writes a number with this many decimals, rounded half away from zero: "50.1" for 50.05.
pub fn rounded(value: f64, digits: usize) -> String {
    // As on the page, a tie is a number whose shortest decimal ends in a 5 after the last digit. Most of them have no exact binary
    // value, so the format alone would round about half of them down.
    let shortest = value.to_string();
    let is_tie = shortest
        .split_once('.')
        .is_some_and(|(_, decimals)| decimals.len() == digits + 1 && decimals.ends_with('5'));
    // The next number lies beyond the tie, so the format rounds it away from zero.
    let value = match is_tie {
        false => value,
        true if value < 0.0 => value.next_down(),
        true => value.next_up(),
    };
    format!("{value:.digits$}")
}

/// Writes a share: "3.2%".
pub fn percentage(share: f64, digits: usize) -> String {
    rounded(100.0 * share, digits) + "%"
}

/// Writes a relative difference with its sign: "+3.2%", "-0.4%".
pub fn signed_percentage(share: f64, digits: usize) -> String {
    let sign = if share.is_sign_negative() { "" } else { "+" };
    format!("{sign}{}", percentage(share, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from `Intl.NumberFormat("en")`, which the page uses.
    #[test]
    fn shares_are_rounded_as_on_the_page() {
        let of_page = [
            (0.5005, "50.1%", "50.05%"),
            (0.0005, "0.1%", "0.05%"),
            (0.0015, "0.2%", "0.15%"),
            (0.0025, "0.3%", "0.25%"),
            (0.1005, "10.1%", "10.05%"),
            (0.0115, "1.2%", "1.15%"),
            (0.0625, "6.3%", "6.25%"),
            (0.9995, "100.0%", "99.95%"),
            (0.28455, "28.5%", "28.46%"),
            (12.3455, "1234.6%", "1234.55%"),
            (0.000_499_999_999_999_999_9, "0.0%", "0.05%"),
            (0.050_499_999_999_999_99, "5.0%", "5.05%"),
            (0.29, "29.0%", "29.00%"),
            (1e-9, "0.0%", "0.00%"),
            (0.0, "0.0%", "0.00%"),
        ];
        for (share, one, two) in of_page {
            assert_eq!(
                [1, 2].map(|digits| percentage(share, digits)),
                [one, two],
                "{share}"
            );
            if share > 0.0 {
                assert_eq!(percentage(-share, 1), format!("-{one}"), "{share}");
            }
        }
    }

    /// Expected values are from `Intl.NumberFormat("en")`.
    #[test]
    fn values_are_rounded_as_on_the_page() {
        let of_page = [
            (1.005, 2, "1.01"),
            (2.675, 2, "2.68"),
            (0.000_15, 4, "0.0002"),
            (0.331_05, 4, "0.3311"),
            (2.5, 0, "3"),
            (2.5, 2, "2.50"),
            (1e300, 0, &format!("{:.0}", 1e300)),
        ];
        for (value, digits, expected) in of_page {
            assert_eq!(rounded(value, digits), expected);
        }
    }

    #[test]
    fn differences_have_a_sign() {
        let written = [0.0315, -0.004, 0.0].map(|share| signed_percentage(share, 1));
        assert_eq!(written, ["+3.2%", "-0.4%", "+0.0%"]);
    }
}
