//! What promtool says of config/prometheus: the configuration, the rules, and the rules' own tests.

mod support;

use support::tools;

/// Runs promtool in config/prometheus.
fn promtool(arguments: &[&str]) {
    let output = tools::command("promtool")
        .args(arguments)
        .current_dir(tools::repository("config/prometheus"))
        .output()
        .expect("promtool starts");
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
