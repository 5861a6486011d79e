//! config/grafana: provisioning and the dashboard.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::compose::{mounts, services};
use crate::exported::{check, exported};
use crate::{json, read, yaml};

const DASHBOARD: &str = "config/grafana/dashboards/abgauge.json";

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Panels by the grid that they lie on: the dashboard's own, and that of each row that is folded up.
fn grids() -> Vec<Vec<Value>> {
    let top = list(&json(DASHBOARD)["panels"]);
    let folded: Vec<_> = top.iter().map(|panel| list(&panel["panels"])).collect();
    std::iter::once(top).chain(folded).collect()
}

/// Panels that show something: all but the rows that head them.
fn charts() -> impl Iterator<Item = Value> {
    let all = grids().into_iter().flatten();
    all.filter(|panel| panel["type"] != "row")
}

fn queries() -> Vec<String> {
    let targets = charts().flat_map(|panel| panel["targets"].as_array().expect("targets").clone());
    targets
        .map(|target| target["expr"].as_str().expect("an expression").to_owned())
        .collect()
}

fn variables() -> Vec<Value> {
    json(DASHBOARD)["templating"]["list"]
        .as_array()
        .expect("variables")
        .clone()
}

/// Names after `$` in a text, but for Grafana's own (`$__…`).
fn references(text: &str) -> BTreeSet<String> {
    let names = text.split('$').skip(1).map(|rest| {
        let rest = rest.trim_start_matches('{');
        rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next()
            .unwrap_or_default()
    });
    names
        .filter(|name| !name.is_empty() && !name.starts_with("__"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn provisions_the_data_source_that_compose_starts() {
    let source = &yaml("config/grafana/provisioning/datasources/prometheus.yml")["datasources"][0];
    assert_eq!(source["type"], "prometheus");
    assert_eq!(source["url"], "http://prometheus:9090");
    let scrape = &yaml("config/prometheus/prometheus.yml")["scrape_configs"][0];
    assert_eq!(source["jsonData"]["timeInterval"], scrape["scrape_interval"]);
}

#[test]
fn provisions_dashboards_from_where_compose_mounts_them() {
    let grafana = &services()["grafana"];
    let target = |source: &str| {
        let found = mounts(grafana).into_iter().find(|mount| mount.source == source);
        found.unwrap_or_else(|| panic!("{source} is not mounted")).target
    };
    let provider = &yaml("config/grafana/provisioning/dashboards/abgauge.yml")["providers"][0];
    assert_eq!(provider["options"]["path"], target("./config/grafana/dashboards"));
    assert_eq!(
        target("./config/grafana/provisioning"),
        "/etc/grafana/provisioning"
    );
    let home = format!("{}/abgauge.json", target("./config/grafana/dashboards"));
    assert_eq!(
        grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"],
        home
    );
}

#[test]
fn the_dashboard_is_a_classic_model_for_provisioning() {
    let dashboard = json(DASHBOARD);
    assert!(dashboard["id"].is_null());
    assert_eq!(dashboard["uid"], "abgauge");
    assert_eq!(dashboard["schemaVersion"], 39);
    assert!(dashboard.get("__inputs").is_none());
}

#[test]
fn every_panel_says_what_it_shows() {
    for panel in charts() {
        let title = panel["title"].as_str().expect("a title");
        assert!(!title.is_empty());
        assert!(
            panel["description"].as_str().is_some_and(|text| !text.is_empty()),
            "{title} has no description"
        );
        assert!(
            panel["fieldConfig"]["defaults"]["unit"].is_string(),
            "{title} has no unit"
        );
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
    }
}

#[test]
fn panels_have_ids_and_places_of_their_own() {
    let mut ids = BTreeSet::new();
    for grid in grids() {
        let mut taken = BTreeSet::new();
        for panel in grid {
            let title = &panel["title"];
            assert!(
                ids.insert(panel["id"].as_u64().expect("an id")),
                "{title}: id used before"
            );
            let side = |side: &str| panel["gridPos"][side].as_u64().expect("a place");
            let [x, y, w, h] = ["x", "y", "w", "h"].map(side);
            assert!(w > 0 && h > 0 && x + w <= 24, "{title} leaves the grid");
            for place in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                assert!(taken.insert(place), "{title} overlaps at {place:?}");
            }
        }
    }
}

#[test]
fn only_rows_that_are_folded_up_hold_panels() {
    for row in &grids()[0] {
        let is_folded = row["type"] == "row" && row["collapsed"] == true;
        assert_eq!(is_folded, !list(&row["panels"]).is_empty(), "{}", row["title"]);
    }
}

#[test]
fn queries_use_only_what_is_exported() {
    // Recorded names are left out: the dashboard must work in a Prometheus without our rules.
    for query in queries() {
        check(&query, &BTreeSet::new());
    }
    for variable in variables().iter().filter(|variable| variable["type"] == "query") {
        let query = variable["query"]["query"].as_str().expect("a query");
        check(query, &BTreeSet::new());
    }
}

#[test]
fn every_query_keeps_to_the_chosen_instances_and_the_first_profile_and_counts_no_list_twice() {
    let exported = exported();
    for query in queries() {
        for part in query.split("abgauge_").skip(1) {
            let matchers = part.split('}').next().unwrap_or_default();
            assert!(
                matchers.contains(r#"job=~"$job""#) && matchers.contains(r#"instance=~"$instance""#),
                "{query}"
            );
            let name = part.split('{').next().unwrap_or_default();
            let labels = &exported[&format!("abgauge_{name}")];
            for (label, matcher) in [("scope", r#"scope="own""#), ("profile", r#"profile="""#)] {
                assert!(!labels.contains(label) || matchers.contains(matcher), "{query}");
            }
        }
    }
}

#[test]
fn variables_are_declared_and_used() {
    let declared: BTreeSet<_> = variables()
        .iter()
        .map(|variable| variable["name"].as_str().expect("a name").to_owned())
        .collect();
    for needed in [
        "datasource",
        "job",
        "instance",
        "experiment",
        "arm",
        "window",
        "view",
        "k",
    ] {
        assert!(declared.contains(needed), "{needed}");
    }
    assert_eq!(references(&read(DASHBOARD)), declared);
}
