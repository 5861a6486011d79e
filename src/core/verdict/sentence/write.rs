//! Number formats of sentences, the same as on the page.

use crate::metrics::MetricUnit;
use crate::nouns::number_of;
use crate::rounding::{percentage, rounded};
use crate::statistics::{Interval, unit_of};

const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;

/// Writes a relative difference with its sign: "+29.1%", "−4.0%", "±0.0%".
pub fn percent(lift: f64) -> String {
    let words = share(lift.abs(), 1);
    // The digits decide: a lift that is rounded to 0.0% has no sign.
    let sign = match words.contains(|char: char| ('1'..='9').contains(&char)) {
        false => '±',
        true if lift < 0.0 => '−',
        true => '+',
    };
    format!("{sign}{words}")
}

/// Writes a share: "3.2%".
pub fn share(share: f64, digits: usize) -> String {
    let words = percentage(share, digits);
    let (whole, rest) = words.split_at(words.find(['.', '%']).unwrap_or(words.len()));
    format!("{}{rest}", grouped(whole))
}

/// Writes a value of a metric: "7.12%", "0.3311".
pub fn value(key: &str, value: f64) -> String {
    let unit = unit_of(key);
    let digits = unit.digits();
    match unit {
        MetricUnit::Share => share(value, digits),
        MetricUnit::Bits => rounded(value, digits) + " bits",
        MetricUnit::Score | MetricUnit::Items => rounded(value, digits),
    }
}

/// Writes an interval: "+24.0% to +34.2%".
pub fn interval(Interval { lower, upper }: Interval) -> String {
    format!("{} to {}", percent(lower), percent(upper))
}

/// Writes a count: "18,211".
pub fn count(n: f64) -> String {
    grouped(&format!("{n:.0}"))
}

/// Writes a date in UTC: "Mon 24 Nov".
pub fn date(ms: i64) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(ms).ok()?;
    Some(time.strftime("%a %-d %b").to_string())
}

/// Writes a duration, for use after "about": "32 min", "3 h", "2 days".
pub fn span(ms: i64) -> String {
    match ms {
        ms if ms >= 48 * HOUR_MS => format!("{} days", ms / (24 * HOUR_MS)),
        ms if ms >= 2 * HOUR_MS => format!("{} h", ms / HOUR_MS),
        ms if ms >= MINUTE_MS => format!("{} min", ms / MINUTE_MS),
        ms => format!("{} s", (ms / 1000).max(1)),
    }
}

/// Writes an estimate of days, in hours if it is short: "17 hours", "28 days".
pub fn days(days: f64) -> String {
    match days {
        days if days < 2.0 => number_of(format!("{:.0}", (days * 24.0).max(1.0)), "hour"),
        days => number_of(format!("{days:.0}"), "day"),
    }
}

/// Writes shares as "53:47" and "50:50", with as many digits as needed to tell the two apart, but at most two.
pub fn split(arms: &[[f64; 2]]) -> [String; 2] {
    let at = |digits: usize| {
        [0, 1].map(|side| {
            let shares = arms.iter().map(|of| rounded(100.0 * of[side], digits));
            shares.collect::<Vec<_>>().join(":")
        })
    };
    let reported = (0..2).map(at).find(|[seen, planned]| seen != planned);
    reported.unwrap_or_else(|| at(2))
}

fn grouped(digits: &str) -> String {
    let n = digits.len();
    let mut words = String::with_capacity(n + n / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (n - place).is_multiple_of(3) {
            words.push(',');
        }
        words.push(digit);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_the_page() {
        let written = [0.2909, -0.04, 0.0001, 0.0, 12.345, 0.5005, -0.5005, 0.03999].map(percent);
        assert_eq!(
            written,
            [
                "+29.1%",
                "−4.0%",
                "±0.0%",
                "±0.0%",
                "+1,234.5%",
                "+50.1%",
                "−50.1%",
                "+4.0%"
            ]
        );
        assert_eq!(
            [1.0, 999.0, 18_211.0, 1_234_567.0].map(count),
            ["1", "999", "18,211", "1,234,567"]
        );
    }

    #[test]
    fn values_have_the_form_of_their_unit() {
        let written = [
            ("ctr@10", "7.12%"),
            ("mrr", "0.0712"),
            ("hits@5", "0.071"),
            ("surprisal@5", "0.07 bits"),
        ];
        for (key, expected) in written {
            assert_eq!(value(key, 0.0712), expected);
        }
    }

    #[test]
    fn shares_get_enough_digits_to_differ() {
        assert_eq!(split(&[[0.53, 0.5], [0.47, 0.5]]), ["53:47", "50:50"]);
        assert_eq!(split(&[[0.503, 0.5], [0.497, 0.5]]), ["50.3:49.7", "50.0:50.0"]);
        assert_eq!(split(&[[0.5, 0.5], [0.5, 0.5]]), ["50.00:50.00", "50.00:50.00"]);
    }

    #[test]
    fn dates_are_in_utc() {
        assert_eq!(date(1_764_028_799_999).as_deref(), Some("Mon 24 Nov"));
        assert_eq!(date(1_764_547_200_000).as_deref(), Some("Mon 1 Dec"));
        assert_eq!(date(i64::MAX), None);
    }

    #[test]
    fn short_estimates_are_in_hours() {
        let written = [0.01, 0.7, 1.2, 1.99, 2.0, 28.4].map(days);
        assert_eq!(
            written,
            ["1 hour", "17 hours", "29 hours", "48 hours", "2 days", "28 days"]
        );
    }

    #[test]
    fn spans_have_one_unit() {
        let spans = [500, 45_000, 1_920_000, 7_200_000, 200_000_000].map(span);
        assert_eq!(spans, ["1 s", "45 s", "32 min", "2 h", "2 days"]);
    }
}
