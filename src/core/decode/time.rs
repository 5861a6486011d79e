//! Time of an event: Unix milliseconds, possibly quoted, or text that names its zone.

use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::json;
use super::shape::{TsUnit, Zone};
use crate::engine::event::Reason;

/// Parses a time of thirteen digits: 2001 to 2286. In other units, the same span has other numbers of digits. Text without
/// a zone is in `zone`.
pub(super) fn epoch_ms_of(raw: &str, zone: Option<Zone>) -> Result<i64, Reason> {
    if raw.starts_with('"') {
        return text_ms_in(&json::text(raw)?, zone);
    }
    digits_ms(raw)
}

fn digits_ms(integer: &str) -> Result<i64, Reason> {
    // An integer that does not fit into 64 bits is negative or too large, whatever its unit.
    let number: u64 = json::integer(integer)?.parse().map_err(|_| Reason::TsRange)?;
    within_span(number)
}

pub(super) fn integer_ms(number: i64) -> Result<i64, Reason> {
    within_span(number.try_into().map_err(|_| Reason::TsRange)?)
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

/// Parses a time whose numbers are in `unit`. They may be quoted and have a fraction or an exponent; parts of a millisecond
/// are cut off. Other text is RFC 3339, in `zone` if it does not name one.
pub(super) fn in_unit(raw: &str, unit: TsUnit, zone: Option<Zone>) -> Result<i64, Reason> {
    let Some(first) = raw.bytes().next() else {
        return Err(Reason::WrongType);
    };
    match first {
        b'"' => text_in_unit(&json::text(raw)?, unit, zone),
        b'-' | b'0'..=b'9' => number_ms(raw, unit),
        _ => Err(Reason::WrongType),
    }
}

pub(super) fn text_in_unit(text: &str, unit: TsUnit, zone: Option<Zone>) -> Result<i64, Reason> {
    match decimal(text) {
        Some(number) => ms_of(&number?, unit),
        None => text_ms_in(text, zone),
    }
}

/// Parses a number in the syntax of JSON.
pub(super) fn number_ms(number: &str, unit: TsUnit) -> Result<i64, Reason> {
    ms_of(&decimal(number).ok_or(Reason::Number)??, unit)
}

fn ms_of(number: &Decimal, unit: TsUnit) -> Result<i64, Reason> {
    let ms = number.scaled(match unit {
        TsUnit::Seconds => 3,
        TsUnit::Milliseconds => 0,
        TsUnit::Microseconds => -3,
        TsUnit::Nanoseconds => -6,
    });
    let ms = ms.ok_or(Reason::TsRange)?;
    within_span(ms).map_err(|reason| match unit {
        TsUnit::Milliseconds => reason,
        // In other units, the value does not show which unit it may be in.
        _ => Reason::TsRange,
    })
}

/// Number `digits × 10^exponent`.
struct Decimal {
    digits: u128,
    exponent: i32,
}

/// Bound on the digits of a number that is a time: more than any has.
const MAX_DECIMAL_DIGITS: usize = 36;

/// Parses a number in the syntax of JSON, with an error if it is negative. `None` for other text.
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
    // This few digits fit into 128 bits.
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
    /// Multiplies by a power of ten and truncates to an integer; `None` if it does not fit.
    fn scaled(&self, power: i32) -> Option<u64> {
        let exponent = self.exponent + power;
        let scale = 10_u128.checked_pow(exponent.unsigned_abs());
        let number = match (exponent >= 0, scale) {
            (true, Some(scale)) => self.digits.checked_mul(scale)?,
            (true, None) if self.digits > 0 => return None,
            (false, Some(scale)) => self.digits / scale,
            // The number is 0, or all of its digits are cut off.
            _ => 0,
        };
        number.try_into().ok()
    }
}

/// Parses a time of the same span from text: digits or RFC 3339.
pub(super) fn text_ms(text: &str) -> Result<i64, Reason> {
    text_ms_in(text, None)
}

/// Returns whether text is accepted as a time. Times without a zone are in `zone`.
pub fn is_time(text: &str, zone: Option<Zone>) -> bool {
    text_ms_in(text, zone).is_ok()
}

pub(super) fn text_ms_in(text: &str, zone: Option<Zone>) -> Result<i64, Reason> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits_ms(text);
    }
    iso_ms(text, zone)
        .or_else(|| http_ms(text))
        .and_then(within_ms)
        .ok_or(Reason::TsRange)
}

pub(super) fn within_ms(ms: i64) -> Option<i64> {
    (1_000_000_000_000..10_000_000_000_000)
        .contains(&ms)
        .then_some(ms)
}

/// Parses RFC 3339 text such as `2025-11-20T00:00:00.123456+01:00`, or an equivalent form of ISO 8601: without seconds,
/// `20251120T000000Z`, `… UTC`, `+0100`, `+01`, `+01:00[Europe/Berlin]`. Returns Unix ms; finer parts are cut off. Text
/// without an offset is in `zone`.
fn iso_ms(text: &str, zone: Option<Zone>) -> Option<i64> {
    let (date_time, rest) = date_time(text)?;
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
        offset => zone_of(offset)?,
    };
    let utc_as_written = Offset::UTC.to_timestamp(date_time).ok()?.as_millisecond();
    Some(utc_as_written + fraction_ms - zone.ahead_ms())
}

/// Returns the date and time that a text begins with, and the text after them. jiff would also accept dates of other
/// calendars.
fn date_time(text: &str) -> Option<(DateTime, &str)> {
    let form = |form: &str| {
        let (date_time, rest) = text.split_at_checked(form.len())?;
        let fits = |(byte, form): (u8, u8)| match form {
            b'0' => byte.is_ascii_digit(),
            b'T' => matches!(byte, b'T' | b't' | b' '),
            punctuation => byte == punctuation,
        };
        date_time
            .bytes()
            .zip(form.bytes())
            .all(fits)
            .then_some((date_time, rest))
    };
    let parsed = |text: &str| text.parse().ok();
    if let Some((date_time, rest)) = form("0000-00-00T00:00:00") {
        return Some((parsed(date_time)?, rest));
    }
    let (written, rest) = form("0000-00-00T00:00")
        .or_else(|| form("00000000T000000"))
        .or_else(|| form("00000000T0000"))?;
    // Only seconds can have a fraction, so neither `.` nor `:` may follow a time without them.
    let may_go_on = written.len() == "00000000T000000".len() || !rest.starts_with(['.', ':']);
    let digits: String = written.chars().filter(char::is_ascii_digit).collect();
    let part = |place: std::ops::Range<usize>| digits.get(place).unwrap_or("00");
    let [year, month, day] = [part(0..4), part(4..6), part(6..8)];
    let [hour, minute, second] = [part(8..10), part(10..12), part(12..14)];
    let date_time = parsed(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}"))?;
    may_go_on.then_some((date_time, rest))
}

/// Returns the zone at the end of a time.
fn zone_of(offset: &str) -> Option<Zone> {
    let offset = match offset.split_once('[') {
        // The offset decides, so the name of the zone is not looked up.
        Some((offset, name)) if name.ends_with(']') && !offset.is_empty() => offset,
        Some(_) => return None,
        None => offset,
    };
    let offset = offset.strip_prefix(' ').unwrap_or(offset);
    if ["UTC", "GMT"]
        .iter()
        .any(|name| offset.eq_ignore_ascii_case(name))
    {
        return Some(Zone::UTC);
    }
    match (offset.len(), offset.is_ascii()) {
        (3, true) => Zone::of_offset(&format!("{offset}:00")),
        (5, true) => Zone::of_offset(&format!("{}:{}", &offset[..3], &offset[3..])),
        _ => Zone::of_offset(offset),
    }
}

/// Parses `Thu, 20 Nov 2025 00:00:00 GMT` to Unix ms.
fn http_ms(text: &str) -> Option<i64> {
    let time = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text)
        .ok()?;
    Some(time.as_millisecond())
}

/// Parses `[2025,11,20,0,0,5,123000000]` to Unix ms. Some serializers of Java write a time without a zone like this: year,
/// month, day, hour and minute, and second and nanosecond if they are not 0.
pub(super) fn calendar_ms(numbers: &[u32], zone: Zone) -> Result<i64, Reason> {
    let (&[year, month, day, hour, minute], rest) = numbers.split_first_chunk().ok_or(Reason::WrongType)?;
    let (second, nanosecond) = match *rest {
        [] => (0, 0),
        [second] => (second, 0),
        [second, nanosecond] => (second, nanosecond),
        _ => return Err(Reason::WrongType),
    };
    // As text, so that the parser checks the range of each part.
    let text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanosecond:09}");
    text_ms_in(&text, Some(zone))
}

/// Returns the leading digits of a fraction as thousandths: `1234` → 123, `5` → 500. `None` without a digit.
fn leading_thousandths(digits: &str) -> Option<i64> {
    let leading = &digits[..digits.len().min(3)];
    Some(leading.parse::<i64>().ok()? * 10_i64.pow(3 - leading.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::super::value::Value;
    use super::*;

    fn check(json: &str, expected: Result<i64, Reason>) {
        assert_eq!(epoch_ms_of(json, None), expected, "{json}");
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
    fn refusals_name_another_unit() {
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
    fn other_integers_are_not_times() {
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
    fn numbers_other_than_integers_are_not_times() {
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
    fn quoted_digits_are_read_as_a_number() {
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
    fn other_types_are_not_times() {
        for json in ["null", "true", "[]", "{}"] {
            check(json, Err(Reason::WrongType));
        }
    }

    #[track_caller]
    fn check_unit(unit: TsUnit, json: &str, expected: Result<i64, Reason>) {
        assert_eq!(in_unit(json, unit, None), expected, "{unit:?} {json}");
    }

    #[test]
    fn numbers_are_read_in_the_configured_unit() {
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
    fn other_date_formats_are_times() {
        const MS: i64 = 1_763_596_800_000;
        for text in [
            "2025-11-20T00:00Z",
            "2025-11-20 00:00 UTC",
            "2025-11-20 00:00:00 UTC",
            "2025-11-20 00:00:00.000 utc",
            "2025-11-20T01:00:00+01",
            "2025-11-20T01:00:00 +0100",
            "2025-11-20T01:00+01:00[Europe/Berlin]",
            "2025-11-20T00:00:00Z[UTC]",
            "20251120T000000Z",
            "20251120T000000.0Z",
            "20251120T0000Z",
            "20251120 010000+0100",
            "Thu, 20 Nov 2025 00:00:00 GMT",
            "20 Nov 2025 01:00:00 +0100",
        ] {
            check(&format!("\"{text}\""), Ok(MS));
        }
        check("\"2025-11-20 00:00:00.1 UTC\"", Ok(MS + 100));
    }

    #[test]
    fn an_array_is_a_time_if_a_zone_is_configured() {
        let zone = Zone::parse("+01:00");
        for (array, expected) in [
            ("[2025,11,20,1,0]", Ok(1_763_596_800_000)),
            ("[2025, 11, 20, 1, 0, 5]", Ok(1_763_596_805_000)),
            ("[2025,11,20,1,0,5,123456789]", Ok(1_763_596_805_123)),
            ("[2025,13,20,1,0]", Err(Reason::TsRange)),
            ("[2025,11,20]", Err(Reason::WrongType)),
            ("[2025,11,20,1,0,5,1,1]", Err(Reason::WrongType)),
            ("[2025,11,20,1,0.5]", Err(Reason::Number)),
            ("[2025,11,20,-1,0]", Err(Reason::TsRange)),
            ("[2025,11,20,1,0,5,9999999999]", Err(Reason::TsRange)),
        ] {
            assert_eq!(Value::Json(array).time(None, zone), expected, "{array}");
        }
        assert_eq!(
            Value::Json("[2025,11,20,1,0]").time(None, None),
            Err(Reason::WrongType)
        );
    }

    #[test]
    fn other_text_is_not_a_time() {
        for text in [
            "",
            "now",
            "2025-11-20",
            "2025-11-20T00:00:00",
            "11/20/2025 00:00:00",
            "2025-11-20T00:00:00 CET",
            "2025-11-20T00:00:00[Europe/Berlin]",
            "2025-11-20T00:00.5Z",
            "2025-11-20T00:00:00,5Z",
            "2025-11-20T00:00:00.Z",
            "2025-11-20T00:00:00.5",
            "2025-11-20T00:00:00+24:00",
            "2025-11-20T00:00:00+00:60",
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
    fn text_without_a_zone_uses_the_configured_one() {
        let zone = Zone::parse("+01:00");
        for (json, expected) in [
            ("\"2025-11-20T01:00:00\"", Ok(1_763_596_800_000)),
            ("\"2025-11-20 01:00:00.1239\"", Ok(1_763_596_800_123)),
            // A zone in the text takes precedence.
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
