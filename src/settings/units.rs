//! Numbers with a unit, as written by the operator: `"30m"`, `"4GiB"`.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) const TIME_UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

pub(super) const SIZE_UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Prefixes of words for units of time.
const WORDS: [(&str, &str); 6] = [
    ("millis", "ms"),
    ("sec", "s"),
    ("min", "m"),
    ("hour", "h"),
    ("hr", "h"),
    ("day", "d"),
];

/// Ten years. Sums of such spans and event times cannot overflow.
const MAX_MS: u64 = 3_653 * 86_400_000;

/// Parses `"30m"` as 30 times its unit. Returns `None` for anything else and on overflow.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = number_and_unit(text, units)?;
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// Splits `"30m"` into its digits and the size of its unit.
fn number_and_unit<'a>(text: &'a str, units: &[(&str, u64)]) -> Option<(&'a str, u64)> {
    let n_digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, name) = text.split_at(n_digits);
    let (_, unit) = units.iter().find(|(unit, _)| *unit == name)?;
    (n_digits > 0).then_some((number, *unit))
}

/// Descriptions of a span and of a size, for error messages.
pub(super) const TIME_SPAN: &str =
    r#"a span of time with its unit, such as "500ms", "30s", "5m", "24h" or "7d""#;
pub(super) const BYTE_SIZE: &str = r#"a size with its unit, such as "512MiB" or "4GiB""#;

/// Returns what is wrong with a text that is not valid, and what was probably meant.
fn unlike(text: &str, units: &[(&str, u64)], expected: &str) -> String {
    if let Some(meant) = meant(text, units) {
        return format!(r#""{text}" is not a known unit, expected "{meant}""#);
    }
    let digits = text.trim_start_matches('-');
    match digits.starts_with(|c: char| c.is_ascii_digit()) {
        true if text.starts_with('-') => format!(r#""{text}" is negative, expected {expected}"#),
        true if text.contains(['.', ',']) => {
            format!(r#""{text}" has a fraction, expected a whole number of a smaller unit"#)
        }
        _ => format!(r#""{text}" does not fit, expected {expected}"#),
    }
}

/// Corrects `"30 min"` to `"30m"`, and `"4gib"` and `"4Gi"` to `"4GiB"`.
fn meant(text: &str, units: &[(&str, u64)]) -> Option<String> {
    let n_digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, name) = text.split_at(n_digits);
    let name = name.trim().to_lowercase();
    let begins = |(unit, _): &&(&str, u64)| {
        let unit = unit.to_lowercase();
        let spelt_out = WORDS.iter().find(|(word, _)| name.starts_with(word));
        unit == name || unit == format!("{name}b") || spelt_out.is_some_and(|(_, short)| *short == unit)
    };
    let (unit, _) = units.iter().find(begins)?;
    (!number.is_empty() && !name.is_empty()).then(|| format!("{number}{unit}"))
}

/// Time span of at most ten years, in whole milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimeSpan {
    /// Text as written by the operator.
    pub text: String,
    pub ms: i64,
}

/// Number of bytes, with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ByteSize {
    text: String,
    pub bytes: u64,
}

impl TimeSpan {
    pub fn duration(&self) -> Duration {
        Duration::from_millis(self.ms.unsigned_abs())
    }
}

impl From<&str> for TimeSpan {
    fn from(default: &str) -> TimeSpan {
        TimeSpan {
            text: default.to_owned(),
            ms: parse_span_ms(default).expect("a default is a span"),
        }
    }
}

impl From<&str> for ByteSize {
    fn from(default: &str) -> ByteSize {
        ByteSize {
            text: default.to_owned(),
            bytes: parse_size(default).expect("a default is a size"),
        }
    }
}

/// Parses a size such as `4GiB` into bytes, for flags of the command line.
///
/// # Errors
/// Text to write instead.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let size = scaled(text, &SIZE_UNITS);
    size.ok_or_else(|| "write a whole number and a unit, such as 512MiB or 4GiB".to_owned())
}

/// Parses a span such as `30m` into milliseconds, for flags of the command line.
///
/// # Errors
/// Text to write instead.
pub fn parse_span_ms(text: &str) -> Result<i64, String> {
    match scaled(text, &TIME_UNITS).filter(|ms| *ms <= MAX_MS) {
        Some(ms) => Ok(ms as i64),
        None if number_and_unit(text, &TIME_UNITS).is_some() => {
            Err("it is too long: a span is at most ten years, 3653d".to_owned())
        }
        None => Err("write a whole number and a unit, such as 30s, 5m, 1h or 7d".to_owned()),
    }
}

/// Formats milliseconds in the largest unit that divides them: 90000 is `90s`.
pub(crate) fn display_ms(ms: i64) -> String {
    let (name, unit) = TIME_UNITS
        .iter()
        .rev()
        // Every unit divides 0, which is `0s` and not `0d`.
        .find(|(_, unit)| ms != 0 && ms % *unit as i64 == 0)
        .unwrap_or(&TIME_UNITS[1]);
    format!("{}{name}", ms / *unit as i64)
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// Reads a number with a unit, and returns it in the smallest unit, with its text.
struct QuantityVisitor {
    units: &'static [(&'static str, u64)],
    /// Description of a valid text.
    expected: &'static str,
    /// Units to suggest for a number without one.
    usual: [&'static str; 2],
    most: u64,
    /// Message about a number above `most`.
    too_large: &'static str,
}

const SPANS: QuantityVisitor = QuantityVisitor {
    units: &TIME_UNITS,
    expected: TIME_SPAN,
    usual: ["s", "m"],
    most: MAX_MS,
    too_large: r#"is too long, expected a span of at most ten years, "3653d""#,
};

const SIZES: QuantityVisitor = QuantityVisitor {
    units: &SIZE_UNITS,
    expected: BYTE_SIZE,
    usual: ["MiB", "GiB"],
    most: u64::MAX,
    too_large: "is too much, expected fewer bytes than 2^64",
};

impl Visitor<'_> for QuantityVisitor {
    type Value = (String, u64);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<(String, u64), E> {
        let (expected, [one, other]) = (self.expected, self.usual);
        Err(E::custom(match n {
            ..0 => format!("{n} is negative, expected {expected}"),
            _ => {
                format!(r#"{n} has no unit, expected a unit after it, such as "{n}{one}" or "{n}{other}""#)
            }
        }))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(String, u64), E> {
        let number = scaled(text, self.units).filter(|number| *number <= self.most);
        match (number, text.parse::<i64>()) {
            (Some(number), _) => Ok((text.to_owned(), number)),
            // The value of a variable is text, even if it is a number.
            (None, Ok(n)) => self.visit_i64(n),
            (None, Err(_)) if number_and_unit(text, self.units).is_some() => {
                Err(E::custom(format!(r#""{text}" {}"#, self.too_large)))
            }
            (None, Err(_)) => Err(E::custom(unlike(text, self.units, self.expected))),
        }
    }
}

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (text, ms) = deserializer.deserialize_str(SPANS)?;
        Ok(TimeSpan { text, ms: ms as i64 })
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (text, bytes) = deserializer.deserialize_str(SIZES)?;
        Ok(ByteSize { text, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_and_a_unit() {
        let ms = |text| parse_span_ms(text).ok();
        assert_eq!(ms("250ms"), Some(250));
        assert_eq!(ms("0s"), Some(0));
        assert_eq!(ms("5m"), Some(300_000));
        assert_eq!(ms("24h"), Some(86_400_000));
        assert_eq!(ms("7d"), Some(604_800_000));
        for bad in [
            "",
            "5",
            "m",
            "-5m",
            "5 m",
            "1.5h",
            "5M",
            "1h30m",
            "11000d",
            "99999999999999999999s",
        ] {
            assert_eq!(ms(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn an_invalid_span_on_the_command_line_is_explained() {
        assert_eq!(parse_span_ms("3653d"), Ok(3_653 * 86_400_000));
        for too_long in ["3654d", "99999999999999999999s"] {
            let error = parse_span_ms(too_long).expect_err("too long");
            assert!(error.contains("at most ten years"), "{too_long}: {error}");
        }
        for strange in ["5", "d", "", "-1s", "5M"] {
            let error = parse_span_ms(strange).expect_err("strange");
            assert!(error.contains("such as 30s"), "{strange}: {error}");
        }
    }

    #[test]
    fn a_misspelled_span_or_size_gets_a_correction() {
        for (text, expected) in [
            ("30 s", "\"30s\""),
            ("30 min", "\"30m\""),
            ("2hours", "\"2h\""),
            ("5M", "\"5m\""),
            ("-5m", "is negative"),
            ("1.5h", "has a fraction"),
            ("much", "does not fit"),
            ("", "does not fit"),
        ] {
            let reported = unlike(text, &TIME_UNITS, TIME_SPAN);
            assert!(reported.contains(expected), "{text}: {reported}");
        }
        for (text, expected) in [
            ("4gib", "\"4GiB\""),
            ("4 GiB", "\"4GiB\""),
            ("4Gi", "\"4GiB\""),
            ("4g", "\"4GB\""),
        ] {
            let reported = unlike(text, &SIZE_UNITS, BYTE_SIZE);
            assert!(reported.contains(expected), "{text}: {reported}");
        }
    }

    #[test]
    fn a_size_accepts_decimal_and_binary_units() {
        assert_eq!(scaled("4GiB", &SIZE_UNITS), Some(4 << 30));
        assert_eq!(scaled("4GB", &SIZE_UNITS), Some(4_000_000_000));
        assert_eq!(scaled("20000000TiB", &SIZE_UNITS), None);
    }

    #[test]
    fn milliseconds_are_shown_in_their_largest_whole_unit() {
        assert_eq!(display_ms(0), "0s");
        assert_eq!(display_ms(90_000), "90s");
        assert_eq!(display_ms(3_600_000), "1h");
        assert_eq!(display_ms(1_500), "1500ms");
    }
}
