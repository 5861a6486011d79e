//! Handling of the logs' ends: time passes for the partitions that have reached them.

use std::collections::BTreeMap;

use abgauge_core::engine::event::Side;

use super::Worker;
use crate::stream::{Fault, LogEnd, TopicPartition};

impl Worker {
    pub(super) fn ends_known(
        &mut self,
        clock_run: u64,
        asked_ms: i64,
        ends: Result<BTreeMap<TopicPartition, LogEnd>, Fault>,
    ) {
        let ends = match ends {
            Ok(ends) => ends,
            Err(fault) => {
                // Records may have been produced meanwhile, so the time without answers does not count (D7).
                self.restart_clocks();
                return self.fault(fault);
            }
        };
        self.report.brokers_answer();
        let is_current = clock_run == self.clocks.run();
        let mut all_at_end = true;
        let mut idle: Vec<(i32, Vec<Side>)> = Vec::new();
        for (partition, pair) in self.shards.pairs_mut() {
            if pair.is_held() {
                // Silence does not settle a held pair. Only its lag is updated.
                for log in &mut pair.logs {
                    log.end = ends
                        .get(&(log.side, partition))
                        .map_or(log.end, |end| Some(end.end));
                }
                continue; // Time passes for the others.
            }
            let n_logs = pair.logs.len();
            let mut at_end = 0;
            let mut is_at_rest = Vec::new();
            for log in &mut pair.logs {
                let answer = ends.get(&(log.side, partition));
                let is_at_end = answer.is_some_and(|end| log.ends(*end));
                if let Some(answer) = answer {
                    log.look_for_open_transaction(answer, asked_ms);
                }
                at_end += usize::from(is_at_end);
                if is_current && log.is_at_rest(is_at_end, asked_ms, self.setup.idle_after_ms) {
                    is_at_rest.push(log.side);
                }
            }
            all_at_end &= at_end == n_logs;
            // D7: silence counts only if all logs of the pair are at their ends.
            if at_end == n_logs && !is_at_rest.is_empty() {
                idle.push((partition, is_at_rest));
            }
        }
        // The clocks have restarted since the question, so its answer must not let time pass.
        if !is_current {
            return;
        }
        // Only once: from then on, elapsed time is measured directly.
        let is_start = all_at_end && !self.clocks.has_started();
        let live_end_ms = self.clocks.all_at_end(all_at_end, asked_ms);
        if is_start {
            self.catch_up_with_time(asked_ms);
        }
        for (partition, sides) in idle {
            self.make_idle_move(partition, &sides, live_end_ms);
        }
    }

    /// Moves the live end after a start has read everything, by the time since the newest event was written. A live stream
    /// brings its own time instead: its record timestamps may be those of the events, not of their arrival.
    fn catch_up_with_time(&mut self, asked_ms: i64) {
        if self.shards.pairs().any(|(_, pair)| pair.continues()) {
            return;
        }
        let newest = self
            .shards
            .pairs()
            .filter_map(|(_, pair)| pair.engine().last_accepted());
        let Some((ts_ms, record_ms)) = newest.max() else {
            return;
        };
        // The steady clock measures the time since the question, because the system clock may have been set.
        let asked_at_ms = self.clock.now_ms() - (self.clock.steady_ms() - asked_ms);
        let passed_ms = asked_at_ms.saturating_sub(record_ms).max(0);
        self.clocks.observe(Some(ts_ms + passed_ms));
    }

    /// Returns the limit of the shown windows, by view. An honest clock may be this far ahead of ours.
    pub(super) fn until_ms(&self) -> [i64; 2] {
        let live_ms = self.clock.now_ms() + self.setup.rules.max_future_ms;
        [
            live_ms,
            live_ms - self.setup.rules.lateness_ms - self.setup.rules.attribution_ms,
        ]
    }

    pub(super) fn shown_live_end_ms(&self) -> Option<i64> {
        let [until_ms, _] = self.until_ms();
        self.clocks
            .live_end_ms()
            .map(|live_end_ms| live_end_ms.min(until_ms))
    }

    /// Applies rule D7: time passes for a topic partition that has been at its end for long enough.
    fn make_idle_move(&mut self, partition: i32, sides: &[Side], live_end_ms: Option<i64>) {
        let [until_ms, _] = self.until_ms();
        if let Some(pair) = self.shards.get_mut(partition) {
            // The live end applies only if both topics are silent. Otherwise the larger M does (D7).
            let both = sides.len() == pair.logs.len();
            for side in sides {
                pair.tracker.idle(*side, live_end_ms.filter(|_| both), until_ms);
            }
            pair.changed = true;
        }
    }

    pub(super) fn restart_clocks(&mut self) {
        self.clocks.restart();
        self.shards
            .pairs_mut()
            .flat_map(|(_, pair)| &mut pair.logs)
            .for_each(|log| log.idle_since_ms = None);
    }
}
