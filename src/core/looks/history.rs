//! History of the looks at an experiment, thinned: the primary metrics of its arms over time, their lifts in the window alone, and
//! their users.
//!
//! ```text
//! looks   │ │ │ │ │ │ │ │ │ │ │      a point at every nth look, n a power of two, and one at the last look
//! points  ●   ●   ●   ●   ●   ●      if there are too many, n doubles and every other point is dropped
//! ```
//! It depends only on the looks, not on when it is read or which instance takes them. So all instances have the same history.

use std::collections::BTreeMap;

use super::ExperimentLook;
use crate::statistics::{Interval, SpanLift};

/// Most points of an arm and metric.
const MAX_POINTS: usize = 256;
/// Points that each arm and metric may always have, however many there are: enough to see an interval narrow.
const MIN_POINTS: usize = 16;
/// Most points of all arms and metrics together, as long as each has more than [`MIN_POINTS`].
const MAX_ALL: usize = 64 * MAX_POINTS;
/// Most changes of the settings that are kept.
const MAX_CHANGES: usize = 16;

/// Id of the series of an arm's users. No metric has this id.
const USERS: &str = "users";
/// Text between the metric and the window in the [id](window_id) of a series. No id of a metric contains a space.
const IN: &str = " in ";

/// Primary metrics and users of an experiment's arms, look by look. Empty without a control, because then no metric is primary.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// Event time between two points, ms: the time between looks times a power of two. The last point may come sooner.
    pub(super) every_ms: i64,
    /// Times of the looks, Unix ms, ascending.
    pub(super) times_ms: Vec<i64>,
    /// Points by arm and metric, [`window_id`] or [`USERS`], one for each time.
    pub(super) arms: BTreeMap<String, BTreeMap<String, Vec<Point>>>,
    /// First looks with changed settings, Unix ms, ascending. Only the latest are kept.
    pub(super) changes_ms: Vec<i64>,
}

/// Results of a look for one metric of an arm, as far as they are defined.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Point {
    /// Value since the start, with its pointwise interval.
    pub value: Option<Estimate>,
    /// Lift against the control, with an interval that holds at every look.
    pub lift: Option<Estimate>,
}

/// A number and its bounds, precise enough to draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub middle: f32,
    pub bounds: Option<[f32; 2]>,
}

impl Estimate {
    /// Converts a number. None if it is too large for an `f32`.
    fn of(middle: f64, interval: Option<Interval>) -> Option<Estimate> {
        let bounds = interval.map(|interval| [interval.lower as f32, interval.upper as f32]);
        let estimate = Estimate {
            middle: middle as f32,
            bounds: bounds.filter(|bounds| bounds.iter().all(|bound| bound.is_finite())),
        };
        estimate.middle.is_finite().then_some(estimate)
    }
}

impl History {
    /// Times of the looks that have points, Unix ms, ascending.
    pub fn times_ms(&self) -> &[i64] {
        &self.times_ms
    }

    /// Event time between two points, ms. The last one may come sooner.
    pub fn every_ms(&self) -> i64 {
        self.every_ms
    }

    /// Reports whether the metric is a primary.
    pub fn has(&self, metric: &str) -> bool {
        self.arms.values().any(|metrics| metrics.contains_key(metric))
    }

    /// Returns a point for each time. None if the arm or metric is unknown.
    pub fn points(&self, arm: &str, metric: &str) -> Option<&[Point]> {
        Some(self.arms.get(arm)?.get(metric)?)
    }

    /// Returns the users of an arm since the start for each time, precise enough to draw. None if they have not been counted.
    pub fn users(&self, arm: &str) -> Option<Vec<Option<f32>>> {
        let points = self.points(arm, USERS)?.iter();
        Some(points.map(|point| Some(point.value?.middle)).collect())
    }

    /// Returns the lifts of a metric in this window alone, a point for each time. None if there are none.
    pub fn in_window(&self, arm: &str, metric: &str, window: &str) -> Option<&[Point]> {
        self.points(arm, &window_id(metric, window))
    }

    /// First looks with changed settings, Unix ms.
    pub fn changes_ms(&self) -> &[i64] {
        &self.changes_ms
    }

    /// Adds a look, with `every_ms` between two looks.
    pub fn add(&mut self, look: &ExperimentLook, every_ms: i64) {
        let Some((settings, _)) = &look.comparison else {
            return;
        };
        self.every_ms = self.every_ms.max(every_ms);
        // The last point is provisional unless it lies on the grid. Now that a later look is here, it goes.
        if self.times_ms.last().is_some_and(|last| last % self.every_ms != 0) {
            self.keep(|_, is_last| !is_last);
        }
        self.times_ms.push(look.as_of_ms);
        let n = self.times_ms.len();
        for (arm, own) in &look.arms {
            let series = self.arms.entry(arm.clone()).or_default();
            for (window, alone) in &own.windows {
                // Earlier lifts are of another window if the configured windows have changed.
                series.retain(|id, _| id.split_once(IN).is_none_or(|(_, of)| of == window));
                for metric in &settings.primary {
                    if let Some(lift) = alone.lifts.get(metric) {
                        add_point(series, window_id(metric, window), n, window_point(lift));
                    }
                }
            }
            for metric in &settings.primary {
                add_point(series, metric.clone(), n, point(look, arm, metric));
            }
            if let Some(users) = own.size.users {
                add_point(series, USERS.to_owned(), n, users_point(users));
            }
        }
        // A series without a point in this look still needs one for each time.
        self.series()
            .for_each(|points| points.resize(n, Point::default()));
        self.thin();
    }

    /// Returns an empty history that records a change of settings at a look at this time (Unix ms).
    pub(super) fn with_new_settings(&self, as_of_ms: i64) -> History {
        let changes = self.changes_ms.iter().copied().chain([as_of_ms]);
        let n_over = (self.changes_ms.len() + 1).saturating_sub(MAX_CHANGES);
        History {
            changes_ms: changes.skip(n_over).collect(),
            ..History::default()
        }
    }

    /// Returns its memory in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let n_series: usize = self.arms.values().map(BTreeMap::len).sum();
        let n_points = n_series * self.times_ms.len();
        (n_points * size_of::<Point>()) as u64
    }

    /// Returns the number of series of metrics.
    fn n_of_metrics(&self) -> usize {
        let series = self.arms.values().flat_map(BTreeMap::keys);
        series.filter(|id| *id != USERS && !id.contains(IN)).count()
    }

    fn series(&mut self) -> impl Iterator<Item = &mut Vec<Point>> {
        self.arms.values_mut().flat_map(BTreeMap::values_mut)
    }

    /// Doubles the time between points until there are few enough.
    fn thin(&mut self) {
        let max = (MAX_ALL / self.n_of_metrics().max(1)).clamp(MIN_POINTS, MAX_POINTS);
        while self.times_ms.len() > max {
            // Times on the coarser grid are also on the finer one, so no point has to move.
            self.every_ms *= 2;
            let every_ms = self.every_ms;
            self.keep(|time_ms, is_last| is_last || time_ms % every_ms == 0);
        }
    }

    /// Keeps the points for which `is_kept` returns true. It gets their time and whether they are the last.
    fn keep(&mut self, is_kept: impl Fn(i64, bool) -> bool) {
        let n = self.times_ms.len();
        let times_ms = self.times_ms.iter().enumerate();
        let kept: Vec<bool> = times_ms.map(|(i, ms)| is_kept(*ms, i + 1 == n)).collect();
        let mut of_times = kept.iter();
        self.times_ms.retain(|_| of_times.next() == Some(&true));
        self.series().for_each(|points| {
            let mut of_points = kept.iter();
            points.retain(|_| of_points.next() == Some(&true));
        });
    }
}

/// Returns the id of the series with the lifts of a metric in a window alone.
fn window_id(metric: &str, window: &str) -> String {
    [metric, IN, window].concat()
}

/// Adds the `n`th point of a series. A new series has no earlier points.
fn add_point(series: &mut BTreeMap<String, Vec<Point>>, id: String, n: usize, point: Point) {
    let points = series.entry(id).or_default();
    points.resize(n - 1, Point::default());
    points.push(point);
}

fn window_point(lift: &SpanLift) -> Point {
    Point {
        value: None,
        lift: Estimate::of(lift.lift, lift.interval),
    }
}

fn users_point(users: f64) -> Point {
    Point {
        value: Estimate::of(users, None),
        lift: None,
    }
}

fn point(look: &ExperimentLook, arm: &str, metric: &str) -> Point {
    let own = look.arms.get(arm).and_then(|arm| arm.metrics.get(metric));
    let report = look.comparison.as_ref().map(|(_, report)| report);
    let compared = report.and_then(|report| report.arms.get(arm)?.metrics.get(metric));
    Point {
        value: own.and_then(|own| Estimate::of(own.value, own.interval)),
        lift: compared.and_then(|it| Estimate::of(it.lift?, it.interval)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looks::WindowLook;
    use crate::looks::{ArmLook, MetricLook};
    use crate::metrics::Parts;
    use crate::statistics::{ComparisonReport, InformationGrowth, Settings, Size};

    const EVERY_MS: i64 = 600_000;

    /// Look at these arms with the number of the look as each one's value.
    fn look(number: i64, arms: &[&str]) -> ExperimentLook {
        let metric = MetricLook {
            value: number as f64,
            parts: Parts {
                numerator: number as f64,
                denominator: 1.0,
            },
            interval: Some(Interval {
                lower: -1.0,
                upper: 1e300,
            }),
        };
        let arm = |name: &&str| {
            let arm = ArmLook {
                size: Size {
                    lists: 1.0,
                    users: None,
                },
                lists_without_user: 0.0,
                top_user_lists: None,
                metrics: [("ctr".to_owned(), metric)].into(),
                windows: BTreeMap::new(),
            };
            ((*name).to_owned(), arm)
        };
        let settings = Settings {
            primary: vec!["ctr".to_owned()],
            ..Settings::new("a")
        };
        let report = ComparisonReport {
            as_of_ms: number * EVERY_MS,
            look: 1,
            next_decision_ms: None,
            planned_end_ms: None,
            srm_p: None,
            multi_arm: None,
            grown: InformationGrowth::default(),
            arms: BTreeMap::new(),
            notes: Vec::new(),
        };
        ExperimentLook {
            start_ms: 0,
            shares_since_ms: 0,
            as_of_ms: number * EVERY_MS,
            arms: arms.iter().map(arm).collect(),
            comparison: Some((settings, report)),
            no_users: None,
            history: Default::default(),
        }
    }

    fn after(numbers: impl Iterator<Item = i64>, arms: &[&str]) -> History {
        let mut history = History::default();
        numbers.for_each(|number| history.add(&look(number, arms), EVERY_MS));
        history
    }

    fn numbers(history: &History) -> Vec<i64> {
        history.times_ms().iter().map(|ms| ms / EVERY_MS).collect()
    }

    fn values(history: &History, arm: &str) -> Vec<Option<f32>> {
        let points = history.points(arm, "ctr").expect("it is known");
        points
            .iter()
            .map(|point| point.value.map(|it| it.middle))
            .collect()
    }

    #[test]
    fn every_look_has_a_point_until_there_are_too_many() {
        let history = after(3..259, &["a", "b"]);
        assert_eq!(numbers(&history), (3..259).collect::<Vec<_>>());
        let history = after(3..260, &["a", "b"]);
        let even: Vec<i64> = (4..259).filter(|number| number % 2 == 0).chain([259]).collect();
        assert_eq!(numbers(&history), even, "the last one always");
        assert_eq!(values(&history, "b")[..2], [Some(4.0), Some(6.0)]);
        let history = after(3..261, &["a", "b"]);
        assert_eq!(
            numbers(&history).last_chunk(),
            Some(&[256, 258, 260]),
            "one in place of the one before"
        );
    }

    #[test]
    fn users_are_kept_for_each_look_that_counts_them() {
        let mut history = after(1..2, &["a"]);
        assert_eq!(history.users("a"), None);
        for (number, users) in [(2, Some(10.0)), (3, Some(30.0)), (4, None)] {
            let mut look = look(number, &["a"]);
            look.arms.get_mut("a").expect("it is there").size.users = users;
            history.add(&look, EVERY_MS);
        }
        assert_eq!(history.users("a"), Some(vec![None, Some(10.0), Some(30.0), None]));
        assert_eq!(values(&history, "a"), [1.0, 2.0, 3.0, 4.0].map(Some));
        assert_eq!(history.n_of_metrics(), 1, "users leave as many points as before");
    }

    /// The look of this number, with lifts of arm `b` in this window alone.
    fn look_in_window(number: i64, window: &str, lift: Option<f64>) -> ExperimentLook {
        let mut look = look(number, &["a", "b"]);
        let lift = lift.map(|lift| SpanLift { lift, interval: None });
        let alone = WindowLook {
            lists: 1.0,
            metrics: BTreeMap::new(),
            lifts: lift.into_iter().map(|lift| ("ctr".to_owned(), lift)).collect(),
        };
        let arm = look.arms.get_mut("b").expect("it is there");
        arm.windows = [(window.to_owned(), alone)].into();
        look
    }

    #[test]
    fn lifts_in_the_window_alone_are_kept_until_the_window_changes() {
        let lifts = |history: &History, window| {
            let points = history.in_window("b", "ctr", window)?.iter();
            Some(points.map(|point| Some(point.lift?.middle)).collect::<Vec<_>>())
        };
        let mut history = History::default();
        for (number, lift) in [(1, None), (2, Some(0.5)), (3, Some(0.25)), (4, None)] {
            history.add(&look_in_window(number, "24h", lift), EVERY_MS);
        }
        assert_eq!(
            lifts(&history, "24h"),
            Some(vec![None, Some(0.5), Some(0.25), None])
        );
        assert_eq!(history.in_window("a", "ctr", "24h"), None, "it is the control");
        assert_eq!(history.n_of_metrics(), 2, "they leave as many points as before");
        history.add(&look_in_window(5, "12h", Some(0.125)), EVERY_MS);
        assert_eq!(lifts(&history, "24h"), None);
        assert_eq!(
            lifts(&history, "12h"),
            Some(vec![None, None, None, None, Some(0.125)])
        );
        assert_eq!(values(&history, "b"), [1.0, 2.0, 3.0, 4.0, 5.0].map(Some));
    }

    #[test]
    fn the_history_stays_bounded_over_time() {
        let history = after(0..20_000, &["a", "b"]);
        let n = history.times_ms().len();
        assert!((MAX_POINTS / 2..=MAX_POINTS).contains(&n), "{n}");
        assert_eq!(history.every_ms(), 128 * EVERY_MS);
        assert_eq!(values(&history, "a").len(), n);
    }

    #[test]
    fn many_arms_have_fewer_points_each() {
        let names: Vec<String> = (0..512).map(|number| format!("arm {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let history = after(0..100, &names);
        assert!((16..=32).contains(&history.times_ms().len()));
        assert!(history.bytes() <= (MAX_ALL * size_of::<Point>()) as u64);
    }

    #[test]
    fn a_later_arm_has_no_earlier_points() {
        let mut history = after(1..3, &["a"]);
        history.add(&look(3, &["a", "b"]), EVERY_MS);
        history.add(&look(4, &["a"]), EVERY_MS);
        assert_eq!(values(&history, "b"), [None, None, Some(3.0), None]);
        assert_eq!(values(&history, "a"), [1.0, 2.0, 3.0, 4.0].map(Some));
    }

    #[test]
    fn a_bound_too_large_to_draw_is_left_out() {
        let history = after(1..2, &["a"]);
        let point = history.points("a", "ctr").expect("it is known")[0];
        assert_eq!(
            point.value,
            Some(Estimate {
                middle: 1.0,
                bounds: None
            })
        );
        assert_eq!(point.lift, None, "it is the control");
    }

    #[test]
    fn the_history_restarts_when_settings_change_and_records_the_times() {
        let mut history = after(1..9, &["a"]);
        for number in 9..29 {
            history = history.with_new_settings(number * EVERY_MS);
            history.add(&look(number, &["a"]), EVERY_MS);
        }
        assert_eq!(numbers(&history), [28]);
        let last: Vec<i64> = (13..29).map(|number| number * EVERY_MS).collect();
        assert_eq!(history.changes_ms(), last);
    }

    #[test]
    fn an_experiment_without_a_control_has_no_history() {
        let mut history = History::default();
        let alone = ExperimentLook {
            comparison: None,
            ..look(1, &["a"])
        };
        history.add(&alone, EVERY_MS);
        assert_eq!(history, History::default());
    }
}
