//! What the audits of both topics mean for the operator.

use std::fmt;
use std::num::NonZeroU32;

use super::{KeyAudit, Verdict};

/// What keeps clicks from their lists, with its remedy as text. It carries no figures that change, so that it is equal to
/// itself as long as it lasts and need be logged once only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFinding {
    /// The producers of one topic hash with CRC32, those of the other with murmur2.
    Different {
        crc32_topic: String,
        murmur2_topic: String,
        n_partitions: NonZeroU32,
    },
    /// Some producers of a topic hash with CRC32, others with murmur2.
    Mixed { topic: String },
    /// Keys lie where neither hash puts them.
    Foreign { topic: String },
    /// Records have no key.
    NoKeys { topic: String },
}

impl fmt::Display for KeyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyFinding::Different {
                crc32_topic,
                murmur2_topic,
                n_partitions,
            } => write!(
                f,
                "about {n_missed} of {n_partitions} clicks find no list, since producers use different partitioners: topic \
                 `{crc32_topic}` is keyed with CRC32 (librdkafka's default), topic `{murmur2_topic}` with murmur2 (Java's): \
                 set partitioner=murmur2_random in the producers of `{crc32_topic}`",
                n_missed = n_partitions.get() - 1,
            ),
            KeyFinding::Mixed { topic } => write!(
                f,
                "topic `{topic}` is keyed with CRC32 (librdkafka's default) by some producers and with murmur2 (Java's) \
                 by others: set partitioner=murmur2_random in those that use librdkafka"
            ),
            KeyFinding::Foreign { topic } => write!(
                f,
                "topic `{topic}` has keys in partitions that neither murmur2 (Java's) nor CRC32 (librdkafka's default) \
                 gives them: use partitioner=murmur2_random or Java's default in the producers of lists and of clicks; \
                 partitions that were added after the records, or one partitioner of your own for both, look the same"
            ),
            KeyFinding::NoKeys { topic } => write!(
                f,
                "topic `{topic}` has records without a key, which land in any partition: send the request id as the \
                 key, or the user id with kafka.key = \"user\", in the producers of `{topic}`"
            ),
        }
    }
}

/// What the audits of the served topic and the clicks topic show; one audit where they are the same topic.
pub fn findings(audits: &[&KeyAudit]) -> Vec<KeyFinding> {
    let mut findings = Vec::new();
    for audit in audits {
        let topic = audit.topic.clone();
        match audit.verdict() {
            Verdict::Mixed => findings.push(KeyFinding::Mixed { topic: topic.clone() }),
            Verdict::Foreign => findings.push(KeyFinding::Foreign { topic: topic.clone() }),
            Verdict::Undetermined | Verdict::Murmur2 | Verdict::Crc32 => {}
        }
        if audit.lacks_keys() {
            findings.push(KeyFinding::NoKeys { topic });
        }
    }
    let keyed_with = |verdict| audits.iter().find(|audit| audit.verdict() == verdict);
    if let (Some(crc32), Some(murmur2)) = (keyed_with(Verdict::Crc32), keyed_with(Verdict::Murmur2)) {
        findings.push(KeyFinding::Different {
            crc32_topic: crc32.topic.clone(),
            murmur2_topic: murmur2.topic.clone(),
            n_partitions: crc32.n_partitions,
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::{audit_of, feed, fnv1a_partition};
    use super::super::{crc32_partition, murmur2_partition};
    use super::*;

    fn messages(audits: &[&KeyAudit]) -> Vec<String> {
        findings(audits).iter().map(KeyFinding::to_string).collect()
    }

    #[test]
    fn the_librdkafka_side_is_told_to_change() {
        let expected = "about 3 of 4 clicks find no list, since producers use different partitioners: topic `clicks` is \
                        keyed with CRC32 (librdkafka's default), topic `served` with murmur2 (Java's): set \
                        partitioner=murmur2_random in the producers of `clicks`";
        let served = audit_of("served", 4, murmur2_partition);
        let clicks = audit_of("clicks", 4, crc32_partition);
        assert_eq!(messages(&[&served, &clicks]), [expected]);
        assert_eq!(messages(&[&clicks, &served]), [expected]);
    }

    #[test]
    fn topics_keyed_alike_are_fine() {
        for partitioner in [murmur2_partition, crc32_partition] {
            let (served, clicks) = (
                audit_of("served", 4, partitioner),
                audit_of("clicks", 4, partitioner),
            );
            assert_eq!(findings(&[&served, &clicks]), []);
        }
    }

    #[test]
    fn mixed_foreign_and_missing_keys_are_named_by_topic() {
        let mut mixed = audit_of("served", 4, murmur2_partition);
        feed(&mut mixed, 500..600, crc32_partition);
        let mut foreign = audit_of("clicks", 4, fnv1a_partition);
        for key in [None, Some(&b""[..])].repeat(50) {
            foreign.observe(key, 0);
        }
        assert_eq!(foreign.counts().null, 100);
        let topic = String::from("clicks");
        assert_eq!(
            findings(&[&mixed, &foreign]),
            [
                KeyFinding::Mixed {
                    topic: "served".into()
                },
                KeyFinding::Foreign { topic: topic.clone() },
                KeyFinding::NoKeys { topic },
            ]
        );
        let text = messages(&[&foreign]).join("\n");
        assert!(
            text.contains("topic `clicks` has keys in partitions that neither"),
            "{text}"
        );
        assert!(
            text.contains("send the request id as the key, or the user id with kafka.key"),
            "{text}"
        );
    }
}
