//! Lists and clicks in new topics, and a daemon that reads them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::kafka::{Kafka, Options};
use crate::support::producer::Producer;
use crate::support::wait::{self, PATIENCE};

/// Setting for the shortest session timeout that brokers allow.
pub const SHORT_SESSION: &str = "kafka.properties.\"session.timeout.ms\" = 6000";

/// Starts a broker that daemons reach through a proxy, and the test directly.
pub fn proxied() -> Kafka {
    Kafka::start_with(Options {
        proxied: true,
        ..Options::default()
    })
}

/// Two topics and a producer. Each list shows `i1`, `i2`, `i3` in the arm of its partition, and each click is on `i1`.
pub struct Traffic {
    pub served: String,
    pub clicks: String,
    n_partitions: i32,
    producer: Producer,
}

impl Traffic {
    pub fn new(kafka: &Kafka, n_partitions: i32) -> Traffic {
        Traffic::with(kafka, n_partitions, &[])
    }

    /// Like `new`, with settings for the topics.
    pub fn with(kafka: &Kafka, n_partitions: i32, settings: &[(&str, &str)]) -> Traffic {
        let topic = |stem: &str| {
            let name = kafka.unique(stem);
            kafka.create_topic(&name, n_partitions, settings);
            name
        };
        Traffic::of(kafka, topic, n_partitions)
    }

    /// Like `new`, with topics that `new` creates from the stems of their names.
    pub fn of(kafka: &Kafka, new: impl Fn(&str) -> String, n_partitions: i32) -> Traffic {
        Traffic {
            served: new("served"),
            clicks: new("clicks"),
            n_partitions,
            producer: kafka.producer(),
        }
    }

    pub fn list(&self, partition: i32, id: &str, ts_ms: i64) {
        let arm = arm(partition);
        let list = json!({
            "request_id": id, "ts": ts_ms, "experiments": {"ranker": arm}, "items": ["i1", "i2", "i3"],
        });
        self.send(&self.served, partition, id, &list);
    }

    /// Sends a list that counts in no arm.
    pub fn list_without_arm(&self, partition: i32, id: &str, ts_ms: i64) {
        let list = json!({"request_id": id, "ts": ts_ms, "experiments": {}, "items": ["i1"]});
        self.send(&self.served, partition, id, &list);
    }

    pub fn click(&self, partition: i32, id: &str, ts_ms: i64) {
        let click = json!({"request_id": id, "ts": ts_ms, "item": "i1"});
        self.send(&self.clicks, partition, id, &click);
    }

    /// Sends invalid JSON to the topic of lists.
    pub fn broken_list(&self, partition: i32, number: u32) {
        let (key, payload) = (format!("r-{number}"), format!("{{broken {number}"));
        self.producer.produce(
            &self.served,
            Some(partition),
            Some(key.as_bytes()),
            Some(payload.as_bytes()),
            None,
        );
    }

    fn send(&self, topic: &str, partition: i32, id: &str, event: &Value) {
        let (key, payload) = (id.as_bytes(), event.to_string());
        self.producer
            .produce(topic, Some(partition), Some(key), Some(payload.as_bytes()), None);
    }

    /// Sends a current list and a click on it for each number, to the partitions in turn. They may not be acknowledged yet.
    pub fn send_clicked_lists(&self, numbers: Range<u32>) {
        for number in numbers {
            let partition = number.cast_signed() % self.n_partitions;
            self.send_clicked_list(partition, number);
        }
    }

    /// Sends a list and a click to one partition.
    pub fn send_clicked_list(&self, partition: i32, number: u32) {
        let id = format!("r-{number}");
        let ts_ms = now_ms();
        self.list(partition, &id, ts_ms);
        self.click(partition, &id, ts_ms + 1);
    }

    /// Waits until the broker has acknowledged everything.
    #[track_caller]
    pub fn flush(&self) {
        self.producer.flush();
    }

    /// Returns the configuration of a daemon in the group `group`, with the lines `more`.
    pub fn config(&self, brokers: &str, group: &str, more: &str) -> String {
        config(brokers, &self.served, &self.clicks, group, more)
    }

    /// Starts a daemon in its own group.
    pub fn daemon(&self, kafka: &Kafka) -> Daemon {
        Daemon::run(&self.config(&kafka.brokers(), &kafka.unique("group"), ""))
    }
}

/// Returns the configuration of a daemon in the group `group`, with the lines `more`. All keys are dotted.
///
/// Spans are so short that a slot settles within seconds.
pub fn config(brokers: &str, served: &str, clicks: &str, group: &str, more: &str) -> String {
    config_with_lateness("4s", brokers, served, clicks, group, more)
}

/// Like `config`, with another lateness.
pub fn config_with_lateness(
    lateness: &str,
    brokers: &str,
    served: &str,
    clicks: &str,
    group: &str,
    more: &str,
) -> String {
    format!(
        r#"
        kafka.brokers = "{brokers}"
        kafka.served_topic = "{served}"
        kafka.clicks_topic = "{clicks}"
        kafka.group_id = "{group}"
        join.attribution = "2s"
        join.lateness = "{lateness}"
        join.max_future = "1s"
        join.idle_after = "1s"
        join.slot = "1s"
        metrics.windows = ["10m"]
        export.numerators = ["hit_rate", "mrr"]
        {more}
        "#
    )
}

/// Sends an event to partition 0 in a transaction that is left open. Readers cannot pass it until the transaction ends.
pub fn open_transaction(kafka: &Kafka, topic: &str, event: &Value) -> BaseProducer {
    let producer: BaseProducer = ClientConfig::new()
        .set("bootstrap.servers", kafka.brokers())
        .set("transactional.id", kafka.unique("transaction"))
        .set("transaction.timeout.ms", "60000")
        .create()
        .expect("a producer");
    producer.init_transactions(PATIENCE).expect("transactions");
    producer.begin_transaction().expect("one begins");
    let payload = event.to_string();
    let record = BaseRecord::<[u8], [u8]>::to(topic)
        .partition(0)
        .key(b"open")
        .payload(payload.as_bytes());
    let sent = producer.send(record).map_err(|(error, _)| error);
    sent.expect("room in the queue");
    producer.flush(PATIENCE).expect("it is written");
    producer
}

pub fn arm(partition: i32) -> String {
    format!("of-{partition}")
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    since.as_millis() as i64
}

/// Scrapes the daemon. Returns `None` while it does not listen.
pub fn scrape(daemon: &Daemon) -> Option<Exposition> {
    let answer = daemon.try_get("/metrics").ok()?;
    Some(Exposition::parse(&answer.body).unwrap_or_else(|error| panic!("/metrics: {error}")))
}

/// Returns the body of `/readyz` while the daemon is not ready.
pub fn waits_for(daemon: &Daemon) -> Option<String> {
    let answer = daemon.try_get("/readyz").ok()?;
    (answer.status == 503).then_some(answer.body)
}

/// Returns the lists of each arm in `total`, in one view.
pub fn lists_by_arm(scrape: &Exposition, view: &str) -> BTreeMap<String, f64> {
    scrape
        .select(
            "abgauge_lists",
            &[("window", "total"), ("view", view), ("scope", "own")],
        )
        .map(|sample| (sample.labels["arm"].clone(), sample.value))
        .collect()
}

/// Returns the lists and distinct clicks of all arms in `total`, in one view.
pub fn totals(scrape: &Exposition, view: &str) -> (f64, f64) {
    let of_view = [("window", "total"), ("view", view), ("scope", "own")];
    let sum = |name| scrape.sum(name, &of_view);
    (sum("abgauge_lists"), sum("abgauge_clicks"))
}

/// Waits until `n` lists with a click each are in the live view.
#[track_caller]
pub fn wait_for_live(daemon: &mut Daemon, n: u32) {
    let all = (f64::from(n), f64::from(n));
    let are_live = || (totals(&scrape(daemon)?, "live") == all).then_some(());
    if wait::try_until(wait::LONG, are_live).is_none() {
        let reported = daemon.get("/metrics").body;
        let has_secret_word = |line: &&str| {
            [
                "records_total",
                "click_results",
                "lag",
                "watermark",
                "frontier",
                "clicks_waiting",
            ]
            .iter()
            .any(|name| line.contains(name))
        };
        let reported: Vec<_> = reported
            .lines()
            .filter(has_secret_word)
            .filter(|line| !line.ends_with(" 0"))
            .collect();
        panic!(
            "{n} clicked lists are not live after {:?}: {reported:#?}",
            wait::LONG
        );
    }
}

/// Asserts that every record was accepted and every click matched: `n` lists and `n` clicks.
#[track_caller]
pub fn assert_all_counted(scrape: &Exposition, n: u32) {
    let n = f64::from(n);
    assert_eq!(
        scrape.sum("abgauge_records_total", &[("outcome", "accepted")]),
        2.0 * n
    );
    assert_eq!(
        scrape.sum("abgauge_records_total", &[]),
        2.0 * n,
        "no other outcome"
    );
    assert_eq!(
        scrape.sum("abgauge_click_results_total", &[("result", "matched")]),
        n
    );
    assert_eq!(
        scrape.sum("abgauge_click_results_total", &[]),
        n,
        "no other result"
    );
    assert_eq!(scrape.value("abgauge_exact", &[]), Some(1.0));
}

/// Parses the lines of the log, one JSON object each.
pub fn log(daemon: &Daemon) -> Vec<Value> {
    daemon
        .log()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no line of the log: {line}")))
        .collect()
}

/// Returns the messages of warnings and errors in the log.
pub fn warnings(daemon: &Daemon) -> Vec<String> {
    log(daemon)
        .iter()
        .filter(|line| line["level"] == "WARN" || line["level"] == "ERROR")
        .map(|line| line["message"].as_str().expect("a message").to_owned())
        .collect()
}
