//! Checks of docker-compose.yml. The schema is the Compose Specification's own (Apache-2.0), as shipped in the npm package
//! dclint 3.1.0.

use serde_json::{Map, Value};

use crate::deployment::dockerfile::Dockerfile;
use crate::deployment::{check_arguments, check_variable, json, path, strings, yaml};

pub fn services() -> Map<String, Value> {
    let compose = yaml("docker-compose.yml");
    compose["services"].as_object().expect("services").clone()
}

/// Volumes declared by images. A container that mounts nothing there gets an anonymous volume. (From the Dockerfiles of
/// apache/kafka 4.4.0 and prom/prometheus 3.5.0; grafana/grafana 12.1.1 declares none.)
const VOLUMES_OF_IMAGES: [(&str, &[&str]); 2] = [
    (
        "apache/kafka:4.4.0",
        &["/etc/kafka/secrets", "/var/lib/kafka/data", "/mnt/shared/config"],
    ),
    ("prom/prometheus:v3.5.0", &["/prometheus"]),
];

/// A mount in the short form `source:target[:ro]`.
pub struct Mount {
    pub source: String,
    pub target: String,
    pub read_only: bool,
}

impl Mount {
    /// Returns whether the source is a path on the host, not a named volume.
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
    let schema = json("tests/program/deployment/compose-spec.schema.json");
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
fn mounts_exist_and_are_read_only() {
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
fn volumes_are_all_named() {
    for (name, service) in services() {
        let image = service["image"].as_str().expect("an image");
        let declared = VOLUMES_OF_IMAGES.iter().find(|(known, _)| *known == image);
        let mut mounted: Vec<String> = mounts(&service).into_iter().map(|mount| mount.target).collect();
        mounted.extend(strings(&service["tmpfs"]).into_iter().map(str::to_owned));
        for path in declared.into_iter().flat_map(|(_, paths)| *paths) {
            assert!(mounted.iter().any(|mount| mount == path), "{name}: {path}");
        }
    }
    for (image, _) in VOLUMES_OF_IMAGES {
        assert!(
            services().values().any(|service| service["image"] == image),
            "{image} is used no more"
        );
    }
}

/// Keeps the broker of the tests and the broker in Compose at one version, so that they behave alike.
#[test]
fn the_broker_has_the_version_that_the_tests_run() {
    let (_, after) = include_str!("../../kafka/pom.xml")
        .split_once("<kafka.version>")
        .expect("a version");
    let (version, _) = after.split_once('<').expect("a version");
    for service in ["kafka", "topics"] {
        let image = &services()[service]["image"];
        assert_eq!(*image, format!("apache/kafka:{version}"), "{service}");
    }
}

/// `docker compose up --wait` fails if a long-running service has no health check or a disabled one.
#[test]
fn every_long_running_service_has_a_health_check() {
    let built_image_has_check = Dockerfile::read().argument("HEALTHCHECK").is_some();
    for (name, service) in services() {
        if service["restart"] == "no" {
            continue;
        }
        let check = &service["healthcheck"];
        let is_checked = check["test"].is_array() || (check.is_null() && built_image_has_check);
        assert!(is_checked && check["disable"] != true, "{name}");
    }
}

/// The simulator's health check reads the file that it writes, in a writable directory.
#[test]
fn the_simulator_is_healthy_while_its_heartbeat_is_recent() {
    let simulator = &services()["simulator"];
    let arguments = strings(&simulator["command"]);
    let option = arguments
        .iter()
        .position(|it| *it == "--heartbeat")
        .expect("it has one");
    let file = std::path::Path::new(&arguments[option + 1]);
    let folder = file.parent().and_then(std::path::Path::to_str).expect("a folder");
    assert!(strings(&simulator["tmpfs"]).contains(&folder));
    let test = strings(&simulator["healthcheck"]["test"]);
    assert_eq!(test[0], "CMD-SHELL");

    let dir = tempfile::tempdir().expect("a directory");
    let there = dir.path().join("heartbeat");
    let command = test[1].replace(file.to_str().expect("UTF-8"), there.to_str().expect("UTF-8"));
    assert_ne!(command, test[1]);
    let is_well = || {
        let mut shell = std::process::Command::new("/bin/sh");
        let checked = shell
            .args(["-c", &command])
            .stderr(std::process::Stdio::null())
            .status();
        checked.expect("a shell").success()
    };
    assert!(!is_well(), "before the first");
    std::fs::write(&there, "").expect("write it");
    assert!(is_well());
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(31);
    let written = std::fs::File::options()
        .write(true)
        .open(&there)
        .expect("open it");
    written.set_modified(old).expect("set its time");
    assert!(!is_well(), "31 s old");
}

#[test]
fn our_containers_have_minimal_privileges() {
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
fn our_containers_use_valid_arguments() {
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
fn depends_only_on_conditions_that_can_occur() {
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
    assert_eq!(script.matches("--partitions 4").count(), 2);
}

/// A single broker has one replica, so `min.insync.replicas` keeps its default.
#[test]
fn creates_the_state_topic_as_check_would() {
    let services = services();
    let script = strings(&services["topics"]["command"]).concat();
    let (events, state) = script.split_once("\ndone\n").expect("the loop comes first");
    let topic = services["abgauge"]["environment"]["ABGAUGE_STATE__TOPIC"].as_str();
    assert!(
        state.contains(&format!(" --topic {} ", topic.expect("a topic"))),
        "{state}"
    );
    for (setting, value) in abgauge::stream::kafka::topics::STATE_SETTINGS {
        assert!(
            state.contains(&format!("--config {setting}={value}")),
            "{setting}"
        );
        assert!(!events.contains(&format!("{setting}=compact")), "{events}");
    }
    assert_eq!(
        state.matches("--config ").count(),
        abgauge::stream::kafka::topics::STATE_SETTINGS.len()
    );
}
