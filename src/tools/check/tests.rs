//! Tests from facts to findings. Answers of a cluster are tested in `kafka::inspect` and with real Kafka.

use std::num::NonZeroU32;

use abgauge_core::decode::framing::NoHeaders;
use abgauge_core::engine::event::{Kind, Side};

use super::*;
use crate::stream::kafka::inspect::{
    ClusterFacts, Failure, Sample, SampleReader, Topic, TopicSettings, Trouble, VisibleTopic,
};
use crate::stream::keys::{Partitioner, murmur2_partition};
use crate::stream::timestamps::Timestamps;

const LIST: &str = r#"{"request_id":"r","ts":1763596800123,"items":[]}"#;

/// Default configuration: windows up to 24h (cells of 24m), attribution 30m, lateness 2m, max_future 30s.
fn config() -> Config {
    let env = [("ABGAUGE_KAFKA__BROKERS".to_owned(), "kafka:9092".to_owned())];
    crate::settings::load(None, env.into_iter()).expect("valid")
}

fn n(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap()
}

/// A reader of lists in our own shape.
fn reader() -> SampleReader {
    SampleReader::new(&config(), Side::Served, Some(Kind::Served)).expect("no files")
}

fn sample(topic: &str, n_partitions: u32, n_records: u32, partitioner: Partitioner) -> Sample {
    let mut sample = Sample::new(topic, n(n_partitions));
    let mut reader = reader();
    for id in 0..n_records {
        let key = format!("r-{id}");
        let partition = partitioner
            .partition(key.as_bytes(), n(n_partitions))
            .cast_signed();
        sample.take(
            &mut reader,
            partition,
            Some(key.as_bytes()),
            Some(LIST.as_bytes()),
            &NoHeaders,
        );
    }
    sample
}

fn stamped_by(kind: &str) -> Timestamps {
    Timestamps {
        kind: Some(kind.into()),
        after_max_ms: None,
    }
}

fn settings() -> TopicSettings {
    TopicSettings {
        timestamps: stamped_by("LogAppendTime"),
        retention_ms: Some(7 * 86_400_000),
        retention_bytes: Some(-1),
        cleanup_policy: Some("delete".into()),
    }
}

fn topic(name: &str, n_partitions: u32) -> Topic {
    let found = VisibleTopic {
        n_partitions: n(n_partitions),
        settings: Ok(settings()),
        sample: Ok(sample(name, n_partitions, 500, Partitioner::Murmur2)),
    };
    Topic {
        name: name.into(),
        found: Ok(found),
    }
}

fn facts() -> ClusterFacts {
    ClusterFacts {
        brokers: vec!["kafka:9092".into()],
        served: topic("served", 4),
        clicks: Some(topic("clicks", 4)),
        dead_letters: None,
        state: None,
        group: Ok(()),
    }
}

/// Returns the findings that are not OK, as lines: level and text, then the remedy.
#[track_caller]
fn check(facts: &ClusterFacts, expected_code: u8) -> String {
    let findings = judge::cluster(&config(), facts);
    assert_eq!(exit_code(&findings), expected_code, "{findings:#?}");
    let notable: Vec<_> = findings
        .into_iter()
        .filter(|finding| finding.level != ResultLevel::Ok)
        .collect();
    printed(&notable)
}

fn printed(findings: &[Finding]) -> String {
    let mut out = anstream::StripStream::new(Vec::new());
    write(findings, &mut out).unwrap();
    String::from_utf8(out.into_inner()).unwrap()
}

#[track_caller]
fn assert_lines(text: &str, begins: &[&str]) {
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), begins.len(), "{text}");
    for (line, begin) in lines.iter().zip(begins) {
        assert!(line.starts_with(begin), "{line:?} does not begin with {begin:?}");
    }
}

fn settings_of(topic: &mut Topic) -> &mut TopicSettings {
    topic.found.as_mut().unwrap().settings.as_mut().unwrap()
}

#[test]
fn a_healthy_cluster_prints_only_ok() {
    assert_eq!(check(&facts(), 0), "");
    let all = printed(&judge::cluster(&config(), &facts()));
    assert_lines(
        &all,
        &[
            "ok       the brokers answer; their advertised addresses: kafka:9092",
            "ok       topic `served` has 4 partitions",
            "ok       topic `clicks` has 4 partitions",
            "ok       topic `served` is keyed with murmur2",
            "ok       topic `clicks` is keyed with murmur2",
            "ok       topic `served`: the last 500 records can be read",
            "ok       topic `clicks`: the last 500 records can be read",
            "ok       the consumer group `abgauge` can be used",
        ],
    );
}

#[test]
fn a_missing_topic_and_a_forbidden_one_are_distinguished() {
    let mut facts = facts();
    facts.served.found = Err(Failure::new(Trouble::NoSuchTopic, "unknown"));
    facts.clicks.as_mut().unwrap().found = Err(Failure::new(Trouble::TopicForbidden, "denied"));
    facts.dead_letters = Some(Err(Failure::new(Trouble::NoSuchTopic, "unknown")));
    assert_lines(
        &check(&facts, 78),
        &[
            "error    topic `served` does not exist",
            "         → create it, with as many partitions",
            "error    no permission to see topic `clicks`: denied",
            "         → grant the user READ and DESCRIBE",
        ],
    );
    let mut config = config();
    config.kafka.dead_letter_topic = Some("letters".into());
    let all = printed(&judge::cluster(&config, &facts));
    assert!(
        all.contains("error    the dead-letter topic `letters` does not exist"),
        "{all}"
    );
}

#[test]
fn unequal_partition_counts_are_refused_with_a_fix_for_the_smaller_topic() {
    let mut facts = facts();
    facts.clicks = Some(topic("clicks", 3));
    assert_lines(
        &check(&facts, 78),
        &[
            "error    topic `served` has 4 partitions, topic `clicks` has 3 partitions: a click",
            "         → give `clicks` as many",
        ],
    );
}

#[test]
fn a_compacted_topic_is_refused() {
    for policy in ["compact", "compact,delete"] {
        let mut facts = facts();
        settings_of(&mut facts.served).cleanup_policy = Some(policy.into());
        let expected = format!("error    topic `served` is compacted (cleanup.policy={policy})");
        assert_lines(
            &check(&facts, 78),
            &[&expected, "         → set cleanup.policy=delete"],
        );
    }
}

/// 24h + 24m + 30m + 2m + 30s = 89 790 s.
#[test]
fn retention_must_cover_the_longest_window_and_the_join() {
    let mut facts = facts();
    let clicks = settings_of(facts.clicks.as_mut().unwrap());
    clicks.retention_ms = Some(89_789_999);
    assert_lines(
        &check(&facts, 0),
        &[
            "warning  topic `clicks` keeps records for 89789999ms: after a start the window 24h is incomplete at first",
            "         → set retention.ms=89790000 or more",
        ],
    );
    for enough in [89_790_000, -1] {
        settings_of(facts.clicks.as_mut().unwrap()).retention_ms = Some(enough);
        assert_eq!(check(&facts, 0), "", "{enough}");
    }
}

#[test]
fn uncertain_retention_and_timestamps_are_reported() {
    let mut facts = facts();
    let served = settings_of(&mut facts.served);
    (served.retention_bytes, served.timestamps) = (Some(1 << 30), stamped_by("CreateTime"));
    assert_lines(
        &check(&facts, 0),
        &[
            "note     topic `served` keeps at most 1073741824 bytes of each partition",
            "         → make sure that they cover",
            "warning  topic `served` uses the timestamps of its producers (message.timestamp.type=CreateTime)",
            "         → kafka-configs.sh --bootstrap-server",
        ],
    );
}

#[test]
fn different_partitioners_are_named_given_enough_records() {
    let mut facts = facts();
    let clicks = |facts: &mut ClusterFacts, sample| {
        facts.clicks.as_mut().unwrap().found.as_mut().unwrap().sample = Ok(sample)
    };
    clicks(&mut facts, sample("clicks", 4, 500, Partitioner::Crc32));
    assert_lines(
        &check(&facts, 0),
        &[
            "warning  about 3 of 4 clicks find no list, because producers use different partitioners: topic `clicks` is keyed with CRC32",
        ],
    );
    clicks(&mut facts, sample("clicks", 4, 5, Partitioner::Crc32));
    assert_lines(
        &check(&facts, 0),
        &[
            "note     topic `clicks` has too few different keys to detect its partitioner: 5 of at least 12, so far as CRC32 (librdkafka's",
            "         → run this again",
        ],
    );
    let mut keyless = Sample::new("clicks", n(4));
    for _ in 0..200 {
        keyless.take(&mut reader(), 0, None, Some(LIST.as_bytes()), &NoHeaders);
    }
    clicks(&mut facts, keyless);
    assert_lines(
        &check(&facts, 0),
        &["warning  topic `clicks` has records without a key or with an empty one"],
    );
    let (served, clicks) = (topic("served", 1), topic("clicks", 1));
    assert_eq!(
        check(
            &ClusterFacts {
                served,
                clicks: Some(clicks),
                ..facts
            },
            0
        ),
        "",
        "one partition holds every key"
    );
}

#[test]
fn unreadable_records_are_counted_by_reason() {
    let mut facts = facts();
    let found = facts.served.found.as_mut().unwrap();
    let sample = found.sample.as_mut().unwrap();
    let mut reader = reader();
    let bad = [r#"{"ts":1}"#, r#"{"ts":1}"#, "{", r#"{"type":"view"}"#];
    for (n, payload) in bad.into_iter().enumerate() {
        let key = format!("r-{n}");
        let partition = murmur2_partition(key.as_bytes(), super::tests::n(4)).cast_signed();
        sample.take(
            &mut reader,
            partition,
            Some(key.as_bytes()),
            Some(payload.as_bytes()),
            &NoHeaders,
        );
    }
    assert_lines(
        &check(&facts, 0),
        &[
            "warning  topic `served`: 3 of the last 504 records (less than 1%) cannot be read: missing_field 2, not_json 1",
            "         → missing_field: a list needs request_id",
            "         not_json: send one JSON object",
            "note     topic `served`: 1 of the last 504 records have another `type` and are ignored",
        ],
    );
}

#[test]
fn records_that_do_not_fit_their_encoding_are_reported_with_the_setting() {
    let mut facts = facts();
    let found = facts.served.found.as_mut().unwrap();
    let sample = found.sample.as_mut().unwrap();
    let settings = [
        ("KAFKA__BROKERS", "kafka:9092"),
        ("EVENTS__SERVED__FORMAT", "avro"),
        ("REGISTRY__URL", "http://registry.example"),
    ];
    let settings = settings.map(|(name, value)| (format!("ABGAUGE_{name}"), value.to_owned()));
    let config = crate::settings::load(None, settings.into_iter()).expect("valid");
    let mut reader = SampleReader::new(&config, Side::Served, Some(Kind::Served)).expect("no files");
    for _ in 0..2 {
        sample.take(&mut reader, 0, Some(b"r-1"), Some(b"\x04r7"), &NoHeaders);
    }
    let lines = [
        "warning  topic `served`: 2 of the last 502 records (less than 1%) cannot be read: unknown_schema 2",
        "warning  topic `served`: records that name no schema are invalid (unknown_schema): set schemas.served to the file",
    ];
    let text = check(&facts, 0);
    assert!(lines.iter().all(|line| text.matches(line).count() == 1), "{text}");
}

#[test]
fn failed_requests_are_reported_with_the_missing_permission_or_address() {
    let mut facts = facts();
    let found = facts.served.found.as_mut().unwrap();
    found.settings = Err(Failure::new(Trouble::TopicForbidden, "denied"));
    found.sample = Err(Failure::new(Trouble::Unreachable, "refused"));
    assert_lines(
        &check(&facts, 69),
        &[
            "warning  cannot read the settings of topic `served` (retention, compaction, timestamps): denied",
            "         → grant the user DESCRIBE_CONFIGS",
            "error    no record of topic `served` can be read: refused",
            "         → make sure that this machine can reach all brokers at their advertised addresses (kafka:9092",
        ],
    );
    // Errors that need a fix come before those that may resolve themselves.
    facts.group = Err(Failure::new(Trouble::GroupForbidden, "denied"));
    let text = check(&facts, 78);
    assert!(
        text.contains("error    no permission for the consumer group `abgauge`: denied\n         → grant"),
        "{text}"
    );
}

#[test]
fn a_failed_connection_is_one_error_with_address_and_fix() {
    for (trouble, says, code) in [
        (Trouble::Property, "correct it under [kafka.properties]", 78),
        (
            Trouble::Credentials,
            "the brokers at kafka:9092 refuse the credentials: why\n         → check kafka.properties.\"sasl.mechanism\"",
            69,
        ),
        (
            Trouble::Tls,
            "the brokers at kafka:9092: TLS with the brokers failed: why\n         → check kafka.properties.\"security",
            69,
        ),
        (
            Trouble::Resolve,
            "kafka:9092 cannot be found: why\n         → check the names in kafka.brokers",
            69,
        ),
        (
            Trouble::Unreachable,
            "kafka:9092 do not answer: why\n         → check the addresses in kafka.brokers",
            69,
        ),
    ] {
        let findings = [judge::no_way_in(&config(), &Failure::new(trouble, "why"))];
        assert!(printed(&findings).contains(says), "{}", printed(&findings));
        assert_eq!(exit_code(&findings), code, "{trouble:?}");
    }
}

#[test]
fn doubts_about_a_valid_configuration_are_warnings() {
    let verbose = findings(&config(), false, true);
    assert_lines(
        &printed(&verbose),
        &[
            "ok       the configuration is valid",
            "note     memory is bounded to",
            "         4096 MiB of open lists",
            "         0 MiB of shown items",
            "         0 MiB of sums by user",
            "         ",
            "         up to 10000 arms",
            "         statistics: ",
            "note     a scrape has up to 197 series for each arm ([export]); there is room for 1522 such arms",
        ],
    );
    let mut config = config();
    config.export.forget_after_ms = 1;
    let findings = findings(&config, false, false);
    assert_lines(
        &printed(&findings),
        &[
            "ok       the configuration",
            "note     memory is bounded to",
            "note     a scrape",
            "warning  export.forget_after",
        ],
    );
    assert_eq!(exit_code(&findings), 0);
}

/// A record with a schema of an unknown id.
fn framed(id: u32) -> Vec<u8> {
    [&[0][..], &id.to_be_bytes(), &[4], b"r7"].concat()
}

/// Returns the findings about records of lists, read with these settings.
fn content(settings: &str, records: &[Vec<u8>]) -> Vec<Finding> {
    let text = format!("kafka.brokers = \"b:1\"\n{settings}");
    let config = crate::settings::load_text("abgauge.toml", &text, std::iter::empty()).expect("valid");
    let mut reader = SampleReader::new(&config, Side::Served, Some(Kind::Served)).expect("no files");
    let mut sample = Sample::new("served", n(1));
    for record in records {
        sample.take(&mut reader, 0, None, Some(record), &NoHeaders);
    }
    sample::content(&sample)
}

/// If a registry does not answer, only the first schema is requested.
#[test]
fn schemas_that_were_not_asked_for_are_not_listed_as_read() {
    // Port 1 is closed.
    let settings = "events.served.format = \"avro\"\nregistry.url = \"http://127.0.0.1:1\"";
    let findings = content(settings, &[framed(7), framed(8), framed(9), framed(8), framed(7)]);
    let unread = |level: ResultLevel, schemas: &str, problem: &str| {
        findings.iter().any(|finding| {
            finding.level == level
                && finding
                    .text
                    .contains(&format!("of schema {schemas} cannot be read: "))
                && finding.text.contains(problem)
        })
    };
    // The second record of a schema does not hide the failure.
    let unavailable = ResultLevel::Error(CheckFailure::Unavailable);
    let refused =
        "Connection refused (os error 111): check the address in registry.url, and that the registry runs";
    assert!(unread(unavailable, "7 (2 records)", refused), "{findings:#?}");
    let problem = "not requested, because the registry failed";
    let others = "8 (2 records), 9 (1 record)";
    assert!(unread(ResultLevel::Warning, others, problem), "{findings:#?}");
    assert_eq!(exit_code(&findings), 69);
    let is_read = |finding: &Finding| finding.level == ResultLevel::Ok;
    assert!(!findings.iter().any(is_read), "{findings:#?}");
}

#[test]
fn a_topic_without_a_readable_record_fails_the_check() {
    let good = br#"{"type":"served","request_id":"r","ts":1763596800000,"items":["i"]}"#.to_vec();
    let bad = br#"{"type":"served","ts":1763596800000,"items":["i"]}"#.to_vec();
    let some = content("", &[good, bad.clone()]);
    assert_eq!(
        (some[0].level, exit_code(&some)),
        (ResultLevel::Warning, 0),
        "{some:#?}"
    );
    let none = content("", &[bad.clone(), bad]);
    assert_eq!(exit_code(&none), 65, "{none:#?}");
    let text = "topic `served`: 2 of the last 2 records (100%) cannot be read: missing_field 2";
    assert!(none[0].text == text && !none[0].remedy.is_empty(), "{none:#?}");
}

#[test]
fn records_of_other_messages_are_named() {
    let file = tempfile::NamedTempFile::with_suffix(".proto").expect("a file");
    let text =
        "syntax = \"proto3\"; package shop; message List { string id = 1; } message Click { string id = 1; }";
    std::fs::write(file.path(), text).expect("it is written");
    let settings = format!(
        "events.served.format = \"protobuf\"\nevents.served.message = \"shop.List\"\nschemas.served = {:?}",
        file.path()
    );
    let of_click = [0, 0, 0, 0, 7, 2, 2, 0x0a, 2, b'r', b'7'].to_vec();
    let findings = content(&settings, &[of_click.clone(), of_click]);
    let named = "topic `served`: no record has the message `shop.List` of events.served.message yet, and the others are ignored: shop.Click";
    let is_named = |finding: &Finding| finding.level == ResultLevel::Warning && finding.text == named;
    assert!(findings.iter().any(is_named), "{findings:#?}");
}

/// Without a connection, the schema in a file shows already that no record can be read.
#[test]
fn a_schema_file_that_lacks_fields_of_the_events_is_reported_with_those_it_has() {
    let file = tempfile::NamedTempFile::with_suffix(".avsc").expect("a file");
    let fields = r#"[{"name":"request_id","type":"string"},{"name":"time","type":"long"},{"name":"items","type":{"type":"array","items":"string"}}]"#;
    let schema = format!(r#"{{"type":"record","name":"List","fields":{fields}}}"#);
    std::fs::write(file.path(), schema).expect("it is written");
    let findings = |more: &str| {
        let text = format!(
            "kafka.brokers = \"b:1\"\nevents.served.format = \"avro\"\nschemas.served = {:?}\n{more}",
            file.path()
        );
        let config = crate::settings::load_text("abgauge.toml", &text, std::iter::empty()).expect("valid");
        findings(&config, false, false)
    };
    let named = "schemas.served has no field at events.served.ts = \"ts\"; it has request_id, time, items";
    let is_named = |findings: &[Finding]| {
        findings
            .iter()
            .any(|finding| finding.level == ResultLevel::Warning && finding.text.starts_with(named))
    };
    let found = findings("");
    assert!(is_named(&found), "{found:#?}");
    assert!(!is_named(&findings("events.served.ts = \"time\"")));
}

#[test]
fn an_empty_schema_file_is_reported_as_empty() {
    let file = tempfile::NamedTempFile::with_suffix(".desc").expect("a file");
    let text = format!(
        "kafka.brokers = \"b:1\"\nevents.served.format = \"protobuf\"\nschemas.served = {:?}",
        file.path()
    );
    let config = crate::settings::load_text("abgauge.toml", &text, std::iter::empty()).expect("valid");
    let found = printed(&findings(&config, false, false));
    assert!(found.contains(".desc: the schema is empty"), "{found}");
}
