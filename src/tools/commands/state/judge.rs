//! `abgauge state verify`: reports problems of stored state and their remedies.

use std::process::ExitCode;

use abgauge_core::journal::{Breach, Header, LogIdentity, Namespace, NamespaceContents, RecordError, Seal};
use abgauge_core::nouns::number_of;

use super::OpenedTopic;
use crate::settings::Config;
use crate::store::stored::{DecodedState, sides};
use crate::stream::kafka::inspect::{Failure, LogSpan};
use crate::tools::check::{self, CheckFailure, Finding, ResultLevel};
use crate::tools::cli::VerifyArgs;
use crate::tools::commands::written;

const DAMAGE: ResultLevel = ResultLevel::Error(CheckFailure::Data);
/// Remedy for records that another program has written.
const DELETE_KEY: &str =
    "delete that key with a record without a value, and check which users may write to the topic";
/// Remedy for data that cannot be recovered.
const BEGIN_ANEW: &str =
    "to count it again from the records that the event topics still have, stop all instances and run";

pub fn verify(desk: &OpenedTopic, args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let reader = desk.read(desk.own, &args.reading)?;
    let topics = &desk.config.kafka;
    let names = [&*topics.served_topic, &*topics.clicks_topic];
    let names = &names[..sides(&desk.config).len()];
    let logs: Vec<(&str, Result<Vec<LogSpan>, Failure>)> = names
        .iter()
        .map(|topic| (*topic, desk.survey.logs(topic)))
        .collect();
    // If the brokers do not return the IDs, they do not return the logs either, which is reported.
    let ids = desk.survey.ids(names).unwrap_or_else(|_| vec![0; names.len()]);
    let mut findings: Vec<Finding> = logs
        .iter()
        .filter_map(|(topic, logs)| of_topic(desk, topic, logs))
        .collect();
    findings.extend(unfit(desk));
    let mut n_sealed = 0;
    for (partition, namespace_contents) in reader.contents(desk.own) {
        let of_pair = Judge {
            config: &desk.config,
            own: desk.own,
            n_partitions: desk.n_partitions,
            partition,
            logs: &logs,
            ids: &ids,
        };
        n_sealed += usize::from(namespace_contents.end().is_some_and(|end| end.seal.is_some()));
        findings.extend(of_pair.namespace_contents(namespace_contents));
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

fn verdict(desk: &OpenedTopic, n_sealed: usize, is_sound: bool) -> Finding {
    let OpenedTopic {
        topic,
        own,
        n_partitions,
        ..
    } = desk;
    let (level, what) = match (is_sound, n_sealed) {
        (true, 0) => (ResultLevel::Note, "nothing is sealed"),
        (true, _) => (ResultLevel::Ok, "all sealed state can be resumed"),
        (false, _) => (ResultLevel::Note, "some state cannot be resumed"),
    };
    Finding {
        level,
        text: format!(
            "state topic `{topic}`, namespace {own}: {what}; sealed pairs: {n_sealed} of {n_partitions}"
        ),
        remedy: String::new(),
    }
}

/// Finds the setting of the state topic that a start would refuse.
fn unfit(desk: &OpenedTopic) -> Option<Finding> {
    let n_partitions = desk.n_partitions.unsigned_abs();
    let finding = check::unfit(&desk.config, &desk.survey.state(&desk.topic), n_partitions)??;
    Some(Finding {
        level: DAMAGE,
        ..finding
    })
}

fn of_topic(desk: &OpenedTopic, topic: &str, logs: &Result<Vec<LogSpan>, Failure>) -> Option<Finding> {
    let n = desk.n_partitions;
    match logs {
        Ok(logs) if logs.len() == n.unsigned_abs() as usize => None,
        Ok(logs) => Some(Finding {
            level: DAMAGE,
            text: format!(
                "topic `{topic}` has {}, the state topic {n}",
                number_of(logs.len(), "partition")
            ),
            remedy: "create a state topic with the same number under another name, and set state.topic to it"
                .to_owned(),
        }),
        Err(failure) => Some(Finding {
            level: ResultLevel::Warning,
            text: format!(
                "cannot check whether topic `{topic}` still holds the records that a restart would read: {}",
                failure.detail
            ),
            remedy: "run `abgauge check --connect`".to_owned(),
        }),
    }
}

/// Checker of one pair.
struct Judge<'a> {
    config: &'a Config,
    own: Namespace,
    n_partitions: i32,
    partition: i32,
    logs: &'a [(&'a str, Result<Vec<LogSpan>, Failure>)],
    /// IDs of the same topics, or 0 if unknown.
    ids: &'a [u128],
}

impl Judge<'_> {
    fn finding(&self, level: ResultLevel, text: &str, remedy: String) -> Finding {
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

    fn namespace_contents(&self, namespace_contents: &NamespaceContents) -> Vec<Finding> {
        let breaches = namespace_contents.breaches();
        let mut findings: Vec<Finding> = breaches.iter().map(|breach| self.breach(breach)).collect();
        // The content is only checked if the seal and all its blobs can be read.
        let is_whole = !breaches
            .iter()
            .any(|breach| matches!(breach, Breach::Seal { .. } | Breach::Damage { .. }));
        let seal = namespace_contents.end().and_then(|end| end.seal?.1.ok());
        if let Some(seal) = seal.filter(|_| is_whole) {
            findings.extend(self.identity(&seal.header));
            findings.extend(self.contents(namespace_contents, &seal));
            findings.extend(self.reaches(&seal.header));
        }
        findings
    }

    fn breach(&self, breach: &Breach) -> Finding {
        let text = breach.to_string();
        match breach {
            Breach::Newer(_) => self.finding(DAMAGE, &text, "run the newer version of abgauge".to_owned()),
            Breach::Malformed(_) => self.finding(ResultLevel::Warning, &text, DELETE_KEY.to_owned()),
            Breach::Unsurpassable(_) => {
                self.finding(DAMAGE, &text, format!("{DELETE_KEY}: no totals are lost then"))
            }
            Breach::TwoContents(_) | Breach::Back { .. } => {
                let remedy = "another program has written there, or this is a bug in abgauge: check who may write to the topic";
                self.finding(DAMAGE, &text, remedy.to_owned())
            }
            Breach::Seal {
                error: RecordError::Version(_),
                ..
            } => {
                let remedy = "run the newer version of abgauge that wrote it, and delete nothing";
                self.finding(DAMAGE, &text, remedy.to_owned())
            }
            Breach::Seal { .. } | Breach::Damage { .. } => self.damage(&text),
            Breach::Claim { .. } => self.finding(
                ResultLevel::Warning,
                &text,
                "its claim is valid all the same".to_owned(),
            ),
            Breach::Waits(_) => self.finding(
                ResultLevel::Note,
                &text,
                "if this persists, its instance has stopped or cannot write: start one, or check its log"
                    .to_owned(),
            ),
            Breach::Garbage(_) => self.finding(
                ResultLevel::Note,
                &text,
                "the owner of the pair removes it once its next seal is current".to_owned(),
            ),
        }
    }

    /// Compares the identity in the seal with its key, the configuration and the current topics.
    fn identity(&self, header: &Header) -> Vec<Finding> {
        let identity = &header.identity;
        let mut findings = Vec::new();
        if Namespace::of(&identity.fingerprint, &self.config.kafka.group_id) != self.own {
            findings.push(self.damage(&format!(
                "its seal has other rules than its key: {}",
                identity.fingerprint
            )));
        }
        if i64::from(identity.n_partitions) != i64::from(self.n_partitions) {
            findings.push(self.damage(&format!(
                "it was counted from topics of {}",
                number_of(identity.n_partitions, "partition")
            )));
        }
        let named: Vec<&str> = identity.topics.iter().map(|topic| topic.name.as_str()).collect();
        let ours: Vec<&str> = self.logs.iter().map(|(topic, _)| *topic).collect();
        if named != ours {
            let text =
                format!("it was counted from the topics {named:?}, but the configuration has {ours:?}");
            let remedy = "set kafka.served_topic and kafka.clicks_topic to those, or start in another group (kafka.group_id)";
            findings.push(self.finding(DAMAGE, &text, remedy.to_owned()));
        } else if let Some(difference) = self.now(identity).difference(identity) {
            let remedy = "to count the topic as it is now, stop all instances and run `abgauge state forget`";
            findings.push(self.finding(DAMAGE, &difference.to_string(), remedy.to_owned()));
        }
        findings
    }

    /// Returns the stored identity with the current topic IDs.
    fn now(&self, stored: &LogIdentity) -> LogIdentity {
        let mut now = stored.clone();
        for (topic, id) in now.topics.iter_mut().zip(self.ids) {
            topic.id = *id;
        }
        now
    }

    fn contents(&self, namespace_contents: &NamespaceContents, seal: &Seal) -> Option<Finding> {
        // Damage to blobs was already reported as a breach.
        let roles = namespace_contents.roles(seal).ok()?;
        match DecodedState::read(&seal.header, &roles, self.config) {
            Err(unusable) => Some(self.damage(&format!("cannot read sealed state: {unusable}"))),
            Ok(contents) if contents.ledger.overflowed() => Some(self.finding(
                ResultLevel::Warning,
                "a sum has exceeded 64 bits: its numbers are not exact",
                "restart it by `abgauge state forget` if you need exact numbers".to_owned(),
            )),
            Ok(_) if !seal.header.is_exact => Some(self.finding(
                ResultLevel::Warning,
                "events were shed: its numbers are not exact",
                "see limits.max_state".to_owned(),
            )),
            Ok(_) => None,
        }
    }

    /// Checks that the topics still hold the records that would be read again.
    fn reaches(&self, header: &Header) -> Vec<Finding> {
        let index = self.partition.unsigned_abs() as usize;
        let of_topics = self.logs.iter().zip(&header.reaches);
        let found = of_topics.filter_map(|((topic, logs), reach)| {
            let LogSpan { low, high } = *logs.as_ref().ok()?.get(index)?;
            let (from, to) = (reach.resume_offset, reach.read_position);
            let why = if from < low {
                "the records between were deleted (retention.ms, retention.bytes)"
            } else if to > high {
                "it was recreated, or truncated"
            } else {
                return None;
            };
            Some(self.damage(&format!(
                "topic `{topic}` was read up to {to} and would be read again from {from}, but has offsets {low} to {high}: {why}"
            )))
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use abgauge_core::engine::event::Side;
    use abgauge_core::engine::{
        Checkpoint, CopiesCheckpoint, Digest, GatherCheckpoint, LogCheckpoint, ResumePoint,
    };
    use abgauge_core::journal::{
        BlobId, Claim, CountedTopic, Entry, Inventory, RecordKey, SealId, Session, State,
    };
    use abgauge_core::ledger::Ledger;
    use abgauge_core::metrics::Ranking;

    use super::*;
    use crate::settings;
    use crate::store::keeper::Roles;
    use crate::store::stored::{codec, keep};
    use crate::stream::kafka::inspect::Trouble;

    /// A stored pair that was read from 40 to 50 in both topics and has nothing settled.
    struct Stage {
        config: Config,
        header: Header,
        roles: Roles,
        logs: Vec<(&'static str, Result<Vec<LogSpan>, Failure>)>,
    }

    impl Stage {
        fn new() -> Stage {
            let variables = [("KAFKA__BROKERS", "kafka:9092"), ("STATE__TOPIC", "kept")];
            let variables = variables.map(|(name, value)| (format!("ABGAUGE_{name}"), value.to_owned()));
            let config = settings::load(None, variables.into_iter()).expect("valid");
            let mut ledger = Ledger::new(&Ranking::new(&config.measures), &keep(&config));
            let log = |side| LogCheckpoint {
                side,
                position: ResumePoint {
                    offset: 50,
                    newest_ms: None,
                },
                resume: ResumePoint {
                    offset: 40,
                    newest_ms: None,
                },
                open: Digest { n: 0, hash: 0 },
            };
            let checkpoint = Checkpoint {
                until_ms: None,
                begin_ms: None,
                accepted: None,
                is_exact: true,
                logs: Side::BOTH.map(log).into(),
                copies: CopiesCheckpoint::default(),
                gathered: GatherCheckpoint::default(),
                folded: Vec::new(),
            };
            let topic = |name: &str| CountedTopic {
                name: name.to_owned(),
                id: 0,
            };
            let identity = LogIdentity {
                fingerprint: config.fingerprint(),
                topics: vec![topic("served"), topic("clicks")],
                n_partitions: 1,
            };
            let (header, roles) = codec::stored(&checkpoint, ledger.encode(), 7, None, &identity, true);
            let span = LogSpan { low: 40, high: 50 };
            Stage {
                config,
                header,
                roles,
                logs: ["served", "clicks"].map(|topic| (topic, Ok(vec![span]))).into(),
            }
        }

        fn own(&self) -> Namespace {
            Namespace::of(&self.config.fingerprint(), &self.config.kafka.group_id)
        }

        /// Returns the inventory of a pair at rest, with one claim and one seal.
        fn inventory(&self) -> Inventory {
            let session = Session { epoch: 1, unique: 7 };
            let state = State::new(self.header.clone(), self.roles.clone());
            let mut inventory = Inventory::default();
            let mut put = |key: RecordKey, value: &[u8]| {
                inventory.take(key.text(self.own()).as_bytes(), Some(value), None);
            };
            put(RecordKey::Claim(session), &Claim::default().encode());
            let (mut table, mut number) = (BTreeMap::new(), 0);
            for (role, parts) in &state.parts {
                let mut entries = Vec::new();
                for part in parts {
                    let blob = BlobId { unique: 7, number };
                    put(RecordKey::Blob(blob), &part.bytes);
                    entries.push(Entry {
                        blob,
                        length: part.bytes.len() as u64,
                        hash: part.hash,
                    });
                    number += 1;
                }
                table.insert(role.clone(), entries);
            }
            let id = SealId { session, number: 0 };
            put(RecordKey::Seal(id), &Seal::new(state.header, table).encode());
            inventory
        }

        fn findings(&self) -> Vec<Finding> {
            self.findings_of(&self.inventory())
        }

        fn findings_of(&self, inventory: &Inventory) -> Vec<Finding> {
            let judge = Judge {
                config: &self.config,
                own: self.own(),
                n_partitions: 1,
                partition: 0,
                logs: &self.logs,
                ids: &[7, 0],
            };
            let contents = inventory.of(self.own());
            contents.map_or_else(Vec::new, |contents| judge.namespace_contents(contents))
        }
    }

    #[test]
    fn resumable_state_has_no_findings() {
        assert_eq!(Stage::new().findings(), []);
    }

    #[test]
    fn each_reason_not_to_resume_is_named_with_a_fix() {
        type Change = fn(&mut Stage);
        let cases: [(Change, &str); 9] = [
            (
                |stage| stage.header.identity.fingerprint.push('x'),
                "its seal has other rules than its key",
            ),
            (
                |stage| stage.header.identity.n_partitions = 6,
                "topics of 6 partitions",
            ),
            (
                |stage| stage.header.identity.topics[0].name = "lists".to_owned(),
                "from the topics [\"lists\", \"clicks\"], but the configuration has [\"served\", \"clicks\"]",
            ),
            (
                |stage| stage.header.identity.topics[0].id = 8,
                "topic `served` was recreated since: its id is AAAAAAAAAAAAAAAAAAAABw, and was AAAAAAAAAAAAAAAAAAAACA",
            ),
            (
                |stage| _ = stage.roles.remove("total"),
                "cannot read sealed state: cannot read its ledger",
            ),
            (
                |stage| _ = stage.roles.remove("checkpoint"),
                "cannot read sealed state: it has no role `checkpoint`",
            ),
            (
                |stage| stage.header.frontier_ms = Some(5_000),
                "its totals end at nothing, and its frontier is 5000",
            ),
            (
                |stage| stage.logs[1].1 = Ok(vec![LogSpan { low: 41, high: 60 }]),
                "topic `clicks` was read up to 50 and would be read again from 40, but has offsets 41 to 60: the records between were deleted",
            ),
            (
                |stage| stage.logs[0].1 = Ok(vec![LogSpan { low: 0, high: 49 }]),
                "topic `served` was read up to 50 and would be read again from 40, but has offsets 0 to 49: it was recreated",
            ),
        ];
        for (change, reported) in cases {
            let mut stage = Stage::new();
            change(&mut stage);
            let found = stage.findings();
            let [finding] = &found[..] else {
                panic!("{reported}: {found:?}");
            };
            assert_eq!(finding.level, DAMAGE, "{finding:?}");
            assert!(
                finding.text.starts_with("partition 0: ") && finding.text.contains(reported),
                "{finding:?}"
            );
            assert!(!finding.remedy.is_empty(), "{finding:?}");
        }
    }

    #[test]
    fn a_seal_of_a_newer_version_is_never_suggested_for_deletion() {
        let stage = Stage::new();
        let mut inventory = stage.inventory();
        let id = SealId {
            session: Session { epoch: 1, unique: 7 },
            number: 1,
        };
        let key = RecordKey::Seal(id).text(stage.own());
        inventory.take(key.as_bytes(), Some(b"\x02 of a newer version"), None);
        let found = stage.findings_of(&inventory);
        let [damage] = &found
            .iter()
            .filter(|finding| finding.level == DAMAGE)
            .collect::<Vec<_>>()[..]
        else {
            panic!("{found:?}");
        };
        assert!(
            damage.remedy.contains("newer version") && !damage.remedy.contains("forget"),
            "{damage:?}"
        );
    }

    #[test]
    fn lost_exactness_is_only_a_warning() {
        let mut stage = Stage::new();
        stage.header.is_exact = false;
        let found = stage.findings();
        assert_eq!(
            found.iter().map(|finding| finding.level).collect::<Vec<_>>(),
            [ResultLevel::Warning]
        );
    }

    /// The failure is reported once per topic.
    #[test]
    fn an_unreachable_topic_causes_no_findings_for_pairs() {
        let mut stage = Stage::new();
        stage.logs[0].1 = Err(Failure::new(Trouble::Unreachable, "away"));
        assert_eq!(stage.findings(), []);
    }
}
