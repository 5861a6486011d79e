//! Administration of topics, and reading them back.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, Headers as _};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use tokio::runtime;

use super::kafka::Kafka;
use super::wait::{self, PATIENCE};

/// A record as stored in a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub partition: i32,
    pub offset: i64,
    pub key: Option<Vec<u8>>,
    pub payload: Option<Vec<u8>>,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// Milliseconds.
    pub timestamp: Option<i64>,
}

impl Kafka {
    /// Returns a topic or group name that no other test of this binary uses.
    pub fn unique(&self, stem: &str) -> String {
        static N: AtomicU32 = AtomicU32::new(0);
        format!("{stem}-{}", N.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns a configuration section that reads these topics in a new group.
    pub fn section(&self, served: &str, clicks: &str) -> String {
        format!(
            "[kafka]
brokers = \"{brokers}\"
served_topic = \"{served}\"
clicks_topic = \"{clicks}\"
group_id = \"{group}\"
",
            brokers = self.brokers(),
            group = self.unique("group"),
        )
    }

    /// Creates a topic and waits until every partition accepts records. Unless `configs` sets a timestamp rule, the topic
    /// rejects records from the future, as abgauge recommends.
    #[track_caller]
    pub fn create_topic(&self, name: &str, n_partitions: i32, configs: &[(&str, &str)]) {
        let topic = NewTopic::new(name, n_partitions, TopicReplication::Fixed(self.n_nodes() as i32));
        let topic = match configs
            .iter()
            .any(|(key, _)| key.starts_with("message.timestamp."))
        {
            true => topic,
            false => topic.set("message.timestamp.after.max.ms", "1000"),
        };
        let topic = configs
            .iter()
            .fold(topic, |topic, (key, value)| topic.set(key, value));
        let made = block_on(self.admin().create_topics([&topic], &options())).expect("the broker answers");
        assert_eq!(made, [Ok(name.to_owned())], "create topic {name}");
        let client = self.reader();
        wait::until(&format!("leaders of {name}"), PATIENCE, || {
            let metadata = client.fetch_metadata(Some(name), Duration::from_secs(5)).ok()?;
            let partitions = metadata.topics().first()?.partitions();
            let writable = partitions
                .iter()
                .filter(|partition| partition.leader() >= 0)
                .count();
            (writable == n_partitions as usize).then_some(())
        });
    }

    /// Creates a topic with a unique name and returns the name.
    #[track_caller]
    pub fn new_topic(&self, stem: &str, n_partitions: i32) -> String {
        let name = self.unique(stem);
        self.create_topic(&name, n_partitions, &[]);
        name
    }

    #[track_caller]
    pub fn delete_topic(&self, name: &str) {
        let gone = block_on(self.admin().delete_topics(&[name], &options())).expect("the broker answers");
        assert_eq!(gone, [Ok(name.to_owned())], "delete topic {name}");
    }

    /// Replaces all of the topic's own settings.
    #[track_caller]
    pub fn set_topic(&self, topic: &str, configs: &[(&str, &str)]) {
        let asked = AlterConfig::new(ResourceSpecifier::Topic(topic));
        let asked = configs
            .iter()
            .fold(asked, |asked, (key, value)| asked.set(key, value));
        let done = block_on(self.admin().alter_configs([&asked], &options())).expect("the broker answers");
        assert!(done.iter().all(Result::is_ok), "set {topic}: {done:?}");
    }

    /// Raises the number of partitions to `n_partitions`.
    #[track_caller]
    pub fn add_partitions(&self, topic: &str, n_partitions: usize) {
        let asked = [NewPartitions::new(topic, n_partitions)];
        let made = block_on(self.admin().create_partitions(&asked, &options())).expect("the broker answers");
        assert_eq!(made, [Ok(topic.to_owned())], "add partitions to {topic}");
    }

    /// Deletes a partition's records before an offset, as retention does.
    #[track_caller]
    pub fn delete_records_before(&self, topic: &str, partition: i32, offset: i64) {
        let mut offsets = TopicPartitionList::new();
        offsets
            .add_partition_offset(topic, partition, Offset::Offset(offset))
            .expect("an offset");
        let done = block_on(self.admin().delete_records(&offsets, &options())).expect("the broker answers");
        done.elements()
            .iter()
            .for_each(|element| element.error().expect("delete records"));
    }

    /// Returns the first offset of a partition and the one after its last.
    #[track_caller]
    pub fn offsets(&self, topic: &str, partition: i32) -> (i64, i64) {
        self.reader()
            .fetch_watermarks(topic, partition, PATIENCE)
            .expect("the broker answers")
    }

    /// Reads all current records of the topic, ordered by partition and offset.
    #[track_caller]
    pub fn read_all(&self, topic: &str) -> Vec<Record> {
        let consumer = self.reader();
        let metadata = consumer
            .fetch_metadata(Some(topic), PATIENCE)
            .expect("the broker answers");
        let partitions = metadata.topics()[0].partitions();
        let mut list = TopicPartitionList::new();
        let mut open = BTreeSet::new();
        for partition in partitions {
            list.add_partition_offset(topic, partition.id(), Offset::Beginning)
                .expect("an offset");
            open.insert(partition.id());
        }
        consumer.assign(&list).expect("assign");
        let mut records = Vec::new();
        wait::until(&format!("the ends of {topic}"), PATIENCE, || {
            while let Some(polled) = consumer.poll(Duration::ZERO) {
                match polled {
                    Ok(message) => records.push(Record::from(&message)),
                    // This may repeat for a partition that receives records meanwhile.
                    Err(KafkaError::PartitionEOF(partition)) => drop(open.remove(&partition)),
                    Err(error) => panic!("read {topic}: {error}"),
                }
            }
            open.is_empty().then_some(())
        });
        records.sort_by_key(|record| (record.partition, record.offset));
        records
    }

    pub(super) fn admin(&self) -> AdminClient<DefaultClientContext> {
        ClientConfig::new()
            .set("bootstrap.servers", self.brokers())
            .create()
            .expect("an admin client")
    }

    fn reader(&self) -> BaseConsumer {
        reader(&self.brokers())
    }
}

impl<M: Message> From<&M> for Record {
    fn from(message: &M) -> Record {
        Record {
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().map(<[u8]>::to_vec),
            payload: message.payload().map(<[u8]>::to_vec),
            headers: message
                .headers()
                .map_or(Vec::new(), |headers| headers.iter().map(words).collect()),
            timestamp: message.timestamp().to_millis(),
        }
    }
}

fn words(header: Header<'_, &[u8]>) -> (String, String) {
    let value = header.value.map(String::from_utf8_lossy);
    (header.key.to_owned(), value.unwrap_or_default().into_owned())
}

/// Returns `Some` if a broker is up and registered in the cluster.
pub(super) fn answers(brokers: &str) -> Option<()> {
    let address = brokers.parse().expect("one address");
    // A Kafka client backs off after a refused attempt; a bare connection does not.
    std::net::TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
    let metadata = reader(brokers)
        .fetch_metadata(None, Duration::from_secs(2))
        .ok()?;
    (!metadata.brokers().is_empty()).then_some(())
}

fn reader(brokers: &str) -> BaseConsumer {
    ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "abgauge-tests-own-reader")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("isolation.level", "read_committed")
        .create()
        .expect("a consumer")
}

fn options() -> AdminOptions {
    AdminOptions::new()
        .operation_timeout(Some(PATIENCE))
        .request_timeout(Some(PATIENCE))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime")
        .block_on(future)
}
