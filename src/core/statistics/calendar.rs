//! Calendar of decision looks: whole weeks from the start, so that every weekday counts alike, and the planned end.
//!
//! The number of a decision look follows from the calendar alone, so it is the same after a restart.

use super::settings::{Settings, Validity};
use super::spending::DecisionLook;
use crate::nouns::number_of;

/// Time span of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookSpan {
    /// Start of the totals, Unix ms.
    pub start_ms: i64,
    /// End of the totals, Unix ms.
    pub as_of_ms: i64,
}

const DAY_MS: f64 = 86_400_000.0;
const WEEK_MS: i64 = 7 * 86_400_000;

/// Position of a look between decision looks, given the time of the look before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Calendar {
    min_ms: i64,
    planned_ms: Option<i64>,
    is_one_look: bool,
    is_strict: bool,
    /// Time of the look before, since the start.
    previous_ms: i64,
    /// Time of this look, since the start.
    now_ms: i64,
    start_ms: i64,
}

impl Calendar {
    pub fn new(settings: &Settings, time: LookSpan, previous_ms: Option<i64>) -> Calendar {
        let since_start = |ms: i64| ms.saturating_sub(time.start_ms).max(0);
        Calendar {
            min_ms: days(settings.min_days),
            planned_ms: settings.planned_days.map(days),
            is_one_look: settings.validity == Validity::OneLook,
            is_strict: settings.validity == Validity::Strict,
            previous_ms: previous_ms.map_or(0, since_start),
            now_ms: since_start(time.as_of_ms),
            start_ms: time.start_ms,
        }
    }

    /// Returns the decision look that this look is, if it decides something.
    pub fn decision(&self) -> Option<DecisionLook> {
        if self.is_one_look {
            return Some(DecisionLook::ONLY);
        }
        // The planned look comes first, because it replaces a weekly look at the same time.
        if self.planned_ms.is_some_and(|planned| self.reaches(planned)) {
            return Some(DecisionLook::PLANNED);
        }
        if self.every_look_decides() {
            return (self.now_ms >= self.min_ms).then(|| DecisionLook::any(self.planned_ms.is_some()));
        }
        let week = self.now_ms / WEEK_MS;
        let is_due = week >= self.first_week() && self.reaches(week * WEEK_MS);
        is_due.then(|| self.weekly(week))
    }

    /// Returns this look if it decides, else the next one that does.
    pub fn decision_or_next(&self) -> DecisionLook {
        self.decision().unwrap_or_else(|| match self.next() {
            Some(next) if self.planned_ms == Some(next) => DecisionLook::PLANNED,
            Some(next) if !self.every_look_decides() => self.weekly(next / WEEK_MS),
            _ => DecisionLook::any(self.planned_ms.is_some()),
        })
    }

    /// Returns the time of this look, Unix ms.
    pub fn as_of_ms(&self) -> i64 {
        self.start_ms.saturating_add(self.now_ms)
    }

    /// Returns the whole days since the start.
    pub fn day(&self) -> u32 {
        self.day_of(self.as_of_ms())
    }

    /// Returns the whole days from the start to this time, Unix ms.
    pub fn day_of(&self, ms: i64) -> u32 {
        let since_start = ms.saturating_sub(self.start_ms).max(0);
        u32::try_from(since_start / DAY_MS as i64).unwrap_or(u32::MAX)
    }

    /// Returns the days since the start, with fractions.
    pub fn days(&self) -> f64 {
        self.now_ms as f64 / DAY_MS
    }

    fn every_look_decides(&self) -> bool {
        self.min_ms < WEEK_MS
    }

    /// Returns the first whole week with a decision look, in weeks.
    fn first_week(&self) -> i64 {
        whole_weeks_from(self.min_ms) / WEEK_MS
    }

    /// Returns the decision look at this whole week. A planned look on a whole week does not count toward k.
    fn weekly(&self, week: i64) -> DecisionLook {
        let planned_week = self
            .planned_ms
            .filter(|planned| planned % WEEK_MS == 0)
            .map(|planned| planned / WEEK_MS);
        let is_past = |planned: &i64| (self.first_week()..week).contains(planned);
        let k = week - self.first_week() + 1 - i64::from(planned_week.as_ref().is_some_and(is_past));
        let k = u32::try_from(k).unwrap_or(u32::MAX);
        if self.is_strict {
            DecisionLook::strict(k)
        } else {
            DecisionLook::weekly(k, self.planned_ms.is_some())
        }
    }

    /// Returns the time of the next decision look, Unix ms. None if every look decides.
    pub fn next_decision_ms(&self) -> Option<i64> {
        self.next().map(|next| self.start_ms.saturating_add(next))
    }

    /// Returns the time of the planned look, Unix ms. None if no look is planned.
    pub fn planned_end_ms(&self) -> Option<i64> {
        let planned = self.planned_ms.filter(|_| !self.is_one_look)?;
        Some(self.start_ms.saturating_add(planned))
    }

    /// Writes the progress to the next decision look: "3.2 of 7 days", or in hours if it is less than a day after the start.
    pub fn wait(&self) -> Option<String> {
        let next_ms = self.next()?;
        let (unit_ms, unit) = match next_ms as f64 >= DAY_MS {
            true => (DAY_MS, "day"),
            false => (DAY_MS / 24.0, "hour"),
        };
        // Round down, so that it never shows time that has not passed.
        let units = |ms: i64| (ms as f64 / unit_ms * 10.0).floor() / 10.0;
        Some(format!(
            "{} of {}",
            units(self.now_ms),
            number_of(units(next_ms), unit)
        ))
    }

    /// Returns the time of the next decision look since the start.
    fn next(&self) -> Option<i64> {
        let weekly = if self.every_look_decides() {
            (self.now_ms < self.min_ms).then_some(self.min_ms)
        } else {
            Some(((self.now_ms / WEEK_MS + 1) * WEEK_MS).max(whole_weeks_from(self.min_ms)))
        };
        // If every look already decides, there is no look to wait for, not even the planned one.
        let planned = self
            .planned_ms
            .filter(|planned| *planned > self.now_ms && weekly.is_some());
        weekly
            .into_iter()
            .chain(planned)
            .min()
            .filter(|_| !self.is_one_look)
    }

    fn reaches(&self, since_start_ms: i64) -> bool {
        // Looks need not fall on the exact time, so the first one at or after it counts.
        self.previous_ms < since_start_ms && since_start_ms <= self.now_ms
    }
}

/// Returns the time that is this many days after a start, Unix ms.
pub fn after_days(start_ms: i64, n_days: f64) -> i64 {
    start_ms.saturating_add(days(n_days))
}

fn whole_weeks_from(ms: i64) -> i64 {
    (ms + WEEK_MS - 1) / WEEK_MS * WEEK_MS
}

fn days(days: f64) -> i64 {
    (days * DAY_MS).round() as i64
}

#[cfg(test)]
mod tests {
    use super::super::spending::weight;
    use super::*;

    #[test]
    fn each_whole_week_decides_once() {
        let settings = Settings::new("base");
        check(&settings, 0.0, 6.9, [false, false]);
        check(&settings, 6.9, 7.1, [true, false]);
        check(&settings, 7.1, 7.2, [false, false]);
        check(&settings, 13.9, 14.0, [true, false]);
        check(&settings, 14.0, 14.1, [false, false]);
    }

    #[test]
    fn the_first_decision_is_the_first_whole_week_from_min_days_on() {
        let settings = Settings {
            min_days: 8.0,
            ..Settings::new("base")
        };
        check(&settings, 6.9, 8.1, [false, false]);
        check(&settings, 13.9, 14.1, [true, false]);
        assert_eq!(
            calendar(&settings, 3.0, 3.29).wait().as_deref(),
            Some("3.2 of 14 days")
        );
        assert_eq!(
            calendar(&settings, 3.0, 3.29).next_decision_ms(),
            Some(START_MS + days(14.0))
        );
    }

    #[test]
    fn under_a_week_every_look_from_min_days_on_decides() {
        let settings = Settings {
            min_days: 0.5,
            ..Settings::new("base")
        };
        check(&settings, 0.0, 0.4, [false, false]);
        check(&settings, 0.9, 1.0, [true, false]);
        assert_eq!(calendar(&settings, 0.9, 1.0).next_decision_ms(), None);
        let a_day = Settings {
            min_days: 1.0,
            ..settings.clone()
        };
        let wait = calendar(&a_day, 0.0, 0.5).wait();
        assert_eq!(wait.as_deref(), Some("0.5 of 1 day"));
        assert_eq!(
            calendar(&settings, 0.0, 0.101).wait().as_deref(),
            Some("2.4 of 12 hours")
        );
    }

    #[test]
    fn the_planned_end_also_decides_once() {
        let settings = Settings {
            planned_days: Some(10.0),
            ..Settings::new("base")
        };
        check(&settings, 9.9, 10.1, [true, true]);
        check(&settings, 10.1, 10.2, [false, false]);
        assert_eq!(
            calendar(&settings, 8.0, 9.0).next_decision_ms(),
            Some(START_MS + days(10.0))
        );
        assert_eq!(
            calendar(&settings, 10.0, 11.0).wait().as_deref(),
            Some("11 of 14 days")
        );
        // The time stays known once it has passed.
        for now in [0.5, 11.0] {
            let end = calendar(&settings, 0.0, now).planned_end_ms();
            assert_eq!(end, Some(START_MS + days(10.0)));
        }
        let unplanned = Settings::new("base");
        assert_eq!(calendar(&unplanned, 0.0, 1.0).planned_end_ms(), None);
    }

    #[test]
    fn decision_looks_are_numbered_by_the_calendar() {
        let k = |settings: &Settings, day: f64| {
            let look = calendar(settings, day - 0.01, day).decision();
            look.map(|look| (look.k, look.weight))
        };
        let weekly = Settings::new("base");
        assert_eq!(k(&weekly, 7.0), Some((Some(1), weight(1))));
        assert_eq!(k(&weekly, 21.0), Some((Some(3), weight(3))));
        assert_eq!(k(&weekly, 20.0), None);
        let late = Settings {
            min_days: 8.0,
            ..weekly.clone()
        };
        assert_eq!(k(&late, 14.0), Some((Some(1), weight(1))));
        let planned = |days| Settings {
            planned_days: Some(days),
            ..weekly.clone()
        };
        // On a whole week it replaces the weekly look.
        assert_eq!(k(&planned(14.0), 7.0), Some((Some(1), 0.2 * weight(1))));
        assert_eq!(k(&planned(14.0), 14.0), Some((None, 0.8)));
        assert_eq!(k(&planned(14.0), 21.0), Some((Some(2), 0.2 * weight(2))));
        assert_eq!(k(&planned(10.0), 10.0), Some((None, 0.8)));
        assert_eq!(k(&planned(10.0), 14.0), Some((Some(2), 0.2 * weight(2))));
        assert_eq!(
            calendar(&planned(10.0), 8.0, 9.0).decision_or_next(),
            DecisionLook::PLANNED
        );
        assert_eq!(calendar(&weekly, 8.0, 9.0).decision_or_next().k, Some(2));
    }

    #[test]
    fn a_single_look_decides_at_any_time() {
        let settings = Settings {
            validity: Validity::OneLook,
            planned_days: Some(10.0),
            ..Settings::new("base")
        };
        check(&settings, 0.0, 0.01, [true, false]);
        check(&settings, 9.0, 11.0, [true, false]);
        assert_eq!(calendar(&settings, 0.0, 0.01).wait(), None);
        assert_eq!(calendar(&settings, 0.0, 0.01).planned_end_ms(), None);
    }

    const START_MS: i64 = 1_763_596_800_000;

    fn calendar(settings: &Settings, previous: f64, now: f64) -> Calendar {
        let [previous_ms, as_of_ms] = [previous, now].map(|at| START_MS + days(at));
        Calendar::new(
            settings,
            LookSpan {
                start_ms: START_MS,
                as_of_ms,
            },
            Some(previous_ms),
        )
    }

    #[track_caller]
    fn check(settings: &Settings, previous: f64, now: f64, [decides, is_end]: [bool; 2]) {
        let calendar = calendar(settings, previous, now);
        assert_eq!(
            calendar.decision().map(|look| look == DecisionLook::PLANNED),
            decides.then_some(is_end)
        );
    }
}
