//! Clocks for the time that passes while nothing is read: a quiet stream settles, and its windows empty.
//!
//! The idle clocks of the topic partitions and the live end stop while the broker does not answer. They start at zero when
//! it answers again, and after the loop itself was stopped: the records produced meanwhile are unread.

use std::time::Duration;

/// Pause of the loop from which it counts as stopped.
const STOPPED_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub struct Clocks {
    /// Number of restarts. Answers to questions of an earlier run are ignored.
    run: u64,
    last_round: Option<Duration>,
    live_end_ms: Option<i64>,
    /// Live end at the last question about the ends of the logs.
    asked_live_end_ms: Option<i64>,
    /// Last answer that found every partition at its end: the steady time of its question, and the live end then.
    all_at_end: Option<(i64, i64)>,
    /// Set once every partition has been at its end.
    has_started: bool,
}

impl Clocks {
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Notes a round of the loop, and returns whether the loop had been stopped.
    pub fn round(&mut self, uptime: Duration) -> bool {
        let before = self.last_round.replace(uptime);
        before.is_some_and(|before| uptime.saturating_sub(before) > STOPPED_AFTER)
    }

    /// Returns the real time since the start, as of the last round.
    pub fn uptime(&self) -> Duration {
        self.last_round.unwrap_or_default()
    }

    /// Restarts all clocks at zero.
    pub fn restart(&mut self) {
        self.run += 1;
        self.all_at_end = None;
    }

    /// Returns the end of the live windows. It never decreases.
    pub fn live_end_ms(&self) -> Option<i64> {
        self.live_end_ms
    }

    /// Notes that an event of this time was accepted or has settled.
    pub fn observe(&mut self, ts_ms: Option<i64>) {
        self.live_end_ms = self.live_end_ms.max(ts_ms);
    }

    /// Notes that the brokers are being asked for the ends of the logs.
    pub fn ask(&mut self) {
        self.asked_live_end_ms = self.live_end_ms;
    }

    /// Returns whether every partition has ever been at its end.
    pub fn has_started(&self) -> bool {
        self.has_started
    }

    /// Takes an answer to a question asked at `asked_ms`: whether all partitions were at their ends. Returns the live end
    /// as of then, without the records read since.
    pub fn all_at_end(&mut self, all: bool, asked_ms: i64) -> Option<i64> {
        // Taken even if not all are at their ends, because that interrupts the measurement.
        let before = self.all_at_end.take();
        let mut live_end_ms = self.asked_live_end_ms;
        // Time passes only between two answers that both found every partition at its end.
        if let (true, Some((before_ms, before_end_ms))) = (all, before) {
            live_end_ms = live_end_ms.max(Some(before_end_ms + (asked_ms - before_ms).max(0)));
        }
        self.observe(live_end_ms);
        self.has_started |= all;
        self.all_at_end = live_end_ms
            .filter(|_| all)
            .map(|live_end_ms| (asked_ms, live_end_ms));
        live_end_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(clocks: &mut Clocks, all: bool, asked_ms: i64) -> Option<i64> {
        clocks.ask();
        clocks.all_at_end(all, asked_ms)
    }

    #[test]
    fn an_answer_uses_the_live_end_at_the_time_of_its_question() {
        let mut clocks = Clocks::default();
        clocks.observe(Some(5000));
        answer(&mut clocks, true, 100);
        clocks.ask();
        clocks.observe(Some(60_000));
        assert_eq!(clocks.all_at_end(true, 600), Some(5500));
        assert_eq!(clocks.live_end_ms(), Some(60_000));
        assert_eq!(answer(&mut clocks, true, 700), Some(60_000));
    }

    #[test]
    fn the_live_end_advances_with_time_only_while_all_are_at_their_ends() {
        let mut clocks = Clocks::default();
        answer(&mut clocks, true, 100);
        answer(&mut clocks, true, 200);
        assert_eq!(clocks.live_end_ms(), None, "nothing was ever accepted");
        clocks.observe(Some(5000));
        answer(&mut clocks, true, 300);
        answer(&mut clocks, true, 400);
        assert_eq!(clocks.live_end_ms(), Some(5100));
        answer(&mut clocks, false, 500);
        answer(&mut clocks, true, 600);
        assert_eq!(clocks.live_end_ms(), Some(5100), "from that moment on");
        answer(&mut clocks, true, 800);
        clocks.observe(Some(5200));
        assert_eq!(clocks.live_end_ms(), Some(5300), "it never falls");
    }

    #[test]
    fn elapsed_time_covered_by_events_is_not_added_again() {
        let mut clocks = Clocks::default();
        clocks.observe(Some(5000));
        answer(&mut clocks, true, 100);
        clocks.observe(Some(5500));
        answer(&mut clocks, true, 600);
        assert_eq!(
            clocks.live_end_ms(),
            Some(5500),
            "half a second has passed, and half a second was read"
        );
    }

    #[test]
    fn a_restart_forgets_elapsed_time() {
        let mut clocks = Clocks::default();
        clocks.observe(Some(5000));
        answer(&mut clocks, true, 100);
        clocks.restart();
        answer(&mut clocks, true, 90_000);
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
