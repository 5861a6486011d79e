//! Live traffic: lists and clicks with current times, at a given rate.

use std::collections::VecDeque;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rand::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;

use crate::common::stream::{self, ARMS, Items};
use crate::load::{self, Topics};
use crate::support::kafka::Kafka;
use crate::support::producer::Producer;

/// One record in this many is a click.
const CLICK_EVERY: u64 = 6;
const CLICK_AFTER_MS: i64 = 1_000;
/// Time for which clicks go to one hot list. It is below the shortest attribution that is benchmarked.
const HOT_MS: i64 = 5_000;
/// Pause of a feed that is ahead of its rate.
const STEP: Duration = Duration::from_millis(1);

/// A list that may receive a click.
struct Clickable {
    ts_ms: i64,
    id: String,
    items: Items,
}

pub struct Feed<'a> {
    producer: Producer,
    topics: &'a Topics,
    random: Pcg64,
    /// Lists to be clicked, in their order.
    clickable: VecDeque<Clickable>,
    /// List with half of all clicks.
    hot: Option<Clickable>,
    has_hot_key: bool,
    /// Arms, of which each list has one.
    arms: Vec<String>,
    n: u64,
    payload: String,
}

impl<'a> Feed<'a> {
    pub fn new(kafka: &Kafka, topics: &'a Topics, has_hot_key: bool) -> Feed<'a> {
        Feed {
            producer: load::producer(kafka),
            topics,
            random: Pcg64::seed_from_u64(3),
            clickable: VecDeque::new(),
            hot: None,
            has_hot_key,
            arms: ARMS.map(str::to_owned).to_vec(),
            n: 0,
            payload: String::new(),
        }
    }

    /// Like `new`, with these arms.
    pub fn with_arms(kafka: &Kafka, topics: &'a Topics, arms: Vec<String>) -> Feed<'a> {
        Feed {
            arms,
            ..Feed::new(kafka, topics, false)
        }
    }

    /// Returns the number of records sent so far.
    pub fn n_sent(&self) -> u64 {
        self.n
    }

    /// Sends `rate` records per second for `duration`.
    pub fn run(&mut self, rate: u64, duration: Duration) {
        let start = Instant::now();
        while start.elapsed() < duration {
            let due = (start.elapsed().as_secs_f64() * rate as f64) as u64;
            if self.n >= due {
                sleep(STEP);
            }
            self.send(due.saturating_sub(self.n));
        }
        self.flush();
    }

    /// Waits until the broker has acknowledged everything.
    pub fn flush(&self) {
        self.producer.flush();
    }

    /// Sends `n_records` records now.
    pub fn send(&mut self, n_records: u64) {
        let now_ms = load::now_ms();
        for _ in 0..n_records {
            self.n += 1;
            if self.n.is_multiple_of(CLICK_EVERY) && self.click(now_ms) {
                continue;
            }
            self.list(now_ms);
        }
    }

    fn list(&mut self, ts_ms: i64) {
        let list = Clickable {
            ts_ms,
            id: format!("r{:032x}", self.random.random::<u128>()),
            items: Items::random(&mut self.random),
        };
        let arm = &self.arms[self.random.random_range(0..self.arms.len())];
        let user = self.random.random_range(0..100_000_000);
        stream::list(&mut self.payload, &list.id, user, ts_ms, arm, list.items);
        self.produce(&self.topics.served, &list.id);
        if self.has_hot_key && self.hot.as_ref().is_none_or(|hot| ts_ms - hot.ts_ms > HOT_MS) {
            self.hot = Some(list);
        } else if self.n % self.clickable_every() == 1 {
            self.clickable.push_back(list);
        }
    }

    /// Returns the interval, in lists, between those that will be clicked.
    fn clickable_every(&self) -> u64 {
        match self.has_hot_key {
            true => 2 * CLICK_EVERY,
            false => CLICK_EVERY,
        }
    }

    /// Clicks on a list that is a second old, or on the hot one. Returns whether there was one.
    fn click(&mut self, ts_ms: i64) -> bool {
        let n = self.n / CLICK_EVERY;
        if self.has_hot_key && n.is_multiple_of(2) {
            let Some(hot) = self.hot.take() else { return false };
            // One in sixteen is on an item that the list does not have.
            let off_list = n
                .is_multiple_of(32)
                .then(|| self.random.random_range(10_000..90_000));
            let item = off_list.unwrap_or_else(|| hot.items.at(self.random.random_range(0..10)));
            stream::click(&mut self.payload, &hot.id, ts_ms, item);
            self.produce(&self.topics.clicks, &hot.id);
            self.hot = Some(hot);
            return true;
        }
        let is_due = |list: &Clickable| ts_ms - list.ts_ms >= CLICK_AFTER_MS;
        if !self.clickable.front().is_some_and(is_due) {
            return false;
        }
        let Some(list) = self.clickable.pop_front() else {
            return false;
        };
        stream::click(&mut self.payload, &list.id, ts_ms, list.items.at(0));
        self.produce(&self.topics.clicks, &list.id);
        true
    }

    fn produce(&self, topic: &str, id: &str) {
        let (key, payload) = (Some(id.as_bytes()), Some(self.payload.as_bytes()));
        self.producer.produce(topic, None, key, payload, None);
    }
}
