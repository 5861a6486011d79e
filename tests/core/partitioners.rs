//! The audit identifies the partitioner of each client in tests/data/partitioners, from few keys as well as from many.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use abgauge::stream::keys::{KeyAudit, KeyFinding, Partitioner, PartitionerVerdict, findings};
use proptest::prelude::*;
use proptest::sample::subsequence;

/// Partition of each key according to one client.
struct Answers {
    client: String,
    n_partitions: NonZeroU32,
    placed: Vec<(String, i32)>,
    /// Partition of an empty key. `None` if the client puts such records into any partition.
    empty: Option<i32>,
}

fn answers() -> Vec<Answers> {
    let keys: Vec<String> =
        serde_json::from_str(include_str!("../data/partitioners/keys.json")).expect("keys");
    let lines = include_str!("../data/partitioners/partitions.tsv").lines();
    let answers = lines.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [client, n, digits] = fields[..] else {
            panic!("three fields: {line}");
        };
        assert_eq!(digits.len(), keys.len(), "{client}");
        // Only the last key is empty, and only an empty key may have no fixed partition.
        let partition = |digit: char| digit.to_digit(36).map(u32::cast_signed);
        let mut placed: Vec<_> = keys.iter().cloned().zip(digits.chars().map(partition)).collect();
        let (last, empty) = placed.pop().expect("a key");
        assert_eq!(last, "");
        Answers {
            client: client.to_owned(),
            n_partitions: n.parse().expect("a number"),
            placed: placed
                .into_iter()
                .map(|(key, partition)| (key, partition.expect("a digit")))
                .collect(),
            empty,
        }
    });
    answers.collect()
}

/// Returns the partitioner of each client according to its documentation and source.
fn used_by(client: &str) -> Partitioner {
    match client {
        "confluent-kafka-python"
        | "@confluentinc/kafka-javascript callback"
        | "kafka-go CRC32Balancer"
        | "sarama NewConsistentCRCHashPartitioner"
        | "rust confluent-kafka"
        | "rust confluent-kafka partitioner=murmur2_random" => Partitioner::Crc32,
        "sarama NewConfig"
        | "sarama NewHashPartitioner"
        | "kafka-go Hash"
        | "confluent-kafka-python partitioner=fnv1a_random" => Partitioner::Fnv1a,
        "sarama NewReferenceHashPartitioner" | "kafka-go ReferenceHash" => Partitioner::Fnv1aMasked,
        "@platformatic/kafka" => Partitioner::Murmur2Unsigned,
        "kafkajs LegacyPartitioner" => Partitioner::KafkajsLegacy,
        "rust kafka" => Partitioner::Xxh32,
        "java"
        | "kafka-python"
        | "aiokafka"
        | "quixstreams"
        | "quixstreams partitioner=murmur2_random"
        | "confluent-kafka-python partitioner=murmur2_random"
        | "@confluentinc/kafka-javascript promisified"
        | "@confluentinc/kafka-javascript callback partitioner=murmur2_random"
        | "kafkajs"
        | "kafkajs DefaultPartitioner"
        | "kafka-ts"
        | "@platformatic/kafka compatibilityPartitioner"
        | "franz-go StickyKeyPartitioner"
        | "kafka-go Murmur2Balancer"
        | "sarama NewMurmur2Partitioner"
        | "rust kafka Murmur2"
        | "rust krafka"
        | "rust confluent-kafka partitioner.type=Murmur2RandomPartitioner" => Partitioner::Murmur2,
        _ => panic!("{client} is new"),
    }
}

/// Clients that treat an empty key as a missing one, and put such records into any partition.
const WITHOUT_EMPTY_KEYS: [&str; 7] = [
    "confluent-kafka-python",
    "@confluentinc/kafka-javascript callback",
    "kafka-go CRC32Balancer",
    "rust confluent-kafka",
    "rust confluent-kafka partitioner=murmur2_random",
    "rust kafka",
    "rust kafka Murmur2",
];

/// Returns the partitioner's name for this number of partitions. For some numbers, two partitioners are equivalent.
fn named(used: Partitioner, n_partitions: NonZeroU32) -> Partitioner {
    match (used, n_partitions.get()) {
        (Partitioner::Murmur2Unsigned, 2 | 16) => Partitioner::Murmur2,
        (Partitioner::Fnv1aMasked, 2) => Partitioner::Fnv1a,
        _ => used,
    }
}

#[test]
fn each_client_places_keys_like_its_partitioner() {
    for Answers {
        client,
        n_partitions,
        placed,
        ..
    } in answers()
    {
        for (key, partition) in placed {
            let expected = used_by(&client).partition(key.as_bytes(), n_partitions);
            assert_eq!(
                i32::try_from(expected),
                Ok(partition),
                "{client} {n_partitions} {key}"
            );
        }
    }
}

/// An empty key is hashed like any other, except by clients that treat it as missing.
#[test]
fn each_client_hashes_an_empty_key_or_treats_it_as_missing() {
    let mut without = BTreeSet::new();
    for Answers {
        client,
        n_partitions,
        empty,
        ..
    } in answers()
    {
        match empty {
            Some(partition) => {
                let expected = used_by(&client).partition(b"", n_partitions);
                assert_eq!(i32::try_from(expected), Ok(partition), "{client} {n_partitions}");
                assert!(!WITHOUT_EMPTY_KEYS.contains(&&*client), "{client} {n_partitions}");
            }
            None => drop(without.insert(client)),
        }
    }
    let expected: BTreeSet<String> = WITHOUT_EMPTY_KEYS.map(str::to_owned).into();
    assert_eq!(without, expected);
}

/// Clients differ in what they do with an empty key, so it is counted as a missing key, and not as evidence for a partitioner.
#[test]
fn empty_keys_are_reported_as_missing_and_name_no_partitioner() {
    for Answers {
        client,
        n_partitions,
        placed,
        empty,
    } in answers()
    {
        let mut audit = KeyAudit::new("t", n_partitions);
        for number in 0..200 {
            // Without a fixed partition, the records are in all of them.
            let partition = empty.unwrap_or(number % n_partitions.get().cast_signed());
            audit.observe(Some(b""), partition);
        }
        assert_eq!(audit.counts().null, 200, "{client} {n_partitions}");
        let is_undetermined = matches!(audit.verdict(), PartitionerVerdict::Undetermined { .. });
        assert!(is_undetermined, "{client} {n_partitions}: {:?}", audit.verdict());
        let found = findings(&[&audit]);
        assert_eq!(
            found,
            [KeyFinding::NoKeys {
                topic: "t".to_owned()
            }],
            "{client} {n_partitions}"
        );

        // They do not hide the partitioner of the other keys.
        for (key, partition) in &placed {
            audit.observe(Some(key.as_bytes()), *partition);
        }
        let expected = PartitionerVerdict::By(named(used_by(&client), n_partitions));
        assert_eq!(audit.verdict(), expected, "{client} {n_partitions}");
    }
}

/// After each key the audit has the right name, or several candidates that include it.
#[test]
fn no_number_of_keys_names_a_wrong_partitioner() {
    for Answers {
        client,
        n_partitions,
        placed,
        ..
    } in answers()
    {
        let expected = named(used_by(&client), n_partitions);
        let mut audit = KeyAudit::new("t", n_partitions);
        let mut n_keys_named = None;
        for (n_keys, (key, partition)) in (1..).zip(&placed) {
            audit.observe(Some(key.as_bytes()), *partition);
            match audit.verdict() {
                PartitionerVerdict::By(partitioner) => {
                    assert_eq!(
                        partitioner, expected,
                        "{client} {n_partitions} after {n_keys} keys"
                    );
                    n_keys_named.get_or_insert(n_keys);
                }
                PartitionerVerdict::Undetermined {
                    possible, n_needed, ..
                } => {
                    assert!(possible.has(expected), "{client} {n_partitions}: {possible:?}");
                    assert!(
                        n_needed > n_keys,
                        "{client} {n_partitions}: {n_needed} after {n_keys}"
                    );
                    assert_eq!(n_keys_named, None, "{client} {n_partitions} was named already");
                }
                other => panic!("{client} {n_partitions} after {n_keys} keys: {other:?}"),
            }
        }
        let n_keys_named = n_keys_named.expect("named in the end");
        assert!(n_keys_named <= 40, "{client} {n_partitions}: {n_keys_named}");
    }
}

/// Returns the text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).expect(before);
    rest.split_once(after).expect(after).0
}

#[test]
fn the_documented_versions_are_the_ones_that_were_run() {
    let make = include_str!("../data/partitioners/make");
    let pom = include_str!("../kafka/pom.xml");
    let java = format!("Java {}", between(pom, "<kafka.version>", "<"));
    let listed = between(
        include_str!("../../docs/topics.md"),
        "The versions are ",
        ". Their",
    );
    let listed = listed
        .replace('\n', " ")
        .replace("and in Rust ", "")
        .replace(" and ", ", ");
    for client in listed.split(", ") {
        let (name, version) = client.trim().split_once(' ').expect("a name and a version");
        let is_installed = ["==", "@", "@v", " = { version = \"=", " = \"="]
            .iter()
            .any(|between| make.contains(&format!("{name}{between}{version}")));
        assert!(
            is_installed || client == java,
            "{client} is not the version that was run"
        );
    }
}

proptest! {
    /// This holds for any keys in any order.
    #[test]
    fn no_choice_of_keys_names_a_wrong_partitioner(
        (row, keys) in (0..answers().len(), subsequence((0..200_usize).collect::<Vec<_>>(), 0..60).prop_shuffle())
    ) {
        let Answers { client, n_partitions, placed, .. } = answers().swap_remove(row);
        let mut audit = KeyAudit::new("t", n_partitions);
        for place in keys {
            let (key, partition) = &placed[place];
            audit.observe(Some(key.as_bytes()), *partition);
        }
        let expected = named(used_by(&client), n_partitions);
        match audit.verdict() {
            PartitionerVerdict::By(partitioner) => prop_assert_eq!(partitioner, expected),
            PartitionerVerdict::Undetermined { possible, .. } => prop_assert!(possible.has(expected)),
            other => prop_assert!(false, "{} {}: {:?}", client, n_partitions, other),
        }
    }
}
