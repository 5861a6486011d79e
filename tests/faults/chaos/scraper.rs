//! A client that scrapes all the time, as Prometheus does.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::support::exposition::Exposition;
use crate::support::{http, wait};

const EVERY: Duration = Duration::from_millis(200);

/// A thread that scrapes until this value is dropped.
pub struct Scraper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    address: SocketAddr,
    stop: AtomicBool,
    /// Odd while the daemon should answer. Each change adds 1.
    lives: AtomicU64,
    n_answered: AtomicU64,
    refused: Mutex<Vec<String>>,
}

impl Scraper {
    /// Starts scraping a running daemon.
    pub fn start(address: SocketAddr) -> Scraper {
        let shared = Arc::new(Shared {
            address,
            stop: AtomicBool::new(false),
            lives: AtomicU64::new(1),
            n_answered: AtomicU64::new(0),
            refused: Mutex::default(),
        });
        let thread = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                while !shared.stop.load(Ordering::Relaxed) {
                    shared.scrape();
                    wait::try_until(EVERY, || None::<()>);
                }
            }
        });
        Scraper {
            shared,
            thread: Some(thread),
        }
    }

    /// Excuses unanswered scrapes from now on.
    pub fn is_gone(&self) {
        self.turn(0);
    }

    /// Requires answers from now on.
    pub fn is_back(&self) {
        self.turn(1);
    }

    fn turn(&self, parity: u64) {
        let before = self.shared.lives.fetch_add(1, Ordering::SeqCst);
        assert_eq!((before + 1) % 2, parity, "gone and back by turns");
    }

    /// Returns the number of answered scrapes, and the failures of the others.
    pub fn reported(&self) -> (u64, Vec<String>) {
        let refused = self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner);
        (self.shared.n_answered.load(Ordering::Relaxed), refused.clone())
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().expect("dropped once").join();
    }
}

impl Shared {
    fn scrape(&self) {
        let before = self.lives.load(Ordering::SeqCst);
        let failed = match http::get(&format!("http://{}/metrics", self.address), &[]) {
            Ok(answer) if answer.status == 200 => Exposition::parse(&answer.body).err(),
            Ok(answer) => Some(format!("{}: {}", answer.status, answer.body)),
            Err(error) => Some(error.to_string()),
        };
        let has_lived = before % 2 == 1 && self.lives.load(Ordering::SeqCst) == before;
        match failed {
            None => {
                self.n_answered.fetch_add(1, Ordering::Relaxed);
            }
            Some(error) if has_lived => {
                self.refused
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(error);
            }
            Some(_) => {}
        }
    }
}
