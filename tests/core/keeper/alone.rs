//! One keeper with one pair and no faults: how much it writes, and how long a leave may take.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use abgauge::clock::{Clock, ClockControl};
use abgauge::store::keeper::{
    self, KeeperHandle, KeeperOrder, KeeperSettings, KeeperWork, Memory, OwnerStatus, Roles, Urgency,
};
use abgauge::store::publications::Publications;
use abgauge_core::journal::{Header, Log as _};

use crate::keeper::topic::{Connection, Faults, Topic};
use crate::keeper::world::{namespace, settings};
use crate::state::pair::Pair;

struct Alone {
    topic: Topic,
    hand: ClockControl,
    clock: Clock,
    work: KeeperWork<Connection>,
    handle: KeeperHandle,
    orders: Receiver<(i32, KeeperOrder)>,
    incarnation: Option<Memory>,
}

fn header(read_position: i64) -> Header {
    let mut header = Pair::begin(&[]).account().header();
    header.reaches[0].read_position = read_position;
    header
}

fn roles(number: i64) -> Roles {
    let bytes: Vec<u8> = (0..5_000_i64).map(|at| (at * number) as u8).collect();
    BTreeMap::from([("totals".into(), bytes.into())])
}

impl Alone {
    fn new(settings: KeeperSettings) -> Alone {
        let topic = Topic::new(namespace(), 1, 1, Faults::NONE);
        let (clock, hand) = Clock::simulated(1_000_000);
        let (work, handle, orders) =
            keeper::work(topic.connect(clock.clone()), settings, None, clock.clone());
        handle.assigned(0);
        let mut alone = Alone {
            topic,
            hand,
            clock,
            work,
            handle,
            orders,
            incarnation: None,
        };
        match alone.order(1_000) {
            Some(KeeperOrder::Begin { incarnation }) => alone.incarnation = Some(incarnation),
            other => panic!("{other:?}"),
        }
        alone
    }

    fn pass(&mut self, ms: i64) {
        self.hand.advance_to(self.clock.lasting_ms() + ms);
        assert!(self.work.round(0));
    }

    /// Waits up to `ms` for the next order.
    fn order(&mut self, ms: i64) -> Option<KeeperOrder> {
        for _ in 0..ms / 10 {
            self.pass(10);
            if let Ok((_, order)) = self.orders.try_recv() {
                return Some(order);
            }
        }
        None
    }

    /// Runs for `seconds` and returns the bytes written, with a worker that offers whenever a state is wanted.
    fn written(&mut self, seconds: i64, state: impl Fn(i64) -> (Header, Roles)) -> u64 {
        let before = self.handle.status(0).n_bytes_written;
        let until_ms = self.clock.lasting_ms() + seconds * 1_000;
        for number in 0.. {
            self.pass(10);
            if self.clock.lasting_ms() >= until_ms {
                break;
            }
            if self.handle.wants(0) == Urgency::AtOnce {
                let (header, roles) = state(number);
                self.handle
                    .offer(0, self.incarnation.expect("it has begun"), header, roles);
            }
        }
        self.handle.status(0).n_bytes_written - before
    }
}

#[test]
fn a_changing_state_is_sealed_at_each_interval() {
    let mut alone = Alone::new(settings(1));
    alone.written(100, |number| (header(number), roles(number)));
    let n_sealed = alone.handle.status(0).n_sealed;
    assert!((45..=51).contains(&n_sealed), "{n_sealed} in 100 s, every 2 s");
}

#[test]
fn writes_of_an_instance_stay_within_the_bound() {
    let bound = 1_000;
    let mut alone = Alone::new(KeeperSettings {
        max_bytes_per_second: bound,
        ..settings(1)
    });
    let n_bytes = alone.written(1_000, |number| (header(number), roles(number)));
    // One seal may be written ahead of the budget.
    assert!((900_000..=1_007_000).contains(&n_bytes), "{n_bytes}");
}

#[test]
fn an_unchanged_state_is_written_once() {
    let mut alone = Alone::new(settings(1));
    alone.written(10, |_| (header(7), roles(7)));
    assert_eq!(alone.written(100, |_| (header(7), roles(7))), 0);
}

#[test]
fn a_leaving_pair_is_released_once_its_last_state_is_in_force() {
    let mut alone = Alone::new(settings(1));
    alone.written(10, |number| (header(number), roles(number)));
    while alone.orders.try_recv().is_ok() {}
    let last = (
        alone.incarnation.expect("it has begun"),
        header(1 << 40),
        roles(3),
    );
    let offer = alone.handle.leave(0, Some(last)).expect("there is one");
    assert_eq!(alone.order(1_000), Some(KeeperOrder::Show { offer }));
    assert_eq!(alone.order(1_000), Some(KeeperOrder::Left));
    assert_eq!(alone.handle.status(0).standing, OwnerStatus::Away);
}

#[test]
fn a_pair_is_released_in_time_if_its_topic_does_not_answer() {
    let mut alone = Alone::new(settings(1));
    alone.written(10, |number| (header(number), roles(number)));
    while alone.orders.try_recv().is_ok() {}
    alone.topic.lose_what_is_sent();
    let last = (
        alone.incarnation.expect("it has begun"),
        header(1 << 40),
        roles(3),
    );
    alone.handle.leave(0, Some(last));
    assert_eq!(alone.order(1_900), None);
    assert_eq!(alone.order(200), Some(KeeperOrder::Left));
}

#[test]
fn a_revoked_pair_may_leave() {
    let mut alone = Alone::new(settings(1));
    while alone.orders.try_recv().is_ok() {}
    alone.handle.revoked(0);
    alone.handle.leave(0, None);
    assert_eq!(alone.order(1_000), Some(KeeperOrder::Left));
}

/// A restore that reads far more than the live bytes shows that the topic is not cleaned.
#[test]
fn the_first_read_of_a_partition_counts_as_read_to_restore_its_pair() {
    let mut first = Alone::new(settings(1));
    first.written(10, |number| (header(number), roles(number)));
    // Another process follows the pair for its onlooker, before the group assigns the pair to it.
    let clock = first.clock.clone();
    let publications = Publications::new(15_000, clock.clone());
    let log = first.topic.connect(clock.clone());
    let (mut work, handle, _orders) =
        keeper::work(log, settings(2), Some(publications.clone()), clock.clone());
    while publications.next(true).is_none() {
        first.pass(10);
        assert!(work.round(0));
    }
    let n_bytes_first = work.log().progress(0).n_bytes;
    first.written(10, |number| (header(1 << 30 | number), roles(number)));
    while publications.next(true).is_none() {
        first.pass(10);
        assert!(work.round(0));
    }
    handle.assigned(0);
    let restored = loop {
        first.pass(10);
        assert!(work.round(0));
        if let Some(restored) = handle.status(0).restored {
            break restored;
        }
    };
    assert!(
        restored.n_bytes_read >= n_bytes_first,
        "{restored:?}, {n_bytes_first}"
    );
    let n_bytes = handle.status(0).progress.n_bytes;
    assert!(restored.n_bytes_read < n_bytes, "{restored:?}, {n_bytes}");
}
