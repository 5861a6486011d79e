//! A daemon with ten thousand arms.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::daemon::Daemon;
use super::https::{self, Trust};
use super::kafka::Kafka;

/// Number of arms in the experiment `crowd`, including its control.
pub const N_ARMS: usize = 10_000;
/// Arm names that would have an effect if a reader interpreted them as markup, formula or text direction.
pub const HOSTILE: [&str; 3] = ["<img src=x onerror=alert(1)>", "=1+1", "\u{202e}enil"];

const MINUTE_MS: i64 = 60_000;

pub struct Crowd {
    pub daemon: Daemon,
    _kafka: Arc<Kafka>,
}

impl Crowd {
    /// Starts the daemon and waits until it is ready. Each arm has one settled and one open list of five items, and the n-th
    /// arm has n % 5 clicks on each.
    pub fn start() -> Crowd {
        Crowd::start_with("", None)
    }

    /// Like `start`, with these lines below `[http]`; readiness is polled over TLS if `trust` is given.
    pub fn start_with(http: &str, trust: Option<&Trust>) -> Crowd {
        let kafka = Kafka::shared();
        let [served, clicks] = ["served", "clicks"].map(|stem| kafka.new_topic(stem, 1));
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let now_ms = i64::try_from(now_ms.as_millis()).expect("of this age");
        let producer = kafka.producer();
        let put = |topic: &str, key: &str, payload: String, ts_ms| {
            producer.produce(
                topic,
                Some(0),
                Some(key.as_bytes()),
                Some(payload.as_bytes()),
                Some(ts_ms),
            );
        };
        for (round, ts_ms) in [now_ms - 50 * MINUTE_MS, now_ms - MINUTE_MS]
            .into_iter()
            .enumerate()
        {
            for n in 0..N_ARMS {
                let id = format!("r-{round}-{n}");
                let experiments = serde_json::json!({ "crowd": arm(n) });
                let list = format!(
                    r#"{{"request_id":"{id}","ts":{ts_ms},"experiments":{experiments},"items":["a","b","c","d","e"]}}"#
                );
                put(&served, &id, list, ts_ms);
                for item in ["a", "b", "c", "d"].into_iter().take(n % 5) {
                    let click = format!(r#"{{"request_id":"{id}","ts":{ts_ms},"item":"{item}"}}"#);
                    put(&clicks, &id, click, ts_ms);
                }
            }
        }
        producer.flush();
        let config = format!(
            "{section}[metrics]
metrics = [\"hit_rate\", \"ctr\", \"mrr\"]
k = [5]
windows = [\"1h\", \"6h\"]
[experiments.crowd]
control = \"arm-0\"
[http]
{http}",
            section = kafka.section(&served, &clicks),
        );
        let mut daemon = Daemon::run(&config);
        daemon.wait_until("abgauge to be ready", |daemon| {
            let answer = https::get(daemon.address(), trust, "/readyz", &[]);
            answer.ok().filter(|answer| answer.status == 200)
        });
        Crowd {
            daemon,
            _kafka: kafka,
        }
    }
}

/// Returns the name of the n-th arm. The last ones are hostile.
fn arm(n: usize) -> String {
    match HOSTILE.get(N_ARMS - 1 - n) {
        Some(hostile) => (*hostile).to_owned(),
        None => format!("arm-{n}"),
    }
}
