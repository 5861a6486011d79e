//! Readers of the whole topic, and deletion of its contents.

use std::collections::BTreeSet;
use std::time::Duration;

use abgauge::clock::{Clock, ClockControl};
use abgauge::store::topic_reader::{Forgotten, TopicReader};
use abgauge_core::journal::{
    Breach, Claim, EndQuestion, Log, LogEvent, LogProgress, RecordKey, Session, SharedBytes,
};

use crate::keeper::script::namespace;
use crate::keeper::topic::{Connection, Faults, Topic};
use crate::keeper::world;

/// Deadline in simulated time.
pub const PATIENCE: Duration = Duration::from_secs(3_600);

/// A log whose clock advances with each poll, so that unanswered questions are asked again.
pub struct Ticking {
    log: Connection,
    clock: Clock,
    hand: ClockControl,
    /// Key that another writer appends after the first append here.
    other: Option<RecordKey>,
}

impl Ticking {
    pub fn reader(topic: &Topic, n_partitions: i32, other: Option<RecordKey>) -> TopicReader<Ticking> {
        let (clock, hand) = Clock::simulated(0);
        let log = Ticking {
            log: topic.connect(clock.clone()),
            clock: clock.clone(),
            hand,
            other,
        };
        TopicReader::new(log, n_partitions, clock)
    }
}

impl Log for Ticking {
    fn follow(&mut self, partition: i32) {
        self.log.follow(partition);
    }

    fn ask(&mut self, partition: i32, question: EndQuestion) {
        self.log.ask(partition, question);
    }

    fn append(&mut self, partition: i32, key: RecordKey, value: Option<SharedBytes>) {
        if let Some(other) = self.other.take() {
            self.log
                .append(partition, other, Some(Claim::default().encode().into()));
        }
        self.log.append(partition, key, value);
    }

    fn poll(&mut self, wait_ms: u64, take: &mut dyn FnMut(LogEvent<'_>)) {
        self.hand.advance_to(self.clock.steady_ms() + 500);
        self.log.poll(wait_ms, take);
    }

    fn progress(&self, partition: i32) -> LogProgress {
        self.log.progress(partition)
    }
}

/// Returns the damage that a reader finds in a pair.
pub fn damage(reader: &TopicReader<Ticking>, namespace: abgauge_core::journal::Namespace) -> Vec<Breach> {
    let all_contents = reader.contents(namespace);
    let breaches = all_contents.flat_map(|(_, namespace_contents)| namespace_contents.breaches());
    breaches.filter(Breach::is_damage).collect()
}

#[test]
fn readers_find_a_complete_topic_at_any_moment() {
    let mut n_read = 0;
    for seed in 0..300 {
        n_read += world::run_with_readers(seed).unwrap_or_else(|violated| panic!("seed {seed}: {violated}"));
    }
    assert!(n_read >= 3_000, "{n_read}");
}

fn claim(unique: u64) -> RecordKey {
    RecordKey::Claim(Session { epoch: 1, unique })
}

/// Creates a topic of two partitions with `n_keys` keys in each.
fn topic(seed: u64, n_keys: u64) -> Topic {
    let faults = Faults {
        late: 0,
        lost: 30,
        forgotten: 0,
        unanswered: 0,
        doubled: 30,
        unheard: 20,
        cleaned: 50,
    };
    let topic = Topic::new(namespace(), 2, seed, faults);
    let mut writer = topic.connect(Clock::system());
    for partition in 0..2 {
        for number in 0..n_keys {
            writer.append(partition, claim(number), Some(Claim::default().encode().into()));
        }
    }
    // A second copy that lands behind a tombstone would be a new record.
    topic.land_all();
    topic
}

#[test]
fn forgotten_pairs_are_gone_even_if_tombstones_are_lost() {
    for seed in 0..100 {
        let topic = topic(seed, 20);
        let before = [0, 1].map(|partition| topic.keys(partition));
        let mut reader = Ticking::reader(&topic, 2, None);
        reader.read(PATIENCE).expect("it is read");
        let forgotten = reader.forget(namespace(), &[0].into(), PATIENCE);
        let expected = Forgotten {
            n_keys: before[0].len(),
            written_again: BTreeSet::new(),
        };
        assert_eq!(forgotten, Ok(expected), "seed {seed}");
        topic.compact();
        assert_eq!(
            [0, 1].map(|partition| topic.keys(partition)),
            [vec![], before[1].clone()]
        );
    }
}

#[test]
fn forgetting_keeps_and_reports_concurrent_writes() {
    let topic = Topic::new(namespace(), 1, 1, Faults::NONE);
    let own = claim(1);
    topic
        .connect(Clock::system())
        .append(0, own, Some(Claim::default().encode().into()));
    let mut reader = Ticking::reader(&topic, 1, Some(claim(2)));
    reader.read(PATIENCE).expect("it is read");
    let forgotten = reader.forget(namespace(), &[0].into(), PATIENCE);
    let expected = Forgotten {
        n_keys: 1,
        written_again: [0].into(),
    };
    assert_eq!(forgotten, Ok(expected));
    assert_eq!(topic.keys(0), [claim(2)]);
}

#[test]
fn reading_gives_up_on_a_topic_that_never_answers() {
    let faults = Faults {
        unheard: 100,
        ..Faults::NONE
    };
    let topic = Topic::new(namespace(), 2, 1, faults);
    let mut reader = Ticking::reader(&topic, 2, None);
    let unread = reader
        .read(Duration::from_secs(30))
        .expect_err("nothing is heard");
    assert_eq!(unread.partitions, [0, 1]);
}
