//! docker-compose.yml. Its schema is the Compose Specification's own (Apache-2.0), as the npm package dclint 3.1.0
//! ships it.

use serde_json::{Map, Value};

use crate::dockerfile::Dockerfile;
use crate::{check_arguments, check_variable, json, path, strings, yaml};

pub fn services() -> Map<String, Value> {
    let compose = yaml("docker-compose.yml");
    compose["services"].as_object().expect("services").clone()
}

/// A mount in the short form `source:target[:ro]`.
pub struct Mount {
    pub source: String,
    pub target: String,
    pub read_only: bool,
}

impl Mount {
    /// Of the host, not a named volume.
    pub fn is_bind(&self) -> bool {
        self.source.starts_with('.') || self.source.starts_with('/')
    }
}

pub fn mounts(service: &Value) -> Vec<Mount> {
    let parse = |mount: &str| {
        let mut parts = mount.split(':').map(str::to_owned);
        Mount {
            source: parts.next().expect("a source"),
            target: parts.next().expect("a target"),
            read_only: parts.next().is_some_and(|mode| mode == "ro"),
        }
    };
    strings(&service["volumes"]).into_iter().map(parse).collect()
}

#[test]
fn follows_the_compose_specification() {
    let schema = json("tests/deployment/compose-spec.schema.json");
    let validator = jsonschema::draft7::new(&schema).expect("a schema");
    let check = |compose: &Value| -> Vec<String> {
        let errors = validator.iter_errors(compose);
        errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    };
    let mut compose = yaml("docker-compose.yml");
    assert_eq!(check(&compose), Vec::<String>::new());

    compose["services"]["kafka"]["helthcheck"] = Value::Null;
    assert!(!check(&compose).is_empty(), "the schema refuses nothing");
}

#[test]
fn mounts_what_exists_and_cannot_change_it() {
    let compose = yaml("docker-compose.yml");
    for (name, service) in services() {
        for mount in mounts(&service) {
            let source = &mount.source;
            if mount.is_bind() {
                assert!(path(source).exists(), "{name}: {source} does not exist");
                assert!(mount.read_only, "{name}: {source} is not read-only");
            } else {
                assert!(
                    compose["volumes"].get(source).is_some(),
                    "{name}: volume {source} is not declared"
                );
            }
        }
    }
}

#[test]
fn our_containers_may_do_nothing_that_they_do_not_need() {
    let services = services();
    for (name, service) in &services {
        if service["image"] == services["abgauge"]["image"] {
            assert_eq!(service["read_only"], true, "{name}");
            assert_eq!(strings(&service["cap_drop"]), ["ALL"], "{name}");
            let options = strings(&service["security_opt"]);
            assert_eq!(options, ["no-new-privileges:true"], "{name}");
            assert!(service.get("user").is_none(), "{name}: the image says who");
        }
    }
}

#[test]
fn our_containers_are_given_arguments_that_exist() {
    let services = services();
    let arguments = strings(&services["simulator"]["command"]);
    assert!(!arguments.is_empty());
    check_arguments(arguments);
}

#[test]
fn publishes_on_loopback_only() {
    for (name, service) in services() {
        for port in strings(&service["ports"]) {
            assert!(port.starts_with("127.0.0.1:"), "{name}: {port}");
        }
    }
}

#[test]
fn pins_every_image() {
    for (name, service) in services() {
        let image = service["image"]
            .as_str()
            .unwrap_or_else(|| panic!("{name} has no image"));
        let (_, tag) = image
            .rsplit_once(':')
            .unwrap_or_else(|| panic!("{name}: {image} has no tag"));
        assert_ne!(tag, "latest", "{name}");
    }
}

#[test]
fn waits_only_for_what_can_happen() {
    let services = services();
    let built_image_has_check = Dockerfile::read().argument("HEALTHCHECK").is_some();
    for (name, service) in &services {
        for (needed, wait) in service["depends_on"].as_object().into_iter().flatten() {
            let needed_service = services
                .get(needed)
                .unwrap_or_else(|| panic!("{name}: no service {needed}"));
            let possible = match wait["condition"].as_str() {
                Some("service_healthy") if needed_service["build"].is_null() => {
                    !needed_service["healthcheck"].is_null()
                }
                Some("service_healthy") => built_image_has_check,
                Some("service_completed_successfully") => needed_service["restart"] == "no",
                condition => panic!("{name}: {needed} has condition {condition:?}"),
            };
            assert!(possible, "{name} waits for {needed} for ever");
        }
    }
}

#[test]
fn sets_only_settings_that_exist() {
    for service in services().values() {
        for variable in service["environment"].as_object().into_iter().flat_map(Map::keys) {
            check_variable(variable);
        }
    }
}

#[test]
fn creates_both_topics_with_equal_partition_counts() {
    let services = services();
    let script = strings(&services["topics"]["command"]).concat();
    let (_, rest) = script.split_once("for topic in ").expect("a loop over topics");
    let created: Vec<_> = rest.split(';').next().expect("names").split(' ').collect();
    let environment = &services["abgauge"]["environment"];
    for setting in ["ABGAUGE_KAFKA__SERVED_TOPIC", "ABGAUGE_KAFKA__CLICKS_TOPIC"] {
        assert!(
            created.contains(&environment[setting].as_str().expect("a topic")),
            "{setting}"
        );
    }
    assert_eq!(script.matches("--partitions 4").count(), 1);
}
