//! The worker on hand-made inputs: its orders, and what the board then shows.

mod awaited_schema;
mod catalogue;
mod looks;
mod loss_rates;
mod shards;
mod source;
mod stored;
mod time;

use std::collections::BTreeMap;
use std::sync::mpsc;

use abgauge_core::engine::View;
use abgauge_core::metrics::{CLICKS, LISTS};

use self::source::{Memory, Owned};
use super::*;
use crate::board::snapshot::{Snapshot, SnapshotSource as _};
use crate::clock::ClockControl;
use crate::settings;
use crate::stream::keys::KeySample;
use crate::stream::timestamps::Timestamps;
use crate::stream::{
    BatchDamage, Inspection, LogEnd, LogStart, OffsetState, Question, TopicPartition, queue_of,
};
use crate::telemetry::Warning;

const T0: i64 = 1_763_596_800_000;

struct Stage {
    worker: Worker,
    sources: Vec<Memory>,
    schemas: Arc<Schemas>,
    board: Arc<Board>,
    telemetry: Arc<Telemetry>,
    ranking: Ranking,
    hand: ClockControl,
    now_ms: i64,
    uptime: Duration,
    /// First offset of all logs, for answers.
    low: i64,
    /// End of each log, for answers.
    ends: BTreeMap<TopicPartition, i64>,
    /// Everything ordered so far, questions apart.
    orders: Vec<Order>,
    questions: Vec<Question>,
    /// News for looks, if experiments are configured.
    news: mpsc::Receiver<PairNews>,
    /// Timestamp settings of each topic, for the answer.
    timestamps: Vec<(Side, Timestamps)>,
}

impl Stage {
    /// A worker with attribution 10 s, lateness 2 s, idle after 5 s, slots of 1 s and a window of 1 m.
    fn new() -> Stage {
        Stage::with(&[])
    }

    /// The same with further settings.
    fn with(more: &[(&str, &str)]) -> Stage {
        Stage::with_workers(1, more)
    }

    fn with_workers(n: usize, more: &[(&str, &str)]) -> Stage {
        Stage::of(n, &Stage::config(more))
    }

    fn config(more: &[(&str, &str)]) -> Config {
        let settings = [
            ("KAFKA__BROKERS", "localhost:9092"),
            ("JOIN__ATTRIBUTION", "10s"),
            ("JOIN__LATENESS", "2s"),
            ("JOIN__MAX_FUTURE", "1s"),
            ("JOIN__IDLE_AFTER", "5s"),
            ("JOIN__SLOT", "1s"),
            ("METRICS__WINDOWS", "1m"),
        ];
        let settings = settings.iter().chain(more);
        let settings = settings.map(|(name, value)| (format!("ABGAUGE_{name}"), (*value).to_owned()));
        settings::load(None, settings).unwrap()
    }

    fn of(n: usize, config: &Config) -> Stage {
        let (clock, hand) = Clock::simulated(T0);
        let ranking = Ranking::new(&config.measures);
        let board = Arc::new(Board::new(config, &ranking));
        let telemetry = Arc::new(Telemetry::new("served", "clicks", "test"));
        let sources: Vec<Memory> = (0..n).map(|_| Memory::default()).collect();
        let boxed = |source: &Memory| -> Box<dyn Source> { Box::new(source.clone()) };
        let (tell, news) = mpsc::sync_channel(200);
        let schemas = Arc::new(Schemas::open(config).expect("no files"));
        let worker = Worker::new(
            config,
            ranking.clone(),
            Arc::clone(&board),
            Arc::clone(&telemetry),
            clock,
            Arc::clone(&schemas),
            sources.iter().map(boxed).collect(),
        )
        .with_looks((!config.experiments.is_empty()).then_some(tell));
        Stage {
            worker,
            sources,
            schemas,
            board,
            telemetry,
            ranking,
            hand,
            now_ms: T0,
            uptime: Duration::from_secs(1),
            low: 0,
            ends: BTreeMap::new(),
            orders: Vec::new(),
            questions: Vec::new(),
            news,
            timestamps: Vec::new(),
        }
    }

    /// A worker that owns partition 0, whose logs end at `ends`.
    fn owning(ends: [i64; 2]) -> Stage {
        let mut stage = Stage::new();
        stage.own(&[0], ends);
        stage
    }

    fn own(&mut self, partitions: &[i32], ends: [i64; 2]) {
        self.round();
        let n = partitions.len() as i32;
        self.answer_topics(n, n);
        self.assign(partitions, ends);
    }

    fn assign(&mut self, partitions: &[i32], ends: [i64; 2]) {
        let mut given = Vec::new();
        for partition in partitions {
            for side in Side::BOTH {
                given.push((side, *partition));
                self.ends.insert((side, *partition), ends[side as usize]);
            }
        }
        self.worker.handle(Input::Assigned(given));
        self.round();
        self.answer_starts();
    }

    fn round(&mut self) {
        self.worker.round(false, self.uptime);
        for order in self.worker.orders() {
            match order {
                Order::Ask(Question::Timestamps) => {
                    self.worker
                        .handle(Input::Answer(Answer::Timestamps(self.timestamps.clone())));
                }
                Order::Ask(question) => self.questions.push(question),
                order => self.orders.push(order),
            }
        }
    }

    /// Time passes, in steps short enough that the loop is not taken to have been stopped.
    fn pass(&mut self, ms: i64) {
        for _ in 0..ms / 500 {
            self.now_ms += 500;
            self.hand.advance_to(self.now_ms);
            self.uptime += Duration::from_millis(500);
            self.round();
            self.answer_ends();
        }
    }

    fn answer_topics(&mut self, served: i32, clicks: i32) {
        assert_eq!(self.questions.pop(), Some(Question::Topics));
        self.worker
            .handle(Input::Answer(Answer::Topics(Ok(TopicCounts { served, clicks }))));
        self.round();
    }

    fn answer_starts(&mut self) {
        let Some(Question::Starts {
            epoch, partitions, ..
        }) = self.questions.pop()
        else {
            panic!("it does not ask where to start")
        };
        let start = |key: TopicPartition| LogStart {
            low: self.low,
            high: self.ends[&key],
            by_time: Some(self.low),
            first_record_ms: None,
        };
        let starts = partitions.into_iter().map(|key| (key, start(key))).collect();
        self.worker.handle(Input::Answer(Answer::Starts {
            epoch,
            starts: Ok(starts),
        }));
        self.round();
    }

    fn answer_ends(&mut self) {
        let ends = self
            .ends
            .iter()
            .map(|(key, end)| {
                (
                    *key,
                    LogEnd {
                        end: *end,
                        stable: None,
                        position: None,
                    },
                )
            })
            .collect();
        self.answer_ends_with(Ok(ends));
    }

    fn answer_ends_with(&mut self, ends: Result<BTreeMap<TopicPartition, LogEnd>, Fault>) {
        if let Some(Question::Ends {
            epoch,
            clock_run,
            asked_ms,
            ..
        }) = self.questions.pop()
        {
            self.worker.handle(Input::Answer(Answer::Ends {
                epoch,
                clock_run,
                asked_ms,
                ends,
            }));
            self.round();
        }
    }

    fn list(&mut self, partition: i32, offset: i64, id: &str, ts_ms: i64) {
        self.list_of(partition, offset, id, ts_ms, "a", &["x", "y"]);
    }

    fn list_of(&mut self, partition: i32, offset: i64, id: &str, ts_ms: i64, arm: &str, items: &[&str]) {
        let json = format!(
            r#"{{"request_id":"{id}","ts":{ts_ms},"experiments":{{"ranker":"{arm}"}},"items":{items:?}}}"#
        );
        self.record((Side::Served, partition), offset, ts_ms, &json);
    }

    fn click(&mut self, partition: i32, offset: i64, id: &str, ts_ms: i64) {
        let json = format!(r#"{{"request_id":"{id}","ts":{ts_ms},"item":"y"}}"#);
        self.record((Side::Clicks, partition), offset, ts_ms, &json);
    }

    fn record(&mut self, (side, partition): TopicPartition, offset: i64, timestamp_ms: i64, json: &str) {
        self.push(Owned {
            side,
            partition,
            offset,
            timestamp_ms,
            payload: json.as_bytes().to_vec(),
        });
        self.worker.read();
    }

    /// Puts a record where it waits to be read.
    fn push(&mut self, record: Owned) {
        self.sources[queue_of(record.partition, self.sources.len())].push(record);
    }

    fn snapshot(&self) -> Snapshot {
        self.board.snapshot(None)
    }

    /// Lists and clicks in `total`.
    fn total(&self, view: View) -> (i128, i128) {
        let snapshot = self.snapshot();
        let sums = snapshot.arms.first().map(|arm| arm.sums(view, 1).to_vec());
        sums.map_or((0, 0), |sums| (sums[LISTS], sums[CLICKS]))
    }

    fn assigned_offsets(&self) -> Vec<(TopicPartition, i64)> {
        let last = self.orders.iter().rev().find_map(|order| match order {
            Order::Assign(offsets) => Some(offsets.clone()),
            _ => None,
        });
        last.expect("it has assigned")
    }
}

fn fault(message: &str, kind: FaultKind) -> Fault {
    Fault {
        message: message.into(),
        kind,
    }
}

const SERVED: TopicPartition = (Side::Served, 0);
const CLICKED: TopicPartition = (Side::Clicks, 0);

#[test]
fn a_pair_is_shown_once_it_has_reached_the_ends_noted_at_its_assignment() {
    let mut stage = Stage::owning([2, 1]);
    assert_eq!(
        stage.orders,
        [Order::Subscribe, Order::Assign(vec![(SERVED, 0), (CLICKED, 0)])]
    );
    stage.list(0, 0, "r-1", T0);
    stage.click(0, 0, "r-1", T0 + 10);
    stage.round();
    assert_eq!(stage.total(View::Live), (0, 0));
    assert_eq!(
        stage.telemetry.waiting_for(),
        ["catching up in partition 0: 1 record to read"]
    );
    stage.list(0, 1, "r-2", T0 + 5);
    stage.round();
    stage.round();
    assert_eq!(stage.total(View::Live), (2, 1));
    assert_eq!(stage.telemetry.waiting_for(), Vec::<String>::new());
}

#[test]
fn a_caught_up_pair_is_shown_even_after_a_slow_round() {
    let mut stage = Stage::owning([2, 0]);
    stage.list(0, 0, "r-1", T0);
    stage.round();
    stage.worker.took(Duration::from_secs(1)); // The next hand-over of its own is a second away.
    stage.list(0, 1, "r-2", T0 + 5);
    stage.round();
    assert_eq!(stage.total(View::Live), (2, 0));
}

#[test]
fn events_of_another_shape_count_as_mapped() {
    let mut stage = Stage::with(&[("EVENTS__PRESET", "metarank")]);
    stage.own(&[0], [0, 0]);
    let click = |kind: &str| {
        format!(
            r#"{{"event":"interaction","type":"{kind}","id":"i","ranking":"r","timestamp":"{T0}","item":"y"}}"#
        )
    };
    let list =
        format!(r#"{{"event":"ranking","id":"r","timestamp":"{T0}","items":[{{"id":"x"}},{{"id":"y"}}]}}"#);
    stage.record(SERVED, 0, T0, &list);
    stage.record(CLICKED, 0, T0, &click("like"));
    stage.round();
    assert_eq!(stage.total(View::Live), (1, 0));
    stage.record(CLICKED, 1, T0, &click("click"));
    stage.round();
    assert_eq!(stage.total(View::Live), (1, 1));
}

#[test]
fn skips_and_counts_records_by_offset() {
    let mut stage = Stage::with(&[("INGEST__SKIP_RECORDS", "served/0/1-2,clicks/1/0")]);
    stage.own(&[0], [0, 0]);
    stage.list(0, 0, "r-0", T0);
    // Would make all that follow late.
    stage.list(0, 1, "r-1", T0 + 60_000);
    stage.list(0, 2, "r-2", T0);
    stage.list(0, 3, "r-3", T0);
    stage.click(0, 0, "r-3", T0);
    stage.round();
    assert_eq!(stage.total(View::Live), (2, 1));
    let records = &stage.telemetry.status().records;
    let of = |topic: &str, outcome: &str| records[topic][outcome];
    assert_eq!((of("served", "skipped"), of("served", "accepted")), (2, 2));
    assert_eq!((of("clicks", "skipped"), of("served", "late")), (0, 0));
    assert!(
        !stage.telemetry.status().exact,
        "two records of the log are in no number"
    );
}

#[test]
fn unequal_partition_counts_end_the_program_with_a_remedy() {
    let mut stage = Stage::new();
    stage.round();
    stage.answer_topics(4, 3);
    let fault = stage.worker.fatal().expect("it cannot go on");
    assert!(
        fault.message.contains("`served` has 4") && fault.message.contains("`clicks` has 3"),
        "{fault:?}"
    );
    assert_eq!(stage.orders, [], "it does not subscribe");
}

#[test]
fn a_round_does_not_wait_for_a_scrape_and_hands_over_after_it() {
    let mut stage = Stage::owning([0, 0]);
    stage.list(0, 0, "r-1", T0);
    let board = Arc::clone(&stage.board);
    let (started, has_started) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let scrape = std::thread::spawn(move || {
        board.while_copied(|| {
            started.send(()).expect("the test waits for it");
            // Ends anyhow, so that a round that waits fails the test and does not hang it.
            let _ = may_go_on.recv_timeout(Duration::from_secs(20));
            drop(may_go_on);
        });
    });
    has_started.recv().expect("a scrape");
    stage.round();
    go_on.send(()).expect("the round was done before the scrape");
    scrape.join().expect("no panic");
    assert_eq!(stage.total(View::Live), (0, 0), "not handed over meanwhile");
    stage.round();
    assert_eq!(stage.total(View::Live), (1, 0));
}

#[test]
fn a_refetched_record_counts_once() {
    let mut stage = Stage::owning([0, 0]);
    for _ in 0..2 {
        stage.list(0, 0, "r-1", T0);
        stage.round();
    }
    stage.round();
    assert_eq!(stage.total(View::Live), (1, 0));
}

#[test]
fn a_revoked_pair_is_hidden_and_resumes_when_it_returns() {
    let mut stage = Stage::owning([0, 0]);
    stage.list(0, 0, "r-1", T0);
    stage.round();
    assert_eq!(stage.total(View::Live), (1, 0));
    stage.worker.handle(Input::Revoked);
    assert_eq!(
        stage.total(View::Live),
        (0, 0),
        "before the client even hears of it"
    );
    stage.round();
    assert_eq!(stage.orders.last(), Some(&Order::Unassign));
    stage.assign(&[0], [1, 0]);
    assert_eq!(stage.assigned_offsets(), [(SERVED, 1), (CLICKED, 0)]);
    stage.click(0, 0, "r-1", T0 + 10);
    stage.round();
    assert_eq!(stage.total(View::Live), (1, 1), "the list was kept");
}

#[test]
fn forgets_a_pair_that_is_assigned_elsewhere() {
    let mut stage = Stage::new();
    stage.round();
    stage.answer_topics(2, 2);
    stage.assign(&[0, 1], [0, 0]);
    stage.list(0, 0, "r-1", T0);
    stage.list(1, 0, "r-2", T0);
    stage.round();
    assert_eq!(stage.total(View::Live), (2, 0));
    stage.worker.handle(Input::Revoked);
    stage.assign(&[1], [1, 0]);
    stage.round();
    assert_eq!(stage.total(View::Live), (1, 0));
    stage.worker.handle(Input::Revoked);
    stage.assign(&[0, 1], [1, 0]);
    let from = stage.assigned_offsets();
    assert_eq!(from[..2], [(SERVED, 0), (CLICKED, 0)], "partition 0 is read anew");
    assert_eq!(
        from[2..],
        [((Side::Served, 1), 1), ((Side::Clicks, 1), 0)],
        "partition 1 goes on"
    );
}

#[test]
fn a_quiet_stream_settles_after_attribution_in_elapsed_time() {
    let mut stage = Stage::owning([0, 0]);
    stage.list(0, 0, "r-1", T0);
    stage.ends.insert(SERVED, 1);
    stage.round();
    stage.pass(10_000);
    assert_eq!(
        stage.total(View::Settled),
        (0, 0),
        "attribution 10 s + lateness 2 s + its slot have not passed"
    );
    stage.pass(6_000);
    assert_eq!(stage.total(View::Settled), (1, 0));
}

#[test]
fn nothing_settles_while_the_broker_is_silent_and_clocks_restart_at_zero() {
    let mut stage = Stage::owning([0, 0]);
    stage.list(0, 0, "r-1", T0);
    stage.ends.insert(SERVED, 1);
    stage.round();
    stage.pass(4_000);
    for _ in 0..200 {
        stage.now_ms += 500;
        stage.hand.advance_to(stage.now_ms);
        stage.uptime += Duration::from_millis(500);
        stage.round();
        stage.answer_ends_with(Err(fault("gone", FaultKind::Silence)));
    }
    assert_eq!(stage.telemetry.waiting_for(), ["gone"]);
    stage.pass(4_000);
    assert_eq!(stage.total(View::Settled), (0, 0));
    assert_eq!(stage.telemetry.waiting_for(), Vec::<String>::new());
    stage.click(0, 0, "r-1", T0 + 9_000);
    stage.ends.insert(CLICKED, 1);
    stage.pass(20_000);
    assert_eq!(
        stage.total(View::Settled),
        (1, 1),
        "the click that was produced meanwhile counts"
    );
}

#[test]
fn time_while_the_loop_was_stopped_settles_nothing() {
    let mut stage = Stage::owning([0, 0]);
    stage.list(0, 0, "r-1", T0);
    stage.ends.insert(SERVED, 1);
    stage.round();
    stage.pass(4_000);
    // A question is on its way, and its answer waits, while the process is stopped for an hour.
    stage.uptime += Duration::from_millis(500);
    stage.round();
    stage.now_ms += 3_600_000;
    stage.hand.advance_to(stage.now_ms);
    stage.uptime += Duration::from_secs(3600);
    stage.round();
    stage.answer_ends();
    stage.pass(4_000);
    assert_eq!(stage.total(View::Settled), (0, 0));
    stage.pass(12_000);
    assert_eq!(stage.total(View::Settled), (1, 0));
}

#[test]
fn a_partition_behind_its_end_is_not_idle() {
    let mut stage = Stage::owning([0, 0]);
    stage.list(0, 0, "r-1", T0);
    stage.ends.insert(SERVED, 1);
    stage.ends.insert(CLICKED, 1);
    stage.round();
    stage.pass(60_000);
    assert_eq!(
        stage.total(View::Settled),
        (0, 0),
        "a click is there that was not read yet"
    );
}

#[test]
fn the_live_window_empties_while_no_records_arrive() {
    let mut stage = Stage::owning([0, 0]);
    stage.list(0, 0, "r-1", T0);
    stage.ends.insert(SERVED, 1);
    stage.round();
    let live = |stage: &Stage| stage.snapshot().arms[0].sums(View::Live, 0)[LISTS];
    assert_eq!(live(&stage), 1);
    stage.pass(62_000);
    assert_eq!(live(&stage), 0, "a minute has passed");
    assert_eq!(stage.total(View::Live), (1, 0));
}

#[test]
fn pauses_the_topic_ahead_while_it_takes_too_much_memory() {
    const N: i64 = 8_000;
    let mut stage = Stage::with(&[("LIMITS__MAX_STATE", "32MiB")]);
    stage.own(&[0], [N, N]);
    stage.orders.clear();
    stage.click(0, 0, "r-1", T0 + 600_000);
    stage.round();
    assert_eq!(stage.orders, [], "no list was read yet, but a click takes little");
    let n_read = (1..N).find(|n| {
        stage.click(0, *n, &format!("r-{n}"), T0 + 600_000);
        stage.round();
        !stage.orders.is_empty()
    });
    assert_eq!(stage.orders, [Order::Pause(CLICKED)]);
    let state_bytes = stage
        .worker
        .shards
        .pairs()
        .map(|(_, pair)| pair.engine().state_bytes());
    let state_bytes: u64 = state_bytes.sum();
    let room_bytes = (32 << 20) / 256;
    assert!(
        (room_bytes..room_bytes + 500).contains(&state_bytes),
        "{state_bytes} bytes of {n_read:?} clicks"
    );
    stage.list(0, 0, "r-1", T0);
    stage.round();
    assert_eq!(stage.orders.len(), 1, "ten minutes ahead");
    stage.list(0, 1, "r-2", T0 + 500_000);
    stage.round();
    assert_eq!(stage.orders[1..], [Order::Resume(CLICKED)]);
    // Ahead again: what it filled before does not count against it.
    stage.click(0, N / 2, "r-9", T0 + 1_200_000);
    stage.round();
    assert_eq!(stage.orders.len(), 2);
}

#[test]
fn a_position_no_longer_in_the_log_restarts_the_pair_visibly() {
    let mut stage = Stage::owning([0, 0]);
    stage.list(0, 0, "r-1", T0);
    stage.round();
    stage.worker.handle(Input::OffsetLost(SERVED));
    assert_eq!(stage.total(View::Live), (0, 0));
    stage.ends.insert(SERVED, 12);
    stage.ends.insert(CLICKED, 5);
    stage.low = 5;
    stage.round();
    assert_eq!(
        stage.telemetry.waiting_for(),
        [
            "finding where to start partitions {0}",
            "restarting partition 0: its position was no longer in the log"
        ]
    );
    stage.uptime += Duration::from_secs(1);
    stage.round();
    stage.answer_starts();
    stage.round();
    assert_eq!(
        stage.telemetry.waiting_for(),
        ["catching up in partition 0: 7 records to read, again: its position was no longer in the log"]
    );
}

#[test]
fn a_position_still_in_the_log_resumes_despite_a_client_error() {
    let mut stage = Stage::owning([0, 0]);
    stage.list(0, 0, "r-1", T0);
    stage.round();
    stage.worker.handle(Input::OffsetLost(SERVED));
    stage.ends.insert(SERVED, 7);
    stage.uptime += Duration::from_secs(1);
    stage.round();
    stage.answer_starts();
    assert_eq!(stage.assigned_offsets(), [(SERVED, 1), (CLICKED, 0)]);
    assert_eq!(stage.telemetry.status().pair_restarts, 0);
}

fn damaged(first: i64, last: Option<i64>) -> OffsetState {
    let damage = BatchDamage::Checksum;
    OffsetState::Damaged { first, last, damage }
}

/// The last look that was ordered.
fn inspection(stage: &Stage) -> Inspection {
    let inspection = stage.orders.iter().rev().find_map(|order| match order {
        Order::Inspect(inspection) => Some(*inspection),
        _ => None,
    });
    inspection.expect("it inspects a batch")
}

#[test]
fn a_damaged_batch_stops_only_its_own_pair() {
    let mut stage = Stage::new();
    stage.own(&[0, 1], [0, 0]);
    stage.list(0, 0, "r-0", T0);
    stage.list(1, 0, "r-1", T0);
    stage.round();
    stage
        .worker
        .handle(Input::Damaged(SERVED, 1, BatchDamage::Checksum));
    stage.round();
    let others = [((Side::Served, 1), 1), ((Side::Clicks, 1), 0)];
    assert_eq!(stage.assigned_offsets(), others);
    let first = inspection(&stage);
    assert!((first.partition, first.offset, first.to_its_end) == (SERVED, 1, true));
    // Whatever the client hands over next, its position is unreliable.
    stage.list(0, 9, "r-9", T0);
    stage.worker.handle(Input::OffsetLost(SERVED));
    stage.list(1, 1, "r-2", T0);
    stage
        .worker
        .handle(Input::Inspected(first, Ok(damaged(1, Some(8)))));
    stage.ends.extend([(SERVED, 10), ((Side::Served, 1), 2)]);
    stage.pass(1000);
    assert_eq!(stage.total(View::Live), (3, 0));
    assert_eq!(stage.telemetry.waiting_for(), Vec::<String>::new());
    let reported = &stage.telemetry.warnings()[0];
    assert!(
        reported
            .message
            .contains("ingest.skip_records = [\"served/0/1-8\"]"),
        "{reported:?}"
    );
    // It can be read once more.
    stage.pass(11_000);
    let again = inspection(&stage);
    assert!(!again.to_its_end, "that is known");
    stage
        .worker
        .handle(Input::Inspected(again, Ok(OffsetState::Readable)));
    stage.round();
    assert_eq!(stage.assigned_offsets()[..2], [(SERVED, 1), (CLICKED, 0)]);
    stage.list(0, 1, "r-3", T0);
    stage.round();
    assert_eq!(stage.total(View::Live), (4, 0));
}

/// The client continues in the middle of a damaged batch and takes bytes of it for an offset. All records after the batch were
/// considered read.
#[test]
fn ignores_the_client_position_inside_a_damaged_batch() {
    let text = i64::from_be_bytes(*br#"":["i0"."#);
    for position in [2, 9, text] {
        let mut stage = Stage::owning([1, 0]);
        stage.list(0, 0, "r-0", T0);
        stage.pass(1000);
        // Asked before the damage, answered once the batch can be read again.
        stage.uptime += Duration::from_millis(500);
        stage.round();
        assert!(
            matches!(stage.questions[..], [Question::Ends { .. }]),
            "{:?}",
            stage.questions
        );
        stage
            .worker
            .handle(Input::Damaged(SERVED, 1, BatchDamage::Checksum));
        stage.round();
        let inspection = inspection(&stage);
        stage
            .worker
            .handle(Input::Inspected(inspection, Ok(OffsetState::Readable)));
        stage.round();
        let astray = |end| LogEnd {
            end,
            stable: None,
            position: Some(position),
        };
        stage.answer_ends_with(Ok(BTreeMap::from([(SERVED, astray(9)), (CLICKED, astray(9))])));
        stage.list(0, 1, "r-1", T0);
        stage.round();
        assert_eq!(stage.total(View::Live), (2, 0), "the client said {position}");
    }
}

#[test]
fn ignores_a_position_beyond_the_end() {
    let mut stage = Stage::owning([1, 0]);
    stage.uptime += Duration::from_millis(500);
    stage.round();
    let beyond = LogEnd {
        end: 1,
        stable: None,
        position: Some(2),
    };
    stage.answer_ends_with(Ok(BTreeMap::from([(SERVED, beyond)])));
    stage.list(0, 0, "r-0", T0);
    stage.round();
    assert_eq!(stage.total(View::Live), (1, 0));
}

#[test]
fn a_skipped_damaged_batch_is_passed_over_and_costs_exactness() {
    let mut stage = Stage::with(&[("INGEST__SKIP_RECORDS", "served/0/1-8")]);
    stage.own(&[0], [20, 0]);
    stage.list(0, 0, "r-0", T0);
    stage
        .worker
        .handle(Input::Damaged(SERVED, 1, BatchDamage::Compression));
    stage.round();
    assert_eq!(stage.assigned_offsets(), [(SERVED, 9), (CLICKED, 0)]);
    let status = stage.telemetry.status();
    assert_eq!(status.records["served"]["skipped"], 8);
    assert!(!status.exact);
    assert!(
        !stage
            .orders
            .iter()
            .any(|order| matches!(order, Order::Inspect(_)))
    );
}

/// A range that covered a part was accepted with a message to add the rest, but then blocked at the part.
#[test]
fn warns_of_a_skip_range_that_covers_part_of_a_damaged_batch() {
    for (skip, begin) in [("served/0/1-4", 5), ("served/0/3-5", 1)] {
        let mut stage = Stage::with(&[("INGEST__SKIP_RECORDS", &format!("{skip},clicks/7/3"))]);
        stage.own(&[0], [20, 0]);
        stage.list(0, 0, "r-0", T0);
        // Like the client, report the damage at the requested offset.
        stage
            .worker
            .handle(Input::Damaged(SERVED, 1, BatchDamage::Checksum));
        stage.round();
        if begin > 1 {
            assert_eq!(stage.assigned_offsets(), [(SERVED, begin), (CLICKED, 0)]);
            stage
                .worker
                .handle(Input::Damaged(SERVED, begin, BatchDamage::Checksum));
            stage.round();
        }
        let inspection = inspection(&stage);
        stage
            .worker
            .handle(Input::Inspected(inspection, Ok(damaged(begin, Some(8)))));
        stage.pass(1000);
        let warnings = stage.telemetry.warnings();
        let is_held = |warning: &&Warning| warning.message.contains("is held");
        let reported = &warnings.iter().find(is_held).expect("it is told").message;
        if begin == 1 {
            assert!(reported.contains("offsets 1-8 cannot be read"), "{reported}");
        }
        let setting = "ingest.skip_records = [\"served/0/1-8\", \"clicks/7/3\"], whose range must cover the whole batch";
        assert!(reported.contains(setting), "{reported}");
    }
}

#[test]
fn a_partition_held_during_startup_is_reported_as_missing_not_frozen() {
    let reported = |caught_up: bool| {
        let mut stage = Stage::new();
        stage.own(&[0], [if caught_up { 1 } else { 2 }, 0]);
        stage.list(0, 0, "r-0", T0);
        stage.pass(500);
        stage
            .worker
            .handle(Input::Damaged(SERVED, 1, BatchDamage::Checksum));
        stage.pass(500);
        stage.telemetry.warnings()[0].message.clone()
    };
    let [during, after] = [reported(false), reported(true)];
    assert!(
        during.ends_with("It has not caught up yet: its lists and clicks are missing from all numbers"),
        "{during}"
    );
    assert!(after.ends_with("do not advance, all others do"), "{after}");
}

#[test]
fn inspects_a_log_that_stalls_for_no_known_reason() {
    let mut stage = Stage::owning([5, 0]);
    stage.pass(4_000);
    assert!(
        !stage
            .orders
            .iter()
            .any(|order| matches!(order, Order::Inspect(_)))
    );
    stage.pass(3_000);
    let seen = inspection(&stage);
    assert_eq!((seen.partition, seen.offset), (SERVED, 0));
    stage.worker.handle(Input::Inspected(seen, Ok(damaged(0, None))));
    stage.round();
    assert!(
        stage.telemetry.waiting_for()[0].contains("partition 0 of topic `served` is held"),
        "all that there is"
    );
}

#[test]
fn commits_positions_for_lag_monitors_once_they_have_moved() {
    let mut stage = Stage::owning([0, 0]);
    stage.orders.clear();
    stage.list(0, 0, "r-1", T0);
    stage.pass(20_000);
    let commits: Vec<&Order> = stage
        .orders
        .iter()
        .filter(|order| matches!(order, Order::Commit(_)))
        .collect();
    assert_eq!(commits, [&Order::Commit(vec![(SERVED, 1), (CLICKED, 0)])]);
}

#[test]
fn ignores_answers_to_an_earlier_assignment() {
    let mut stage = Stage::owning([0, 0]);
    stage.uptime += Duration::from_secs(1);
    stage.round();
    let asked = stage.questions.pop();
    stage.worker.handle(Input::Revoked);
    stage.assign(&[0], [5, 0]);
    let Some(Question::Ends {
        epoch,
        clock_run,
        asked_ms,
        ..
    }) = asked
    else {
        panic!("it asks for ends")
    };
    let ends = [SERVED, CLICKED].map(|key| {
        (
            key,
            LogEnd {
                end: 99,
                stable: None,
                position: Some(99),
            },
        )
    });
    stage.worker.handle(Input::Answer(Answer::Ends {
        epoch,
        clock_run,
        asked_ms,
        ends: Ok(ends.into()),
    }));
    stage.round();
    assert_eq!(
        stage.telemetry.waiting_for(),
        ["catching up in partition 0: 5 records to read"]
    );
}

#[test]
fn counts_records_that_were_read_before_the_position_was_lost() {
    let mut stage = Stage::owning([0, 0]);
    stage.list(0, 0, "r-1", T0);
    stage.worker.handle(Input::OffsetLost(SERVED));
    let records = stage.telemetry.status().records;
    assert_eq!(records["served"]["accepted"], 1);
}

#[test]
fn a_repeated_answer_does_not_assign_again() {
    let mut stage = Stage::owning([0, 0]);
    let n_orders = stage.orders.len();
    let starts = [SERVED, CLICKED].map(|key| {
        let start = LogStart {
            low: 0,
            high: 0,
            by_time: Some(0),
            first_record_ms: None,
        };
        (key, start)
    });
    stage.worker.handle(Input::Answer(Answer::Starts {
        epoch: stage.worker.questions.epoch(),
        starts: Ok(starts.into()),
    }));
    stage.round();
    assert_eq!(stage.orders[n_orders..], []);
}

#[test]
fn a_silence_does_not_hide_its_explanation() {
    let mut stage = Stage::new();
    let mut check = |message: &str, kind: FaultKind, expected: &str| {
        stage.worker.handle(Input::Fault(fault(message, kind)));
        stage.round();
        assert_eq!(stage.telemetry.waiting_for()[0], expected);
    };
    check("silent", FaultKind::Silence, "silent");
    check("wrong password", FaultKind::Barred, "wrong password");
    check("silent", FaultKind::Silence, "wrong password");
    check("no such topic", FaultKind::Refusal, "no such topic");
    check("silent", FaultKind::Silence, "silent");
}

/// A user without any permission got the two refusals in turn, so each message named half of the fix.
#[test]
fn reports_all_concurrent_refusals() {
    let mut stage = Stage::new();
    let mut reported_after = |message: &str| {
        let input = Input::Fault(fault(message, FaultKind::Refusal));
        stage.worker.handle(input);
        stage.round();
        let mut reported = stage.telemetry.waiting_for();
        assert_eq!(
            reported.pop().as_deref(),
            Some("waiting for the brokers to describe the topics")
        );
        reported
    };
    reported_after("no topic (1)");
    assert_eq!(reported_after("no group (1)"), ["no group (1)", "no topic (1)"]);
    assert_eq!(reported_after("no topic (2)"), ["no group (1)", "no topic (2)"]);
    for other in ["a", "b", "c", "d", "e"] {
        assert!(reported_after(other).len() <= 4, "bounded");
    }
}

#[test]
fn reports_topics_whose_partition_counts_diverge() {
    let mut stage = Stage::owning([0, 0]);
    assert!(
        stage.questions.contains(&Question::Topics),
        "asked again at each assignment"
    );
    let grown = Answer::Topics(Ok(TopicCounts { served: 2, clicks: 1 }));
    stage.worker.handle(Input::Answer(grown));
    stage.round();
    assert!(stage.worker.fatal().is_none(), "what can be read is read");
    assert!(stage.telemetry.waiting_for()[0].contains("`served` has 2 partitions"));
    stage.worker.handle(Input::Answer(Answer::Topics(Ok(TopicCounts {
        served: 2,
        clicks: 2,
    }))));
    stage.round();
    assert_eq!(stage.telemetry.waiting_for(), Vec::<String>::new());
}

/// The counts of keys restarted at zero, and earlier reports were subtracted from them.
#[test]
fn key_counts_continue_when_topics_get_more_partitions() {
    let mut stage = Stage::owning([0, 0]);
    for (n, without_key) in [(2, 5), (4, 2)] {
        let counts = TopicCounts { served: n, clicks: n };
        stage.worker.handle(Input::Answer(Answer::Topics(Ok(counts))));
        let samples = vec![KeySample::NoKey; without_key];
        stage.worker.report.keys(&[samples.clone(), samples]);
        stage.uptime += Duration::from_secs(1);
        stage.round();
    }
    let mut text = Vec::new();
    stage.telemetry.render(&mut text).expect("it can be rendered");
    let text = String::from_utf8(text).expect("UTF-8");
    let expected = "abgauge_key_findings_total{finding=\"null\",topic=\"served\"} 7";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_partition_that_cannot_start_does_not_hold_up_the_others() {
    let mut stage = Stage::new();
    stage.round();
    stage.answer_topics(2, 2);
    stage.assign(&[0, 1], [0, 0]);
    stage.worker.handle(Input::OffsetLost((Side::Served, 1)));
    stage.questions.clear();
    for _ in 0..2 {
        stage.uptime += Duration::from_secs(1);
        stage.round();
        stage.worker.questions.answered();
    }
    let asked = &stage.questions;
    assert!(
        matches!(asked[..], [Question::Starts { .. }, Question::Ends { .. }]),
        "{asked:?}"
    );
}
