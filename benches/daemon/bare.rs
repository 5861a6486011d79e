//! Lower bound for a consumer: takes batches as the daemon does, and discards them.

use std::ffi::CString;
use std::fmt;
use std::ptr;
use std::str::FromStr;
use std::time::Instant;

use rdkafka::bindings::{
    rd_kafka_consume_batch_queue, rd_kafka_message_destroy, rd_kafka_message_s, rd_kafka_queue_destroy,
    rd_kafka_queue_forward, rd_kafka_queue_get_partition, rd_kafka_queue_new, rd_kafka_resp_err_t,
};
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::process;

/// Number of records that the daemon takes at a time.
const BATCH: usize = 2000;

/// What to read and when to stop.
#[derive(Debug, clap::Args)]
pub struct Task {
    pub brokers: String,
    pub served_topic: String,
    pub clicks_topic: String,
    pub n_partitions: i32,
    pub n_records: u64,
    /// Properties of librdkafka, `NAME=VALUE`.
    pub properties: Vec<String>,
}

/// Progress of a consumer at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    pub n_records: u64,
    pub cpu_ns: u64,
    /// Wall time since an arbitrary fixed moment.
    pub wall_ns: u64,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {} {}", self.n_records, self.cpu_ns, self.wall_ns)
    }
}

impl FromStr for Mark {
    type Err = std::num::ParseIntError;

    fn from_str(line: &str) -> Result<Mark, Self::Err> {
        let mut numbers = line.split(' ').map(str::parse);
        let mut next = || numbers.next().unwrap_or_else(|| "".parse());
        Ok(Mark {
            n_records: next()?,
            cpu_ns: next()?,
            wall_ns: next()?,
        })
    }
}

/// Splits `NAME=VALUE`.
pub fn name_and_value(property: &str) -> (&str, &str) {
    property.split_once('=').expect("a property is NAME=VALUE")
}

fn client(task: &Task) -> BaseConsumer {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &task.brokers)
        .set("group.id", "bare")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        // These properties are the same as the daemon's.
        .set("isolation.level", "read_committed")
        .set("check.crcs", "true")
        .set("fetch.queue.backoff.ms", "10")
        .set("fetch.wait.max.ms", "100");
    for (name, value) in task.properties.iter().map(|property| name_and_value(property)) {
        config.set(name, value);
    }
    config.create().expect("a consumer")
}

/// Reads all records and prints a [`Mark`] after each twentieth of them.
pub fn run(task: &Task) {
    let client = client(task);
    // SAFETY: the client outlives the queue, which is destroyed below.
    let queue = unsafe { rd_kafka_queue_new(client.client().native_ptr()) };
    let mut list = TopicPartitionList::new();
    for topic in [&task.served_topic, &task.clicks_topic] {
        for partition in 0..task.n_partitions {
            let name = CString::new(topic.as_str()).expect("a topic's name has no NUL");
            // SAFETY: client, name and queue are alive, and the reference to the partition's queue is returned.
            unsafe {
                let from =
                    rd_kafka_queue_get_partition(client.client().native_ptr(), name.as_ptr(), partition);
                rd_kafka_queue_forward(from, queue);
                rd_kafka_queue_destroy(from);
            }
            list.add_partition_offset(topic, partition, Offset::Beginning)
                .expect("an offset");
        }
    }
    client.assign(&list).expect("assign");

    let start = Instant::now();
    let mut messages: Vec<*mut rd_kafka_message_s> = vec![ptr::null_mut(); BATCH];
    let mut n_records = 0;
    let mut next_mark = 0;
    while n_records < task.n_records {
        if let Some(Err(error)) = client.poll(std::time::Duration::ZERO) {
            panic!("the bare consumer: {error}");
        }
        // SAFETY: `messages` has room for `BATCH`.
        let n = unsafe { rd_kafka_consume_batch_queue(queue, 20, messages.as_mut_ptr(), BATCH) };
        for message in &messages[..usize::try_from(n).expect("a count of messages")] {
            // SAFETY: librdkafka gave the message to us alone, and it is destroyed once.
            let code = unsafe {
                let code = (**message).err;
                rd_kafka_message_destroy(*message);
                code
            };
            assert_eq!(code, rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR, "a record");
            n_records += 1;
        }
        if n_records >= next_mark {
            next_mark = n_records + task.n_records / 20;
            let cpu_ns = process::cpu_ns(std::process::id());
            let wall_ns = start.elapsed().as_nanos() as u64;
            println!(
                "{}",
                Mark {
                    n_records,
                    cpu_ns,
                    wall_ns
                }
            );
        }
    }
    // SAFETY: the queue is ours and no longer used. Partitions that still forward to it hold their own references.
    unsafe { rd_kafka_queue_destroy(queue) };
}
