//! Watch that scrapes all instances continuously, each on its own thread, and keeps the numbers of each arm.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::seen::{Scrape, Seen};
use crate::support::{http, wait};

const EVERY: Duration = Duration::from_millis(200);

/// Threads that scrape until this is dropped.
pub struct Watch {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    begin: Instant,
    stop: AtomicBool,
    instances: Vec<Instance>,
    scrapes: Mutex<Vec<Scrape>>,
}

struct Instance {
    address: SocketAddr,
    /// Odd while the instance runs. Each change adds 1.
    life: AtomicU64,
}

impl Watch {
    /// Starts watching running instances.
    pub fn start(addresses: impl Iterator<Item = SocketAddr>) -> Watch {
        let instance = |address| Instance {
            address,
            life: AtomicU64::new(1),
        };
        let shared = Arc::new(Shared {
            begin: Instant::now(),
            stop: AtomicBool::new(false),
            instances: addresses.map(instance).collect(),
            scrapes: Mutex::default(),
        });
        let watch = |number| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                while !shared.stop.load(Ordering::Relaxed) {
                    shared.scrape(number);
                    wait::try_until(EVERY, || None::<()>);
                }
            })
        };
        let threads = (0..shared.instances.len()).map(watch).collect();
        Watch { shared, threads }
    }

    /// Notes that another process will answer from now on.
    pub fn is_gone(&self, instance: usize) {
        self.turn(instance, 0);
    }

    pub fn is_back(&self, instance: usize) {
        self.turn(instance, 1);
    }

    fn turn(&self, instance: usize, parity: u64) {
        let before = self.shared.instances[instance]
            .life
            .fetch_add(1, Ordering::SeqCst);
        assert_eq!((before + 1) % 2, parity, "gone and back by turns");
    }

    /// Returns all scrapes so far.
    pub fn seen(&self) -> Seen {
        let scrapes = self.shared.scrapes.lock().unwrap_or_else(PoisonError::into_inner);
        Seen::new(scrapes.clone())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that failed has printed its message.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn scrape(&self, number: usize) {
        let instance = &self.instances[number];
        let life = instance.life.load(Ordering::SeqCst);
        let begin = self.begin.elapsed();
        let Ok(answer) = http::get(&format!("http://{}/metrics", instance.address), &[]) else {
            return;
        };
        let end = self.begin.elapsed();
        let has_lived = !life.is_multiple_of(2) && instance.life.load(Ordering::SeqCst) == life;
        if answer.status != 200 || !has_lived {
            return;
        }
        let scrape = Scrape {
            instance: number,
            life,
            begin,
            end,
            lists: lists(&answer.body),
        };
        let mut scrapes = self.scrapes.lock().unwrap_or_else(PoisonError::into_inner);
        scrapes.push(scrape);
    }
}

/// Returns the settled lists since the start, by arm. The parser is not strict, because this runs continuously.
fn lists(body: &str) -> BTreeMap<String, u64> {
    let of_lists = body
        .lines()
        .filter(|line| line.starts_with("abgauge_lists{"))
        .filter(|line| {
            let has = |label: &str| line.contains(label);
            has("view=\"settled\"") && has("window=\"total\"") && has("scope=\"own\"")
        });
    let read = |line: &str| {
        let (_, after) = line.split_once("arm=\"")?;
        let (arm, _) = after.split_once('"')?;
        let (_, value) = line.rsplit_once(' ')?;
        Some((arm.to_owned(), value.parse().ok()?))
    };
    of_lists
        .map(|line| read(line).unwrap_or_else(|| panic!("no count of lists: {line}")))
        .collect()
}
