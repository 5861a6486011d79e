//! Checks of deploy/argo-rollouts and deploy/flagger: valid fields, and names that exist. `tests/program/rollouts` simulates the
//! controllers with them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::deployment::kubernetes::faults;
use crate::deployment::{json, read, yaml};

const TEMPLATE: &str = "deploy/argo-rollouts/analysistemplate.yaml";
const ROLLOUT: &str = "deploy/argo-rollouts/rollout.yaml";
const CANARY: &str = "deploy/flagger/canary.yaml";
const POLICIES: [&str; 2] = [
    "deploy/argo-rollouts/networkpolicy.yaml",
    "deploy/flagger/networkpolicy.yaml",
];

/// Validates a manifest against the schema of the controllers' kinds.
fn own_faults(manifest: &Value) -> Vec<String> {
    faults(manifest, &json("tests/program/deployment/rollouts/schema.json"))
}

/// Returns the names in an array of arguments.
fn names(arguments: &Value) -> BTreeSet<&str> {
    let arguments = arguments.as_array().expect("arguments");
    arguments
        .iter()
        .map(|argument| argument["name"].as_str().expect("a name"))
        .collect()
}

#[test]
fn manifests_follow_the_schema_of_their_kinds() {
    for file in [TEMPLATE, ROLLOUT, CANARY] {
        assert_eq!(own_faults(&yaml(file)), Vec::<String>::new(), "{file}");
    }
    let kubernetes = json("tests/program/deployment/kubernetes/schema.json");
    for file in POLICIES {
        assert_eq!(faults(&yaml(file), &kubernetes), Vec::<String>::new(), "{file}");
    }
}

#[test]
fn the_schema_detects_invalid_rollouts() {
    for (file, place, value) in [
        (TEMPLATE, "/spec/metrics/0/inconclusiveLimit", Value::Bool(true)),
        (TEMPLATE, "/spec/metrics/0/provider/web/jsonPath", Value::from(1)),
        (
            TEMPLATE,
            "/spec/metrics/0/provider",
            serde_json::json!({ "webs": {} }),
        ),
        (
            ROLLOUT,
            "/spec/strategy/canary/steps/0",
            serde_json::json!({ "setWeigth": 5 }),
        ),
        (CANARY, "/spec/analysis/webhooks/0/type", Value::from("promote")),
        (CANARY, "/spec/analysis/threshold", Value::Null),
    ] {
        let mut manifest = yaml(file);
        *manifest.pointer_mut(place).expect(place) = value;
        assert!(!own_faults(&manifest).is_empty(), "{file}: {place}");
    }
}

/// Argo's own validation requires more than the schema: a step must end, and limits must fit the count.
#[test]
fn the_analysis_is_finite_and_its_limits_fit() {
    let metric = &yaml(TEMPLATE)["spec"]["metrics"][0];
    let number = |name: &str| metric[name].as_u64().expect(name);
    assert!(number("count") >= number("failureLimit") + number("consecutiveSuccessLimit"));
    // It is one less, so that older versions pause if there was no verdict.
    assert_eq!(number("inconclusiveLimit"), number("count") - 1);
    assert_eq!(number("failureLimit"), 0);
}

#[test]
fn arguments_secrets_and_templates_exist() {
    let (template, rollout) = (yaml(TEMPLATE), yaml(ROLLOUT));
    let declared = names(&template["spec"]["args"]);
    let text = read(TEMPLATE);
    for used in text.split("{{args.").skip(1) {
        let name = used.split("}}").next().expect("an end");
        assert!(declared.contains(name), "{name}");
    }
    let steps = rollout["spec"]["strategy"]["canary"]["steps"]
        .as_array()
        .expect("steps");
    let step = steps
        .iter()
        .find_map(|step| step.get("analysis"))
        .expect("an analysis");
    assert_eq!(step["templates"][0]["templateName"], template["metadata"]["name"]);
    let given = names(&step["args"]);
    let missing = template["spec"]["args"].as_array().expect("arguments").iter();
    let missing = missing.filter(|arg| arg.get("value").is_none() && arg.get("valueFrom").is_none());
    let missing: BTreeSet<&str> = missing.map(|arg| arg["name"].as_str().expect("a name")).collect();
    assert_eq!(given, missing, "the rollout gives what has no default");
    let secret = template["spec"]["args"].as_array().expect("arguments");
    let secret = secret.iter().find_map(|arg| arg["valueFrom"].get("secretKeyRef"));
    let secret = secret.expect("the token comes from a secret");
    let (name, key) = (secret["name"].as_str(), secret["key"].as_str());
    let command = format!(
        "kubectl create secret generic {} --from-literal={}=",
        name.expect("a name"),
        key.expect("a key")
    );
    assert!(text.contains(&command), "{command}");
}

/// Both examples must agree on the experiment, the arm, the header that splits users, and the host from deploy/kubernetes.
#[test]
fn both_controllers_query_the_same_instance() {
    let (template, canary) = (yaml(TEMPLATE), yaml(CANARY));
    let set = yaml("deploy/kubernetes/statefulset.yaml");
    let port = yaml("deploy/kubernetes/service.yaml")["spec"]["ports"][0]["port"].to_string();
    let (name, service) = (&set["metadata"]["name"], &set["spec"]["serviceName"]);
    let host = format!(
        "https://{}-0.{}.default.svc:{port}",
        name.as_str().expect("a name"),
        service.as_str().expect("a name")
    );
    let address = template["spec"]["args"].as_array().expect("arguments");
    let address = address
        .iter()
        .find(|arg| arg["name"] == "address")
        .expect("an address");
    assert_eq!(address["value"], host);
    let webhooks = canary["spec"]["analysis"]["webhooks"]
        .as_array()
        .expect("webhooks");
    for (kind, gate) in [("confirm-promotion", "promote"), ("rollback", "rollback")] {
        let webhook = webhooks
            .iter()
            .find(|webhook| webhook["type"] == kind)
            .expect(kind);
        let wanted = format!("{host}/api/v1/verdict?experiment=ranker&arm=neural&gate={gate}");
        assert_eq!(webhook["url"], wanted);
    }
    let step = yaml(ROLLOUT)["spec"]["strategy"]["canary"]["steps"][1]["setHeaderRoute"]["match"][0].clone();
    let matched = &canary["spec"]["analysis"]["match"][0]["headers"];
    assert_eq!(step["headerName"], "x-arm");
    assert_eq!(matched["x-arm"]["exact"], step["headerValue"]["exact"]);
}

#[test]
fn policies_admit_the_rollout_controllers() {
    let own = yaml("deploy/kubernetes/networkpolicy.yaml");
    for (file, namespace) in POLICIES.into_iter().zip(["argo-rollouts", "flagger-system"]) {
        let policy = yaml(file);
        assert_eq!(
            policy["spec"]["podSelector"], own["spec"]["podSelector"],
            "{file}"
        );
        assert_ne!(policy["metadata"]["name"], own["metadata"]["name"], "{file}");
        let rule = &policy["spec"]["ingress"][0];
        assert_eq!(rule["ports"], own["spec"]["ingress"][0]["ports"], "{file}");
        let labels = &rule["from"][0]["namespaceSelector"]["matchLabels"];
        assert_eq!(labels["kubernetes.io/metadata.name"], namespace, "{file}");
    }
}
