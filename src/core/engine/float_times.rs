//! Times that went through a 32-bit float: multiples of 2¹⁷ ms, up to 65 s off.
//!
//! Some clients infer a schema from the first event and make every number a float. Only one in 131,072 other times is such a
//! multiple.

/// Distance of neighboring 32-bit floats of the size of today's epoch milliseconds.
const STEP_MS: i64 = 1 << 17;
/// No warning is given for fewer events.
const MIN_EVENTS: u64 = 10;

/// Returns whether a 32-bit float can represent a time, Unix ms.
pub fn is_on_step(ts_ms: i64) -> bool {
    ts_ms & (STEP_MS - 1) == 0
}

/// Events with a time, and those among them whose time is on a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FloatTimes {
    pub n: u64,
    pub n_on_steps: u64,
}

impl FloatTimes {
    pub fn see(&mut self, ts_ms: i64) {
        self.n += 1;
        self.n_on_steps += u64::from(is_on_step(ts_ms));
    }

    pub fn add(&mut self, more: FloatTimes) {
        self.n += more.n;
        self.n_on_steps += more.n_on_steps;
    }

    /// The problem and its remedy, if most times are on steps. `what` they are times of, such as `lists`.
    pub fn warning(self, what: &str) -> Option<String> {
        let FloatTimes { n, n_on_steps } = self;
        let is_most = n >= MIN_EVENTS && 2 * n_on_steps > n;
        is_most.then(|| {
            format!(
                "times of {n_on_steps} of {n} {what} are multiples of {STEP_MS} ms, like 32-bit floats: they may be off by a minute. Make \
                 `ts` a 64-bit integer in its schema"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_times_need_ten_times_mostly_on_steps() {
        let ms = 1_763_596_800_123_i64;
        assert!(!is_on_step(ms) && is_on_step((ms as f32) as i64));
        let warning = |n_floats: i64, n_others: i64| {
            let mut times = FloatTimes::default();
            (0..n_floats).for_each(|n| times.see((ms + n * 1_000_000) as f32 as i64));
            (0..n_others).for_each(|n| times.see(ms + n));
            times.warning("clicks")
        };
        assert_eq!(warning(9, 0), None);
        assert_eq!(warning(10, 10), None);
        let reported = warning(11, 10).expect("more than half");
        assert!(
            reported.starts_with("times of 11 of 21 clicks are multiples of 131072 ms"),
            "{reported}"
        );
    }
}
