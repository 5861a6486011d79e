//! Checked settings, in the units that the program uses.
//!
//! ```text
//! file ──▶ layers ──▶ Raw ──▶ validate ──▶ Config
//! environment ─┘                 └──▶ ConfigErrors: all of them, each with its line and what to write
//! ```

pub(crate) mod access;
pub mod catalogue_file;
mod current;
mod derived;
mod error;
mod experiment;
pub(crate) mod files;
mod fingerprint;
mod hosts;
mod http_url;
mod layers;
mod load;
mod names;
mod paths;
mod properties;
mod ranges;
mod raw;
mod redact;
mod reload;
mod row;
mod rules;
mod sample;
mod schema;
pub mod skips;
#[cfg(test)]
mod tests;
mod units;
mod unknown_variables;
mod validate;
mod warnings;

pub use abgauge_core::looks::{EpochStart, Experiment};
pub use access::{Access, TokenHash, User};
pub use current::CurrentSettings;
use current::bare_or_quoted;
pub(crate) use derived::event_settings;
pub(crate) use error::nearest;
pub use error::{ConfigError, ConfigErrors, Location, SourcedError};
pub use experiment::AboutExperiment;
pub use files::UnusableFile;
pub use hosts::Host;
pub use http_url::HttpUrl;
pub use load::{
    check_flags, current, environment, load, load_counting, load_http, load_text, load_with_origins,
};
pub(crate) use properties::{USUAL, shown_name};
pub use skips::TopicPartition;

pub use crate::logging::LogFormat;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;
#[cfg(test)]
pub(crate) use unknown_variables::OF_COMMANDS;

use abgauge_core::decode::framing::{Format, Framing};
use abgauge_core::decode::shape::Shape;
use abgauge_core::decode::{Decoder, NoUser, UserKey};
use abgauge_core::looks;
use abgauge_core::metrics::{Measures, Profile};
use abgauge_core::statistics::after_days;
use hyper::header::HeaderName;
pub use reload::{Loaded, SettingChanges};
pub(crate) use rules::UNITS;
pub(crate) use units::display_ms;
pub use units::{parse_size, parse_span_ms};
pub use validate::{parse_brokers, parse_topic};

use crate::settings::skips::Skips;

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub kafka: Kafka,
    pub ingest: Ingest,
    /// Shape of records. `None`: abgauge's own shape.
    pub events: Option<Shape>,
    pub formats: Formats,
    pub join: Join,
    /// Metrics, profiles and cut-offs.
    pub measures: Measures,
    /// File with the items of the catalogue.
    pub catalog: Option<PathBuf>,
    /// Sliding windows, ascending. `total` is always kept in addition.
    pub windows: Vec<WindowSpan>,
    pub limits: Limits,
    /// Topic for state. `None`: a start rebuilds everything from the log.
    pub state: Option<StateTopic>,
    /// True if the view of all partitions is shown as well, whichever instance owns them.
    pub global: bool,
    pub export: Export,
    pub http: Http,
    /// Webhook for changes. `None`: no calls.
    pub webhook: Option<Webhook>,
    pub log: LogConfig,
    /// Experiments by name.
    pub experiments: BTreeMap<String, Experiment>,
    /// Descriptions of the experiments that have one, by name.
    pub about_experiments: BTreeMap<String, AboutExperiment>,
    /// Set by the demo, whose numbers are simulated. It is not a setting.
    pub is_demo: bool,
    /// Experiments with a control but no primary metric in the file, so that one was chosen.
    pub without_primary: BTreeSet<String>,
    /// Environment variables that look like settings but are not.
    pub strange_variables: Vec<String>,
}

impl Config {
    /// Returns the sample file, which documents every setting with its default.
    pub fn default_toml() -> &'static str {
        include_str!("../../config/abgauge.toml")
    }

    /// Returns the JSON Schema of that file.
    pub fn schema() -> serde_json::Value {
        schema::schema()
    }

    /// Returns the exported cut-offs.
    fn exported_ks(&self) -> &[NonZeroU32] {
        self.export.k.as_ref().unwrap_or(&self.measures.ks)
    }

    /// Returns the windows that at least one view shows.
    fn exported_windows(&self) -> impl Iterator<Item = &str> {
        let names = self.windows.iter().map(|window| window.name.as_str());
        let is_shown = |name: &&str| {
            let mut shown = self.export.live.iter().chain(&self.export.settled);
            shown.any(|shown| shown == name)
        };
        names.chain([TOTAL]).filter(is_shown)
    }

    /// Returns the window in which arms of experiments have intervals: the longest one that is a multiple of the time between
    /// looks.
    pub fn look_window(&self) -> Option<looks::CellWindow> {
        let windows = self.windows.iter();
        let windows = windows.map(|window| (&*window.name, window.span_ms));
        looks::CellWindow::longest(windows, looks::every_ms(self.join.slot_ms))
    }
}

/// Settings that decide how events count, and when experiments start and end. Commands that read files use only these.
#[derive(Debug, Clone, PartialEq)]
pub struct Counting {
    /// Shape of records. `None`: abgauge's own shape.
    pub events: Option<Shape>,
    pub join: Join,
    pub limits: Limits,
    pub measures: Measures,
    /// Ids of the metrics chosen by the operator, whatever the profiles define. `None` if the file does not choose.
    pub chosen_metrics: Option<Vec<&'static str>>,
    pub catalog: Option<PathBuf>,
    /// Available profiles: the built-in ones, then the operator's own.
    pub known_profiles: Vec<Profile>,
    /// Calendars of the experiments with a start, by name.
    pub schedules: BTreeMap<String, Schedule>,
}

/// Times of an experiment, Unix ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    pub start_ms: i64,
    /// Time of the planned look.
    pub planned_end_ms: Option<i64>,
}

impl Schedule {
    /// Returns the time that is this many days after the start, Unix ms.
    pub fn after_days(&self, days: f64) -> i64 {
        after_days(self.start_ms, days)
    }

    /// Reports whether the planned look comes before this many days have passed.
    pub fn ends_before(&self, days: f64) -> bool {
        self.planned_end_ms.is_some_and(|end| end < self.after_days(days))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Kafka {
    pub brokers: String,
    pub served_topic: String,
    /// Topic of clicks. Equal to `served_topic` if one topic carries both.
    pub clicks_topic: String,
    pub group_id: String,
    pub key: TopicKey,
    pub start: Start,
    pub dead_letter_topic: Option<String>,
    /// True if dead letters carry key and payload.
    pub dead_letter_payload: bool,
    /// Properties passed to librdkafka, including secrets. Neither `Debug` nor any message shows a value.
    pub properties: Properties,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ingest {
    /// Number of threads that share the partitions. `None`: one per core.
    pub workers: Option<NonZeroUsize>,
    /// Records to skip.
    pub skips: Skips,
}

impl Ingest {
    /// Returns the configured number of threads, or the parallelism that the system allows.
    pub fn n_workers(&self) -> usize {
        let n_cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.workers.map_or_else(n_cores, NonZeroUsize::get)
    }
}

/// Properties of librdkafka by name. `Debug` shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Properties(pub BTreeMap<String, String>);

impl std::fmt::Debug for Properties {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Key of both topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicKey {
    Request,
    User,
}

/// Start position when there is no stored state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Far enough back to fill the longest window.
    Rebuild,
    /// The whole log.
    Earliest,
}

/// Rules that assign clicks to lists. All times are in milliseconds of event time.
#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    /// A click counts up to this long after its list.
    pub attribution_ms: i64,
    /// A click counts from this long before its list.
    pub click_skew_ms: i64,
    /// A list with the same request id is a copy if its time is at most this far away.
    pub same_list_ms: i64,
    /// `events.served.gather`; 0 if a record is a whole list.
    pub gather_ms: i64,
    /// Maximum delay of an event behind the newest event of its topic partition.
    pub lateness_ms: i64,
    /// Maximum lead of an event over the timestamp of its record.
    pub max_future_ms: i64,
    /// Idle time at the end of a topic partition after which it no longer delays settling.
    pub idle_after_ms: i64,
    pub slot_ms: i64,
    pub max_items: u32,
    /// Maximum number of experiments per list.
    pub max_experiments: u32,
    /// Maximum number of lists per request id that a click counts for.
    pub max_lists_per_click: u32,
    /// Maximum number of distinct off-list items remembered per list.
    pub max_off_list: u32,
    pub hash_seed: u64,
    /// Key of the user hashes, derived from the setting `user_key` and the seed.
    pub user_key: UserKey,
    /// Ids that mean an unknown user.
    pub no_user: NoUser,
}

impl Join {
    /// Returns how long after its time a list settles, while events keep arriving.
    pub fn settle_after_ms(&self) -> i64 {
        let lists_ms = self.same_list_ms.max(self.click_skew_ms) + self.gather_ms;
        // A list is open for as long as a click or a copy may still belong to it.
        let open_ms = self.attribution_ms.max(lists_ms);
        open_ms + self.lateness_ms
    }

    /// Returns a decoder of abgauge's own shape with these settings.
    pub fn decoder(&self) -> Decoder {
        Decoder::new(self.hash_seed, self.max_items, self.max_experiments)
            .knowing_users_by(self.user_key)
            .without_users(self.no_user.clone())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowSpan {
    /// Value of the label `window`, as written by the operator.
    pub name: String,
    pub span_ms: i64,
}

/// Name of the window that never slides.
pub const TOTAL: &str = "total";

/// Maximum length of a list, and so the largest cut-off.
pub(crate) const LONGEST_LIST: u32 = 100_000;

/// Maximum number of cut-offs. Each is a column in every cell of every arm.
pub(crate) const MAX_CUT_OFFS: usize = 100;

/// Maximum number of later allocations per experiment. Each has its own sums.
pub(crate) const MAX_EPOCHS: usize = 1000;

/// Number of cells per window.
pub use abgauge_core::engine::window::N_CELLS;

impl WindowSpan {
    pub fn cell_ms(&self) -> i64 {
        self.span_ms / N_CELLS
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Maximum number of arms per partition. Further arms are folded into `__other__`.
    pub max_arms: u32,
    /// Maximum bytes of open lists and waiting clicks in all partitions. Records beyond it are shed.
    pub max_state_bytes: u64,
    /// Maximum bytes for shown items (coverage) of all arms. Arms beyond it have no coverage.
    pub max_coverage_bytes: u64,
    /// Maximum bytes of sums by user and of seen users, for all experiments and partitions. Beyond it the largest experiment is
    /// given up.
    pub max_statistics_bytes: u64,
    /// Share of unreadable records in a topic that is reported as a problem.
    pub max_invalid_share: f64,
    /// Share of late records that is a problem; likewise below for records from the future, duplicates and clicks without a
    /// list.
    pub max_late_share: f64,
    pub max_future_share: f64,
    pub max_duplicate_share: f64,
    pub max_unmatched_share: f64,
    /// Maximum share of one user in an arm's lists since the start.
    pub max_user_share: f64,
}

impl Limits {
    /// Returns the maximum bytes of settled data that waits to be stored, in all partitions. A pair that has used up its part
    /// of it is not read further.
    pub fn max_unsealed_bytes(&self) -> u64 {
        self.max_state_bytes / 8
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// Ids of the exported metrics.
    pub metrics: Vec<String>,
    /// Exported cut-offs. `None`: all of them.
    pub k: Option<Vec<NonZeroU32>>,
    /// Names of the windows with a live view, possibly including `total`.
    pub live: Vec<String>,
    /// Names of the windows with a view of settled lists.
    pub settled: Vec<String>,
    /// Names of the windows with a view of settled lists of all partitions, whichever instance owns them.
    pub global: Vec<String>,
    /// Ids of metrics exported with numerator and denominator, whatever the denominator.
    pub numerators: Vec<String>,
    /// True if looks also show metrics that are neither primary nor guardrail.
    pub secondary: bool,
    pub max_series: usize,
    /// Event time without a list after which an arm leaves the export.
    pub forget_after_ms: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Http {
    pub listen: SocketAddr,
    pub max_connections: usize,
    /// Timeout from accepting a connection to its request, including the TLS handshake, and for a request as a whole.
    pub timeout: Duration,
    /// Address of the page for readers' browsers, without a slash at its end, if it is known.
    pub public_url: Option<String>,
    /// Hosts served besides this machine. Empty: all hosts, unless the server listens on loopback.
    pub hosts: Vec<Host>,
    /// Origins whose pages may frame ours, in lower case. Empty: none.
    pub frame_ancestors: Vec<String>,
    /// TLS files. `None`: plain HTTP.
    pub tls: Option<TlsFiles>,
    pub access: Access,
}

/// Files with a certificate and its key in PEM. They may be the same file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate chain: the server's own first, then the intermediate ones.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Topic in which settled data survives the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTopic {
    pub topic: String,
    /// Interval between two writes of a pair.
    pub interval: Duration,
    /// Maximum average write rate of all pairs of this instance.
    pub max_bytes_per_second: u64,
}

/// Webhook called when the state of an arm changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Webhook {
    pub url: HttpUrl,
    /// File with the value of the header. `None`: no header is sent.
    pub secret_file: Option<PathBuf>,
    /// Name of the header.
    pub header: HeaderName,
    /// Timeout of one attempt, from the connection to the status of the response.
    pub timeout: Duration,
    /// Certificate authorities in PEM. `None`: the system's authorities.
    pub ca_file: Option<PathBuf>,
}

/// Encodings of the records in both topics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formats {
    /// Encoding of each topic, by `Side as usize`. A topic of both kinds has the first one.
    pub topics: [TopicFormat; 2],
    /// Registry of schemas. `None`: schemas are in files.
    pub registry: Option<Registry>,
}

/// Encoding of the records in a topic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicFormat {
    pub format: Format,
    /// Full name of the Protobuf message to read; others are ignored. `None`: each record says its own.
    pub message: Option<String>,
    pub framing: Framing,
    /// File with the schema. `None`: all schemas are in the registry.
    pub schema: Option<PathBuf>,
}

/// Schema registry with the API of Confluent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    /// Addresses, tried in turn; at least one.
    pub urls: Vec<HttpUrl>,
    pub credentials: Option<RegistryCredentials>,
    /// Set if a password is configured besides a token, which is used instead.
    pub has_unused_password: bool,
    /// Certificate authorities in PEM. `None`: the system's authorities.
    pub ca_file: Option<PathBuf>,
    /// Client certificate. `None`: the registry asks for none.
    pub identity: Option<TlsFiles>,
    /// Time limit of a request.
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryCredentials {
    Password {
        username: String,
        password_file: PathBuf,
    },
    /// File with a bearer token.
    Token(PathBuf),
}

#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// Filter for `tracing`, such as `info` or `abgauge=debug`.
    pub filter: String,
    pub format: LogFormat,
}
