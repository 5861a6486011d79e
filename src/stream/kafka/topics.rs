//! Creation of topics, or checks that existing ones are as required.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use abgauge_core::nouns::number_of;
use anyhow::{Context as _, Result, bail};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::FromClientConfig;
use rdkafka::error::RDKafkaErrorCode;

use super::producer::{ANSWER_WITHIN, Producer, client_config, explain_refusal};
use crate::clock::Clock;
use crate::settings::{Kafka, Properties};

/// Creates the missing `topics` with `n_partitions` each, and waits until they are writable. A `replication` of −1 is the
/// brokers' default.
///
/// # Errors
/// If a topic exists with another number of partitions, or the brokers refuse or do not answer.
pub fn create_topics(
    brokers: &str,
    properties: &Properties,
    topics: &[&str],
    n_partitions: usize,
    replication: i32,
) -> Result<()> {
    let producer = Producer::connect(brokers, properties, Duration::ZERO)?;
    let mut absent = Vec::new();
    for topic in topics {
        match producer.n_partitions(topic)? {
            // One topic may be named for both kinds.
            None if absent.contains(topic) => {}
            None => absent.push(*topic),
            Some(n) if n == n_partitions => {}
            Some(n) => bail!(
                "topic {topic} exists with {}, not {n_partitions}: ask for {n}, or delete the topic first",
                number_of(n, "partition")
            ),
        }
    }
    if !absent.is_empty() {
        let partitions = i32::try_from(n_partitions).context("count partitions")?;
        let new = absent
            .iter()
            .map(|name| NewTopic::new(name, partitions, TopicReplication::Fixed(replication)))
            // The check for events from the future then relies on a clock that no producer sets.
            .map(|topic| topic.set("message.timestamp.type", "LogAppendTime"));
        create(brokers, properties, &new.collect::<Vec<_>>())?;
    }
    for topic in absent {
        wait_for(&producer, topic, n_partitions)?;
    }
    Ok(())
}

/// Settings of a new state topic, besides the number of in-sync replicas.
pub const STATE_SETTINGS: [(&str, &str); 8] = [
    ("cleanup.policy", "compact"),
    ("max.message.bytes", "1048576"),
    ("segment.bytes", "16777216"),
    ("segment.ms", "600000"),
    ("min.cleanable.dirty.ratio", "0.3"),
    ("max.compaction.lag.ms", "3600000"),
    ("message.timestamp.type", "LogAppendTime"),
    ("unclean.leader.election.enable", "false"),
];

/// Returns how many of `n_replicas` must have a record before it counts. One may be absent.
pub fn in_sync_of(n_replicas: usize) -> usize {
    n_replicas.saturating_sub(1).max(1)
}

/// Creates the state topic with as many partitions as `like`, on up to three brokers, unless it exists. Returns whether it was
/// created.
///
/// # Errors
/// If `like` does not exist, or the brokers refuse or do not answer.
pub fn create_state_topic(kafka: &Kafka, topic: &str, like: &str) -> Result<bool> {
    let producer = Producer::connect(&kafka.brokers, &kafka.properties, Duration::ZERO)?;
    if producer.n_partitions(topic)?.is_some() {
        return Ok(false);
    }
    let n_partitions = producer.n_partitions(like)?;
    let n_partitions =
        n_partitions.with_context(|| format!("topic {like} does not exist: create it first"))?;
    let n_replicas = producer.n_brokers()?.clamp(1, 3);
    let in_sync = in_sync_of(n_replicas).to_string();
    let new = NewTopic::new(
        topic,
        i32::try_from(n_partitions).context("count partitions")?,
        TopicReplication::Fixed(n_replicas as i32),
    );
    let settings = STATE_SETTINGS.iter().copied();
    let settings = settings.chain([("min.insync.replicas", &*in_sync)]);
    let new = settings.fold(new, |new, (setting, value)| new.set(setting, value));
    create(&kafka.brokers, &kafka.properties, &[new])?;
    wait_for(&producer, topic, n_partitions)?;
    Ok(true)
}

/// Waits until a topic is writable.
fn wait_for(producer: &Producer, topic: &str, n_partitions: usize) -> Result<()> {
    let clock = Clock::system();
    while producer.n_partitions(topic)? != Some(n_partitions) {
        if clock.uptime() > ANSWER_WITHIN {
            bail!(
                "topic {topic} was created, but does not have {} after 10 s",
                number_of(n_partitions, "partition")
            );
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn create(brokers: &str, properties: &Properties, new: &[NewTopic]) -> Result<()> {
    let config = client_config(brokers, properties, Duration::ZERO);
    let admin: AdminClient<DefaultClientContext> =
        AdminClient::from_config(&config).map_err(explain_refusal)?;
    let options = AdminOptions::new()
        .request_timeout(Some(ANSWER_WITHIN))
        .operation_timeout(Some(ANSWER_WITHIN));
    let results = wait(admin.create_topics(new, &options)).context("create topics")?;
    for result in results {
        match result {
            // Another client was faster; its number of partitions is checked next.
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((
                topic,
                code @ (RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::ClusterAuthorizationFailed),
            )) => {
                bail!("create topic {topic}: {code}; grant this user CREATE, or create the topic by hand")
            }
            Err((topic, code)) => bail!("create topic {topic}: {code}"),
        }
    }
    Ok(())
}

/// Waits for an answer of the admin client without a runtime, so that it also works inside of one. Its own thread
/// makes the progress; the request timeout bounds it.
pub(super) fn wait<F: Future>(answer: F) -> F::Output {
    let mut answer = pin!(answer);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = answer.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
