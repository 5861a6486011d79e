//! Where pairs are stored: what is waited for before anything is read.

use super::{Answer, Clock, Input, Order, Stage, T0, TopicCounts};
use crate::keeper::{self, Handle};
use crate::state::{self, Bytes, Claim, Happening, Identity, Key, Log, Namespace, Progress};

/// A state topic of which nothing is heard.
struct Silent;

impl Log for Silent {
    fn follow(&mut self, _: i32) {}
    fn ask(&mut self, _: i32, _: state::Question) {}
    fn append(&mut self, _: i32, _: Key, _: Option<Bytes>) {}
    fn poll(&mut self, _: u64, _: &mut dyn FnMut(Happening<'_>)) {}
    fn progress(&self, _: i32) -> Progress {
        Progress::default()
    }
}

fn handle(identity: &Identity) -> Handle {
    let settings = keeper::Settings {
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
    };
    keeper::work(Silent, settings, Clock::simulated(T0).0).1
}

/// A worker of two pairs whose keeper is there.
fn kept() -> Stage {
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
    let (identity, handle) = (identity.clone(), handle(identity));
    stage.worker.handle(Input::Keeper(handle, identity));
    stage.round();
    stage
}

#[test]
fn the_group_is_joined_once_it_is_known_that_state_can_be_stored() {
    assert_eq!(kept().orders[1..], [Order::Subscribe]);
}

/// Keys of new records lie elsewhere than those of which something is stored.
#[test]
fn topics_that_get_more_partitions_end_the_program_with_a_remedy() {
    let mut stage = kept();
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
