//! Checks of deploy/kubernetes and its TLS variant. The schema is the Kubernetes API's, reduced to the kinds in use: see
//! tests/program/deployment/kubernetes/README.md.

use std::collections::BTreeSet;

use abgauge::settings;
use serde_json::Value;

use crate::deployment::dockerfile::Dockerfile;
use crate::deployment::{check_arguments, check_variable, json, path, read, strings, yaml};

const FOLDER: &str = "deploy/kubernetes";
const OVER_TLS: &str = "deploy/kubernetes-tls/kustomization.yaml";
const NAME: &str = "app.kubernetes.io/name";

fn manifest(name: &str) -> Value {
    yaml(&format!("{FOLDER}/{name}"))
}

/// Returns the only container.
fn container() -> Value {
    let pod = &manifest("statefulset.yaml")["spec"]["template"]["spec"];
    let containers = pod["containers"].as_array().expect("containers");
    assert_eq!(containers.len(), 1);
    containers[0].clone()
}

/// Validates a manifest against the schema of its kind in `all`. Returns the faults.
pub fn faults(manifest: &Value, all: &Value) -> Vec<String> {
    let kind = manifest["kind"].as_str().expect("a kind");
    let version = manifest["apiVersion"].as_str().expect("a version");
    let definition = &all["kinds"][format!("{version}/{kind}")];
    let definition = definition
        .as_str()
        .unwrap_or_else(|| panic!("no schema of {version}/{kind}"));
    let schema = serde_json::json!({
        "$ref": format!("#/definitions/{definition}"),
        "definitions": all["definitions"],
    });
    let validator = jsonschema::draft7::new(&schema).expect("a schema");
    let errors = validator.iter_errors(manifest);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

fn own_faults(manifest: &Value) -> Vec<String> {
    faults(manifest, &json("tests/program/deployment/kubernetes/schema.json"))
}

#[test]
fn manifests_follow_the_schema_of_their_kinds() {
    let kustomization = manifest("kustomization.yaml");
    let resources = strings(&kustomization["resources"]);
    assert_eq!(resources.len(), 5);
    for file in resources {
        assert_eq!(own_faults(&manifest(file)), Vec::<String>::new(), "{file}");
    }
}

#[test]
fn the_schema_detects_invalid_manifests() {
    let wrong = [
        ("/spec/replicas", Value::from("two")),
        ("/spec/serviceName", Value::from(9464)),
        (
            "/spec/template/spec/containers/0/livenessProbe/httpGet/port",
            Value::Null,
        ),
        (
            "/spec/template/spec/containers/0/resources/limits/memory",
            Value::from(true),
        ),
        (
            "/spec/template/spec/securityContext",
            serde_json::json!({ "runAsNonroot": true }),
        ),
    ];
    for (place, value) in wrong {
        let mut manifest = manifest("statefulset.yaml");
        *manifest.pointer_mut(place).expect(place) = value;
        assert!(!own_faults(&manifest).is_empty(), "{place}");
    }
}

#[test]
fn the_kustomization_lists_all_files() {
    let kustomization = manifest("kustomization.yaml");
    let mut named: BTreeSet<String> = strings(&kustomization["resources"])
        .into_iter()
        .map(str::to_owned)
        .collect();
    for map in kustomization["configMapGenerator"].as_array().expect("maps") {
        named.extend(strings(&map["files"]).into_iter().map(str::to_owned));
    }
    named.insert("kustomization.yaml".to_owned());
    let there = std::fs::read_dir(path(FOLDER)).expect("it can be listed");
    let there: BTreeSet<String> = there
        .map(|file| {
            file.expect("it can be read")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    assert_eq!(named, there);
    let image = &kustomization["images"][0];
    assert_eq!(image["name"], container()["image"]);
    assert_eq!(image["newTag"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn all_selectors_match_the_pods() {
    let set = &manifest("statefulset.yaml");
    let name = &set["spec"]["template"]["metadata"]["labels"][NAME];
    assert_eq!(*name, "abgauge");
    let selectors = [
        set["spec"]["selector"]["matchLabels"].clone(),
        manifest("service.yaml")["spec"]["selector"].clone(),
        manifest("networkpolicy.yaml")["spec"]["podSelector"]["matchLabels"].clone(),
        manifest("poddisruptionbudget.yaml")["spec"]["selector"]["matchLabels"].clone(),
    ];
    for selector in selectors {
        assert_eq!(selector[NAME], *name);
    }
    assert_eq!(
        set["spec"]["serviceName"],
        manifest("service.yaml")["metadata"]["name"]
    );
    let account = &manifest("serviceaccount.yaml")["metadata"]["name"];
    assert_eq!(set["spec"]["template"]["spec"]["serviceAccountName"], *account);
}

#[test]
fn the_same_port_is_served_probed_and_scraped() {
    let container = container();
    let port = container["ports"][0]["containerPort"].to_string();
    let configured: toml::Table = read("deploy/kubernetes/abgauge.toml").parse().expect("TOML");
    assert_eq!(
        configured["http"]["listen"].as_str(),
        Some(&*format!("0.0.0.0:{port}"))
    );
    assert_eq!(Dockerfile::read().argument("EXPOSE"), Some(&*port));
    assert_eq!(
        manifest("service.yaml")["spec"]["ports"][0]["port"].to_string(),
        port
    );
    let annotations = &manifest("statefulset.yaml")["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["prometheus.io/port"], *port);
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        let asked = &container[probe]["httpGet"];
        assert_eq!(asked["path"], path, "{probe}");
        assert_eq!(asked["port"], container["ports"][0]["name"], "{probe}");
    }
}

#[test]
fn the_pod_has_minimal_privileges() {
    let pod = &manifest("statefulset.yaml")["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let user = format!(
        "{0}:{1}",
        pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]
    );
    assert_eq!(Dockerfile::read().argument("USER"), Some(&*user));
    let context = &container()["securityContext"];
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(strings(&context["capabilities"]["drop"]), ["ALL"]);
    for mount in container()["volumeMounts"].as_array().expect("mounts") {
        assert_eq!(mount["readOnly"], true, "{mount}");
    }
}

#[test]
fn the_configuration_is_valid_and_fits_into_the_container() {
    let container = container();
    let variables = container["env"].as_array().expect("variables");
    let names = variables
        .iter()
        .map(|variable| variable["name"].as_str().expect("a name"));
    let variables: Vec<(String, String)> = names
        .inspect(|name| check_variable(name))
        .map(|name| (name.to_owned(), "abgauge-0".to_owned()))
        .collect();
    let config = settings::load(
        Some(&path("deploy/kubernetes/abgauge.toml")),
        variables.into_iter(),
    )
    .expect("it is valid");
    assert!(config.state.is_some(), "what has settled outlives a pod");
    let property = |name: &str| config.kafka.properties.0.get(name).map(String::as_str);
    // A static member does not leave its group at a clean stop. It must return before the others get its partitions.
    assert_eq!(property("group.instance.id"), Some("abgauge-0"));
    let grace = &manifest("statefulset.yaml")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"];
    let timeout_ms: u64 = property("session.timeout.ms")
        .expect("it is set")
        .parse()
        .expect("ms");
    assert!(timeout_ms > 2_000 * grace.as_u64().expect("seconds"));

    let arguments = strings(&container["args"]);
    assert_eq!(arguments, ["run", "--config", "/etc/abgauge/abgauge.toml"]);
    check_arguments(arguments);
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/etc/abgauge");

    let memory = container["resources"]["limits"]["memory"]
        .as_str()
        .expect("a limit");
    let gibibytes: u64 = memory
        .strip_suffix("Gi")
        .and_then(|n| n.parse().ok())
        .expect("GiB");
    assert!(gibibytes << 30 >= 2 * config.limits.max_state_bytes, "{memory}");
    assert_eq!(container["resources"]["requests"]["memory"], memory);
    let cores = container["resources"]["requests"]["cpu"].as_str().expect("cores");
    assert_eq!(config.ingest.n_workers().to_string(), cores);
}

/// Returns the stateful set of the TLS variant, whose JSON patches only add fields.
fn over_tls() -> Value {
    let kustomization = yaml(OVER_TLS);
    assert_eq!(strings(&kustomization["resources"]), ["../kubernetes"]);
    let patches = kustomization["patches"].as_array().expect("patches");
    let [patch] = patches.as_slice() else {
        panic!("{patches:?}");
    };
    let mut set = manifest("statefulset.yaml");
    for part in ["kind", "name"] {
        let of_set = if part == "name" {
            &set["metadata"][part]
        } else {
            &set[part]
        };
        assert_eq!(patch["target"][part], *of_set);
    }
    let patch = patch["patch"].as_str().expect("a text");
    let operations: Vec<Value> = serde_saphyr::from_str(patch).expect("YAML");
    for operation in operations {
        assert_eq!(operation["op"], "add", "{operation}");
        let place = operation["path"].as_str().expect("a path");
        let (parent, name) = place.rsplit_once('/').expect("a place in something");
        let value = operation["value"].clone();
        match set.pointer_mut(parent).expect(place) {
            Value::Array(array) if name == "-" => array.push(value),
            Value::Object(object) => {
                object.insert(name.replace("~1", "/"), value);
            }
            other => panic!("{place}: {other}"),
        }
    }
    set
}

/// Probes need only the scheme. `tests/program/security` checks that they are answered without a token.
#[test]
fn the_tls_variant_uses_https_and_mounts_the_certificate() {
    let set = over_tls();
    assert_eq!(own_faults(&set), Vec::<String>::new());
    let pod = &set["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    for probe in ["livenessProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["scheme"], "HTTPS", "{probe}");
    }
    let annotations = &set["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["prometheus.io/scheme"], "https");

    let mounts = container["volumeMounts"].as_array().expect("mounts");
    let mount = mounts.last().expect("a mount");
    assert_eq!(mount["readOnly"], true);
    let volumes = pod["volumes"].as_array().expect("volumes");
    let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]);
    let volume = volume.expect("what is mounted");
    assert!(read(OVER_TLS).contains(&format!(
        "kubectl create secret tls {} ",
        volume["secret"]["secretName"].as_str().expect("a name")
    )));
    let variables = container["env"].as_array().expect("variables");
    for (variable, file) in [
        ("ABGAUGE_HTTP__TLS_CERTIFICATE", "tls.crt"),
        ("ABGAUGE_HTTP__TLS_KEY", "tls.key"),
    ] {
        check_variable(variable);
        let found = variables.iter().find(|found| found["name"] == variable);
        let path = format!("{}/{file}", mount["mountPath"].as_str().expect("a path"));
        assert_eq!(found.expect(variable)["value"], path);
    }
}
