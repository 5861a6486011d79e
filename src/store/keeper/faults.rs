//! Reasons why the state topic cannot be read or written: each lasts until the opposite is seen, and is logged once a
//! minute.

use std::sync::{Mutex, MutexGuard, PoisonError};

use abgauge_core::journal::Hindrance;

/// Time between two log lines about a lasting fault, ms.
const AGAIN_MS: i64 = 60_000;

/// Operation that can fail, each with its own sign of recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Recovers with an end: the brokers have answered.
    Asking,
    /// Recovers with a record, or when the log reports it. An end is not a sign: a log that does not grow reaches its end
    /// without reading.
    Reading,
    /// Recovers with an acknowledgement.
    Writing,
}

#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<[LastingFault; 3]>);

#[derive(Debug, Default)]
struct LastingFault {
    hindrance: Option<Hindrance>,
    logged_ms: Option<i64>,
}

impl Faults {
    /// Notes a fault and returns whether to log it.
    pub fn put(&self, what: Operation, hindrance: Hindrance, now_ms: i64) -> bool {
        let standing = &mut self.lock()[what as usize];
        // Replaced even if it is not logged, because readiness shows the latest message.
        standing.hindrance = Some(hindrance);
        let is_logged = standing
            .logged_ms
            .is_some_and(|logged_ms| now_ms - logged_ms < AGAIN_MS);
        if !is_logged {
            standing.logged_ms = Some(now_ms);
        }
        !is_logged
    }

    /// Notes that the operation works again.
    pub fn clear(&self, what: Operation) {
        self.lock()[what as usize].hindrance = None;
    }

    /// Returns all current faults in one sentence.
    pub fn all(&self) -> Option<String> {
        let standing = self.lock();
        let hindrances = standing.iter().filter_map(|one| one.hindrance.as_ref());
        let messages: Vec<&str> = hindrances.map(|hindrance| &*hindrance.message).collect();
        (!messages.is_empty()).then(|| messages.join("; "))
    }

    /// Returns whether a permission is missing.
    pub fn is_forbidden(&self) -> bool {
        let standing = self.lock();
        let mut hindrances = standing.iter().filter_map(|one| one.hindrance.as_ref());
        hindrances.any(|hindrance| hindrance.is_forbidden)
    }

    fn lock(&self) -> MutexGuard<'_, [LastingFault; 3]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden(message: &str) -> Hindrance {
        Hindrance {
            message: message.to_owned(),
            is_forbidden: true,
        }
    }

    #[test]
    fn a_fault_lasts_until_the_same_operation_succeeds() {
        let faults = Faults::default();
        faults.put(Operation::Writing, forbidden("no WRITE"), 0);
        faults.put(Operation::Reading, forbidden("no READ"), 0);
        assert_eq!(faults.all().as_deref(), Some("no READ; no WRITE"));
        faults.clear(Operation::Asking);
        assert_eq!(faults.all().as_deref(), Some("no READ; no WRITE"));
        faults.clear(Operation::Reading);
        assert_eq!(faults.all().as_deref(), Some("no WRITE"));
        assert!(faults.is_forbidden());
        faults.clear(Operation::Writing);
        assert_eq!((faults.all(), faults.is_forbidden()), (None, false));
    }

    #[test]
    fn a_lasting_fault_is_logged_once_a_minute() {
        let faults = Faults::default();
        assert!(faults.put(Operation::Writing, forbidden("no WRITE"), 0));
        faults.clear(Operation::Writing);
        assert!(!faults.put(Operation::Writing, forbidden("no WRITE"), AGAIN_MS - 1));
        assert!(
            faults.put(Operation::Reading, forbidden("no READ"), AGAIN_MS - 1),
            "another one"
        );
        assert!(faults.put(Operation::Writing, forbidden("no WRITE"), AGAIN_MS));
    }
}
