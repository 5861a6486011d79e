//! Complaints of clients that are not the answer to a request.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::{Failure, Trouble};
use crate::stream::kafka::client;

/// Collected complaints of the client. The answer to a request is often only a timeout.
#[derive(Default)]
pub(super) struct ClientComplaints(Mutex<Vec<Failure>>);

impl ClientComplaints {
    /// Maximum number of complaints, because a client that retries repeats itself.
    const MAX: usize = 100;

    fn add(&self, failure: Failure) {
        let mut complaints = self.all();
        if complaints.len() < ClientComplaints::MAX {
            complaints.push(failure);
        }
    }

    pub fn has(&self, like: impl Fn(&Failure) -> bool) -> bool {
        self.all().iter().any(like)
    }

    pub fn most_specific(&self) -> Option<Failure> {
        // The most specific one, and the first of its kind. That all brokers are down comes last and is the least specific.
        self.all().iter().min_by_key(|failure| failure.trouble).cloned()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Failure>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for ClientComplaints {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(level, facility, message);
        // The client reports the end of a connection as an error only if the broker was certainly at fault.
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

impl ConsumerContext for ClientComplaints {}
