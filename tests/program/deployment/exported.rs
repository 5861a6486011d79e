//! Names exported by abgauge, and names used by PromQL expressions.

use std::collections::{BTreeMap, BTreeSet};

use abgauge::serve::gauges;
use abgauge::telemetry::{self, Series};

use crate::deployment::{path, read};
use crate::support::promql::{Selector, selectors};

/// Series that Prometheus adds for each target.
pub const OF_PROMETHEUS: [&str; 4] = [
    "up",
    "ALERTS",
    "scrape_duration_seconds",
    "scrape_samples_scraped",
];

/// Returns the labels by name of every family in tests/data/exported-names.tsv.
pub fn exported() -> BTreeMap<String, BTreeSet<String>> {
    let mut exported = BTreeMap::new();
    for line in read("tests/data/exported-names.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let [name, kind, labels] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not name, kind, labels: {line}");
        };
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        let labels = labels
            .split(',')
            .filter(|label| !label.is_empty())
            .map(str::to_owned);
        exported.insert(name.to_owned(), labels.collect());
    }
    exported
}

/// Fails if an expression uses a name or a label that does not exist, a counter as a gauge, or a gauge as a counter.
pub fn check(expression: &str, recorded: &BTreeSet<String>) {
    let exported = exported();
    let uses = selectors(expression);
    assert!(!uses.is_empty(), "no metric: {expression}");
    let named = uses.iter().flat_map(|selector| {
        let names = names(&selector.name);
        names.into_iter().map(move |name| (selector, name))
    });
    for (selector, name) in named {
        let name = name.as_str();
        if recorded.contains(name) || OF_PROMETHEUS.contains(&name) {
            continue;
        }
        let known = exported
            .get(name)
            .unwrap_or_else(|| panic!("{name} is not exported: {expression}"));
        for label in selector.labels() {
            let of_target = ["job", "instance"].contains(&label);
            assert!(
                of_target || known.contains(label),
                "{name} has no label {label}: {expression}"
            );
        }
        let is_counter = name.ends_with("_total");
        let as_counter = match selector.function.as_str() {
            "rate" | "increase" => true,
            // `changes` applies to both.
            "changes" => is_counter,
            _ => false,
        };
        assert_eq!(
            as_counter,
            is_counter,
            "{name} is {}a counter: {expression}",
            if is_counter { "" } else { "not " }
        );
    }
}

/// Returns the names that a selector matches: `abgauge_(a|b)` means two.
pub fn names(name: &str) -> Vec<String> {
    match name
        .split_once('(')
        .and_then(|(begin, rest)| Some((begin, rest.strip_suffix(')')?)))
    {
        Some((begin, ends)) => ends.split('|').map(|end| format!("{begin}{end}")).collect(),
        None => vec![name.to_owned()],
    }
}

/// Returns the rows of all series.
fn rows() -> impl Iterator<Item = Series> {
    gauges::series().chain(telemetry::rows().cloned())
}

/// Compares the file with the rows. With the variable `RENEW_EXPORTED_NAMES` it writes the file first.
#[test]
fn exported_names_are_those_of_the_rows() {
    const FILE: &str = "tests/data/exported-names.tsv";
    let mut text =
        "# Series that /metrics may show: name, kind, labels. Rules and dashboards may use nothing else.\n"
            .to_owned();
    for row in rows() {
        text += &format!("{row}\n");
    }
    if std::env::var_os("RENEW_EXPORTED_NAMES").is_some() {
        std::fs::write(path(FILE), &text).expect("the file can be written");
    }
    assert!(
        read(FILE) == text,
        "{FILE} is not what src/telemetry/families.rs and src/serve/gauges/ have: renew it as in CONTRIBUTING.md"
    );
}

#[test]
fn the_page_of_gauges_has_the_name_labels_and_help_of_each_row() {
    let page = read("docs/gauges.md");
    let documented: BTreeSet<&str> = page
        .lines()
        .filter(|line| line.starts_with("| `abgauge_") || line.starts_with("| `process_"))
        .collect();
    let expected: BTreeSet<String> = rows()
        .map(|row| {
            let labels: Vec<String> = row.labels.iter().map(|label| format!("`{label}`")).collect();
            format!("| `{}` | {} | {} |", row.name, labels.join(", "), row.help)
        })
        .collect();
    let missing: Vec<&String> = expected
        .iter()
        .filter(|row| !documented.contains(row.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/gauges.md lacks {missing:#?}");
    let unknown: Vec<&&str> = documented
        .iter()
        .filter(|row| !expected.contains(**row))
        .collect();
    assert!(
        unknown.is_empty(),
        "no series has these rows of docs/gauges.md: {unknown:#?}"
    );
}

#[test]
fn finds_the_metrics_of_an_expression() {
    let of = |name: &str, matchers: &str, function: &str| Selector {
        name: name.to_owned(),
        matchers: matchers.to_owned(),
        function: function.to_owned(),
    };
    let found = selectors(
        r#"sum by (k) (rate(abgauge_a_total{job=~"$job", x!="y"}[5m])) / on (k) group_left () arm:abgauge_b:sum > time() - 1e6"#,
    );
    assert_eq!(
        found,
        [
            of("abgauge_a_total", r#"job=~"$job", x!="y""#, "rate"),
            of("arm:abgauge_b:sum", "", "")
        ]
    );
    assert_eq!(found[0].labels(), ["job", "x"]);
    assert_eq!(
        selectors(r#"label_values(abgauge_lists{job="a"}, arm)"#),
        [of("abgauge_lists", r#"job="a""#, "")]
    );
    let named = selectors(r#"count by (k) ({__name__=~"abgauge_(a|b)",k="1"}) / abgauge_c"#);
    assert_eq!(
        named,
        [of("abgauge_(a|b)", r#"k="1""#, ""), of("abgauge_c", "", "")]
    );
    assert_eq!(named[0].text(), r#"{__name__=~"abgauge_(a|b)",k="1"}"#);
    assert_eq!(names(&named[0].name), ["abgauge_a", "abgauge_b"]);
    assert_eq!(
        selectors("max(up) or process_start_time_seconds * 1000 unless on (job) abgauge_ready == bool 1"),
        [
            of("up", "", ""),
            of("process_start_time_seconds", "", ""),
            of("abgauge_ready", "", "")
        ]
    );
}

#[test]
#[should_panic(expected = "abgauge_made_up is not exported")]
fn a_name_that_is_not_exported_is_found() {
    check("sum(abgauge_made_up)", &BTreeSet::new());
}

#[test]
#[should_panic(expected = "abgauge_records_total is a counter")]
fn a_counter_without_a_rate_is_found() {
    check("sum(abgauge_records_total)", &BTreeSet::new());
}
