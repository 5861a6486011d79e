//! Traffic with a known outcome for every record: the counts that a daemon must have once all of it has settled.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::arms::{Arms, OfArm};
use crate::support::kafka::Kafka;
use crate::support::producer::Producer;
use crate::support::wait;
use crate::traffic::now_ms;

const N_ITEMS: usize = 5;
const UNTIL_CLICK_MS: i64 = 300;
/// Age differences between two lists with the same id: up to two slots of 1 s, and more than makes a copy.
const APART_MS: [i64; 6] = [0, 5, 120, 900, SAME_LIST_MS, SAME_LIST_MS + 700];
/// Value of `join.attribution` in these tests.
const SAME_LIST_MS: i64 = 2000;
/// Time between two rounds of sending.
const STEP: Duration = Duration::from_millis(5);
/// Longest gap whose lists are made up for. More would be a burst.
const LONGEST_STEP: Duration = Duration::from_millis(100);
/// Time greater than the sum of attribution, lateness and max_future.
const FAR_MS: i64 = 60_000;

/// Rate of lists and number of partitions.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub n_partitions: i32,
    pub lists_per_second: u32,
}

/// Expected counts for the records sent so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expected {
    pub arms: Arms,
    /// Records by topic and outcome.
    pub outcomes: BTreeMap<(String, String), f64>,
    /// Clicks by result.
    pub results: BTreeMap<String, f64>,
}

impl Expected {
    pub fn n_records(&self) -> f64 {
        self.outcomes.values().sum()
    }

    pub fn count(&mut self, topic: &str, outcome: &str) {
        *self.outcomes.entry((topic.into(), outcome.into())).or_default() += 1.0;
    }

    fn click(&mut self, topic: &str, result: &str) {
        self.count(topic, "accepted");
        *self.results.entry(result.into()).or_default() += 1.0;
    }

    fn list(&mut self, topic: &str, arm: &str) -> &mut OfArm {
        self.count(topic, "accepted");
        let of_arm = self.arms.entry(arm.into()).or_default();
        of_arm.lists += 1.0;
        of_arm
    }
}

/// A thread that sends lists, most of them clicked, and a share of other kinds of records, until dropped. All lists of an arm
/// are in one partition.
pub struct Stream {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    served: String,
    clicks: String,
    load: Load,
    producer: Producer,
    paused: AtomicBool,
    stop: AtomicBool,
    sent: Mutex<Sent>,
}

#[derive(Default)]
struct Sent {
    n_lists: u32,
    /// Time when lists were last sent. `rest` is the fraction of a list that is still due.
    last: Option<Instant>,
    rest: f64,
    due: VecDeque<Due>,
    expected: Expected,
}

/// Future clicks on a list.
struct Due {
    at_ms: i64,
    list: u32,
    arm: String,
}

impl Stream {
    pub fn start(kafka: &Kafka, served: &str, clicks: &str, load: Load) -> Stream {
        let shared = Arc::new(Shared {
            served: served.to_owned(),
            clicks: clicks.to_owned(),
            load,
            // By default librdkafka waits up to ten seconds before it connects to a restarted broker again, and what it
            // holds back meanwhile may come too late to count.
            producer: kafka.producer_with(&[("linger.ms", "50"), ("reconnect.backoff.max.ms", "500")]),
            paused: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            sent: Mutex::default(),
        });
        let thread = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                while !shared.stop.load(Ordering::Relaxed) {
                    shared.step();
                    wait::try_until(STEP, || None::<()>);
                }
            }
        });
        Stream {
            shared,
            thread: Some(thread),
        }
    }

    /// Stops sending lists, and waits until all clicks on earlier ones have been sent and acknowledged.
    #[track_caller]
    pub fn pause(&self) {
        self.shared.paused.store(true, Ordering::Relaxed);
        wait::until("the last clicks", wait::PATIENCE, || {
            self.shared.sent().due.is_empty().then_some(())
        });
        self.shared.producer.flush();
    }

    pub fn go_on(&self) {
        self.shared.paused.store(false, Ordering::Relaxed);
    }

    pub fn flush(&self) {
        self.shared.producer.flush();
    }

    /// Waits until the producer reaches every partition. After a broker's restart it may take ten seconds to reconnect, and
    /// records sent meanwhile would arrive too late to count.
    pub fn reach_all(&self) {
        let Shared { served, clicks, .. } = &*self.shared;
        for topic in [served, clicks] {
            for partition in 0..self.shared.load.n_partitions {
                self.shared.send(topic, partition, "reach", &heartbeat());
                self.expect(|expected| expected.count(topic, "ignored"));
            }
        }
        self.flush();
    }

    pub fn expected(&self) -> Expected {
        self.shared.sent().expected.clone()
    }

    /// Updates the expected counts for records that were sent elsewhere.
    pub fn expect(&self, note: impl FnOnce(&mut Expected)) {
        note(&mut self.shared.sent().expected);
    }

    pub fn served(&self) -> &str {
        &self.shared.served
    }

    pub fn clicks(&self) -> &str {
        &self.shared.clicks
    }

    /// Returns a list with the stream's items in its own arm.
    pub fn list(id: &str, arm: &str, ts_ms: i64) -> Value {
        let items: Vec<_> = (0..N_ITEMS).map(item).collect();
        json!({"type": "served", "request_id": id, "ts": ts_ms, "experiments": {"ranker": arm}, "items": items})
    }

    /// Returns the partition of all lists of an arm.
    pub fn partition_of_arm(arm: &str, load: Load) -> i32 {
        let number = arm
            .strip_prefix("arm-")
            .and_then(|number| number.parse::<i32>().ok());
        number.expect("an arm of the stream") % load.n_partitions
    }

    /// Expects a list without clicks.
    pub fn expect_list(&self, arm: &str) {
        self.expect(|expected| {
            expected.list(self.served(), arm);
        });
    }

    /// Sends a raw record to the topic of lists.
    pub fn send_raw(&self, partition: i32, payload: Option<&[u8]>, timestamp: Option<i64>) {
        let Shared { served, producer, .. } = &*self.shared;
        producer.produce(served, Some(partition), Some(b"raw"), payload, timestamp);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("dropped once");
        // A thread that panicked has printed its message. The test fails because of the missing records.
        let _ = thread.join();
    }
}

/// Returns an event that is neither a list nor a click.
fn heartbeat() -> Value {
    json!({"type": "heartbeat"})
}

fn item(n: usize) -> String {
    format!("i{n}")
}

impl Sent {
    /// Returns the number of lists due now.
    fn due_lists(&mut self, lists_per_second: u32) -> u32 {
        let now = Instant::now();
        let elapsed = self.last.replace(now).map_or(Duration::ZERO, |last| now - last);
        self.rest += elapsed.min(LONGEST_STEP).as_secs_f64() * f64::from(lists_per_second);
        let due = self.rest.floor();
        self.rest -= due;
        due as u32
    }
}

impl Shared {
    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, topic: &str, partition: i32, id: &str, event: &Value) {
        let payload = event.to_string();
        self.producer.produce(
            topic,
            Some(partition),
            Some(id.as_bytes()),
            Some(payload.as_bytes()),
            None,
        );
    }

    fn partition_of(&self, list: u32) -> i32 {
        list.cast_signed() % self.load.n_partitions
    }

    fn arm_of(&self, list: u32) -> String {
        format!("arm-{}", list.cast_signed() % (2 * self.load.n_partitions))
    }

    fn step(&self) {
        let now_ms = now_ms();
        let mut sent = self.sent();
        while sent.due.front().is_some_and(|due| due.at_ms <= now_ms) {
            let due = sent.due.pop_front().expect("it was there");
            self.click(&due, &mut sent.expected);
        }
        if self.paused.load(Ordering::Relaxed) {
            sent.last = None;
            return;
        }
        for _ in 0..sent.due_lists(self.load.lists_per_second) {
            let number = sent.n_lists;
            sent.n_lists += 1;
            let arm = self.list(number, now_ms, &mut sent.expected);
            sent.due.push_back(Due {
                at_ms: now_ms + UNTIL_CLICK_MS,
                list: number,
                arm,
            });
        }
    }

    /// Sends a list with this number and its companions. Returns the list's arm.
    fn list(&self, number: u32, now_ms: i64, expected: &mut Expected) -> String {
        let (partition, id) = (self.partition_of(number), format!("r-{number}"));
        let arm = self.arm_of(number);
        let list = Stream::list(&id, &arm, now_ms);
        let served = &*self.served;
        self.send(served, partition, &id, &list);
        expected.list(served, &arm);
        if number.is_multiple_of(23) {
            let apart_ms = APART_MS[(number / 23) as usize % APART_MS.len()];
            let again = Stream::list(&id, &arm, now_ms - apart_ms);
            self.send(served, partition, &id, &again);
            if apart_ms <= SAME_LIST_MS {
                expected.count(served, "duplicate");
            } else {
                expected.list(served, &arm);
            }
        }
        if number.is_multiple_of(29) {
            self.send(served, partition, &id, &json!("no list"));
            expected.count(served, "invalid");
        }
        // By now the partition has a list that is not late.
        if number % 31 == 30 {
            self.send(
                served,
                partition,
                "late",
                &Stream::list("late", &arm, now_ms - FAR_MS),
            );
            expected.count(served, "late");
        }
        if number.is_multiple_of(37) {
            self.send(
                served,
                partition,
                "future",
                &Stream::list("future", &arm, now_ms + FAR_MS),
            );
            expected.count(served, "future");
        }
        if number.is_multiple_of(41) {
            let click = json!({"type": "click", "request_id": "nobody's", "ts": now_ms, "item": "i0"});
            self.send(&self.clicks, partition, "nobody's", &click);
            expected.click(&self.clicks, "unmatched");
        }
        if number.is_multiple_of(43) {
            self.send(served, partition, &id, &heartbeat());
            expected.count(served, "ignored");
        }
        arm
    }

    /// Sends the clicks of a list: none, one or two, or one on an item that it did not show.
    fn click(&self, due: &Due, expected: &mut Expected) {
        let number = due.list;
        if number.is_multiple_of(4) {
            return;
        }
        let (partition, id) = (self.partition_of(number), format!("r-{number}"));
        let place = number as usize % N_ITEMS;
        let clicked = if number.is_multiple_of(17) {
            "elsewhere".to_owned()
        } else {
            item(place)
        };
        let click = json!({"type": "click", "request_id": id, "ts": due.at_ms, "item": clicked});
        let clicks = &*self.clicks;
        self.send(clicks, partition, &id, &click);
        if number.is_multiple_of(17) {
            expected.click(clicks, "off_list");
            return;
        }
        expected.click(clicks, "matched");
        let of_arm = expected.arms.get_mut(&due.arm).expect("its list was sent");
        of_arm.click(place as u32 + 1);
        if number.is_multiple_of(11) {
            self.send(clicks, partition, &id, &click);
            expected.click(clicks, "repeat");
        }
    }
}
