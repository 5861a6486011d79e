//! Allowed values of settings beyond their types, for both validation and the schema.

use std::ops::Bound::{self, Excluded, Included};
use std::ops::RangeInclusive;

use abgauge_core::decode::shape::{Shape, TsUnit};
use abgauge_core::engine::View;
use abgauge_core::engine::event::Kind;
use abgauge_core::metrics::METRICS;
use abgauge_core::metrics::Profile;
use abgauge_core::statistics::{EpochWeights, Goal, Unit, Validity};

use super::redact::HASH_SEED;
use super::{LONGEST_LIST, LogFormat, Start, TopicKey};

impl TopicKey {
    pub(super) const ALL: [(&str, TopicKey); 2] = [("request", TopicKey::Request), ("user", TopicKey::User)];
}

impl Start {
    pub(super) const ALL: [(&str, Start); 2] = [("rebuild", Start::Rebuild), ("earliest", Start::Earliest)];
}

impl LogFormat {
    pub(super) const ALL: [(&str, LogFormat); 3] = [
        ("auto", LogFormat::Auto),
        ("text", LogFormat::Text),
        ("json", LogFormat::Json),
    ];
}

/// Kinds of validity for a daemon, which looks repeatedly. A single look is for `evaluate` only.
pub(super) const VALIDITIES: [(&str, Validity); 2] =
    [("sequence", Validity::Sequence), ("strict", Validity::Strict)];

pub(super) const GOALS: [(&str, Goal); 2] =
    [("superior", Goal::Superior), ("non_inferior", Goal::NonInferior)];

/// Words for the assigned unit, in the configuration and on the command line.
pub(crate) const UNITS: [(&str, Unit); 2] = [("user", Unit::User), ("request", Unit::Request)];

pub(super) const EPOCH_WEIGHTS: [(&str, EpochWeights); 2] =
    [("overlap", EpochWeights::Overlap), ("lists", EpochWeights::Lists)];

/// Types of records that carry none.
pub(super) const KINDS: [(&str, Option<Kind>); 3] = [
    ("served", Some(Kind::Served)),
    ("click", Some(Kind::Click)),
    ("", None),
];

/// Treatments of a list without items, and whether it counts as an empty list.
pub(super) const NO_ITEMS: [(&str, bool); 2] = [("invalid", false), ("empty", true)];

/// Path that means the whole record.
pub(super) const WHOLE: &str = ".";

/// Minimum length of a secret in characters. Shorter ones can be guessed.
pub(super) const MIN_SECRET: usize = 16;

/// Range of a share.
pub(super) const SHARE: RangeInclusive<f64> = 0.0..=1.0;

/// Returns the range of a whole number, or of each entry in a list of them.
pub(super) fn range(key: &str) -> RangeInclusive<i64> {
    match key {
        "ingest.workers" => 1..=256,
        "join.max_items" | "metrics.k" | "export.k" => 1..=i64::from(LONGEST_LIST),
        "join.max_experiments" | "join.max_lists_per_click" => 1..=1_000,
        "join.max_off_list" => 0..=1_000,
        HASH_SEED => 0..=i64::MAX,
        "export.max_series" => 1..=100_000_000,
        "limits.max_arms" => 1..=10_000_000,
        "http.max_connections" => 1..=65_536,
        _ => i64::MIN..=i64::MAX,
    }
}

/// Range of the cap on counted lists per user.
pub(super) const MAX_LISTS_PER_USER: RangeInclusive<i64> = 1..=1_000_000;

/// Returns the bounds of an experiment's setting, or of each value in its table.
pub(super) fn between(setting: &str) -> (Bound<f64>, Bound<f64>) {
    /// Ten years, as for time spans.
    const MOST_DAYS: f64 = 3_653.0;
    match setting {
        "alpha" => (Excluded(0.0), Excluded(0.5)),
        "min_days" | "planned_days" => (Excluded(0.0), Included(MOST_DAYS)),
        _ => (Excluded(0.0), Excluded(1.0)),
    }
}

/// Returns the words allowed for a setting, or for each entry of its list, or `None` if any text is allowed.
pub(super) fn words(key: &str) -> Option<Vec<&'static str>> {
    fn names<T>(known: &[(&'static str, T)]) -> Vec<&'static str> {
        known.iter().map(|(name, _)| *name).collect()
    }
    Some(match key {
        "kafka.key" => names(&TopicKey::ALL),
        "kafka.start" => names(&Start::ALL),
        "log.format" => names(&LogFormat::ALL),
        "experiments.validity" => names(&VALIDITIES),
        "experiments.goal" => names(&GOALS),
        "experiments.unit" => names(&UNITS),
        "experiments.epoch_weights" => names(&EPOCH_WEIGHTS),
        "events.preset" => names(&Shape::PRESETS),
        "events.without_type" => names(&KINDS),
        "events.ts_unit" => names(&TsUnit::ALL),
        "events.served.no_items" => names(&NO_ITEMS),
        "export.views" => View::BOTH.iter().map(|view| view.name()).collect(),
        "metrics.metrics" | "export.metrics" | "export.numerators" => names(&metric_names()),
        _ => return None,
    })
}

/// Returns the names of the built-in profiles, with their old names last.
pub(super) fn profiles() -> Vec<String> {
    let all = Profile::all().into_iter().chain(Profile::all_by_old_names());
    all.map(|profile| profile.name).collect()
}

/// Returns whether a time span may be zero.
pub(super) fn may_be_nothing(key: &str) -> bool {
    ["join.click_skew", "join.same_list", "join.max_future"].contains(&key)
}

/// Returns whether a setting is the name of a file.
pub(super) fn is_path(key: &str) -> bool {
    ["metrics.catalog", "http.tls_certificate", "http.tls_key"].contains(&key) || key.ends_with("_file")
}

/// Returns whether a setting is a path into an event, or alternatives.
pub(super) fn is_path_in_event(key: &str) -> bool {
    let Some(setting) = key.strip_prefix("events.") else {
        return false;
    };
    let name = setting.rsplit('.').next().unwrap_or_default();
    let others = [
        "preset",
        "without_type",
        "nested",
        "records",
        "ts_unit",
        "ts_zone",
        "types",
        "actions",
        "skip_others",
        "rows",
        "no_items",
        "only",
        "not_in",
        "prefix",
        "arm_separator",
        "pair_separator",
        "experiment_name",
        "arm_name",
    ];
    !others.contains(&name)
}

/// Returns whether a list must not be empty.
pub(super) fn must_hold_something(key: &str) -> bool {
    ["metrics.windows", "metrics.metrics", "export.views"].contains(&key)
}

/// Names under which a metric may be written, each with its id.
pub(super) fn metric_names() -> Vec<(&'static str, &'static str)> {
    let gauges = METRICS.iter().filter(|metric| metric.gauge != metric.id);
    let ids = METRICS.iter().map(|metric| (metric.id, metric.id));
    ids.chain(gauges.map(|metric| (metric.gauge, metric.id)))
        .collect()
}
