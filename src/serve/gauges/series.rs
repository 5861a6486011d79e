//! Table of the ranking gauges: name, labels, help. Rows of looks are in `looks.rs`, next to the functions that read their
//! numbers.

use std::borrow::Cow;

use abgauge_core::metrics::{METRICS, Metric};

use crate::telemetry::Series;

pub const LISTS: Series = Series::gauge("abgauge_lists", IN_WINDOW, "Served lists.");
pub const ITEMS_SHOWN: Series = Series::gauge(
    "abgauge_items_shown",
    IN_WINDOW,
    "Items shown, including copies within a list.",
);
pub const CLICKS: Series = Series::gauge(
    "abgauge_clicks",
    IN_WINDOW,
    "Distinct clicked items, counted once for each served list.",
);
pub const NUMERATOR: Series = Series::gauge(
    "abgauge_metric_numerator",
    OF_PART,
    "Numerator of the metric: sum over instances, then divide.",
);
pub const DENOMINATOR: Series = Series::gauge(
    "abgauge_metric_denominator",
    OF_PART,
    "Denominator of the metric: sum over instances, then divide.",
);
pub const LAST_LIST: Series = Series::gauge(
    "abgauge_arm_last_list_timestamp_seconds",
    OF_ARM,
    "Event time of the newest accepted list of an arm, at most the clock + max_future.",
);
pub const CONTROL: Series = Series::gauge(
    "abgauge_control_arm",
    OF_ARM,
    "1 for the arm that the others of its experiment are compared with.",
);
pub const ARMS_FOLDED: Series = Series::gauge(
    "abgauge_arms_folded",
    &[],
    "Arms beyond max_arms, counted as __other__.",
);
pub const WITHOUT_COVERAGE: Series = Series::gauge(
    "abgauge_coverage_arms_left_out",
    &[],
    "Arms without coverage because limits.max_coverage was reached.",
);
pub const DROPPED: Series = Series::gauge(
    "abgauge_series_dropped",
    &[],
    "Ranking series left out because max_series was reached.",
);

pub(super) const OF_ARM: &[&str] = &["experiment", "arm"];
pub(super) const IN_WINDOW: &[&str] = &["experiment", "arm", "window", "view", "scope"];
const OF_METRIC: &[&str] = &["experiment", "arm", "window", "view", "scope", "k", "profile"];
const OF_PART: &[&str] = &[
    "experiment",
    "arm",
    "window",
    "view",
    "scope",
    "metric",
    "k",
    "profile",
];

/// Returns the row of a metric's gauge.
pub fn of_metric(metric: &Metric) -> Series {
    Series {
        name: Cow::Owned(format!("abgauge_{}", metric.gauge)),
        ..Series::gauge("", OF_METRIC, metric.help)
    }
}

/// Returns the rows of the gauges of this file.
pub fn rows() -> impl Iterator<Item = Series> {
    let of_metrics = METRICS.iter().map(of_metric);
    let others = [
        NUMERATOR,
        DENOMINATOR,
        LISTS,
        ITEMS_SHOWN,
        CLICKS,
        LAST_LIST,
        CONTROL,
        ARMS_FOLDED,
        WITHOUT_COVERAGE,
        DROPPED,
    ];
    of_metrics.chain(others)
}
