//! Stored pairs: which answers the worker waits for before it reads, how far it reads, and what may be shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use abgauge_core::journal::{
    self, Claim, Log, LogEvent, LogIdentity, LogProgress, Namespace, PartitionEvent, RecordKey, SharedBytes,
};
use abgauge_core::ledger::PairId;

use super::{Answer, CLICKED, Clock, Input, Order, Question, SERVED, Side, Stage, T0, TopicCounts, View};
use crate::clock::ClockControl;
use crate::store::keeper::{self, KeeperHandle};

type Append = (i32, RecordKey, Option<SharedBytes>);

/// A state topic that takes and answers everything at once.
struct Obliging {
    namespace: Namespace,
    /// Accepts no appends now.
    is_full: bool,
    written: Vec<Append>,
    /// Everything written before.
    history: Vec<Append>,
    asked: BTreeMap<i32, journal::EndQuestion>,
}

impl Log for Obliging {
    fn follow(&mut self, _: i32) {}

    fn ask(&mut self, partition: i32, question: journal::EndQuestion) {
        self.asked.insert(partition, question);
    }

    fn append(&mut self, partition: i32, key: RecordKey, value: Option<SharedBytes>) {
        if !self.is_full {
            self.written.push((partition, key, value));
        }
    }

    fn poll(&mut self, _: u64, take: &mut dyn FnMut(LogEvent<'_>)) {
        for (partition, key, value) in self.written.drain(..) {
            self.history.push((partition, key, value.clone()));
            let text = key.text(self.namespace);
            let record = PartitionEvent::Record {
                offset: 0,
                key: text.as_bytes(),
                value: value.as_deref(),
                written_ms: None,
            };
            take(LogEvent::Partition(partition, record));
            take(LogEvent::Partition(partition, PartitionEvent::Acknowledged(key)));
        }
        for (partition, question) in std::mem::take(&mut self.asked) {
            take(LogEvent::Partition(partition, PartitionEvent::End(question)));
        }
    }

    fn progress(&self, _: i32) -> LogProgress {
        LogProgress::default()
    }
}

/// The thread of the keeper, and its orders.
struct Keeper {
    work: keeper::KeeperWork<Obliging>,
    orders: Receiver<(PairId, keeper::KeeperOrder)>,
    handle: KeeperHandle,
    hand: ClockControl,
    now_ms: i64,
}

impl Keeper {
    fn new(identity: &LogIdentity, seed: u64) -> (Keeper, KeeperHandle) {
        let namespace = Namespace::of(&identity.fingerprint, "abgauge");
        let log = Obliging {
            namespace,
            is_full: false,
            written: Vec::new(),
            history: Vec::new(),
            asked: BTreeMap::new(),
        };
        let (clock, hand) = Clock::simulated(T0);
        let (work, handle, orders) = keeper::work(log, settings(identity, seed), None, clock);
        let keeper = Keeper {
            work,
            orders,
            handle: handle.clone(),
            hand,
            now_ms: T0,
        };
        (keeper, handle)
    }

    /// Runs for a second.
    fn run(&mut self, stage: &mut Stage) {
        for _ in 0..10 {
            self.work_for(100);
            self.hand_over(stage);
        }
        stage.round();
    }

    fn work_for(&mut self, ms: i64) {
        self.now_ms += ms;
        self.hand.advance_to(self.now_ms);
        self.work.round(0);
    }

    /// Hands over all orders so far.
    fn hand_over(&mut self, stage: &mut Stage) {
        for (pair, order) in self.orders.try_iter() {
            stage.worker.handle(Input::Kept(pair, order));
        }
    }

    /// Returns everything written to the topic.
    fn history(&mut self) -> Vec<Append> {
        self.work.log().history.clone()
    }
}

fn settings(identity: &LogIdentity, seed: u64) -> keeper::KeeperSettings {
    keeper::KeeperSettings {
        owner: journal::OwnerSettings {
            namespace: Namespace::of(&identity.fingerprint, "abgauge"),
            identity: identity.clone(),
            claim: Claim::default(),
            answer_ms: 5_000,
            lease_ms: 15_000,
            still_ms: 5_000,
        },
        interval_ms: 10_000,
        max_bytes_per_second: 1 << 20,
        seed,
        leave_ms: 3_000,
        has_read: false,
    }
}

/// A worker of two pairs whose keeper is there.
fn kept() -> (Stage, Keeper) {
    kept_with(1, &[])
}

/// The same of this seed, with further settings.
fn kept_with(seed: u64, more: &[(&str, &str)]) -> (Stage, Keeper) {
    let settings: Vec<_> = [("STATE__TOPIC", "kept")].iter().chain(more).copied().collect();
    let mut stage = Stage::with(&settings);
    stage.round();
    stage.answer_topics(2, 2);
    let [Order::Keep(identity)] = &stage.orders[..] else {
        panic!("{:?}", stage.orders);
    };
    assert_eq!(
        stage.telemetry.waiting_for(),
        ["waiting for the brokers to describe the state topic"]
    );
    let identity = identity.clone();
    let (keeper, handle) = Keeper::new(&identity, seed);
    stage.worker.handle(Input::Keeper(handle, identity));
    stage.round();
    (stage, keeper)
}

#[test]
fn joins_the_group_once_state_can_be_stored() {
    assert_eq!(kept().0.orders[1..], [Order::Subscribe]);
}

/// New records have their keys in other partitions than the stored ones.
#[test]
fn topics_that_get_more_partitions_end_the_program_with_a_remedy() {
    let (mut stage, _keeper) = kept();
    let grown = TopicCounts { served: 2, clicks: 3 };
    stage.worker.handle(Input::Answer(Answer::Topics(Ok(grown))));
    let reported = stage.worker.fatal().map(|fault| &*fault.message);
    let reported = reported.expect("it cannot go on");
    for part in [
        "`clicks` now has 3 partitions, but the stored state has 2",
        "state.topic",
    ] {
        assert!(reported.contains(part), "{reported}");
    }
}

/// Its memory is empty then, and gone. The keeper assumed that it would be resumed, and gave no further orders.
#[test]
fn a_pair_revoked_before_it_was_located_starts_when_it_returns() {
    let (mut stage, mut keeper) = kept();
    let both: Vec<_> = Side::BOTH.map(|side| (side, 1)).to_vec();
    for _ in 0..2 {
        stage.worker.handle(Input::Assigned(both.clone()));
        assert_eq!(stage.worker.shards.locating(), BTreeSet::new());
        keeper.run(&mut stage);
        assert_eq!(stage.worker.shards.locating(), BTreeSet::from([1]));
        stage.worker.handle(Input::Revoked);
        keeper.run(&mut stage);
    }
}

/// The stored state of one pair may be read a moment before the others.
#[test]
fn a_restored_pair_is_located_without_waiting_for_others() {
    let (mut stage, mut keeper) = kept();
    let given = [0, 1].map(|pair| Side::BOTH.map(|side| (side, pair))).concat();
    stage.ends.extend(given.iter().map(|partition| (*partition, 0)));
    stage.worker.handle(Input::Assigned(given));
    (0..10).for_each(|_| keeper.work_for(100));
    let (first, others): (Vec<_>, Vec<_>) = keeper.orders.try_iter().partition(|(pair, _)| *pair == 0);
    let mut obey = |orders: Vec<(PairId, keeper::KeeperOrder)>| {
        for (pair, order) in orders {
            stage.worker.handle(Input::Kept(pair, order));
        }
        stage.questions.clear();
        stage.round();
        stage.answer_starts();
        stage.worker.shards.locating()
    };
    assert_eq!(obey(first), BTreeSet::new());
    assert_eq!(obey(others), BTreeSet::new());
    assert_eq!(stage.worker.shards.pairs().count(), 2, "both are read");
}

/// Makes it own partition 0, whose logs have `n_records` records.
fn own(stage: &mut Stage, keeper: &mut Keeper, n_records: i64) {
    let given: Vec<_> = Side::BOTH.map(|side| (side, 0)).to_vec();
    stage
        .ends
        .extend(given.iter().map(|partition| (*partition, n_records)));
    stage.worker.handle(Input::Assigned(given));
    keeper.run(stage);
    stage.uptime += Duration::from_secs(1);
    stage.round();
    stage.answer_starts();
    keeper.run(stage);
}

/// A list and a click each second.
fn traffic(stage: &mut Stage, keeper: &mut Keeper, seconds: std::ops::Range<i64>) {
    for n in seconds {
        let ts_ms = T0 + 1_000 * n;
        stage.list(0, n, &format!("r-{n}"), ts_ms);
        stage.click(0, n, &format!("r-{n}"), ts_ms + 10);
        stage.pass(1_000);
        keeper.run(stage);
    }
}

/// Lets this many seconds pass.
fn idle(stage: &mut Stage, keeper: &mut Keeper, seconds: i64) {
    for _ in 0..seconds {
        stage.pass(1_000);
        keeper.run(stage);
    }
}

/// Returns the pauses and resumptions ordered since the last call.
fn flows(stage: &mut Stage) -> Vec<Order> {
    let orders = stage.orders.drain(..);
    let flows = orders.filter(|order| matches!(order, Order::Pause(_) | Order::Resume(_)));
    flows.collect()
}

/// The warning that a pair is not read on.
fn reported_waiting(stage: &Stage) -> Option<String> {
    let warnings = stage.telemetry.warnings().into_iter();
    let mut messages = warnings.map(|warning| warning.message);
    messages.find(|message| message.contains("reading of partition"))
}

#[test]
fn a_pair_paused_for_unstored_data_resumes_once_it_is_stored() {
    let (mut stage, mut keeper) = kept_with(1, &[("LIMITS__MAX_STATE", "1MiB")]);
    own(&mut stage, &mut keeper, 0);
    traffic(&mut stage, &mut keeper, 0..30);
    let before = stage.total(View::Settled);
    assert!(before.0 > 0, "{before:?}");
    assert_eq!(flows(&mut stage), []);

    keeper.work.log().is_full = true;
    let n_read = (30..2_000).find(|n| {
        traffic(&mut stage, &mut keeper, *n..n + 1);
        stage.orders.contains(&Order::Pause(CLICKED))
    });
    let n_read = n_read.expect("it grows without a bound");
    assert_eq!(flows(&mut stage), [Order::Pause(SERVED), Order::Pause(CLICKED)]);
    // A slot takes some 400 bytes, and all of them an eighth of the bound on state.
    assert!((200..800).contains(&n_read), "after {n_read} lists");
    let after = stage.total(View::Settled);
    assert!(after.0 < 30, "what is not stored is not shown: {after:?}");
    idle(&mut stage, &mut keeper, 60);
    assert_eq!(flows(&mut stage), [], "as long as nothing is stored");
    let reported = reported_waiting(&stage).expect("it is told");
    for part in [
        "partition 0 ",
        "0.1 MB",
        "state topic `kept`",
        "abgauge check --connect",
    ] {
        assert!(reported.contains(part), "{reported}");
    }

    keeper.work.log().is_full = false;
    idle(&mut stage, &mut keeper, 20);
    assert_eq!(flows(&mut stage), [Order::Resume(SERVED), Order::Resume(CLICKED)]);
    assert!(i64::try_from(stage.total(View::Settled).0).expect("they are few") > n_read - 20);
    assert_eq!(reported_waiting(&stage), None);
}

/// Between the order to make memory again and the round in which the worker obeys, the board has the earlier settled numbers.
#[test]
fn hides_settled_numbers_until_an_order_to_restore_is_obeyed() {
    let (mut stage, mut keeper) = kept();
    own(&mut stage, &mut keeper, 0);
    traffic(&mut stage, &mut keeper, 0..30);
    idle(&mut stage, &mut keeper, 1);
    let before = stage.total(View::Settled);
    assert!(before.0 > 0, "{before:?}");

    // Another instance resumes from there, and stores more.
    let (mut other, mut others) = kept_with(2, &[]);
    others.work.log().written = keeper.history();
    own(&mut other, &mut others, 30);
    traffic(&mut other, &mut others, 0..60);
    idle(&mut other, &mut others, 1);
    let more = other.total(View::Settled);
    assert!(more > before, "{more:?} after {before:?}");

    // The group gives the pair back, without a word of it in between.
    let n_known = keeper.history().len();
    keeper.work.log().written = others.history().split_off(n_known);
    stage.questions.clear();
    keeper.run(&mut stage);
    answer_commit(&mut stage, true);
    let handle = keeper.handle.clone();
    let is_there = |keeper: &mut Keeper| {
        keeper.work_for(100);
        let showing = handle.showing(0).expect("it was assigned");
        showing.shown(keeper.now_ms).settled.is_some()
    };
    assert!(
        (0..50).any(|_| is_there(&mut keeper)),
        "the owner goes on from what the other has stored"
    );
    for _ in 0..30 {
        stage.pass(1_000);
        (0..10).for_each(|_| keeper.work_for(100));
    }
    assert_eq!(
        stage.total(View::Settled),
        (0, 0),
        "the worker has not heard of it"
    );
    keeper.hand_over(&mut stage);
    stage.round();
    assert_eq!(stage.total(View::Settled), more);
}

/// A client that misses its own expulsion would leave its instance without partitions until a restart.
#[test]
fn an_expelled_member_whose_client_does_not_notice_joins_the_group_again() {
    let (mut stage, mut keeper) = kept();
    own(&mut stage, &mut keeper, 0);
    traffic(&mut stage, &mut keeper, 0..30);
    idle(&mut stage, &mut keeper, 1);
    let (mut other, mut others) = kept_with(2, &[]);
    others.work.log().written = keeper.history();
    own(&mut other, &mut others, 30);
    let n_known = keeper.history().len();
    keeper.work.log().written = others.history().split_off(n_known);
    stage.questions.clear();
    keeper.run(&mut stage);
    answer_commit(&mut stage, false);

    let mut rejoins = |n_seconds: usize| {
        let mut orders = Vec::new();
        for _ in 0..n_seconds {
            stage.pass(1_000);
            orders.append(&mut stage.orders);
        }
        orders.contains(&Order::Rejoin)
    };
    assert!(!rejoins(25), "its heartbeats may still be answered");
    assert!(rejoins(10));
}

/// Answers whether the group knows this member.
#[track_caller]
fn answer_commit(stage: &mut Stage, is_known: bool) {
    let asked = stage.questions.iter().find_map(|question| match question {
        Question::Commit { epoch, number, .. } => Some((*epoch, *number)),
        _ => None,
    });
    let (epoch, number) = asked.expect("it asks the group");
    stage.worker.handle(Input::Answer(Answer::Commit {
        epoch,
        pair: 0,
        number,
        is_known: Some(is_known),
    }));
}
