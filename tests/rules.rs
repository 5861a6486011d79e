//! What promtool says of config/prometheus: the configuration, the rules, and the rules' own tests.

use std::path::Path;
use std::process::Command;

/// Runs promtool, found on the path, in config/prometheus.
fn promtool(arguments: &[&str]) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/prometheus");
    let output = Command::new("promtool")
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("promtool comes with Prometheus; is it on the path?");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(
        output.status.success(),
        "promtool {}:\n{}",
        arguments.join(" "),
        said.concat()
    );
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
    promtool(&["test", "rules", "tests/abgauge.test.yml"]);
}
