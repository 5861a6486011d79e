//! Every query of the dashboards, rules and runbooks returns data from a live abgauge (Prometheus, Grafana's types).

#[path = "dashboards/looks.rs"]
mod looks;

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::support::busy::{self, Busy};
use crate::support::grafana::{Dashboard, Query};
use crate::support::process::Process;
use crate::support::prometheus::{self, Prometheus};
use crate::support::promql::selectors;
use crate::support::{brought, tools, wait};

fn file(relative: &str) -> String {
    let path = tools::repository(relative);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Substitutes Grafana's variables, including metric and `profile`, as Grafana does. For a variable with a single value, the
/// Prometheus data source escapes characters that need it in a quoted string, but leaves regular expressions alone. (`.+` is
/// the value of "All", which is never escaped.)
fn chosen(query: &str, metric: &str, profile: &str) -> String {
    let profile = profile.replace('\\', r"\\").replace('"', r#"\""#);
    let choices = [
        ("$__rate_interval", "1m"),
        ("$job", "abgauge"),
        ("$instance", ".+"),
        ("$experiment", "ranker"),
        ("$arm", ".*"),
        ("$treatment", ".*"),
        ("$top", "20"),
        ("$control", busy::CONTROL),
        ("$window", "1h"),
        ("$view", "settled"),
        ("$profile", &profile),
        ("$k", "5"),
        ("$metric", metric),
    ];
    let query = choices.iter().fold(query.to_owned(), |query, (name, value)| {
        query.replace(name, value)
    });
    let rest = query.replace(GROUP, "");
    assert!(!rest.contains('$'), "a variable without a choice: {query}");
    query
}

/// Group of a `label_replace` in the variable `profile`. No variable has this name, so Grafana passes it on.
const GROUP: &str = "$1";

/// Converts `label_values(SERIES, LABEL)` or `query_result(QUERY)` to a query for Prometheus.
fn looked_up(lookup: &str) -> String {
    let inner = |function: &str| lookup.strip_prefix(function)?.strip_suffix(')');
    if let Some(query) = inner("query_result(") {
        return query.to_owned();
    }
    let inner = inner("label_values(").and_then(|inner| inner.rsplit_once(", "));
    let (series, label) = inner.expect(lookup);
    format!("count by ({label}) ({series})")
}

/// Value of the variable for the first profile: a regular expression that matches only the empty string.
const FIRST: &str = "()";
/// Value of the variable for the additional profile: a regular expression that matches only its name.
const FURTHER: &str = r"\Qa+b(c)\E";

/// Value of the metric variable in these tests: a mean over lists.
const METRIC: &str = "ndcg";

/// Returns the dashboards' queries for one metric: all of them for the first profile, and for the additional one those that
/// it defines.
fn of_dashboards(metric: &str) -> Vec<Query> {
    let mut queries = Vec::new();
    for dashboard in Dashboard::all() {
        queries.extend(dashboard.queries());
        let lookups = dashboard.lookups().into_iter();
        queries.extend(lookups.map(|Query { place, expression }| Query {
            place,
            expression: looked_up(&expression),
        }));
    }
    let defined = ["$metric", "hit_rate"];
    let of_further = queries.iter().filter(|query| {
        query.expression.contains("$profile") && defined.iter().any(|id| query.expression.contains(id))
    });
    let of_further: Vec<_> = of_further
        .map(|query| Query {
            place: format!("{}, {}", query.place, busy::PROFILES[1]),
            expression: chosen(&query.expression, metric, FURTHER),
        })
        .collect();
    assert!(of_further.len() > 5);
    for query in &mut queries {
        query.expression = chosen(&query.expression, metric, FIRST);
    }
    queries.extend(of_further);
    queries
}

/// Returns the query of a variable for Prometheus, and the regular expression that extracts its options.
fn lookup(variable: &str) -> (String, String) {
    let dashboards = Dashboard::all();
    let mut variables = dashboards.iter().flat_map(Dashboard::variables);
    let found = variables.find(|it| it["name"] == variable).expect(variable);
    let [query, regex] =
        [&found["query"]["query"], &found["regex"]].map(|text| text.as_str().expect("a text"));
    (looked_up(query), regex.to_owned())
}

/// Returns the options that Grafana derives from a `query_result` variable. It formats each sample as text, and extracts the
/// named groups of the variable's regular expression, or else the first group.
fn options(prometheus: &Prometheus, variable: &str) -> Vec<(String, String)> {
    const SCRIPT: &str = "const [regex, ...texts] = process.argv.slice(1);
        const { groups } = /^\\/(?<body>.*)\\/$/.exec(regex);
        const options = texts.map((text) => new RegExp(groups.body).exec(text));
        const named = options.map((it) => [it.groups?.text ?? it[1], it.groups?.value ?? it[1]]);
        console.log(JSON.stringify(named));";
    let (lookup, regex) = lookup(variable);
    // On a busy machine a scrape may be late, and its series are missing until the next one.
    let samples = prometheus.wait_for(&chosen(&lookup, METRIC, FIRST), wait::LONG);
    let texts = samples.iter().map(|sample| {
        let labels = sample.labels.iter();
        let labels: Vec<_> = labels
            .map(|(name, value)| format!("{name}=\"{value}\""))
            .collect();
        format!("{{{}}} {} 1763596800000", labels.join(","), sample.value)
    });
    let output = brought::command("node")
        .args(["-e", SCRIPT, &regex])
        .args(texts)
        .output()
        .expect("node starts");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Returns the queries in a document.
fn of_document(name: &str) -> Vec<Query> {
    let text = file(name);
    let codes = text.split("\n```").skip(1).step_by(2);
    let queries = codes.filter_map(|code| code.strip_prefix("promql\n"));
    queries
        .map(|query| Query {
            place: name.to_owned(),
            expression: query.to_owned(),
        })
        .collect()
}

const RULES: &str = "config/prometheus/abgauge.rules.yml";
const DOCUMENTS: [&str; 4] = [
    "docs/deployment.md",
    "docs/gauges.md",
    "docs/runbooks.md",
    "docs/start.md",
];

/// Names that the daemon of these tests does not export. Events that come one per record and have valid arms leave nothing to
/// count. tests/program/security exports the names for TLS, tests/faults those for faults and stored state. The same applies to
/// [`looks::OF_LOOKS`].
const SOMETIMES: [&str; 8] = [
    "abgauge_bad_arms_total",
    "abgauge_events_total",
    "abgauge_global_behind_seconds",
    "abgauge_http_certificate_expiry_timestamp_seconds",
    "abgauge_event_ahead_seconds",
    "abgauge_open_transaction_since_timestamp_seconds",
    "abgauge_users",
    "ALERTS",
];

/// Prefix of names for stored state, which tests/faults exports.
const OF_STORED: &str = "abgauge_stored_";

/// Returns whether an expression uses any of these.
fn comes_with_time(expression: &str) -> bool {
    expression.contains(OF_STORED)
        || SOMETIMES
            .iter()
            .chain(&looks::OF_LOOKS)
            .any(|name| expression.contains(name))
}

/// Returns whether it is one of these names.
fn is_sometimes(name: &str) -> bool {
    name.starts_with(OF_STORED) || SOMETIMES.contains(&name) || looks::OF_LOOKS.contains(&name)
}

/// Returns the names recorded from these, or from each other. Rules of a group are evaluated in order.
fn recorded_sometimes(rules: &[Value]) -> BTreeSet<String> {
    let mut recorded = BTreeSet::new();
    for rule in rules.iter().filter(|rule| rule["type"] == "recording") {
        let query = rule["query"].as_str().expect("a query");
        let is_of_recorded = selectors(query)
            .iter()
            .any(|selector| recorded.contains(&selector.name));
        if comes_with_time(query) || is_of_recorded {
            recorded.insert(rule["name"].as_str().expect("a name").to_owned());
        }
    }
    recorded
}

/// Waits until clicked lists have settled.
fn wait_for_settled(busy: &mut Busy) {
    busy.daemon.wait_until("settled clicks", |daemon| {
        let settled = [("view", "settled"), ("window", "1h")];
        (daemon.metrics().sum("abgauge_clicks", &settled) > 0.0).then_some(())
    });
}

#[test]
fn every_family_is_listed_and_every_query_and_rule_returns_data() {
    let mut busy = Busy::start();
    let prometheus = Prometheus::start_with_rules(&[busy.daemon.address()], &[tools::repository(RULES)]);
    wait_for_settled(&mut busy);
    check_exported(&busy.daemon.get("/metrics").body);

    let queries = of_dashboards(METRIC);
    assert!(queries.len() > 90, "only {} queries were found", queries.len());
    let queries = queries
        .into_iter()
        .chain(DOCUMENTS.into_iter().flat_map(of_document));
    let queries = queries.filter(|query| !comes_with_time(&query.expression));
    let queries: Vec<Query> = queries.collect();
    for Query { place, expression } in &queries {
        let found = wait::try_until(wait::LONG, || {
            Some(prometheus.query(expression)).filter(|samples| !samples.is_empty())
        });
        assert!(found.is_some(), "{place}: nothing for {expression}");
    }
    println!(
        "queries that give something on a live abgauge: {0} of {0}",
        queries.len()
    );

    let of = |text: &str, value: &str| (text.to_owned(), value.to_owned());
    assert_eq!(
        options(&prometheus, "control")[0],
        of(busy::CONTROL, busy::CONTROL),
        "what is configured comes first"
    );
    let pages = options(&prometheus, "page");
    let local = "http://localhost:9464";
    assert_eq!(
        pages,
        [of(busy::PAGE, busy::PAGE), of(local, local)],
        "what is exported comes first"
    );
    let cuts = options(&prometheus, "k");
    assert!(
        cuts.contains(&of("(whole list)", "()")) && cuts.contains(&of("5", "5")),
        "{cuts:?}"
    );
    let windows = options(&prometheus, "window");
    assert!(
        windows.contains(&of("since start", "total")) && windows.contains(&of("1h", "1h")),
        "{windows:?}"
    );
    let views = options(&prometheus, "view");
    assert!(views.contains(&of("final", "settled")), "{views:?}");
    let profiles: BTreeSet<_> = options(&prometheus, "profile").into_iter().collect();
    let further = busy::PROFILES[1];
    assert_eq!(profiles, [of("(first)", FIRST), of(further, FURTHER)].into());
    let metrics = prometheus.wait_for(&chosen(&lookup("metric").0, METRIC, FIRST), wait::LONG);
    let metrics: BTreeSet<_> = metrics.iter().map(|sample| &*sample.labels["metric"]).collect();
    assert!(
        ["ctr", "hit_rate", "map_by_k"]
            .iter()
            .all(|it| metrics.contains(it)),
        "{metrics:?}"
    );
    assert_eq!(options(&prometheus, "arm").len(), 3, "all arms, for they are few");
    let series = r#"count by (profile) (abgauge_ndcg{job="$job",profile=~"$profile"})"#;
    let found = prometheus.wait_for(&chosen(series, METRIC, FURTHER), wait::LONG);
    let found: Vec<_> = found.iter().map(|sample| &sample.labels["profile"]).collect();
    assert_eq!(found, [further]);

    let rules = wait::until("all rules to be evaluated", wait::LONG, || {
        let rules = prometheus.rules();
        let known = rules.iter().all(|rule| rule["health"] != "unknown");
        known.then_some(rules)
    });
    let recorded = recorded_sometimes(&rules);
    println!("rules evaluated without an error: {}", rules.len());
    for rule in &rules {
        let name = rule["name"].as_str().expect("a name");
        assert_eq!(rule["health"], "ok", "{name}: {}", rule["lastError"]);
        if rule["type"] == "recording" && !recorded.contains(name) {
            prometheus.wait_for(name, wait::LONG);
        }
        // A silent alert must not be silent because its series are missing.
        let watched = selectors(rule["query"].as_str().expect("a query"));
        for selector in watched
            .iter()
            .filter(|selector| !is_sometimes(&selector.name) && !recorded.contains(&selector.name))
        {
            prometheus.wait_for(&selector.text(), wait::LONG);
        }
    }
    let state = |alert: &str| {
        let rules = prometheus.rules();
        let rule = rules.iter().find(|rule| rule["name"] == alert);
        rule.expect(alert)["state"].clone()
    };
    for alert in [
        "AbgaugeDown",
        "AbgaugeNotReady",
        "AbgaugeExactnessLost",
        "AbgaugeStateNearBound",
    ] {
        // A late scrape on a busy machine makes the alert pending until the next one.
        wait::until(alert, wait::LONG, || (state(alert) == "inactive").then_some(()));
    }
    busy.daemon.kill();
    wait::until("AbgaugeDown to be noticed", wait::LONG, || {
        (state("AbgaugeDown") == "pending").then_some(())
    });
}

/// Checks that the exported names are the listed ones, which rules and dashboards may use, and that docs/gauges.md has a row
/// for each.
fn check_exported(text: &str) {
    prometheus::check_metrics(text).expect("promtool finds no fault");
    let exported: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .map(|(name, _)| name)
        .filter(|name| !is_sometimes(name))
        .collect();
    let listed = file("tests/data/exported-names.tsv");
    let listed: BTreeSet<&str> = listed
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split('\t').next())
        .filter(|name| !name.is_empty() && !is_sometimes(name))
        .collect();
    assert_eq!(exported, listed);
    let document = file("docs/gauges.md");
    let rows: Vec<String> = helps(text);
    let missing: Vec<&String> = rows.iter().filter(|row| !document.contains(*row)).collect();
    assert!(missing.is_empty(), "docs/gauges.md lacks: {missing:#?}");
}

/// Returns the help of each family, formatted as in docs/gauges.md.
fn helps(scraped: &str) -> Vec<String> {
    let lines = scraped.lines();
    let helps = lines.filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '));
    helps
        .map(|(name, help)| {
            let labels = &labels_of(name);
            format!("| `{name}` | {labels} | {help} |")
        })
        .collect()
}

/// Returns the labels of a family, each formatted as code.
fn labels_of(name: &str) -> String {
    let listed = file("tests/data/exported-names.tsv");
    let line = listed.lines().find(|line| line.split('\t').next() == Some(name));
    let labels = line.and_then(|line| line.split('\t').nth(2)).expect(name);
    let quoted = |label: &str| format!("`{label}`");
    let labels = labels.split(',').filter(|label| !label.is_empty());
    labels.map(quoted).collect::<Vec<_>>().join(", ")
}

/// Writes each model to a file of its name as a literal, and returns the TypeScript compiler's errors.
fn objections<'a>(models: impl Iterator<Item = (String, &'a Value)>) -> String {
    let dir = tools::temporary_dir("grafana");
    let path = |name: &str| dir.path().join(name);
    std::os::unix::fs::symlink(brought::cached("grafana/node_modules"), path("node_modules"))
        .expect("link the packages");
    for name in ["classic.ts", "tsconfig.json"] {
        fs::write(path(name), file(&format!("tests/grafana/{name}"))).expect("write it");
    }
    for (name, model) in models {
        let literal = serde_json::to_string_pretty(model).expect("JSON");
        let text = format!(
            "import type {{ Classic }} from './classic';\n\nexport default {literal} satisfies Classic;\n"
        );
        fs::write(path(&format!("{name}.ts")), text).expect("write it");
    }
    let mut command = brought::command("node");
    command
        .arg(brought::cached("grafana/node_modules/typescript/bin/tsc"))
        .arg("--project")
        .arg(dir.path())
        .current_dir(dir.path());
    let mut node = Process::start("tsc", command, &path("log"));
    assert_ne!(node.wait_exit(wait::LONG), Some(0), "it finds no fault at all");
    node.log()
}

/// The compiler runs once for valid and invalid models, because reading Grafana's types takes longer than everything else.
#[test]
fn dashboards_match_the_types_of_grafana() {
    let dashboards = Dashboard::all();
    let right = dashboards.iter().enumerate();
    let right = right.map(|(i, dashboard)| (format!("dashboard{i}"), dashboard.model.clone()));
    // Each model has one fault that the types must reveal: in the model, in options, in field options, in a query.
    let first = |kind: &str| {
        let panels = dashboards[0].model["panels"].as_array().expect("panels");
        panels.iter().position(|panel| panel["type"] == kind).expect(kind)
    };
    let (table, chart) = (first("table"), first("timeseries"));
    let faults = [
        ("/graphTooltip".to_owned(), "shared".into()),
        (format!("/panels/{table}/options/cellHeight"), "small".into()),
        (
            format!("/panels/{chart}/fieldConfig/defaults/custom/drawStyle"),
            "lines".into(),
        ),
        (format!("/panels/{chart}/targets/0/expr"), Value::Null),
    ];
    let wrong = faults.iter().enumerate().map(|(i, (place, value))| {
        let mut model = dashboards[0].model.clone();
        model.pointer_mut(place).expect(place).clone_from(value);
        (format!("fault{i}"), model)
    });
    let models: Vec<(String, Value)> = right.chain(wrong).collect();
    let said = objections(models.iter().map(|(name, model)| (name.clone(), model)));
    // Every line starts with its file, unless it continues the previous one.
    let is_of_a_fault = |line: &&str| line.starts_with("fault") || line.starts_with(' ') || line.is_empty();
    let others: Vec<&str> = said.lines().filter(|line| !is_of_a_fault(line)).collect();
    assert!(others.is_empty(), "{others:#?}");
    for (i, (place, _)) in faults.iter().enumerate() {
        assert!(said.contains(&format!("fault{i}.ts(")), "{place} passes: {said}");
    }
}
