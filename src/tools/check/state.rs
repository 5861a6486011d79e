//! Findings about the state topic, and its creation.

use abgauge_core::nouns::number_of;

use super::{CONFIGURATION, Finding, ResultLevel};
use crate::settings::Config;
use crate::stream::kafka::inspect::{Failure, FoundState, StateFacts};
use crate::stream::kafka::topics::{STATE_SETTINGS, in_sync_of};

/// Minimum record size that the topic must allow. Seals and blobs are smaller than half of it.
const MIN_RECORD_BYTES: i64 = 1 << 20;
/// Maximum segment size, four times our own setting. Compaction never touches the active segment.
const MAX_SEGMENT_BYTES: i64 = 64 << 20;

/// Checks the state topic. `n_partitions` is the number of partitions of the event topics, if known.
pub(super) fn state(config: &Config, facts: &StateFacts, n_partitions: Option<u32>) -> Vec<Finding> {
    let name = &facts.name;
    match &facts.found {
        Ok(found) => of_found(config, name, found, n_partitions),
        Err(failure) => vec![Finding::unseen(
            &format!("the state topic `{name}`"),
            failure,
            &how_to_create(config, name, n_partitions, facts.n_brokers),
            "grant the user READ, WRITE, DESCRIBE and DESCRIBE_CONFIGS on it, or remove state.topic",
        )],
    }
}

fn how_to_create(config: &Config, name: &str, n_partitions: Option<u32>, n_brokers: usize) -> String {
    // A topic cannot have more replicas than there are brokers.
    let n_replicas = n_brokers.clamp(1, 3);
    let settings = STATE_SETTINGS.map(|(setting, value)| format!(" --config {setting}={value}"));
    let n_partitions = n_partitions.map_or_else(|| "PARTITIONS".to_owned(), |n| n.to_string());
    format!(
        "create it with `abgauge check --create-topics`, or with: kafka-topics.sh --bootstrap-server {} --create --topic {name} \
         --partitions {n_partitions} --replication-factor {n_replicas} --config min.insync.replicas={}{}",
        config.kafka.brokers,
        in_sync_of(n_replicas),
        settings.concat(),
    )
}

fn of_found(config: &Config, name: &str, found: &FoundState, n_partitions: Option<u32>) -> Vec<Finding> {
    let n_found = found.n_partitions.get();
    let mut findings = vec![Finding::ok(format!(
        "partitions of the state topic `{name}`: {n_found}"
    ))];
    if let Some(n) = n_partitions.filter(|n| *n != n_found) {
        findings.push(Finding::new(
            CONFIGURATION,
            format!("the state topic `{name}` has {}, the topics of events have {n}", number_of(n_found, "partition")),
            "set state.topic to another name and run `abgauge check --create-topics`: counting restarts from zero, and `abgauge state export` can still read the old topic",
        ));
    }
    findings.extend(forbidden(name, found));
    let in_sync = found
        .settings
        .as_ref()
        .ok()
        .and_then(|settings| settings.get("min.insync.replicas"));
    // With a single replica, min.insync.replicas makes no difference, so one warning is enough.
    if found.n_replicas == 1 {
        findings.push(one_disk(name, "has one replica", "give it three"));
    } else if in_sync.is_some_and(|in_sync| in_sync == "1") {
        let what = "needs one replica in sync (min.insync.replicas=1)";
        findings.push(one_disk(
            name,
            what,
            "set min.insync.replicas=2 on it, with three replicas",
        ));
    }
    match &found.settings {
        Ok(settings) => findings.extend(of_settings(config, name, &|setting| {
            settings.get(setting).map(|value| &**value)
        })),
        Err(Failure { detail, .. }) => findings.push(Finding::new(
            ResultLevel::Warning,
            format!("cannot read the settings of the state topic `{name}`: {detail}"),
            "grant the user DESCRIBE_CONFIGS on it, or check it yourself: its only cleanup policy must be compact",
        )),
    }
    findings
}

/// Reports that the user may not write to the topic.
pub(super) fn forbidden(name: &str, found: &FoundState) -> Option<Finding> {
    (found.may_write == Ok(Some(false))).then(|| {
        let text = format!("the user may not write to the state topic `{name}`, so no state can be stored");
        Finding::new(CONFIGURATION, text, "grant the user WRITE on it")
    })
}

fn one_disk(name: &str, what: &str, remedy: &str) -> Finding {
    let text = format!(
        "the state topic `{name}` {what}: if a broker loses its disk, numbers that were shown may be lost"
    );
    Finding::new(ResultLevel::Warning, text, remedy)
}

fn of_settings<'a>(config: &Config, name: &str, setting: &dyn Fn(&str) -> Option<&'a str>) -> Vec<Finding> {
    let number = |of| setting(of).and_then(|value| value.parse::<i64>().ok());
    let mut findings = Vec::new();
    if let Some(policy) = setting("cleanup.policy").filter(|policy| *policy != "compact") {
        findings.push(Finding::new(
            CONFIGURATION,
            format!("the state topic `{name}` has cleanup.policy={policy}: stored state would be deleted, or never be compacted"),
            format!(
                "set cleanup.policy=compact on it, with: kafka-configs.sh --bootstrap-server {} --alter --entity-type topics \
                 --entity-name {name} --add-config cleanup.policy=compact",
                config.kafka.brokers
            ),
        ));
    }
    if let Some(bytes) = number("max.message.bytes").filter(|bytes| *bytes < MIN_RECORD_BYTES) {
        findings.push(Finding::new(
            CONFIGURATION,
            format!("the state topic `{name}` takes records of at most {bytes} bytes (max.message.bytes)"),
            format!("set max.message.bytes={MIN_RECORD_BYTES} or more on it"),
        ));
    }
    if setting("remote.storage.enable") == Some("true") {
        findings.push(Finding::new(
            CONFIGURATION,
            format!("the state topic `{name}` is tiered (remote.storage.enable=true), and compaction does not apply to the remote part"),
            "set state.topic to another name and run `abgauge check --create-topics`: counting restarts from zero",
        ));
    }
    if setting("unclean.leader.election.enable") == Some("true") {
        findings.push(Finding::new(
            ResultLevel::Warning,
            format!("the state topic `{name}` may lose its end (unclean.leader.election.enable=true), and with it numbers that were shown"),
            "set unclean.leader.election.enable=false on it",
        ));
    }
    if let Some(bytes) = number("segment.bytes").filter(|bytes| *bytes > MAX_SEGMENT_BYTES) {
        findings.push(Finding::new(
            ResultLevel::Warning,
            format!(
                "the state topic `{name}` has segments of {bytes} bytes (segment.bytes), and the last one is never compacted: a start may have to read that much outdated state"
            ),
            "set segment.bytes=16777216 and segment.ms=600000 on it",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;

    use super::*;
    use crate::settings;
    use crate::stream::kafka::inspect::Trouble;

    fn facts(changes: &[(&str, &str)]) -> StateFacts {
        let others = [("min.insync.replicas", "2"), ("remote.storage.enable", "false")];
        // Later entries override earlier ones of the same name.
        let settings = STATE_SETTINGS.iter().chain(&others).chain(changes);
        let settings: BTreeMap<String, String> = settings
            .map(|(setting, value)| ((*setting).to_owned(), (*value).to_owned()))
            .collect();
        StateFacts {
            name: "kept".to_owned(),
            n_brokers: 3,
            found: Ok(FoundState {
                n_partitions: NonZeroU32::new(12).expect("not 0"),
                n_replicas: 3,
                may_write: Ok(Some(true)),
                settings: Ok(settings),
            }),
        }
    }

    /// Returns all findings that are not OK.
    fn findings(facts: &StateFacts) -> Vec<Finding> {
        let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "kafka:9092".to_owned());
        let config = settings::load(None, [brokers].into_iter()).expect("valid");
        let mut findings = state(&config, facts, Some(12));
        findings.retain(|finding| finding.level != ResultLevel::Ok);
        findings
    }

    #[test]
    fn the_suggested_topic_has_no_findings() {
        assert_eq!(findings(&facts(&[])), []);
    }

    #[test]
    fn each_dangerous_topic_setting_is_named_with_a_fix() {
        for (setting, value, level) in [
            ("cleanup.policy", "delete", CONFIGURATION),
            ("cleanup.policy", "compact,delete", CONFIGURATION),
            ("max.message.bytes", "1000000", CONFIGURATION),
            ("remote.storage.enable", "true", CONFIGURATION),
            ("unclean.leader.election.enable", "true", ResultLevel::Warning),
            ("min.insync.replicas", "1", ResultLevel::Warning),
            ("segment.bytes", "1073741824", ResultLevel::Warning),
        ] {
            let found = findings(&facts(&[(setting, value)]));
            let [finding] = found.as_slice() else {
                panic!("{setting}={value}: {found:?}");
            };
            assert_eq!(finding.level, level, "{finding:?}");
            assert!(
                finding.text.contains(setting) && finding.text.contains(value),
                "{finding:?}"
            );
            assert!(!finding.remedy.is_empty());
        }
    }

    #[test]
    fn another_number_of_partitions_and_a_single_replica_are_named() {
        let mut facts = facts(&[]);
        if let Ok(found) = &mut facts.found {
            found.n_partitions = NonZeroU32::new(6).expect("not 0");
            found.n_replicas = 1;
        }
        let found = findings(&facts);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0]
                .text
                .contains("has 6 partitions, the topics of events have 12")
        );
        assert_eq!(found[1].level, ResultLevel::Warning);
    }

    #[test]
    fn reports_a_user_without_the_right_to_write() {
        let mut facts = facts(&[]);
        for (may_write, n_findings) in [(Some(true), 0), (None, 0), (Some(false), 1)] {
            if let Ok(found) = &mut facts.found {
                found.may_write = Ok(may_write);
            }
            assert_eq!(findings(&facts).len(), n_findings, "{may_write:?}");
        }
        assert_eq!(findings(&facts)[0].level, CONFIGURATION);
        assert_eq!(findings(&facts)[0].remedy, "grant the user WRITE on it");
    }

    #[test]
    fn a_missing_topic_is_reported_with_the_command_to_create_it() {
        let mut facts = facts(&[]);
        facts.found = Err(Failure::new(Trouble::NoSuchTopic, "unknown"));
        facts.n_brokers = 1;
        let found = findings(&facts);
        for part in [
            "kafka-topics.sh --bootstrap-server kafka:9092 --create --topic kept --partitions 12",
            "--replication-factor 1 --config min.insync.replicas=1",
            "--config cleanup.policy=compact",
        ] {
            assert!(found[0].remedy.contains(part), "{}", found[0].remedy);
        }
    }
}
