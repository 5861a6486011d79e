//! config/prometheus: scrape, recording rules, alerts.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::compose::{mounts, services};
use crate::exported::check;
use crate::{path, read, strings, yaml};

const RULES: &str = "config/prometheus/abgauge.rules.yml";

fn rules() -> Vec<Value> {
    let file = yaml(RULES);
    let groups = file["groups"].as_array().expect("groups");
    let rules = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("rules"));
    rules.cloned().collect()
}

fn recorded() -> BTreeSet<String> {
    let names = rules()
        .into_iter()
        .filter_map(|rule| rule["record"].as_str().map(str::to_owned));
    names.collect()
}

/// Headings of a Markdown file as links name them.
fn anchors(file: &str) -> BTreeSet<String> {
    let headings = read(file);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            line.trim_start_matches(['#', ' '])
                .to_lowercase()
                .replace(' ', "-")
        })
        .collect()
}

#[test]
fn reads_rule_files_that_exist_and_are_mounted() {
    let mounts = mounts(&services()["prometheus"]);
    for file in strings(&yaml("config/prometheus/prometheus.yml")["rule_files"]) {
        let source = format!("./config/prometheus/{file}");
        let target = format!("/etc/prometheus/{file}");
        assert!(path(&source).exists(), "{source}");
        assert!(
            mounts
                .iter()
                .any(|mount| mount.source == source && mount.target == target),
            "{file} is not mounted"
        );
    }
}

#[test]
fn rules_use_only_what_is_exported_or_recorded() {
    let recorded = recorded();
    assert!(!recorded.is_empty());
    for rule in rules() {
        check(rule["expr"].as_str().expect("an expression"), &recorded);
    }
}

#[test]
fn recorded_names_are_level_metric_operation() {
    for name in recorded() {
        assert_eq!(name.split(':').count(), 3, "{name}");
    }
}

#[test]
fn every_alert_says_how_bad_what_and_what_to_do() {
    let alerts: Vec<_> = rules()
        .into_iter()
        .filter(|rule| rule["alert"].is_string())
        .collect();
    assert!(!alerts.is_empty());
    for alert in alerts {
        let name = alert["alert"].as_str().expect("a name");
        let severity = alert["labels"]["severity"].as_str();
        assert!(
            matches!(severity, Some("critical" | "warning")),
            "{name}: severity {severity:?}"
        );
        for annotation in ["summary", "description"] {
            assert!(
                alert["annotations"][annotation].is_string(),
                "{name} has no {annotation}"
            );
        }
        let runbook = alert["annotations"]["runbook_url"]
            .as_str()
            .unwrap_or_else(|| panic!("{name} has no runbook"));
        let (file, anchor) = runbook
            .split_once('#')
            .unwrap_or_else(|| panic!("{name}: {runbook} has no anchor"));
        assert!(
            anchors(file).contains(anchor),
            "{name}: {file} has no heading for #{anchor}"
        );
    }
}

#[test]
fn every_alert_has_a_test() {
    let tests = read("config/prometheus/tests/abgauge.test.yml");
    for rule in rules() {
        if let Some(name) = rule["alert"].as_str() {
            assert!(tests.contains(&format!("alertname: {name}\n")), "{name}");
        }
    }
}
