//! Checks of config/prometheus by promtool: the configuration, the rules, and the rules' own tests.
//!
//! Both Debian's promtool and that of the Prometheus in docker-compose.yml must pass, since from 3.0 on a range excludes its
//! left edge.

use crate::support::{brought, tools};

/// Runs both versions of promtool in config/prometheus.
fn promtool(arguments: &[&str]) {
    for program in [
        "promtool".to_owned(),
        format!("promtool-{}", version_of_compose()),
    ] {
        let output = brought::command(&program)
            .args(arguments)
            .current_dir(tools::repository("config/prometheus"))
            .output()
            .expect("promtool starts");
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(
            output.status.success(),
            "{program} {}:\n{}",
            arguments.join(" "),
            said.concat()
        );
    }
}

/// Returns the version of Prometheus pinned in docker-compose.yml.
fn version_of_compose() -> String {
    let compose = std::fs::read_to_string(tools::repository("docker-compose.yml")).expect("it can be read");
    let (_, rest) = compose.split_once("image: prom/prometheus:v").expect("an image");
    rest.lines().next().expect("a version").to_owned()
}

#[test]
fn the_configuration_and_its_rules_are_valid() {
    promtool(&["check", "config", "--lint=all", "--lint-fatal", "prometheus.yml"]);
    promtool(&[
        "check",
        "rules",
        "--lint=all",
        "--lint-fatal",
        "abgauge.rules.yml",
    ]);
}

#[test]
fn the_rules_pass_their_tests() {
    let files =
        std::fs::read_dir(tools::repository("config/prometheus/tests")).expect("the tests can be listed");
    let files: Vec<String> = files
        .map(|file| {
            file.expect("it can be read")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .map(|name| format!("tests/{name}"))
        .collect();
    assert!(!files.is_empty());
    let arguments = ["test", "rules"]
        .into_iter()
        .chain(files.iter().map(String::as_str));
    promtool(&arguments.collect::<Vec<_>>());
}
