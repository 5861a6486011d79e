//! Where pairs are stored: what is waited for before anything is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Receiver;

use super::{Answer, Clock, Input, Order, Side, Stage, T0, TopicCounts};
use crate::clock::Hand;
use crate::keeper::{self, Handle};
use crate::ledger::PairId;
use crate::state::{self, Bytes, Claim, Happening, Identity, Key, Log, Namespace, Progress};

/// A state topic that takes and answers everything at once.
struct Obliging {
    namespace: Namespace,
    written: Vec<(i32, Key, Option<Bytes>)>,
    asked: BTreeMap<i32, state::Question>,
}

impl Log for Obliging {
    fn follow(&mut self, _: i32) {}

    fn ask(&mut self, partition: i32, question: state::Question) {
        self.asked.insert(partition, question);
    }

    fn append(&mut self, partition: i32, key: Key, value: Option<Bytes>) {
        self.written.push((partition, key, value));
    }

    fn poll(&mut self, _: u64, take: &mut dyn FnMut(Happening<'_>)) {
        for (partition, key, value) in self.written.drain(..) {
            take(Happening::Record {
                partition,
                key: key.text(self.namespace).as_bytes(),
                value: value.as_deref(),
                written_ms: None,
            });
            take(Happening::Acknowledged { partition, key });
        }
        for (partition, question) in std::mem::take(&mut self.asked) {
            take(Happening::End { partition, question });
        }
    }

    fn progress(&self, _: i32) -> Progress {
        Progress::default()
    }
}

/// The thread of the keeper, and what it has ordered.
struct Keeper {
    work: keeper::Work<Obliging>,
    orders: Receiver<(PairId, keeper::Order)>,
    hand: Hand,
    now_ms: i64,
}

impl Keeper {
    fn new(identity: &Identity) -> (Keeper, Handle) {
        let namespace = Namespace::of(&identity.fingerprint, "abgauge");
        let log = Obliging {
            namespace,
            written: Vec::new(),
            asked: BTreeMap::new(),
        };
        let (clock, hand) = Clock::simulated(T0);
        let (work, handle, orders) = keeper::work(log, settings(identity), clock);
        let keeper = Keeper {
            work,
            orders,
            hand,
            now_ms: T0,
        };
        (keeper, handle)
    }

    /// For a second.
    fn run(&mut self, stage: &mut Stage) {
        for _ in 0..10 {
            self.now_ms += 100;
            self.hand.advance_to(self.now_ms);
            self.work.round(0);
            for (pair, order) in self.orders.try_iter() {
                stage.worker.handle(Input::Kept(pair, order));
            }
        }
        stage.round();
    }
}

fn settings(identity: &Identity) -> keeper::Settings {
    keeper::Settings {
        owner: state::Settings {
            namespace: Namespace::of(&identity.fingerprint, "abgauge"),
            identity: identity.clone(),
            claim: Claim::default(),
            answer_ms: 5_000,
            lease_ms: 15_000,
            still_ms: 5_000,
        },
        interval_ms: 10_000,
        max_bytes_per_second: 1 << 20,
        seed: 1,
        leave_ms: 3_000,
        has_read: false,
    }
}

/// A worker of two pairs whose keeper is there.
fn kept() -> (Stage, Keeper) {
    let mut stage = Stage::with(&[("STATE__TOPIC", "kept")]);
    stage.round();
    stage.answer_topics(2, 2);
    let [Order::Keep(identity)] = &stage.orders[..] else {
        panic!("{:?}", stage.orders);
    };
    assert_eq!(
        stage.telemetry.waiting_for(),
        ["the brokers' answer about the state topic"]
    );
    let identity = identity.clone();
    let (keeper, handle) = Keeper::new(&identity);
    stage.worker.handle(Input::Keeper(handle, identity));
    stage.round();
    (stage, keeper)
}

#[test]
fn the_group_is_joined_once_it_is_known_that_state_can_be_stored() {
    assert_eq!(kept().0.orders[1..], [Order::Subscribe]);
}

/// Keys of new records lie elsewhere than those of which something is stored.
#[test]
fn topics_that_get_more_partitions_end_the_program_with_a_remedy() {
    let (mut stage, _keeper) = kept();
    let grown = TopicCounts { served: 2, clicks: 3 };
    stage.worker.handle(Input::Answer(Answer::Topics(Ok(grown))));
    let told = stage.worker.fatal().map(|fault| &*fault.message);
    let told = told.expect("it cannot go on");
    for part in [
        "`clicks` has 3 partitions now, and what is stored is of 2",
        "state.topic",
    ] {
        assert!(told.contains(part), "{told}");
    }
}

/// Its memory is empty then, and gone. The keeper took it for what is to be gone on with, and ordered nothing more.
#[test]
fn a_pair_that_was_revoked_before_it_was_located_begins_when_it_comes_back() {
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
