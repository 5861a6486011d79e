//! `abgauge check`: what an operator should know before a start, in the order in which to fix it.
//!
//! ```text
//! Config ──▶ doubts ─────────────────────────┐
//! cluster ──▶ inspect ──▶ Facts ──▶ judge ──▶ findings ──▶ lines, exit code
//! file ──▶ Records ──────────────────────────┘
//! ```

mod admission;
mod form;
mod judge;
mod records;
mod sample;
mod state;
mod suggest;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use crate::bounds::Bounds;
use crate::catalogue_file::CatalogueFile;
use crate::clock::Clock;
use crate::config::Config;
use crate::export::gauges::SeriesOfArm;
use crate::export::secured;
use crate::kafka::inspect::inspect;
use crate::kafka::properties;
use crate::kafka::topics::create_state_topic;
use crate::webhook;
pub use admission::{Admission, admission, unfit};
pub(crate) use judge::no_way_in;
pub use records::Records;
pub use suggest::{Suggestion, Unmapped};

/// Something that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub level: Level,
    /// What is so.
    pub text: String,
    /// What to do about it; empty where nothing is to be done, or the text says it.
    pub remedy: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Ok,
    /// Good to know.
    Note,
    /// Numbers will be wrong or missing.
    Warning,
    /// A start cannot work.
    Error(CheckFailure),
}

/// Whose turn it is where a start cannot work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckFailure {
    /// The configuration, here or on the brokers, must be fixed.
    Configuration,
    /// The brokers do not answer, or do not let us in.
    Unavailable,
    /// Records of a sample cannot be read.
    Data,
}

impl Finding {
    fn new(level: Level, text: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding {
            level,
            text: text.into(),
            remedy: remedy.into(),
        }
    }

    /// In a sentence.
    pub fn told(&self) -> String {
        match self.remedy.is_empty() {
            true => self.text.clone(),
            false => format!("{}; to mend it: {}", self.text, self.remedy),
        }
    }

    fn ok(text: impl Into<String>) -> Finding {
        Finding::new(Level::Ok, text, "")
    }
}

/// All that can be said of a configuration that can be read, and whether a daemon can be started with it; with `connect` also
/// what its cluster says.
pub fn findings(config: &Config, connect: bool) -> Vec<Finding> {
    let mut findings = offline(config);
    if connect {
        findings.extend(self::connect(config));
    }
    findings.insert(0, verdict(&findings));
    findings
}

/// Creates the topic of stored state, unless it exists, and says what became of that.
pub fn create_topics(config: &Config) -> Finding {
    let Some(state) = &config.state else {
        let text = "no topic is to be created, since nothing is stored";
        return Finding::new(Level::Note, text, "set state.topic to the name of one");
    };
    let topic = &state.topic;
    match create_state_topic(&config.kafka, topic, &config.kafka.served_topic) {
        Ok(true) => Finding::ok(format!("the state topic `{topic}` was created")),
        Ok(false) => Finding::ok(format!("the state topic `{topic}` exists, and was left as it is")),
        Err(error) => Finding::new(
            Level::Error(CheckFailure::Unavailable),
            format!("the state topic `{topic}` could not be created: {error:#}"),
            "see what else is said of the brokers and of the topics",
        ),
    }
}

/// What is said first agrees with the exit code.
fn verdict(findings: &[Finding]) -> Finding {
    let is_fault = |finding: &&Finding| finding.level == Level::Error(CheckFailure::Configuration);
    match findings.iter().filter(is_fault).count() {
        0 => Finding::ok("the configuration is valid"),
        n => Finding::new(
            Level::Note,
            format!("the settings can be read, but a start cannot work; errors to be fixed: {n}"),
            "",
        ),
    }
}

/// What can be said without a cluster.
fn offline(config: &Config) -> Vec<Finding> {
    let told = |level| move |text| Finding::new(level, text, "");
    let doubts = config.warnings().into_iter().map(told(Level::Warning));
    let notes = config.notes().into_iter().map(told(Level::Note));
    [bounds(config), series(config)]
        .into_iter()
        .chain(doubts)
        .chain(notes)
        .chain(kafka_properties(config))
        .chain(catalogue(config))
        .chain(http_files(config))
        .chain(webhook_files(config))
        .collect()
}

/// How much memory a start may come to take.
fn bounds(config: &Config) -> Finding {
    Finding::new(Level::Note, Bounds::of(config).to_string(), "")
}

/// How many series Prometheus is given.
fn series(config: &Config) -> Finding {
    let of_arm = SeriesOfArm::of(config);
    let parts = [
        (of_arm.own, "of its own partitions"),
        (of_arm.looks, "of the looks at its experiment"),
        (of_arm.global, "of all partitions ([global])"),
    ];
    let parts = parts.iter().filter(|(n, _)| *n > 0);
    let parts: Vec<String> = parts.map(|(n, what)| format!("{n} {what}")).collect();
    let parts = match &parts[..] {
        [_] => String::new(),
        several => format!(": {}", several.join(", ")),
    };
    let (n, max) = (of_arm.sum(), config.export.max_series);
    let text = format!(
        "a scrape has up to {n} series for each arm ([export]){parts}; there is room for {} such arms (export.max_series)",
        max / n,
    );
    Finding::new(Level::Note, text, "")
}

/// What the Kafka client refuses, whatever brokers there are.
fn kafka_properties(config: &Config) -> Vec<Finding> {
    let faults = properties::judge(&config.kafka).map_or_else(|refused| refused.faults, |()| Vec::new());
    let finding = |fault: properties::PropertyError| {
        let level = Level::Error(CheckFailure::Configuration);
        Finding::new(level, fault.to_string(), fault.remedy)
    };
    faults.into_iter().map(finding).collect()
}

/// What the catalogue holds and lacks, or why it cannot be used.
fn catalogue(config: &Config) -> Vec<Finding> {
    let Some(file) = CatalogueFile::of(config) else {
        return Vec::new();
    };
    match file.read(None) {
        Ok(catalogue) => {
            let shares = match catalogue.n_users() {
                0 => "no shares of users".to_owned(),
                n => format!("shares of {n} users"),
            };
            let (n_items, n_aspects) = (catalogue.len(), catalogue.n_aspects());
            let read = Finding::ok(format!(
                "the catalogue can be read; items: {n_items}, aspects: {n_aspects}, {shares}"
            ));
            let remedy =
                "add them to the items of metrics.catalog, or leave these metrics out of metrics.metrics";
            let lacks = catalogue.lacks(&config.measures.metrics).into_iter();
            let lacks = lacks.map(|lack| Finding::new(Level::Warning, lack, remedy));
            std::iter::once(read).chain(lacks).collect()
        }
        Err(fault) => vec![Finding::new(
            Level::Error(CheckFailure::Configuration),
            fault.to_string(),
            fault.remedy,
        )],
    }
}

/// What the files of `[http]` hold, or why they cannot be used.
fn http_files(config: &Config) -> Option<Finding> {
    let http = &config.http;
    match secured::read(http) {
        Err(fault) => Some(Finding::new(
            Level::Error(CheckFailure::Configuration),
            fault.to_string(),
            fault.remedy,
        )),
        Ok((Some(identity), _)) => Some(match identity.doubt(Clock::system().now_ms()) {
            Some(doubt) => Finding::new(Level::Warning, identity.say(doubt), ""),
            None => Finding::ok(format!("the certificate of the HTTP server is {identity}")),
        }),
        Ok((None, Some(_))) => Some(Finding::ok(
            "the files of who may ask the HTTP server can be read",
        )),
        Ok((None, None)) => None,
    }
}

/// Whether a webhook could be told with the files of `[webhook]`; nobody is told.
fn webhook_files(config: &Config) -> Option<Finding> {
    let settings = config.webhook.as_ref()?;
    Some(match webhook::check(settings) {
        Ok(()) => Finding::ok(format!(
            "changes of verdicts are told to {}; its files can be read",
            settings.url
        )),
        Err(fault) => Finding::new(
            Level::Error(CheckFailure::Configuration),
            fault.to_string(),
            fault.remedy,
        ),
    })
}

/// What the cluster says. It is only read; takes some seconds.
pub fn connect(config: &Config) -> Vec<Finding> {
    match inspect(config) {
        Ok(facts) => judge::cluster(config, &facts),
        Err(failure) => vec![judge::no_way_in(config, &failure)],
    }
}

/// 0 without an error; else, as sysexits.h has it, 78 (EX_CONFIG) where something must be fixed, 69 (EX_UNAVAILABLE)
/// where the brokers cannot be asked, or 65 (EX_DATAERR) where records cannot be read.
pub fn exit_code(findings: &[Finding]) -> u8 {
    let has = |fault| {
        findings
            .iter()
            .any(|finding| finding.level == Level::Error(fault))
    };
    match () {
        () if has(CheckFailure::Configuration) => 78,
        () if has(CheckFailure::Unavailable) => 69,
        () if has(CheckFailure::Data) => 65,
        () => 0,
    }
}

/// Prints findings to standard output, in colour on a terminal.
///
/// # Errors
/// Standard output is gone.
pub fn print(findings: &[Finding]) -> io::Result<()> {
    write(findings, &mut anstream::stdout().lock())
}

fn write(findings: &[Finding], out: &mut impl Write) -> io::Result<()> {
    for Finding { level, text, remedy } in findings {
        let (colour, word) = match level {
            Level::Ok => (32, "ok"),
            Level::Note => (36, "note"),
            Level::Warning => (33, "warning"),
            Level::Error(_) => (31, "error"),
        };
        // The brokers' words may have lines; ours go below each other.
        let indent = |text: &str| text.replace('\n', "\n         ");
        writeln!(out, "\x1b[{colour}m{word:<7}\x1b[0m  {}", indent(text))?;
        if !remedy.is_empty() {
            writeln!(out, "         → {}", indent(remedy))?;
        }
    }
    out.flush()
}
