//! Tests of the consumer on the embedded broker: partitions assigned again while they are read.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use abgauge_core::engine::event::Side;
use rdkafka::{Offset, TopicPartitionList};

use super::*;
use crate::settings::Properties;
use crate::stream::kafka::embedded::Embedded;
use crate::stream::kafka::producer::{Outgoing, Producer};
use crate::stream::{Record, Source as _};

const SERVED: TopicPartition = (Side::Served, 0);
const CLICKED: TopicPartition = (Side::Clicks, 0);

struct Stage {
    // Dropped first: closing does not have to wait while the broker still runs.
    readers: Vec<QueueReader>,
    consumer: Consumer,
    producer: Producer,
    n_sent: i64,
    _embedded: Embedded,
}

impl Stage {
    fn new() -> Stage {
        let embedded = Embedded::start(&["served", "clicks"], 1).unwrap();
        let brokers = embedded.bootstrap().to_owned();
        let env = [("ABGAUGE_KAFKA__BROKERS".to_owned(), brokers.clone())];
        let kafka = settings::load(None, env.into_iter()).unwrap().kafka;
        let (consumer, readers) = Consumer::new(&kafka, 2).unwrap();
        Stage {
            readers,
            consumer,
            producer: Producer::connect(&brokers, &Properties::default(), Duration::ZERO).unwrap(),
            n_sent: 0,
            _embedded: embedded,
        }
    }

    fn execute(&mut self, order: Order) {
        self.consumer.execute(order).unwrap();
    }

    /// Sends one record to each topic.
    fn send(&mut self) {
        for topic in ["served", "clicks"] {
            let record = Outgoing {
                topic,
                partition: Some(0),
                key: b"k",
                payload: b"{}",
                timestamp_ms: 1_763_596_800_000,
            };
            assert!(self.producer.send(&record, &AtomicBool::new(false)).unwrap());
        }
        self.producer.flush(Duration::from_secs(10)).unwrap();
        self.n_sent += 1;
    }

    /// Assigns both partitions, at the end of what was sent before.
    fn assign(&mut self) {
        let offset = self.n_sent;
        self.execute(Order::Assign(vec![(SERVED, offset), (CLICKED, offset)]));
    }

    /// Polls until `find` returns something for an input.
    #[track_caller]
    fn wait_for<T>(&mut self, find: impl Fn(Input) -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            let mut found = None;
            self.consumer.poll(|input| found = found.take().or(find(input)));
            if let Some(found) = found {
                return found;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "it does not come");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Commits these positions of pair 0 and returns whether the group knows this member.
    #[track_caller]
    fn commits(&mut self, number: u64, positions: Vec<(TopicPartition, i64)>) -> Option<bool> {
        let pair = 0;
        self.execute(Order::Ask(Question::Commit {
            epoch: 0,
            pair,
            number,
            positions,
        }));
        self.wait_for(|input| match input {
            Input::Answer(Answer::Commit {
                number: answered,
                is_known,
                ..
            }) if answered == number => Some(is_known),
            _ => None,
        })
    }

    /// Sends one record to each topic and reads both.
    #[track_caller]
    fn check(&mut self) {
        self.send();
        let offset = self.n_sent - 1;
        let mut read = Vec::new();
        let begin = Instant::now();
        while read.len() < 2 {
            assert!(begin.elapsed() < Duration::from_secs(20), "only {read:?} came");
            self.consumer.poll(|_| {});
            for reader in &mut self.readers {
                let mut take = |records: &[Record]| {
                    read.extend(
                        records
                            .iter()
                            .map(|record| (record.side, record.partition, record.offset)),
                    );
                };
                reader.read(&mut take, &mut Vec::new());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        read.sort();
        assert_eq!(read, [(Side::Served, 0, offset), (Side::Clicks, 0, offset)]);
    }
}

#[test]
fn reading_continues_after_a_reassignment() {
    let mut stage = Stage::new();
    for _ in 0..3 {
        stage.assign();
        stage.check();
    }
}

#[test]
fn an_assignment_ends_a_pause() {
    let mut stage = Stage::new();
    stage.assign();
    stage.check();
    stage.execute(Order::Pause(CLICKED));
    stage.assign();
    stage.check();
    stage.execute(Order::Pause(SERVED));
    stage.execute(Order::Unassign);
    stage.assign();
    stage.check();
}

/// The commit serves to ask the group whether the pair is ours, and an empty commit would not ask.
#[test]
fn commits_the_known_offsets_of_a_pair_that_is_not_read_yet() {
    let mut stage = Stage::new();
    stage.execute(Order::Subscribe);
    stage.wait_for(|input| matches!(input, Input::Assigned(_)).then_some(()));
    stage.execute(Order::Assign(Vec::new()));
    assert_eq!(stage.commits(1, vec![(SERVED, 4)]), Some(true));
    assert_eq!(stage.commits(2, Vec::new()), Some(true));
    let mut asked = TopicPartitionList::new();
    for topic in ["served", "clicks"] {
        asked.add_partition(topic, 0);
    }
    let within = Duration::from_secs(10);
    let committed = stage.consumer.client.committed_offsets(asked, within).unwrap();
    let offset = |topic| committed.find_partition(topic, 0).map(|found| found.offset());
    assert_eq!(offset("served"), Some(Offset::Offset(4)), "it is not taken back");
    assert_eq!(offset("clicks"), Some(Offset::Offset(0)));
}
