//! Settings as written by the operator, each with its default in the operator's notation.
//!
//! `config/abgauge.toml` documents them, and a test compares the two. Nothing here has `Debug`, because some values are
//! secrets.

use std::collections::BTreeMap;
use std::ops::Bound::Excluded;

use abgauge_core::decode::NoUser;
use abgauge_core::decode::framing::{Format, Framing};
use abgauge_core::decode::shape::{Nested, Shape, TsUnit};
use abgauge_core::engine::View;
use abgauge_core::metrics::profile;
use serde::{Deserialize, Serialize, Serializer};
use toml::{Spanned, Value};

use super::access::{HashList, MAX_ENTRIES, NAME_AND_HASH};
use super::error::ErrorReport;
use super::hosts::{HOST, MAX_FRAMES, MAX_NAME, ORIGIN};
use super::paths::{self, RawId, RawPaths};
use super::properties::PropertyValue;
use super::ranges::Ranged;
use super::row::Rule::*;
use super::row::{Setting, another_file, array, names, path, text, texts, word_of};
use super::rules::*;
use super::schema::types::{self, SettingType};
use super::units::{ByteSize, TimeSpan, display_ms};
use super::{Config, LONGEST_LIST, LogFormat, MAX_CUT_OFFS, MAX_EPOCHS, Start, TopicKey};

/// Value that may be absent.
type Opt<T> = Option<Spanned<T>>;
type List<T> = Spanned<Vec<Spanned<T>>>;

/// Defines a section. A row is a setting, its type, its default (if it has one) and further facts about it.
macro_rules! section {
    (
        $(#[$of_section:meta])* $section:ident in $path:literal {
            $($(#[$about:meta])* $setting:ident $(as $name:literal)?: $kind:ty $(= $default:expr)? $(=> [$($rule:expr),+ $(,)?])?,)*
        }
        $(with { $($table:ident: $of_table:ty,)* })?
    ) => {
        $(#[$of_section])*
        #[derive(Deserialize, Serialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct $section {
            $($(#[$about])* $(#[serde(rename = $name)])? pub $setting: $kind,)*
            $($(pub $table: $of_table,)*)?
        }

        impl Default for $section {
            fn default() -> Self {
                $section {
                    $($setting: section!(@or_default $($default)?),)*
                    $($($table: Default::default(),)*)?
                }
            }
        }

        impl $section {
            pub const ROWS: &[Setting] = &[$(Setting {
                key: concat!($path, ".", section!(@name $setting $($name)?)),
                schema: <$kind as SettingType>::schema,
                rules: &[$($($rule),+)?],
            },)*];

            /// Refuses numbers and spans outside of their rows' ranges. `section` is the path of this section.
            pub fn check(&self, section: &str, report: &mut ErrorReport) {
                let mut rows = Self::ROWS.iter();
                $(if let Some(row) = rows.next() {
                    self.$setting.check(row, &format!("{section}.{}", row.name()), report);
                })*
            }
        }
    };
    (@or_default) => { Default::default() };
    (@or_default $default:expr) => { $default };
    (@name $setting:ident) => { stringify!($setting) };
    (@name $setting:ident $name:literal) => { $name };
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Raw {
    pub kafka: RawKafka,
    pub ingest: RawIngest,
    pub events: RawEvents,
    pub registry: RawRegistry,
    pub schemas: RawSchemas,
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
    RawKafka in "kafka" {
        /// Required: the only setting without a default.
        brokers: Opt<String> => [Like(NOT_BLANK)],
        served_topic: Spanned<String> = unwritten("served") => [Like(TOPIC), AtMost(249)],
        clicks_topic: Spanned<String> = unwritten("clicks") => [Like(TOPIC), AtMost(249)],
        group_id: Spanned<String> = unwritten("abgauge") => [Like(NOT_BLANK)],
        key: Spanned<String> = unwritten("request") => [OneOf(|| names(&TopicKey::ALL)), Counted],
        start: Spanned<String> = unwritten("rebuild") => [OneOf(|| names(&Start::ALL))],
        dead_letter_topic: Opt<String> => [Like(TOPIC), AtMost(249)],
        dead_letter_payload: Spanned<bool> = unwritten(true),
        properties: BTreeMap<String, Spanned<PropertyValue>>,
        property_files: BTreeMap<String, Spanned<String>> => [Schema(types::files)],
    }
}

section! {
    RawIngest in "ingest" {
        workers: Opt<i64> => [
            Within(1..=256),
            Else(|config| i64::try_from(config.ingest.n_workers()).ok().map(Value::from)),
            Because("one for each core"),
        ],
        /// `None`: all records count.
        skip_records: Option<List<String>> => [Like("^[a-zA-Z0-9._-]+/[0-9]+/[0-9]+(-[0-9]+)?$")],
    }
}

section! {
    /// Shape of events. A setting that is `None` comes from the preset, or else from abgauge's own shape.
    RawEvents in "events" {
        preset: Opt<String> => [OneOf(|| names(&Shape::PRESETS))],
        kind as "type": Opt<RawPaths> => [OfShape(|shape| path(&shape.kind))],
        without_type: Opt<String> => [
            OneOf(|| names(&KINDS)),
            OfShape(|shape| shape.without_kind.map(|kind| word_of(&KINDS, &Some(kind)))),
        ],
        nested: Opt<String> => [OfShape(|shape| shape.nested.as_ref().map(nested))],
        records: Opt<String> => [OfShape(|shape| shape.records.as_ref().map(|path| path.to_string().into()))],
        ts_unit: Opt<String> => [
            OneOf(|| names(&TsUnit::ALL)),
            OfShape(|shape| shape.ts_unit.map(|unit| word_of(&TsUnit::ALL, &unit))),
        ],
        ts_zone: Opt<String> => [OfShape(|shape| shape.ts_zone.map(|zone| zone.to_string().into()))],
        /// Path for both lists and clicks.
        user_id: Opt<RawPaths>,
    }
    with {
        served: RawServed,
        click: RawClick,
    }
}

section! {
    RawServed in "events.served" {
        format: Spanned<String> = unwritten("json") => [OneOf(|| names(&Format::ALL))],
        message: Opt<String> => [Like(MESSAGE)],
        framing: Spanned<String> = unwritten("detect") => [OneOf(|| names(&Framing::ALL))],
        types: Option<List<String>> => [OfShape(|shape| texts(&shape.served.kinds))],
        request_id: Opt<RawId> => [
            OfShape(|shape| Some(paths::written_id(&shape.served.request_id, &shape.served.further_ids))),
            Counted,
        ],
        user_id: Opt<RawPaths> => [OfShape(|shape| path(&shape.served.user_id))],
        ts: Opt<RawPaths> => [OfShape(|shape| Some(paths::written(&shape.served.ts)))],
        items: Opt<RawPaths> => [OfShape(|shape| Some(paths::written(&shape.served.items)))],
        no_items: Opt<String> => [
            OneOf(|| names(&NO_ITEMS)),
            OfShape(|shape| Some(word_of(&NO_ITEMS, &shape.served.absent_is_empty))),
        ],
        gather: Opt<TimeSpan> => [
            OfShape(|shape| shape.served.gather_ms.map(|span_ms| display_ms(span_ms).into())),
            Counted,
        ],
        clicked: Opt<RawPaths> => [OfShape(|shape| path(&shape.served.clicked))],
        clicked_items: Opt<RawPaths> => [OfShape(|shape| path(&shape.served.clicked_items))],
        clicked_ts: Opt<RawPaths> => [OfShape(|shape| path(&shape.served.clicked_ts))],
        item_id: Opt<RawPaths> => [OfShape(|shape| path(&shape.served.item_id))],
        position: Opt<RawPaths> => [OfShape(|shape| path(&shape.served.position))],
        skip_others: Opt<bool> => [OfShape(|shape| Some(shape.served.skip_others.into()))],
        rows: Opt<bool> => [OfShape(|shape| Some(shape.served.rows.into()))],
        row_items: Opt<RawPaths> => [OfShape(|shape| path(&shape.served.row_items))],
        experiments: Opt<RawPaths> => [OfShape(|shape| path(&shape.served.arms.experiments))],
        experiment: Opt<RawPaths> => [OfShape(|shape| path(&shape.served.arms.experiment))],
        arm: Opt<RawPaths> => [OfShape(|shape| path(&shape.served.arms.arm))],
        only: Option<List<String>> => [OfShape(|shape| texts(&shape.served.arms.only))],
        not_in: Option<List<Value>> => [OfShape(|shape| texts(&shape.served.arms.not_in))],
        prefix: Opt<String> => [OfShape(|shape| text(&shape.served.arms.prefix))],
        arm_separator: Opt<String> => [OfShape(|shape| text(&shape.served.arms.arm_separator))],
        pair_separator: Opt<String> => [OfShape(|shape| text(&shape.served.arms.pair_separator))],
        experiment_name: Opt<String> => [OfShape(|shape| text(&shape.served.arms.experiment_name))],
        arm_name: Opt<String> => [OfShape(|shape| text(&shape.served.arms.arm_name))],
    }
}

section! {
    RawClick in "events.click" {
        format: Spanned<String> = unwritten("json") => [OneOf(|| names(&Format::ALL))],
        message: Opt<String> => [Like(MESSAGE)],
        framing: Spanned<String> = unwritten("detect") => [OneOf(|| names(&Framing::ALL))],
        types: Option<List<String>> => [OfShape(|shape| texts(&shape.click.kinds))],
        action: Opt<RawPaths> => [OfShape(|shape| path(&shape.click.action))],
        actions: Option<List<String>> => [OfShape(|shape| texts(&shape.click.actions))],
        request_id: Opt<RawId> => [
            OfShape(|shape| Some(paths::written_id(&shape.click.request_id, &shape.click.further_ids))),
            Counted,
        ],
        user_id: Opt<RawPaths> => [OfShape(|shape| path(&shape.click.user_id))],
        ts: Opt<RawPaths> => [OfShape(|shape| Some(paths::written(&shape.click.ts)))],
        item: Opt<RawPaths> => [OfShape(|shape| Some(paths::written(&shape.click.item)))],
    }
}

section! {
    RawRegistry in "registry" {
        /// `None`: no registry.
        url: Opt<String> => [AtLeast(1), Secret],
        username: Opt<String> => [AtLeast(1)],
        /// `None`: no credentials.
        password_file: Opt<String> => [AtLeast(1)],
        token_file: Opt<String> => [AtLeast(1)],
        /// `None`: the authorities of the system.
        ca_file: Opt<String> => [AtLeast(1)],
        /// `None`: no client certificate.
        certificate_file: Opt<String> => [AtLeast(1)],
        key_file: Opt<String> => [
            AtLeast(1),
            Else(|config| Some(config.formats.registry.as_ref()?.identity.as_ref()?.key.display().to_string().into())),
            Because("in the file of the certificate"),
        ],
        timeout: Spanned<TimeSpan> = unwritten("10s"),
    }
}

section! {
    /// Files with the schema of each topic. `None`: only the registry has schemas.
    RawSchemas in "schemas" {
        served: Opt<String> => [AtLeast(1)],
        click: Opt<String> => [AtLeast(1)],
    }
}

section! {
    RawJoin in "join" {
        attribution: Spanned<TimeSpan> = unwritten("30m") => [Counted],
        click_skew: Spanned<TimeSpan> = unwritten("0s") => [MayBeZero, Counted],
        same_list: Opt<TimeSpan> => [
            MayBeZero,
            Counted,
            Else(|config| Some(display_ms(config.join.same_list_ms).into())),
            Because("as long as join.attribution"),
        ],
        lateness: Spanned<TimeSpan> = unwritten("2m") => [Counted],
        max_future: Spanned<TimeSpan> = unwritten("30s") => [MayBeZero, Counted],
        idle_after: Spanned<TimeSpan> = unwritten("30s"),
        slot: Spanned<TimeSpan> = unwritten("5s") => [Counted],
        max_items: Spanned<i64> = unwritten(1_000) => [Within(1..=LONGEST_LIST as i64), Counted],
        max_experiments: Spanned<i64> = unwritten(100) => [Within(1..=1_000), Counted],
        max_lists_per_click: Spanned<i64> = unwritten(32) => [Within(1..=1_000), Counted],
        max_off_list: Spanned<i64> = unwritten(1_000) => [Within(0..=1_000), Counted],
        hash_seed: Spanned<i64> = unwritten(0) => [Within(0..=i64::MAX), Secret, Counted],
        /// `None`: the key is made from the seed only.
        user_key: Opt<String> => [AtLeast(MIN_SECRET), Secret, Counted],
        no_user: List<String> = list(NoUser::USUAL.map(str::to_owned)),
    }
}

section! {
    RawMetrics in "metrics" {
        k: List<i64> = list([1, 5, 10]) => [Within(1..=LONGEST_LIST as i64), MaxEntries(MAX_CUT_OFFS)],
        windows: List<TimeSpan> = list(["5m", "1h", "24h"]) => [NotEmpty],
        /// `None`: the usual ones, and those that `[export]` names.
        metrics: Option<List<String>> => [
            OneOf(|| names(&metric_names())),
            NotEmpty,
            Else(|config| Some(array(config.measures.metrics.iter().copied()))),
        ],
        /// Name, or list of names.
        profile: Spanned<Value> = unwritten(profile::DEFAULT) => [Schema(types::one_or_more_profiles)],
        alpha: Spanned<f64> = unwritten(0.5) => [Between(SHARE)],
        catalog: Opt<String> => [AtLeast(1), Reload(|running, new| another_file(&mut running.catalog, &new.catalog))],
    }
}

/// Custom profile: `base`, `metrics`, and a word for each choice that differs from the base.
pub(super) type RawProfile = BTreeMap<String, Spanned<Value>>;

section! {
    /// Exported series. Metrics, cut-offs and windows that are `None` default to all of `[metrics]`.
    RawExport in "export" {
        metrics: Option<List<String>> => [
            OneOf(|| names(&metric_names())),
            Else(|config| Some(array(config.export.metrics.iter().map(String::as_str)))),
            Because("all that are measured"),
        ],
        k: Option<List<i64>> => [
            Within(1..=LONGEST_LIST as i64),
            Else(|config| Some(array(config.exported_ks().iter().map(|k| i64::from(k.get()))))),
            Because("all of them"),
        ],
        windows: Option<List<String>> => [Else(|config| Some(array(config.exported_windows()))), Because("all of them")],
        views: Option<List<String>> => [
            OneOf(|| View::BOTH.iter().map(|view| view.name()).collect()),
            NotEmpty,
            Because("live in the shortest window, final in longer ones, both since start"),
        ],
        /// `None`: no metrics.
        numerators: Option<List<String>> => [OneOf(|| names(&metric_names()))],
        secondary: Spanned<bool> = unwritten(false),
        max_series: Spanned<i64> = unwritten(300_000) => [Within(1..=100_000_000)],
        forget_after: Spanned<TimeSpan> = unwritten("14d"),
    }
}

section! {
    RawLimits in "limits" {
        max_arms: Spanned<i64> = unwritten(10_000) => [Within(1..=10_000_000), Counted],
        max_state: Spanned<ByteSize> = unwritten("4GiB"),
        max_coverage: Spanned<ByteSize> = unwritten("256MiB"),
        max_statistics: Spanned<ByteSize> = unwritten("1GiB"),
        max_invalid_share: Spanned<f64> = unwritten(0.05) => [Between(SHARE)],
        max_late_share: Spanned<f64> = unwritten(0.05) => [Between(SHARE)],
        max_future_share: Spanned<f64> = unwritten(0.05) => [Between(SHARE)],
        max_duplicate_share: Spanned<f64> = unwritten(0.1) => [Between(SHARE)],
        max_unmatched_share: Spanned<f64> = unwritten(0.05) => [Between(SHARE)],
        max_user_share: Spanned<f64> = unwritten(0.05) => [Between(SHARE)],
    }
}

section! {
    RawState in "state" {
        /// `None`: nothing is stored.
        topic: Opt<String> => [Like(TOPIC), AtMost(249)],
        interval: Spanned<TimeSpan> = unwritten("10s"),
        max_bytes_per_second: Spanned<ByteSize> = unwritten("1MiB"),
    }
}

section! {
    RawGlobal in "global" {
        /// `None`: enabled if state is stored.
        enabled: Opt<bool>,
    }
}

section! {
    RawHttp in "http" {
        listen: Spanned<String> = unwritten("127.0.0.1:9464"),
        max_connections: Spanned<i64> = unwritten(256) => [Within(1..=65_536)],
        timeout: Spanned<TimeSpan> = unwritten("10s"),
        /// `None`: no address is exported.
        public_url: Opt<String> => [
            Like("^https?://(\\[[0-9a-fA-F:.]+\\]|[a-zA-Z0-9._-]+)(:[0-9]+)?(/[^?#]*)?$"),
        ],
        hosts: List<String> = unwritten(Vec::new()) => [Like(HOST), AtMost(MAX_NAME), MaxEntries(MAX_ENTRIES)],
        frame_ancestors: List<String> = unwritten(Vec::new()) => [Like(ORIGIN), MaxEntries(MAX_FRAMES)],
        /// `None`: no TLS.
        tls_certificate: Opt<String> => [AtLeast(1), Reload(|running, new| another_file(&mut running.http.tls, &new.http.tls))],
        tls_key: Opt<String> => [
            AtLeast(1),
            Reload(|running, new| another_file(&mut running.http.tls, &new.http.tls)),
            Else(|config| Some(config.http.tls.as_ref()?.key.display().to_string().into())),
            Because("in the file of the certificate"),
        ],
        bearer_tokens: Spanned<HashList> = unwritten(HashList::default()) => [
            Like("^[0-9a-fA-F]{64}$"),
            MaxEntries(MAX_ENTRIES),
            Secret,
            Reload(other_credentials),
        ],
        bearer_tokens_file: Opt<String> => [AtLeast(1), Reload(other_credentials)],
        basic_passwords: Spanned<HashList> = unwritten(HashList::default()) => [
            Like(NAME_AND_HASH),
            MaxEntries(MAX_ENTRIES),
            Secret,
            Reload(other_credentials),
        ],
        basic_passwords_file: Opt<String> => [AtLeast(1), Reload(other_credentials)],
        open_probes: Spanned<bool> = unwritten(true),
    }
}

section! {
    RawWebhook in "webhook" {
        /// `None`: no calls.
        url: Opt<String> => [
            Like("^https?://(\\[[0-9a-fA-F:.]+\\]|[a-zA-Z0-9._-]+)(:[0-9]+)?([/?#].*)?$"),
            // The path or the query often contains one.
            Secret,
        ],
        /// `None`: no header.
        secret_file: Opt<String> => [AtLeast(1)],
        header: Spanned<String> = unwritten("Authorization") => [Like("^[a-zA-Z0-9!#$%&'*+.^_`|~-]+$")],
        timeout: Spanned<TimeSpan> = unwritten("10s"),
        /// `None`: the authorities of the system.
        ca_file: Opt<String> => [AtLeast(1)],
    }
}

section! {
    RawLog in "log" {
        filter: Spanned<String> = unwritten("info") => [
            Like(NOT_BLANK),
            Reload(|running, new| {
                running.log.filter.clone_from(&new.log.filter);
                true
            }),
        ],
        format: Spanned<String> = unwritten("auto") => [OneOf(|| names(&LogFormat::ALL))],
    }
}

section! {
    /// Settings of an experiment. Unwritten ones have a default only if there is a control.
    RawExperiment in "experiments" {
        description: Opt<String> => [Like(NOT_BLANK), AtMost(300), Reload(other_descriptions)],
        owner: Opt<String> => [Like(NOT_BLANK), AtMost(100), Reload(other_descriptions)],
        /// Only shown. No statistic and no decision depends on it.
        planned_users: Opt<i64> => [Within(1..=1_000_000_000_000), Reload(other_descriptions)],
        /// String, or a TOML date and time.
        #[serde(serialize_with = "as_text")]
        start: Opt<Value> => [Schema(types::time)],
        control: Opt<String> => [Schema(types::label)],
        /// Shares by arm.
        shares: Option<RawNumbers> => [Schema(types::shares), Between(PART)],
        primary: Option<List<String>> => [Schema(types::metrics), NotEmpty, OfExperiment(|settings| texts(&settings.primary))],
        /// Margins by metric.
        guardrails: Option<RawNumbers> => [Schema(types::by_metric), Between(PART)],
        mde: Opt<f64> => [Between(PART), OfExperiment(|settings| Some(settings.mde.into()))],
        alpha: Opt<f64> => [Between((Excluded(0.0), Excluded(0.5))), OfExperiment(|settings| Some(settings.alpha.into()))],
        min_days: Opt<f64> => [Between(DAYS), OfExperiment(|settings| Some(settings.min_days.into()))],
        planned_days: Opt<f64> => [Between(DAYS)],
        validity: Opt<String> => [
            OneOf(|| names(&VALIDITIES)),
            OfExperiment(|settings| Some(word_of(&VALIDITIES, &settings.validity))),
        ],
        goal: Opt<String> => [OneOf(|| names(&GOALS)), OfExperiment(|settings| Some(word_of(&GOALS, &settings.goal)))],
        unit: Opt<String> => [OneOf(|| names(&UNITS)), OfExperiment(|settings| Some(word_of(&UNITS, &settings.unit)))],
        sticky: Opt<bool> => [OfExperiment(|settings| Some(settings.sticky.into()))],
        lower_is_better: Option<List<String>> => [Schema(types::metrics)],
        list_ratio_margin: Opt<f64> => [Between(PART), OfExperiment(|settings| Some(settings.list_ratio_margin.into()))],
        max_lists_per_user: Opt<i64> => [Within(1..=1_000_000)],
        epoch_weights: Opt<String> => [
            OneOf(|| names(&EPOCH_WEIGHTS)),
            OfExperiment(|settings| Some(word_of(&EPOCH_WEIGHTS, &settings.epoch_weights))),
        ],
        epochs: Option<List<RawEpoch>> => [Schema(types::epochs), MaxEntries(MAX_EPOCHS)],
    }
}

/// Numbers by name.
pub(super) type RawNumbers = Spanned<BTreeMap<Spanned<String>, Spanned<f64>>>;

/// Later allocation. Both settings are required.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawEpoch {
    #[serde(serialize_with = "as_text")]
    pub start: Option<Spanned<Value>>,
    pub shares: Option<RawNumbers>,
}

impl Ranged for Spanned<RawEpoch> {}

impl SettingType for RawEpoch {
    fn schema() -> serde_json::Value {
        types::epoch()
    }
}

/// Returns every setting, including those of an experiment.
pub(super) fn settings() -> impl Iterator<Item = &'static Setting> {
    let sections = [
        RawKafka::ROWS,
        RawIngest::ROWS,
        RawEvents::ROWS,
        RawServed::ROWS,
        RawClick::ROWS,
        RawRegistry::ROWS,
        RawSchemas::ROWS,
        RawJoin::ROWS,
        RawMetrics::ROWS,
        RawExport::ROWS,
        RawLimits::ROWS,
        RawState::ROWS,
        RawGlobal::ROWS,
        RawHttp::ROWS,
        RawWebhook::ROWS,
        RawLog::ROWS,
        RawExperiment::ROWS,
    ];
    sections.into_iter().flatten()
}

/// Returns the row of a setting. The key of an experiment's setting is `experiments.SETTING`.
pub(super) fn setting(key: &str) -> Option<&'static Setting> {
    settings().find(|setting| setting.key == key)
}

fn nested(nested: &Nested) -> Value {
    match nested {
        Nested::Whole => WHOLE.into(),
        Nested::At(path) => path.to_string().into(),
    }
}

fn other_credentials(running: &mut Config, new: &Config) -> bool {
    running.http.access.take_over(&new.http.access)
}

fn other_descriptions(running: &mut Config, new: &Config) -> bool {
    running.about_experiments.clone_from(&new.about_experiments);
    true
}

/// Serializes a date and time as text, because only TOML has a notation for it.
fn as_text<S: Serializer>(value: &Option<Spanned<Value>>, serializer: S) -> Result<S::Ok, S::Error> {
    match value.as_ref().map(Spanned::get_ref) {
        Some(Value::Datetime(time)) => serializer.serialize_some(&time.to_string()),
        other => other.serialize(serializer),
    }
}

/// Returns a value that is not in the file.
fn unwritten<T>(value: impl Into<T>) -> Spanned<T> {
    Spanned::new(0..0, value.into())
}

fn list<T>(values: impl IntoIterator<Item = impl Into<T>>) -> List<T> {
    unwritten(values.into_iter().map(unwritten).collect::<Vec<_>>())
}
