//! Outcomes of the records, according to the daemon and to a recount of the events.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::real_input::events::{Body, Event};
use crate::support::exposition::Sample;
use crate::support::prometheus::Prometheus;

/// Counts that are positive.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Records by topic and outcome.
    pub outcomes: BTreeMap<(String, String), u64>,
    /// Accepted clicks by result.
    pub results: BTreeMap<String, u64>,
    /// Accepted clicks whose list has not arrived.
    pub waiting: u64,
}

impl Accounts {
    /// Counts events in any order. None may be late, and the lists of a request must be close in time.
    pub fn of(events: &[Event], served_topic: &str, clicks_topic: &str) -> Accounts {
        let mut lists: HashMap<&str, &[String]> = HashMap::new();
        let mut accounts = Accounts::default();
        for event in events {
            let (topic, outcome) = match &event.body {
                Body::Click { .. } => (clicks_topic, "accepted"),
                Body::Served { items } => match lists.insert(&event.request_id, items) {
                    None => (served_topic, "accepted"),
                    Some(_) => (served_topic, "duplicate"),
                },
            };
            let key = (topic.to_owned(), outcome.to_owned());
            *accounts.outcomes.entry(key).or_default() += 1;
        }
        let mut clicked = HashSet::new();
        for event in events {
            let Body::Click { item } = &event.body else {
                continue;
            };
            let Some(items) = lists.get(&*event.request_id) else {
                accounts.waiting += 1;
                continue;
            };
            let result = if !clicked.insert((&event.request_id, item)) {
                "repeat"
            } else if items.contains(item) {
                "matched"
            } else {
                "off_list"
            };
            *accounts.results.entry(result.to_owned()).or_default() += 1;
        }
        accounts
    }

    /// Returns the counts of the last scrape.
    pub fn scraped(prometheus: &Prometheus) -> Accounts {
        let count = |sample: &Sample| sample.value as u64;
        let outcomes = prometheus.query("abgauge_records_total > 0").into_iter();
        let results = prometheus.query("abgauge_click_results_total > 0").into_iter();
        let waiting = prometheus.query("abgauge_clicks_waiting");
        Accounts {
            outcomes: outcomes
                .map(|sample| {
                    let label = |name: &str| sample.labels[name].clone();
                    ((label("topic"), label("outcome")), count(&sample))
                })
                .collect(),
            results: results
                .map(|sample| (sample.labels["result"].clone(), count(&sample)))
                .collect(),
            waiting: waiting.iter().map(count).sum(),
        }
    }
}
