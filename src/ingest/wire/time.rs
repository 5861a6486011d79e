//! The time of an event: epoch milliseconds, also in quotes, or RFC 3339 text.

use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde_json::value::RawValue;

use super::json;
use super::shape::{TsUnit, Zone};
use crate::engine::event::Reason;

/// Thirteen digits: 2001 to 2286. The same span in other units has other numbers of digits.
pub(super) fn epoch_ms(raw: &RawValue) -> Result<i64, Reason> {
    epoch_ms_of(raw.get(), None)
}

/// The same of raw text; times without a zone are of this one.
pub(super) fn epoch_ms_of(raw: &str, zone: Option<Zone>) -> Result<i64, Reason> {
    if raw.starts_with('"') {
        return text_ms_in(&json::text(raw)?, zone);
    }
    integer_ms(raw)
}

fn integer_ms(integer: &str) -> Result<i64, Reason> {
    // What does not fit into 64 bits is negative or too large, whatever its unit.
    let number: u64 = json::integer(integer)?.parse().map_err(|_| Reason::TsRange)?;
    within_span(number)
}

fn within_span(number: u64) -> Result<i64, Reason> {
    match number {
        1_000_000_000_000..10_000_000_000_000 => Ok(number as i64),
        1_000_000_000..10_000_000_000 => Err(Reason::TsSeconds),
        1_000_000_000_000_000..10_000_000_000_000_000 => Err(Reason::TsMicros),
        // Nanoseconds have the same remedy.
        1_000_000_000_000_000_000..10_000_000_000_000_000_000 => Err(Reason::TsMicros),
        _ => Err(Reason::TsRange),
    }
}

/// A time whose numbers are of a known unit: they may be in quotes and have a fraction or an exponent, of which what is
/// finer than a millisecond is cut off. Other text is RFC 3339; times without a zone are of this one.
pub(super) fn in_unit(raw: &str, unit: TsUnit, zone: Option<Zone>) -> Result<i64, Reason> {
    let Some(first) = raw.bytes().next() else {
        return Err(Reason::WrongType);
    };
    let number = match first {
        b'"' => {
            let text = json::text(raw)?;
            match decimal(&text) {
                Some(number) => number?,
                None => return text_ms_in(&text, zone),
            }
        }
        b'-' | b'0'..=b'9' => decimal(raw).ok_or(Reason::Number)??,
        _ => return Err(Reason::WrongType),
    };
    let ms = number.scaled(match unit {
        TsUnit::Seconds => 3,
        TsUnit::Milliseconds => 0,
        TsUnit::Microseconds => -3,
        TsUnit::Nanoseconds => -6,
    });
    let ms = ms.ok_or(Reason::TsRange)?;
    within_span(ms).map_err(|reason| match unit {
        TsUnit::Milliseconds => reason,
        // What else it might be of, a value of another unit does not tell.
        _ => Reason::TsRange,
    })
}

/// `digits × 10^exponent`.
struct Decimal {
    digits: u128,
    exponent: i32,
}

/// Digits of a number that is a time: more than any has.
const MAX_DECIMAL_DIGITS: usize = 36;

/// A number as JSON has it, that is not negative; `None` for other text.
fn decimal(text: &str) -> Option<Result<Decimal, Reason>> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (is_negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let exponent = exponent.unwrap_or("0");
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if ![whole, fraction, unsigned].into_iter().all(is_digits) {
        return None;
    }
    if whole.len() + fraction.len() > MAX_DECIMAL_DIGITS || unsigned.len() > 4 {
        return Some(Err(Reason::Number));
    }
    // So few digits fit.
    let digits: u128 = [whole, fraction].concat().parse().ok()?;
    let exponent: i32 = exponent.parse().ok()?;
    let decimal = Decimal {
        digits,
        exponent: exponent - fraction.len() as i32,
    };
    Some(if is_negative && digits > 0 {
        Err(Reason::TsRange)
    } else {
        Ok(decimal)
    })
}

impl Decimal {
    /// Times a power of ten, cut off to an integer; `None` where it does not fit.
    fn scaled(&self, power: i32) -> Option<u64> {
        let exponent = self.exponent + power;
        let scale = 10_u128.checked_pow(exponent.unsigned_abs());
        let number = match (exponent >= 0, scale) {
            (true, Some(scale)) => self.digits.checked_mul(scale)?,
            (true, None) if self.digits > 0 => return None,
            (false, Some(scale)) => self.digits / scale,
            _ => 0,
        };
        number.try_into().ok()
    }
}

/// The same span, as text: digits or RFC 3339.
pub(super) fn text_ms(text: &str) -> Result<i64, Reason> {
    text_ms_in(text, None)
}

/// Whether text is read as a time, where those without a zone are of this one.
pub fn is_time(text: &str, zone: Option<Zone>) -> bool {
    text_ms_in(text, zone).is_ok()
}

fn text_ms_in(text: &str, zone: Option<Zone>) -> Result<i64, Reason> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return integer_ms(text);
    }
    rfc3339_ms(text, zone)
        .filter(|ms| (1_000_000_000_000..10_000_000_000_000).contains(ms))
        .ok_or(Reason::TsRange)
}

/// Epoch milliseconds of RFC 3339 text such as `2025-11-20T00:00:00.123456+01:00`; what is finer is cut off.
/// Text that ends before its offset is of `zone`.
///
/// jiff alone would also read other forms of ISO 8601, and no more than nine digits of a second.
fn rfc3339_ms(text: &str, zone: Option<Zone>) -> Option<i64> {
    let (date_time, rest) = text.split_at_checked("2025-11-20T00:00:00".len())?;
    let fits = |(byte, form): (u8, u8)| match form {
        b'0' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b't' | b' '),
        punctuation => byte == punctuation,
    };
    if !date_time.bytes().zip(*b"0000-00-00T00:00:00").all(fits) {
        return None;
    }
    let date_time: DateTime = date_time.parse().ok()?;
    let (fraction_ms, offset) = match rest.strip_prefix('.') {
        Some(rest) => {
            let (digits, offset) =
                rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
            (leading_thousandths(digits)?, offset)
        }
        None => (0, rest),
    };
    let zone = match offset {
        "" => zone?,
        offset => Zone::of_offset(offset)?,
    };
    let utc_as_written = Offset::UTC.to_timestamp(date_time).ok()?.as_millisecond();
    Some(utc_as_written + fraction_ms - zone.ahead_ms())
}

/// `1234` → 123, `5` → 500; none without a digit.
fn leading_thousandths(digits: &str) -> Option<i64> {
    let leading = &digits[..digits.len().min(3)];
    Some(leading.parse::<i64>().ok()? * 10_i64.pow(3 - leading.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Result<i64, Reason>) {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        assert_eq!(epoch_ms(raw), expected, "{json}");
    }

    #[test]
    fn milliseconds_of_thirteen_digits_are_times() {
        check("999999999999", Err(Reason::TsRange));
        check("1000000000000", Ok(1_000_000_000_000));
        check("1763596800123", Ok(1_763_596_800_123));
        check("9999999999999", Ok(9_999_999_999_999));
        check("10000000000000", Err(Reason::TsRange));
    }

    #[test]
    fn other_units_are_named() {
        check("999999999", Err(Reason::TsRange));
        check("1000000000", Err(Reason::TsSeconds));
        check("9999999999", Err(Reason::TsSeconds));
        check("10000000000", Err(Reason::TsRange));
        check("999999999999999", Err(Reason::TsRange));
        check("1000000000000000", Err(Reason::TsMicros));
        check("9999999999999999", Err(Reason::TsMicros));
        check("10000000000000000", Err(Reason::TsRange));
        check("999999999999999999", Err(Reason::TsRange));
        check("1000000000000000000", Err(Reason::TsMicros));
        check("1763596800123456789", Err(Reason::TsMicros));
        check("9999999999999999999", Err(Reason::TsMicros));
    }

    #[test]
    fn other_integers_are_no_times() {
        for json in [
            "0",
            "-0",
            "-1763596800123",
            "10000000000000000000",
            "99999999999999999999",
        ] {
            check(json, Err(Reason::TsRange));
        }
    }

    #[test]
    fn numbers_that_are_no_integers_are_no_times() {
        for json in [
            "1763596800123.0",
            "1.763596800123e12",
            "1E999",
            "123456789012345678901",
            "-0.0",
        ] {
            check(json, Err(Reason::Number));
        }
    }

    #[test]
    fn digits_in_quotes_are_the_number_that_they_spell() {
        for (json, expected) in [
            ("\"1763596800123\"", Ok(1_763_596_800_123)),
            ("\"\\u0031763596800123\"", Ok(1_763_596_800_123)),
            ("\"1763596800\"", Err(Reason::TsSeconds)),
            ("\"1763596800123456\"", Err(Reason::TsMicros)),
            ("\"1763596800123456789\"", Err(Reason::TsMicros)),
            ("\"0\"", Err(Reason::TsRange)),
            ("\"99999999999999999999\"", Err(Reason::TsRange)),
            ("\"123456789012345678901\"", Err(Reason::Number)),
            // Other spellings of a number need a unit.
            ("\"-1763596800123\"", Err(Reason::TsRange)),
            ("\"1763596800123.0\"", Err(Reason::TsRange)),
            ("\" 1763596800123\"", Err(Reason::TsRange)),
            ("\"\u{661}763596800123\"", Err(Reason::TsRange)),
        ] {
            check(json, expected);
        }
    }

    #[test]
    fn other_types_are_no_times() {
        for json in ["null", "true", "[]", "{}"] {
            check(json, Err(Reason::WrongType));
        }
    }

    #[track_caller]
    fn check_unit(unit: TsUnit, json: &str, expected: Result<i64, Reason>) {
        assert_eq!(in_unit(json, unit, None), expected, "{unit:?} {json}");
    }

    #[test]
    fn a_unit_says_what_numbers_count() {
        const MS: i64 = 1_763_596_800_123;
        for (unit, json) in [
            (TsUnit::Seconds, "1763596800.123"),
            (TsUnit::Seconds, "1763596800.1239999999"),
            (TsUnit::Seconds, "1.763596800123E9"),
            (TsUnit::Seconds, "1763596800123e-3"),
            (TsUnit::Seconds, "\"1763596800.123\""),
            (TsUnit::Milliseconds, "1763596800123"),
            (TsUnit::Milliseconds, "\"1763596800123\""),
            (TsUnit::Milliseconds, "1763596800123.9"),
            (TsUnit::Milliseconds, "1.763596800123e+12"),
            (TsUnit::Microseconds, "1763596800123456"),
            (TsUnit::Nanoseconds, "1763596800123456789"),
            (TsUnit::Nanoseconds, "\"2025-11-20T00:00:00.123Z\""),
            (TsUnit::Seconds, "\"2025-11-20T00:00:00.123Z\""),
        ] {
            check_unit(unit, json, Ok(MS));
        }
        check_unit(TsUnit::Seconds, "1763596800", Ok(1_763_596_800_000));
    }

    #[test]
    fn a_number_of_another_unit_is_out_of_range() {
        check_unit(TsUnit::Seconds, "1763596800123", Err(Reason::TsRange));
        check_unit(TsUnit::Milliseconds, "1763596800", Err(Reason::TsSeconds));
        check_unit(
            TsUnit::Milliseconds,
            "\"1763596800123456\"",
            Err(Reason::TsMicros),
        );
        check_unit(TsUnit::Microseconds, "1763596800123", Err(Reason::TsRange));
        check_unit(TsUnit::Nanoseconds, "1763596800123", Err(Reason::TsRange));
        for json in [
            "0",
            "-0",
            "-1763596800",
            "1e300",
            "1e-300",
            "0e9999",
            "9e999",
            "1e-999",
            "\"\"",
            "\"now\"",
            "\"1.\"",
            "\".5\"",
            "\"0x1\"",
            "\"1e\"",
        ] {
            check_unit(TsUnit::Seconds, json, Err(Reason::TsRange));
        }
        check_unit(TsUnit::Seconds, &"1".repeat(37), Err(Reason::Number));
        check_unit(TsUnit::Seconds, "1e99999", Err(Reason::Number));
        check_unit(TsUnit::Seconds, "\"\\ud83d\"", Err(Reason::NotJson));
        for json in ["null", "true", "[]", "{}"] {
            check_unit(TsUnit::Seconds, json, Err(Reason::WrongType));
        }
    }

    #[test]
    fn rfc_3339_is_a_time() {
        check(r#""2025-11-20T00:00:00Z""#, Ok(1_763_596_800_000));
        check(r#""2025-11-20 00:00:00z""#, Ok(1_763_596_800_000));
        check(r#""2025-11-20t00:00:00-00:00""#, Ok(1_763_596_800_000));
        check(r#""2025-11-20T01:30:00+01:30""#, Ok(1_763_596_800_000));
        check(r#""2025-11-19T16:00:00-08:00""#, Ok(1_763_596_800_000));
        check(r#""2025-11-20T00:00:00.5Z""#, Ok(1_763_596_800_500));
        check(r#""2025-11-20T00:00:00.12Z""#, Ok(1_763_596_800_120));
        check(r#""2025-11-20T00:00:00.123999999999999Z""#, Ok(1_763_596_800_123));
        check(r#""2025\u002d11-20T00:00:00Z""#, Ok(1_763_596_800_000));
        check(r#""2024-02-29T00:00:00Z""#, Ok(1_709_164_800_000));
        check(r#""2016-12-31T23:59:60Z""#, Ok(1_483_228_799_000));
        check(r#""2001-09-09T01:46:40Z""#, Ok(1_000_000_000_000));
        check(r#""2286-11-20T17:46:39.999Z""#, Ok(9_999_999_999_999));
    }

    #[test]
    fn text_that_is_not_rfc_3339_is_no_time() {
        for text in [
            "",
            "now",
            "2025-11-20",
            "2025-11-20T00:00:00",
            "2025-11-20T00:00Z",
            "20251120T000000Z",
            "2025-11-20T00:00:00,5Z",
            "2025-11-20T00:00:00.Z",
            "2025-11-20T00:00:00.5",
            "2025-11-20T00:00:00+01",
            "2025-11-20T00:00:00+0100",
            "2025-11-20T00:00:00+24:00",
            "2025-11-20T00:00:00+00:60",
            "2025-11-20T00:00:00Z[UTC]",
            "2025-11-20T24:00:00Z",
            "2025-02-29T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "+002025-11-20T00:00:00Z",
            "2025-11-20T00:00:0éZ",
            "2001-09-09T01:46:39.999Z",
            "2286-11-20T17:46:40Z",
            "1969-12-31T23:59:59Z",
        ] {
            check(&format!("\"{text}\""), Err(Reason::TsRange));
        }
    }

    #[test]
    fn text_without_a_zone_is_of_the_one_that_is_said() {
        let zone = Zone::parse("+01:00");
        for (json, expected) in [
            ("\"2025-11-20T01:00:00\"", Ok(1_763_596_800_000)),
            ("\"2025-11-20 01:00:00.1239\"", Ok(1_763_596_800_123)),
            // One that it names itself holds.
            ("\"2025-11-20T00:00:00Z\"", Ok(1_763_596_800_000)),
            ("\"2025-11-19T16:00:00-08:00\"", Ok(1_763_596_800_000)),
            ("\"2025-11-20T00:00:00.\"", Err(Reason::TsRange)),
            ("\"2025-11-20T00:00:00 \"", Err(Reason::TsRange)),
            ("\"2025-11-20\"", Err(Reason::TsRange)),
            ("\"2001-09-09T02:46:39.999\"", Err(Reason::TsRange)),
        ] {
            assert_eq!(epoch_ms_of(json, zone), expected, "{json}");
            assert_eq!(in_unit(json, TsUnit::Seconds, zone), expected, "{json}");
        }
        let utc = epoch_ms_of("\"2025-11-20T00:00:00\"", Some(Zone::UTC));
        assert_eq!(utc, Ok(1_763_596_800_000));
    }
}
