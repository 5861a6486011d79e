//! What the operator may write: every setting, with its default in the operator's own notation.
//!
//! `config/abgauge.toml` documents them; a test keeps the two alike. Nothing here has `Debug`: secrets pass through.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use toml::Spanned;

use super::access::Hashes;
use super::properties::PropertyValue;
use super::units::{ByteSize, TimeSpan};
use crate::engine::ranking::profile;

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Raw {
    pub kafka: RawKafka,
    pub ingest: RawIngest,
    pub events: RawEvents,
    pub join: RawJoin,
    pub metrics: RawMetrics,
    /// Custom profiles: choices by name.
    pub profile: BTreeMap<String, RawProfile>,
    pub export: RawExport,
    pub limits: RawLimits,
    pub http: RawHttp,
    pub log: RawLog,
    pub experiments: BTreeMap<String, RawExperiment>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawKafka {
    /// The one setting without a default.
    pub brokers: Option<Spanned<String>>,
    pub served_topic: Spanned<String>,
    pub clicks_topic: Spanned<String>,
    pub group_id: Spanned<String>,
    pub key: Spanned<String>,
    pub start: Spanned<String>,
    pub dead_letter_topic: Option<Spanned<String>>,
    pub dead_letter_payload: Spanned<bool>,
    pub properties: BTreeMap<String, Spanned<PropertyValue>>,
    pub property_files: BTreeMap<String, Spanned<String>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawIngest {
    /// `None`: one for each core.
    pub workers: Option<Spanned<i64>>,
    /// `None`: all records count.
    pub skip_records: Option<Spanned<Vec<Spanned<String>>>>,
}

/// `None` where the preset, or else our own shape of events, says it.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawEvents {
    pub preset: Option<Spanned<String>>,
    pub r#type: Option<Spanned<String>>,
    pub without_type: Option<Spanned<String>>,
    pub ts_unit: Option<Spanned<String>>,
    pub served: RawServed,
    pub click: RawClick,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawServed {
    pub types: Option<Spanned<Vec<Spanned<String>>>>,
    pub request_id: Option<Spanned<String>>,
    pub user_id: Option<Spanned<String>>,
    pub ts: Option<Spanned<String>>,
    pub items: Option<Spanned<String>>,
    pub item_id: Option<Spanned<String>>,
    pub experiments: Option<Spanned<String>>,
    pub experiment: Option<Spanned<String>>,
    pub arm: Option<Spanned<String>>,
    pub only: Option<Spanned<Vec<Spanned<String>>>>,
    pub experiment_name: Option<Spanned<String>>,
    pub arm_name: Option<Spanned<String>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawClick {
    pub types: Option<Spanned<Vec<Spanned<String>>>>,
    pub action: Option<Spanned<String>>,
    pub actions: Option<Spanned<Vec<Spanned<String>>>>,
    pub request_id: Option<Spanned<String>>,
    pub user_id: Option<Spanned<String>>,
    pub ts: Option<Spanned<String>>,
    pub item: Option<Spanned<String>>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawJoin {
    pub attribution: Spanned<TimeSpan>,
    pub click_skew: Spanned<TimeSpan>,
    pub lateness: Spanned<TimeSpan>,
    pub max_future: Spanned<TimeSpan>,
    pub idle_after: Spanned<TimeSpan>,
    pub slot: Spanned<TimeSpan>,
    pub max_items: Spanned<i64>,
    pub max_experiments: Spanned<i64>,
    pub max_lists_per_click: Spanned<i64>,
    pub max_off_list: Spanned<i64>,
    pub hash_seed: Spanned<i64>,
    /// `None`: the seed alone makes the key.
    pub user_key: Option<Spanned<String>>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawMetrics {
    pub k: Spanned<Vec<Spanned<i64>>>,
    pub windows: Spanned<Vec<Spanned<TimeSpan>>>,
    /// `None`: the usual ones, and those that `[export]` names.
    pub metrics: Option<Spanned<Vec<Spanned<String>>>>,
    /// A name or a list of names.
    pub profile: Spanned<toml::Value>,
    pub alpha: Spanned<f64>,
    pub catalog: Option<Spanned<String>>,
}

/// `base`, `metrics`, and a word for each choice that differs from the base.
pub(super) type RawProfile = BTreeMap<String, Spanned<toml::Value>>;

/// `None` where the default is everything that `[metrics]` configures.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawExport {
    pub metrics: Option<Spanned<Vec<Spanned<String>>>>,
    pub k: Option<Spanned<Vec<Spanned<i64>>>>,
    pub windows: Option<Spanned<Vec<Spanned<String>>>>,
    pub views: Spanned<Vec<Spanned<String>>>,
    pub numerators: Option<Spanned<Vec<Spanned<String>>>>,
    pub max_series: Spanned<i64>,
    pub forget_after: Spanned<TimeSpan>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawLimits {
    pub max_arms: Spanned<i64>,
    pub max_state: Spanned<ByteSize>,
    pub max_coverage: Spanned<ByteSize>,
    pub max_invalid_share: Spanned<f64>,
    pub max_late_share: Spanned<f64>,
    pub max_future_share: Spanned<f64>,
    pub max_duplicate_share: Spanned<f64>,
    pub max_unmatched_share: Spanned<f64>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawHttp {
    pub listen: Spanned<String>,
    pub max_connections: Spanned<i64>,
    pub timeout: Spanned<TimeSpan>,
    pub hosts: Spanned<Vec<Spanned<String>>>,
    /// `None`: no TLS.
    pub tls_certificate: Option<Spanned<String>>,
    /// `None`: in the same file.
    pub tls_key: Option<Spanned<String>>,
    pub bearer_tokens: Spanned<Hashes>,
    pub bearer_tokens_file: Option<Spanned<String>>,
    pub basic_passwords: Spanned<Hashes>,
    pub basic_passwords_file: Option<Spanned<String>>,
    pub open_probes: Spanned<bool>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawLog {
    pub filter: Spanned<String>,
    pub format: Spanned<String>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawExperiment {
    /// A string, or a date and time of TOML's own.
    #[serde(serialize_with = "as_text")]
    pub start: Option<Spanned<toml::Value>>,
    pub control: Option<Spanned<String>>,
}

/// A date and time has a notation of its own in TOML alone.
fn as_text<S: Serializer>(value: &Option<Spanned<toml::Value>>, serializer: S) -> Result<S::Ok, S::Error> {
    match value.as_ref().map(Spanned::get_ref) {
        Some(toml::Value::Datetime(time)) => serializer.serialize_some(&time.to_string()),
        other => other.serialize(serializer),
    }
}

/// A value that stands nowhere in the file.
fn unwritten<T>(value: impl Into<T>) -> Spanned<T> {
    Spanned::new(0..0, value.into())
}

fn list<T>(values: impl IntoIterator<Item = impl Into<T>>) -> Spanned<Vec<Spanned<T>>> {
    unwritten(values.into_iter().map(unwritten).collect::<Vec<_>>())
}

impl Default for RawKafka {
    fn default() -> Self {
        RawKafka {
            brokers: None,
            served_topic: unwritten("served"),
            clicks_topic: unwritten("clicks"),
            group_id: unwritten("abgauge"),
            key: unwritten("request"),
            start: unwritten("rebuild"),
            dead_letter_topic: None,
            dead_letter_payload: unwritten(true),
            properties: BTreeMap::new(),
            property_files: BTreeMap::new(),
        }
    }
}

impl Default for RawJoin {
    fn default() -> Self {
        RawJoin {
            attribution: unwritten(TimeSpan::minutes(30)),
            click_skew: unwritten(TimeSpan::seconds(0)),
            lateness: unwritten(TimeSpan::minutes(2)),
            max_future: unwritten(TimeSpan::seconds(30)),
            idle_after: unwritten(TimeSpan::seconds(30)),
            slot: unwritten(TimeSpan::seconds(5)),
            max_items: unwritten(1_000),
            max_experiments: unwritten(100),
            max_lists_per_click: unwritten(32),
            max_off_list: unwritten(1_000),
            hash_seed: unwritten(0),
            user_key: None,
        }
    }
}

impl Default for RawMetrics {
    fn default() -> Self {
        RawMetrics {
            k: list([1, 5, 10]),
            windows: list([TimeSpan::minutes(5), TimeSpan::hours(1), TimeSpan::hours(24)]),
            metrics: None,
            profile: unwritten(profile::DEFAULT),
            alpha: unwritten(0.5),
            catalog: None,
        }
    }
}

impl Default for RawExport {
    fn default() -> Self {
        RawExport {
            metrics: None,
            k: None,
            windows: None,
            views: list(["live", "settled"]),
            numerators: None,
            max_series: unwritten(300_000),
            forget_after: unwritten(TimeSpan::days(14)),
        }
    }
}

impl Default for RawLimits {
    fn default() -> Self {
        RawLimits {
            max_arms: unwritten(10_000),
            max_state: unwritten(ByteSize::gibibytes(4)),
            max_coverage: unwritten(ByteSize::mebibytes(256)),
            max_invalid_share: unwritten(0.05),
            max_late_share: unwritten(0.05),
            max_future_share: unwritten(0.05),
            max_duplicate_share: unwritten(0.1),
            max_unmatched_share: unwritten(0.05),
        }
    }
}

impl Default for RawHttp {
    fn default() -> Self {
        RawHttp {
            listen: unwritten("127.0.0.1:9464"),
            max_connections: unwritten(256),
            timeout: unwritten(TimeSpan::seconds(10)),
            hosts: unwritten(Vec::new()),
            tls_certificate: None,
            tls_key: None,
            bearer_tokens: unwritten(Hashes::default()),
            bearer_tokens_file: None,
            basic_passwords: unwritten(Hashes::default()),
            basic_passwords_file: None,
            open_probes: unwritten(true),
        }
    }
}

impl Default for RawLog {
    fn default() -> Self {
        RawLog {
            filter: unwritten("info"),
            format: unwritten("auto"),
        }
    }
}
