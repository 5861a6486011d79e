//! Heartbeat file for a health check. Its age shows whether Kafka accepts the simulated records.

use std::path::PathBuf;
use std::time::Duration;

use abgauge_core::nouns::number_of;
use anyhow::{Context as _, Result};

/// Minimum interval between two writes.
const EVERY: Duration = Duration::from_secs(1);

pub struct Heartbeat {
    path: PathBuf,
    n_delivered: u64,
    next: Duration,
}

impl Heartbeat {
    pub fn new(path: PathBuf) -> Heartbeat {
        Heartbeat {
            path,
            n_delivered: 0,
            next: Duration::ZERO,
        }
    }

    /// Writes the file if Kafka has accepted more records than at the last write. `n_delivered` is the total.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn beat(&mut self, n_delivered: u64, uptime: Duration) -> Result<()> {
        if n_delivered == self.n_delivered || uptime < self.next {
            return Ok(());
        }
        self.n_delivered = n_delivered;
        self.next = uptime + EVERY;
        let text = format!("{} delivered\n", number_of(n_delivered, "record"));
        std::fs::write(&self.path, text).with_context(|| format!("write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_only_while_records_are_delivered() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("heartbeat");
        let mut heartbeat = Heartbeat::new(path.clone());
        let mut beats_at = |n_delivered, seconds| {
            let _ = std::fs::remove_file(&path);
            heartbeat.beat(n_delivered, Duration::from_secs(seconds)).unwrap();
            std::fs::read_to_string(&path).ok()
        };
        assert_eq!(beats_at(0, 10), None);
        assert_eq!(beats_at(5, 11).as_deref(), Some("5 records delivered\n"));
        assert_eq!(beats_at(6, 11), None, "once a second");
        assert_eq!(beats_at(6, 12).as_deref(), Some("6 records delivered\n"));
        assert_eq!(beats_at(6, 90), None, "nothing more was taken");
    }
}
