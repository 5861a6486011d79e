//! Looks over a log of several days in real Kafka: identical after crashes, and delayed by a partition that is late.

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use abgauge::stream::keys::murmur2_partition;
use rdkafka::producer::Producer as _;
use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::support::producer::Producer;
use crate::support::wait::PATIENCE;
use crate::traffic::{now_ms, open_transaction, scrape};

/// Event time between two numbered lists.
const STEP_MS: i64 = 24_000;
/// Lists of the first day.
const BEGIN: Range<u64> = 0..3_600;
/// Lists from twenty minutes later until the end of the second day.
const FIRST: Range<u64> = 3_650..7_200;
/// Lists from twenty minutes later until half a day later.
const SECOND: Range<u64> = 7_250..9_000;
const LOOK_MS: i64 = 600_000;
const N_USERS: u64 = 3_000;
pub const N_PARTITIONS: u32 = 2;

/// Two topics keyed by user, and the producer of one experiment. Half of the users are in `base`, a quarter in `better`,
/// whose lists are clicked more often, and a quarter in `same`.
pub struct World {
    pub kafka: Arc<Kafka>,
    pub served: String,
    pub clicks: String,
    producer: Producer,
    /// Start of the experiment. It is also the time of a look.
    begin_ms: i64,
}

impl World {
    pub fn new() -> World {
        let kafka = Kafka::shared();
        let [served, clicks] =
            ["served", "clicks"].map(|stem| kafka.new_topic(stem, N_PARTITIONS.cast_signed()));
        let length_ms = SECOND.end.cast_signed() * STEP_MS + 2 * LOOK_MS;
        World {
            producer: kafka.producer(),
            begin_ms: (now_ms() - length_ms) / LOOK_MS * LOOK_MS,
            served,
            clicks,
            kafka,
        }
    }

    /// Returns the configuration of a daemon that reads the whole log. No partition becomes idle, so looks depend only on the
    /// log. After a restart the daemon replaces the crashed one in its group.
    pub fn config(&self, name: &str) -> String {
        format!(
            r#"{section}
key = "user"
start = "earliest"
properties."group.instance.id" = "{name}"
[join]
attribution = "1m"
lateness = "1m"
idle_after = "1h"
slot = "1m"
[metrics]
windows = ["1h"]
metrics = ["hit_rate", "mrr"]
k = [5]
[experiments.ranker]
control = "base"
shares = {{ base = 0.5, better = 0.25, same = 0.25 }}
primary = ["hit_rate@5"]
guardrails = {{ "mrr@5" = 0.1 }}
min_days = 1
planned_days = 1.5
"#,
            section = self.kafka.section(&self.served, &self.clicks),
        )
    }

    /// Sends the lists with these numbers whose users are in one of these partitions, and their clicks. The last events
    /// settle the look at the end of the lists, and no later one.
    pub fn send(&self, numbers: Range<u64>, partitions: &[u32]) {
        for number in numbers.clone() {
            let user = mixed(number) % N_USERS;
            if partitions.contains(&partition_of(user)) {
                let is_clicked = mixed(number ^ (1 << 40)) % 100 < click_percentage(user);
                let ts_ms = self.begin_ms + number.cast_signed() * STEP_MS;
                self.list(&format!("r-{number}"), user, ts_ms, is_clicked);
            }
        }
        for partition in partitions {
            let user = (0..N_USERS).find(|user| partition_of(*user) == *partition);
            let id = format!("end-{}-{partition}", numbers.end);
            self.list(&id, user.expect("a user"), self.end_ms(&numbers) + 480_000, true);
        }
        self.producer.flush();
    }

    /// Returns the time of the look after these lists.
    fn end_ms(&self, numbers: &Range<u64>) -> i64 {
        self.begin_ms + numbers.end.cast_signed() * STEP_MS
    }

    fn list(&self, id: &str, user: u64, ts_ms: i64, is_clicked: bool) {
        let name = format!("u-{user}");
        let list = json!({
            "request_id": id, "user_id": name, "ts": ts_ms, "experiments": {"ranker": arm(user)}, "items": ["i1", "i2", "i3"],
        });
        let click = json!({"request_id": id, "user_id": name, "ts": ts_ms + 5_000, "item": "i2"});
        let clicks = is_clicked.then_some((&self.clicks, click));
        for (topic, event) in [(&self.served, list)].into_iter().chain(clicks) {
            let (key, event) = (name.as_bytes(), event.to_string());
            self.producer
                .produce(topic, None, Some(key), Some(event.as_bytes()), Some(ts_ms));
        }
    }

    /// Waits until the daemon shows the look and is ready. It may take looks from stored data before it is ready.
    #[track_caller]
    pub fn wait_for_look(&self, daemon: &mut Daemon, numbers: &Range<u64>) {
        let as_of_ms = self.end_ms(numbers);
        daemon.wait_until("the look at the end", |daemon| {
            (experiment(daemon)?["looks"]["as_of"] == as_of_ms).then_some(())
        });
        daemon.wait_until_ready();
    }
}

/// Returns pseudo-random bits.
fn mixed(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30) ^ 0x9e37_79b9).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 31
}

fn partition_of(user: u64) -> u32 {
    let n_partitions = NonZeroU32::new(N_PARTITIONS).expect("not 0");
    murmur2_partition(format!("u-{user}").as_bytes(), n_partitions)
}

fn arm(user: u64) -> &'static str {
    ["base", "better", "base", "same"][(user % 4) as usize]
}

fn click_percentage(user: u64) -> u64 {
    if arm(user) == "better" { 40 } else { 30 }
}

/// Returns the API's data about the experiment, or `None` until a list has settled.
fn experiment(daemon: &Daemon) -> Option<Value> {
    let answer = daemon.try_get("/api/v1/experiments").ok()?;
    let mut document: Value = serde_json::from_str(&answer.body).ok()?;
    Some(document["experiments"]["ranker"].take()).filter(|experiment| experiment.is_object())
}

/// Results of a daemon at the last look, compared bit by bit.
#[derive(Debug, PartialEq)]
pub struct Said {
    /// Values of each arm: its own, and those against the control.
    arms: Vec<(String, Value, Value)>,
    verdicts: Vec<String>,
    /// Lines of the scrape, with scope `global` renamed to `own` so that instances can be compared.
    gauges: Vec<String>,
}

impl Said {
    pub fn by(daemon: &Daemon) -> Said {
        let mut experiment = experiment(daemon).expect("something has settled");
        let arms = experiment["arms"].as_object_mut().expect("arms").iter_mut();
        let arms = arms.map(|(name, arm)| (name.clone(), arm["look"].take(), arm["comparison"].take()));
        let verdict = |arm| {
            let answer = daemon.get(&format!("/api/v1/verdict?experiment=ranker&arm={arm}"));
            assert_eq!(answer.status, 200, "{}", answer.body);
            answer.body
        };
        let scrape = daemon.get("/metrics").body;
        let is_of_looks = |line: &&str| GAUGES.iter().any(|name| line.starts_with(name));
        Said {
            arms: arms.collect(),
            verdicts: ["better", "same"].map(verdict).into(),
            gauges: scrape
                .lines()
                .filter(is_of_looks)
                .map(|line| line.replace("scope=\"global\"", "scope=\"own\""))
                .collect(),
        }
    }
}

/// Returns the information that `abgauge plan` reports for the primary of `better` under its design, from 2.5 days of data.
fn planned_information(daemon: &Daemon) -> f64 {
    let url = format!("http://{}", daemon.address());
    let ran = crate::support::program::run(&["plan", "--from", &url, "--format", "json"]);
    let plan: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let plan = &plan["plans"]["ranker"];
    assert_eq!((&plan["days"], &plan["design"]), (&json!(2.5), &json!("planned")));
    let metric = &plan["arms"]["better"]["metrics"]["hit_rate@5"];
    assert!(metric["growth"].is_number(), "two days have passed: {metric}");
    metric["planned"]["information"].as_f64().expect("a number")
}

/// Prefixes of gauge names.
const GAUGES: [&str; 12] = [
    "abgauge_ci_",
    "abgauge_decision",
    "abgauge_harm_p_value",
    "abgauge_lift",
    "abgauge_list_ratio",
    "abgauge_look_timestamp_seconds",
    "abgauge_multi_arm_users",
    "abgauge_p_value",
    "abgauge_power_information",
    "abgauge_srm_p_value",
    "abgauge_top_bucket_share",
    "abgauge_verdict",
];

/// Running maxima, the planned look and decisions come from looks that were not stored.
#[test]
fn looks_are_the_same_after_crashes_over_the_same_log() {
    let world = World::new();
    world.send(BEGIN, &[0, 1]);
    let transaction = open_transaction(&world.kafka, &world.served, &json!("never committed"));
    world.send(FIRST, &[0, 1]);
    let mut whole = Daemon::run(&world.config("whole"));
    let mut crashed = Daemon::run(&world.config("crashed"));
    crashed.wait_until("what precedes the open transaction to be read", |daemon| {
        let n_read = scrape(daemon)?.sum("abgauge_records_total", &[]);
        (n_read > BEGIN.end as f64).then_some(())
    });
    crashed.kill();
    transaction.abort_transaction(PATIENCE).expect("it ends");
    world.wait_for_look(&mut whole, &FIRST);
    // The crashed daemon will find both partitions complete. This one receives them one after the other.
    world.send(SECOND, &[1]);
    world.send(SECOND, &[0]);
    world.wait_for_look(&mut whole, &SECOND);
    let said = Said::by(&whole);

    crashed.start_again();
    world.wait_for_look(&mut crashed, &SECOND);
    assert_eq!(Said::by(&crashed), said);
    crashed.kill();
    crashed.start_again();
    world.wait_for_look(&mut crashed, &SECOND);
    assert_eq!(Said::by(&crashed), said);

    let of_primary = [("arm", "better"), ("metric", "hit_rate"), ("k", "5")];
    let reported = crashed
        .metrics()
        .value("abgauge_power_information", &of_primary)
        .expect("it is known");
    // The planned look is over. All others share the remaining alpha, so they need more information.
    assert!(planned_information(&crashed) > reported && reported > 0.0);
    let better: Value = serde_json::from_str(&said.verdicts[0]).expect("JSON");
    assert_eq!((&better["state"], &better["look"]), (&json!("win"), &json!(360)));
    for (name, at_least) in [
        ("abgauge_lift{", 4),
        ("abgauge_p_value{", 4),
        ("abgauge_srm_p_value{", 1),
    ] {
        let n = said.gauges.iter().filter(|line| line.starts_with(name)).count();
        assert!(n >= at_least, "{n} of {name}: {:#?}", said.gauges);
    }
}

#[test]
fn a_late_partition_delays_looks_until_it_catches_up() {
    let world = World::new();
    let (first, second) = (0..700, 750..1_000);
    world.send(first.clone(), &[0, 1]);
    let mut daemon = Daemon::run(&world.config("patient"));
    world.wait_for_look(&mut daemon, &first);

    world.send(second.clone(), &[0]);
    let of_first = [("partition", "0")];
    let until = Some(world.end_ms(&second) as f64 / 1000.0);
    let reported = daemon.wait_until("its lists to settle", |daemon| {
        let reported = scrape(daemon)?;
        (reported.value("abgauge_frontier_timestamp_seconds", &of_first) > until).then_some(reported)
    });
    let looks = daemon.wait_until("looks to wait for the other one", |daemon| {
        let looks = experiment(daemon)?["looks"].take();
        (looks["waits_for"] == 1).then_some(looks)
    });
    assert_eq!(looks["as_of"], world.end_ms(&first));
    let looked = reported.value("abgauge_look_timestamp_seconds", &[]);
    assert_eq!(looked, Some(world.end_ms(&first) as f64 / 1000.0));

    world.send(second.clone(), &[1]);
    world.wait_for_look(&mut daemon, &second);
}
