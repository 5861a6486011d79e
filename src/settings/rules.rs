//! Words, ranges and patterns that rows of settings share with their validation.

use std::ops::Bound::{Excluded, Included};

use abgauge_core::engine::event::Kind;
use abgauge_core::metrics::METRICS;
use abgauge_core::metrics::Profile;
use abgauge_core::statistics::{EpochWeights, Goal, Unit, Validity};

use super::row::Bounds;
use super::{LogFormat, Start, TopicKey};

impl TopicKey {
    pub(crate) const ALL: [(&str, TopicKey); 2] = [("request", TopicKey::Request), ("user", TopicKey::User)];
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
pub(super) const SHARE: Bounds = (Included(0.0), Included(1.0));

/// Range of a share that is neither 0 nor 1.
pub(super) const PART: Bounds = (Excluded(0.0), Excluded(1.0));

/// Range of days: at most ten years, as for time spans.
pub(super) const DAYS: Bounds = (Excluded(0.0), Included(3_653.0));

/// Settings of an experiment that need no control.
pub(super) const WITHOUT_CONTROL: [&str; 4] = ["description", "owner", "planned_users", "start"];

/// Regular expression of a text that is not blank.
pub(super) const NOT_BLANK: &str = "\\S";

/// Regular expression of the full name of a Protobuf message.
pub(super) const MESSAGE: &str = "^[a-zA-Z_][a-zA-Z0-9_]*([.][a-zA-Z_][a-zA-Z0-9_]*)*$";

/// Regular expression of a topic. A schema cannot exclude `.` and `..`.
pub(super) const TOPIC: &str = "^[a-zA-Z0-9._-]+$";

/// Returns the names of the built-in profiles, with their old names last.
pub(super) fn profiles() -> Vec<String> {
    let all = Profile::all().into_iter().chain(Profile::all_by_old_names());
    all.map(|profile| profile.name).collect()
}

/// Names under which a metric may be written, each with its id.
pub(super) fn metric_names() -> Vec<(&'static str, &'static str)> {
    let gauges = METRICS.iter().filter(|metric| metric.gauge != metric.id);
    let ids = METRICS.iter().map(|metric| (metric.id, metric.id));
    ids.chain(gauges.map(|metric| (metric.gauge, metric.id)))
        .collect()
}
