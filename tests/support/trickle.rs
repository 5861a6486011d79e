//! A daemon whose events a test sends one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::daemon::Daemon;
use super::kafka::Kafka;
use super::producer::Producer;

pub struct Trickle {
    pub daemon: Daemon,
    producer: Producer,
    served: String,
    clicks: String,
    n_lists: AtomicU64,
    _kafka: Arc<Kafka>,
}

impl Trickle {
    /// Starts the daemon with two empty one-partition topics and these lines below `[http]`. The control of the experiment
    /// `first` is `v 1`. Its settings need no further data, so there is no warning.
    pub fn start(http: &str) -> Trickle {
        let kafka = Kafka::shared();
        let [served, clicks] = ["served", "clicks"].map(|stem| kafka.new_topic(stem, 1));
        let config = format!(
            "{section}[experiments.first]
control = \"v 1\"
shares = {{ \"v 1\" = 0.5, \"v 2\" = 0.5 }}
primary = [\"ctr@10\"]
unit = \"request\"
[http]
{http}",
            section = kafka.section(&served, &clicks),
        );
        Trickle {
            daemon: Daemon::run(&config),
            producer: kafka.producer(),
            served,
            clicks,
            n_lists: AtomicU64::new(0),
            _kafka: kafka,
        }
    }

    /// Sends `n` current lists of two items, each with a click.
    pub fn lists(&self, experiment: &str, arm: &str, n: u64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let ts = i64::try_from(now.as_millis()).expect("of this age");
        for _ in 0..n {
            let id = format!("r-{}", self.n_lists.fetch_add(1, Ordering::Relaxed));
            let list = serde_json::json!({
                "request_id": id, "ts": ts, "experiments": { experiment: arm }, "items": ["a", "b"],
            });
            let click = serde_json::json!({ "request_id": id, "ts": ts, "item": "b" });
            for (topic, event) in [(&self.served, list), (&self.clicks, click)] {
                let event = event.to_string();
                let (key, event) = (id.as_bytes(), event.as_bytes());
                self.producer
                    .produce(topic, Some(0), Some(key), Some(event), Some(ts));
            }
        }
        self.producer.flush();
    }
}
