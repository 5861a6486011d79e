//! Zone of times that do not name one: UTC, or an offset from it.

use std::fmt;

/// Offset from UTC. Named zones are excluded, because they change their clocks: an hour of each year would have two
/// meanings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Zone {
    minutes: i64,
}

impl Zone {
    pub const UTC: Zone = Zone { minutes: 0 };

    /// Parses `UTC`, `Z`, `+01:00` or `-08:00`.
    pub fn parse(text: &str) -> Option<Zone> {
        match text {
            "UTC" => Some(Zone::UTC),
            _ => Zone::of_offset(text),
        }
    }

    /// Parses the end of RFC 3339 text: `Z` or `+hh:mm`.
    pub(in crate::decode) fn of_offset(offset: &str) -> Option<Zone> {
        let &[sign, h1, h2, b':', m1, m2] = offset.as_bytes() else {
            return offset.eq_ignore_ascii_case("Z").then_some(Zone::UTC);
        };
        let two_digits = |tens: u8, ones: u8| {
            (tens.is_ascii_digit() && ones.is_ascii_digit())
                .then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
        };
        let hours = two_digits(h1, h2).filter(|&hours| hours < 24)?;
        let minutes = two_digits(m1, m2).filter(|&minutes| minutes < 60)?;
        let ahead = hours * 60 + minutes;
        match sign {
            b'+' => Some(Zone { minutes: ahead }),
            b'-' => Some(Zone { minutes: -ahead }),
            _ => None,
        }
    }

    /// Returns how far its clocks are ahead of UTC, ms.
    pub fn ahead_ms(self) -> i64 {
        self.minutes * 60_000
    }
}

/// Writes text that can be parsed again.
impl fmt::Display for Zone {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let (sign, ahead) = if self.minutes < 0 {
            ('-', -self.minutes)
        } else {
            ('+', self.minutes)
        };
        match ahead {
            0 => out.write_str("UTC"),
            _ => write!(out, "{sign}{:02}:{:02}", ahead / 60, ahead % 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_parse_to_offsets_and_print_as_written() {
        for (text, ahead_ms, written) in [
            ("UTC", 0, "UTC"),
            ("Z", 0, "UTC"),
            ("+00:00", 0, "UTC"),
            ("+05:30", 19_800_000, "+05:30"),
            ("-08:00", -28_800_000, "-08:00"),
            ("-00:30", -1_800_000, "-00:30"),
        ] {
            let zone = Zone::parse(text).expect(text);
            assert_eq!((zone.ahead_ms(), &*zone.to_string()), (ahead_ms, written));
        }
        for text in [
            "",
            "utc",
            "Europe/Berlin",
            "+1",
            "+0100",
            "01:00",
            "+24:00",
            "+01:60",
            "*01:00",
        ] {
            assert_eq!(Zone::parse(text), None, "{text}");
        }
    }
}
