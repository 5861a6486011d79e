//! A script that runs on the model and on Kafka with equal outcomes: begin, seal, take over, drop, leave, return.

use std::collections::BTreeMap;
use std::time::Instant;

use abgauge::clock::Clock;
use abgauge::store::keeper::{
    Keeper, KeeperOrder, KeeperSettings, Memory, Offer, OwnerStatus, Roles, Urgency,
};
use abgauge_core::journal::{
    self, Claim, CountedColumn, CountedTopic as InputTopic, Header, Log, LogIdentity, Namespace, RecordKey,
    ReplayDigest, TopicProgress,
};

use crate::support::wait::{self, PATIENCE};

/// Expected events of [`run`].
pub const OUTCOME: [&str; 19] = [
    "a begins 0",
    "a begins 1",
    "a shows 10 of 0",
    "a shows 10 of 1",
    "a shows 20 of 0",
    "a shows 30 of 0",
    "b restores 30 of 0 with 700007 bytes",
    "b shows 30 of 0",
    "a is asked for a commit of 0",
    "a drops 0",
    "b shows 40 of 0",
    "b leaves 0 with 50",
    "c restores 50 of 0 with 900007 bytes",
    "c shows 50 of 0",
    "a restores 10 of 1 with 7 bytes after it forgot",
    "a shows 10 of 1",
    "a goes on with 1 from memory",
    "a shows 10 of 1",
    "a shows 20 of 1",
];

pub fn namespace() -> Namespace {
    Namespace::of("the script", "group")
}

fn settings(n_pairs: u32, seed: u64) -> KeeperSettings {
    KeeperSettings {
        owner: journal::OwnerSettings {
            namespace: namespace(),
            identity: identity(n_pairs),
            claim: Claim::default(),
            answer_ms: 5_000,
            lease_ms: 15_000,
            still_ms: 5_000,
        },
        interval_ms: 10,
        max_bytes_per_second: 1 << 30,
        leave_ms: 10_000,
        has_read: false,
        seed,
    }
}

fn identity(n_partitions: u32) -> LogIdentity {
    let topics = ["served", "clicks"].map(|name| InputTopic {
        name: name.to_owned(),
        id: 7,
    });
    LogIdentity {
        fingerprint: "the script".to_owned(),
        topics: topics.into(),
        n_partitions,
    }
}

fn header(n_pairs: u32, read_position: i64) -> Header {
    let reach = TopicProgress {
        read_position,
        resume_offset: read_position / 2,
        resume_max_ms: Some(1),
        digest: ReplayDigest::default(),
    };
    Header {
        identity: identity(n_pairs),
        begin_ms: Some(0),
        frontier_ms: Some(read_position - 10),
        reaches: vec![reach; 2],
        was_caught_up: true,
        is_exact: true,
        columns: vec![CountedColumn {
            id: "hit_rate@5".to_owned(),
            since_ms: 0,
        }],
    }
}

/// Returns a small role and, if `n_large` is positive, one that needs several blobs.
fn roles(read_position: i64, n_large: usize) -> Roles {
    let totals = format!("total{read_position:02}");
    let mut roles = BTreeMap::from([("totals".into(), totals.into_bytes().into())]);
    if n_large > 0 {
        let bytes: Vec<u8> = (0..n_large).map(|at| (at / 1_000) as u8).collect();
        roles.insert("users 0".into(), bytes.into());
    }
    roles
}

/// A process, and its record of events.
struct Process<'a> {
    name: &'static str,
    keeper: Keeper,
    n_pairs: u32,
    reported: &'a mut Vec<String>,
}

/// Events of all processes.
struct Story {
    n_pairs: u32,
    reported: Vec<String>,
}

impl Story {
    fn process<'a>(&'a mut self, name: &'static str, keeper: Keeper) -> Process<'a> {
        Process {
            name,
            keeper,
            n_pairs: self.n_pairs,
            reported: &mut self.reported,
        }
    }
}

impl Process<'_> {
    fn tell(&mut self, what: String) {
        self.reported.push(format!("{} {what}", self.name));
    }

    #[track_caller]
    fn order(&self, pair: i32) -> KeeperOrder {
        let next = wait::try_until(PATIENCE, || self.keeper.poll().expect("it runs"));
        match next {
            Some((of, order)) if of == pair => return order,
            Some((of, order)) => panic!("{}: {order:?} for pair {of}", self.name),
            None => {}
        }
        let status = self.keeper.handle().status(pair);
        panic!(
            "{}: no order: {status:?}, {:?}",
            self.name,
            self.keeper.handle().fault()
        );
    }

    /// Waits until a state is wanted.
    #[track_caller]
    fn wanted(&self, pair: i32) {
        wait::until(
            &format!("a state of {} to be wanted", self.name),
            PATIENCE,
            || (self.keeper.handle().wants(pair) == Urgency::AtOnce).then_some(()),
        );
    }

    /// Returns the time of the current claim, if it is held.
    fn claimed_ms(&self, pair: i32) -> Option<i64> {
        let status = self.keeper.handle().status(pair);
        (status.standing == OwnerStatus::Holding).then_some(status.since_ms)
    }

    /// Waits until the process holds another claim than `before`.
    #[track_caller]
    fn claims_anew(&self, pair: i32, before: Option<i64>) {
        wait::until(&format!("{} to claim anew", self.name), PATIENCE, || {
            self.claimed_ms(pair).filter(|since_ms| Some(*since_ms) != before)
        });
    }

    #[track_caller]
    fn begins(&mut self, pair: i32) -> Memory {
        self.keeper.handle().assigned(pair);
        match self.order(pair) {
            KeeperOrder::Begin { incarnation } => {
                self.tell(format!("begins {pair}"));
                incarnation
            }
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn seals(&mut self, pair: i32, incarnation: Memory, read_position: i64, n_large: usize) -> Offer {
        self.wanted(pair);
        let (header, roles) = (header(self.n_pairs, read_position), roles(read_position, n_large));
        let offer = self.keeper.handle().offer(pair, incarnation, header, roles);
        self.shows(pair, offer, read_position);
        offer
    }

    #[track_caller]
    fn shows(&mut self, pair: i32, expected: Offer, read_position: i64) {
        match self.order(pair) {
            KeeperOrder::Show { offer } if offer == expected => {
                self.tell(format!("shows {read_position} of {pair}"));
            }
            other => panic!("{other:?} instead of {expected:?}"),
        }
    }

    #[track_caller]
    fn restores(&mut self, pair: i32, how: &str) -> (Memory, Offer) {
        match self.order(pair) {
            KeeperOrder::Restore {
                incarnation,
                offer,
                header,
                roles: found,
            } => {
                let read_position = header.reaches[0].read_position;
                let n_large = found.get("users 0").map_or(0, |bytes| bytes.len());
                assert_eq!(found, roles(read_position, n_large));
                let n_bytes: usize = found.values().map(|bytes| bytes.len()).sum();
                self.tell(format!(
                    "restores {read_position} of {pair} with {n_bytes} bytes{how}"
                ));
                self.shows(pair, offer, read_position);
                (incarnation, offer)
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Runs the script. Each call of `log` connects another process, and `keys` returns the keys in one of two partitions.
#[track_caller]
pub fn run<L: Log + Send + 'static>(
    log: impl Fn() -> L,
    keys: impl Fn(usize) -> Vec<RecordKey>,
) -> Vec<String> {
    let n_pairs = 2;
    let keeper =
        |seed| Keeper::start(log(), settings(n_pairs, seed), None, Clock::system()).expect("it starts");
    let mut story = Story {
        n_pairs,
        reported: Vec::new(),
    };
    let mut a = story.process("a", keeper(1));
    let first = a.begins(0);
    let second = a.begins(1);
    a.seals(0, first, 10, 0);
    a.seals(1, second, 10, 0);
    a.seals(0, first, 20, 600_000);
    // The new seal refers to the blobs that already exist.
    a.seals(0, first, 30, 700_000);
    let a = a.keeper;

    let mut b = story.process("b", keeper(2));
    b.keeper.handle().assigned(0);
    let (incarnation, _) = b.restores(0, "");
    let b = b.keeper;

    let mut reported = story.process("a", a);
    match reported.order(0) {
        KeeperOrder::Commit { number } => {
            reported.tell("is asked for a commit of 0".to_owned());
            reported.keeper.handle().committed(0, number, false);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(reported.order(0), KeeperOrder::Drop);
    reported.tell("drops 0".to_owned());
    let a = reported.keeper;

    let mut reported = story.process("b", b);
    reported.seals(0, incarnation, 40, 700_000);
    reported.wanted(0);
    let last = (incarnation, header(n_pairs, 50), roles(50, 900_000));
    let offer = reported
        .keeper
        .handle()
        .leave(0, Some(last))
        .expect("there is a last one");
    assert_eq!(reported.order(0), KeeperOrder::Show { offer });
    assert_eq!(reported.order(0), KeeperOrder::Left);
    reported.tell("leaves 0 with 50".to_owned());
    drop(reported);

    let mut c = story.process("c", keeper(3));
    c.keeper.handle().assigned(0);
    c.restores(0, "");
    let c = c.keeper;

    let mut reported = story.process("a", a);
    reported.keeper.handle().forgotten(1, second);
    let (incarnation, offer) = reported.restores(1, " after it forgot");
    reported.keeper.handle().revoked(1);
    reported.keeper.handle().assigned(1);
    reported.wanted(1);
    reported.tell("goes on with 1 from memory".to_owned());
    reported.shows(1, offer, 10);
    reported.seals(1, incarnation, 20, 0);
    rests(|| keys(1), 1);
    // Four blobs for 900,000 bytes, and one for the totals.
    rests(|| keys(0), 5);
    drop(c);
    story.reported
}

pub const OUTCOME_OF_LOSS: [&str; 6] = [
    "a begins 0",
    "a shows 10 of 0",
    "a shows 10 of 0",
    "a shows 20 of 0",
    "b restores 20 of 0 with 600007 bytes",
    "b shows 20 of 0",
];

/// Deletes all records while a process owns a pair. The owner writes its state again and keeps its memory, and the next owner
/// finds that state.
#[track_caller]
pub fn run_while_the_topic_is_lost<L: Log + Send + 'static>(
    log: impl Fn() -> L,
    lose: impl FnOnce(),
) -> Vec<String> {
    let n_pairs = 2;
    let keeper =
        |seed| Keeper::start(log(), settings(n_pairs, seed), None, Clock::system()).expect("it starts");
    let mut story = Story {
        n_pairs,
        reported: Vec::new(),
    };
    let mut a = story.process("a", keeper(1));
    let incarnation = a.begins(0);
    let offer = a.seals(0, incarnation, 10, 600_000);
    // Read before the loss: the keeper may have claimed again by the time the topic is back.
    let before = a.claimed_ms(0);
    lose();
    a.claims_anew(0, before);
    a.shows(0, offer, 10);
    a.seals(0, incarnation, 20, 600_000);
    let _a = a.keeper;
    let mut b = story.process("b", keeper(2));
    b.keeper.handle().assigned(0);
    b.restores(0, "");
    story.reported
}

/// Expected events of [`run_with_much`], whose blobs exceed what a writer has in flight.
pub const OUTCOME_OF_MUCH: [&str; 4] = [
    "a begins 0",
    "a shows 10 of 0",
    "b restores 10 of 0 with 30000007 bytes",
    "b shows 10 of 0",
];

/// Seals a large state, which another process restores.
#[track_caller]
pub fn run_with_much<L: Log + Send + 'static>(log: impl Fn() -> L) -> Vec<String> {
    let n_pairs = 2;
    let keeper =
        |seed| Keeper::start(log(), settings(n_pairs, seed), None, Clock::system()).expect("it starts");
    let mut story = Story {
        n_pairs,
        reported: Vec::new(),
    };
    let mut a = story.process("a", keeper(1));
    let incarnation = a.begins(0);
    let before = Instant::now();
    a.seals(0, incarnation, 10, 30_000_000);
    println!("30 MB are in force after {:?}", before.elapsed());
    let _a = a.keeper;
    let mut b = story.process("b", keeper(2));
    let before = Instant::now();
    b.keeper.handle().assigned(0);
    b.restores(0, "");
    println!(
        "30 MB are restored and in force again after {:?}",
        before.elapsed()
    );
    story.reported
}

/// Waits until garbage has been collected: one claim, one seal and its blobs are left.
#[track_caller]
fn rests(keys: impl Fn() -> Vec<RecordKey>, n_blobs: usize) {
    let mut last = Vec::new();
    let is_at_rest = wait::try_until(PATIENCE, || {
        let keys = keys();
        let count = |is: fn(&RecordKey) -> bool| keys.iter().filter(|key| is(key)).count();
        let n_claims = count(|key| matches!(key, RecordKey::Claim(_)));
        let n_seals = count(|key| matches!(key, RecordKey::Seal(_)));
        let is_at_rest = (n_claims, n_seals, keys.len()) == (1, 1, 2 + n_blobs);
        last = keys;
        is_at_rest.then_some(())
    });
    assert!(is_at_rest.is_some(), "not at rest: {last:?}");
}
