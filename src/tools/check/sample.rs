//! Findings from the latest records of the topics.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use abgauge_core::engine::event::Reason;
use abgauge_core::nouns::number_of;

use super::{CheckFailure, Finding, ResultLevel};
use crate::stream::kafka::inspect::Sample;
use crate::stream::keys::{self, PartitionerVerdict};

/// Remedy for paths that a schema lacks.
pub(super) const CORRECT_PATHS: &str =
    "correct these paths, or write alternatives: { any = [\"old\", \"new\"] }";

/// Checks how topics are keyed. Returns the faults, and for each topic its partitioner or that it cannot be detected.
pub(super) fn keys(samples: &[&Sample]) -> Vec<Finding> {
    let audits: Vec<_> = samples.iter().map(|sample| &sample.keys).collect();
    let faults = keys::findings(&audits);
    let named = faults
        .iter()
        .map(|fault| Finding::new(ResultLevel::Warning, fault.to_string(), ""));
    let mut findings: Vec<_> = named.collect();
    for audit in audits {
        let topic = audit.topic().to_owned();
        match audit.verdict() {
            PartitionerVerdict::By(partitioner) => {
                findings.push(Finding::ok(format!(
                    "topic `{topic}` is keyed with {}",
                    partitioner.name()
                )));
            }
            PartitionerVerdict::Undetermined {
                n_keys,
                n_needed,
                possible,
            } if !faults.contains(&keys::KeyFinding::NoKeys { topic: topic.clone() }) => {
                let so_far = match (n_keys, possible.is_empty()) {
                    (0, _) => String::new(),
                    (_, true) => ", and no single partitioner known to abgauge fits them".to_owned(),
                    (_, false) => format!(", so far as {} would", possible.joined("or")),
                };
                findings.push(Finding::new(
                    ResultLevel::Note,
                    format!(
                        "topic `{topic}` has too few different keys to detect its partitioner: {n_keys} of at least \
                         {n_needed}{so_far}"
                    ),
                    "run this again once both topics have some hundreds",
                ));
            }
            PartitionerVerdict::Undetermined { .. }
            | PartitionerVerdict::Mixed(_)
            | PartitionerVerdict::Foreign => {} // Named above.
        }
    }
    findings
}

/// Checks whether the records can be read.
pub(super) fn content(sample: &Sample) -> Vec<Finding> {
    let (topic, n) = (sample.keys.topic(), sample.n_records);
    let n_unreadable: u64 = sample.unreadable.values().sum();
    let mut content = Vec::new();
    if n_unreadable > 0 {
        let mut reasons: Vec<_> = sample.unreadable.iter().collect();
        // The most frequent reason comes first, because its remedy helps most.
        reasons.sort_by_key(|(_, n)| Reverse(**n));
        let named: Vec<_> = reasons
            .iter()
            .map(|(reason, n)| format!("{} {n}", reason.name()))
            .collect();
        let text = format!(
            "topic `{topic}`: {n_unreadable} of the last {n} records ({}) cannot be read: {}",
            percent(n_unreadable, n),
            named.join(", ")
        );
        let remedies: Vec<_> = reasons.iter().map(|(reason, _)| remedy(**reason)).collect();
        // Some records may be old or foreign, but if all of them are refused, a daemon counts nothing.
        let level = match n_unreadable == n {
            true => ResultLevel::Error(CheckFailure::Data),
            false => ResultLevel::Warning,
        };
        content.push(Finding::new(level, text, remedies.join("\n")));
    }
    // Other records are reported with their schemas and messages.
    let n_read = n - n_unreadable - sample.n_without_schema - sample.n_other_messages;
    if n_unreadable == 0 && n_read > 0 {
        let which = match n_read == n {
            true => format!("the last {}", number_of(n, "record")),
            false => format!("{n_read} of the last {}", number_of(n, "record")),
        };
        content.push(Finding::ok(format!("topic `{topic}`: {which} can be read")));
    }
    content.extend(schemas(sample));
    content.extend(other_messages(sample));
    let floats = sample.times.warning("events");
    let floats = floats.map(|text| format!("topic `{topic}`: {text}"));
    content.extend(floats.map(|text| Finding::new(ResultLevel::Warning, text, "")));
    if sample.n_ignored > 0 {
        let level = match sample.n_ignored == n {
            true => ResultLevel::Warning,
            false => ResultLevel::Note,
        };
        content.push(Finding::new(
            level,
            format!(
                "topic `{topic}`: {} of the last {n} records have another `type` and are ignored",
                sample.n_ignored
            ),
            "",
        ));
    }
    content
}

/// Reports records of messages that are not wanted.
fn other_messages(sample: &Sample) -> Option<Finding> {
    let (topic, n) = (sample.keys.topic(), sample.n_other_messages);
    match &sample.other_messages {
        Some(fault) => Some(Finding::new(
            ResultLevel::Warning,
            format!("topic `{topic}`: {fault}"),
            "name one of these messages, or remove the setting to read them all",
        )),
        None => (n > 0).then(|| {
            let text = format!(
                "topic `{topic}`: {n} of the last {} records have another message and are ignored",
                sample.n_records
            );
            Finding::new(ResultLevel::Note, text, "")
        }),
    }
}

/// Reports the schemas of the records.
fn schemas(sample: &Sample) -> Vec<Finding> {
    let topic = sample.keys.topic();
    let faults = sample.record_faults.iter();
    let faults =
        faults.map(|fault| Finding::new(ResultLevel::Warning, format!("topic `{topic}`: {fault}"), ""));
    let mut findings: Vec<_> = faults.collect();
    let mut read = Vec::new();
    let mut unread: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (id, of_schema) in &sample.schemas {
        let named = format!("{id} ({})", number_of(of_schema.n_records, "record"));
        match &of_schema.problem {
            Some(problem) => unread.entry(problem).or_default().push(named),
            None => read.push(named),
        }
        if !of_schema.lacks.is_empty() {
            findings.push(Finding::new(
                ResultLevel::Warning,
                format!(
                    "topic `{topic}`: schema {id} has no field at {}; it has {}",
                    of_schema.lacks.join(", "),
                    of_schema.has.join(", ")
                ),
                CORRECT_PATHS,
            ));
        }
    }
    let failure = sample.registry_failure.as_deref();
    findings.extend(unread.into_iter().map(|(problem, schemas)| {
        // The text of a failure contains its remedy.
        let (level, remedy) = match failure {
            Some(failure) if failure == problem => (ResultLevel::Error(CheckFailure::Unavailable), ""),
            Some(_) => (ResultLevel::Warning, ""),
            None => (ResultLevel::Warning, "register the schema, or correct [registry]"),
        };
        let text = format!(
            "topic `{topic}`: records of schema {} cannot be read: {problem}",
            schemas.join(", ")
        );
        Finding::new(level, text, remedy)
    }));
    if !read.is_empty() {
        findings.push(Finding::ok(format!(
            "topic `{topic}`: schemas {}",
            read.join(", ")
        )));
    }
    findings
}

/// Formats a rounded percentage. A share under 1% is not shown as 0%.
fn percent(part: u64, whole: u64) -> String {
    match part * 100 / whole {
        0 => "less than 1%".to_owned(),
        percent => format!("{percent}%"),
    }
}

/// Returns the remedy for the producers.
fn remedy(reason: Reason) -> &'static str {
    match reason {
        Reason::NotJson => {
            "not_json: send one JSON object in UTF-8, each field once; if the records are Avro or Protobuf, set events.served.format or events.click.format"
        }
        Reason::Malformed => {
            "malformed: write records whose bytes fit their schema; if they have no prefix of a registry, set events.served.framing or events.click.framing to \"none\""
        }
        Reason::UnknownSchema => {
            "unknown_schema: register the schema of each record, or correct [registry] and [schemas]"
        }
        Reason::Tombstone => "tombstone: send no record without a value",
        Reason::MissingField => {
            "missing_field: a list needs request_id, ts and items, a click request_id, ts and item, or the fields that [events] names instead (`abgauge check --sample FILE` lists them); if one topic carries both, each also needs its type; are kafka.served_topic and kafka.clicks_topic swapped?"
        }
        Reason::WrongType => {
            "wrong_type: ids and items are strings or integers, items is an array, experiments an object of strings"
        }
        Reason::WrongTopic => {
            "wrong_topic: send lists to kafka.served_topic and clicks to kafka.clicks_topic; if one topic carries both, give both settings its name"
        }
        Reason::Number => {
            "number: a number that is an id or a time has no fraction, no exponent and at most 20 digits"
        }
        Reason::TsSeconds => "ts_seconds: multiply ts by 1000: it must be in milliseconds",
        Reason::TsMicros => "ts_micros: divide ts down to milliseconds",
        Reason::TsRange => "ts_range: ts is epoch milliseconds, or text with its zone",
        Reason::IdLength => "id_length: ids and items have 1 to 2048 bytes",
        Reason::TooManyItems => "too_many_items: send shorter lists, or raise join.max_items",
        Reason::TooManyExperiments => {
            "too_many_experiments: send the experiments that chose the list, and no other attributes, or raise \
             join.max_experiments"
        }
    }
}
