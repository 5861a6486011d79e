//! Reasons why the state topic cannot be read or written: each lasts until the opposite is seen, and is logged once a
//! minute.

use std::sync::{Mutex, MutexGuard, PoisonError};

use abgauge_core::journal::{BlockedOperation, Hindrance, LogEvent, PartitionEvent};

/// Time between two log lines about a lasting fault, ms.
const AGAIN_MS: i64 = 60_000;

/// Operation that can fail, each with its own sign of recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Recovers with an end: the brokers have answered.
    Asking,
    /// Recovers with a record, or when the log reports it. An end is not a sign: a log that does not grow reaches its end
    /// without reading.
    Reading,
    /// Recovers with an acknowledgement.
    Writing,
}

#[derive(Debug, Default)]
pub struct Faults(Mutex<[LastingFault; 3]>);

#[derive(Debug, Default)]
struct LastingFault {
    hindrance: Option<Hindrance>,
    logged_ms: Option<i64>,
}

impl Faults {
    /// Notes an event of the log: a fault, or a sign that an operation works again. Returns the message of a fault that is due to
    /// be logged.
    pub fn note<'a>(&self, event: &'a LogEvent<'_>, now_ms: i64) -> Option<&'a str> {
        let (operation, hindrance) = match event {
            LogEvent::Partition(_, PartitionEvent::End(_)) => (Operation::Asking, None),
            LogEvent::Partition(_, PartitionEvent::Record { .. }) => (Operation::Reading, None),
            LogEvent::Partition(_, PartitionEvent::Acknowledged(_)) => (Operation::Writing, None),
            LogEvent::Partition(..) => return None,
            LogEvent::Fault { message, .. } => return self.put(Operation::Asking, message, false, now_ms),
            LogEvent::Hindered(BlockedOperation::Reading, hindrance) => {
                (Operation::Reading, hindrance.as_ref())
            }
            LogEvent::Hindered(BlockedOperation::Writing, hindrance) => {
                (Operation::Writing, hindrance.as_ref())
            }
        };
        let Some(Hindrance {
            message,
            is_forbidden,
        }) = hindrance
        else {
            self.clear(operation);
            return None;
        };
        self.put(operation, message, *is_forbidden, now_ms)
    }

    fn put<'a>(
        &self,
        operation: Operation,
        message: &'a str,
        is_forbidden: bool,
        now_ms: i64,
    ) -> Option<&'a str> {
        let standing = &mut self.lock()[operation as usize];
        // Replaced even if it is not logged, because readiness shows the latest message.
        standing.hindrance = Some(Hindrance {
            message: message.to_owned(),
            is_forbidden,
        });
        let is_logged = standing
            .logged_ms
            .is_some_and(|logged_ms| now_ms - logged_ms < AGAIN_MS);
        if is_logged {
            return None;
        }
        standing.logged_ms = Some(now_ms);
        Some(message)
    }

    /// Notes that the operation works again.
    pub fn clear(&self, what: Operation) {
        self.lock()[what as usize].hindrance = None;
    }

    /// Returns the current fault of an operation.
    pub fn of(&self, operation: Operation) -> Option<String> {
        let standing = &self.lock()[operation as usize];
        standing.hindrance.as_ref().map(|one| one.message.clone())
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

    fn forbidden(operation: BlockedOperation, message: &str) -> LogEvent<'static> {
        let hindrance = Hindrance {
            message: message.to_owned(),
            is_forbidden: true,
        };
        LogEvent::Hindered(operation, Some(hindrance))
    }

    #[test]
    fn a_fault_lasts_until_the_same_operation_succeeds() {
        let faults = Faults::default();
        faults.note(&forbidden(BlockedOperation::Writing, "no WRITE"), 0);
        faults.note(&forbidden(BlockedOperation::Reading, "no READ"), 0);
        assert_eq!(faults.all().as_deref(), Some("no READ; no WRITE"));
        faults.clear(Operation::Asking);
        assert_eq!(faults.all().as_deref(), Some("no READ; no WRITE"));
        faults.note(&LogEvent::Hindered(BlockedOperation::Reading, None), 0);
        assert_eq!(faults.all().as_deref(), Some("no WRITE"));
        assert!(faults.is_forbidden());
        faults.clear(Operation::Writing);
        assert_eq!((faults.all(), faults.is_forbidden()), (None, false));
    }

    #[test]
    fn a_lasting_fault_is_logged_once_a_minute() {
        let faults = Faults::default();
        let writing = forbidden(BlockedOperation::Writing, "no WRITE");
        assert_eq!(faults.note(&writing, 0), Some("no WRITE"));
        faults.clear(Operation::Writing);
        assert_eq!(faults.note(&writing, AGAIN_MS - 1), None);
        let reading = forbidden(BlockedOperation::Reading, "no READ");
        assert_eq!(
            faults.note(&reading, AGAIN_MS - 1),
            Some("no READ"),
            "another one"
        );
        assert_eq!(faults.note(&writing, AGAIN_MS), Some("no WRITE"));
    }
}
