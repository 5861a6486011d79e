//! `abgauge check --connect` against real Kafka: each fault of a cluster is reported with a remedy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use abgauge::settings::{self, Config, StateTopic};
use abgauge::tools::check::{self, Finding, ResultLevel};

use crate::support::kafka::{Kafka, Options, READER, STRANGER};
use crate::support::tools;

const LIST: &str = r#"{"request_id":"r-1","ts":1763596800123,"items":["i5"]}"#;
const CLICK: &str = r#"{"request_id":"r-1","ts":1763596805123,"item":"i5"}"#;
/// Settings of a topic without any fault. The retention is 7 days.
const GOOD: [(&str, &str); 2] = [
    ("message.timestamp.type", "LogAppendTime"),
    ("retention.ms", "604800000"),
];

/// A test's own topics on the shared broker.
struct Pair {
    kafka: Arc<Kafka>,
    served: String,
    clicks: String,
}

impl Pair {
    /// Chooses names without creating the topics.
    fn new() -> Pair {
        let kafka = Kafka::shared();
        let (served, clicks) = (kafka.unique("served"), kafka.unique("clicks"));
        Pair {
            kafka,
            served,
            clicks,
        }
    }

    fn create(&self, topic: &str, n_partitions: i32, changes: &[(&str, &str)]) {
        let unchanged = |(name, _): &&(&str, &str)| !changes.iter().any(|(changed, _)| changed == name);
        let settings: Vec<_> = GOOD.iter().filter(unchanged).chain(changes).copied().collect();
        self.kafka.create_topic(topic, n_partitions, &settings);
    }

    /// Creates both topics with 4 partitions and 400 records each.
    fn filled(changes: &[(&str, &str)], clicks_partitioner: &str) -> Pair {
        let pair = Pair::new();
        pair.create(&pair.served, 4, &[]);
        pair.create(&pair.clicks, 4, changes);
        pair.produce(&pair.served, "murmur2_random", LIST);
        pair.produce(&pair.clicks, clicks_partitioner, CLICK);
        pair
    }

    fn produce(&self, topic: &str, partitioner: &str, payload: &str) {
        let producer = self.kafka.producer_with(&[("partitioner", partitioner)]);
        for n in 0..400 {
            producer.produce(
                topic,
                None,
                Some(format!("r-{n}").as_bytes()),
                Some(payload.as_bytes()),
                None,
            );
        }
        producer.flush();
    }

    fn config(&self) -> Config {
        config(&self.kafka.brokers(), &self.served, &self.clicks)
    }
}

fn config(brokers: &str, served: &str, clicks: &str) -> Config {
    let settings = [
        ("BROKERS", brokers),
        ("SERVED_TOPIC", served),
        ("CLICKS_TOPIC", clicks),
    ];
    let env = settings.map(|(name, value)| (format!("ABGAUGE_KAFKA__{name}"), value.to_owned()));
    settings::load(None, env.into_iter()).expect("a valid configuration")
}

/// Returns the findings that are not OK.
#[track_caller]
fn notable(config: &Config, expected_code: u8) -> Vec<Finding> {
    let findings = check::connect(config);
    assert_eq!(check::exit_code(&findings), expected_code, "{findings:#?}");
    findings
        .into_iter()
        .filter(|finding| finding.level != ResultLevel::Ok)
        .collect()
}

/// Asserts that each finding's text starts with the expected one, in this order.
#[track_caller]
fn assert_found(findings: &[Finding], texts: &[String]) {
    let alike = findings.len() == texts.len()
        && findings
            .iter()
            .zip(texts)
            .all(|(finding, text)| finding.text.starts_with(text.as_str()));
    assert!(alike, "{findings:#?}\nare not\n{texts:#?}");
}

#[test]
fn a_healthy_cluster_has_no_notable_findings() {
    let pair = Pair::filled(&[], "murmur2_random");
    let mut config = pair.config();
    let letters = pair.kafka.new_topic("letters", 1);
    config.kafka.dead_letter_topic = Some(letters.clone());
    assert_eq!(notable(&config, 0), []);
    let findings = check::connect(&config);
    let Pair {
        served,
        clicks,
        kafka,
    } = pair;
    let mut texts = vec![format!(
        "the brokers answer; their advertised addresses: {}",
        kafka.brokers()
    )];
    texts.extend([&served, &clicks].map(|topic| format!("topic `{topic}` has 4 partitions")));
    texts.extend([&served, &clicks].map(|topic| format!("topic `{topic}` is keyed with murmur2")));
    texts
        .extend([&served, &clicks].map(|topic| format!("topic `{topic}`: the last 400 records can be read")));
    texts.push("the consumer group `abgauge` can be used".to_owned());
    texts.push(format!("the dead-letter topic `{letters}` exists"));
    assert_found(&findings, &texts);
}

/// There are two users. One of the clicks does not name its user.
#[test]
fn counts_a_catalogue_from_the_starts_of_both_topics() {
    let pair = Pair::new();
    pair.create(&pair.served, 4, &[]);
    pair.create(&pair.clicks, 4, &[]);
    let producer = pair.kafka.producer_with(&[("partitioner", "murmur2_random")]);
    let send = |topic: &str, key: &str, payload: &str| {
        producer.produce(topic, None, Some(key.as_bytes()), Some(payload.as_bytes()), None);
    };
    for n in 0..300 {
        let user = n % 2;
        let list = format!(
            r#"{{"request_id":"r-{n}","user_id":"u-{user}","ts":1763596800123,"items":["i5","i{user}"]}}"#
        );
        send(&pair.served, &format!("r-{n}"), &list);
    }
    send(
        &pair.clicks,
        "r-4",
        r#"{"request_id":"r-4","ts":1763596805123,"item":"i5"}"#,
    );
    producer.flush();
    let expected = r#"{"item":"i5","users":1,"of_users":2}
{"item":"i0","users":0,"of_users":2}
{"item":"i1","users":0,"of_users":2}
"#;
    let (code, catalogue, reported) = catalogue_of(&pair);
    assert_eq!((code, &*catalogue), (Some(0), expected), "{reported}");
    assert!(reported.contains("of lists: 300 and clicks: 1"), "{reported}");
    let absent = Pair {
        clicks: pair.kafka.unique("absent"),
        ..pair
    };
    let (code, catalogue, reported) = catalogue_of(&absent);
    assert_eq!((code, &*catalogue), (Some(78), ""), "{reported}");
    let expected = format!("topic `{}` does not exist", absent.clicks);
    assert!(reported.contains(&expected), "{reported}");
}

/// Runs `catalog build --from-kafka`. Returns the exit code, the catalogue, and standard error.
fn catalogue_of(pair: &Pair) -> (Option<i32>, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_abgauge"));
    command
        .args(["catalog", "build", "--from-kafka"])
        .env("ABGAUGE_KAFKA__BROKERS", pair.kafka.brokers())
        .env("ABGAUGE_KAFKA__SERVED_TOPIC", &pair.served)
        .env("ABGAUGE_KAFKA__CLICKS_TOPIC", &pair.clicks);
    let output = command.output().expect("abgauge starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_shared_topic_needs_a_type_in_each_record() {
    let pair = Pair::filled(&[], "murmur2_random");
    let config = config(&pair.kafka.brokers(), &pair.served, &pair.served);
    let text = format!(
        "topic `{}`: 400 of the last 400 records (100%) cannot be read: missing_field 400",
        pair.served
    );
    assert_found(&notable(&config, 65), &[text]);
}

#[test]
fn missing_topics_are_reported_but_not_created() {
    let pair = Pair::new();
    pair.create(&pair.served, 4, &[]);
    let mut config = pair.config();
    config.kafka.dead_letter_topic = Some(pair.kafka.unique("letters"));
    for _ in 0..2 {
        let findings = notable(&config, 78);
        let texts = [
            format!("topic `{}` does not exist", pair.clicks),
            format!(
                "topic `{}` has too few different keys to detect its partitioner",
                pair.served
            ),
            format!(
                "the dead-letter topic `{}` does not exist",
                config.kafka.dead_letter_topic.as_ref().expect("set")
            ),
        ];
        assert_found(&findings, &texts);
    }
}

#[test]
fn unequal_partition_counts_are_refused() {
    let pair = Pair::new();
    pair.create(&pair.served, 4, &[]);
    pair.create(&pair.clicks, 3, &[]);
    let text = format!(
        "topic `{}` has 4 partitions, topic `{}` has 3 partitions",
        pair.served, pair.clicks
    );
    let found = &notable(&pair.config(), 78)[0];
    assert!(found.text.starts_with(&text), "{found:?}");
    assert!(
        found
            .remedy
            .starts_with(&format!("give `{}` as many", pair.clicks)),
        "{found:?}"
    );
}

#[test]
fn reports_clicks_from_another_partitioner() {
    let pair = Pair::filled(&[], "consistent_random");
    let text = format!(
        "about 3 of 4 clicks find no list, because producers use different partitioners: topic `{clicks}` is keyed with CRC32 \
         (librdkafka's default), topic `{}` with murmur2 (Java's): set \
         partitioner=murmur2_random in the producers of `{clicks}` (Rust's confluent-kafka ignores that: \
         partitioner.type=Murmur2RandomPartitioner)",
        pair.served,
        clicks = pair.clicks
    );
    assert_found(&notable(&pair.config(), 0), &[text]);
}

#[test]
fn reports_short_retention_and_producer_timestamps() {
    let changes = [
        ("retention.ms", "3600000"),
        ("retention.bytes", "1000000000"),
        ("message.timestamp.type", "CreateTime"),
    ];
    let pair = Pair::filled(&changes, "murmur2_random");
    let clicks = &pair.clicks;
    let findings = notable(&pair.config(), 0);
    let texts = [
        format!("topic `{clicks}` keeps records for 1h: after a start the window 24h is incomplete at first"),
        format!("topic `{clicks}` keeps at most 1000000000 bytes of each partition"),
        format!("topic `{clicks}` uses the timestamps of its producers (message.timestamp.type=CreateTime)"),
    ];
    assert_found(&findings, &texts);
    assert!(
        findings[0]
            .remedy
            .starts_with("set retention.ms=89790000 or more"),
        "{findings:#?}"
    );
}

#[test]
fn reports_a_timestamp_bound_and_its_losses() {
    let changes = [
        ("message.timestamp.type", "CreateTime"),
        ("message.timestamp.after.max.ms", "30000"),
    ];
    let pair = Pair::filled(&changes, "murmur2_random");
    let findings = notable(&pair.config(), 0);
    let text = format!(
        "topic `{}` uses the timestamps of its producers (message.timestamp.type=CreateTime), and if one record is more than 30s \
         ahead (message.timestamp.after.max.ms=30000), the broker refuses the whole batch",
        pair.clicks
    );
    assert_found(&findings, &[text]);
    assert!(
        findings[0]
            .remedy
            .ends_with("message.timestamp.type=LogAppendTime"),
        "{findings:#?}"
    );
}

#[test]
fn a_compacted_topic_is_refused() {
    let pair = Pair::filled(&[("cleanup.policy", "compact,delete")], "murmur2_random");
    let text = format!(
        "topic `{}` is compacted (cleanup.policy=compact,delete)",
        pair.clicks
    );
    assert_found(&notable(&pair.config(), 78), &[text]);
}

#[test]
fn creates_the_state_topic_once_with_the_right_settings() {
    let pair = Pair::filled(&[], "murmur2_random");
    let topic = pair.kafka.unique("state");
    let mut config = pair.config();
    config.state = Some(StateTopic {
        topic: topic.clone(),
        interval: Duration::from_secs(10),
        max_bytes_per_second: 1 << 20,
    });
    let absent = notable(&config, 78);
    assert_found(&absent, &[format!("the state topic `{topic}` does not exist")]);
    assert!(
        absent[0].remedy.contains("--partitions 4 --replication-factor 1"),
        "{absent:?}"
    );
    assert!(check::create_topics(&config).text.ends_with("was created"));
    assert!(check::create_topics(&config).text.ends_with("was not changed"));
    let one_broker = format!("the state topic `{topic}` has one replica");
    assert_found(&notable(&config, 0), &[one_broker]);
}

#[test]
fn absent_brokers_are_reported_soon_with_their_address() {
    let address = format!("127.0.0.1:{}", tools::free_port());
    let begin = Instant::now();
    let findings = notable(&config(&address, "served", "clicks"), 69);
    assert_found(&findings, &[format!("the brokers at {address} do not answer: ")]);
    assert!(findings[0].text.contains("refused"), "{findings:#?}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[test]
fn distinguishes_wrong_passwords_protocols_and_permissions() {
    let kafka = Kafka::start_with(Options {
        secured: true,
        ..Options::default()
    });
    for topic in ["served", "clicks"] {
        kafka.create_topic(topic, 2, &GOOD);
    }
    let as_user = |(user, password): (&str, &str)| {
        let mut config = config(&kafka.sasl_brokers(), "served", "clicks");
        let properties = [
            ("security.protocol", "SASL_PLAINTEXT"),
            ("sasl.mechanism", "PLAIN"),
            ("sasl.username", user),
            ("sasl.password", password),
        ];
        let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned()));
        config.kafka.properties.0.extend(properties);
        config
    };
    // The topics are empty, so their keys cannot be judged. Everything else is fine.
    let few = ["served", "clicks"].map(|topic| format!("topic `{topic}` has too few different keys"));
    assert_found(&notable(&as_user(READER), 0), &few);

    let begin = Instant::now();
    let refused = notable(&as_user((READER.0, "hunter2")), 69);
    assert_found(
        &refused,
        &[format!(
            "the brokers at {} refuse the credentials: ",
            kafka.sasl_brokers()
        )],
    );
    assert!(!format!("{refused:?}").contains("hunter2"), "{refused:#?}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());

    let forbidden = ["served", "clicks"].map(|topic| format!("no permission to see topic `{topic}`: "));
    let group = "no permission for the consumer group `abgauge`: ".to_owned();
    assert_found(
        &notable(&as_user(STRANGER), 78),
        &[&forbidden[..], &[group]].concat(),
    );

    let no_sasl = config(&kafka.sasl_brokers(), "served", "clicks");
    let refused = notable(&no_sasl, 69);
    assert_found(
        &refused,
        &[format!("the brokers at {} do not answer: ", kafka.sasl_brokers())],
    );
    assert!(refused[0].remedy.contains("security.protocol"), "{refused:#?}");
}
