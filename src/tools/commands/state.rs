//! `abgauge state`: shows, verifies, exports or deletes stored state.

mod export;
mod forget;
mod judge;
mod show;

use std::process::ExitCode;

use abgauge_core::journal::Namespace;
use anyhow::Context as _;

use super::{error, refuse};
use crate::clock::Clock;
use crate::settings::{self, Config, StateTopic};
use crate::store::topic_reader::TopicReader;
use crate::stream::kafka::inspect::{Failure, Survey, Trouble};
use crate::stream::kafka::state_log::StateLog;
use crate::tools::check::{self, CheckFailure, Finding, ResultLevel};
use crate::tools::cli::{ReadingArgs, StateArgs, StateCommand};

/// Runs a subcommand on the state topic.
///
/// # Errors
/// If a topic cannot be read in time, librdkafka refuses a property, or the answer cannot be written.
pub fn state(args: &StateArgs) -> anyhow::Result<ExitCode> {
    let reading = match &args.command {
        StateCommand::Show(args) => &args.reading,
        StateCommand::Verify(args) => &args.reading,
        StateCommand::Export(args) => &args.reading,
        StateCommand::Forget(args) => &args.reading,
    };
    let config = match settings::load(reading.config.config.as_deref(), settings::environment()) {
        Ok(config) => config,
        Err(errors) => return Ok(refuse(&errors)),
    };
    let Some(stored) = config.state.clone() else {
        error(&match &reading.config.config {
            Some(path) => format!("no state is stored: set state.topic in {}", path.display()),
            None => "no state is stored: use --config with a configuration that sets state.topic".to_owned(),
        });
        return Ok(ExitCode::from(super::BAD_CONFIGURATION));
    };
    let desk = match OpenedTopic::open(config, stored) {
        Ok(desk) => desk,
        Err(finding) => return Ok(ended(&finding)),
    };
    match &args.command {
        StateCommand::Show(args) => show::show(&desk, args),
        StateCommand::Verify(args) => judge::verify(&desk, args),
        StateCommand::Export(args) => export::export(&desk, args),
        StateCommand::Forget(args) => forget::forget(&desk, args),
    }
}

/// Reports on standard error why there is nothing to read, and returns the exit code.
fn ended(finding: &Finding) -> ExitCode {
    error(&format!("{}: {}", finding.text, finding.remedy));
    ExitCode::from(check::exit_code(std::slice::from_ref(finding)))
}

/// An existing state topic, and the configuration for reading it.
struct OpenedTopic {
    config: Config,
    topic: String,
    /// Namespace of the configuration.
    own: Namespace,
    survey: Survey,
    n_partitions: i32,
    clock: Clock,
}

impl OpenedTopic {
    fn open(config: Config, StateTopic { topic, .. }: StateTopic) -> Result<OpenedTopic, Finding> {
        let away = |failure: &Failure| unreachable(&config, &topic, failure);
        let survey = Survey::new(&config.kafka).map_err(|failure| away(&failure))?;
        let n_partitions = survey.n_partitions(&topic).map_err(|failure| away(&failure))?;
        Ok(OpenedTopic {
            own: Namespace::of(&config.fingerprint(), &config.kafka.group_id),
            n_partitions: n_partitions.get().cast_signed(),
            survey,
            clock: Clock::system(),
            topic,
            config,
        })
    }

    /// Reads the whole topic to its end. Deletions are limited to this namespace.
    fn read(&self, namespace: Namespace, reading: &ReadingArgs) -> anyhow::Result<TopicReader<StateLog>> {
        let log = StateLog::start(&self.config.kafka, &self.topic, namespace, self.clock.clone())?;
        let mut reader = TopicReader::new(log, self.n_partitions, self.clock.clone());
        let read = reader.read(reading.timeout);
        read.with_context(|| format!("read the state topic `{}` (--timeout)", self.topic))?;
        Ok(reader)
    }
}

fn unreachable(config: &Config, topic: &str, failure: &Failure) -> Finding {
    let reported = |failed, text, remedy: &str| Finding {
        level: ResultLevel::Error(failed),
        text,
        remedy: remedy.to_owned(),
    };
    match failure.trouble {
        Trouble::NoSuchTopic => reported(
            CheckFailure::Configuration,
            format!("the state topic `{topic}` does not exist"),
            "`abgauge check --create-topics` creates it",
        ),
        Trouble::TopicForbidden => reported(
            CheckFailure::Configuration,
            format!(
                "no permission to see the state topic `{topic}`: {}",
                failure.detail
            ),
            "grant the user READ and DESCRIBE on it, and WRITE for `abgauge state forget`",
        ),
        _ => check::no_way_in(config, failure),
    }
}

/// Formats Unix ms as a timestamp.
fn time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |time| time.to_string())
}
