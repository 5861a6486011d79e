//! `abgauge check`: findings about a configuration and its cluster, in the order in which to fix them.
//!
//! ```text
//! Config ──▶ doubts ─────────────────────────┐
//! cluster ──▶ inspect ──▶ Facts ──▶ judge ──▶ findings ──▶ lines, exit code
//! file ──▶ Records ──────────────────────────┘
//! ```

mod admission;
mod file_type;
mod judge;
mod records;
mod sample;
mod state;
mod suggest;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::sync::Arc;

use abgauge_core::engine::event::Side;
use abgauge_core::nouns::number_of;

use crate::clock::Clock;
use crate::serve::gauges::SeriesOfArm;
use crate::serve::secured;
use crate::serve::webhook;
use crate::settings::Config;
use crate::settings::catalogue_file::CatalogueFile;
use crate::stream::bounds::MemoryBounds;
use crate::stream::kafka::inspect::{Failure, Trouble, inspect};
use crate::stream::kafka::properties;
use crate::stream::kafka::topics::create_state_topic;
use crate::stream::schemas::{RegistryClient, Schemas};
pub use admission::{Admission, admission, unfit};
pub(crate) use judge::{no_records, no_way_in};
pub use records::Records;
pub use suggest::{Suggestion, TopicsSample, Unmapped, of_topics};

const CONFIGURATION: ResultLevel = ResultLevel::Error(CheckFailure::Configuration);
const UNAVAILABLE: ResultLevel = ResultLevel::Error(CheckFailure::Unavailable);

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub level: ResultLevel,
    /// Description of the finding.
    pub text: String,
    /// Remedy. Empty if nothing needs to be done or the text already names it.
    pub remedy: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultLevel {
    Ok,
    /// Useful information.
    Note,
    /// Numbers will be wrong or missing.
    Warning,
    /// The daemon cannot start.
    Error(CheckFailure),
}

/// Reason why the daemon cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckFailure {
    /// The configuration is invalid, here or on the brokers.
    Configuration,
    /// The brokers or the registry do not answer or deny access.
    Unavailable,
    /// Records of a sample cannot be read.
    Data,
}

impl Finding {
    pub(crate) fn new(level: ResultLevel, text: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding {
            level,
            text: text.into(),
            remedy: remedy.into(),
        }
    }

    /// Returns the finding as one sentence, including its remedy.
    pub fn reported(&self) -> String {
        match self.remedy.is_empty() {
            true => self.text.clone(),
            false => format!("{}; to fix it: {}", self.text, self.remedy),
        }
    }

    fn ok(text: impl Into<String>) -> Finding {
        Finding::new(ResultLevel::Ok, text, "")
    }

    /// Reports that a topic cannot be seen. `create` is the remedy if it does not exist, `grant` if the user has no right to see it.
    fn unseen(what: &str, failure: &Failure, create: &str, grant: &str) -> Finding {
        let detail = &failure.detail;
        match failure.trouble {
            Trouble::NoSuchTopic => Finding::new(CONFIGURATION, format!("{what} does not exist"), create),
            Trouble::TopicForbidden => Finding::new(
                CONFIGURATION,
                format!("no permission to see {what}: {detail}"),
                grant,
            ),
            _ => Finding::new(
                UNAVAILABLE,
                format!("the brokers do not answer about {what}: {detail}"),
                "check the brokers' logs",
            ),
        }
    }
}

/// Checks a parsed configuration, with `connect` also against its cluster. The first finding says whether a daemon can start. With
/// `verbose`, the bound on memory comes with its parts.
pub fn findings(config: &Config, connect: bool, verbose: bool) -> Vec<Finding> {
    let mut findings = offline(config, verbose);
    if connect {
        findings.extend(self::connect(config));
    }
    findings.insert(0, verdict(&findings));
    findings
}

/// Creates the topic of stored state unless it exists, and reports the result.
pub fn create_topics(config: &Config) -> Finding {
    let Some(state) = &config.state else {
        let text = "there is no topic to create, because no state is stored";
        return Finding::new(ResultLevel::Note, text, "set state.topic to the name of one");
    };
    let topic = &state.topic;
    match create_state_topic(&config.kafka, topic, &config.kafka.served_topic) {
        Ok(true) => Finding::ok(format!("the state topic `{topic}` was created")),
        Ok(false) => Finding::ok(format!(
            "the state topic `{topic}` already exists and was not changed"
        )),
        Err(error) => Finding::new(
            UNAVAILABLE,
            format!("the state topic `{topic}` could not be created: {error:#}"),
            "see the other messages about the brokers and the topics",
        ),
    }
}

/// Returns the first line of the report, which agrees with the exit code.
fn verdict(findings: &[Finding]) -> Finding {
    let is_fault = |finding: &&Finding| finding.level == CONFIGURATION;
    match findings.iter().filter(is_fault).count() {
        0 => Finding::ok("the configuration is valid"),
        n => Finding::new(
            ResultLevel::Note,
            format!("the settings can be read, but abgauge cannot start; errors to fix: {n}"),
            "",
        ),
    }
}

/// Runs all checks that need no cluster.
fn offline(config: &Config, verbose: bool) -> Vec<Finding> {
    let reported = |level| move |text| Finding::new(level, text, "");
    let doubts = config.warnings().into_iter().map(reported(ResultLevel::Warning));
    let notes = config.notes().into_iter().map(reported(ResultLevel::Note));
    [bounds(config, verbose), series(config)]
        .into_iter()
        .chain(doubts)
        .chain(notes)
        .chain(kafka_properties(config))
        .chain(catalogue(config))
        .chain(http_files(config))
        .chain(webhook_files(config))
        .chain(schema_files(config))
        .collect()
}

/// Estimates the memory that a daemon may use.
fn bounds(config: &Config, verbose: bool) -> Finding {
    let bounds = MemoryBounds::of(config);
    let text = match verbose {
        true => bounds.to_string(),
        false => format!("{} (-v lists the parts)", bounds.sum()),
    };
    Finding::new(ResultLevel::Note, text, "")
}

/// Counts the series exported to Prometheus.
fn series(config: &Config) -> Finding {
    let of_arm = SeriesOfArm::of(config);
    let parts = [
        (of_arm.own, "of its own partitions"),
        (of_arm.looks, "of the analyses of its experiment"),
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
    Finding::new(ResultLevel::Note, text, "")
}

/// Checks properties that the Kafka client refuses for any cluster.
fn kafka_properties(config: &Config) -> Vec<Finding> {
    let faults = properties::judge(&config.kafka).map_or_else(|refused| refused.faults, |()| Vec::new());
    let finding =
        |fault: properties::PropertyError| Finding::new(CONFIGURATION, fault.to_string(), fault.remedy);
    faults.into_iter().map(finding).collect()
}

/// Summarizes the catalogue, or reports why it cannot be used.
fn catalogue(config: &Config) -> Vec<Finding> {
    let Some(file) = CatalogueFile::of(config) else {
        return Vec::new();
    };
    match file.read(None) {
        Ok(catalogue) => {
            let shares = match catalogue.n_users() {
                0 => "no shares of users".to_owned(),
                n => format!("shares of {}", number_of(n, "user")),
            };
            let (n_items, n_aspects) = (catalogue.len(), catalogue.n_aspects());
            let read = Finding::ok(format!(
                "the catalogue can be read; items: {n_items}, aspects: {n_aspects}, {shares}"
            ));
            let remedy =
                "add them to the items of metrics.catalog, or remove these metrics from metrics.metrics";
            let lacks = catalogue.lacks(&config.measures.metrics).into_iter();
            let lacks = lacks.map(|lack| Finding::new(ResultLevel::Warning, lack, remedy));
            std::iter::once(read).chain(lacks).collect()
        }
        Err(fault) => vec![Finding::new(CONFIGURATION, fault.to_string(), fault.remedy)],
    }
}

/// Summarizes the files named under `[http]`, or reports why they cannot be used.
fn http_files(config: &Config) -> Option<Finding> {
    let http = &config.http;
    match secured::read(http) {
        Err(fault) => Some(Finding::new(CONFIGURATION, fault.to_string(), fault.remedy)),
        Ok((Some(identity), _)) => Some(match identity.doubt(Clock::system().now_ms()) {
            Some(doubt) => Finding::new(ResultLevel::Warning, identity.say(doubt), ""),
            None => Finding::ok(format!("the certificate of the HTTP server is {identity}")),
        }),
        Ok((None, Some(_))) => Some(Finding::ok("the credential files of the HTTP server can be read")),
        Ok((None, None)) => None,
    }
}

/// Checks the files named under `[webhook]`. No webhook is called.
fn webhook_files(config: &Config) -> Option<Finding> {
    let settings = config.webhook.as_ref()?;
    Some(match webhook::check(settings) {
        Ok(()) => Finding::ok(format!(
            "the webhook {} is called when a verdict changes; its files can be read",
            settings.url
        )),
        Err(fault) => Finding::new(CONFIGURATION, fault.to_string(), fault.remedy),
    })
}

/// Checks the files named under `[schemas]` and `[registry]`. No request is sent to the registry.
fn schema_files(config: &Config) -> Vec<Finding> {
    let formats = &config.formats;
    let opened = Schemas::open(config).and_then(|schemas| {
        let schemas = Arc::new(schemas);
        RegistryClient::open(&schemas)?;
        Ok(schemas)
    });
    let schemas = match opened {
        Ok(schemas) => schemas,
        Err(fault) => {
            return vec![Finding::new(CONFIGURATION, fault.to_string(), fault.remedy)];
        }
    };
    let mut findings = Vec::new();
    if let Some(registry) = &formats.registry {
        let urls: Vec<String> = registry.urls.iter().map(ToString::to_string).collect();
        findings.push(Finding::ok(format!(
            "[registry] is valid; only --connect asks the registry {}, for the schemas of the last records",
            urls.join(", ")
        )));
    } else if formats.topics.iter().any(|topic| topic.schema.is_some()) {
        findings.push(Finding::ok("the files of [schemas] can be read"));
    }
    for (setting, side) in [("schemas.served", Side::Served), ("schemas.click", Side::Clicks)] {
        if let Some((lacks, has)) = schemas.lacks_of_file(side) {
            let text = format!(
                "{setting} has no field at {}; it has {}",
                lacks.join(", "),
                has.join(", ")
            );
            findings.push(Finding::new(ResultLevel::Warning, text, sample::CORRECT_PATHS));
        }
    }
    findings
}

/// Inspects the cluster without changing it. Takes some seconds.
pub fn connect(config: &Config) -> Vec<Finding> {
    match inspect(config) {
        Ok(facts) => judge::cluster(config, &facts),
        Err(failure) => vec![judge::no_way_in(config, &failure)],
    }
}

/// Returns 0 without an error. Otherwise returns a code of sysexits.h: 78 (EX_CONFIG) if something must be fixed, 69
/// (EX_UNAVAILABLE) if the brokers or the registry do not answer, or 65 (EX_DATAERR) if records cannot be read.
pub fn exit_code(findings: &[Finding]) -> u8 {
    let has = |fault| {
        findings
            .iter()
            .any(|finding| finding.level == ResultLevel::Error(fault))
    };
    match () {
        () if has(CheckFailure::Configuration) => 78,
        () if has(CheckFailure::Unavailable) => 69,
        () if has(CheckFailure::Data) => 65,
        () => 0,
    }
}

/// Prints findings to standard output, in color on a terminal.
///
/// # Errors
/// If standard output is closed.
pub fn print(findings: &[Finding]) -> io::Result<()> {
    write(findings, &mut anstream::stdout().lock())
}

fn write(findings: &[Finding], out: &mut impl Write) -> io::Result<()> {
    for Finding { level, text, remedy } in findings {
        let (colour, word) = match level {
            ResultLevel::Ok => (32, "ok"),
            ResultLevel::Note => (36, "note"),
            ResultLevel::Warning => (33, "warning"),
            ResultLevel::Error(_) => (31, "error"),
        };
        // Continuation lines of a broker's message are indented below its first line.
        let indent = |text: &str| text.replace('\n', "\n         ");
        writeln!(out, "\x1b[{colour}m{word:<7}\x1b[0m  {}", indent(text))?;
        if !remedy.is_empty() {
            writeln!(out, "         → {}", indent(remedy))?;
        }
    }
    out.flush()
}
