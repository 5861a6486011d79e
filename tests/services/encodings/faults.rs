//! Faults of the registry: no record is lost, partitions that need no new schema continue, and the problem is reported.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::world;
use crate::support::certificates::{Authority, Validity};
use crate::support::daemon::Daemon;
use crate::support::front::{Fault, Front};
use crate::support::kafka::Kafka;
use crate::support::producer::Producer;
use crate::support::registry::Registry;
use crate::support::{tools, wait};

/// Time within which a partition that waits must be reported.
const REPORTED_WITHIN: Duration = Duration::from_secs(5);

/// Topic of lists in Avro with Confluent's framing.
pub struct Lists {
    topic: String,
    clicks: String,
    producer: Producer,
    n_sent: u32,
}

impl Lists {
    pub fn new(kafka: &Kafka, n_partitions: i32) -> Lists {
        Lists {
            topic: kafka.new_topic("served", n_partitions),
            clicks: kafka.new_topic("clicks", n_partitions),
            producer: kafka.producer(),
            n_sent: 0,
        }
    }

    /// Sends a list.
    fn send(&mut self, partition: i32, schema: u32) {
        self.n_sent += 1;
        let record = framed(schema, &format!("r{}", self.n_sent));
        self.send_record(partition, &record);
    }

    pub fn send_record(&self, partition: i32, record: &[u8]) {
        self.producer
            .produce(&self.topic, Some(partition), None, Some(record), None);
    }

    fn send_all(&mut self, lists: &[(i32, u32)]) {
        for (partition, schema) in lists {
            self.send(*partition, *schema);
        }
        self.producer.flush();
    }

    pub fn daemon(&self, kafka: &Kafka, settings: &str) -> Daemon {
        Daemon::run(&format!(
            r#"
            kafka.brokers = "{}"
            kafka.served_topic = "{}"
            kafka.clicks_topic = "{}"
            kafka.group_id = "{}"
            ingest.workers = 1
            events.served.format = "avro"
            {settings}
            "#,
            kafka.brokers(),
            self.topic,
            self.clicks,
            kafka.unique("group"),
        ))
    }

    fn n_accepted(&self, daemon: &Daemon) -> f64 {
        let labels = [("topic", self.topic.as_str()), ("outcome", "accepted")];
        let metrics = daemon.try_get("/metrics").ok();
        let scrape =
            metrics.and_then(|answer| crate::support::exposition::Exposition::parse(&answer.body).ok());
        scrape.map_or(0.0, |scrape| scrape.sum("abgauge_records_total", &labels))
    }

    #[track_caller]
    pub fn wait_until_accepted(&self, daemon: &mut Daemon, n: u32) {
        daemon.wait_until(&format!("{n} lists"), |daemon| {
            let accepted = self.n_accepted(daemon);
            assert!(accepted <= f64::from(n), "only {n} lists can be read: {accepted}");
            (accepted == f64::from(n)).then_some(())
        });
    }

    #[track_caller]
    fn wait_until_released(&self, daemon: &mut Daemon) {
        daemon.wait_until("no held partition", |daemon| {
            (daemon.metrics().sum("abgauge_partition_held", &[]) == 0.0).then_some(())
        });
    }

    /// Waits until the gauge and the page report that a partition is held for a reason with these words, and only this one.
    #[track_caller]
    fn wait_until_held(&self, daemon: &Daemon, partition: i32, words: &str) {
        let started = Instant::now();
        let number = partition.to_string();
        let labels = [("topic", self.topic.as_str()), ("partition", number.as_str())];
        wait::until("the gauge of the held partition", REPORTED_WITHIN, || {
            (daemon.metrics().value("abgauge_partition_held", &labels) == Some(1.0)).then_some(())
        });
        println!("reported after {:.1} s: {words}", started.elapsed().as_secs_f64());
        let all = daemon.metrics().sum("abgauge_partition_held", &[]);
        assert_eq!(all, 1.0, "one partition is held");
        wait::until(&format!("a warning with {words:?}"), wait::PATIENCE, || {
            let api: Value = serde_json::from_str(&daemon.get("/api/v1/experiments").body).expect("JSON");
            let warnings = api["stream"]["warnings"].to_string();
            (warnings.contains("is held: the record at offset") && warnings.contains(words)).then_some(())
        });
    }
}

/// Returns the record of a list in arm `a`.
fn framed(schema: u32, id: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend(schema.to_be_bytes());
    text(&mut bytes, id);
    long(&mut bytes, world::now_ms());
    long(&mut bytes, 1);
    text(&mut bytes, "ranker");
    text(&mut bytes, "a");
    long(&mut bytes, 0);
    long(&mut bytes, 1);
    text(&mut bytes, "x");
    long(&mut bytes, 0);
    bytes
}

pub fn text(bytes: &mut Vec<u8>, text: &str) {
    long(bytes, text.len() as i64);
    bytes.extend(text.as_bytes());
}

pub fn long(bytes: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// Returns the schema of these records. Its documentation differs by id.
fn schema(id: u32) -> Value {
    json!({"type": "record", "name": "List", "doc": format!("number {id}"), "fields": [
        {"name": "request_id", "type": "string"},
        {"name": "ts", "type": "long"},
        {"name": "experiments", "type": {"type": "map", "values": "string"}},
        {"name": "items", "type": {"type": "array", "items": "string"}},
    ]})
}

/// Registers the schemas 1 to `n`, so that these are their ids.
fn register(registry: &Registry, n: u32) {
    let agent = ureq::agent();
    for id in 1..=n {
        let body = json!({"schema": schema(id).to_string()}).to_string();
        let url = format!("{}/subjects/list-value/versions", registry.url());
        let answer = agent
            .post(&url)
            .header("content-type", "application/json")
            .send(body);
        let answer = answer.expect("an answer").body_mut().read_to_string();
        assert_eq!(answer.expect("text"), format!("{{\"id\":{id}}}"));
    }
}

#[test]
fn a_registry_that_comes_up_after_the_daemon_loses_nothing() {
    let kafka = Kafka::shared();
    let front = Front::alone();
    front.set(Fault::Down);
    front.add(7, &schema(7));
    let mut lists = Lists::new(&kafka, 2);
    lists.send_all(&[(0, 7), (1, 7), (0, 7), (1, 7)]);
    let mut daemon = lists.daemon(&kafka, &format!("registry.url = \"{}\"", front.url()));
    daemon.wait_until("/readyz to name the schema", |daemon| {
        let answer = daemon.try_get("/readyz").ok()?;
        let is_named = answer.status == 503 && answer.body.contains("schema 7, which is not known yet");
        is_named.then_some(())
    });
    assert_eq!(lists.n_accepted(&daemon), 0.0);
    front.set(Fault::None);
    daemon.wait_until_ready();
    lists.wait_until_accepted(&mut daemon, 4);
}

/// The registry is killed, not a server before it. Its storage is in memory, so it gets its schemas again.
#[test]
fn a_killed_registry_holds_only_the_partition_that_needs_a_new_schema() {
    let kafka = Kafka::shared();
    let mut registry = Registry::start();
    register(&registry, 1);
    let mut lists = Lists::new(&kafka, 2);
    lists.send_all(&[(0, 1), (1, 1)]);
    let mut daemon = lists.daemon(&kafka, &format!("registry.url = \"{}\"", registry.url()));
    lists.wait_until_accepted(&mut daemon, 2);
    registry.kill();
    lists.send_all(&[(0, 2), (0, 1), (1, 1), (1, 1)]);
    lists.wait_until_held(&daemon, 0, "Connection refused");
    lists.wait_until_accepted(&mut daemon, 4);
    lists.send_all(&[(1, 1), (0, 2)]);
    lists.wait_until_accepted(&mut daemon, 5);
    registry.restart();
    register(&registry, 2);
    lists.wait_until_accepted(&mut daemon, 8);
    lists.wait_until_released(&mut daemon);
}

#[test]
fn errors_and_silence_of_the_registry_lose_nothing() {
    let kafka = Kafka::shared();
    let front = Front::alone();
    (1..=4).for_each(|id| front.add(id, &schema(id)));
    let mut lists = Lists::new(&kafka, 2);
    lists.send_all(&[(0, 1), (1, 1)]);
    let settings = format!("registry.url = \"{}\"\nregistry.timeout = \"2s\"", front.url());
    let mut daemon = lists.daemon(&kafka, &settings);
    lists.wait_until_accepted(&mut daemon, 2);
    let faults = [
        (Fault::Status(500), "500 Internal Server Error"),
        (Fault::Hangs, "no answer within 2s (registry.timeout)"),
        (Fault::Status(301), "redirects are not followed"),
    ];
    for (n, (fault, words)) in (0..).zip(faults) {
        front.set(fault);
        lists.send_all(&[(0, n + 2), (1, 1)]);
        lists.wait_until_held(&daemon, 0, words);
        // The other partition continues.
        lists.wait_until_accepted(&mut daemon, 2 * n + 3);
        front.set(Fault::None);
        lists.wait_until_accepted(&mut daemon, 2 * n + 4);
        lists.wait_until_released(&mut daemon);
    }
    // A slow answer is an answer.
    front.add(5, &schema(5));
    front.set(Fault::Slow(Duration::from_millis(1500)));
    lists.send_all(&[(0, 5), (1, 1)]);
    lists.wait_until_accepted(&mut daemon, 10);
    let requests = front.requests();
    assert_eq!((requests["/schemas/ids/1"], requests["/schemas/ids/5"]), (1, 1));
}

#[test]
fn credentials_and_authorities_are_corrected_without_a_restart() {
    let kafka = Kafka::shared();
    let dir = tools::temporary_dir("registry");
    let [authority, stranger] = ["authority", "stranger"].map(|name| Authority::new(dir.path(), name));
    let front = Front::with_tls(None, &authority.sign("registry", &["127.0.0.1"], Validity::Now));
    front.protect("abgauge", "correct");
    (1..=2).for_each(|id| front.add(id, &schema(id)));
    let [password, ca] = ["password", "ca.pem"].map(|name| dir.path().join(name));
    fs::write(&password, "wrong").expect("write the password");
    fs::copy(&stranger.file, &ca).expect("copy the authority");
    let mut lists = Lists::new(&kafka, 1);
    let settings = format!(
        "registry.url = \"{}\"\nregistry.username = \"abgauge\"\nregistry.password_file = {password:?}\nregistry.ca_file = {ca:?}",
        front.url()
    );
    lists.send_all(&[(0, 1)]);
    let mut daemon = lists.daemon(&kafka, &settings);
    let mut reports = |words: &str| {
        daemon.wait_for_log(words, |log| log.contains(words));
    };
    reports("invalid peer certificate");
    fs::copy(&authority.file, &ca).expect("copy the authority");
    reports("it answers 401 Unauthorized: check registry.username and registry.password_file");
    fs::write(&password, "correct").expect("write the password");
    lists.wait_until_accepted(&mut daemon, 1);
    let log = daemon.log();
    assert!(!log.contains("correct") && !log.contains("wrong"), "{log}");
}

/// Replicas of a registry lag, so only a denial that lasts for 60 s counts.
#[test]
fn a_denied_schema_goes_to_the_dead_letters_after_a_minute() {
    let kafka = Kafka::shared();
    let front = Front::alone();
    front.add(1, &schema(1));
    let dead_letters = kafka.new_topic("dead-letters", 1);
    let mut lists = Lists::new(&kafka, 2);
    lists.send_all(&[(0, 9), (0, 1), (1, 1)]);
    let started = Instant::now();
    let settings = format!(
        "registry.url = \"{}\"\nkafka.dead_letter_topic = \"{dead_letters}\"",
        front.url()
    );
    let mut daemon = lists.daemon(&kafka, &settings);
    lists.wait_until_accepted(&mut daemon, 1);
    lists.wait_until_held(&daemon, 0, "it is not in the registry; after 60 s");
    lists.wait_until_accepted(&mut daemon, 2);
    assert!(started.elapsed() >= Duration::from_secs(60), "too soon");
    let labels = [("topic", lists.topic.as_str()), ("reason", "unknown_schema")];
    let scrape = daemon.metrics();
    assert_eq!(scrape.value("abgauge_invalid_records_total", &labels), Some(1.0));
    let letters = wait::until("the dead letter", wait::PATIENCE, || {
        Some(kafka.read_all(&dead_letters)).filter(|letters| !letters.is_empty())
    });
    assert_eq!(letters.len(), 1);
    assert_eq!(
        letters[0].payload.as_deref().map(|payload| &payload[..5]),
        Some(&[0, 0, 0, 0, 9][..])
    );
}

#[test]
fn ten_thousand_schemas_are_fetched_once_each() {
    const N_PARTITIONS: i32 = 100;
    const N_SCHEMAS: u32 = 10_000;
    let kafka = Kafka::shared();
    let front = Front::alone();
    let mut lists = Lists::new(&kafka, N_PARTITIONS);
    for id in 0..N_SCHEMAS {
        front.add(id, &schema(id));
        lists.send((id % N_PARTITIONS as u32) as i32, id);
    }
    lists.producer.flush();
    let started = Instant::now();
    let mut daemon = lists.daemon(&kafka, &format!("registry.url = \"{}\"", front.url()));
    lists.wait_until_accepted(&mut daemon, N_SCHEMAS);
    println!("{N_SCHEMAS} schemas: {:.1} s", started.elapsed().as_secs_f64());
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("a process");
    println!(
        "{}",
        status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .expect("a line")
    );
    let requests = front.requests();
    assert_eq!(requests.len(), N_SCHEMAS as usize);
    assert!(requests.values().all(|n| *n == 1));
}
