//! Decides whether the state of pairs may be stored, before anything is claimed: granted, refused, or waiting for a fix.

use super::{CheckFailure, Finding, ResultLevel, judge, state};
use crate::settings::Config;
use crate::stream::kafka::inspect::{Failure, InputFacts, StateFacts, StoringFacts, Trouble};

#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    Granted {
        /// IDs of the event topics, in their order. 0 if unknown.
        ids: Vec<u128>,
        /// Risks of data loss, and checks that could not be made.
        doubts: Vec<Finding>,
        /// Set if the group has read the event topics before.
        has_read: bool,
    },
    /// The problem can be fixed while the program waits.
    Waits(Finding),
    /// Continuing would lose or corrupt numbers.
    Refused(Finding),
}

/// Decides from the facts about the cluster. `n_partitions` is the number of partitions of the event topics.
pub fn admission(config: &Config, facts: Result<&StoringFacts, &Failure>, n_partitions: u32) -> Admission {
    let facts = match facts {
        Ok(facts) => facts,
        Err(failure) => return Admission::Waits(judge::no_way_in(config, failure)),
    };
    let inputs = facts.inputs.iter().flat_map(|input| of_input(config, input));
    let state = &facts.state;
    let mut findings: Vec<Finding> = inputs
        .chain(state::state(config, state, Some(n_partitions)))
        .collect();
    // The first write reports a missing right together with other missing rights, and is repeated until it is granted.
    let forbidden = state.found.as_ref().ok();
    let forbidden = forbidden.and_then(|found| state::forbidden(&state.name, found));
    findings.retain(|finding| Some(finding) != forbidden.as_ref());
    let has = |level: ResultLevel| findings.iter().find(|finding| finding.level == level).cloned();
    let of_configuration = has(ResultLevel::Error(CheckFailure::Configuration));
    if let Some(finding) = of_configuration {
        // An absent topic may still be created, and a hidden one may become visible.
        return match facts.state.found.is_ok() || is_compacted(facts) {
            true => Admission::Refused(finding),
            false => Admission::Waits(finding),
        };
    }
    if let Some(finding) = has(ResultLevel::Error(CheckFailure::Unavailable)) {
        return Admission::Waits(finding);
    }
    // Without an answer the settings are unknown, and nothing is claimed on a guess.
    if let Some(finding) = unanswered(config, facts) {
        return Admission::Waits(finding);
    }
    // An ID that is not known becomes 0.
    let ids = facts.inputs.iter().map(|input| input.id.clone().unwrap_or(0));
    Admission::Granted {
        ids: ids.collect(),
        doubts: findings
            .into_iter()
            .filter(|finding| finding.level == ResultLevel::Warning)
            .collect(),
        has_read: facts.has_read,
    }
}

/// Judges the state topic again while state is stored. Returns the finding for which a start would refuse it, if any. Returns
/// None if the brokers do not answer.
pub fn unfit(config: &Config, facts: &StateFacts, n_partitions: u32) -> Option<Option<Finding>> {
    // An earlier finding lasts until an answer shows that it is over.
    if let Ok(found) = &facts.found {
        let failures = [found.settings.as_ref().err(), found.may_write.as_ref().err()];
        let mut failures = failures.into_iter().flatten();
        if failures.any(|failure| failure.trouble == Trouble::Unreachable) {
            return None;
        }
    }
    let findings = state::state(config, facts, Some(n_partitions));
    let is = |failed| move |finding: &&Finding| finding.level == ResultLevel::Error(failed);
    if findings
        .iter()
        .any(|finding| is(CheckFailure::Unavailable)(&finding))
    {
        return None;
    }
    Some(findings.iter().find(is(CheckFailure::Configuration)).cloned())
}

/// Reports that the brokers did not answer for some settings.
fn unanswered(config: &Config, facts: &StoringFacts) -> Option<Finding> {
    let of_state = facts.state.found.as_ref().ok();
    let of_state = of_state.and_then(|found| found.settings.as_ref().err());
    let of_inputs = facts
        .inputs
        .iter()
        .filter_map(|input| input.settings.as_ref().err());
    let mut failures = of_state.into_iter().chain(of_inputs);
    let failure = failures.find(|failure| failure.trouble == Trouble::Unreachable)?;
    Some(judge::no_way_in(config, failure))
}

fn is_compacted(facts: &StoringFacts) -> bool {
    let mut inputs = facts.inputs.iter();
    inputs.any(|InputFacts { name, settings, .. }| {
        let settings = settings.as_ref().ok();
        settings.is_some_and(|settings| judge::compacted(name, settings).is_some())
    })
}

fn of_input(config: &Config, InputFacts { name, id, settings }: &InputFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    match settings {
        Ok(settings) => findings.extend(judge::compacted(name, settings)),
        Err(Failure { detail, .. }) => findings.push(Finding::new(
            ResultLevel::Warning,
            format!("cannot read whether topic `{name}` is compacted: {detail}"),
            "grant the user DESCRIBE_CONFIGS on it, or check it yourself: compaction must not remove records that a restart reads again",
        )),
    }
    if let Err(Failure { detail, .. }) = id {
        findings.push(Finding::new(
            ResultLevel::Error(CheckFailure::Unavailable),
            format!("the brokers do not return the id of topic `{name}`: {detail}"),
            format!(
                "grant the user DESCRIBE on it, and check that the brokers at {} answer",
                config.kafka.brokers
            ),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::settings;
    use crate::stream::kafka::inspect::{FoundState, TopicSettings};
    use crate::stream::kafka::topics::STATE_SETTINGS;

    /// Returns facts without a problem, as a base for tests.
    fn facts() -> StoringFacts {
        let settings = STATE_SETTINGS.iter().chain(&[("min.insync.replicas", "2")]);
        let settings = settings.map(|(setting, value)| ((*setting).to_owned(), (*value).to_owned()));
        let input = |(name, id): (&str, u128)| InputFacts {
            name: name.to_owned(),
            id: Ok(id),
            settings: Ok(policy("delete")),
        };
        StoringFacts {
            state: StateFacts {
                name: "kept".to_owned(),
                n_brokers: 3,
                found: Ok(FoundState {
                    n_partitions: NonZeroU32::new(12).expect("not 0"),
                    n_replicas: 3,
                    may_write: Ok(Some(true)),
                    settings: Ok(settings.collect()),
                }),
            },
            inputs: [("served", 7), ("clicks", 0)].map(input).into(),
            has_read: true,
        }
    }

    fn policy(policy: &str) -> TopicSettings {
        TopicSettings {
            cleanup_policy: Some(policy.to_owned()),
            ..TopicSettings::default()
        }
    }

    fn config() -> Config {
        let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "kafka:9092".to_owned());
        settings::load(None, [brokers].into_iter()).expect("valid")
    }

    fn admitted(facts: &StoringFacts) -> Admission {
        admission(&config(), Ok(facts), 12)
    }

    fn found(facts: &mut StoringFacts) -> &mut FoundState {
        facts.state.found.as_mut().expect("it is found")
    }

    fn forbidden() -> Failure {
        Failure::new(Trouble::TopicForbidden, "not authorized")
    }

    #[test]
    fn fine_topics_are_admitted_with_their_ids() {
        let granted = Admission::Granted {
            ids: vec![7, 0],
            doubts: vec![],
            has_read: true,
        };
        assert_eq!(admitted(&facts()), granted);
    }

    #[test]
    fn a_setup_that_would_lose_data_is_refused() {
        #[track_caller]
        fn check(change: fn(&mut StoringFacts), text: &str, remedy: &str) {
            let mut facts = facts();
            change(&mut facts);
            match admitted(&facts) {
                Admission::Refused(finding) => {
                    assert!(finding.text.contains(text), "{finding:?}");
                    assert!(finding.remedy.contains(remedy), "{finding:?}");
                }
                other => panic!("{other:?}"),
            }
        }
        fn set_policy(facts: &mut StoringFacts, policy: &str) {
            let settings = found(facts).settings.as_mut().expect("known");
            settings.insert("cleanup.policy".to_owned(), policy.to_owned());
        }
        let command = "kafka-configs.sh --bootstrap-server kafka:9092 --alter --entity-type topics --entity-name kept --add-config \
                       cleanup.policy=compact";
        check(|of| set_policy(of, "delete"), "cleanup.policy=delete", command);
        check(
            |of| set_policy(of, "compact,delete"),
            "cleanup.policy=compact,delete",
            command,
        );
        check(
            |of| found(of).n_partitions = NonZeroU32::new(6).expect("not 0"),
            "has 6 partitions, the topics of events have 12",
            "abgauge check --create-topics",
        );
        check(
            |of| of.inputs[1].settings = Ok(policy("compact")),
            "topic `clicks` is compacted",
            "cleanup.policy=delete",
        );
        let hidden_besides = |of: &mut StoringFacts| {
            of.inputs[1].settings = Ok(policy("compact"));
            of.state.found = Err(forbidden());
        };
        check(hidden_besides, "topic `clicks` is compacted", "");
    }

    #[test]
    fn fixable_problems_are_waited_for() {
        #[track_caller]
        fn check(change: fn(&mut StoringFacts), text: &str) {
            let mut facts = facts();
            change(&mut facts);
            let Admission::Waits(finding) = admitted(&facts) else {
                panic!("{:?}", admitted(&facts));
            };
            assert!(
                finding.text.contains(text) && !finding.remedy.is_empty(),
                "{finding:?}"
            );
        }
        check(|of| of.state.found = Err(forbidden()), "no permission to see");
        check(
            |of| of.state.found = Err(Failure::new(Trouble::NoSuchTopic, "unknown")),
            "does not exist",
        );
        check(
            |of| of.inputs[0].id = Err(forbidden()),
            "the id of topic `served`",
        );
        check(
            |of| found(of).settings = Err(Failure::new(Trouble::Unreachable, "timed out")),
            "do not answer: timed out",
        );
    }

    /// A start waits for it, and the writer reports it.
    #[test]
    fn a_missing_right_to_write_refuses_nothing() {
        let mut facts = facts();
        found(&mut facts).may_write = Ok(Some(false));
        assert!(matches!(admitted(&facts), Admission::Granted { doubts, .. } if doubts.is_empty()));
        let unfit = unfit(&config(), &facts.state, 12).expect("the brokers answer");
        assert_eq!(
            unfit.expect("it is reported").reported(),
            "the user may not write to the state topic `kept`, so no state can be stored; to fix it: grant the user WRITE on it"
        );
    }

    /// It used to count as a granted right, so a missing one was withdrawn whenever the brokers answered late.
    #[test]
    fn a_missing_answer_withdraws_no_finding() {
        let failure = || Failure::new(Trouble::Unreachable, "timed out");
        let without_rights = {
            let mut facts = facts();
            found(&mut facts).may_write = Err(failure());
            facts
        };
        let without_settings = {
            let mut facts = facts();
            found(&mut facts).settings = Err(failure());
            facts
        };
        for facts in [without_rights, without_settings] {
            assert_eq!(unfit(&config(), &facts.state, 12), None);
        }
        assert_eq!(unfit(&config(), &facts().state, 12), Some(None));
    }

    #[test]
    fn missing_permissions_cause_doubts() {
        let mut facts = facts();
        found(&mut facts).settings = Err(forbidden());
        facts.inputs[0].settings = Err(forbidden());
        found(&mut facts).n_replicas = 1;
        let Admission::Granted { doubts, .. } = admitted(&facts) else {
            panic!("{:?}", admitted(&facts));
        };
        let texts: Vec<&str> = doubts.iter().map(|doubt| &*doubt.text).collect();
        assert!(
            matches!(texts[..], [input, replica, settings] if input.contains("cannot read whether topic `served` is compacted")
                && replica.contains("one replica") && settings.contains("cannot read the settings")),
            "{texts:?}"
        );
    }
}
