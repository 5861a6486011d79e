//! Pairs that are read by several threads: the counts do not depend on the number of threads.

use std::sync::Mutex;

use abgauge_core::engine::event::Reason;
use proptest::prelude::*;

use super::*;
use crate::stream::Record;

const N_PARTITIONS: i32 = 5;

/// Record to write: its side and partition, its subject, and its time.
#[derive(Debug, Clone, Copy)]
struct Draft {
    side: Side,
    partition: i32,
    id: u16,
    after_ms: i64,
    is_readable: bool,
}

fn draft() -> impl Strategy<Value = Draft> {
    let side = prop_oneof![Just(Side::Served), Just(Side::Clicks)];
    (side, 0..N_PARTITIONS, 0..400_u16, 0..4000_i64, 0..20_u8).prop_map(
        |(side, partition, id, after_ms, odd)| Draft {
            side,
            partition,
            id,
            after_ms,
            is_readable: odd > 0,
        },
    )
}

/// Step between two reads.
#[derive(Debug, Clone)]
enum Step {
    Records(Vec<Draft>),
    Rebalance,
    Pass,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(draft(), 0..200).prop_map(Step::Records),
        3 => prop::collection::vec(draft(), 3000..4000).prop_map(Step::Records),
        1 => Just(Step::Rebalance),
        2 => Just(Step::Pass),
    ]
}

/// Result of a run: sums of every arm, outcomes, and dead letters.
#[derive(Debug, PartialEq)]
struct Result {
    arms: Vec<(String, Vec<Box<[i128]>>)>,
    ends: [Option<i64>; 2],
    records: BTreeMap<String, BTreeMap<&'static str, u64>>,
    buried: Vec<(Side, i32, i64, Reason)>,
    assigned: Vec<Vec<(TopicPartition, i64)>>,
}

fn run(n_workers: usize, steps: &[Step]) -> Result {
    let buried = Arc::new(Mutex::new(Vec::new()));
    let mut stage = Stage::with_workers(n_workers, &[]);
    let bury: DeadLetterSink = {
        let buried = Arc::clone(&buried);
        Arc::new(move |record: &Record, reason| {
            let mut buried = buried.lock().unwrap();
            buried.push((record.side, record.partition, record.offset, reason));
        })
    };
    stage.worker = stage.worker.with_dead_letters(Some(bury));
    let partitions: Vec<i32> = (0..N_PARTITIONS).collect();
    stage.own(&partitions, [0, 0]);
    let mut offsets: BTreeMap<TopicPartition, i64> = BTreeMap::new();
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Records(drafts) => {
                for draft in drafts {
                    let offset = offsets.entry((draft.side, draft.partition)).or_default();
                    stage.push(record(draft, *offset, number as i64));
                    *offset += 1;
                }
                while stage.worker.read() > 0 {}
            }
            Step::Rebalance => {
                stage.worker.handle(Input::Revoked);
                stage.questions.clear();
                stage.assign(&partitions, [0, 0]);
            }
            Step::Pass => {
                stage.ends.extend(offsets.clone());
                stage.pass(2000);
            }
        }
        stage.round();
    }
    stage.worker.finish();
    let snapshot = stage.snapshot();
    let all = |view: View| (0..2).map(move |window| (view, window));
    let mut arms: Vec<_> = snapshot
        .arms
        .iter()
        .map(|arm| {
            let sums = View::BOTH.into_iter().flat_map(all);
            let sums = sums.map(|(view, window)| arm.sums(view, window).into());
            (arm.arm.to_string(), sums.collect())
        })
        .collect();
    arms.sort();
    let mut buried = buried.lock().unwrap().clone();
    buried.sort_by_key(|(side, partition, offset, _)| (*side, *partition, *offset));
    let assigned = stage.orders.iter().filter_map(|order| match order {
        Order::Assign(starts) => Some(starts.clone()),
        _ => None,
    });
    Result {
        arms,
        ends: [snapshot.live_end_ms, snapshot.settled_end_ms],
        records: stage.telemetry.status().records,
        buried,
        assigned: assigned.collect(),
    }
}

fn record(draft: &Draft, offset: i64, step: i64) -> Owned {
    let ts_ms = T0 + step * 3000 + draft.after_ms;
    let (id, arm) = (draft.id, draft.id % 7);
    let json = match draft.side {
        _ if !draft.is_readable => "{".to_owned(),
        Side::Served => format!(
            r#"{{"request_id":"{id}","ts":{ts_ms},"experiments":{{"ranker":"{arm}"}},"items":["x","y","z"]}}"#
        ),
        Side::Clicks => format!(r#"{{"request_id":"{id}","ts":{ts_ms},"item":"y"}}"#),
    };
    Owned {
        side: draft.side,
        partition: draft.partition,
        offset,
        timestamp_ms: ts_ms,
        payload: json.into_bytes(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn counts_do_not_depend_on_the_number_of_workers(steps in prop::collection::vec(step(), 1..12)) {
        let one = run(1, &steps);
        for n_workers in [2, 3] {
            prop_assert_eq!(&run(n_workers, &steps), &one);
        }
    }
}

/// Returns a stage of three workers that owns five partitions, each with this many lists to read.
fn laden(n_lists: i64, more: &[(&str, &str)]) -> Stage {
    let mut stage = Stage::with_workers(3, more);
    let partitions: Vec<i32> = (0..N_PARTITIONS).collect();
    stage.own(&partitions, [0, 0]);
    for partition in partitions {
        for offset in 0..n_lists {
            let draft = Draft {
                side: Side::Served,
                partition,
                id: offset as u16,
                after_ms: 0,
                is_readable: true,
            };
            stage.push(record(&draft, offset, 0));
        }
    }
    stage
}

#[test]
fn only_large_backlogs_are_read_by_several_threads() {
    let mut stage = laden(10, &[]);
    assert_eq!(stage.worker.read(), 50);
    assert_eq!(stage.worker.shards.n_threads(), 0);
    let mut stage = laden(1000, &[]);
    while stage.worker.read() > 0 {}
    assert_eq!(stage.worker.shards.n_threads(), 2, "beside the worker's own");
    stage.round();
    assert_eq!(stage.telemetry.status().records["served"]["accepted"], 5000);
}

/// Five partitions of three workers share one bound. Records that do not fit are shed, whichever worker reads them.
#[test]
fn all_workers_share_one_memory_bound() {
    let mut stage = laden(4000, &[("LIMITS__MAX_STATE", "1MiB")]);
    while stage.worker.read() > 0 {
        let used = stage.worker.shards.state_bytes();
        assert!(used <= 1 << 20, "{used}");
    }
    let used = stage.worker.shards.state_bytes();
    assert!(used > (1 << 20) * 9 / 10, "all of it is used: {used}");
    stage.round();
    let records = stage.telemetry.status().records;
    let (accepted, shed) = (records["served"]["accepted"], records["served"]["shed"]);
    assert_eq!(accepted + shed, 20_000);
    assert!(shed > 0);
    let mut scrape = Vec::new();
    stage.telemetry.render(&mut scrape).unwrap();
    let scrape = String::from_utf8(scrape).unwrap();
    assert!(scrape.contains("\nabgauge_state_max_bytes 1048576\n"), "{scrape}");
}

/// Regression: memory held by a pair did not count while its position was being located, so the others used that much
/// again.
#[test]
fn a_pair_that_is_being_located_counts_against_the_bound() {
    let mut stage = laden(4000, &[("LIMITS__MAX_STATE", "1MiB")]);
    while stage.worker.read() > 0 {}
    stage.worker.handle(Input::OffsetLost((Side::Served, 0)));
    for offset in 4000..6000 {
        let draft = Draft {
            side: Side::Served,
            partition: 1,
            id: offset as u16,
            after_ms: 0,
            is_readable: true,
        };
        stage.push(record(&draft, offset, 0));
    }
    while stage.worker.read() > 0 {}
    let used: u64 = (stage.worker.shards.phases())
        .filter_map(|(_, phase)| phase.pair())
        .map(|pair| pair.engine().state_bytes())
        .sum();
    assert!(used <= 1 << 20, "{used}");
}

/// Source whose reader panics.
struct Faulty;

impl Source for Faulty {
    fn n_waiting(&self) -> usize {
        5000
    }

    fn read(&mut self, _: &mut dyn FnMut(&[Record<'_>]), _: &mut Vec<Input>) -> usize {
        panic!("out of order")
    }
}

#[test]
fn a_panic_in_a_worker_thread_is_fatal_with_its_message() {
    let mut stage = laden(1000, &[]);
    stage.worker.shards.set_source(1, Box::new(Faulty));
    stage.worker.read();
    let fault = stage.worker.fatal().expect("it cannot go on");
    assert!(fault.message.contains("out of order"), "{fault:?}");
}
