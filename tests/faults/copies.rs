//! Copies of lists a few milliseconds to two minutes apart, in both orders, across a restart, against a recount by rule D3.

use std::collections::BTreeMap;

use crate::stored::STATE;
use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::traffic::{SHORT_SESSION, Traffic, arm, now_ms, scrape};

const MINUTE_MS: i64 = 60_000;
/// Value of `join.attribution`, and so of `join.same_list`.
const SAME_LIST_MS: i64 = 2 * MINUTE_MS;
/// Times of lists with one id, in the order in which they are sent. Copies of copies do not count, so a third list that is near
/// the second one alone is a list of its own.
const TIMES_MS: [&[i64]; 14] = [
    &[0, 3],
    &[40, 0],
    &[0, 999],
    &[1_000, 0],
    &[0, 15_000],
    &[61_234, 0],
    &[0, SAME_LIST_MS - 1],
    &[SAME_LIST_MS, 0],
    &[0, SAME_LIST_MS],
    &[SAME_LIST_MS + 1, 0],
    &[0, SAME_LIST_MS + 1],
    &[0, 100_000, 200_000],
    &[200_000, 100_000, 0],
    &[100_000, 0, 200_000],
];
const N_PARTITIONS: i32 = 2;
/// Ids with each row of times.
const N_IDS: usize = 6;

/// Lists with one id, and a click.
struct Case {
    id: String,
    partition: i32,
    lists_ms: Vec<i64>,
    click_ms: i64,
}

/// Lists of an arm, and clicks on them.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Counted {
    lists: f64,
    clicks: f64,
}

/// Returns cases whose lists have times from `begin_ms` on. Slots start at other times than the lists of most cases.
fn cases(name: &str, begin_ms: i64) -> Vec<Case> {
    let rows = TIMES_MS.iter().enumerate();
    let cases = rows.flat_map(|(row, times_ms)| {
        (0..N_IDS).map(move |number| {
            let lists_ms: Vec<i64> = times_ms
                .iter()
                .map(|ms| begin_ms + ms + 137 * number as i64)
                .collect();
            let last_ms = lists_ms.iter().copied().max().expect("a list");
            Case {
                id: format!("{name}-{row}-{number}"),
                partition: (row + number) as i32 % N_PARTITIONS,
                // Out of reach of some first lists, if their copies are later.
                click_ms: last_ms + [1, 1_000][number % 2],
                lists_ms,
            }
        })
    });
    cases.collect()
}

/// Counts by rule D3: a list is a copy of an accepted one that was sent before and is near.
fn recount(cases: &[Case]) -> BTreeMap<String, Counted> {
    let mut arms: BTreeMap<String, Counted> = BTreeMap::new();
    for case in cases {
        let mut accepted: Vec<i64> = Vec::new();
        for ms in &case.lists_ms {
            if accepted.iter().all(|other| (other - ms).abs() > SAME_LIST_MS) {
                accepted.push(*ms);
            }
        }
        let is_clicked = |ms: &&i64| (0..=SAME_LIST_MS).contains(&(case.click_ms - **ms));
        let of_arm = arms.entry(arm(case.partition)).or_default();
        of_arm.lists += accepted.len() as f64;
        of_arm.clicks += accepted.iter().filter(is_clicked).count() as f64;
    }
    arms
}

/// Returns the counts by arm in one view of `total`.
fn counted(daemon: &Daemon, view: &str) -> Option<BTreeMap<String, Counted>> {
    let scrape = scrape(daemon)?;
    let arms = (0..N_PARTITIONS).map(|partition| {
        let arm = arm(partition);
        let value = |name| {
            let labels = [
                ("arm", &*arm),
                ("window", "total"),
                ("view", view),
                ("scope", "own"),
            ];
            scrape.value(name, &labels)
        };
        let counted = Counted {
            lists: value("abgauge_lists")?,
            clicks: value("abgauge_clicks")?,
        };
        Some((arm, counted))
    });
    arms.collect()
}

/// Sends lists without an arm and clicks without a list, which move the watermarks of all partitions to `ts_ms`.
fn move_to(traffic: &Traffic, ts_ms: i64) {
    for partition in 0..N_PARTITIONS {
        traffic.list_without_arm(partition, &format!("move-{ts_ms}"), ts_ms);
        traffic.click(partition, "nobody's", ts_ms);
    }
    traffic.flush();
}

/// Sends the first lists of all ids, then the second ones, and so on, so that copies are far from their list in the log.
fn send_lists(traffic: &Traffic, cases: &[Case], places: impl Iterator<Item = usize>) {
    for place in places {
        for case in cases {
            if let Some(ms) = case.lists_ms.get(place) {
                traffic.list(case.partition, &case.id, *ms);
            }
        }
    }
    traffic.flush();
}

fn send_clicks(traffic: &Traffic, cases: &[Case]) {
    for case in cases {
        traffic.click(case.partition, &case.id, case.click_ms);
    }
    traffic.flush();
}

#[test]
fn copies_up_to_two_minutes_apart_count_once_in_either_order_and_across_a_kill() {
    let kafka = Kafka::shared();
    let traffic = Traffic::new(&kafka, N_PARTITIONS);
    let state = kafka.unique("state");
    kafka.create_topic(&state, N_PARTITIONS, &STATE);
    // Slots settle by the watermarks alone: with old events, silence would settle all of them at once.
    let mut daemon = Daemon::run(&format!(
        r#"
        kafka.brokers = "{}"
        kafka.served_topic = "{}"
        kafka.clicks_topic = "{}"
        kafka.group_id = "{}"
        kafka.start = "earliest"
        {SHORT_SESSION}
        state.topic = "{state}"
        state.interval = "1s"
        join.attribution = "2m"
        join.lateness = "10m"
        join.idle_after = "1h"
        join.slot = "1s"
        metrics.windows = ["2h"]
        "#,
        kafka.brokers(),
        traffic.served,
        traffic.clicks,
        kafka.unique("group"),
    ));
    let begin_ms = now_ms() - 60 * MINUTE_MS;
    let within = cases("within", begin_ms);
    let across = cases("across", begin_ms + 8 * MINUTE_MS);
    send_lists(&traffic, &within, 0..3);
    send_clicks(&traffic, &within);
    send_lists(&traffic, &across, 0..1);
    // Settles the first cases, and leaves the others open.
    move_to(&traffic, begin_ms + 17 * MINUTE_MS);
    let settled = recount(&within);
    daemon.wait_until("the first cases to be settled and stored", |daemon| {
        (counted(daemon, "settled")? == settled).then_some(())
    });
    daemon.kill();
    daemon.start_again();
    send_lists(&traffic, &across, 1..3);
    send_clicks(&traffic, &across);
    let all: Vec<Case> = within.into_iter().chain(across).collect();
    let expected = recount(&all);
    daemon.wait_until("all cases to be live", |daemon| {
        (counted(daemon, "live")? == expected).then_some(())
    });
    move_to(&traffic, begin_ms + 40 * MINUTE_MS);
    daemon.wait_until("all cases to be settled", |daemon| {
        (counted(daemon, "settled")? == expected).then_some(())
    });
    let metrics = daemon.metrics();
    let lost = ["late", "future", "after_settled", "invalid"];
    let n_lost = lost.map(|outcome| metrics.sum("abgauge_records_total", &[("outcome", outcome)]));
    assert_eq!(n_lost, [0.0; 4]);
}
