//! Prints the partitions that Rust clients give keys: see make. Arguments: brokers, file of keys, partition counts.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use confluent_kafka::common::serialization::ByteArraySerializer;
use confluent_kafka::producer::{KafkaProducer, ProducerConfig, ProducerRecord};
use kafka::client::ProduceMessage;
use kafka::producer::{DefaultHasher, DefaultPartitioner, Partitioner, Producer, Record, Topics};

/// The fix for the `kafka` crate, as docs/topics.md shows it.
#[derive(Default)]
struct Murmur2(u32);

impl Hasher for Murmur2 {
    fn write(&mut self, key: &[u8]) {
        self.0 = krafka::producer::murmur2(key) & 0x7fff_ffff;
    }

    fn finish(&self) -> u64 {
        u64::from(self.0)
    }
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let keys: Vec<String> = serde_json::from_slice(&fs::read(&args[1]).expect("keys")).expect("JSON");
    for n in &args[2..] {
        let topic = format!("t-{n}");
        let murmur2 = DefaultPartitioner::with_hasher(BuildHasherDefault::<Murmur2>::default());
        print("rust kafka", n, with_kafka(&args[0], &topic, &keys, DefaultPartitioner::with_default_hasher::<DefaultHasher>()));
        print("rust kafka Murmur2", n, with_kafka(&args[0], &topic, &keys, murmur2));
        for (name, key, value) in [
            ("rust confluent-kafka", "acks", "1"),
            ("rust confluent-kafka partitioner=murmur2_random", "partitioner", "murmur2_random"),
            (
                "rust confluent-kafka partitioner.type=Murmur2RandomPartitioner",
                "partitioner.type",
                "Murmur2RandomPartitioner",
            ),
        ] {
            // One producer puts records that have no key for it into one partition for a while: a new one for each.
            let (keys, empty) = keys.split_at(keys.iter().position(String::is_empty).expect("empty keys"));
            let mut partitions = with_confluent(&args[0], &topic, keys, key, value).await;
            for one in empty.chunks(1) {
                partitions.extend(with_confluent(&args[0], &topic, one, key, value).await);
            }
            print(name, n, partitions);
        }
        print("rust krafka", n, with_krafka(&args[0], &topic, &keys).await);
    }
}

fn print(name: &str, n: &str, partitions: Vec<i32>) {
    let partitions: Vec<_> = partitions.iter().map(i32::to_string).collect();
    println!("{name}\t{n}\t{}", partitions.join(" "));
}

/// Notes where records go. Kafka 4 no longer takes the requests of this crate.
struct Noted<P> {
    partitioner: P,
    partitions: Rc<RefCell<Vec<i32>>>,
}

impl<P: Partitioner> Partitioner for Noted<P> {
    fn partition(&mut self, topics: Topics, message: &mut ProduceMessage) {
        self.partitioner.partition(topics, message);
        self.partitions.borrow_mut().push(message.partition);
    }
}

fn with_kafka<P: Partitioner>(brokers: &str, topic: &str, keys: &[String], partitioner: P) -> Vec<i32> {
    let partitions = Rc::default();
    let noted = Noted { partitioner, partitions: Rc::clone(&partitions) };
    let producer = Producer::from_hosts(vec![brokers.to_owned()]).with_partitioner(noted);
    let records: Vec<_> = keys.iter().map(|key| Record::from_key_value(topic, key.as_bytes(), "v")).collect();
    let _refused = producer.create().expect("producer").send_all(&records);
    partitions.take()
}

async fn with_confluent(brokers: &str, topic: &str, keys: &[String], key: &str, value: &str) -> Vec<i32> {
    let properties = HashMap::from([("bootstrap.servers", brokers), (key, value)]);
    let properties = properties.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    let config = ProducerConfig::new(&properties.collect()).expect("configuration");
    let producer: KafkaProducer<Vec<u8>, Vec<u8>> =
        KafkaProducer::new(config, ByteArraySerializer::new(), ByteArraySerializer::new()).expect("producer");
    let mut partitions = Vec::new();
    for key in keys {
        let record = ProducerRecord::with_key(topic.to_owned(), Some(key.as_bytes()), Some(&b"v"[..]));
        let sent = producer.send(record, None).await.expect("sent");
        partitions.push(sent.get().await.expect("acknowledged").partition());
    }
    partitions
}

async fn with_krafka(brokers: &str, topic: &str, keys: &[String]) -> Vec<i32> {
    let kafka = krafka::Kafka::builder(brokers).connect().await.expect("connected");
    let producer = kafka.producer().build().await.expect("producer");
    let mut partitions = Vec::new();
    for key in keys {
        let record = krafka::Record::new(topic.to_owned(), "v").key(key.clone());
        partitions.push(producer.send(record).await.expect("sent").partition);
    }
    partitions
}
