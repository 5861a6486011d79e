//! Findings about a cluster, derived from the facts about it.

use abgauge_core::nouns::number_of;

use super::{CONFIGURATION, Finding, ResultLevel, UNAVAILABLE, sample, state};
use crate::settings::{Config, display_ms};
use crate::stream::kafka::inspect::{ClusterFacts, Failure, Topic, TopicSettings, Trouble, VisibleTopic};

/// Returns all findings. Causes come before their consequences.
pub(super) fn cluster(config: &Config, facts: &ClusterFacts) -> Vec<Finding> {
    let addresses = facts.brokers.join(", ");
    let mut findings = vec![Finding::ok(format!(
        "the brokers answer; their advertised addresses: {addresses}"
    ))];
    let topics: Vec<&Topic> = std::iter::once(&facts.served).chain(&facts.clicks).collect();
    findings.extend(topics.iter().map(|topic| existence(topic)));
    findings.extend(partition_counts(facts));
    let found = || {
        topics
            .iter()
            .filter_map(|topic| Some((&*topic.name, topic.found.as_ref().ok()?)))
    };
    for (name, VisibleTopic { settings: found, .. }) in found() {
        match found {
            Ok(found) => findings.extend(settings(config, name, found)),
            Err(failure) => findings.push(unknown_settings(name, failure)),
        }
    }
    // In a topic with one partition the key does not matter.
    let keyed = found().filter(|(_, found)| found.n_partitions.get() > 1);
    let keyed: Vec<_> = keyed
        .filter_map(|(_, found)| found.sample.as_ref().ok())
        .collect();
    findings.extend(sample::keys(&keyed));
    for (name, VisibleTopic { sample, .. }) in found() {
        match sample {
            Ok(sample) => findings.extend(sample::content(sample)),
            Err(failure) => findings.push(unread(name, failure, &addresses)),
        }
    }
    findings.push(group(config, &facts.group));
    if let Some(stored) = &facts.state {
        let served = facts.served.found.as_ref().ok();
        let n_partitions = served.map(|served| served.n_partitions.get());
        findings.extend(state::state(config, stored, n_partitions));
    }
    if let (Some(name), Some(found)) = (&config.kafka.dead_letter_topic, &facts.dead_letters) {
        findings.push(dead_letters(name, found));
    }
    findings
}

/// Returns the only finding if the cluster could not be asked.
pub(crate) fn no_way_in(config: &Config, failure: &Failure) -> Finding {
    let Failure { trouble, detail, .. } = failure;
    let brokers = &config.kafka.brokers;
    let (level, what, remedy) = match trouble {
        Trouble::Property => {
            return Finding::new(
                CONFIGURATION,
                detail,
                "correct it under [kafka.properties] or [kafka.property_files]",
            );
        }
        Trouble::Credentials => (
            UNAVAILABLE,
            "refuse the credentials",
            "check kafka.properties.\"sasl.mechanism\", \"sasl.username\" and \"sasl.password\" (or its file under \
             kafka.property_files)",
        ),
        Trouble::Tls => {
            let (what, remedy) = failure.of_tls();
            let text = format!("the brokers at {brokers}: {what}: {detail}");
            return Finding::new(UNAVAILABLE, text, remedy);
        }
        Trouble::Resolve => (
            UNAVAILABLE,
            "cannot be found",
            "check the names in kafka.brokers, and that they resolve on this machine",
        ),
        _ => (
            UNAVAILABLE,
            "do not answer",
            "check the addresses in kafka.brokers, that the brokers run, that no firewall blocks them, and that security.protocol under [kafka.properties] matches the listener",
        ),
    };
    Finding::new(
        level,
        format!("the brokers at {brokers} {what}: {detail}"),
        remedy,
    )
}

/// Reports that the records of a topic could not be read.
pub(crate) fn no_records(config: &Config, topic: &str, failure: Failure) -> Finding {
    match failure.trouble {
        Trouble::NoSuchTopic | Trouble::TopicForbidden => existence(&Topic {
            name: topic.to_owned(),
            found: Err(failure),
        }),
        _ => no_way_in(config, &failure),
    }
}

fn existence(Topic { name, found }: &Topic) -> Finding {
    match found {
        Ok(found) => Finding::ok(format!("topic `{name}` has {}", n_partitions(found))),
        Err(failure) => Finding::unseen(
            &format!("topic `{name}`"),
            failure,
            "create it, with as many partitions as its twin, or correct kafka.served_topic and kafka.clicks_topic",
            "grant the user READ and DESCRIBE on it; the brokers give the same answer if it does not exist",
        ),
    }
}

fn n_partitions(found: &VisibleTopic) -> String {
    number_of(found.n_partitions, "partition")
}

fn partition_counts(facts: &ClusterFacts) -> Option<Finding> {
    let (served, clicks) = (&facts.served, facts.clicks.as_ref()?);
    let (n_served, n_clicks) = (served.found.as_ref().ok()?, clicks.found.as_ref().ok()?);
    (n_served.n_partitions != n_clicks.n_partitions).then(|| {
        let fewer = if n_served.n_partitions < n_clicks.n_partitions { served } else { clicks };
        let text = format!(
            "topic `{}` has {}, topic `{}` has {}: a click would not be in the partition of its list",
            served.name,
            n_partitions(n_served),
            clicks.name,
            n_partitions(n_clicks)
        );
        let remedy = format!(
            "give `{}` as many as the other has; existing records stay in their partitions, so use new topics if you can",
            fewer.name
        );
        Finding::new(CONFIGURATION, text, remedy)
    })
}

/// Returns how far back a daemon without state must be able to read to fill the longest window.
fn reach_ms(config: &Config) -> i64 {
    let join = &config.join;
    let window = config
        .windows
        .last()
        // A window moves by whole cells, so it reaches back one cell further.
        .map_or(0, |window| window.span_ms + window.cell_ms());
    window + join.settle_after_ms() + join.max_future_ms + join.click_skew_ms
}

/// Reports a compacted event topic, whose records may vanish before they are counted.
pub(super) fn compacted(name: &str, settings: &TopicSettings) -> Option<Finding> {
    let policy = settings.cleanup_policy.as_ref();
    let policy = policy.filter(|policy| policy.contains("compact"))?;
    Some(Finding::new(
        CONFIGURATION,
        format!(
            "topic `{name}` is compacted (cleanup.policy={policy}): compaction removes records from the middle of its log"
        ),
        "set cleanup.policy=delete on it",
    ))
}

fn settings(config: &Config, name: &str, settings: &TopicSettings) -> Vec<Finding> {
    let mut findings: Vec<Finding> = compacted(name, settings).into_iter().collect();
    let window = config.windows.last().map_or("total", |window| &window.name);
    if let Some(kept_ms) = settings
        .retention_ms
        // A negative retention is unlimited.
        .filter(|kept_ms| (0..reach_ms(config)).contains(kept_ms))
    {
        let (reach_ms, kept) = (reach_ms(config), display_ms(kept_ms));
        findings.push(Finding::new(
            ResultLevel::Warning,
            format!("topic `{name}` keeps records for {kept}: after a start the window {window} is incomplete at first"),
            format!(
                "set retention.ms={reach_ms} or more on it (the window {window} and one of its cells, \
                 join.attribution, lateness, max_future and click_skew), or remove longer windows"
            ),
        ));
    }
    // A negative size is unlimited.
    if let Some(bytes) = settings.retention_bytes.filter(|bytes| *bytes >= 0) {
        findings.push(Finding::new(
            ResultLevel::Note,
            format!(
                "topic `{name}` keeps at most {bytes} bytes of each partition (retention.bytes), which may be less \
                 than the window {window} needs at a start"
            ),
            "make sure that they cover retention.ms at your busiest hour",
        ));
    }
    let (brokers, max_future_ms) = (&config.kafka.brokers, config.join.max_future_ms);
    if let Some(fault) = settings.timestamps.judge(name, brokers, max_future_ms) {
        findings.push(Finding::new(ResultLevel::Warning, fault.text, fault.remedy));
    }
    findings
}

fn unknown_settings(name: &str, Failure { detail, .. }: &Failure) -> Finding {
    Finding::new(
        ResultLevel::Warning,
        format!("cannot read the settings of topic `{name}` (retention, compaction, timestamps): {detail}"),
        "grant the user DESCRIBE_CONFIGS on it, or check it yourself; abgauge runs without this permission",
    )
}

fn unread(name: &str, Failure { trouble, detail, .. }: &Failure, addresses: &str) -> Finding {
    let text = format!("no record of topic `{name}` can be read: {detail}");
    match trouble {
        Trouble::TopicForbidden => Finding::new(CONFIGURATION, text, "grant the user READ on it"),
        Trouble::Unreachable | Trouble::Resolve => Finding::new(
            UNAVAILABLE,
            text,
            format!(
                "make sure that this machine can reach all brokers at their advertised addresses ({addresses}; the brokers' setting advertised.listeners)"
            ),
        ),
        _ => Finding::new(UNAVAILABLE, text, "check the brokers' logs"),
    }
}

fn group(config: &Config, group: &Result<(), Failure>) -> Finding {
    let id = &config.kafka.group_id;
    match group {
        Ok(()) => Finding::ok(format!("the consumer group `{id}` can be used")),
        Err(Failure {
            trouble: Trouble::GroupForbidden,
            detail,
            ..
        }) => Finding::new(
            CONFIGURATION,
            format!("no permission for the consumer group `{id}`: {detail}"),
            "grant the user READ on the group, or correct kafka.group_id",
        ),
        Err(Failure { detail, .. }) => Finding::new(
            UNAVAILABLE,
            format!("the coordinator of the consumer group `{id}` does not answer: {detail}"),
            "check the brokers' logs; the topic __consumer_offsets must have its replicas",
        ),
    }
}

fn dead_letters(name: &str, found: &Result<(), Failure>) -> Finding {
    match found {
        Ok(()) => Finding::ok(format!("the dead-letter topic `{name}` exists")),
        Err(failure) => Finding::unseen(
            &format!("the dead-letter topic `{name}`"),
            failure,
            "create it, or remove kafka.dead_letter_topic",
            "grant the user WRITE and DESCRIBE on it, or remove kafka.dead_letter_topic",
        ),
    }
}
