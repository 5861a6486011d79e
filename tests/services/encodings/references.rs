//! Schemas of Apicurio's own API that refer to others.

use serde_json::{Value, json};

use super::faults::{Lists, long, text};
use super::world;
use crate::support::kafka::Kafka;
use crate::support::registry::Registry;

/// Creates an artifact of this group, and returns its global id.
fn create(registry: &Registry, id: &str, schema: &Value, references: &Value) -> u64 {
    let url = format!("{}/apis/registry/v2/groups/referred/artifacts", registry.root());
    let body = json!({"content": schema.to_string(), "references": references}).to_string();
    let answer = ureq::agent()
        .post(&url)
        .header("content-type", "application/create.extended+json")
        .header("x-registry-artifactid", id)
        .header("x-registry-artifacttype", "AVRO")
        .send(body);
    let answer = answer.expect("an answer").body_mut().read_to_string();
    let created: Value = serde_json::from_str(&answer.expect("text")).expect("JSON");
    created["globalId"].as_u64().expect("an id")
}

fn refers_to(name: &str, artifact: &str) -> Value {
    json!([{"name": name, "groupId": "referred", "artifactId": artifact, "version": "1"}])
}

/// Returns the record of a list in arm `a`, the first value of an enum.
fn framed(schema: u64, id: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend(schema.to_be_bytes());
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

#[test]
fn schemas_that_apicurio_keeps_apart_are_read_together() {
    let kafka = Kafka::shared();
    let registry = Registry::shared();
    let arm = json!({"type": "enum", "name": "Arm", "namespace": "shop", "symbols": ["a", "b"]});
    create(&registry, "shop arm", &arm, &json!([]));
    let arms = json!({"type": "map", "values": "shop.Arm"});
    let assignment = json!({"type": "record", "name": "Assignment", "namespace": "shop",
        "fields": [{"name": "experiments", "type": arms}]});
    create(
        &registry,
        "assignment",
        &assignment,
        &refers_to("shop.Arm", "shop arm"),
    );
    let list = json!({"type": "record", "name": "List", "namespace": "shop", "fields": [
        {"name": "request_id", "type": "string"},
        {"name": "ts", "type": "long"},
        {"name": "assignment", "type": "shop.Assignment"},
        {"name": "items", "type": {"type": "array", "items": "string"}},
    ]});
    let refers_to_assignment = refers_to("shop.Assignment", "assignment");
    let id = create(&registry, "list", &list, &refers_to_assignment);

    let lists = Lists::new(&kafka, 1);
    let settings = format!(
        "events.served.framing = \"apicurio2\"\nevents.served.experiments = \"assignment.experiments\"\nregistry.url = \"{}\"",
        registry.url()
    );
    let mut daemon = lists.daemon(&kafka, &settings);
    for n in 0..3 {
        lists.send_record(0, &framed(id, &format!("r{n}")));
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
