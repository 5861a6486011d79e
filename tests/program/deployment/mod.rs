//! Deployment files, checked without Docker, Kubernetes, Prometheus or Grafana: their format, and that the paths, settings,
//! ports and metrics in them exist. `tests/services/rules.rs` also runs promtool, and `tests/services/packages.rs` systemd.

mod compose;
mod dockerfile;
mod exported;
mod grafana;
mod kubernetes;
mod prometheus;
mod rollouts;
mod systemd;

use std::path::PathBuf;

use abgauge::tools::cli::Cli;
use clap::Parser as _;
use serde_json::Value;

/// Returns the path of a file in the repository.
fn path(relative: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(relative)
}

fn read(relative: &str) -> String {
    std::fs::read_to_string(path(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"))
}

fn yaml(relative: &str) -> Value {
    serde_saphyr::from_str(&read(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"))
}

fn json(relative: &str) -> Value {
    serde_json::from_str(&read(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"))
}

/// Returns the strings of an array, or nothing if it is absent.
fn strings(value: &Value) -> Vec<&str> {
    let items = value.as_array().into_iter().flatten();
    items.map(|item| item.as_str().expect("a string")).collect()
}

/// Returns the settings in config/abgauge.toml, commented out or not, such as `kafka.brokers`.
fn settings() -> Vec<String> {
    let mut section = String::new();
    let mut settings = Vec::new();
    for line in read("config/abgauge.toml").lines() {
        let line = line.trim_start_matches(['#', ' ']);
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = name.to_owned();
        } else if let Some((key, _)) = line.split_once('=') {
            settings.push(format!("{section}.{}", key.trim()));
        }
    }
    settings
}

/// Fails unless an environment variable such as `ABGAUGE_KAFKA__BROKERS` corresponds to a setting.
fn check_variable(variable: &str) {
    let Some(name) = variable.strip_prefix("ABGAUGE_") else {
        return;
    };
    let setting = name.to_lowercase().replace("__", ".");
    let known = setting.starts_with("kafka.properties.") || settings().contains(&setting);
    assert!(known, "{variable}: config/abgauge.toml has no setting {setting}");
}

/// Fails unless the program accepts these arguments.
fn check_arguments<'a>(arguments: impl IntoIterator<Item = &'a str>) {
    let words: Vec<&str> = std::iter::once("abgauge").chain(arguments).collect();
    if let Err(error) = Cli::try_parse_from(&words) {
        panic!("{words:?}: {error}");
    }
}

/// Settings are written like ``[join] attribution`` in texts for operators.
#[test]
fn texts_mention_only_existing_settings() {
    let files = [
        "docs/deployment.md",
        "docs/runbooks.md",
        "config/prometheus/abgauge.rules.yml",
        "config/grafana/dashboards/abgauge-experiments.json",
        "config/grafana/dashboards/abgauge-operations.json",
    ];
    let is_word = |c: char| c.is_ascii_lowercase() || c == '_';
    let settings = settings();
    let mut n_found = 0;
    for file in files {
        for part in read(file).split('[').skip(1) {
            let Some((section, rest)) = part.split_once("] ") else {
                continue;
            };
            let key = rest.split(|c| !is_word(c)).next().unwrap_or_default();
            if section.chars().all(is_word) && !key.is_empty() {
                let setting = format!("{section}.{key}");
                assert!(settings.contains(&setting), "{file}: no setting {setting}");
                n_found += 1;
            }
        }
    }
    assert!(n_found > 0);
}
