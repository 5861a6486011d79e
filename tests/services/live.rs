//! Tests of the support modules: broker, proxy, Prometheus and browser behave as other suites assume.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::AdminClient;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::support::exposition::Exposition;
use crate::support::kafka::{Kafka, Options, READER, STRANGER};
use crate::support::prometheus::{self, Prometheus};
use crate::support::{browser, tools, wait};

#[test]
fn a_record_is_read_as_it_was_sent() {
    let kafka = Kafka::shared();
    let topic = kafka.new_topic("roundtrip", 3);
    let producer = kafka.producer();
    producer.produce(&topic, Some(2), Some(b"k"), Some(b"v"), Some(1_763_596_800_123));
    producer.produce(&topic, Some(2), None, None, None);
    producer.produce(&topic, None, Some(b"r-1"), Some(b"keyed"), None);
    producer.flush();

    let records = kafka.read_all(&topic);
    assert_eq!(records.len(), 3);
    let keyed = records
        .iter()
        .find(|record| record.payload.as_deref() == Some(b"keyed"))
        .expect("the keyed record");
    assert_eq!(keyed.partition, murmur2_partition(b"r-1", 3));
    let sent = records
        .iter()
        .find(|record| record.key.as_deref() == Some(b"k"))
        .expect("the explicit record");
    assert_eq!(
        (sent.partition, sent.payload.as_deref()),
        (2, Some(b"v".as_slice()))
    );
    assert_eq!(sent.timestamp, Some(1_763_596_800_123));
    assert!(
        records
            .iter()
            .any(|record| record.key.is_none() && record.payload.is_none())
    );
}

#[test]
fn deleted_records_and_topics_are_gone() {
    let kafka = Kafka::shared();
    let topic = kafka.new_topic("deleted", 1);
    let producer = kafka.producer();
    for payload in [b"0", b"1", b"2"] {
        producer.produce(&topic, Some(0), None, Some(payload), None);
    }
    producer.flush();
    kafka.delete_records_before(&topic, 0, 2);
    assert_eq!(kafka.offsets(&topic, 0), (2, 3));
    assert_eq!(kafka.read_all(&topic).len(), 1);

    kafka.delete_topic(&topic);
    let consumer = consumer(&kafka.brokers(), &[]);
    wait::until("the topic to be unknown", wait::LONG, || {
        let metadata = consumer
            .fetch_metadata(Some(&topic), Duration::from_secs(5))
            .ok()?;
        metadata.topics()[0].error().map(|_| ())
    });
}

/// The health check of docker-compose.yml speaks Kafka's protocol and starts no JVM.
#[test]
fn a_broker_is_healthy_once_it_answers() {
    let compose = std::fs::read_to_string(tools::repository("docker-compose.yml")).expect("it can be read");
    let compose: serde_json::Value = serde_saphyr::from_str(&compose).expect("YAML");
    let test: Vec<String> =
        serde_json::from_value(compose["services"]["kafka"]["healthcheck"]["test"].clone())
            .expect("a list of texts");
    assert_eq!(test[..3], ["CMD", "/bin/bash", "-c"]);
    let is_well = |address: &str| {
        // Compose replaces `$$` like this.
        let script = test[3]
            .replace("$$", "$")
            .replace("kafka/9092", &address.replace(':', "/"));
        let mut bash = std::process::Command::new("bash");
        let checked = bash
            .args(["-c", &script])
            .stderr(std::process::Stdio::null())
            .status();
        checked.expect("bash starts").success()
    };
    let mut kafka = Kafka::start();
    let address = kafka.brokers();
    assert!(is_well(&address));
    kafka.stop();
    assert!(!is_well(&address), "nobody listens");

    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = other.local_addr().expect("its address").to_string();
    let answers = thread::spawn(move || {
        let (mut asked, _) = other.accept().expect("a connection");
        asked.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    });
    assert!(!is_well(&address), "no broker");
    answers.join().expect("it answers").expect("to the end");
}

#[test]
fn a_restarted_broker_keeps_its_records() {
    let mut kafka = Kafka::start();
    let topic = kafka.new_topic("kept", 1);
    let producer = kafka.producer();
    producer.produce(&topic, None, Some(b"a"), Some(b"before"), None);
    producer.flush();
    kafka.stop();
    assert!(TcpStream::connect(kafka.brokers()).is_err(), "it still listens");
    producer.produce(&topic, None, Some(b"a"), Some(b"while away"), None);
    kafka.restart();
    producer.flush();
    let payloads: Vec<_> = kafka
        .read_all(&topic)
        .into_iter()
        .filter_map(|record| record.payload)
        .collect();
    assert_eq!(payloads, [b"before".to_vec(), b"while away".to_vec()]);
}

#[test]
fn a_cut_affects_only_clients_behind_the_proxy() {
    let mut kafka = Kafka::start_with(Options {
        proxied: true,
        ..Options::default()
    });
    let topic = kafka.new_topic("cut", 1);
    let proxied = consumer(&kafka.proxied_brokers(), &[]);
    let end = |consumer: &BaseConsumer| consumer.fetch_watermarks(&topic, 0, Duration::from_secs(2)).ok();
    assert_eq!(end(&proxied), Some((0, 0)));

    kafka.proxy().cut();
    let producer = kafka.producer();
    producer.produce(&topic, None, None, Some(b"meanwhile"), None);
    producer.flush();
    assert_eq!(end(&proxied), None, "the way is cut");
    assert_eq!(kafka.offsets(&topic, 0), (0, 1));

    kafka.proxy().restore();
    wait::until("the way to be open", wait::LONG, || {
        end(&proxied).filter(|offsets| *offsets == (0, 1))
    });
}

#[test]
fn the_secured_listener_checks_its_users() {
    let kafka = Kafka::start_with(Options {
        secured: true,
        ..Options::default()
    });
    let topic = kafka.new_topic("secured", 1);
    let as_user = |(user, password): (&'static str, &'static str)| {
        let login = [
            ("security.protocol", "SASL_PLAINTEXT"),
            ("sasl.mechanism", "PLAIN"),
            ("sasl.username", user),
            ("sasl.password", password),
        ];
        consumer(&kafka.sasl_brokers(), &login)
    };
    let topic_error = |consumer: &BaseConsumer| {
        let metadata = consumer
            .fetch_metadata(Some(&topic), Duration::from_secs(30))
            .expect("the broker answers");
        metadata.topics()[0].error().map(RDKafkaErrorCode::from)
    };
    assert_eq!(topic_error(&as_user(READER)), None);
    assert_eq!(
        topic_error(&as_user(STRANGER)),
        Some(RDKafkaErrorCode::TopicAuthorizationFailed)
    );

    let wrong = as_user((READER.0, "not-this"));
    let refused = wait::until("the refusal of a wrong password", wait::LONG, || {
        let _ = wrong.fetch_metadata(Some(&topic), Duration::from_millis(200));
        match wrong.poll(Duration::ZERO)? {
            Err(KafkaError::MessageConsumption(code @ RDKafkaErrorCode::Authentication)) => Some(code),
            _ => None,
        }
    });
    assert_eq!(refused, RDKafkaErrorCode::Authentication);
}

#[test]
fn metadata_requests_do_not_create_topics() {
    let kafka = Kafka::shared();
    let client: AdminClient<_> = ClientConfig::new()
        .set("bootstrap.servers", kafka.brokers())
        .create()
        .expect("a client");
    let metadata = client
        .inner()
        .fetch_metadata(Some("nobody-made-this"), Duration::from_secs(10))
        .expect("an answer");
    assert!(metadata.topics()[0].error().is_some());
}

#[test]
fn prometheus_scrapes_its_targets() {
    let exporter = serve(
        "text/plain; version=0.0.4; charset=utf-8",
        "# TYPE up_down gauge\nup_down{side=\"left\"} 0.1\n",
    );
    let prometheus = Prometheus::start(&[exporter]);
    let samples = prometheus.wait_for("up_down", Duration::from_secs(30));
    assert_eq!(samples.len(), 1);
    assert!(
        samples[0].has(&[("side", "left"), ("job", "abgauge")]),
        "{samples:?}"
    );
    assert_eq!(samples[0].value, 0.1, "no digit is lost");
    assert_eq!(prometheus.query("vector(1) + 1")[0].value, 2.0);
}

#[test]
fn promtool_rejects_bad_metrics() {
    prometheus::check_metrics("# HELP ok Fine.\n# TYPE ok gauge\nok 1\n").expect("a clean text");
    let objection =
        prometheus::check_metrics("# HELP x_total Said to be a gauge.\n# TYPE x_total gauge\nx_total 1\n");
    assert!(objection.expect_err("_total is for counters").contains("x_total"));
    prometheus::check_metrics("x{ 1\n").expect_err("broken text");
}

#[test]
fn the_strict_reader_unescapes_and_rejects_errors() {
    let read =
        Exposition::parse("# TYPE a gauge\na{l=\"q\\\"\\\\\\n\",m=\"\"} 1e-3\na 2\nb +Inf\n").expect("valid");
    assert_eq!(read.value("a", &[("l", "q\"\\\n")]), Some(0.001));
    assert_eq!(
        (read.sum("a", &[]), read.value("b", &[])),
        (2.001, Some(f64::INFINITY))
    );
    for (text, why) in [
        ("a 1", "does not end"),
        ("a 1\na 1\n", "twice"),
        ("a 1\nb 1\na{x=\"\"} 1\n", "together"),
        ("a 1\n# TYPE a gauge\n", "after samples"),
        ("a{x=\"\\t\"} 1\n", "escape"),
        ("a{x=\"1\" y=\"2\"} 1\n", "neither"),
        ("a nan\n", "no value"),
        ("1a 1\n", "no name"),
    ] {
        let error = Exposition::parse(text).expect_err(text);
        assert!(error.contains(why), "{text:?}: {error}");
    }
}

#[test]
fn chromium_opens_a_page_and_reports_its_errors() {
    let page = "<!doctype html><link rel=icon href='data:,'><script>document.title = 'tit' + 'le';
        console.error('oh'); fetch('http://127.0.0.1:1/').catch(() => {});</script>";
    let address = serve("text/html", page);
    let said = browser::run(
        "title.mjs",
        &[&format!("http://{address}/")],
        Duration::from_secs(60),
    );
    let said: serde_json::Value = serde_json::from_str(said.lines().last().expect("a line")).expect("JSON");
    assert_eq!(said["title"], "title");
    let objections = said["objections"].to_string();
    assert!(
        objections.contains("console: oh") && objections.contains("request: http://127.0.0.1:1/"),
        "{objections}"
    );
}

#[test]
fn free_ports_differ() {
    assert_ne!(tools::free_port(), tools::free_port());
}

fn consumer(brokers: &str, properties: &[(&str, &str)]) -> BaseConsumer {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers)
        .set("group.id", "services");
    for (name, value) in properties {
        config.set(*name, *value);
    }
    config.create().expect("a consumer")
}

/// Serves this body for every request until the test binary ends.
fn serve(content_type: &str, body: &str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen");
    let address = listener.local_addr().expect("an address");
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            // The client may be gone.
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    address
}

/// Computes Java's partition of a key: `Utils.toPositive(Utils.murmur2(key)) % n`.
fn murmur2_partition(key: &[u8], n_partitions: u32) -> i32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ key.len() as u32;
    let chunks = key.chunks_exact(4);
    let rest = chunks.remainder();
    for chunk in chunks {
        let mut k = u32::from_le_bytes(chunk.try_into().expect("four bytes")).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (i, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * i);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^= hash >> 15;
    ((hash & 0x7fff_ffff) % n_partitions).cast_signed()
}
