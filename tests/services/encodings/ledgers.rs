//! One world in every encoding and framing gives the same numbers as in JSON.

use std::collections::BTreeMap;
use std::thread;

use super::world::{self, Event, Format, Kind, N_PARTITIONS, N_STAGES};
use crate::support::clients::{Client, Written};
use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::front::Front;
use crate::support::kafka::Kafka;
use crate::support::registry::Registry;
use crate::support::tools;

/// Alternatives for the field that is renamed.
const PATHS: &str = r#"
    events.served.request_id = { any = ["request_id", "list_id"] }
    events.click.request_id = { any = ["request_id", "list_id"] }
"#;

/// One way to write the world.
struct Case {
    client: Client,
    format: Format,
    framing: &'static str,
    topics: [String; 2],
    daemon: Daemon,
}

impl Case {
    /// Starts a daemon with these settings, which reads while records are written.
    fn new(kafka: &Kafka, (client, format, framing): (Client, Format, &'static str), settings: &str) -> Case {
        let topics = ["served", "clicks"].map(|stem| kafka.new_topic(stem, N_PARTITIONS));
        let word = match format {
            Format::Avro => "avro",
            Format::Protobuf | Format::ProtobufOfBoth => "protobuf",
            Format::Json => "json",
        };
        let formats = format!("events.served.format = \"{word}\"\nevents.click.format = \"{word}\"");
        let daemon = daemon(kafka, &topics, &format!("{formats}\n{settings}"));
        Case {
            client,
            format,
            framing,
            topics,
            daemon,
        }
    }

    fn written(&self, event: &Event) -> Written {
        // A file holds a single schema.
        let stage = if self.framing == "single_object" {
            N_STAGES - 1
        } else {
            event.stage
        };
        Written {
            topic: self.topics[event.kind as usize].clone(),
            partition: event.partition,
            framing: self.framing,
            schema: world::schema_of(event.kind, stage, self.format),
            value: world::by_stage(event, stage, self.format),
        }
    }
}

fn daemon(kafka: &Kafka, topics: &[String; 2], settings: &str) -> Daemon {
    Daemon::run(&format!(
        r#"
        kafka.brokers = "{}"
        kafka.served_topic = "{}"
        kafka.clicks_topic = "{}"
        kafka.group_id = "{}"
        kafka.key = "user"
        ingest.workers = 1
        export.views = ["live"]
        export.numerators = ["hit_rate", "ctr", "mrr", "ndcg", "precision", "recall", "map"]
        {settings}
        "#,
        kafka.brokers(),
        topics[0],
        topics[1],
        kafka.unique("group"),
    ))
}

/// Waits until every record has an outcome, and returns the numbers since the start, by name and labels.
#[track_caller]
fn numbers(daemon: &mut Daemon, topics: &[String; 2], n_events: usize) -> BTreeMap<String, f64> {
    daemon.wait_until_ready();
    let scrape = daemon.wait_until("an outcome for each record", |daemon| {
        let scrape = daemon.metrics();
        (scrape.sum("abgauge_records_total", &[]) == n_events as f64).then_some(scrape)
    });
    let accepted = scrape.sum("abgauge_records_total", &[("outcome", "accepted")]);
    assert_eq!(accepted, n_events as f64, "{topics:?}: {}", refusals(&scrape));
    let is_kept = |name: &str, labels: &BTreeMap<String, String>| {
        labels.get("window").is_some_and(|window| window == "total") || name == "abgauge_click_results_total"
    };
    let kept = scrape
        .samples
        .iter()
        .filter(|sample| is_kept(&sample.name, &sample.labels));
    kept.map(|sample| (format!("{} {:?}", sample.name, sample.labels), sample.value))
        .collect()
}

fn refusals(scrape: &Exposition) -> String {
    let refused = scrape
        .samples
        .iter()
        .filter(|sample| sample.name == "abgauge_invalid_records_total" && sample.value > 0.0);
    format!("{:?}", refused.collect::<Vec<_>>())
}

#[test]
fn every_encoding_gives_the_numbers_of_json() {
    let kafka = Kafka::shared();
    let registry = Registry::shared();
    // The registry has no GUIDs; this server adds them.
    let front = Front::before(&registry.url());
    let events = world::world(42);
    let dir = tools::temporary_dir("schemas");
    let file = |kind, name: &str| {
        let path = dir.path().join(name);
        let schema = world::avro_schema(kind, N_STAGES - 1);
        std::fs::write(&path, schema.to_string()).expect("write a schema");
        path
    };
    let files = format!(
        "{PATHS}\nschemas.served = {:?}\nschemas.click = {:?}",
        file(Kind::List, "served.avsc"),
        file(Kind::Click, "click.avsc")
    );
    let by_registry = format!("{PATHS}\nregistry.url = \"{}\"", registry.url());
    let by_guid = format!("{PATHS}\nregistry.url = \"{}\"", front.url());
    let eight_bytes =
        format!("{by_registry}\nevents.served.framing = \"apicurio2\"\nevents.click.framing = \"apicurio2\"");
    let mut cases = [
        (Client::Python, Format::Avro, "confluent", &by_registry),
        (Client::JavaScript, Format::Avro, "confluent", &by_registry),
        (Client::Java, Format::Avro, "confluent", &by_registry),
        (Client::Go, Format::Avro, "confluent", &by_registry),
        (Client::Python, Format::Avro, "header", &by_guid),
        (Client::Java, Format::Avro, "header", &by_registry),
        (Client::Java, Format::Avro, "header-content", &by_registry),
        (Client::Java, Format::Avro, "apicurio2", &eight_bytes),
        (Client::Python, Format::Avro, "single_object", &files),
        (Client::Java, Format::Avro, "single_object", &files),
        (Client::Python, Format::ProtobufOfBoth, "confluent", &by_registry),
        (Client::Python, Format::ProtobufOfBoth, "header", &by_guid),
        (Client::JavaScript, Format::Protobuf, "confluent", &by_registry),
        (Client::Go, Format::ProtobufOfBoth, "confluent", &by_registry),
        (Client::Java, Format::ProtobufOfBoth, "confluent", &by_registry),
        (Client::Java, Format::ProtobufOfBoth, "header", &by_registry),
        (Client::Java, Format::ProtobufOfBoth, "apicurio2", &eight_bytes),
        (Client::Python, Format::Json, "json", &String::new()),
    ]
    .map(|(client, format, framing, settings)| Case::new(&kafka, (client, format, framing), settings));

    let topics = ["served", "clicks"].map(|stem| kafka.new_topic(stem, N_PARTITIONS));
    let mut own = daemon(&kafka, &topics, "");
    let producer = kafka.producer();
    for event in &events {
        let topic = &topics[event.kind as usize];
        producer.produce(
            topic,
            Some(event.partition),
            None,
            Some(event.json.to_string().as_bytes()),
            None,
        );
    }
    producer.flush();
    let expected = numbers(&mut own, &topics, events.len());
    assert!(expected.len() > 100, "{expected:?}");
    drop(own);

    let schemas = world::schemas();
    thread::scope(|scope| {
        for client in [Client::Go, Client::Java, Client::JavaScript, Client::Python] {
            let of_client = cases.iter().filter(|case| case.client == client);
            let records: Vec<Written> = of_client
                .flat_map(|case| events.iter().map(|event| case.written(event)))
                .collect();
            let (kafka, url, root, schemas) = (&kafka, front.url(), registry.root(), &schemas);
            scope.spawn(move || client.write(kafka, [&url, &root], schemas, &records));
        }
    });
    for Case {
        client,
        format,
        framing,
        topics,
        daemon,
    } in &mut cases
    {
        println!("{client:?} {format:?} {framing}");
        let found = numbers(daemon, topics, events.len());
        let differ = expected
            .iter()
            .filter(|(name, value)| found.get(*name) != Some(value));
        let differ: Vec<_> = differ.collect();
        assert!(differ.is_empty(), "{client:?} {format:?} {framing}: {differ:?}");
        assert_eq!(found.len(), expected.len(), "{client:?} {format:?} {framing}");
    }
}
