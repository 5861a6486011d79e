//! The global view of all pairs, on a log in memory and states of real pairs.

use std::collections::BTreeMap;
use std::time::Duration;

use abgauge_core::engine::View;
use abgauge_core::engine::event::Side;
use abgauge_core::journal::{
    BlobId, Claim, CountedTopic, EndQuestion, Entry, Log, LogEvent, LogIdentity, LogProgress, Namespace,
    OwnerSettings, PartitionEvent, RecordKey, Seal, SealId, Session, SharedBytes,
};
use abgauge_core::metrics::{LISTS, Ranking};
use xxhash_rust::xxh3::xxh3_128;

use super::*;
use crate::board::Board;
use crate::board::snapshot::SnapshotSource as _;
use crate::board::tests::{T0, config, read, tracker};
use crate::clock::ClockControl;
use crate::settings::{Config, StateTopic};
use crate::store::keeper::{self, KeeperHandle, KeeperSettings, KeeperWork, OwnerStatus};
use crate::store::stored::{codec, keep};

const LEASE_MS: i64 = 15_000;

fn namespace() -> Namespace {
    Namespace::of("fingerprint", "group")
}

fn identity(n_partitions: usize) -> LogIdentity {
    LogIdentity {
        fingerprint: "fingerprint".to_owned(),
        topics: vec![CountedTopic {
            name: "served".to_owned(),
            id: 0,
        }],
        n_partitions: n_partitions as u32,
    }
}

/// A partition: its records, the number of them that were read, and the pending question.
#[derive(Default)]
struct Partition {
    records: Vec<(String, Vec<u8>)>,
    n_read: usize,
    asked: Option<EndQuestion>,
}

/// A log whose records are read at once, and whose answers can be switched off.
struct Memory {
    partitions: Vec<Partition>,
    followed: Vec<i32>,
    answers: bool,
}

impl Log for Memory {
    fn follow(&mut self, partition: i32) {
        self.followed.push(partition);
    }

    fn ask(&mut self, partition: i32, question: EndQuestion) {
        self.partitions[partition as usize].asked = Some(question);
    }

    fn append(&mut self, partition: i32, key: RecordKey, value: Option<SharedBytes>) {
        let value = value.expect("there is nothing to delete");
        let record = (key.text(namespace()), value.to_vec());
        self.partitions[partition as usize].records.push(record);
    }

    fn poll(&mut self, _: u64, take: &mut dyn FnMut(LogEvent<'_>)) {
        for (of, partition) in self.partitions.iter_mut().zip(0..) {
            for (key, value) in &of.records[of.n_read..] {
                let record = PartitionEvent::Record {
                    offset: 0,
                    key: key.as_bytes(),
                    value: Some(value),
                    written_ms: None,
                };
                take(LogEvent::Partition(partition, record));
            }
            of.n_read = of.records.len();
            if let Some(question) = of.asked.take_if(|_| self.answers) {
                take(LogEvent::Partition(partition, PartitionEvent::End(question)));
            }
        }
    }

    fn progress(&self, _: i32) -> LogProgress {
        LogProgress::default()
    }
}

struct World {
    config: Config,
    keeper: KeeperWork<Memory>,
    worker: KeeperHandle,
    view: GlobalWork,
    handle: Publications,
    whole: Arc<GlobalBoard>,
    clock: Clock,
    hand: ClockControl,
    looks: Arc<Inbox>,
}

impl World {
    fn new(n_partitions: usize) -> World {
        let mut config = config(&[]);
        config.kafka.clicks_topic = config.kafka.served_topic.clone();
        config.state = Some(StateTopic {
            topic: "state".to_owned(),
            interval: Duration::from_secs(10),
            max_bytes_per_second: 1 << 20,
        });
        let (clock, hand) = Clock::simulated(T0 + 3_600_000);
        let board = Board::new(&config, &Ranking::new(&config.measures));
        let handle = Publications::new(LEASE_MS, clock.clone());
        let whole = Arc::new(GlobalBoard::new(board, handle.clone(), 0, clock.clone()));
        let log = Memory {
            partitions: (0..n_partitions).map(|_| Partition::default()).collect(),
            followed: Vec::new(),
            answers: true,
        };
        let settings = KeeperSettings {
            owner: OwnerSettings {
                namespace: namespace(),
                identity: identity(n_partitions),
                claim: Claim::default(),
                answer_ms: 5_000,
                lease_ms: LEASE_MS,
                still_ms: 5_000,
            },
            interval_ms: 10_000,
            max_bytes_per_second: 1 << 20,
            seed: 1,
            leave_ms: 3_000,
            has_read: false,
        };
        let (keeper, worker, _) = keeper::work(log, settings, Some(handle.clone()), clock.clone());
        let looks = Arc::new(Inbox::default());
        let view = GlobalWork::new(Sources {
            publications: handle.clone(),
            decoder: PairDecoder::new(&config),
            board: Arc::clone(&whole),
            looks: Some(Arc::clone(&looks)),
            clock: clock.clone(),
        });
        World {
            whole,
            config,
            keeper,
            worker,
            view,
            handle,
            clock,
            hand,
            looks,
        }
    }

    /// Lets a second pass, and shows the states that are current by then.
    fn second(&mut self) {
        self.hand.advance_to(self.clock.now_ms() + 1_000);
        for _ in 0..10 {
            self.round();
        }
    }

    fn round(&mut self) {
        assert!(self.keeper.round(0));
        self.view.show_next();
    }

    fn put(&mut self, partition: usize, key: RecordKey, value: Vec<u8>) {
        let record = (key.text(namespace()), value);
        self.keeper.log().partitions[partition].records.push(record);
    }

    fn claim(&mut self, partition: usize, epoch: u64) {
        let session = Session { epoch, unique: 5 };
        self.put(partition, RecordKey::Claim(session), Claim::default().encode());
    }

    /// Seals `n_lists` settled lists, the last of them at this second; `lacks` omits its blobs.
    fn seal(&mut self, partition: usize, epoch: u64, n_lists: usize, was_caught_up: bool, lacks: bool) {
        let (ranking, keep) = (Ranking::new(&self.config.measures), keep(&self.config));
        let mut tracker = tracker(ranking, None, &keep);
        let mut lists: Vec<(&str, i64)> = (0..n_lists).map(|n| ("a", n as i64 * 1_000)).collect();
        lists.push(("a", (n_lists as i64 + 100) * 1_000));
        read(&mut tracker, 0, &lists, &[]);
        let checkpoint = tracker.checkpoint(&[(Side::Served, lists.len() as i64)]);
        let checkpoint = checkpoint.expect("it replays nothing");
        let identity = identity(2);
        let parts = tracker.encode_ledger();
        let (header, roles) = codec::stored(&checkpoint, parts, 7, None, &identity, was_caught_up);
        let mut table = BTreeMap::new();
        for ((role, bytes), place) in roles.into_iter().zip(0..) {
            let blob = BlobId {
                unique: epoch * 1_000 + n_lists as u64,
                number: place,
            };
            let entry = Entry {
                blob,
                length: bytes.len() as u64,
                hash: xxh3_128(&bytes),
            };
            if !lacks {
                self.put(partition, RecordKey::Blob(blob), bytes.to_vec());
            }
            table.insert(role, vec![entry]);
        }
        let id = SealId {
            session: Session { epoch, unique: 5 },
            number: n_lists as u64,
        };
        self.put(partition, RecordKey::Seal(id), Seal::new(header, table).encode());
    }

    fn sealed(&mut self, partition: usize, epoch: u64, n_lists: usize) {
        self.seal(partition, epoch, n_lists, true, false);
    }

    /// Returns the settled lists of all partitions since the start.
    fn total(&self) -> Option<i128> {
        let snapshot = self.whole.snapshot(None);
        let arm = snapshot.arms.first()?;
        assert_eq!(arm.sums(View::Live, 2)[LISTS], 0, "live is of each instance");
        Some(arm.sums(View::Settled, 2)[LISTS])
    }
}

#[test]
fn shows_nothing_until_every_partition_has_a_current_state() {
    let mut world = World::new(2);
    let early = Publications::new(LEASE_MS, world.clock.clone());
    let why = early.unavailable().expect_err("the keeper has not started");
    assert_eq!(why, "the number of partitions is not known yet");
    world.sealed(0, 1, 3);
    // Somebody has just taken over the other.
    world.sealed(1, 1, 2);
    world.claim(1, 2);
    world.second();
    assert_eq!(world.total(), None);
    let why = world.handle.unavailable().expect_err("one is missing");
    assert_eq!(why, "the state of 1 partition is still being read");
    world.sealed(1, 2, 4);
    world.second();
    assert_eq!(world.total(), Some(7));
    assert_eq!(world.handle.unavailable(), Ok(()));
}

#[test]
fn a_state_replaces_the_previous_one_and_stays_while_its_owner_is_gone() {
    let mut world = World::new(2);
    (0..2).for_each(|partition| world.sealed(partition, 1, 3));
    world.second();
    assert_eq!(world.total(), Some(6));
    let before = world.handle.frontiers_ms();
    world.sealed(0, 1, 10);
    world.claim(1, 2);
    world.second();
    assert_eq!(world.total(), Some(13));
    let now = world.handle.frontiers_ms();
    assert!(now[0].1 > before[0].1, "{now:?} after {before:?}");
    assert_eq!(now[1], before[1], "nobody has sealed it since");
    world.sealed(1, 2, 5);
    world.second();
    assert_eq!(world.total(), Some(15));
}

#[test]
fn withholds_everything_while_ends_are_older_than_the_lease() {
    let mut world = World::new(2);
    (0..2).for_each(|partition| world.sealed(partition, 1, 3));
    world.second();
    world.keeper.log().answers = false;
    for _ in 0..14 {
        world.second();
    }
    assert_eq!(world.total(), Some(6), "the last ends are 14 s old");
    (0..3).for_each(|_| world.second());
    assert_eq!(world.total(), None);
    let why = world.handle.unavailable().expect_err("nobody answers");
    assert!(why.starts_with("the state was last read to its end"), "{why}");
    // The thread itself may stall: scrapes compare with the clock.
    world.keeper.log().answers = true;
    (0..10).for_each(|_| world.second());
    assert_eq!(world.total(), Some(6));
    world.hand.advance_to(world.clock.now_ms() + LEASE_MS + 2_000);
    assert_eq!(world.total(), None);
}

#[test]
fn reports_an_incomplete_state_and_keeps_the_last_one() {
    let mut world = World::new(1);
    world.sealed(0, 1, 3);
    world.second();
    world.seal(0, 1, 4, true, true);
    world.second();
    assert_eq!(world.total(), Some(3));
    let fault = world.handle.fault_in_words().expect("a blob is missing");
    assert!(
        fault.starts_with("the stored state of partition 0 cannot be shown: "),
        "{fault}"
    );
    world.sealed(0, 1, 5);
    world.second();
    assert_eq!((world.total(), world.handle.fault_in_words()), (Some(5), None));
}

#[test]
fn a_pair_that_never_caught_up_is_in_no_view() {
    let mut world = World::new(2);
    world.sealed(0, 1, 3);
    world.seal(1, 1, 4, false, false);
    world.second();
    assert_eq!(world.total(), Some(3));
    let partitions: Vec<i32> = world
        .handle
        .frontiers_ms()
        .iter()
        .map(|(pair, _)| *pair)
        .collect();
    assert_eq!(partitions, [0]);
    world.sealed(1, 1, 5);
    world.second();
    assert_eq!(world.total(), Some(8));
}

#[test]
fn looks_get_each_state_once() {
    let mut world = World::new(2);
    let mut taken = Vec::new();
    for (partition, n_lists) in [(0, 3), (1, 4), (1, 4), (0, 5)] {
        world.sealed(partition, 1, n_lists);
        world.second();
        let new = world.looks.take(Duration::ZERO).expect("it is open");
        let ends = new
            .states
            .into_iter()
            .map(|(pair, state)| (pair, state.until_ms.is_some(), new.n_pairs));
        taken.push(ends.collect::<Vec<_>>());
    }
    assert_eq!(
        taken,
        [vec![(0, true, 2)], vec![(1, true, 2)], vec![], vec![(0, true, 2)]]
    );
}

#[test]
fn pairs_of_this_instance_are_read_before_those_of_others() {
    let mut world = World::new(20);
    world.keeper.log().answers = false;
    world.second();
    assert_eq!(world.keeper.log().followed, (0..8).collect::<Vec<i32>>());
    world.worker.assigned(15);
    world.round();
    assert_eq!(world.keeper.log().followed[8..], [15]);
    world.keeper.log().answers = true;
    // The pair waits for the end that has its claim.
    while world.worker.status(15).standing != OwnerStatus::Holding {
        assert_eq!(world.keeper.log().followed[8..], [15]);
        world.round();
    }
    world.second();
    let mut followed = world.keeper.log().followed.clone();
    followed.sort_unstable();
    assert_eq!(followed, (0..20).collect::<Vec<i32>>());
    world.second();
    assert_eq!(world.handle.unavailable(), Ok(()), "no pair has a state");
}
