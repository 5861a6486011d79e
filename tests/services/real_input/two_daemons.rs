//! Two daemons in one group: each has a part of the numbers, and weighting by denominators combines them.

use std::collections::BTreeMap;

use abgauge_core::engine::View;
use abgauge_core::metrics::METRICS;

use crate::real_input::answers::{Values, additive, assert_near, expected};
use crate::real_input::events::{events, shuffled};
use crate::real_input::feed::{Feed, Key, Topics};
use crate::real_input::run::{ranking_series, values};
use crate::support::daemon::Daemon;
use crate::support::prometheus::Prometheus;
use crate::support::wait;

/// The second daemon joins in the middle and takes over a part of what the first one has counted.
#[test]
fn two_daemons_of_one_group_add_up() {
    let mut feed = Feed::new(Topics::Two, Key::Request);
    let arrivals = shuffled(events());
    let (before, after) = arrivals.split_at(arrivals.len() / 2);
    let mut one = Daemon::run(feed.config());
    one.wait_until_ready();
    feed.send(before);
    one.wait_until("the first half to be counted", |one| {
        (one.metrics().sum("abgauge_records_total", &[]) == before.len() as f64).then_some(())
    });
    let in_the_middle = feed.ends();

    let two = Daemon::run(feed.config());
    let prometheus = Prometheus::start(&[one.address(), two.address()]);
    wait::until("each to own two partitions", wait::LONG, || {
        let sharing = "abgauge_partitions_owned == 2 and on (instance) abgauge_ready == 1";
        (prometheus.query(sharing).len() == 2).then_some(())
    });
    feed.send(after);
    feed.send_end();

    // Both daemons read the moved partitions: the first up to the middle, the second from the start.
    let of_two = partitions_of(&prometheus, &two);
    let ends = feed.ends();
    let sum = |counts: &BTreeMap<i32, i64>| of_two.iter().map(|partition| counts[partition]).sum::<i64>();
    let read_by_one = ends.values().sum::<i64>() - sum(&ends) + sum(&in_the_middle);
    wait_for_reads(&prometheus, [(&one, read_by_one), (&two, sum(&ends))]);
    let refused = prometheus.query("abgauge_records_total{outcome!='accepted'} > 0");
    assert!(refused.is_empty(), "{refused:?}");

    for view in View::BOTH {
        assert_near(&added_up(&prometheus, view), &additive(expected()));
    }
    let live = ranking_series(&prometheus, View::Live);
    assert_eq!(ranking_series(&prometheus, View::Settled), live);
    wait_for_clicks_to_add_up(&prometheus, &feed);
}

#[track_caller]
fn wait_for_reads(prometheus: &Prometheus, expected: [(&Daemon, i64); 2]) {
    let expected = expected.map(|(daemon, n)| (daemon.address().to_string(), n as f64));
    let mut seen = BTreeMap::new();
    wait::try_until(wait::LONG, || {
        seen = by_instance(prometheus, "sum by (instance) (abgauge_records_total)");
        (seen == expected.clone().into()).then_some(())
    });
    assert_eq!(seen, expected.into());
}

/// Waits until each accepted click has a result or waits. Clicks that waited for a list when their partition moved are
/// undecided.
#[track_caller]
fn wait_for_clicks_to_add_up(prometheus: &Prometheus, feed: &Feed) {
    let without_result = format!(
        "sum by (instance) (abgauge_records_total{{topic='{}',outcome='accepted'}}) \
         - sum by (instance) (abgauge_click_results_total) - sum by (instance) (abgauge_clicks_waiting)",
        feed.clicks_topic()
    );
    wait::until("accepted clicks to add up", wait::PATIENCE, || {
        let left = by_instance(prometheus, &without_result);
        (left.len() == 2 && left.values().all(|left| *left == 0.0)).then_some(())
    });
}

/// Combines the values of `total` of both instances as described in docs/gauges.md: weighted by the exported denominators, or
/// else by lists.
fn added_up(prometheus: &Prometheus, view: View) -> Values {
    let labels = format!(
        "scope='own',experiment='ranker',window='total',view='{}'",
        view.name()
    );
    let lists = format!("abgauge_lists{{{labels}}}");
    let sum = |of: &str| format!("sum by (arm, k, profile) ({of})");
    let mut all = Values::new();
    for metric in METRICS.iter().filter(|metric| metric.is_additive) {
        let value = format!("abgauge_{}{{{labels}}}", metric.gauge);
        let weight = format!("abgauge_metric_denominator{{{labels},metric='{}'}}", metric.id);
        let by_weight = format!(
            "{} / {}",
            sum(&format!("{value} * ignoring (metric) {weight}")),
            sum(&weight)
        );
        let by_lists = format!(
            "{} / on (arm) group_left () sum by (arm) ({lists})",
            sum(&format!("{value} * ignoring (k, profile) group_left () {lists}"))
        );
        let named = format!(
            "label_replace({by_weight} or {by_lists}, 'metric', '{}', '', '')",
            metric.id
        );
        all.extend(values(&prometheus.query(&named)));
    }
    all
}

fn by_instance(prometheus: &Prometheus, promql: &str) -> BTreeMap<String, f64> {
    let samples = prometheus.query(promql).into_iter();
    samples
        .map(|sample| (sample.labels["instance"].clone(), sample.value))
        .collect()
}

fn partitions_of(prometheus: &Prometheus, daemon: &Daemon) -> Vec<i32> {
    let promql = format!(
        "count by (partition) (abgauge_consumer_lag_records{{instance='{}'}})",
        daemon.address()
    );
    let samples = prometheus.query(&promql).into_iter();
    samples
        .map(|sample| sample.labels["partition"].parse().expect("a number"))
        .collect()
}
