//! Every query of the dashboard and every recorded rule gives something on a live abgauge (Prometheus).

mod support;

use std::collections::BTreeSet;

use serde_json::Value;

use support::busy::Busy;
use support::prometheus::{self, Prometheus};
use support::{tools, wait};

fn file(relative: &str) -> String {
    let path = tools::repository(relative);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What Grafana would put into a query once somebody has chosen.
fn chosen(query: &str) -> String {
    let choices = [
        ("$__rate_interval", "1m"),
        ("$job", "abgauge"),
        ("$instance", ".*"),
        ("$experiment", ".*"),
        ("$arm", ".*"),
        ("$window", "1h"),
        ("$view", "settled"),
        ("$k", "5"),
    ];
    let query = choices.iter().fold(query.to_owned(), |query, (name, value)| {
        query.replace(name, value)
    });
    assert!(!query.contains('$'), "a variable without a choice: {query}");
    query
}

/// Every query of the panels, and what each variable is looked up in.
fn dashboard() -> Vec<String> {
    let dashboard: Value =
        serde_json::from_str(&file("config/grafana/dashboards/abgauge.json")).expect("JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let top = list(&dashboard["panels"]);
    let folded: Vec<Value> = top.iter().flat_map(|row| list(&row["panels"])).collect();
    let targets = top
        .iter()
        .chain(&folded)
        .flat_map(|panel| list(&panel["targets"]));
    let panels = targets.map(|target| target["expr"].as_str().expect("an expression").to_owned());
    let lookups = list(&dashboard["templating"]["list"])
        .into_iter()
        .filter_map(|variable| {
            let query = variable["query"]["query"].as_str()?;
            let inner = query.strip_prefix("label_values(")?.strip_suffix(')')?;
            let (series, label) = inner.rsplit_once(", ").expect("a series and a label");
            Some(format!("count by ({label}) ({series})"))
        });
    panels.chain(lookups).map(|query| chosen(&query)).collect()
}

fn recorded() -> Vec<String> {
    let rules = file("config/prometheus/abgauge.rules.yml");
    let names = rules
        .lines()
        .filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("record: "));
    names.map(str::to_owned).collect()
}

/// Waits until lists have settled that were clicked.
fn wait_for_settled(busy: &mut Busy) {
    busy.daemon.wait_until("settled clicks", |daemon| {
        let settled = [("view", "settled"), ("window", "1h")];
        (daemon.metrics().sum("abgauge_clicks", &settled) > 0.0).then_some(())
    });
}

#[test]
fn every_query_and_every_rule_gives_something() {
    let mut busy = Busy::start();
    let rules = tools::repository("config/prometheus/abgauge.rules.yml");
    let prometheus = Prometheus::start_with_rules(&[busy.daemon.address()], &[rules]);
    wait_for_settled(&mut busy);
    let queries: Vec<String> = dashboard().into_iter().chain(recorded()).collect();
    assert!(queries.len() > 60, "only {} queries were found", queries.len());
    for query in queries {
        prometheus.wait_for(&query, wait::LONG);
    }
}

#[test]
fn what_is_exported_is_what_rules_and_dashboards_may_use() {
    let mut busy = Busy::start();
    wait_for_settled(&mut busy);
    let text = busy.daemon.get("/metrics").body;
    prometheus::check_metrics(&text).expect("promtool finds no fault");
    let exported: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("abgauge_"))
        .collect();
    let listed = file("tests/data/exported-names.tsv");
    let listed: BTreeSet<&str> = listed
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split('\t').next())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(exported, listed);
}
