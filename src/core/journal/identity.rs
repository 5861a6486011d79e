//! Identity of the log that state belongs to, and differences from another log.

use std::fmt;

use crate::nouns::number_of;

/// Topic of the counted log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedTopic {
    pub name: String,
    /// Id from Kafka, which is new with each creation. 0 if it is not known.
    pub id: u128,
}

/// Identity of the log that state was counted from. State with another identity is not resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogIdentity {
    /// Settings that decide where an event counts, as text.
    pub fingerprint: String,
    /// Topic of lists, then topic of clicks, or one for both.
    pub topics: Vec<CountedTopic>,
    pub n_partitions: u32,
}

/// Difference between the log of a stored state and the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogDifference {
    Fingerprint { stored: String },
    Topics { stored: Vec<String> },
    MadeAnew { topic: String, stored: u128, now: u128 },
    Partitions { stored: u32, now: u32 },
}

impl LogIdentity {
    /// Returns the first difference from a stored identity. A topic id that is unknown on either side does not count as one.
    pub fn difference(&self, stored: &LogIdentity) -> Option<LogDifference> {
        if stored.fingerprint != self.fingerprint {
            let stored = stored.fingerprint.clone();
            return Some(LogDifference::Fingerprint { stored });
        }
        let names =
            |of: &LogIdentity| -> Vec<String> { of.topics.iter().map(|topic| topic.name.clone()).collect() };
        if names(stored) != names(self) {
            let stored = names(stored);
            return Some(LogDifference::Topics { stored });
        }
        // The names are equal, so both lists have the same order.
        let mut topics = self.topics.iter().zip(&stored.topics);
        let other = topics.find(|(now, stored)| now.id != stored.id && now.id != 0 && stored.id != 0);
        if let Some((now, stored)) = other {
            return Some(LogDifference::MadeAnew {
                topic: now.name.clone(),
                stored: stored.id,
                now: now.id,
            });
        }
        (stored.n_partitions != self.n_partitions).then_some(LogDifference::Partitions {
            stored: stored.n_partitions,
            now: self.n_partitions,
        })
    }

    /// Returns the same identity, with ids that only `other` knows filled in, so that no known id is lost.
    pub fn knowing(&self, other: &LogIdentity) -> LogIdentity {
        let mut both = self.clone();
        for (topic, known) in both.topics.iter_mut().zip(&other.topics) {
            if topic.id == 0 {
                topic.id = known.id;
            }
        }
        both
    }
}

impl fmt::Display for LogDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogDifference::Fingerprint { stored } => write!(f, "it was counted by other rules: {stored}"),
            LogDifference::Topics { stored } => {
                write!(f, "it was counted from other topics: {}", stored.join(", "))
            }
            LogDifference::MadeAnew { topic, stored, now } => {
                let [now, stored] = [*now, *stored].map(id_text);
                write!(
                    f,
                    "topic `{topic}` was recreated since: its id is {now}, and was {stored}"
                )
            }
            LogDifference::Partitions { stored, now } => {
                write!(
                    f,
                    "the event topics had {} then, and have {now} now",
                    number_of(stored, "partition")
                )
            }
        }
    }
}

/// Formats an id as Kafka's tools do: URL-safe base64 without padding.
fn id_text(id: u128) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digit = |index: u32| {
        // The last of 22 digits has two bits of the id and four zeros.
        let shifted = match 122_u32.checked_sub(6 * index) {
            Some(shift) => id >> shift,
            None => id << 4,
        };
        char::from(DIGITS[(shifted & 63) as usize])
    };
    (0..22).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::fixture::identity;

    #[test]
    fn reports_each_kind_of_difference_between_logs() {
        let now = identity();
        let check = |change: fn(&mut LogIdentity), text: &str| {
            let mut stored = identity();
            change(&mut stored);
            let difference = now.difference(&stored).map(|difference| difference.to_string());
            assert_eq!(difference.as_deref(), Some(text));
        };
        check(
            |of| of.fingerprint = "slot 1s".to_owned(),
            "it was counted by other rules: slot 1s",
        );
        check(
            |of| of.topics[1].name = "taps".to_owned(),
            "it was counted from other topics: served, taps",
        );
        check(
            |of| _ = of.topics.pop(),
            "it was counted from other topics: served",
        );
        check(
            |of| of.topics[0].id = u128::MAX,
            "topic `served` was recreated since: its id is AAAAAAAAAAAAAAAAAAAABw, and was _____________________w",
        );
        check(
            |of| of.n_partitions = 6,
            "the event topics had 6 partitions then, and have 12 now",
        );
        assert_eq!(now.difference(&identity()), None);
    }

    #[test]
    fn an_unknown_topic_id_is_not_a_difference_and_is_filled_in() {
        let (known, mut unknown) = (identity(), identity());
        unknown.topics[0].id = 0;
        assert_eq!(known.difference(&unknown), None);
        assert_eq!(unknown.difference(&known), None);
        assert_eq!(unknown.knowing(&known), known);
        assert_eq!(known.knowing(&unknown), known);
    }

    #[test]
    fn formats_ids_like_kafka() {
        // The id of the topic __cluster_metadata, which Kafka's sources contain in both forms.
        assert_eq!(id_text(1), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(id_text(0xfb << 120 | 0xff), "-wAAAAAAAAAAAAAAAAAA_w");
    }
}
