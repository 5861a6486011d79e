//! Settings as written by the operator, each with its default in the operator's notation.
//!
//! `config/abgauge.toml` documents them, and a test compares the two. Nothing here has `Debug`, because some values are
//! secrets.

use std::collections::BTreeMap;

use abgauge_core::decode::NoUser;
use abgauge_core::metrics::profile;
use serde::{Deserialize, Serialize, Serializer};
use toml::Spanned;

use super::access::HashList;
use super::paths::{RawId, RawPaths};
use super::properties::PropertyValue;
use super::units::{ByteSize, TimeSpan};

/// Defines a section with the default of each setting.
macro_rules! section {
    ($(#[$of_section:meta])* $section:ident { $($(#[$about:meta])* $setting:ident: $kind:ty = $default:expr,)* }) => {
        $(#[$of_section])*
        #[derive(Deserialize, Serialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct $section {
            $($(#[$about])* pub $setting: $kind,)*
        }

        impl Default for $section {
            fn default() -> Self {
                $section { $($setting: $default,)* }
            }
        }
    };
}

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
    pub state: RawState,
    pub global: RawGlobal,
    pub http: RawHttp,
    pub webhook: RawWebhook,
    pub log: RawLog,
    pub experiments: BTreeMap<String, RawExperiment>,
}

section! {
    RawKafka {
        /// Required: the only setting without a default.
        brokers: Option<Spanned<String>> = None,
        served_topic: Spanned<String> = unwritten("served"),
        clicks_topic: Spanned<String> = unwritten("clicks"),
        group_id: Spanned<String> = unwritten("abgauge"),
        key: Spanned<String> = unwritten("request"),
        start: Spanned<String> = unwritten("rebuild"),
        dead_letter_topic: Option<Spanned<String>> = None,
        dead_letter_payload: Spanned<bool> = unwritten(true),
        properties: BTreeMap<String, Spanned<PropertyValue>> = BTreeMap::new(),
        property_files: BTreeMap<String, Spanned<String>> = BTreeMap::new(),
    }
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawIngest {
    /// `None`: one per core.
    pub workers: Option<Spanned<i64>>,
    /// `None`: all records count.
    pub skip_records: Option<Spanned<Vec<Spanned<String>>>>,
}

/// Shape of events. A setting that is `None` comes from the preset, or else from abgauge's own shape.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawEvents {
    pub preset: Option<Spanned<String>>,
    pub r#type: Option<Spanned<RawPaths>>,
    pub without_type: Option<Spanned<String>>,
    pub nested: Option<Spanned<String>>,
    pub records: Option<Spanned<String>>,
    pub ts_unit: Option<Spanned<String>>,
    pub ts_zone: Option<Spanned<String>>,
    /// Path for both lists and clicks.
    pub user_id: Option<Spanned<RawPaths>>,
    pub served: RawServed,
    pub click: RawClick,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawServed {
    pub types: Option<Spanned<Vec<Spanned<String>>>>,
    pub request_id: Option<Spanned<RawId>>,
    pub user_id: Option<Spanned<RawPaths>>,
    pub ts: Option<Spanned<RawPaths>>,
    pub items: Option<Spanned<RawPaths>>,
    pub no_items: Option<Spanned<String>>,
    pub gather: Option<Spanned<TimeSpan>>,
    pub clicked: Option<Spanned<RawPaths>>,
    pub clicked_items: Option<Spanned<RawPaths>>,
    pub clicked_ts: Option<Spanned<RawPaths>>,
    pub item_id: Option<Spanned<RawPaths>>,
    pub position: Option<Spanned<RawPaths>>,
    pub skip_others: Option<Spanned<bool>>,
    pub rows: Option<Spanned<bool>>,
    pub row_items: Option<Spanned<RawPaths>>,
    pub experiments: Option<Spanned<RawPaths>>,
    pub experiment: Option<Spanned<RawPaths>>,
    pub arm: Option<Spanned<RawPaths>>,
    pub only: Option<Spanned<Vec<Spanned<String>>>>,
    /// Text, `true`, `false` or integers.
    pub not_in: Option<Spanned<Vec<Spanned<toml::Value>>>>,
    pub prefix: Option<Spanned<String>>,
    pub arm_separator: Option<Spanned<String>>,
    pub pair_separator: Option<Spanned<String>>,
    pub experiment_name: Option<Spanned<String>>,
    pub arm_name: Option<Spanned<String>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawClick {
    pub types: Option<Spanned<Vec<Spanned<String>>>>,
    pub action: Option<Spanned<RawPaths>>,
    pub actions: Option<Spanned<Vec<Spanned<String>>>>,
    pub request_id: Option<Spanned<RawId>>,
    pub user_id: Option<Spanned<RawPaths>>,
    pub ts: Option<Spanned<RawPaths>>,
    pub item: Option<Spanned<RawPaths>>,
}

section! {
    RawJoin {
        attribution: Spanned<TimeSpan> = unwritten(TimeSpan::minutes(30)),
        click_skew: Spanned<TimeSpan> = unwritten(TimeSpan::seconds(0)),
        /// `None`: as long as `attribution`.
        same_list: Option<Spanned<TimeSpan>> = None,
        lateness: Spanned<TimeSpan> = unwritten(TimeSpan::minutes(2)),
        max_future: Spanned<TimeSpan> = unwritten(TimeSpan::seconds(30)),
        idle_after: Spanned<TimeSpan> = unwritten(TimeSpan::seconds(30)),
        slot: Spanned<TimeSpan> = unwritten(TimeSpan::seconds(5)),
        max_items: Spanned<i64> = unwritten(1_000),
        max_experiments: Spanned<i64> = unwritten(100),
        max_lists_per_click: Spanned<i64> = unwritten(32),
        max_off_list: Spanned<i64> = unwritten(1_000),
        hash_seed: Spanned<i64> = unwritten(0),
        /// `None`: the key is made from the seed only.
        user_key: Option<Spanned<String>> = None,
        no_user: Spanned<Vec<Spanned<String>>> = list(NoUser::USUAL.map(str::to_owned)),
    }
}

section! {
    RawMetrics {
        k: Spanned<Vec<Spanned<i64>>> = list([1, 5, 10]),
        windows: Spanned<Vec<Spanned<TimeSpan>>> = list([TimeSpan::minutes(5), TimeSpan::hours(1), TimeSpan::hours(24)]),
        /// `None`: the usual ones, and those that `[export]` names.
        metrics: Option<Spanned<Vec<Spanned<String>>>> = None,
        /// Name, or list of names.
        profile: Spanned<toml::Value> = unwritten(profile::DEFAULT),
        alpha: Spanned<f64> = unwritten(0.5),
        catalog: Option<Spanned<String>> = None,
    }
}

/// Custom profile: `base`, `metrics`, and a word for each choice that differs from the base.
pub(super) type RawProfile = BTreeMap<String, Spanned<toml::Value>>;

section! {
    /// Exported series. Metrics, cut-offs and windows that are `None` default to all of `[metrics]`.
    RawExport {
        metrics: Option<Spanned<Vec<Spanned<String>>>> = None,
        k: Option<Spanned<Vec<Spanned<i64>>>> = None,
        windows: Option<Spanned<Vec<Spanned<String>>>> = None,
        /// `None`: depends on the window.
        views: Option<Spanned<Vec<Spanned<String>>>> = None,
        /// `None`: no metrics.
        numerators: Option<Spanned<Vec<Spanned<String>>>> = None,
        secondary: Spanned<bool> = unwritten(false),
        max_series: Spanned<i64> = unwritten(300_000),
        forget_after: Spanned<TimeSpan> = unwritten(TimeSpan::days(14)),
    }
}

section! {
    RawLimits {
        max_arms: Spanned<i64> = unwritten(10_000),
        max_state: Spanned<ByteSize> = unwritten(ByteSize::gibibytes(4)),
        max_coverage: Spanned<ByteSize> = unwritten(ByteSize::mebibytes(256)),
        max_statistics: Spanned<ByteSize> = unwritten(ByteSize::gibibytes(1)),
        max_invalid_share: Spanned<f64> = unwritten(0.05),
        max_late_share: Spanned<f64> = unwritten(0.05),
        max_future_share: Spanned<f64> = unwritten(0.05),
        max_duplicate_share: Spanned<f64> = unwritten(0.1),
        max_unmatched_share: Spanned<f64> = unwritten(0.05),
        max_user_share: Spanned<f64> = unwritten(0.05),
    }
}

section! {
    RawState {
        /// `None`: nothing is stored.
        topic: Option<Spanned<String>> = None,
        interval: Spanned<TimeSpan> = unwritten(TimeSpan::seconds(10)),
        max_bytes_per_second: Spanned<ByteSize> = unwritten(ByteSize::mebibytes(1)),
    }
}

section! {
    RawGlobal {
        /// `None`: enabled if state is stored.
        enabled: Option<Spanned<bool>> = None,
    }
}

section! {
    RawHttp {
        listen: Spanned<String> = unwritten("127.0.0.1:9464"),
        max_connections: Spanned<i64> = unwritten(256),
        timeout: Spanned<TimeSpan> = unwritten(TimeSpan::seconds(10)),
        hosts: Spanned<Vec<Spanned<String>>> = unwritten(Vec::new()),
        /// `None`: no TLS.
        tls_certificate: Option<Spanned<String>> = None,
        /// `None`: in the same file as the certificate.
        tls_key: Option<Spanned<String>> = None,
        bearer_tokens: Spanned<HashList> = unwritten(HashList::default()),
        bearer_tokens_file: Option<Spanned<String>> = None,
        basic_passwords: Spanned<HashList> = unwritten(HashList::default()),
        basic_passwords_file: Option<Spanned<String>> = None,
        open_probes: Spanned<bool> = unwritten(true),
    }
}

section! {
    RawWebhook {
        /// `None`: no calls.
        url: Option<Spanned<String>> = None,
        /// `None`: no header.
        secret_file: Option<Spanned<String>> = None,
        header: Spanned<String> = unwritten("Authorization"),
        timeout: Spanned<TimeSpan> = unwritten(TimeSpan::seconds(10)),
        /// `None`: the authorities of the system.
        ca_file: Option<Spanned<String>> = None,
    }
}

section! {
    RawLog {
        filter: Spanned<String> = unwritten("info"),
        format: Spanned<String> = unwritten("auto"),
    }
}

/// Settings of an experiment. Unwritten ones have a default only if there is a control.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawExperiment {
    /// String, or a TOML date and time.
    #[serde(serialize_with = "as_text")]
    pub start: Option<Spanned<toml::Value>>,
    pub control: Option<Spanned<String>>,
    /// Shares by arm.
    pub shares: Option<RawNumbers>,
    pub primary: Option<Spanned<Vec<Spanned<String>>>>,
    /// Margins by metric.
    pub guardrails: Option<RawNumbers>,
    pub mde: Option<Spanned<f64>>,
    pub alpha: Option<Spanned<f64>>,
    pub min_days: Option<Spanned<f64>>,
    pub planned_days: Option<Spanned<f64>>,
    pub validity: Option<Spanned<String>>,
    pub goal: Option<Spanned<String>>,
    pub unit: Option<Spanned<String>>,
    pub sticky: Option<Spanned<bool>>,
    pub lower_is_better: Option<Spanned<Vec<Spanned<String>>>>,
    pub list_ratio_margin: Option<Spanned<f64>>,
    pub max_lists_per_user: Option<Spanned<i64>>,
    pub epoch_weights: Option<Spanned<String>>,
    pub epochs: Option<Spanned<Vec<Spanned<RawEpoch>>>>,
}

/// Numbers by name.
pub(super) type RawNumbers = Spanned<BTreeMap<Spanned<String>, Spanned<f64>>>;

/// Later allocation. Both settings are required.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawEpoch {
    #[serde(serialize_with = "as_text")]
    pub start: Option<Spanned<toml::Value>>,
    pub shares: Option<RawNumbers>,
}

impl RawExperiment {
    /// Returns every setting that is written, with its place.
    pub fn written(&self) -> impl Iterator<Item = (&'static str, Spanned<()>)> {
        fn place<T>(value: &Option<Spanned<T>>) -> Option<Spanned<()>> {
            value.as_ref().map(|value| Spanned::new(value.span(), ()))
        }
        let settings = [
            ("start", place(&self.start)),
            ("control", place(&self.control)),
            ("shares", place(&self.shares)),
            ("primary", place(&self.primary)),
            ("guardrails", place(&self.guardrails)),
            ("mde", place(&self.mde)),
            ("alpha", place(&self.alpha)),
            ("min_days", place(&self.min_days)),
            ("planned_days", place(&self.planned_days)),
            ("validity", place(&self.validity)),
            ("goal", place(&self.goal)),
            ("unit", place(&self.unit)),
            ("sticky", place(&self.sticky)),
            ("lower_is_better", place(&self.lower_is_better)),
            ("list_ratio_margin", place(&self.list_ratio_margin)),
            ("max_lists_per_user", place(&self.max_lists_per_user)),
            ("epoch_weights", place(&self.epoch_weights)),
            ("epochs", place(&self.epochs)),
        ];
        settings
            .into_iter()
            .filter_map(|(setting, place)| Some((setting, place?)))
    }
}

/// Serializes a date and time as text, because only TOML has a notation for it.
fn as_text<S: Serializer>(value: &Option<Spanned<toml::Value>>, serializer: S) -> Result<S::Ok, S::Error> {
    match value.as_ref().map(Spanned::get_ref) {
        Some(toml::Value::Datetime(time)) => serializer.serialize_some(&time.to_string()),
        other => other.serialize(serializer),
    }
}

/// Returns a value that is not in the file.
fn unwritten<T>(value: impl Into<T>) -> Spanned<T> {
    Spanned::new(0..0, value.into())
}

fn list<T>(values: impl IntoIterator<Item = impl Into<T>>) -> Spanned<Vec<Spanned<T>>> {
    unwritten(values.into_iter().map(unwritten).collect::<Vec<_>>())
}
