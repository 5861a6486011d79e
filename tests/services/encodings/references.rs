//! Schemas that refer to others, through Apicurio's own API and through Confluent's.

use serde_json::{Value, json};
use ureq::RequestBuilder;
use ureq::typestate::WithBody;

use super::faults::{Lists, long, text};
use super::world;
use crate::support::kafka::Kafka;
use crate::support::registry::Registry;

/// Group of the artifacts.
const GROUP: &str = "referred";

/// Creates an artifact by Apicurio's own API, and returns its global id.
fn create(registry: &Registry, id: &str, schema: &Value, references: &Value) -> u64 {
    let url = format!("{}/apis/registry/v2/groups/{GROUP}/artifacts", registry.root());
    let request = ureq::agent()
        .post(&url)
        .header("content-type", "application/create.extended+json")
        .header("x-registry-artifactid", id)
        .header("x-registry-artifacttype", "AVRO");
    let body = json!({"content": schema.to_string(), "references": references});
    id_of(request, &body, "globalId")
}

/// Registers a schema by Confluent's API, and returns its id.
fn register(registry: &Registry, subject: &str, schema: &Value, references: &Value) -> u64 {
    let url = format!("{}/subjects/{subject}/versions", registry.url());
    let request = ureq::agent()
        .post(&url)
        .header("content-type", "application/json");
    let body = json!({"schema": schema.to_string(), "references": references});
    id_of(request, &body, "id")
}

fn id_of(request: RequestBuilder<WithBody>, body: &Value, field: &str) -> u64 {
    let answer = request.send(body.to_string());
    let answer = answer.expect("an answer").body_mut().read_to_string();
    let created: Value = serde_json::from_str(&answer.expect("text")).expect("JSON");
    created[field].as_u64().expect("an id")
}

/// Returns the schemas of the arm, of the assignment that refers to it, and of the list that refers to the assignment.
fn schemas() -> [Value; 3] {
    let arm = json!({"type": "enum", "name": "Arm", "namespace": "shop", "symbols": ["a", "b"]});
    let arms = json!({"type": "map", "values": "shop.Arm"});
    let assignment = json!({"type": "record", "name": "Assignment", "namespace": "shop",
        "fields": [{"name": "experiments", "type": arms}]});
    let list = json!({"type": "record", "name": "List", "namespace": "shop", "fields": [
        {"name": "request_id", "type": "string"},
        {"name": "ts", "type": "long"},
        {"name": "assignment", "type": "shop.Assignment"},
        {"name": "items", "type": {"type": "array", "items": "string"}},
    ]});
    [arm, assignment, list]
}

/// Returns the record of a list in arm `a`, the first value of the enum.
fn framed(prefix: &[u8], id: &str) -> Vec<u8> {
    let mut bytes = prefix.to_vec();
    text(&mut bytes, id);
    long(&mut bytes, world::now_ms());
    long(&mut bytes, 1);
    text(&mut bytes, "ranker");
    long(&mut bytes, 0);
    long(&mut bytes, 0);
    long(&mut bytes, 1);
    text(&mut bytes, "x");
    long(&mut bytes, 0);
    bytes
}

/// Reads lists behind this prefix.
fn read_lists(kafka: &Kafka, registry: &Registry, framing: &str, prefix: &[u8]) {
    let lists = Lists::new(kafka, 1);
    let settings = format!(
        "events.served.framing = \"{framing}\"\nevents.served.experiments = \"assignment.experiments\"\nregistry.url = \"{}\"",
        registry.url()
    );
    let mut daemon = lists.daemon(kafka, &settings);
    for n in 0..3 {
        lists.send_record(0, &framed(prefix, &format!("r{n}")));
    }
    lists.wait_until_accepted(&mut daemon, 3);
    let of_arm = [
        ("arm", "a"),
        ("window", "total"),
        ("view", "live"),
        ("scope", "own"),
    ];
    daemon.wait_until("the lists of the arm", |daemon| {
        (daemon.metrics().sum("abgauge_lists", &of_arm) == 3.0).then_some(())
    });
}

#[test]
fn schemas_that_apicurio_keeps_apart_are_read_together() {
    let (kafka, registry) = (Kafka::shared(), Registry::shared());
    let refers_to = |name: &str, artifact: &str| json!([{"name": name, "groupId": GROUP, "artifactId": artifact, "version": "1"}]);
    let [arm, assignment, list] = schemas();
    create(&registry, "shop arm", &arm, &json!([]));
    create(
        &registry,
        "assignment",
        &assignment,
        &refers_to("shop.Arm", "shop arm"),
    );
    let id = create(
        &registry,
        "list",
        &list,
        &refers_to("shop.Assignment", "assignment"),
    );
    read_lists(
        &kafka,
        &registry,
        "apicurio2",
        &[&[0], &id.to_be_bytes()[..]].concat(),
    );
}

#[test]
fn subjects_that_refer_to_each_other_are_read_together() {
    let (kafka, registry) = (Kafka::shared(), Registry::shared());
    let refers_to = |name: &str, subject: &str| json!([{"name": name, "subject": subject, "version": 1}]);
    let [arm, assignment, list] = schemas();
    register(&registry, "referred-arm", &arm, &json!([]));
    register(
        &registry,
        "referred-assignment",
        &assignment,
        &refers_to("shop.Arm", "referred-arm"),
    );
    let references = refers_to("shop.Assignment", "referred-assignment");
    let id = register(&registry, "referred-list", &list, &references);
    let id = u32::try_from(id).expect("four bytes").to_be_bytes();
    read_lists(&kafka, &registry, "confluent", &[&[0], &id[..]].concat());
}
