//! Checks of config/grafana: provisioning and dashboards.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::deployment::compose::{mounts, services};
use crate::deployment::exported::{check, exported, names};
use crate::deployment::prometheus::{figures, recorded};
use crate::deployment::{read, strings, yaml};
use crate::support::grafana::Dashboard;
use crate::support::promql::selectors;

/// Returns the names after `$` in a text, except Grafana's own (`$__…`) and the group of a `label_replace`.
fn references(text: &str) -> BTreeSet<String> {
    let names = text.split('$').skip(1).map(|rest| {
        let rest = rest.trim_start_matches('{');
        rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next()
            .unwrap_or_default()
    });
    names
        .filter(|name| !name.is_empty() && !name.starts_with("__") && *name != "1")
        .map(str::to_owned)
        .collect()
}

fn said(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
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
fn provisions_dashboards_from_the_folder_compose_mounts() {
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
    let home = format!(
        "{}/abgauge-experiments.json",
        target("./config/grafana/dashboards")
    );
    assert_eq!(
        grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"],
        home
    );
}

#[test]
fn the_home_dashboard_exists() {
    let home = "config/grafana/dashboards/abgauge-experiments.json";
    assert!(Dashboard::all().iter().any(|dashboard| dashboard.file == home));
}

#[test]
fn dashboards_are_classic_models_for_provisioning_and_import() {
    let mut uids = BTreeSet::new();
    for Dashboard { file, model } in Dashboard::all() {
        assert!(model["id"].is_null(), "{file}");
        let uid = model["uid"].as_str().expect("a uid").to_owned();
        assert_eq!(file, format!("config/grafana/dashboards/{uid}.json"));
        assert_eq!(model["schemaVersion"], 39, "{file}");
        assert!(model.get("__inputs").is_none(), "{file}");
        assert!(said(&model["title"]) && said(&model["description"]), "{file}");
        // The dashboards link to each other by this tag.
        assert_eq!(strings(&model["tags"]), ["abgauge"], "{file}");
        assert_eq!(strings(&model["links"][0]["tags"]), ["abgauge"], "{file}");
        assert!(uids.insert(uid));
    }
    let wanted = ["abgauge-experiments", "abgauge-operations"].map(str::to_owned);
    assert_eq!(uids, BTreeSet::from(wanted));
}

#[test]
fn every_panel_is_described() {
    for dashboard in Dashboard::all() {
        for panel in dashboard.charts() {
            let place = format!("{}: {}", dashboard.file, panel["title"]);
            assert!(said(&panel["title"]), "{place}");
            assert!(said(&panel["description"]), "{place} has no description");
            assert!(
                said(&panel["fieldConfig"]["defaults"]["unit"]),
                "{place} has no unit"
            );
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{place}");
            let targets = panel["targets"].as_array().expect("targets");
            assert!(!targets.is_empty(), "{place} asks for nothing");
            let refs: BTreeSet<_> = targets.iter().map(|target| target["refId"].to_string()).collect();
            assert_eq!(refs.len(), targets.len(), "{place}: a refId stands twice");
        }
    }
}

#[test]
fn every_panel_explains_why_it_is_empty() {
    for dashboard in Dashboard::all() {
        for panel in dashboard.charts() {
            let place = format!("{}: {}", dashboard.file, panel["title"]);
            let text = &panel["fieldConfig"]["defaults"]["noValue"];
            assert!(said(text), "{place} has no noValue");
            // A table shows it in each empty cell, so it has to be short.
            let is_short = text.as_str().is_some_and(|text| text.len() <= 8);
            assert_eq!(is_short, panel["type"] == "table", "{place}: {text}");
            let uses_state = panel["targets"].to_string().contains("abgauge_stored_");
            let names_state = text.to_string().contains("[state]");
            assert_eq!(uses_state, names_state, "{place}: {text}");
        }
    }
}

/// A series without the label would match `.*`, but not belong to any instance of the list.
#[test]
fn all_instances_means_any_instance_with_a_name() {
    for dashboard in Dashboard::all() {
        let variables = dashboard.variables();
        let instance = variables.iter().find(|variable| variable["name"] == "instance");
        assert_eq!(
            instance.expect("instance")["allValue"],
            ".+",
            "{}",
            dashboard.file
        );
    }
}

#[test]
fn the_table_of_metrics_has_titles_for_the_decision_and_for_now() {
    let dashboards = Dashboard::all();
    let charts = dashboards.iter().flat_map(Dashboard::charts);
    let mut tables = charts.filter(|panel| panel["title"] == "All metrics against the control");
    let table = tables.next().expect("the table is there");
    let steps = table["transformations"].as_array().expect("steps");
    let step = steps
        .iter()
        .find(|step| step["id"] == "organize")
        .expect("columns are named");
    let titles = &step["options"]["renameByName"];
    let mut found = BTreeSet::new();
    for target in table["targets"].as_array().expect("targets") {
        let query = target["expr"].as_str().expect("a query");
        let name = format!("Value #{}", target["refId"].as_str().expect("a letter"));
        let title = titles[&name]
            .as_str()
            .unwrap_or_else(|| panic!("{query} has no title"));
        assert!(found.insert(title.to_owned()), "{title} is there twice");
        let is_decided = query.contains("abgauge_decision_");
        assert_eq!(
            is_decided,
            title.to_lowercase().contains("deci"),
            "{title}: {query}"
        );
    }
    for family in ["lift", "lift_lower", "lift_upper", "p_value"] {
        let queried = format!("(abgauge_decision_{family}{{");
        assert!(table["targets"].to_string().contains(&queried), "{queried}");
    }
}

#[test]
fn panels_have_ids_and_places_of_their_own() {
    for dashboard in Dashboard::all() {
        let mut ids = BTreeSet::new();
        for grid in dashboard.grids() {
            let mut taken = BTreeSet::new();
            for panel in grid {
                let title = format!("{}: {}", dashboard.file, panel["title"]);
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
}

#[test]
fn only_collapsed_rows_hold_panels() {
    for dashboard in Dashboard::all() {
        for row in &dashboard.grids()[0] {
            let is_folded = row["type"] == "row" && row["collapsed"] == true;
            let holds = row["panels"].as_array().is_some_and(|panels| !panels.is_empty());
            assert_eq!(is_folded, holds, "{}: {}", dashboard.file, row["title"]);
        }
    }
}

#[test]
fn queries_use_only_exported_or_recorded_metrics() {
    let recorded = recorded();
    for dashboard in Dashboard::all() {
        for query in dashboard.queries().into_iter().chain(dashboard.lookups()) {
            check(&query.expression, &recorded);
        }
    }
}

/// A longer query hides what a panel shows: record what it needs in config/prometheus/abgauge.rules.yml.
#[test]
fn queries_fit_on_a_screen() {
    for dashboard in Dashboard::all() {
        for query in dashboard.queries().into_iter().chain(dashboard.lookups()) {
            let n_chars = query.expression.chars().count();
            assert!(n_chars <= 300, "{}: {n_chars}: {}", query.place, query.expression);
        }
    }
}

/// Without the rules, or without a new metric in them, a panel stays empty.
#[test]
fn panels_of_recorded_series_name_the_file_of_rules() {
    for dashboard in Dashboard::all() {
        for panel in dashboard.charts() {
            let targets = panel["targets"].as_array().expect("targets").iter();
            let queries = targets.map(|target| target["expr"].as_str().expect("a query"));
            let is_recorded = queries.flat_map(selectors).all(|it| it.name.contains(':'));
            let text = panel["fieldConfig"]["defaults"]["noValue"]
                .as_str()
                .expect("a text");
            assert!(
                !is_recorded || text.contains("abgauge.rules.yml"),
                "{}: {text}",
                panel["title"]
            );
        }
    }
}

/// Numbers of arms are sums over all instances; the results of looks belong to one instance.
#[test]
fn every_query_respects_the_selection_and_counts_each_list_once() {
    let exported = exported();
    for query in Dashboard::all().iter().flat_map(Dashboard::queries) {
        // Alerts are shown for any job and instance.
        let uses = selectors(&query.expression).into_iter();
        for selector in uses.filter(|selector| selector.name != "ALERTS") {
            let place = format!("{}: {}", query.place, query.expression);
            let has = |matcher: &str| selector.matchers.contains(matcher);
            assert!(has(r#"job="$job""#), "{place}");
            let labels = exported.get(&names(&selector.name)[0]);
            let is_of_arms = query.place.contains("abgauge-experiments")
                && match &*selector.name {
                    "abgauge_arm_last_list_timestamp_seconds" => true,
                    "abgauge_coverage" => false,
                    name if name.starts_with("abgauge_ci_") => false,
                    // Recorded series have no row.
                    _ => labels.is_none_or(|labels| labels.contains("view")),
                };
            assert_eq!(has(r#"instance=~"$instance""#), !is_of_arms, "{place}");
            let Some(labels) = labels else { continue };
            // Intervals have the scope that looks use. There is only one such scope, and intervals are not summed.
            let scope = match selector.name.starts_with("abgauge_ci_") {
                true => r#"scope=~"own|global""#,
                false => r#"scope="own""#,
            };
            for (label, matcher) in [("scope", scope), ("profile", r#"profile=~"$profile""#)] {
                assert!(!labels.contains(label) || has(matcher), "{place}");
            }
        }
    }
}

#[test]
fn variables_are_declared_and_used() {
    for dashboard in Dashboard::all() {
        let declared: BTreeSet<_> = dashboard
            .variables()
            .iter()
            .map(|variable| variable["name"].as_str().expect("a name").to_owned())
            .collect();
        assert_eq!(references(&read(&dashboard.file)), declared, "{}", dashboard.file);
        for needed in ["datasource", "job", "instance"] {
            assert!(declared.contains(needed), "{}: {needed}", dashboard.file);
        }
        for variable in dashboard.variables() {
            let named = said(&variable["label"]) && said(&variable["description"]);
            assert!(named, "{}: {}", dashboard.file, variable["name"]);
        }
    }
}

/// More than a row of variables hides the result. Hidden ones can still be set in the address.
#[test]
fn only_variables_that_readers_choose_are_visible() {
    const HIDDEN: u64 = 2;
    for dashboard in Dashboard::all() {
        let variables = dashboard.variables();
        let visible = variables.iter().filter(|variable| variable["hide"] != HIDDEN);
        let visible: Vec<&str> = visible.filter_map(|variable| variable["name"].as_str()).collect();
        assert!(visible.len() <= 8, "{}: {visible:?}", dashboard.file);
        // Only these lack a default that is right for most readers.
        if dashboard.model["uid"] == "abgauge-experiments" {
            assert_eq!(
                visible,
                [
                    "experiment",
                    "arm",
                    "control",
                    "window",
                    "view",
                    "profile",
                    "k",
                    "metric"
                ]
            );
        }
        for variable in variables.iter().filter(|variable| variable["hide"] == HIDDEN) {
            assert_eq!(variable["skipUrlSync"], false, "{}", variable["name"]);
        }
    }
}

/// Returns the variables in matchers, and whether each is matched as a regular expression.
fn matched(expression: &str) -> Vec<(String, bool)> {
    let pieces: Vec<&str> = expression.split('"').collect();
    let quoted = pieces.windows(2).step_by(2);
    let variables = quoted.filter_map(|pair| Some((pair[1].strip_prefix('$')?, pair[0].ends_with("=~"))));
    // `$1` is the group of a `label_replace`, not a variable.
    let variables = variables.filter(|(name, _)| *name != "1");
    variables
        .map(|(name, is_expression)| (name.to_owned(), is_expression))
        .collect()
}

/// Grafana only escapes a name for a regular expression if the variable may have several values.
#[test]
fn regex_matchers_are_used_only_if_grafana_escapes_the_name() {
    assert_eq!(
        matched(r#"a{x=~"$x",y="b"} + b{z="$z"}"#),
        [("x".to_owned(), true), ("z".to_owned(), false)]
    );
    // The values of these variables already are regular expressions.
    let expressions = ["profile", "k"];
    for dashboard in Dashboard::all() {
        let variables = dashboard.variables();
        for query in dashboard.queries().into_iter().chain(dashboard.lookups()) {
            for (name, is_expression) in matched(&query.expression) {
                let variable = variables.iter().find(|it| it["name"] == name.as_str());
                let is_multi = variable.expect(&name)["multi"] == true;
                let should_be = is_multi || expressions.contains(&&*name);
                assert_eq!(
                    is_expression, should_be,
                    "{}: ${name} in {}",
                    query.place, query.expression
                );
            }
        }
    }
}

#[test]
fn colors_change_at_the_thresholds_of_alerts() {
    let dashboards = Dashboard::all();
    for (title, alert) in [
        ("Delay of final lists", "AbgaugeSettleDelay"),
        ("State memory used", "AbgaugeStateNearBound"),
        ("Newest list", "AbgaugeNoEvents"),
        ("Share of rejected records", "AbgaugeLateRecords"),
        ("Share of rejected records", "AbgaugeFutureRecords"),
        ("Share of rejected records", "AbgaugeInvalidRecords"),
        ("Share of clicks without a list", "AbgaugeUnmatchedClicks"),
        ("Sample ratio, p", "AbgaugeSampleRatioMismatch"),
        ("Delay of the latest analysis", "AbgaugeLooksHeldBack"),
    ] {
        let charts = dashboards.iter().flat_map(Dashboard::charts);
        let steps = charts.filter(|panel| panel["title"] == title).flat_map(|panel| {
            let steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"].clone();
            steps.as_array().cloned().unwrap_or_default()
        });
        let colours: Vec<f64> = steps.filter_map(|step| step["value"].as_f64()).collect();
        let has = figures(alert);
        assert!(
            colours.iter().any(|it| has.contains(it)),
            "{title}: {colours:?}; {alert}: {has:?}"
        );
    }
}

/// A difference between two samples is not a result, so its sign has no color. Only states are colored.
#[test]
fn tables_do_not_color_differences_by_their_sign() {
    for dashboard in Dashboard::all() {
        for panel in dashboard.charts().iter().filter(|panel| panel["type"] == "table") {
            let text = panel["fieldConfig"].to_string();
            assert!(!text.contains("color-"), "{}: {text}", panel["title"]);
        }
    }
}

/// A share looks exaggerated if the axis does not start at 0. A difference has no natural start.
#[test]
fn charts_of_shares_start_at_0() {
    for dashboard in Dashboard::all() {
        for panel in dashboard.charts() {
            let defaults = &panel["fieldConfig"]["defaults"];
            let title = panel["title"].as_str().expect("a title");
            let is_difference = title.starts_with("Lift of") || title.ends_with("against $control");
            if panel["type"] == "timeseries" && defaults["unit"] == "percentunit" {
                assert_eq!(
                    defaults["min"] == 0,
                    !is_difference,
                    "{}: {title}",
                    dashboard.file
                );
            }
        }
    }
}

/// Links lead to abgauge itself or to an existing runbook.
#[test]
fn links_lead_to_the_page_and_to_runbooks_that_exist() {
    let runbooks = read("docs/runbooks.md").to_lowercase();
    let mut n_runbooks = 0;
    for dashboard in Dashboard::all() {
        let mut links: Vec<Value> = dashboard.model["links"].as_array().expect("links").clone();
        links.retain(|link| link["type"] == "link");
        assert_eq!(links.len(), 2, "{}", dashboard.file);
        let of_panels = dashboard.charts();
        let of_panels = of_panels
            .iter()
            .flat_map(|panel| panel["links"].as_array().cloned());
        for link in links.into_iter().chain(of_panels.flatten()) {
            let address = link["url"].as_str().expect("an address");
            let path = address.strip_prefix("${page}/").expect(address);
            let anchor = path.strip_prefix("runbooks#");
            n_runbooks += usize::from(anchor.is_some());
            let exists = anchor.is_none_or(|name| runbooks.contains(&format!("\n## {name}\n")));
            assert!(exists, "{}: {address}", dashboard.file);
        }
    }
    assert!(n_runbooks >= 5, "{n_runbooks}");
}

#[test]
fn restarts_are_marked() {
    for dashboard in Dashboard::all() {
        let annotations = dashboard.annotations();
        let restarts = annotations
            .iter()
            .find(|annotation| annotation["name"] == "Restarts");
        let restarts = restarts.unwrap_or_else(|| panic!("{}", dashboard.file));
        assert_eq!(restarts["useValueForTime"], true, "{}", dashboard.file);
        let asked = restarts["expr"].as_str().expect("an expression");
        assert!(asked.starts_with("process_start_time_seconds"), "{asked}");
        assert!(asked.ends_with(" * 1000"), "Grafana takes milliseconds: {asked}");
    }
}

#[test]
fn changes_of_verdicts_and_shares_are_marked_on_experiments() {
    let dashboards = Dashboard::all();
    let experiments = dashboards
        .iter()
        .find(|dashboard| dashboard.model["uid"] == "abgauge-experiments");
    let annotations = experiments.expect("the dashboard").annotations();
    let query = |name: &str| {
        let found = annotations.iter().find(|annotation| annotation["name"] == name);
        let found = found.unwrap_or_else(|| panic!("no annotation {name}"));
        assert_eq!(
            (&found["enable"], &found["hide"]),
            (&true.into(), &false.into()),
            "{name}"
        );
        (
            found["expr"].as_str().expect("a query").to_owned(),
            found["useValueForTime"] == true,
        )
    };
    let (verdicts, at_their_value) = query("Verdict changes");
    assert!(
        verdicts.contains("changes(abgauge_verdict{") && !at_their_value,
        "{verdicts}"
    );
    // The value is when the shares changed, so a late scrape does not move the mark.
    let (shares, at_their_value) = query("Share changes");
    assert!(
        shares.contains("abgauge_shares_since_timestamp_seconds{") && at_their_value,
        "{shares}"
    );
    assert!(
        shares.ends_with(" * 1000"),
        "Grafana takes milliseconds: {shares}"
    );
}
