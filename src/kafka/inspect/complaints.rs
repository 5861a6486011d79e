//! What clients complain of on their own account.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::{Failure, Trouble};
use crate::kafka::client;

/// Keeps what the client complains of: the answer to a question often is only that time was up.
#[derive(Default)]
pub(super) struct Complaints(Mutex<Vec<Failure>>);

impl Complaints {
    /// A client that retries repeats itself.
    const MAX: usize = 100;

    fn add(&self, failure: Failure) {
        let mut complaints = self.all();
        if complaints.len() < Complaints::MAX {
            complaints.push(failure);
        }
    }

    pub fn has(&self, like: impl Fn(&Failure) -> bool) -> bool {
        self.all().iter().any(like)
    }

    pub fn most_telling(&self) -> Option<Failure> {
        // The first of the same kind: that all brokers are down comes last and says least.
        self.all().iter().min_by_key(|failure| failure.trouble).cloned()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Failure>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Complaints {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(level, facility, message);
        // Why a connection ended is an error to the client only if the broker was at fault for certain.
        if facility == "FAIL" {
            let message = message
                .split_once("]: ")
                .map_or(message, |(_thread, message)| message);
            let trouble = match client::refused_certificate(facility, message) {
                Some(_) => Trouble::Tls,
                None => Trouble::Unreachable,
            };
            self.add(Failure::new(trouble, message));
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::PartitionEOF) {
            self.add(Failure::of(&error, reason));
        }
    }
}

impl ConsumerContext for Complaints {}
