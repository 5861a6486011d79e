//! Daily curve: the rate of lists over the hours of a day.
//!
//! ```text
//!   even time     │····│····│····│····│····│····│   lists at a steady rate
//!   time of day   │·    ·    ·  · ··········· · │   same lists, bent: few at night, many in the evening
//! ```
//!
//! Even time and event time agree at each midnight (UTC), so the mean rate over a whole day is the configured one.

/// Traffic of each hour, where 100 is the mean.
const HOURS: [u64; 24] = [
    60, 42, 30, 24, 22, 26, 40, 66, 92, 110, 118, 122, 128, 126, 120, 118, 122, 132, 150, 168, 176, 172, 142,
    94,
];
const MEAN: u64 = 100;

const HOUR_NS: u64 = 3_600_000_000_000;
const DAY_NS: u64 = 24 * HOUR_NS;

/// Even time at the start of each hour.
const BEGINS_NS: [u64; 25] = {
    let mut begins = [0; 25];
    let mut hour = 0;
    while hour < 24 {
        begins[hour + 1] = begins[hour] + HOUR_NS / MEAN * HOURS[hour];
        hour += 1;
    }
    begins
};
const _: () = assert!(BEGINS_NS[24] == DAY_NS, "the mean of the hours is 100");

/// Converts even time to event time, both in ns since the same midnight.
pub fn bend(even_ns: u64) -> u64 {
    let (midnight, rest) = (even_ns / DAY_NS * DAY_NS, even_ns % DAY_NS);
    let hour = BEGINS_NS.partition_point(|begin| *begin <= rest) - 1;
    midnight + hour as u64 * HOUR_NS + (rest - BEGINS_NS[hour]) * MEAN / HOURS[hour]
}

/// Converts event time back to even time.
pub fn straighten(event_ns: u64) -> u64 {
    let (midnight, rest) = (event_ns / DAY_NS * DAY_NS, event_ns % DAY_NS);
    let hour = (rest / HOUR_NS) as usize;
    midnight + BEGINS_NS[hour] + rest % HOUR_NS * HOURS[hour] / MEAN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bending_keeps_the_start_of_each_day() {
        for day in [0, 1, 7] {
            assert_eq!(bend(day * DAY_NS), day * DAY_NS);
            assert_eq!(straighten(day * DAY_NS), day * DAY_NS);
        }
    }

    #[test]
    fn bent_time_is_monotonic_and_invertible() {
        let mut last_ns = 0;
        for minute in 0..2 * 24 * 60 {
            let even_ns = minute * HOUR_NS / 60;
            let event_ns = bend(even_ns);
            assert!(minute == 0 || event_ns > last_ns);
            assert!(straighten(event_ns).abs_diff(even_ns) <= 2, "minute {minute}");
            last_ns = event_ns;
        }
    }

    #[test]
    fn each_hour_has_its_share_of_the_day() {
        let evening = straighten(20 * HOUR_NS)..straighten(21 * HOUR_NS);
        let night = straighten(3 * HOUR_NS)..straighten(4 * HOUR_NS);
        assert_eq!(evening.end - evening.start, HOUR_NS / 100 * 176);
        assert_eq!(night.end - night.start, HOUR_NS / 100 * 24);
    }
}
