//! `abgauge state verify`: what is not as it should be, in words, with what to do.

use std::process::ExitCode;

use super::Desk;
use crate::check::{self, CheckFailure, Finding, Level};
use crate::cli::VerifyArgs;
use crate::commands::written;
use crate::kafka::inspect::{Failure, LogSpan};
use crate::state::{Breach, Estate, Header, Namespace, Seal};
use crate::stored::{Contents, sides};

const DAMAGE: Level = Level::Error(CheckFailure::Data);
/// For what nobody can bring back.
const BEGIN_ANEW: &str =
    "to begin it anew with what the topics of events still hold, stop all instances and run";

pub fn verify(desk: &Desk, args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let reader = desk.read(desk.own, &args.reading)?;
    let topics = &desk.config.kafka;
    let names = [&topics.served_topic, &topics.clicks_topic];
    let logs: Vec<(&str, Result<Vec<LogSpan>, Failure>)> = names[..sides(&desk.config).len()]
        .iter()
        .map(|topic| (topic.as_str(), desk.survey.logs(topic)))
        .collect();
    let mut findings: Vec<Finding> = logs
        .iter()
        .filter_map(|(topic, logs)| of_topic(desk, topic, logs))
        .collect();
    let mut n_sealed = 0;
    for (partition, census) in reader.partitions() {
        let estate = census.of(desk.own);
        let of_pair = Judge {
            desk,
            partition,
            logs: &logs,
        };
        n_sealed += usize::from(estate.end().is_some_and(|end| end.seal.is_some()));
        findings.extend(of_pair.estate(&estate));
    }
    let is_sound = !findings.iter().any(|finding| finding.level == DAMAGE);
    findings.insert(0, verdict(desk, n_sealed, is_sound));
    written(check::print(&findings))?;
    Ok(if is_sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn verdict(desk: &Desk, n_sealed: usize, is_sound: bool) -> Finding {
    let Desk {
        topic,
        own,
        n_partitions,
        ..
    } = desk;
    let (level, what) = match (is_sound, n_sealed) {
        (true, 0) => (Level::Note, "nothing is sealed"),
        (true, _) => (Level::Ok, "what is sealed can be gone on with"),
        (false, _) => (Level::Note, "not all can be gone on with"),
    };
    Finding {
        level,
        text: format!(
            "state topic `{topic}`, namespace {own}: {what}; pairs that are sealed: {n_sealed} of {n_partitions}"
        ),
        remedy: String::new(),
    }
}

fn of_topic(desk: &Desk, topic: &str, logs: &Result<Vec<LogSpan>, Failure>) -> Option<Finding> {
    let n = desk.n_partitions;
    match logs {
        Ok(logs) if logs.len() == n.unsigned_abs() as usize => None,
        Ok(logs) => Some(Finding {
            level: DAMAGE,
            text: format!(
                "topic `{topic}` has {} partitions, the state topic {n}",
                logs.len()
            ),
            remedy: "create a state topic with as many under another name, and set state.topic to it"
                .to_owned(),
        }),
        Err(failure) => Some(Finding {
            level: Level::Warning,
            text: format!(
                "topic `{topic}` cannot be asked whether it still holds what would be read again: {}",
                failure.detail
            ),
            remedy: "run `abgauge check --connect`".to_owned(),
        }),
    }
}

/// Looks at one pair.
struct Judge<'a> {
    desk: &'a Desk,
    partition: i32,
    logs: &'a [(&'a str, Result<Vec<LogSpan>, Failure>)],
}

impl Judge<'_> {
    fn finding(&self, level: Level, text: &str, remedy: String) -> Finding {
        Finding {
            level,
            text: format!("partition {}: {text}", self.partition),
            remedy,
        }
    }

    fn damage(&self, text: &str) -> Finding {
        let remedy = format!(
            "{BEGIN_ANEW} `abgauge state forget --partition {}`",
            self.partition
        );
        self.finding(DAMAGE, text, remedy)
    }

    fn estate(&self, estate: &Estate) -> Vec<Finding> {
        let breaches = estate.breaches();
        let mut findings: Vec<Finding> = breaches.iter().map(|breach| self.breach(breach)).collect();
        let is_whole = !breaches
            .iter()
            .any(|breach| matches!(breach, Breach::Seal { .. } | Breach::Damage { .. }));
        let seal = estate.end().and_then(|end| end.seal?.1.ok());
        if let Some(seal) = seal.filter(|_| is_whole) {
            findings.extend(self.identity(&seal.header));
            findings.extend(self.contents(estate, &seal));
            findings.extend(self.reaches(&seal.header));
        }
        findings
    }

    fn breach(&self, breach: &Breach) -> Finding {
        let text = breach.to_string();
        match breach {
            Breach::Strange(_) => self.finding(DAMAGE, &text, "run the newer version of abgauge".to_owned()),
            Breach::TwoContents(_) | Breach::Back { .. } => {
                let remedy = "somebody else has written there, or this is a fault of abgauge: look who may write to the topic";
                self.finding(DAMAGE, &text, remedy.to_owned())
            }
            Breach::Seal { .. } | Breach::Damage { .. } => self.damage(&text),
            Breach::Claim { .. } => self.finding(Level::Warning, &text, "it claims all the same".to_owned()),
            Breach::Waits(_) => self.finding(
                Level::Note,
                &text,
                "if it stays so, its instance has ended or cannot write: start one, or see its log"
                    .to_owned(),
            ),
            Breach::Garbage(_) => self.finding(
                Level::Note,
                &text,
                "the owner of the pair collects it once its next seal is in force".to_owned(),
            ),
        }
    }

    /// Whose it is, by the words of the seal.
    fn identity(&self, header: &Header) -> Vec<Finding> {
        let Desk { config, own, .. } = self.desk;
        let identity = &header.identity;
        let mut findings = Vec::new();
        if Namespace::of(&identity.fingerprint, &config.kafka.group_id) != *own {
            findings.push(self.damage(&format!(
                "its seal is of other rules than its key: {}",
                identity.fingerprint
            )));
        }
        if i64::from(identity.n_partitions) != i64::from(self.desk.n_partitions) {
            findings.push(self.damage(&format!(
                "it was counted from topics of {} partitions",
                identity.n_partitions
            )));
        }
        let named: Vec<&str> = identity.topics.iter().map(|topic| topic.name.as_str()).collect();
        let ours: Vec<&str> = self.logs.iter().map(|(topic, _)| *topic).collect();
        if named != ours {
            let text =
                format!("it was counted from the topics {named:?}, and the configuration has {ours:?}");
            let remedy = "set kafka.served_topic and kafka.clicks_topic to those, or begin in another group (kafka.group_id)";
            findings.push(self.finding(DAMAGE, &text, remedy.to_owned()));
        }
        findings
    }

    fn contents(&self, estate: &Estate, seal: &Seal) -> Option<Finding> {
        let roles = estate.roles(seal).ok()?;
        match Contents::read(&seal.header, &roles, &self.desk.config) {
            Err(unusable) => Some(self.damage(&format!("what is sealed cannot be read: {unusable}"))),
            Ok(contents) if contents.ledger.overflowed() => Some(self.finding(
                Level::Warning,
                "a sum has exceeded 64 bits: its numbers are not exact",
                String::new(),
            )),
            Ok(_) if !seal.header.is_exact => Some(self.finding(
                Level::Warning,
                "events were shed: its numbers are not exact",
                "see limits.max_state".to_owned(),
            )),
            Ok(_) => None,
        }
    }

    /// Whether the topics still hold what would be read again.
    fn reaches(&self, header: &Header) -> Vec<Finding> {
        let index = self.partition.unsigned_abs() as usize;
        let of_topics = self.logs.iter().zip(&header.reaches);
        let found = of_topics.filter_map(|((topic, logs), reach)| {
            let LogSpan { low, high } = *logs.as_ref().ok()?.get(index)?;
            let (from, to) = (reach.resume_offset, reach.read_position);
            let why = if from < low {
                "what lies between was deleted (retention.ms, retention.bytes)"
            } else if to > high {
                "it was made anew, or truncated"
            } else {
                return None;
            };
            Some(self.damage(&format!(
                "topic `{topic}` was read up to {to} and is to be read again from {from}, and has offsets {low} to {high}: {why}"
            )))
        });
        found.collect()
    }
}
