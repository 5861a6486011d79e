//! A state topic that rots behind a running owner: each fault is reported and mended, or refused before the next start.
//! Readiness and `abgauge state verify` never disagree for long, in either direction.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use abgauge_core::journal::{Namespace, RecordKey, SealId, Session};
use rand::Rng as _;
use rand::seq::SliceRandom as _;
use serde_json::Value;

use super::fleet::Wanted;
use super::{READ, STATE, Stage, TOPIC, WRITE, settled, wait_for_settled};
use crate::support::acls::Operation;
use crate::support::daemon::Daemon;
use crate::support::kafka::{Kafka, Options, STRANGER};
use crate::support::wait::{LONG, PATIENCE};
use crate::traffic::{now_ms, scrape, waits_for};

/// Time for which `/readyz` may report ready while `state verify` fails, or may not while it succeeds.
const DISAGREE_AT_MOST: Duration = Duration::from_secs(20);
/// Time after which a fault that has hit nothing is repeated: several times as long as an owner needs to notice a loss.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// Faults tested in parallel.
const N_SIDE_BY_SIDE: usize = 4;
const N_LISTS: u32 = 60;
/// Part of the warning about a loss that was repaired.
const LOST: &str = "the state topic had lost some of the stored state";
/// Records of each partition that are left in the topics of events, so that totals can come from stored state alone.
const LEFT: i64 = 5;

/// Effect of a fault on the state topic of a stage, in one partition.
type Deed = fn(&Stage, i32);

enum Outcome {
    /// The record is written again, with a warning. No action is needed.
    Mended,
    /// `/readyz` shows this text until the deed is done.
    Told(&'static str, Deed),
    /// The same, and meanwhile the topic loses records. They are written again.
    ToldAndLost(&'static str, Deed),
    /// `/readyz` shows these texts until the deed is done. Meanwhile new lists settle, but no number is shown that is not stored.
    Withheld(&'static [&'static str], Deed),
    /// `/readyz` has these words, and the next start is refused with them.
    Refused(&'static str),
    /// The daemon exits with this text, and resumes once the deed is done.
    Ends(&'static str, Deed),
    /// Only a warning appears.
    Warned(&'static str),
}

struct Case {
    name: &'static str,
    fault: Deed,
    outcome: Outcome,
}

const CASES: [Case; 22] = [
    Case {
        name: "retention: `compact,delete` with `retention.ms`",
        fault: |stage, _| stage.set_with_retention("compact,delete", ("retention.ms", "1000")),
        outcome: Outcome::ToldAndLost("cleanup.policy=compact,delete", |stage, _| stage.set(&[])),
    },
    Case {
        name: "retention: `delete` with `retention.ms`",
        fault: |stage, _| stage.set_with_retention("delete", ("retention.ms", "1000")),
        outcome: Outcome::ToldAndLost("cleanup.policy=delete", |stage, _| stage.set(&[])),
    },
    Case {
        name: "retention: `compact,delete` with `retention.bytes`",
        fault: |stage, _| stage.set_with_retention("compact,delete", ("retention.bytes", "0")),
        outcome: Outcome::ToldAndLost("--add-config cleanup.policy=compact", |stage, _| stage.set(&[])),
    },
    Case {
        name: "settings changed, records deleted, and settings changed back",
        fault: Stage::truncate,
        outcome: Outcome::Mended,
    },
    Case {
        name: "tombstones of blobs",
        fault: |stage, partition| stage.bury(partition, |key| matches!(key, RecordKey::Blob(_))),
        outcome: Outcome::Mended,
    },
    Case {
        name: "tombstones of seals",
        fault: |stage, partition| stage.bury(partition, |key| matches!(key, RecordKey::Seal(_))),
        outcome: Outcome::Mended,
    },
    Case {
        name: "tombstones of claims",
        fault: |stage, partition| stage.bury(partition, |key| matches!(key, RecordKey::Claim(_))),
        outcome: Outcome::Mended,
    },
    Case {
        name: "tombstones of all",
        fault: |stage, partition| stage.bury(partition, |_| true),
        outcome: Outcome::Mended,
    },
    Case {
        name: "blobs overwritten",
        fault: |stage, partition| stage.write_over(partition, |key| matches!(key, RecordKey::Blob(_))),
        outcome: Outcome::Mended,
    },
    Case {
        name: "recreation",
        fault: |stage, _| {
            stage.kafka.delete_topic(&stage.state);
            stage.kafka.create_topic(&stage.state, 2, &STATE);
        },
        outcome: Outcome::Mended,
    },
    Case {
        name: "wrong number of partitions",
        fault: |stage, _| stage.kafka.add_partitions(&stage.state, 3),
        outcome: Outcome::Refused("has 3 partitions, the topics of events have 2"),
    },
    Case {
        name: "writes refused",
        fault: |stage, _| stage.set(&[("max.message.bytes", "200")]),
        outcome: Outcome::Told("max.message.bytes", |stage, _| stage.set(&[])),
    },
    Case {
        name: "the right to read revoked",
        fault: |stage, _| stage.revoke(READ),
        outcome: Outcome::Withheld(
            &[
                "no permission: grant the user READ on topic",
                "partition 0 shows no final numbers",
                "partition 1 shows no final numbers",
            ],
            |stage, _| stage.grant(READ),
        ),
    },
    Case {
        name: "the right to read revoked while nothing is counted",
        fault: |stage, _| stage.revoke(READ),
        outcome: Outcome::Told("no permission: grant the user READ on topic", |stage, _| {
            stage.grant(READ);
        }),
    },
    Case {
        name: "the right to write revoked",
        fault: |stage, _| stage.revoke(WRITE),
        outcome: Outcome::Withheld(&["no permission: grant the user WRITE on topic"], |stage, _| {
            stage.grant(WRITE);
        }),
    },
    Case {
        name: "the right to write revoked while nothing is counted",
        fault: |stage, _| stage.revoke(WRITE),
        outcome: Outcome::Told("the user may not write to the state topic", |stage, _| {
            stage.grant(WRITE)
        }),
    },
    Case {
        name: "a claim of the highest epoch",
        fault: |stage, partition| stage.junk(partition, &stage.claim_of(u64::MAX)),
        outcome: Outcome::Told("no claim can be above it", |stage, partition| {
            stage.delete(partition, &stage.claim_of(u64::MAX));
        }),
    },
    Case {
        name: "a claim of the second-highest epoch",
        fault: |stage, partition| stage.junk(partition, &stage.claim_of(u64::MAX - 1)),
        outcome: Outcome::Told("no claim can be above it", |stage, partition| {
            stage.delete(partition, &stage.claim_of(u64::MAX - 1));
        }),
    },
    Case {
        name: "a claim of the epoch 2⁶²",
        fault: |stage, partition| stage.junk(partition, &stage.claim_of(Session::UNSURPASSABLE_EPOCH)),
        outcome: Outcome::Told("no claim can be above it", |stage, partition| {
            stage.delete(partition, &stage.claim_of(Session::UNSURPASSABLE_EPOCH));
        }),
    },
    Case {
        name: "a key of a newer version",
        fault: |stage, partition| stage.junk(partition, &stage.newer_key()),
        outcome: Outcome::Told("a newer version of abgauge wrote the key", |stage, partition| {
            stage.delete(partition, &stage.newer_key());
        }),
    },
    Case {
        name: "a malformed key",
        fault: |stage, partition| {
            stage.junk(partition, &format!("1|{}|clam|7", stage.namespace()));
        },
        outcome: Outcome::Warned("of the state topic: it is ignored"),
    },
    Case {
        name: "a junk seal",
        fault: |stage, partition| stage.junk(partition, &stage.junk_seal()),
        outcome: Outcome::Ends("from its stored state", |stage, partition| {
            stage.delete(partition, &stage.junk_seal());
        }),
    },
];

impl Stage {
    /// The settings that the state topic needs, but for these.
    fn set(&self, changes: &[(&str, &str)]) {
        let mut settings: BTreeMap<&str, &str> = STATE.into();
        settings.extend(changes.iter().copied());
        let settings: Vec<(&str, &str)> = settings.into_iter().collect();
        self.kafka.set_topic(&self.state, &settings);
    }

    /// Lets the broker delete records. A segment is deleted as a whole, and the owner writes each second, so segments are short.
    fn set_with_retention(&self, policy: &str, retention: (&str, &str)) {
        self.set(&[("cleanup.policy", policy), ("segment.ms", "200"), retention]);
    }

    /// Takes a right on the state topic from the daemon.
    fn revoke(&self, operation: Operation) {
        self.kafka.revoke(STRANGER.0, TOPIC, &self.state, operation);
    }

    fn grant(&self, operation: Operation) {
        self.kafka.grant(STRANGER.0, TOPIC, &self.state, operation);
    }

    /// Brokers delete records by hand only where a topic may delete.
    fn truncate(&self, partition: i32) {
        self.set(&[("cleanup.policy", "compact,delete")]);
        let (_, end) = self.kafka.offsets(&self.state, partition);
        self.kafka.delete_records_before(&self.state, partition, end);
        self.set(&[]);
    }

    /// Keys that a partition has now.
    fn keys(&self, partition: i32) -> Vec<(Namespace, RecordKey)> {
        let mut keys = BTreeMap::new();
        for record in self.kafka.read_all(&self.state) {
            if record.partition == partition {
                keys.insert(record.key.expect("all have keys"), record.payload.is_some());
            }
        }
        let put = keys.into_iter().filter(|(_, is_put)| *is_put);
        put.filter_map(|(key, _)| RecordKey::parse(&key)).collect()
    }

    /// Deletes keys of a partition.
    pub(super) fn bury(&self, partition: i32, is_meant: fn(&RecordKey) -> bool) {
        self.put(partition, is_meant, None);
    }

    fn write_over(&self, partition: i32, is_meant: fn(&RecordKey) -> bool) {
        self.put(partition, is_meant, Some(b"junk"));
    }

    fn put(&self, partition: i32, is_meant: fn(&RecordKey) -> bool, value: Option<&[u8]>) {
        let keys = self.keys(partition);
        let meant: Vec<_> = keys.iter().filter(|(_, key)| is_meant(key)).collect();
        assert!(!meant.is_empty(), "{keys:?}");
        for (namespace, key) in meant {
            self.meddle(partition, key.text(*namespace).as_bytes(), value);
        }
    }

    fn namespace(&self) -> Namespace {
        self.keys(0).first().expect("something is stored").0
    }

    /// Writes a record that another program may write.
    pub(super) fn junk(&self, partition: i32, key: &str) {
        self.meddle(partition, key.as_bytes(), Some(b"junk"));
    }

    /// Deletes a record as in the runbook.
    fn delete(&self, partition: i32, key: &str) {
        self.meddle(partition, key.as_bytes(), None);
    }

    /// Returns the key of a claim.
    pub(super) fn claim_of(&self, epoch: u64) -> String {
        let session = Session { epoch, unique: 7 };
        RecordKey::Claim(session).text(self.namespace())
    }

    /// Asserts that no instance has claimed with an epoch that only another program writes. `junk` is that program's claim.
    #[track_caller]
    pub(super) fn assert_no_instance_claims_above(&self, junk: &str) {
        for record in self.kafka.read_all(&self.state) {
            let key = record.key.expect("all have keys");
            if let Some((namespace, key)) = RecordKey::parse(&key)
                && key.session().is_some_and(Session::is_unsurpassable)
            {
                assert_eq!(key.text(namespace), junk);
            }
        }
    }

    fn newer_key(&self) -> String {
        self.claim_of(1).replacen('1', "2", 1)
    }

    fn junk_seal(&self) -> String {
        let session = Session {
            epoch: 1_000_000,
            unique: 7,
        };
        RecordKey::Seal(SealId { session, number: 0 }).text(self.namespace())
    }
}

/// Returns whether `/readyz`, the gauge and the answer behind the page report this.
fn is_reported(daemon: &Daemon, words: &str) -> Option<()> {
    waits_for(daemon)?.contains(words).then_some(())?;
    let answer = daemon.try_get("/api/v1/experiments").ok()?;
    let answer: Value = serde_json::from_str(&answer.body).expect("JSON");
    let shown = answer["stream"]["waiting_for"].as_array()?;
    let has_words = |reason: &Value| reason.as_str().is_some_and(|reason| reason.contains(words));
    let is_ready = scrape(daemon)?.value("abgauge_ready", &[]);
    (shown.iter().any(has_words) && is_ready == Some(0.0)).then_some(())
}

/// Returns a gauge of stored state for both partitions.
fn stored_gauge(daemon: &Daemon, name: &str) -> Option<[f64; 2]> {
    let scrape = scrape(daemon)?;
    let of = |partition| scrape.value(name, &[("partition", partition)]);
    Some([of("0")?, of("1")?])
}

/// Returns whether the fault of a partition is reported, also as state that is not whole.
fn is_told(daemon: &Daemon, partition: i32, words: &str) -> Option<()> {
    is_reported(daemon, words)?;
    let whole = stored_gauge(daemon, "abgauge_stored_whole")?;
    (whole[partition as usize] == 0.0).then_some(())
}

/// Returns `Some` once a loss of this partition has been counted and repaired.
fn is_counted(daemon: &Daemon, partition: i32) -> Option<()> {
    let lost = stored_gauge(daemon, "abgauge_stored_lost_total")?;
    let whole = stored_gauge(daemon, "abgauge_stored_whole")?;
    (lost[partition as usize] > 0.0 && whole == [1.0, 1.0]).then_some(())
}

/// Asserts that each settled number is unchanged or hidden.
#[track_caller]
fn assert_withheld(daemon: &Daemon, before: Option<&[(String, f64)]>) {
    let shown = settled(daemon).unwrap_or_default();
    let before = before.unwrap_or_default();
    assert!(
        shown.iter().all(|arm| before.contains(arm)),
        "{shown:?} after {before:?}"
    );
}

/// Returns whether both partitions have settled everything up to this time, Unix seconds.
fn have_settled(daemon: &Daemon, until: f64) -> Option<()> {
    let scrape = scrape(daemon)?;
    let frontiers = scrape.select("abgauge_frontier_timestamp_seconds", &[("scope", "own")]);
    let n_beyond = frontiers.filter(|frontier| frontier.value > until).count();
    (n_beyond == 2).then_some(())
}

/// Common answer of `/readyz` and `state verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreed {
    Well,
    Ill,
}

/// Asks `/readyz` and `state verify` in turn.
#[derive(Default)]
struct Watch {
    /// Time since which they have not agreed.
    disagree: Option<Instant>,
    longest: Duration,
    /// Last output of a failed `state verify`.
    verified: String,
}

impl Watch {
    /// Returns their common answer. `None` if they disagree, which they may not do for long.
    #[track_caller]
    fn agreed(&mut self, stage: &Stage, daemon: &Daemon) -> Option<Agreed> {
        let is_ready = || daemon.try_get("/readyz").is_ok_and(|answer| answer.status == 200);
        let was_ready = is_ready();
        let verified = stage.state(&["verify", "--timeout", "15s"]);
        let is_sound = verified.code == Some(0);
        if !is_sound {
            self.verified = verified.stdout + &verified.stderr;
        }
        let ready = [was_ready, is_ready()];
        // A change in the meantime makes neither of them wrong, but they do not agree either.
        if ready == [is_sound; 2] {
            self.disagree = None;
            return Some(if is_sound { Agreed::Well } else { Agreed::Ill });
        }
        let lasts = self.disagree.get_or_insert_with(Instant::now).elapsed();
        self.longest = self.longest.max(lasts);
        assert!(
            lasts < DISAGREE_AT_MOST,
            "no agreement for {lasts:?}; ready before and after verify: {ready:?}; verify succeeds: {is_sound}; {}; {:?}",
            self.verified,
            waits_for(daemon)
        );
        None
    }

    #[track_caller]
    fn is_well(&mut self, stage: &Stage, daemon: &Daemon) -> Option<()> {
        (self.agreed(stage, daemon)? == Agreed::Well).then_some(())
    }

    fn print(&self, case: &Case, end: &str) {
        let failed = self.verified.lines().find(|line| line.starts_with("error"));
        println!(
            "{}: {end}; longest disagreement: {:?}; verify: {}",
            case.name,
            self.longest,
            failed.unwrap_or_default()
        );
    }

    #[track_caller]
    fn is_ill(&mut self, stage: &Stage, daemon: &Daemon) -> Option<()> {
        (self.agreed(stage, daemon)? == Agreed::Ill).then_some(())
    }
}

fn run(case: &Case, kafka: &Arc<Kafka>, partition: i32) {
    let stage = &Stage::with_rights(Arc::clone(kafka));
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..N_LISTS);
    wait_for_settled(&mut daemon, N_LISTS.into());
    let mut before = settled(&daemon);
    let mut watch = Watch::default();
    daemon.wait_until("all to be stored", |daemon| watch.is_well(stage, daemon));
    (case.fault)(stage, partition);
    match &case.outcome {
        Outcome::Mended => {
            let mut tried = Instant::now();
            daemon.wait_until(case.name, |daemon| {
                let is_well = watch.is_well(stage, daemon);
                if daemon.log().contains(LOST) {
                    return is_well.and_then(|()| is_counted(daemon, partition));
                }
                // A new seal may have replaced the records before the fault hit them. Then nothing was lost.
                if is_well.is_some() && tried.elapsed() >= AGAIN_AFTER {
                    (case.fault)(stage, partition);
                    tried = Instant::now();
                }
                None
            });
        }
        Outcome::Warned(words) => daemon.wait_until(case.name, |daemon| {
            watch.is_well(stage, daemon)?;
            daemon.log().contains(words).then_some(())
        }),
        Outcome::Told(words, mend) => {
            daemon.wait_until(case.name, |daemon| {
                watch.is_ill(stage, daemon)?;
                is_told(daemon, partition, words)
            });
            mend(stage, partition);
            daemon.wait_until("the state topic to recover", |daemon| {
                watch.is_well(stage, daemon)
            });
        }
        Outcome::ToldAndLost(words, mend) => {
            let (first, _) = kafka.offsets(&stage.state, partition);
            daemon.wait_until(case.name, |daemon| {
                watch.is_ill(stage, daemon)?;
                is_told(daemon, partition, words)?;
                let lost = stored_gauge(daemon, "abgauge_stored_lost_total")?;
                (lost[partition as usize] > 0.0).then_some(())
            });
            let (low, _) = kafka.offsets(&stage.state, partition);
            assert!(low > first, "{}: the topic has lost nothing", case.name);
            mend(stage, partition);
            daemon.wait_until("the state topic to be whole", |daemon| {
                watch.is_well(stage, daemon)?;
                is_counted(daemon, partition)
            });
            assert!(daemon.log().contains(LOST), "{}", daemon.log());
        }
        Outcome::Withheld(words, mend) => {
            stage.send(N_LISTS..2 * N_LISTS);
            let sent_at = now_ms() as f64 / 1000.0;
            let mut is_withheld = |daemon: &Daemon| {
                let is_ill = watch.is_ill(stage, daemon);
                assert_withheld(daemon, before.as_deref());
                is_ill
            };
            daemon.wait_until(case.name, |daemon| {
                is_withheld(daemon)?;
                words.iter().try_for_each(|words| is_reported(daemon, words))?;
                let whole = stored_gauge(daemon, "abgauge_stored_whole")?;
                (whole == [0.0, 0.0]).then_some(())
            });
            daemon.wait_until("the new lists to settle", |daemon| {
                is_withheld(daemon)?;
                have_settled(daemon, sent_at)
            });
            is_withheld(&daemon);
            mend(stage, partition);
            daemon.wait_until("the state topic to recover", |daemon| {
                watch.is_well(stage, daemon)?;
                let is_whole = stored_gauge(daemon, "abgauge_stored_whole")? == [1.0, 1.0];
                is_whole.then_some(())
            });
            wait_for_settled(&mut daemon, (2 * N_LISTS).into());
            before = settled(&daemon);
        }
        Outcome::Refused(words) => {
            daemon.wait_until(case.name, |daemon| {
                watch.is_ill(stage, daemon)?;
                is_told(daemon, partition, words)
            });
            daemon.kill();
            daemon.start_again();
            assert_eq!(daemon.wait_exit(LONG), Some(1), "{}", daemon.log());
            assert!(daemon.log().contains(words), "{}", daemon.log());
            watch.print(case, "refused");
            return;
        }
        Outcome::Ends(words, mend) => {
            assert_eq!(daemon.wait_exit(LONG), Some(1), "{}", daemon.log());
            assert!(daemon.log().contains(words), "{}", daemon.log());
            assert_eq!(watch.agreed(stage, &daemon), Some(Agreed::Ill));
            mend(stage, partition);
            daemon.start_again();
            // Without a running instance, nothing answers `/readyz`.
            daemon.wait_until_ready();
        }
    }
    daemon.kill();
    for topic in [&stage.traffic.served, &stage.traffic.clicks] {
        for partition in 0..2 {
            let (_, end) = kafka.offsets(topic, partition);
            kafka.delete_records_before(topic, partition, end - LEFT);
        }
    }
    daemon.start_again();
    daemon.wait_until(&format!("{}: the earlier totals", case.name), |daemon| {
        (settled(daemon) == before).then_some(())
    });
    daemon.wait_until("all to be stored again", |daemon| watch.is_well(stage, daemon));
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit(PATIENCE), Some(0), "{}", daemon.log());
    watch.print(case, "equal totals");
}

/// Starts a broker with rights that checks retention each second instead of each five minutes. The cleaner does so for topics that
/// are compacted too.
fn broker() -> Arc<Kafka> {
    Arc::new(Kafka::start_with(Options {
        secured: true,
        properties: vec![
            ("log.retention.check.interval.ms", "1000"),
            ("log.initial.task.delay.ms", "1000"),
            ("log.cleaner.backoff.ms", "1000"),
            ("log.retention.ms", "-1"),
        ],
        ..Options::default()
    }))
}

/// The state topic gets no record that would show that it can be read again, because an owner does not write without lists.
#[test]
fn a_right_to_read_that_is_granted_again_is_noticed_without_a_new_record() {
    let stage = Stage::with_rights(broker());
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    let ends = || [0, 1].map(|partition| stage.kafka.offsets(&stage.state, partition).1);
    let mut watch = Watch::default();
    stage.revoke(READ);
    daemon.wait_until("the missing right to be reported", |daemon| {
        watch.is_ill(&stage, daemon)?;
        is_reported(daemon, "no permission: grant the user READ on topic")
    });
    // The last record of the start may have come after readiness.
    let before = ends();
    stage.grant(READ);
    daemon.wait_until("the right to be noticed", |daemon| watch.is_well(&stage, daemon));
    assert_eq!(ends(), before, "the topic has grown");
}

/// Kafka ends a broker that cannot write its logs.
#[test]
fn a_full_disk_on_the_broker_hides_numbers_and_loses_none() {
    let mut stage = Stage::new();
    let mut daemon = stage.daemon();
    daemon.wait_until_ready();
    stage.send(0..N_LISTS);
    wait_for_settled(&mut daemon, N_LISTS.into());
    let before = settled(&daemon);
    let other = stage.kafka.new_topic("other", 1);
    stage.broker().fill_disk();
    // The write to an unrelated topic fails, and with it the broker.
    let producer = stage.kafka.producer();
    producer.produce(&other, Some(0), None, Some(b"a byte too many"), None);
    let mut watch = Watch::default();
    daemon.wait_until("all to be withheld", |daemon| {
        assert_withheld(daemon, before.as_deref());
        watch.is_ill(&stage, daemon)?;
        let is_hidden = settled(daemon)?.is_empty();
        let why = waits_for(daemon)?;
        (is_hidden && why.contains("the brokers do not answer")).then_some(())
    });
    stage.broker().restart();
    producer.flush();
    daemon.wait_until("the earlier totals", |daemon| {
        (settled(daemon) == before).then_some(())
    });
    stage.send(N_LISTS..2 * N_LISTS);
    wait_for_settled(&mut daemon, (2 * N_LISTS).into());
    daemon.wait_until("all to be stored", |daemon| watch.is_well(&stage, daemon));
}

/// The results are in docs/recovery-proof.md.
#[test]
fn each_case_has_a_row_of_results() {
    let proof = include_str!("../../../docs/recovery-proof.md");
    for case in &CASES {
        assert!(proof.contains(&format!("\n| {} | ", case.name)), "{}", case.name);
    }
}

#[test]
fn a_rotten_state_topic_keeps_totals_or_is_reported_before_a_refused_start() {
    let mut random = Wanted::or(CASES.len()).random();
    let kafka = broker();
    let mut cases: Vec<(&Case, i32)> = CASES
        .iter()
        .map(|case| (case, random.random_range(0..2)))
        .collect();
    cases.shuffle(&mut random);
    let cases = Mutex::new(cases);
    let next = || cases.lock().expect("nobody panics with it").pop();
    std::thread::scope(|scope| {
        for _ in 0..N_SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some((case, partition)) = next() {
                    println!("{} (partition {partition}) begins", case.name);
                    let begun = Instant::now();
                    run(case, &kafka, partition);
                    println!("{} (partition {partition}): {:?}", case.name, begun.elapsed());
                }
            });
        }
    });
}
