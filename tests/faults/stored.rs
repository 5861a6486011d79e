//! Stored state: a killed daemon resumes from its last seal, whatever is left in the event logs.

mod ahead;
mod brokers;
mod fleet;
mod killed;
mod looked;
mod moves;
mod refused;
mod reported;
mod rot;
mod step;
mod suspended;
mod unsurpassable;
mod whole;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use rdkafka::producer::Producer as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::looks::{N_PARTITIONS, Said, World};
use crate::support::acls::{Operation, ResourceType};
use crate::support::daemon::Daemon;
use crate::support::kafka::{Kafka, STRANGER};
use crate::support::program::{Ran, file, run, temporary_dir};
use crate::support::wait::PATIENCE;
use crate::traffic::{SHORT_SESSION, Traffic, arm, lists_by_arm, open_transaction, scrape};

const TOPIC: ResourceType = ResourceType::RD_KAFKA_RESOURCE_TOPIC;
const GROUP: ResourceType = ResourceType::RD_KAFKA_RESOURCE_GROUP;
const READ: Operation = Operation::RD_KAFKA_ACL_OPERATION_READ;
const WRITE: Operation = Operation::RD_KAFKA_ACL_OPERATION_WRITE;
const DESCRIBE: Operation = Operation::RD_KAFKA_ACL_OPERATION_DESCRIBE;
const DESCRIBE_CONFIGS: Operation = Operation::RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS;

pub(crate) const STATE: [(&str, &str); 3] = [
    ("cleanup.policy", "compact"),
    ("max.message.bytes", "1048576"),
    ("message.timestamp.type", "LogAppendTime"),
];

/// Lists by arm since the start, settled.
fn settled(daemon: &Daemon) -> Option<Vec<(String, f64)>> {
    let scrape = scrape(daemon)?;
    let lists = lists_by_arm(&scrape, "settled");
    Some(lists.into_iter().map(|(arm, n)| (arm.to_owned(), n)).collect())
}

#[track_caller]
fn wait_for_settled(daemon: &mut Daemon, n_lists: f64) {
    daemon.wait_until(&format!("{n_lists} settled lists"), |daemon| {
        let n: f64 = settled(daemon)?.iter().map(|(_, n)| n).sum();
        (n == n_lists).then_some(())
    });
}

/// Two partitions, a state topic, and the commands that an operator runs next to the daemon.
struct Stage {
    kafka: Arc<Kafka>,
    traffic: Traffic,
    /// Name of the state topic.
    state: String,
    group: String,
    text: String,
    path: String,
    dir: TempDir,
}

impl Stage {
    /// Creates a stage on its own broker.
    fn new() -> Stage {
        Stage::with("")
    }

    /// The same with a further line of its configuration.
    fn with(line: &str) -> Stage {
        Stage::on(Arc::new(Kafka::start()), &STATE, line)
    }

    /// Creates a stage on a shared broker, with these settings of the state topic.
    fn shared(settings: &[(&str, &str)]) -> Stage {
        Stage::on(Kafka::shared(), settings, "")
    }

    fn on(kafka: Arc<Kafka>, settings: &[(&str, &str)], line: &str) -> Stage {
        let traffic = Traffic::new(&kafka, N_PARTITIONS.cast_signed());
        let [state, group] = ["state", "group"].map(|stem| kafka.unique(stem));
        kafka.create_topic(&state, N_PARTITIONS.cast_signed(), settings);
        let more = format!(
            "kafka.start = \"earliest\"\n{SHORT_SESSION}\nstate.topic = \"{state}\"\nstate.interval = \"1s\"\n{line}"
        );
        let text = traffic.config(&kafka.brokers(), &group, &more);
        let dir = temporary_dir();
        Stage {
            path: file(&dir, "abgauge.toml", &text),
            kafka,
            traffic,
            state,
            group,
            text,
            dir,
        }
    }

    /// Creates a stage whose daemon and commands run as [`STRANGER`], with the rights in docs/recovery.md and docs/security.md and
    /// no others. Requires [`Options::secured`](crate::support::kafka::Options::secured).
    fn with_rights(kafka: Arc<Kafka>) -> Stage {
        let (user, password) = STRANGER;
        let login = format!(
            r#"
            kafka.properties."security.protocol" = "SASL_PLAINTEXT"
            kafka.properties."sasl.mechanism" = "PLAIN"
            kafka.properties."sasl.username" = "{user}"
            kafka.properties."sasl.password" = "{password}"
            "#
        );
        let stage = Stage::on(kafka, &STATE, &login);
        let text = stage
            .text
            .replace(&stage.kafka.brokers(), &stage.kafka.sasl_brokers());
        for topic in [&stage.traffic.served, &stage.traffic.clicks, &stage.state] {
            for operation in [READ, DESCRIBE, DESCRIBE_CONFIGS] {
                stage.kafka.grant(user, TOPIC, topic, operation);
            }
        }
        stage.kafka.grant(user, TOPIC, &stage.state, WRITE);
        stage.kafka.grant(user, GROUP, &stage.group, READ);
        Stage {
            path: file(&stage.dir, "abgauge.toml", &text),
            text,
            ..stage
        }
    }

    /// Returns the broker, which must belong to this stage alone.
    fn broker(&mut self) -> &mut Kafka {
        Arc::get_mut(&mut self.kafka).expect("it is of this stage alone")
    }

    fn daemon(&self) -> Daemon {
        Daemon::run(&self.text)
    }

    fn send(&self, numbers: std::ops::Range<u32>) {
        self.traffic.send_clicked_lists(numbers);
        self.traffic.flush();
    }

    /// Writes a record into the state topic that no abgauge would write.
    fn meddle(&self, partition: i32, key: &[u8], value: Option<&[u8]>) {
        let producer = self.kafka.producer();
        producer.produce(&self.state, Some(partition), Some(key), value, None);
        producer.flush();
    }

    /// `abgauge state …`
    fn state(&self, arguments: &[&str]) -> Ran {
        run(&[&["state"], arguments, &["--config", &self.path]].concat())
    }

    /// Pairs of our namespace, by partition.
    fn pairs(&self) -> Vec<Value> {
        let ran = self.state(&["show", "--format", "json"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
        let shown: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        let namespaces = shown["namespaces"].as_array().expect("a list");
        let ours = namespaces.iter().find(|namespace| namespace["ours"] == true);
        let pairs = ours.map(|ours| ours["pairs"].as_array().expect("a list").clone());
        pairs.unwrap_or_default()
    }

    /// Checks the output for a user of another group: keys have only a hash of the group, claims have its name.
    #[track_caller]
    fn assert_shown_to_another_group(&self) {
        let text = self.text.replace(&self.group, "another");
        let path = file(&self.dir, "another.toml", &text);
        let ran = run(&["state", "show", "--config", &path]);
        let of_us = format!(
            ": of another group\ngroup: {}\ncounted by: counting 2, slot_ms 1000",
            self.group
        );
        assert!(ran.stdout.contains(&of_us), "{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_killed_daemon_resumes_totals_that_the_log_no_longer_has() {
    let stage = Stage::new();
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..400);
    wait_for_settled(&mut daemon, 400.0);
    daemon.kill();
    for topic in [&stage.traffic.served, &stage.traffic.clicks] {
        for partition in 0..2 {
            stage.kafka.delete_records_before(topic, partition, 150);
        }
    }
    stage.send(400..500);
    daemon.start_again();
    wait_for_settled(&mut daemon, 500.0);
    daemon.wait_until_ready();
    // A clean stop seals the current state.
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit(PATIENCE), Some(0), "{}", daemon.log());
    daemon.start_again();
    wait_for_settled(&mut daemon, 500.0);
    daemon.kill();
    daemon.start_again();
    wait_for_settled(&mut daemon, 500.0);
}

/// An open transaction holds a partition up: its log cannot be read on, so the daemon is not ready.
#[test]
fn settled_numbers_are_shown_while_logs_are_replayed() {
    let stage = Stage::new();
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..400);
    wait_for_settled(&mut daemon, 400.0);
    daemon.kill();
    let transaction = open_transaction(&stage.kafka, &stage.traffic.served, &json!("never committed"));
    daemon.start_again();
    wait_for_settled(&mut daemon, 400.0);
    assert_eq!(daemon.get("/readyz").status, 503);
    let live = scrape(&daemon).map(|scrape| lists_by_arm(&scrape, "live"));
    assert_eq!(
        live,
        Some(BTreeMap::new()),
        "live numbers of a part would be a dip"
    );
    transaction.abort_transaction(PATIENCE).expect("it ends");
    daemon.wait_until_ready();
    let live = scrape(&daemon).map(|scrape| lists_by_arm(&scrape, "live").values().sum());
    assert_eq!(live, Some(400.0));
}

/// A day and a quarter of lists, then an hour until the first look of the rest: the planned look is in the second part.
const BEGIN: Range<u64> = 0..4_500;
const REST: Range<u64> = 4_550..7_200;
/// Records kept in the log of a partition: more than those younger than attribution and lateness.
const LEFT: i64 = 60;

/// Creates a state topic and returns its part of the configuration.
fn state_topic_of(world: &World) -> String {
    let state = world.kafka.unique("state");
    world
        .kafka
        .create_topic(&state, N_PARTITIONS.cast_signed(), &STATE);
    format!("[state]\ntopic = \"{state}\"\ninterval = \"1s\"\n")
}

/// Running maxima, first exposures and the window are of lists that the log no longer holds.
#[test]
fn a_killed_daemon_takes_the_same_looks_as_an_uninterrupted_one() {
    let world = World::new();
    let stored = state_topic_of(&world);
    world.send(BEGIN, &[0, 1]);
    let mut whole = Daemon::run(&world.config("never-killed"));
    let mut killed = Daemon::run(&format!("{}{stored}", world.config("killed")));
    world.wait_for_look(&mut whole, &BEGIN);
    world.wait_for_look(&mut killed, &BEGIN);
    assert_eq!(Said::by(&killed), Said::by(&whole));

    killed.kill();
    for topic in [&world.served, &world.clicks] {
        for partition in 0..N_PARTITIONS.cast_signed() {
            let (_, end) = world.kafka.offsets(topic, partition);
            world.kafka.delete_records_before(topic, partition, end - LEFT);
        }
    }
    killed.start_again();
    world.wait_for_look(&mut killed, &BEGIN);
    assert_eq!(
        Said::by(&killed),
        Said::by(&whole),
        "the last look is shown again"
    );

    killed.kill();
    world.send(REST, &[0, 1]);
    world.wait_for_look(&mut whole, &REST);
    killed.start_again();
    world.wait_for_look(&mut killed, &REST);
    assert_eq!(Said::by(&killed), Said::by(&whole));
}

/// The records in between were never counted: a silent restart would lose totals, and resuming would lose those records.
#[test]
fn refuses_a_pair_whose_position_left_the_log_until_it_is_forgotten() {
    let stage = Stage::new();
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..400);
    wait_for_settled(&mut daemon, 400.0);
    daemon.kill();
    stage.send(400..500);
    let Traffic { served, clicks, .. } = &stage.traffic;
    for topic in [served, clicks] {
        stage.kafka.delete_records_before(topic, 0, 230);
    }

    let ran = stage.state(&["verify"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let lost = format!(
        "partition 0: topic `{served}` was read up to 200 and would be read again from 200, but has offsets 230 to 250"
    );
    for part in [&*lost, "retention.ms", "`abgauge state forget --partition 0`"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("partition 1:"), "{}", ran.stdout);

    daemon.start_again();
    assert_eq!(daemon.wait_exit(PATIENCE), Some(1));
    let log = daemon.log();
    let place = format!(
        "partition 0 of topic `{served}` would be read again from offset 200, but has offsets 230 to 250"
    );
    for part in [
        &*place,
        "offsets 200 to 229 were deleted (retention.ms, retention.bytes)",
        "run `abgauge state forget --partition 0`",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }

    let before = stage.pairs();
    let ran = stage.state(&["forget", "--partition", "0"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("give --yes"), "{}", ran.stderr);
    let content = |pairs: &[Value]| -> Vec<Value> {
        pairs.iter().map(|pair| pair["seal"]["content"].clone()).collect()
    };
    assert_eq!(content(&stage.pairs()), content(&before), "nothing is deleted");
    let ran = stage.state(&["forget", "--partition", "0", "--yes", "--force"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let left = stage.pairs();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["partition"], 1);

    daemon.start_again();
    let expected = [(arm(0), 20.0), (arm(1), 250.0)];
    daemon.wait_until("what the log still holds, and the total of the other", |daemon| {
        (settled(daemon)? == expected).then_some(())
    });
}

#[test]
fn stored_state_can_be_shown_and_verified_but_not_forgotten_while_its_owner_runs() {
    let stage = Stage::new();
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..100);
    wait_for_settled(&mut daemon, 100.0);

    let pairs = stage.pairs();
    let lists: BTreeMap<i64, i64> = pairs
        .iter()
        .map(|pair| {
            let seal = &pair["seal"];
            assert_eq!(
                (&seal["in_force"], &seal["exact"]),
                (&true.into(), &true.into()),
                "{pair}"
            );
            assert_eq!(seal["lists"], seal["clicks"]);
            assert_eq!(seal["topics"][0]["read_position"], 50);
            assert_eq!(pair["claim"]["version"], env!("CARGO_PKG_VERSION"));
            assert!(pair["live_bytes"].as_i64() > Some(100), "{pair}");
            (
                pair["partition"].as_i64().expect("a number"),
                seal["lists"].as_i64().expect("a number"),
            )
        })
        .collect();
    assert_eq!(lists, [(0, 50), (1, 50)].into());
    let ran = stage.state(&["show"]);
    let of_ours = format!(
        "namespace of the configuration\ngroup: {}\ncounted by: counting 2, slot_ms 1000",
        stage.group
    );
    assert!(ran.stdout.contains(&of_ours), "{}", ran.stdout);
    stage.assert_shown_to_another_group();

    let ran = stage.state(&["verify"]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains("all sealed state can be resumed; sealed pairs: 2 of 2"),
        "{}",
        ran.stdout
    );

    assert_exported(&stage);

    let ran = stage.state(&["forget", "--yes"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr
            .contains("has members (1): a running instance owns the pair"),
        "{}",
        ran.stderr
    );
    daemon.kill();
    daemon.start_again();
    wait_for_settled(&mut daemon, 100.0);
}

/// Totals and cells have the same lists and clicks, over all pairs and by pair, each list with a click on its first item.
#[track_caller]
fn assert_exported(stage: &Stage) {
    let ran = stage.state(&["export", "--by-partition"]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    let lines = ran.stdout.lines();
    let rows: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let sum = |partition: Value, is_total: bool, metric: &str, what: &str| -> f64 {
        let asked = rows.iter().filter(|row| {
            (row["span"] == "total") == is_total
                && row["partition"] == partition
                && row["metric"] == metric
                && row["k"].is_null()
        });
        asked.map(|row| row[what].as_f64().expect("a number")).sum()
    };
    for (partition, n) in [(Value::Null, 100.0), (0.into(), 50.0), (1.into(), 50.0)] {
        for is_total in [true, false] {
            let sum = |metric, what| sum(partition.clone(), is_total, metric, what);
            assert_eq!(
                [sum("lists", "value"), sum("clicks", "value")],
                [n, n],
                "{partition} {is_total}"
            );
            assert_eq!([sum("mrr", "numerator"), sum("mrr", "denominator")], [n, n]);
            assert_eq!([sum("ctr", "numerator"), sum("ctr", "denominator")], [n, 3.0 * n]);
        }
    }
    let cell = rows.iter().find(|row| row["span"] == "10s").expect("a cell");
    let time = |name: &str| {
        cell[name]
            .as_str()
            .expect("a time")
            .parse::<jiff::Timestamp>()
            .expect("a time")
    };
    assert_eq!(
        time("end").as_millisecond() - time("start").as_millisecond(),
        10_000
    );

    let packed = std::path::Path::new(&stage.path).with_extension("parquet");
    let packed = packed.to_str().expect("UTF-8");
    let ran = stage.state(&[
        "export",
        "--by-partition",
        "--format",
        "parquet",
        "--output",
        packed,
    ]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), ""), "{}", ran.stderr);
    let reader = SerializedFileReader::try_from(std::path::Path::new(packed)).expect("Parquet");
    let n_rows = reader.metadata().file_metadata().num_rows();
    assert_eq!(n_rows, rows.len() as i64);
}

/// Its memory is not restarted either: it falls back to the stored state, whose position is gone too.
#[test]
fn a_running_daemon_whose_position_left_the_log_is_refused_too() {
    let stage = Stage::new();
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..100);
    wait_for_settled(&mut daemon, 100.0);
    daemon.signal(libc::SIGSTOP);
    // A request that was on its way is answered with the first one.
    stage.traffic.send_clicked_list(0, 100);
    stage.traffic.flush();
    for number in 101..1_100 {
        stage.traffic.send_clicked_list(0, number);
    }
    stage.traffic.flush();
    for topic in [&stage.traffic.served, &stage.traffic.clicks] {
        stage.kafka.delete_records_before(topic, 0, 550);
    }
    daemon.signal(libc::SIGCONT);
    assert_eq!(daemon.wait_exit(PATIENCE), Some(1));
    let log = daemon.log();
    for part in [
        "has offsets 550 to 1050",
        "run `abgauge state forget --partition 0`",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert!(!log.contains("rebuilt as set by"), "{log}");
}
