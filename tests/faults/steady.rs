//! Traffic that continues regardless of its readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::support::wait;
use crate::traffic::{Traffic, now_ms};

/// Ten lists per second, each with a click one second later, until dropped.
pub struct Steady {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u32>>,
}

impl Steady {
    pub fn start(traffic: &Arc<Traffic>) -> Steady {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (traffic, stop) = (Arc::clone(traffic), Arc::clone(&stop));
            move || send_until(&traffic, &stop)
        });
        Steady {
            stop,
            thread: Some(thread),
        }
    }

    /// Sends the outstanding clicks and returns the number of lists.
    pub fn finish(mut self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("finished once");
        thread.join().expect("the traffic went well")
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn send_until(traffic: &Traffic, stop: &AtomicBool) -> u32 {
    const UNTIL_CLICK_MS: i64 = 1000;
    let mut lists: Vec<(i32, String, i64)> = Vec::new();
    let mut n_clicked = 0;
    while n_clicked < lists.len() || !stop.load(Ordering::Relaxed) {
        let now_ms = now_ms();
        if !stop.load(Ordering::Relaxed) {
            let number = lists.len() as i32;
            // The last of three partitions is quiet, with one list in five seconds.
            let partition = if number % 50 == 25 { 2 } else { number % 2 };
            let id = format!("r-{number}");
            traffic.list(partition, &id, now_ms);
            lists.push((partition, id, now_ms));
        }
        while let Some((partition, id, ts_ms)) = lists.get(n_clicked)
            && ts_ms + UNTIL_CLICK_MS <= now_ms
        {
            traffic.click(*partition, id, ts_ms + UNTIL_CLICK_MS);
            n_clicked += 1;
        }
        wait::try_until(Duration::from_millis(100), || None::<()>);
    }
    traffic.flush();
    lists.len() as u32
}
