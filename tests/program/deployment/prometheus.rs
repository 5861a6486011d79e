//! Checks of config/prometheus: scrape, recording rules, alerts.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::deployment::compose::{mounts, services};
use crate::deployment::exported::{check, exported, names};
use crate::deployment::{path, read, strings, yaml};
use crate::support::grafana::Dashboard;
use crate::support::promql::selectors;

const RULES: &str = "config/prometheus/abgauge.rules.yml";
const TESTS: &str = "config/prometheus/tests";
const RUNBOOKS: &str = "docs/runbooks.md";
const LIMITS: &str = "src/serve/page/limits.js";
/// Location of the runbooks, from an external label of Prometheus.
const RUNBOOKS_BASE: &str =
    "{{ with $externalLabels.abgauge_runbooks }}{{ . }}{{ else }}docs/runbooks.md{{ end }}";

fn rules() -> Vec<Value> {
    let file = yaml(RULES);
    let groups = file["groups"].as_array().expect("groups");
    let rules = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("rules"));
    rules.cloned().collect()
}

/// Returns the names that the rules record.
pub fn recorded() -> BTreeSet<String> {
    let names = rules()
        .into_iter()
        .filter_map(|rule| rule["record"].as_str().map(str::to_owned));
    names.collect()
}

fn alerts() -> Vec<String> {
    let names = rules()
        .into_iter()
        .filter_map(|rule| rule["alert"].as_str().map(str::to_owned));
    names.collect()
}

fn headings() -> Vec<String> {
    let text = read(RUNBOOKS);
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[test]
fn rule_files_exist_and_are_mounted() {
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
fn rules_use_only_exported_or_recorded_names() {
    let recorded = recorded();
    assert!(!recorded.is_empty());
    for rule in rules() {
        check(rule["expr"].as_str().expect("an expression"), &recorded);
    }
}

/// Each recorded rule costs a series per arm.
#[test]
fn every_recorded_name_is_used() {
    let rules = rules();
    let expressions = rules.iter().filter_map(|rule| rule["expr"].as_str());
    let of_rules = expressions.flat_map(selectors);
    let queries = Dashboard::all()
        .iter()
        .flat_map(Dashboard::queries)
        .collect::<Vec<_>>();
    let of_dashboards = queries.iter().flat_map(|query| selectors(&query.expression));
    let read: BTreeSet<String> = of_rules
        .chain(of_dashboards)
        .map(|selector| selector.name)
        .collect();
    let unread: Vec<String> = recorded()
        .into_iter()
        .filter(|name| !read.contains(name))
        .collect();
    assert!(unread.is_empty(), "{unread:?}");
}

/// The rules name the metrics, because a pattern for any name would also match families that cannot be summed.
#[test]
fn every_metric_that_can_be_summed_is_recorded() {
    let rules = rules();
    let rule = rules
        .iter()
        .find(|rule| rule["record"] == "arm:abgauge_metric_numerator:sum");
    let expression = rule.expect("the rule")["expr"].as_str().expect("an expression");
    let uses = selectors(expression);
    let values: Vec<_> = uses.iter().filter(|it| it.name.contains('(')).collect();
    assert_eq!(values.len(), 2, "means over lists, and others");
    let is_metric = |labels: &BTreeSet<String>| labels.contains("profile") && !labels.contains("metric");
    let metrics = exported().into_iter().filter(|(_, labels)| is_metric(labels));
    // Distinct items of several instances cannot be added up.
    let metrics = metrics
        .map(|(name, _)| name)
        .filter(|name| name != "abgauge_coverage");
    let metrics: BTreeSet<String> = metrics.collect();
    for value in values {
        assert_eq!(BTreeSet::from_iter(names(&value.name)), metrics);
    }
}

#[test]
fn recorded_names_are_level_metric_operation() {
    for name in recorded() {
        assert_eq!(name.split(':').count(), 3, "{name}");
    }
}

#[test]
fn every_alert_has_a_severity_a_summary_and_a_runbook() {
    let alerts: Vec<_> = rules()
        .into_iter()
        .filter(|rule| rule["alert"].is_string())
        .collect();
    assert!(!alerts.is_empty());
    for alert in alerts {
        let name = alert["alert"].as_str().expect("a name");
        let severity = alert["labels"]["severity"].as_str();
        assert!(
            matches!(severity, Some("critical" | "warning" | "info")),
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
        assert_eq!(
            runbook,
            format!("{RUNBOOKS_BASE}#{}", name.to_lowercase()),
            "{name}"
        );
        let headings = headings();
        assert!(
            headings.contains(&format!("## {name}")),
            "{RUNBOOKS} has no {name}"
        );
    }
}

/// Parses the limits of the page, such as `AbgaugeX: 0.05,`.
fn limits() -> Vec<(String, f64)> {
    let text = read(LIMITS);
    let lines = text.lines().filter_map(|line| {
        let (alert, figure) = line.trim().strip_suffix(',')?.split_once(": ")?;
        Some((alert.to_owned(), figure.parse().ok()?))
    });
    lines.collect()
}

/// Returns the numbers in an alert's expression, and its waiting time in seconds.
pub fn figures(alert: &str) -> Vec<f64> {
    let rules = rules();
    let rule = rules.iter().find(|rule| rule["alert"] == alert);
    let rule = rule.unwrap_or_else(|| panic!("there is no {alert}"));
    let expression = rule["expr"].as_str().expect("an expression");
    let words: Vec<&str> = expression.split_whitespace().collect();
    let compared = words.windows(2).filter(|pair| [">", "<="].contains(&pair[0]));
    let compared = compared.filter_map(|pair| pair[1].parse().ok());
    let minutes = rule["for"].as_str().and_then(|text| text.strip_suffix('m'));
    let minutes: Option<f64> = minutes.and_then(|minutes| minutes.parse().ok());
    compared.chain(minutes.map(|minutes| 60.0 * minutes)).collect()
}

#[test]
fn the_page_uses_the_thresholds_of_the_alerts() {
    let limits = limits();
    assert!(limits.len() > 5, "{limits:?}");
    for (alert, figure) in limits {
        let has = figures(&alert);
        assert!(
            has.contains(&figure),
            "{LIMITS} has {figure} for {alert}: {has:?}"
        );
    }
}

/// The command for operators without the external label is quoted from docs/deployment.md.
#[test]
fn runbook_links_can_be_set_in_a_copy_of_the_rules() {
    let document = read("docs/deployment.md");
    let command = document.split('`').find(|code| code.starts_with("sed -i "));
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory under target");
    let copy = dir.path().join("abgauge.rules.yml");
    std::fs::copy(path(RULES), &copy).expect("copy the rules");
    let ran = std::process::Command::new("sh")
        .args(["-c", command.expect("the document has it")])
        .current_dir(&dir)
        .status();
    assert!(ran.expect("sh starts").success());
    let copy = std::fs::read_to_string(copy).expect("it is still there");
    let reported = RUNBOOKS_BASE.replace(RUNBOOKS, "https://wiki.example.com/abgauge/runbooks");
    assert_eq!(copy.matches(&reported).count(), alerts().len());
    assert!(document.contains("abgauge_runbooks: https://wiki.example.com/abgauge/runbooks"));
}

#[test]
fn every_runbook_belongs_to_an_alert_and_has_all_parts() {
    let alerts: BTreeSet<String> = alerts().into_iter().map(|name| format!("## {name}")).collect();
    let text = read(RUNBOOKS);
    for section in text.split("\n## ").skip(1) {
        let (name, body) = section.split_once('\n').expect("a text");
        assert!(alerts.contains(&format!("## {name}")), "no alert {name}");
        for part in ["**Meaning.**", "**Look.**", "**Do.**"] {
            assert!(body.contains(part), "{name} has no {part}");
        }
    }
}

/// Returns the test cases of all promtool files, with their file.
fn cases() -> Vec<(String, Value)> {
    let mut files: Vec<String> = std::fs::read_dir(path(TESTS))
        .expect("the tests can be listed")
        .map(|entry| {
            entry
                .expect("it can be read")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let tests = yaml(&format!("{TESTS}/{file}"))["tests"].clone();
        let tests = tests.as_array().expect("tests").clone();
        cases.extend(tests.into_iter().map(|test| (file.clone(), test)));
    }
    cases
}

/// Returns the cases that test an alert, and whether it fires there.
fn fires(alert: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for (file, case) in cases() {
        for test in case["alert_rule_test"].as_array().into_iter().flatten() {
            if test["alertname"] == alert {
                let expected = test["exp_alerts"].as_array().expect("a list");
                found.push((file.clone(), !expected.is_empty()));
            }
        }
    }
    found
}

#[test]
fn every_alert_has_a_firing_and_a_silent_test() {
    for alert in alerts() {
        let found = fires(&alert);
        assert!(found.iter().any(|(_, fires)| *fires), "{alert} never fires");
        let on_a_good_day = found.iter().filter(|(file, _)| file == "well.test.yml");
        let silent: Vec<_> = on_a_good_day.map(|(_, fires)| !fires).collect();
        assert!(
            silent.len() > 1 && silent.iter().all(|it| *it),
            "{alert} on a good day"
        );
    }
}

/// docs/quality.md states the numbers.
#[test]
fn the_documented_counts_of_alerts_and_rules_are_correct() {
    let document = read("docs/quality.md");
    for (row, n) in [
        ("| alerts that promtool sees fire", alerts().len()),
        ("| recording rules and alerts evaluated there", rules().len()),
    ] {
        let line = document.lines().find(|line| line.starts_with(row)).expect(row);
        assert!(line.contains(&format!("| {n} of {n} |")), "{n}: {line}");
    }
}

#[test]
fn every_recorded_name_is_tested() {
    let cases = cases();
    for name in recorded() {
        let asked = cases
            .iter()
            .flat_map(|(_, case)| case["promql_expr_test"].as_array().cloned().unwrap_or_default())
            .any(|test| test["expr"].as_str().expect("an expression").contains(&name));
        assert!(asked, "{name}");
    }
}
