//! Which names abgauge exports, and which names an expression of PromQL uses.

use std::collections::{BTreeMap, BTreeSet};

use crate::read;

/// Labels by name, of every family in tests/data/exported-names.tsv.
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

/// One use of a metric in an expression.
#[derive(Debug, PartialEq)]
pub struct Selector {
    pub name: String,
    /// Labels that it matches on.
    pub labels: Vec<String>,
    /// What stands before it is `rate(` or `increase(`.
    pub as_counter: bool,
}

/// Every use of a metric of abgauge or of a recorded one (they have colons).
pub fn selectors(expression: &str) -> Vec<Selector> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut selectors = Vec::new();
    let mut rest = expression;
    while let Some(start) = rest.find("abgauge_") {
        let begin = rest[..start].rfind(|c| !is_word(c)).map_or(0, |i| i + 1);
        let length = rest[begin..].find(|c| !is_word(c)).unwrap_or(rest.len() - begin);
        let (before, after) = (&rest[..begin], &rest[begin + length..]);
        let matchers = after.strip_prefix('{').and_then(|inner| inner.split('}').next());
        let labels = matchers.into_iter().flat_map(|matchers| matchers.split(','));
        selectors.push(Selector {
            name: rest[begin..begin + length].to_owned(),
            labels: labels
                .map(|matcher| {
                    matcher
                        .split(['=', '!'])
                        .next()
                        .unwrap_or_default()
                        .trim()
                        .to_owned()
                })
                .collect(),
            as_counter: before.ends_with("rate(") || before.ends_with("increase("),
        });
        rest = after;
    }
    selectors
}

/// Fails where an expression uses a name or a label that does not exist, a counter as a gauge, or the reverse.
pub fn check(expression: &str, recorded: &BTreeSet<String>) {
    let exported = exported();
    for Selector {
        name,
        labels,
        as_counter,
    } in selectors(expression)
    {
        if recorded.contains(&name) {
            continue;
        }
        let known = exported
            .get(&name)
            .unwrap_or_else(|| panic!("{name} is not exported: {expression}"));
        for label in labels {
            let of_target = ["job", "instance"].contains(&label.as_str());
            assert!(
                of_target || known.contains(&label),
                "{name} has no label {label}: {expression}"
            );
        }
        let is_counter = name.ends_with("_total");
        assert_eq!(
            as_counter,
            is_counter,
            "{name} is {}a counter: {expression}",
            if is_counter { "" } else { "not " }
        );
    }
}

#[test]
fn finds_the_metrics_of_an_expression() {
    let of = |name: &str, labels: &[&str], as_counter| Selector {
        name: name.to_owned(),
        labels: labels.iter().map(|label| label.to_string()).collect(),
        as_counter,
    };
    assert_eq!(
        selectors(
            r#"sum by (k) (rate(abgauge_a_total{job=~"$job", x!="y"}[5m])) / arm:abgauge_b:sum > time()"#
        ),
        [
            of("abgauge_a_total", &["job", "x"], true),
            of("arm:abgauge_b:sum", &[], false)
        ]
    );
}
