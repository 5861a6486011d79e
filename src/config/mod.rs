//! What the program believes of its settings: checked, in units.
//!
//! ```text
//! file ──▶ layers ──▶ Raw ──▶ validate ──▶ Config
//! environment ─┘                 └──▶ ConfigErrors: all of them, each with its line and what to write
//! ```

pub(crate) mod access;
mod derived;
mod error;
mod experiment;
pub(crate) mod files;
mod fingerprint;
mod hosts;
mod http_url;
mod in_force;
mod layers;
mod load;
mod paths;
mod properties;
mod raw;
mod redact;
mod rules;
mod sample;
mod schema;
mod strangers;
mod take_over;
#[cfg(test)]
mod tests;
mod units;
mod validate;
mod warnings;

pub use crate::looks::{EpochStart, Experiment};
pub use access::{Access, TokenHash, User};
pub(crate) use derived::event_settings;
pub(crate) use error::nearest;
pub use error::{ConfigError, ConfigErrors, Location, SourcedError};
pub use files::UnusableFile;
pub use hosts::Host;
pub use http_url::HttpUrl;
pub use in_force::InForce;
use in_force::bare_or_quoted;
pub use load::{
    check_flags, environment, in_force, load, load_counting, load_http, load_text, load_with_origins,
};
pub(crate) use properties::{USUAL, shown_name};
#[cfg(test)]
pub(crate) use strangers::OF_COMMANDS;
pub use take_over::{Loaded, SettingChanges};
pub(crate) use units::display_ms;
pub use units::{parse_size, parse_span_ms};
pub use validate::{parse_brokers, parse_topic};

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use hyper::header::HeaderName;

use crate::engine::ranking::{Measures, Profile};
use crate::ingest::skips::Skips;
use crate::ingest::wire::shape::Shape;
use crate::ingest::wire::{Decoder, NoUser, UserKey};
use crate::looks;

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub kafka: Kafka,
    pub ingest: Ingest,
    /// How records are read; `None`: they are of our own shape.
    pub events: Option<Shape>,
    pub join: Join,
    /// Which metrics, by which profiles, at which cut-offs.
    pub measures: Measures,
    /// The file that lists the items of the catalogue.
    pub catalog: Option<PathBuf>,
    /// Sliding windows, ascending; `total` is always kept as well.
    pub windows: Vec<WindowSpan>,
    pub limits: Limits,
    /// None: a start rebuilds what it shows from the log.
    pub state: Option<StateTopic>,
    /// All partitions are shown as well, whoever holds them.
    pub global: bool,
    pub export: Export,
    pub http: Http,
    /// None: nobody is told of changes.
    pub webhook: Option<Webhook>,
    pub log: LogConfig,
    /// By name.
    pub experiments: BTreeMap<String, Experiment>,
    /// Experiments with a control that name no primary metric, so that one was taken.
    pub without_primary: BTreeSet<String>,
    /// Variables of the environment that look like settings and are none.
    pub strange_variables: Vec<String>,
}

impl Config {
    /// The sample file, which documents every setting with its default.
    pub fn default_toml() -> &'static str {
        include_str!("../../config/abgauge.toml")
    }

    /// A JSON Schema of that file.
    pub fn schema() -> serde_json::Value {
        schema::schema()
    }

    /// The window in which arms of experiments have intervals: the longest one that consists of whole spans between looks.
    pub fn look_window(&self) -> Option<looks::Window> {
        let windows = self.windows.iter();
        let windows = windows.map(|window| (&*window.name, window.span_ms));
        looks::Window::longest(windows, looks::every_ms(self.join.slot_ms))
    }
}

/// What decides how events count: the part of a configuration that an evaluation of files goes by.
#[derive(Debug, Clone, PartialEq)]
pub struct Counting {
    /// How records are read; `None`: they are of our own shape.
    pub events: Option<Shape>,
    pub join: Join,
    pub limits: Limits,
    pub measures: Measures,
    /// Ids of the metrics that the operator chose, whatever the profiles define; none where nothing was said of them.
    pub chosen_metrics: Option<Vec<&'static str>>,
    pub catalog: Option<PathBuf>,
    /// Every profile that may be named: those that come with abgauge, then the operator's own.
    pub known_profiles: Vec<Profile>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Kafka {
    pub brokers: String,
    pub served_topic: String,
    /// The same as `served_topic` where one topic carries both.
    pub clicks_topic: String,
    pub group_id: String,
    pub key: TopicKey,
    pub start: Start,
    pub dead_letter_topic: Option<String>,
    /// Whether dead letters carry key and payload.
    pub dead_letter_payload: bool,
    /// Passed through to librdkafka, secrets included. Neither `Debug` nor any message shows a value.
    pub properties: Properties,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ingest {
    /// Threads that partitions are spread over; `None`: one for each core.
    pub workers: Option<NonZeroUsize>,
    /// Records that are left out.
    pub skips: Skips,
}

impl Ingest {
    /// As many threads as are set, or as the system lets us use at once.
    pub fn n_workers(&self) -> usize {
        let n_cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.workers.map_or_else(n_cores, NonZeroUsize::get)
    }
}

/// librdkafka properties by name; its `Debug` shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Properties(pub BTreeMap<String, String>);

impl std::fmt::Debug for Properties {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What both topics are keyed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicKey {
    Request,
    User,
}

/// Where a start without stored state begins to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// As far back as the longest window needs.
    Rebuild,
    /// The whole log.
    Earliest,
}

/// What decides which click belongs to which list. All times in milliseconds of event time.
#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    /// A click counts up to this long after its list.
    pub attribution_ms: i64,
    /// A click counts from this long before its list.
    pub click_skew_ms: i64,
    /// A list of the same request id and a time no farther away is a copy.
    pub same_list_ms: i64,
    /// How far behind the newest event of its topic partition an event may come.
    pub lateness_ms: i64,
    /// How far ahead of its record's timestamp an event may be.
    pub max_future_ms: i64,
    /// After this long at its end a topic partition no longer holds up settling.
    pub idle_after_ms: i64,
    pub slot_ms: i64,
    pub max_items: u32,
    /// Experiments that a list may be in.
    pub max_experiments: u32,
    /// Lists of its request id that a click counts for.
    pub max_lists_per_click: u32,
    /// Distinct off-list items remembered for each list.
    pub max_off_list: u32,
    pub hash_seed: u64,
    /// Of `user_key` and the seed.
    pub user_key: UserKey,
    /// Ids that mean that a user is not known.
    pub no_user: NoUser,
}

impl Join {
    /// How long after its time a list settles, in a stream that goes on.
    pub fn settle_after_ms(&self) -> i64 {
        let open_ms = self.attribution_ms.max(self.same_list_ms).max(self.click_skew_ms);
        open_ms + self.lateness_ms
    }

    /// What reads records by these settings, in our own shape.
    pub fn decoder(&self) -> Decoder {
        Decoder::new(self.hash_seed, self.max_items, self.max_experiments)
            .knowing_users_by(self.user_key)
            .without_users(self.no_user.clone())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowSpan {
    /// The value of the label `window`, as the operator wrote it.
    pub name: String,
    pub span_ms: i64,
}

/// The name of the window that never slides.
pub const TOTAL: &str = "total";

/// Items of the longest list that can be allowed, and so the largest cut-off.
pub(crate) const LONGEST_LIST: u32 = 100_000;

/// Most cut-offs: each of them is a column of every cell of every arm.
pub(crate) const MAX_CUT_OFFS: usize = 100;

/// Most later allocations of an experiment: each of them has sums of its own.
pub(crate) const MAX_EPOCHS: usize = 1000;

/// Cells of a window.
pub use crate::engine::window::N_CELLS;

impl WindowSpan {
    pub fn cell_ms(&self) -> i64 {
        self.span_ms / N_CELLS
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Arms that a partition admits; further ones are folded into `__other__`.
    pub max_arms: u32,
    /// Bytes of open lists and waiting clicks, all partitions together. Beyond it records are shed.
    pub max_state_bytes: u64,
    /// Bytes of what coverage remembers of shown items, all arms together. Arms beyond it have no coverage.
    pub max_coverage_bytes: u64,
    /// Bytes of sums by user and of users that were seen, all experiments and partitions together. Beyond it the experiment that
    /// takes most is given up.
    pub max_statistics_bytes: u64,
    /// Share of the records of a topic that may be unreadable before it is reported as a problem.
    pub max_invalid_share: f64,
    /// The same of late records, of those from the future, of duplicates, and of clicks without a list.
    pub max_late_share: f64,
    pub max_future_share: f64,
    pub max_duplicate_share: f64,
    pub max_unmatched_share: f64,
    /// Share of an arm's lists since the start that one user may have.
    pub max_user_share: f64,
}

impl Limits {
    /// Bytes of what has settled and waits to be stored, all partitions together. A pair that has its share of them is read no further.
    pub fn max_unsealed_bytes(&self) -> u64 {
        self.max_state_bytes / 8
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// Metric ids.
    pub metrics: Vec<String>,
    /// `None`: every k of the metrics.
    pub k: Option<Vec<NonZeroU32>>,
    /// Names of the windows that are shown live, `total` among them.
    pub live: Vec<String>,
    /// The same of settled lists.
    pub settled: Vec<String>,
    /// The same of settled lists of all partitions, whoever holds them.
    pub global: Vec<String>,
    /// Metric ids that are shown with numerator and denominator, whatever they divide by.
    pub numerators: Vec<String>,
    /// Whether looks also show metrics that are neither primary nor guardrail.
    pub secondary: bool,
    pub max_series: usize,
    /// An arm without a list for this long (event time) leaves the export.
    pub forget_after_ms: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Http {
    pub listen: SocketAddr,
    pub max_connections: usize,
    /// From accepting a connection to its request, the handshake of TLS included; and for a request as a whole.
    pub timeout: Duration,
    /// Hosts that it answers for besides this machine. Empty: all hosts, unless it listens on loopback.
    pub hosts: Vec<Host>,
    /// `None`: plain HTTP.
    pub tls: Option<TlsFiles>,
    pub access: Access,
}

/// Where the server's certificate and its key lie, in PEM; they may be one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's own certificate first, then those between it and the authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Where what is settled outlives a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTopic {
    pub topic: String,
    /// Each pair is stored so often.
    pub interval: Duration,
    /// All pairs of this instance together write no more, in the long run.
    pub max_bytes_per_second: u64,
}

/// Whom to tell when the state of an arm changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Webhook {
    pub url: HttpUrl,
    /// The file that holds the value of the header. `None`: the header is not sent.
    pub secret_file: Option<PathBuf>,
    /// Its name.
    pub header: HeaderName,
    /// For one attempt, from the connection to the status of the answer.
    pub timeout: Duration,
    /// Authorities in PEM. `None`: those of the system.
    pub ca_file: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// A `tracing` filter, such as `info` or `abgauge=debug`.
    pub filter: String,
    pub format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    Text,
    Json,
}
