//! Growth of the information about an experiment: x of its primaries now and at a look some days ago.
//!
//! ```text
//! first list ├── 1 day ── 2 days ──────── 4 days ──────────────────── 8 days ──────▶
//!                           earlier ◀──────── marks are kept ────────── now: from 4 days to 8
//! ```
//! Marks are set after whole days, so that every hour of the day counts alike, each at twice the days of the one before. So two
//! marks are enough, however long the experiment runs. The earlier look lies at a quarter to a half of the days so far.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::arm::LookedArm;
use super::settings::{MetricRole, Settings};

/// x = τ²/V as of a look.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// Time of the look, Unix ms.
    #[serde(rename = "as_of")]
    pub as_of_ms: i64,
    /// x of each primary of each tested arm, once burn-in is done.
    pub arms: BTreeMap<String, BTreeMap<String, f64>>,
}

/// x now and earlier.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InformationGrowth {
    /// Start of the sums, Unix ms.
    pub since_ms: i64,
    pub now: Known,
    /// x at a quarter to a half of the days. None before two days have passed.
    pub earlier: Option<Known>,
}

/// State between two looks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TestProgress {
    /// Start of the sums, Unix ms. None if they start with the first look.
    pub since_ms: Option<i64>,
    /// x as of 2^k days, for at most two k.
    pub marks: Vec<Known>,
}

const DAY_MS: i64 = 86_400_000;

impl Known {
    pub(super) fn new(settings: &Settings, arms: &BTreeMap<String, LookedArm>, as_of_ms: i64) -> Known {
        let tested = arms.iter().filter(|(name, _)| settings.tests(name));
        let of_arm = |arm: &LookedArm| {
            let primaries = arm
                .metrics
                .iter()
                .filter(|(_, metric)| metric.report.role == MetricRole::Primary);
            let known = primaries.filter_map(|(id, metric)| Some((id.clone(), metric.judged?.x?)));
            known.collect()
        };
        Known {
            as_of_ms,
            arms: tested.map(|(name, arm)| (name.clone(), of_arm(arm))).collect(),
        }
    }
}

impl TestProgress {
    /// Creates the state for sums from this time on, Unix ms.
    pub fn since(since_ms: i64) -> TestProgress {
        TestProgress {
            since_ms: Some(since_ms),
            marks: Vec::new(),
        }
    }

    /// Adds a look.
    pub(super) fn take(&mut self, now: Known) -> InformationGrowth {
        let since_ms = *self.since_ms.get_or_insert(now.as_of_ms);
        let past_ms = |known: &Known| known.as_of_ms - since_ms;
        let days = past_ms(&now) / DAY_MS;
        // A day has several looks, and only its first one is marked.
        let is_marked = self
            .marks
            .last()
            .is_some_and(|last| past_ms(last) / DAY_MS >= days);
        if days > 0 && days.cast_unsigned().is_power_of_two() && !is_marked {
            self.marks.push(now.clone());
        }
        // The latest mark in the first half of the days is the earlier look. Marks before it are not needed any more.
        let is_early = |mark: &Known| 2 * past_ms(mark) <= past_ms(&now);
        if let Some(earlier) = self.marks.iter().rposition(is_early) {
            self.marks.drain(..earlier);
        }
        InformationGrowth {
            since_ms,
            earlier: self.marks.first().filter(|mark| is_early(mark)).cloned(),
            now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_keeps_one_earlier_look_from_the_middle_of_the_span() {
        let mut progress = TestProgress::since(known(0).as_of_ms);
        // Six looks a day. x is the number of the look.
        for look in 0..6 * 70_i64 {
            let grown = progress.take(known(look));
            let days = look / 6;
            assert_eq!(grown.since_ms, known(0).as_of_ms);
            assert_eq!(grown.now, known(look));
            let earlier = grown.earlier.map(|earlier| (earlier.as_of_ms, earlier.arms));
            let expected = (days >= 2).then(|| known(6 * (1 << days.ilog2()) / 2));
            assert_eq!(
                earlier,
                expected.map(|known| (known.as_of_ms, known.arms)),
                "{look}"
            );
            assert!(progress.marks.len() <= 2);
        }
    }

    fn known(look: i64) -> Known {
        Known {
            as_of_ms: 1_763_596_800_000 + look * DAY_MS / 6,
            arms: [("b".to_owned(), [("ctr".to_owned(), look as f64)].into())].into(),
        }
    }
}
