//! The time that passes while nothing is read: what lets a quiet stream settle and an empty window empty.
//!
//! Both the idle clocks of the topic partitions and the live end stand still while the broker does not answer, and
//! begin at zero when it answers again, or when the loop itself was stopped: what was produced meanwhile is unread.

use std::time::Duration;

/// The loop is taken to have been stopped if it did not come round for this long.
const STOPPED_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub struct Clocks {
    /// Counts the times that the clocks began at zero: answers to questions of an earlier run tell nothing.
    run: u64,
    last_loop: Option<Duration>,
    live_end_ms: Option<i64>,
    /// Steady time of the last answer that found every partition at its end.
    all_at_end_ms: Option<i64>,
}

impl Clocks {
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Notes that the loop comes round; says whether it had been stopped.
    pub fn round(&mut self, uptime: Duration) -> bool {
        let before = self.last_loop.replace(uptime);
        before.is_some_and(|before| uptime.saturating_sub(before) > STOPPED_AFTER)
    }

    /// All clocks begin at zero.
    pub fn restart(&mut self) {
        self.run += 1;
        self.all_at_end_ms = None;
    }

    /// The end of the live windows; it never falls.
    pub fn live_end_ms(&self) -> Option<i64> {
        self.live_end_ms
    }

    /// An event of this time was accepted, or settled.
    pub fn saw(&mut self, ts_ms: Option<i64>) {
        self.live_end_ms = self.live_end_ms.max(ts_ms);
    }

    /// An answer asked at `asked_ms` found all partitions at their ends, or not.
    pub fn all_at_end(&mut self, all: bool, asked_ms: i64) {
        let before = if all {
            self.all_at_end_ms.replace(asked_ms)
        } else {
            self.all_at_end_ms.take()
        };
        if let (true, Some(before), Some(live_end)) = (all, before, &mut self.live_end_ms) {
            *live_end += (asked_ms - before).max(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_live_end_moves_with_time_only_while_all_stand_at_their_ends() {
        let mut clocks = Clocks::default();
        clocks.all_at_end(true, 100);
        clocks.all_at_end(true, 200);
        assert_eq!(clocks.live_end_ms(), None, "nothing was ever accepted");
        clocks.saw(Some(5000));
        clocks.all_at_end(true, 300);
        assert_eq!(clocks.live_end_ms(), Some(5100));
        clocks.all_at_end(false, 400);
        clocks.all_at_end(true, 500);
        assert_eq!(clocks.live_end_ms(), Some(5100), "from that moment on");
        clocks.all_at_end(true, 700);
        clocks.saw(Some(5200));
        assert_eq!(clocks.live_end_ms(), Some(5300), "it never falls");
    }

    #[test]
    fn a_restart_forgets_the_time_that_passed() {
        let mut clocks = Clocks::default();
        clocks.saw(Some(5000));
        clocks.all_at_end(true, 100);
        clocks.restart();
        clocks.all_at_end(true, 90_000);
        assert_eq!(clocks.live_end_ms(), Some(5000));
    }

    #[test]
    fn notices_that_the_loop_was_stopped() {
        let mut clocks = Clocks::default();
        assert!(!clocks.round(Duration::from_secs(100)), "the first round");
        assert!(!clocks.round(Duration::from_secs(105)));
        assert!(clocks.round(Duration::from_millis(110_001)));
    }
}
