//! Every query of the dashboards, the rules and their runbooks gives something on a live abgauge (Prometheus, Grafana's types).

#[path = "dashboards/looks.rs"]
mod looks;
mod support;

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use support::busy::{self, Busy};
use support::grafana::{Dashboard, Query};
use support::process::Process;
use support::prometheus::{self, Prometheus};
use support::promql::selectors;
use support::{brought, tools, wait};

fn file(relative: &str) -> String {
    let path = tools::repository(relative);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What Grafana would put into a query once somebody has chosen, metric and `profile` among it. Of a variable with one value its
/// data source for Prometheus escapes what a quoted text must have escaped; a regular expression it leaves as it is.
/// (`.*` is the value of "All", which is never escaped.)
fn chosen(query: &str, metric: &str, profile: &str) -> String {
    let profile = profile.replace('\\', r"\\").replace('"', r#"\""#);
    let choices = [
        ("$__rate_interval", "1m"),
        ("$job", "abgauge"),
        ("$instance", ".*"),
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

/// In the variable `profile`: a group of `label_replace`, which Grafana passes on, since no variable has such a name.
const GROUP: &str = "$1";

/// `label_values(SERIES, LABEL)` or `query_result(QUERY)` as Prometheus can be asked for it.
fn looked_up(lookup: &str) -> String {
    let inner = |function: &str| lookup.strip_prefix(function)?.strip_suffix(')');
    if let Some(query) = inner("query_result(") {
        return query.to_owned();
    }
    let inner = inner("label_values(").and_then(|inner| inner.rsplit_once(", "));
    let (series, label) = inner.expect(lookup);
    format!("count by ({label}) ({series})")
}

/// The first profile, as the variable has it: a regular expression that only the empty text fits.
const FIRST: &str = "()";
/// The further one: a regular expression that only its name fits.
const FURTHER: &str = r"\Qa+b(c)\E";

/// The metric that the variable has in these tests: a mean over lists.
const METRIC: &str = "ndcg";

/// What the dashboards ask for, of one metric: all of it by the first profile, and by the further one what that defines.
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
    let defined = ["$metric", "abgauge_hit_ratio"];
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

/// The options that Grafana makes of what a variable of `query_result` finds: it writes each sample as a text, and takes
/// from that what the variable's regular expression names, else its first group.
fn options(prometheus: &Prometheus, variable: &str) -> Vec<(String, String)> {
    const SCRIPT: &str = "const [regex, ...texts] = process.argv.slice(1);
        const { groups } = /^\\/(?<body>.*)\\/$/.exec(regex);
        const options = texts.map((text) => new RegExp(groups.body).exec(text));
        const named = options.map((it) => [it.groups?.text ?? it[1], it.groups?.value ?? it[1]]);
        console.log(JSON.stringify(named));";
    let dashboards = Dashboard::all();
    let mut variables = dashboards.iter().flat_map(Dashboard::variables);
    let variable = variables.find(|it| it["name"] == variable).expect(variable);
    let lookup = looked_up(variable["query"]["query"].as_str().expect("a query"));
    // On a busy machine a scrape may come too late, and its series are then gone until the next.
    let samples = prometheus.wait_for(&chosen(&lookup, METRIC, FIRST), wait::LONG);
    let texts = samples.iter().map(|sample| {
        let labels = sample.labels.iter();
        let labels: Vec<_> = labels
            .map(|(name, value)| format!("{name}=\"{value}\""))
            .collect();
        format!("{{{}}} {} 1763596800000", labels.join(","), sample.value)
    });
    let output = brought::command("node")
        .args(["-e", SCRIPT, variable["regex"].as_str().expect("an expression")])
        .args(texts)
        .output()
        .expect("node starts");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// The queries that a document shows.
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

/// What the daemon of these tests does not export: of events that are one to a record and have good arms there is nothing to count; over TLS tests/security does, and while something is wrong, or state is stored,
/// tests/faults. So it is with [`looks::OF_LOOKS`].
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

/// What names of stored state begin with: tests/faults exports them.
const OF_STORED: &str = "abgauge_stored_";

/// Whether an expression asks for any of these.
fn comes_with_time(expression: &str) -> bool {
    expression.contains(OF_STORED)
        || SOMETIMES
            .iter()
            .chain(&looks::OF_LOOKS)
            .any(|name| expression.contains(name))
}

/// Whether it is the name of any of these.
fn is_sometimes(name: &str) -> bool {
    name.starts_with(OF_STORED) || SOMETIMES.contains(&name) || looks::OF_LOOKS.contains(&name)
}

/// Names that are recorded of such, or of each other: in a group rules stand in the order in which they are evaluated.
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

/// Waits until lists have settled that were clicked.
fn wait_for_settled(busy: &mut Busy) {
    busy.daemon.wait_until("settled clicks", |daemon| {
        let settled = [("view", "settled"), ("window", "1h")];
        (daemon.metrics().sum("abgauge_clicks", &settled) > 0.0).then_some(())
    });
}

#[test]
fn every_family_is_listed_and_every_query_and_every_rule_gives_something() {
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
    let cuts = options(&prometheus, "k");
    assert!(
        cuts.contains(&of("(whole list)", "()")) && cuts.contains(&of("5", "5")),
        "{cuts:?}"
    );
    let profiles: BTreeSet<_> = options(&prometheus, "profile").into_iter().collect();
    let further = busy::PROFILES[1];
    assert_eq!(profiles, [of("(first)", FIRST), of(further, FURTHER)].into());
    let metrics: BTreeSet<_> = options(&prometheus, "metric").into_iter().collect();
    for (text, value) in [
        ("ctr", "ctr"),
        ("hit_ratio", "hit_rat(e|io)"),
        ("map_by_k", "map_by_k"),
    ] {
        assert!(metrics.contains(&of(text, value)), "{metrics:?}");
    }
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
        // That an alert is silent must not be for lack of what it watches.
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
        // A scrape that comes too late on a busy machine makes it pending until the next.
        wait::until(alert, wait::LONG, || (state(alert) == "inactive").then_some(()));
    }
    busy.daemon.kill();
    wait::until("AbgaugeDown to be noticed", wait::LONG, || {
        (state("AbgaugeDown") == "pending").then_some(())
    });
}

/// What is exported is what rules and dashboards may use, and what docs/gauges.md lists.
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

/// What a scrape says of each family, as docs/gauges.md has it.
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

/// The labels of a family, each as code.
fn labels_of(name: &str) -> String {
    let listed = file("tests/data/exported-names.tsv");
    let line = listed.lines().find(|line| line.split('\t').next() == Some(name));
    let labels = line.and_then(|line| line.split('\t').nth(2)).expect(name);
    let quoted = |label: &str| format!("`{label}`");
    let labels = labels.split(',').filter(|label| !label.is_empty());
    labels.map(quoted).collect::<Vec<_>>().join(", ")
}

/// What the TypeScript compiler objects to in models as literals, each in a file of its name.
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

/// One run over what is right and what is wrong: the compiler takes longer to read Grafana's types than all of these.
#[test]
fn dashboards_are_of_the_types_that_grafana_has_for_them() {
    let dashboards = Dashboard::all();
    let right = dashboards.iter().enumerate();
    let right = right.map(|(i, dashboard)| (format!("dashboard{i}"), dashboard.model.clone()));
    // One fault each that the types must find: in the model, in options, in options of a field, in a query.
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
    // A line that is no continuation begins with the file that it speaks of.
    let is_of_a_fault = |line: &&str| line.starts_with("fault") || line.starts_with(' ') || line.is_empty();
    let others: Vec<&str> = said.lines().filter(|line| !is_of_a_fault(line)).collect();
    assert!(others.is_empty(), "{others:#?}");
    for (i, (place, _)) in faults.iter().enumerate() {
        assert!(said.contains(&format!("fault{i}.ts(")), "{place} passes: {said}");
    }
}
