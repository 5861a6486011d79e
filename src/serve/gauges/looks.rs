//! Gauges of the latest look at the experiments: intervals, comparisons with the control, checks and decisions.

use std::collections::BTreeMap;

use abgauge_core::looks::{self, ArmLook, PublishedLooks};
use abgauge_core::metrics::Ranking;
use abgauge_core::statistics::per_user;
use abgauge_core::statistics::{
    ArmReport, ArmState, ComparisonReport, Interval, MetricReport, MetricRole, Settings,
};

use super::series::{IN_WINDOW, OF_ARM};
use super::{ExpositionText, Number, Scope, TOTAL, escape, k_label, wanted_k};
use crate::board::snapshot::ArmSnapshot;
use crate::settings::{Experiment, Export};
use crate::telemetry::Series;

/// Latest look, and the labels of its metrics.
pub(super) struct LookGauges<'a> {
    shown: &'a PublishedLooks,
    scope: Scope,
    /// Label texts by key of the metric.
    metrics: BTreeMap<String, MetricEnds>,
    /// Metric exported for arms of an experiment without a control, unless `[export]` selects all.
    usual: Option<String>,
    /// Set if `[export]` selects the settled view of `total`.
    has_total: bool,
}

/// Label texts that follow an arm's labels in the series of a metric, including the closing brace and a space.
struct MetricEnds {
    /// Texts for values in a window, by window name, for the windows that `[export]` selects (possibly `total`).
    of_windows: BTreeMap<String, String>,
    /// Text for comparisons with the control.
    compared: String,
    /// Set if `[export]` selects the metric although it decides nothing.
    is_chosen: bool,
}

/// Exported part of an arm at the latest look.
pub(super) struct GaugedArm<'a> {
    users: Option<f64>,
    /// Share of lists without a user.
    without_user: Option<f64>,
    /// Share of lists of the user with the most.
    top_user: Option<f64>,
    /// Intervals, each with the text that follows the arm's labels.
    intervals: Vec<(&'a str, Interval)>,
    /// Absent for the control, and in an experiment without one.
    report: Option<&'a ArmReport>,
    metrics: Vec<(&'a MetricEnds, &'a MetricReport)>,
}

/// Results for an experiment as a whole.
pub(super) struct LookedExperiment<'a> {
    /// Text such as `{experiment="ranker"`.
    labels: String,
    report: &'a ComparisonReport,
    /// Start of the current allocation, Unix ms. Absent without shares.
    shares_since_ms: Option<i64>,
    /// Metrics for which less is better.
    lower_is_better: Vec<&'a MetricEnds>,
}

/// Row of a series, and the function that extracts its number.
struct LookFamily<T> {
    row: Series,
    number: fn(&T) -> Option<Number>,
}

const INTERVALS: &[LookFamily<Interval>] = &[
    LookFamily {
        row: Series::gauge(
            "abgauge_ci_lower",
            IN_WINDOW_BY_METRIC,
            "Lower end of the interval of an arm's metric, in the metric's unit, from user buckets. Valid for a single analysis, not for repeated ones.",
        ),
        number: |interval| Some(Number::Float(interval.lower)),
    },
    LookFamily {
        row: Series::gauge(
            "abgauge_ci_upper",
            IN_WINDOW_BY_METRIC,
            "Upper end of the interval of an arm's metric, in the metric's unit, from user buckets. Valid for a single analysis, not for repeated ones.",
        ),
        number: |interval| Some(Number::Float(interval.upper)),
    },
];

const OF_METRICS: &[LookFamily<MetricReport>] = &[
    LookFamily {
        row: Series::gauge(
            "abgauge_lift",
            OF_METRIC,
            "Difference of an arm's metric from the control's, divided by the control's: 0.05 is 5% more.",
        ),
        number: |metric| metric.lift.map(Number::Float),
    },
    LookFamily {
        row: Series::gauge(
            "abgauge_lift_lower",
            OF_METRIC,
            "Lower end of the interval of abgauge_lift. Valid under repeated analyses.",
        ),
        number: |metric| metric.interval.map(|interval| Number::Float(interval.lower)),
    },
    LookFamily {
        row: Series::gauge(
            "abgauge_lift_upper",
            OF_METRIC,
            "Upper end of the interval of abgauge_lift. Valid under repeated analyses.",
        ),
        number: |metric| metric.interval.map(|interval| Number::Float(interval.upper)),
    },
    LookFamily {
        row: Series::gauge(
            "abgauge_p_value",
            OF_METRIC,
            "p-value of no difference from the control, over all analyses so far, corrected for the number of metrics and arms. For metrics that do not decide, it comes from the latest analysis, and is valid only if you read it once.",
        ),
        number: |metric| metric.p_adjusted.map(Number::Float),
    },
    LookFamily {
        row: Series::gauge(
            "abgauge_harm_p_value",
            OF_METRIC,
            "p-value of being no worse than the control, corrected for repeated analyses but not for the number of metrics.",
        ),
        number: |metric| metric.p_harm.map(Number::Float),
    },
    LookFamily {
        row: Series::gauge(
            "abgauge_power_information",
            OF_METRIC,
            "Information so far, divided by the information needed to find the smallest effect that matters: 1 is enough.",
        ),
        number: |metric| metric.information.map(Number::Float),
    },
    LookFamily {
        row: Series::gauge(
            "abgauge_top_bucket_share",
            OF_METRIC,
            "Share of the largest of 256 user buckets in the variance of a difference. A single heavy user raises it.",
        ),
        number: |metric| metric.top_bucket_share.map(Number::Float),
    },
];

/// Families of primary and guardrail metrics only.
const OF_DECISIONS: &[LookFamily<MetricReport>] = &[
    LookFamily {
        row: Series::gauge(
            "abgauge_decision_lift",
            OF_METRIC,
            "abgauge_lift at the latest decision analysis, for metrics that decide. It stays until a later one decides. Absent while a check fails (invalid) or the state is harm.",
        ),
        number: |metric| Some(Number::Float(metric.decision?.metric.lift?)),
    },
    LookFamily {
        row: Series::gauge(
            "abgauge_decision_lift_lower",
            OF_METRIC,
            "Lower end of the decision interval of abgauge_decision_lift, at 1 - alpha times the share of its analysis, not corrected for metrics and arms.",
        ),
        number: |metric| Some(Number::Float(metric.decision?.metric.interval?.lower)),
    },
    LookFamily {
        row: Series::gauge(
            "abgauge_decision_lift_upper",
            OF_METRIC,
            "Upper end of the decision interval of abgauge_decision_lift, at 1 - alpha times the share of its analysis, not corrected for metrics and arms.",
        ),
        number: |metric| Some(Number::Float(metric.decision?.metric.interval?.upper)),
    },
    LookFamily {
        row: Series::gauge(
            "abgauge_decision_p_value",
            OF_METRIC,
            "p-value of no difference at the latest decision analysis, corrected for decision analyses, metrics and arms. Absent while a check fails (invalid) or the state is harm.",
        ),
        number: |metric| Some(Number::Float(metric.decision?.metric.p_adjusted)),
    },
];

const OF_ARMS: &[LookFamily<ArmReport>] = &[
    LookFamily {
        row: Series::gauge(
            "abgauge_list_ratio",
            OF_ARM,
            "Served lists per assigned user, divided by the control's: 1 if they are equal.",
        ),
        number: |arm| arm.list_ratio.map(|ratio| Number::Float(ratio.value)),
    },
    LookFamily {
        row: Series::gauge(
            "abgauge_list_ratio_p_value",
            OF_ARM,
            "p-value of an arm having as many lists per assigned user as the control, corrected for repeated analyses.",
        ),
        number: |arm| arm.list_ratio.map(|ratio| Number::Float(ratio.p)),
    },
    LookFamily {
        row: Series::gauge(
            "abgauge_verdict",
            OF_ARM,
            "Recommended action for a rollout of an arm: 1 pass, 0 hold, -1 roll back.",
        ),
        number: |arm| {
            let decision = arm.decision.as_ref()?;
            Some(Number::Integer(decision.state.verdict().value().into()))
        },
    },
];

const OF_EXPERIMENTS: &[LookFamily<ComparisonReport>] = &[
    LookFamily {
        row: Series::gauge(
            "abgauge_srm_p_value",
            OF_EXPERIMENT,
            "p-value of users being split as expected (sample ratio), corrected for repeated analyses.",
        ),
        number: |report| report.srm_p.map(Number::Float),
    },
    LookFamily {
        row: Series::gauge(
            "abgauge_multi_arm_users",
            OF_EXPERIMENT,
            "Users of an experiment who were seen in two of its arms.",
        ),
        number: |report| {
            report
                .multi_arm
                .map(|users| Number::Integer(users.in_two as i128))
        },
    },
];

const USERS: Series = Series::gauge(
    "abgauge_users",
    IN_WINDOW,
    "Users, each in the arm of their first list since the experiment's start.",
);
const WITHOUT_USER: Series = Series::gauge(
    "abgauge_lists_without_user_ratio",
    OF_ARM,
    "Share of an arm's final lists since the experiment's start that have no user, from 0 to 1. Above 0.2 comparisons are invalid.",
);
const TOP_USER: Series = Series::gauge(
    "abgauge_top_user_lists_ratio",
    OF_ARM,
    "Share of an arm's final lists since the experiment's start that come from the user with the most, estimated, from 0 to 1.",
);
const DECISION: Series = Series::gauge(
    "abgauge_decision",
    &["experiment", "arm", "state"],
    "1 for the state of an arm, compared with the control.",
);
const SHARES_SINCE: Series = Series::gauge(
    "abgauge_shares_since_timestamp_seconds",
    OF_EXPERIMENT,
    "Event time since which users have been split by the current shares.",
);
const LOWER_IS_BETTER: Series = Series::gauge(
    "abgauge_lower_is_better",
    &["experiment", "metric", "k"],
    "1 for a metric that is better lower in this experiment.",
);
const TIMESTAMP: Series = Series::gauge(
    "abgauge_look_timestamp_seconds",
    &[],
    "Event time of the latest analysis: intervals, comparisons and decisions date from it.",
);

const OF_EXPERIMENT: &[&str] = &["experiment"];
const OF_METRIC: &[&str] = &["experiment", "arm", "metric", "k"];
const IN_WINDOW_BY_METRIC: &[&str] = &["experiment", "arm", "window", "view", "scope", "metric", "k"];

/// Returns the rows of all series of looks.
pub(super) fn rows() -> impl Iterator<Item = Series> {
    fn of<T>(families: &'static [LookFamily<T>]) -> impl Iterator<Item = Series> {
        families.iter().map(|family| family.row.clone())
    }
    let of_metrics = of(INTERVALS).chain(of(OF_METRICS)).chain(of(OF_DECISIONS));
    let of_all = of_metrics.chain(of(OF_ARMS)).chain(of(OF_EXPERIMENTS));
    of_all.chain([
        USERS,
        WITHOUT_USER,
        TOP_USER,
        DECISION,
        SHARES_SINCE,
        LOWER_IS_BETTER,
        TIMESTAMP,
    ])
}

/// Returns the labels of numbers from the settled lists of a window.
fn window_labels(window: &str, scope: Scope) -> String {
    let mut labels = r#",window=""#.to_owned();
    escape(window, &mut labels);
    labels.push_str(r#"",view="settled",scope=""#);
    labels + scope.name() + "\""
}

impl<'a> LookGauges<'a> {
    /// Creates the gauges of looks at the partitions of this scope.
    pub fn new(
        shown: &'a PublishedLooks,
        scope: Scope,
        ranking: &Ranking,
        config: &Export,
    ) -> LookGauges<'a> {
        let windows = &config.settled[..];
        let columns = ranking.columns().iter().filter(|column| column.profile == 0);
        let of_lists = columns.map(|column| {
            let is_shown = config.metrics.iter().any(|id| id == column.metric.id) && wanted_k(config, column);
            let is_chosen = config.secondary && is_shown;
            let labels = k_label(column);
            let ends = MetricEnds::new(column.metric.id, &labels, (windows, scope), is_chosen);
            (column.key(), ends)
        });
        let per_user = per_user::ids().map(|id| {
            (
                id.to_owned(),
                MetricEnds::new(id, "", (&[], scope), config.secondary),
            )
        });
        LookGauges {
            shown,
            scope,
            metrics: of_lists.chain(per_user).collect(),
            usual: looks::default_primary(looks::compared(ranking)),
            has_total: windows.iter().any(|name| name == TOTAL),
        }
    }

    /// Returns the maximum number of series for an arm of this experiment, with intervals for `total` and this window.
    pub fn most_of_arm(&self, experiment: &Experiment, window: Option<&str>) -> usize {
        let settings = experiment.settings.as_ref();
        let shown = self
            .metrics
            .iter()
            .filter(|(key, ends)| ends.is_shown(self.role(settings, key)));
        let windows: Vec<&str> = [TOTAL].into_iter().chain(window).collect();
        let of_metric = |key: &str, ends: &MetricEnds| {
            let with_intervals = windows.iter().filter(|name| ends.of_window(name).is_some());
            let compared = settings.map_or(0, |settings| match settings.role(key) {
                MetricRole::Secondary => OF_METRICS.len(),
                MetricRole::Primary | MetricRole::Guardrail => OF_METRICS.len() + OF_DECISIONS.len(),
            });
            INTERVALS.len() * with_intervals.count() + compared
        };
        // One more series for the state of the decision.
        let of_arm = settings.map_or(0, |_| OF_ARMS.len() + 1);
        // Two more series, for the shares of lists without a user and of the most active user.
        2 + usize::from(self.has_total)
            + of_arm
            + shown.map(|(key, ends)| of_metric(key, ends)).sum::<usize>()
    }

    /// Returns the role of a metric in an experiment with these settings. Without settings nothing is decided, and a single
    /// metric is exported as if it were primary.
    fn role(&self, settings: Option<&Settings>, key: &str) -> MetricRole {
        match settings {
            Some(settings) => settings.role(key),
            None if self.usual.as_deref() == Some(key) => MetricRole::Primary,
            None => MetricRole::Secondary,
        }
    }

    /// Returns the results of an arm, or none if nothing is configured for its experiment or it had no list before the
    /// latest look.
    pub fn arm(&self, arm: &ArmSnapshot) -> Option<GaugedArm<'_>> {
        let look = self.shown.experiments.get(&*arm.experiment)?;
        let own: &ArmLook = look.arms.get(&*arm.arm)?;
        let comparison = look.comparison.as_ref();
        let report = comparison.and_then(|(_, report)| report.arms.get(&*arm.arm));
        let role = move |key: &str| self.role(comparison.map(|(settings, _)| settings), key);
        let windows = own.windows.iter();
        let windows = windows.map(|(name, window)| (name.as_str(), &window.metrics));
        let intervals =
            std::iter::once((TOTAL, &own.metrics))
                .chain(windows)
                .flat_map(|(window, metrics)| {
                    let metrics = self.with_ends(metrics, move |key, _| role(key));
                    metrics
                        .filter_map(move |(ends, metric)| Some((ends.of_window(window)?, metric.interval?)))
                });
        let metrics = report.map(|report| self.with_ends(&report.metrics, |_, metric| metric.role));
        Some(GaugedArm {
            users: own.size.users.filter(|_| self.has_total),
            without_user: (own.size.lists > 0.0).then(|| own.lists_without_user / own.size.lists),
            top_user: own
                .top_user_lists
                .filter(|_| own.size.lists > 0.0)
                .map(|of_user| of_user / own.size.lists),
            intervals: intervals.collect(),
            report,
            metrics: metrics.into_iter().flatten().collect(),
        })
    }

    /// Returns the exported metrics with their label texts. Both maps are sorted by key, so one pass over each is enough.
    fn with_ends<'b, T>(
        &'b self,
        metrics: &'b BTreeMap<String, T>,
        role: impl Fn(&str, &T) -> MetricRole + 'b,
    ) -> impl Iterator<Item = (&'b MetricEnds, &'b T)> {
        let mut ends = self.metrics.iter().peekable();
        metrics.iter().filter_map(move |(key, metric)| {
            // Label texts of metrics that this look does not report are skipped.
            while ends.next_if(|(other, _)| *other < key).is_some() {}
            let (_, ends) = ends.next_if(|(other, _)| *other == key)?;
            ends.is_shown(role(key, metric)).then_some((ends, metric))
        })
    }

    /// Returns the results of the experiments of these arms that have a control.
    pub fn experiments(&self, arms: &[&ArmSnapshot]) -> Vec<LookedExperiment<'_>> {
        // Arms are sorted by experiment, so each chunk is a whole experiment.
        let experiments = arms.chunk_by(|a, b| a.experiment == b.experiment);
        let compared = experiments.filter_map(|arms| {
            let name = &*arms[0].experiment;
            let look = self.shown.experiments.get(name)?;
            let (settings, report) = look.comparison.as_ref()?;
            let mut labels = r#"{experiment=""#.to_owned();
            escape(name, &mut labels);
            labels.push('"');
            let lower_is_better = settings.lower_is_better.iter();
            Some(LookedExperiment {
                labels,
                report,
                shares_since_ms: (!settings.shares.is_empty()).then_some(look.shares_since_ms),
                lower_is_better: lower_is_better.filter_map(|key| self.metrics.get(key)).collect(),
            })
        });
        compared.collect()
    }

    /// Appends all families. Each arm comes with the text between the braces of its labels.
    pub fn render(
        &self,
        arms: &[(&GaugedArm, &str)],
        experiments: &[LookedExperiment],
        text: &mut ExpositionText,
    ) {
        let ends = window_labels(TOTAL, self.scope) + "} ";
        of_arms(text, &USERS, arms, |text, begin, arm| {
            if let Some(users) = arm.users {
                text.sample([begin[0], begin[1], &ends], Number::Integer(users as i128));
            }
        });
        of_arms(text, &WITHOUT_USER, arms, |text, begin, arm| {
            text.known([begin[0], begin[1], "} "], arm.without_user.map(Number::Float));
        });
        of_arms(text, &TOP_USER, arms, |text, begin, arm| {
            text.known([begin[0], begin[1], "} "], arm.top_user.map(Number::Float));
        });
        for family in INTERVALS {
            of_arms(text, &family.row, arms, |text, begin, arm| {
                for (end, interval) in &arm.intervals {
                    text.known([begin[0], begin[1], end], (family.number)(interval));
                }
            });
        }
        for family in OF_METRICS.iter().chain(OF_DECISIONS) {
            of_arms(text, &family.row, arms, |text, begin, arm| {
                for (ends, metric) in &arm.metrics {
                    text.known([begin[0], begin[1], &ends.compared], (family.number)(metric));
                }
            });
        }
        for family in OF_ARMS {
            of_arms(text, &family.row, arms, |text, begin, arm| {
                let number = arm.report.and_then(family.number);
                text.known([begin[0], begin[1], "} "], number);
            });
        }
        of_arms(text, &DECISION, arms, |text, begin, arm| {
            if let Some(state) = arm.state() {
                let end = format!(r#",state="{state}"}} "#);
                text.sample([begin[0], begin[1], &end], Number::Integer(1));
            }
        });
        for family in OF_EXPERIMENTS {
            text.family(&family.row, |text| {
                for experiment in experiments {
                    let number = (family.number)(experiment.report);
                    text.known([&family.row.name, &experiment.labels, "} "], number);
                }
            });
        }
        text.family(&SHARES_SINCE, |text| {
            for experiment in experiments {
                let seconds = experiment
                    .shares_since_ms
                    .map(|ms| Number::Float(ms as f64 / 1000.0));
                text.known([&SHARES_SINCE.name, &experiment.labels, "} "], seconds);
            }
        });
        text.family(&LOWER_IS_BETTER, |text| {
            for experiment in experiments {
                for ends in &experiment.lower_is_better {
                    let series = [&*LOWER_IS_BETTER.name, &experiment.labels, &ends.compared];
                    text.sample(series, Number::Integer(1));
                }
            }
        });
        // Before the first look there is no time. A 0 would be read as 1970.
        if let Some(ms) = self.shown.as_of_ms {
            text.family(&TIMESTAMP, |text| {
                text.sample([&TIMESTAMP.name, " ", ""], Number::Float(ms as f64 / 1000.0));
            });
        }
    }
}

/// Writes a family with samples per arm. `each` writes the samples of one arm, which all start with these two parts.
fn of_arms(
    text: &mut ExpositionText,
    row: &Series,
    arms: &[(&GaugedArm, &str)],
    each: impl Fn(&mut ExpositionText, [&str; 2], &GaugedArm),
) {
    let begin = format!("{}{{", row.name);
    text.family(row, |text| {
        for (arm, block) in arms {
            each(text, [&begin, block], arm);
        }
    });
}

impl MetricEnds {
    /// Builds the label texts. `k` is the rendered label or empty.
    fn new(id: &str, k: &str, (windows, scope): (&[String], Scope), is_chosen: bool) -> MetricEnds {
        let own = format!(r#",metric="{id}"{k}}} "#);
        let windows = windows.iter();
        MetricEnds {
            of_windows: windows
                .map(|name| (name.clone(), window_labels(name, scope) + &own))
                .collect(),
            compared: own,
            is_chosen,
        }
    }

    fn is_shown(&self, role: MetricRole) -> bool {
        self.is_chosen || role != MetricRole::Secondary
    }

    /// Returns the text for a window, or none if the window is not selected.
    fn of_window(&self, name: &str) -> Option<&str> {
        self.of_windows.get(name).map(String::as_str)
    }
}

impl GaugedArm<'_> {
    pub fn n_series(&self) -> usize {
        let metrics = self
            .metrics
            .iter()
            .map(|(_, metric)| n_shown(OF_METRICS, *metric) + n_shown(OF_DECISIONS, *metric));
        let of_arm = self.report.map_or(0, |report| n_shown(OF_ARMS, report));
        usize::from(self.users.is_some())
            + usize::from(self.without_user.is_some())
            + usize::from(self.top_user.is_some())
            + INTERVALS.len() * self.intervals.len()
            + metrics.sum::<usize>()
            + of_arm
            + usize::from(self.state().is_some())
    }

    fn state(&self) -> Option<ArmState> {
        Some(self.report?.decision.as_ref()?.state)
    }
}

impl LookedExperiment<'_> {
    pub fn n_series(&self) -> usize {
        n_shown(OF_EXPERIMENTS, self.report)
            + usize::from(self.shares_since_ms.is_some())
            + self.lower_is_better.len()
    }
}

/// Returns how many of these families have a number for `of`.
fn n_shown<T>(families: &[LookFamily<T>], of: &T) -> usize {
    let numbers = families.iter().filter_map(|family| (family.number)(of));
    numbers.count()
}

#[cfg(test)]
mod tests;
