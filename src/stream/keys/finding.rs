//! Findings about keys, for the operator.

use std::fmt;
use std::num::NonZeroU32;

use super::{KeyAudit, Partitioner, PartitionerVerdict, Partitioners};

/// Obstacle between clicks and their lists, with its remedy as text. It contains no changing figures, so it stays equal to
/// itself and is logged only once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFinding {
    /// Different partitioners in the two topics.
    Different {
        /// Topic and partitioner; murmur2 is second if it is one of them.
        topics: [(String, Partitioner); 2],
        n_partitions: NonZeroU32,
    },
    /// Different partitioners within one topic: all that may be among them.
    Mixed {
        topic: String,
        partitioners: Partitioners,
    },
    /// Keys in partitions that no known partitioner chooses.
    Foreign { topic: String },
    /// Records without a key, or with an empty one.
    NoKeys { topic: String },
}

impl fmt::Display for KeyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyFinding::Different {
                topics: [one, other],
                n_partitions,
            } => write!(
                f,
                "about {share} clicks find no list, because producers use different partitioners: topic `{topic}` is keyed with \
                 {partitioner}, topic `{other_topic}` with {other_partitioner}: {remedies}",
                share = missed(one.1, other.1, *n_partitions),
                topic = one.0,
                partitioner = one.1,
                other_topic = other.0,
                other_partitioner = other.1,
                remedies = remedies(
                    [one, other].map(|(topic, used)| (*used, format!("in the producers of `{topic}`")))
                ),
            ),
            KeyFinding::Mixed { topic, partitioners } if partitioners.len() == 2 => write!(
                f,
                "topic `{topic}` is keyed with {} by different producers: {}",
                partitioners.joined("and"),
                remedies(
                    partitioners
                        .iter()
                        .map(|used| (used, "in those that use it".to_owned()))
                ),
            ),
            KeyFinding::Mixed { topic, partitioners } => write!(
                f,
                "topic `{topic}` is keyed with two partitioners by different producers, but its keys do not show which two of {}: use murmur2 in all of them; docs/topics.md explains how for each client",
                partitioners.joined("and"),
            ),
            KeyFinding::Foreign { topic } => write!(
                f,
                "topic `{topic}` has keys in partitions that neither murmur2 (Java's) nor CRC32 (librdkafka's default) nor the \
                 partitioner of another known client gives them: use partitioner=murmur2_random or Java's default in the producers \
                 of lists and of clicks; partitions that were added after the records, or a custom partitioner for both, look the same"
            ),
            KeyFinding::NoKeys { topic } => write!(
                f,
                "topic `{topic}` has records without a key or with an empty one, which can be in any partition: send the request id as the \
                 key, or the user id with kafka.key = \"user\", in the producers of `{topic}`"
            ),
        }
    }
}

/// Returns the share of keys that the two put into different partitions. Related partitioners agree on every hash whose
/// sign bit is clear.
fn missed(one: Partitioner, other: Partitioner, n_partitions: NonZeroU32) -> String {
    let both: Partitioners = [one, other].into_iter().collect();
    let kin = [
        [Partitioner::Murmur2, Partitioner::Murmur2Unsigned],
        [Partitioner::Fnv1a, Partitioner::Fnv1aMasked],
    ];
    match kin.into_iter().any(|kin| both == kin.into_iter().collect()) {
        true => "half of the".to_owned(),
        false => format!("{} of {n_partitions}", n_partitions.get() - 1),
    }
}

/// Returns how to make all of them use murmur2. Each comes with the place to change.
fn remedies(used: impl IntoIterator<Item = (Partitioner, String)>) -> String {
    let used = used.into_iter();
    // Producers that use murmur2 already need no change.
    let others = used.filter(|(partitioner, _)| *partitioner != Partitioner::Murmur2);
    let remedies: Vec<String> = others
        .map(|(partitioner, place)| partitioner.remedy(&place))
        .collect();
    remedies.join("; ")
}

/// Returns the findings of the audits of the served topic and the clicks topic, or of one audit if they are the same topic.
pub fn findings(audits: &[&KeyAudit]) -> Vec<KeyFinding> {
    let mut findings = Vec::new();
    let mut keyed = Vec::new();
    for audit in audits {
        let topic = audit.topic.clone();
        match audit.verdict() {
            PartitionerVerdict::Mixed(partitioners) => findings.push(KeyFinding::Mixed {
                topic: topic.clone(),
                partitioners,
            }),
            PartitionerVerdict::Foreign => findings.push(KeyFinding::Foreign { topic: topic.clone() }),
            PartitionerVerdict::By(partitioner) => keyed.push((topic.clone(), partitioner)),
            PartitionerVerdict::Undetermined { .. } => {}
        }
        if audit.lacks_keys() {
            findings.push(KeyFinding::NoKeys { topic });
        }
    }
    // Two audits are compared only if each has a single clear result.
    if let [one, other] = &keyed[..]
        && one.1 != other.1
    {
        let mut topics = [one.clone(), other.clone()];
        // In a fixed order, so that the same finding stays equal to itself and is logged once.
        topics.sort_by_key(|(_, partitioner)| std::cmp::Reverse(*partitioner));
        findings.push(KeyFinding::Different {
            topics,
            n_partitions: audits[0].n_partitions,
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use Partitioner::*;

    use super::super::tests::{audit_of, feed, feed_foreign};
    use super::*;

    fn messages(audits: &[&KeyAudit]) -> Vec<String> {
        findings(audits).iter().map(KeyFinding::to_string).collect()
    }

    #[test]
    fn advises_the_librdkafka_side_to_change() {
        let expected = "about 3 of 4 clicks find no list, because producers use different partitioners: topic `clicks` is \
                        keyed with CRC32 (librdkafka's default), topic `served` with murmur2 (Java's): set \
                        partitioner=murmur2_random in the producers of `clicks` (Rust's confluent-kafka ignores that: \
                        partitioner.type=Murmur2RandomPartitioner)";
        let served = audit_of("served", 4, Murmur2);
        let clicks = audit_of("clicks", 4, Crc32);
        assert_eq!(messages(&[&served, &clicks]), [expected]);
        assert_eq!(messages(&[&clicks, &served]), [expected]);
    }

    /// The message names both with their remedies if neither is Java's. Related ones miss half of the clicks with any number of
    /// partitions.
    #[test]
    fn names_any_two_partitioners_with_their_remedies() {
        let audits = [Fnv1a, Fnv1aMasked, Murmur2Unsigned].map(|used| audit_of("t", 12, used));
        let [text] = &messages(&[&audits[0], &audits[1]])[..] else {
            panic!()
        };
        assert!(
            text.starts_with("about half of the clicks find no list"),
            "{text}"
        );
        assert_eq!(text.matches("sarama.NewMurmur2Partitioner").count(), 2, "{text}");
        let [text] = &messages(&[&audits[0], &audits[2]])[..] else {
            panic!()
        };
        assert!(text.starts_with("about 11 of 12 clicks find no list"), "{text}");
        assert!(
            text.contains("compatibilityPartitioner") && text.contains("kafka.Murmur2Balancer{}"),
            "{text}"
        );
    }

    #[test]
    fn topics_keyed_alike_are_fine() {
        for partitioner in Partitioner::ALL {
            let (served, clicks) = (
                audit_of("served", 4, partitioner),
                audit_of("clicks", 4, partitioner),
            );
            assert_eq!(findings(&[&served, &clicks]), []);
        }
    }

    #[test]
    fn mixed_foreign_and_missing_keys_are_named_by_topic() {
        let mut mixed = audit_of("served", 4, Murmur2);
        feed(&mut mixed, 500..600, Crc32);
        let mut foreign = KeyAudit::new("clicks", NonZeroU32::new(4).unwrap());
        feed_foreign(&mut foreign, 0..500);
        for key in [None, Some(&b""[..])].repeat(50) {
            foreign.observe(key, 0);
        }
        assert_eq!(foreign.counts().null, 100);
        let topic = String::from("clicks");
        assert_eq!(
            findings(&[&mixed, &foreign]),
            [
                KeyFinding::Mixed {
                    topic: "served".into(),
                    partitioners: [Murmur2, Crc32].into_iter().collect(),
                },
                KeyFinding::Foreign { topic: topic.clone() },
                KeyFinding::NoKeys { topic },
            ]
        );
        let text = messages(&[&mixed, &foreign]).join("\n");
        for words in [
            "topic `served` is keyed with murmur2 (Java's) and CRC32 (librdkafka's default) by different producers: set \
             partitioner=murmur2_random in those that use it",
            "topic `clicks` has keys in partitions that neither",
            "send the request id as the key, or the user id with kafka.key",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
    }
}
