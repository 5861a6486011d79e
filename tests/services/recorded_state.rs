//! A state topic that an earlier program wrote: this program reads the same numbers from it.
//!
//! `ABGAUGE_RECORD_STATE=PROGRAM tests/run --test services -- recorded_state` records `tests/data/state-topic` again with that
//! program. Do so only to add what a newer program stores: the recording of an old one must stay readable.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::support::program::{Ran, file, program, temporary_dir};
use crate::support::tools;

/// Names that the fingerprint of the counting rules covers, so they are the same at every replay.
const SERVED: &str = "recorded-served";
const CLICKS: &str = "recorded-clicks";
const N_PARTITIONS: i32 = 2;
const N_LISTS: i64 = 120;
/// Start of the events, 2025-11-20 00:00 UTC in Unix ms, and the time between two lists.
const START_MS: i64 = 1_763_596_800_000;
const STEP_MS: i64 = 50_000;
const STATE: [(&str, &str); 3] = [
    ("cleanup.policy", "compact"),
    ("max.message.bytes", "1048576"),
    ("message.timestamp.type", "LogAppendTime"),
];

fn config(brokers: &str, state: &str) -> String {
    format!(
        r#"
kafka.brokers = "{brokers}"
kafka.served_topic = "{SERVED}"
kafka.clicks_topic = "{CLICKS}"
kafka.group_id = "recorded"
kafka.start = "earliest"
kafka.key = "user"
join.attribution = "1m"
join.lateness = "1m"
join.slot = "1m"
metrics.windows = ["24h"]
metrics.metrics = ["hit_rate", "mrr", "ctr"]
metrics.k = [5]
state.topic = "{state}"
experiments.ranker.control = "base"
experiments.ranker.shares = {{ base = 0.5, new = 0.5 }}
experiments.ranker.primary = ["hit_rate@5"]
"#
    )
}

fn path(name: &str) -> String {
    tools::repository(&format!("tests/data/state-topic/{name}"))
        .to_string_lossy()
        .into_owned()
}

/// Runs `abgauge state export` of a program, with the rows of each pair and of their sum.
fn export(mut program: Command, config: &str) -> Ran {
    let arguments = ["state", "export", "--by-partition", "--config", config];
    program
        .args(arguments)
        .output()
        .expect("the program starts")
        .into()
}

/// Sends lists of 40 users to two partitions, by user, with a click on a third of them. The last two lists come an hour later, so
/// that all others settle; some of them are still open at the end.
fn send_events(kafka: &Kafka) {
    let producer = kafka.producer();
    let send = |topic: &str, user: i64, event: &Value| {
        let partition = (user % i64::from(N_PARTITIONS)) as i32;
        producer.produce(
            topic,
            Some(partition),
            Some(format!("u{user}").as_bytes()),
            Some(event.to_string().as_bytes()),
            None,
        );
    };
    let times = (0..N_LISTS).map(|number| START_MS + number * STEP_MS);
    let last_ms = START_MS + N_LISTS * STEP_MS + 3_600_000;
    for (number, ts_ms) in times.chain([last_ms, last_ms]).enumerate() {
        let user = number as i64 % 41 % 40;
        let arm = ["base", "new"][(user / 2 % 2) as usize];
        let id = format!("r-{number}");
        let list = json!({
            "type": "served", "request_id": id, "ts": ts_ms, "user_id": format!("u{user}"),
            "experiments": {"ranker": arm}, "items": ["a", "b", "c", "d", "e", "f"],
        });
        send(SERVED, user, &list);
        if number % 3 == 0 {
            let item = ["a", "b", "c", "d", "e", "f"][number % 6];
            let click = json!({"type": "click", "request_id": id, "ts": ts_ms + 5_000, "item": item, "user_id": format!("u{user}")});
            send(CLICKS, user, &click);
        }
    }
    producer.flush();
}

/// Records what a program stores, and the rows that it exports from it.
fn record(recorder: &Path) {
    let kafka = Kafka::start();
    let state = "recorded-state";
    kafka.create_topic(SERVED, N_PARTITIONS, &[]);
    kafka.create_topic(CLICKS, N_PARTITIONS, &[]);
    kafka.create_topic(state, N_PARTITIONS, &STATE);
    send_events(&kafka);
    let config = config(&kafka.brokers(), state);
    let mut daemon = Daemon::run_program(recorder, &config, &[]);
    daemon.wait_until_ready();
    daemon.wait_until("all lists but the last two to settle", |daemon| {
        let metrics = daemon.metrics();
        let settled = [("window", "total"), ("view", "settled"), ("scope", "own")];
        let lists = metrics.select("abgauge_lists", &settled);
        (lists.map(|sample| sample.value).sum::<f64>() == N_LISTS as f64).then_some(())
    });
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit(crate::support::wait::PATIENCE), Some(0));
    let lines = kafka.read_all(state).into_iter().map(|record| {
        let base64 = |bytes: Option<Vec<u8>>| bytes.map(|bytes| BASE64.encode(bytes));
        let (key, value) = (base64(record.key), base64(record.payload));
        json!({"partition": record.partition, "key": key, "value": value}).to_string() + "\n"
    });
    fs::write(path("records.jsonl"), lines.collect::<String>()).expect("the file is written");
    let dir = temporary_dir();
    let exported = export(Command::new(recorder), &file(&dir, "abgauge.toml", &config));
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    fs::write(path("exported.jsonl"), exported.stdout).expect("the file is written");
}

#[test]
fn a_recorded_state_topic_gives_the_numbers_of_its_program() {
    if let Some(recorder) = env::var_os("ABGAUGE_RECORD_STATE") {
        record(Path::new(&recorder));
    }
    let kafka = Kafka::shared();
    let state = kafka.unique("recorded");
    kafka.create_topic(&state, N_PARTITIONS, &STATE);
    let producer = kafka.producer();
    let records = fs::read_to_string(path("records.jsonl")).expect("the recording");
    for line in records.lines() {
        let record: Value = serde_json::from_str(line).expect("JSON");
        let bytes = |name: &str| {
            let text = record[name].as_str();
            text.map(|text| BASE64.decode(text).expect("base64"))
        };
        producer.produce(
            &state,
            Some(record["partition"].as_i64().expect("a number") as i32),
            bytes("key").as_deref(),
            bytes("value").as_deref(),
            None,
        );
    }
    producer.flush();

    let dir = temporary_dir();
    let config = file(&dir, "abgauge.toml", &config(&kafka.brokers(), &state));
    let exported = export(program(&[]), &config);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let expected = fs::read_to_string(path("exported.jsonl")).expect("the recording");
    assert!(
        expected.lines().count() > 100,
        "the recording has totals and cells"
    );
    assert_eq!(exported.stdout, expected);

    // Each pair can be resumed: its open lists, its users and its totals decode.
    let shown = program(&["state", "show", "--format", "json", "--config", &config]).output();
    let shown: Ran = shown.expect("the program starts").into();
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let pairs = shown["namespaces"][0]["pairs"].as_array().expect("pairs");
    assert_eq!(pairs.len(), N_PARTITIONS as usize, "{shown}");
    for pair in pairs {
        assert!(pair["seal"]["content"].is_string(), "{pair}");
        assert_eq!(pair["seal"]["unreadable"], Value::Null, "{pair}");
    }
}
