//! Detection of the partitioner that wrote a topic, from the keys of its records and their partitions.
//!
//! A click reaches its list only if both topics put a key into the same partition. Java's client hashes keys with murmur2,
//! librdkafka (Python, C, .NET) by default with CRC32, and Sarama with FNV-1a. If two of them are mixed, most clicks miss
//! their list.

mod finding;
mod partitioner;
mod verdict;

use std::collections::{HashSet, VecDeque};
use std::num::NonZeroU32;

pub use self::finding::{KeyFinding, findings};
pub use self::partitioner::{Partitioner, Partitioners, murmur2, murmur2_partition};
pub use self::verdict::PartitionerVerdict;

/// Number of first records of a topic that are all sampled. Of later ones, one in [`STRIDE`] is.
const N_FIRST: u64 = 1000;
const STRIDE: u64 = 64;
/// Number of samples needed to judge whether records have keys.
const MIN_SAMPLES: usize = 100;
/// Number of recent samples that a verdict depends on, so that it follows a producer that was fixed.
const MAX_RECENT: usize = 1024;
/// Divisor: a share of the samples below one in this many is not a finding.
const TOLERANCE: usize = 100;

/// Sampled record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySample {
    /// Record without a key, or with an empty one.
    NoKey,
    Keyed {
        /// Hash and partition of the key. A repeated key is not new evidence.
        place: (i32, i32),
        /// Partitioners that would have chosen this partition.
        fitting: Partitioners,
    },
}

impl KeySample {
    fn of(key: Option<&[u8]>, partition: i32, n_partitions: NonZeroU32) -> KeySample {
        match key.filter(|key| !key.is_empty()) {
            None => KeySample::NoKey,
            Some(key) => KeySample::Keyed {
                place: (murmur2(key), partition),
                fitting: Partitioners::of(key, partition, n_partitions),
            },
        }
    }
}

/// Counts of samples since the start, for telemetry.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct KeyCounts {
    pub sampled: u64,
    /// Records without a key, or with an empty one.
    pub null: u64,
    /// Keys that only one partitioner explains, in the order of [`Partitioner::ALL`].
    pub only_by: [u64; Partitioner::ALL.len()],
    /// Keys in a partition that no known partitioner chooses.
    pub foreign: u64,
}

impl KeyCounts {
    fn add(&mut self, sample: KeySample, n_partitions: NonZeroU32) {
        self.sampled += 1;
        let KeySample::Keyed { fitting, .. } = sample else {
            self.null += 1;
            return;
        };
        // With this number of partitions, some partitioners agree with an earlier one. They prove nothing.
        let mut telling = fitting.iter().filter(|one| one.differs(n_partitions));
        match (telling.next(), telling.next()) {
            (Some(only), None) => self.only_by[only as usize] += 1,
            (None, _) if fitting.is_empty() => self.foreign += 1,
            _ => {}
        }
    }

    /// Returns the label and count of each finding.
    pub fn findings(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let only_by = Partitioner::ALL.map(|one| (one.label(), self.only_by[one as usize]));
        [("null", self.null), ("foreign", self.foreign)]
            .into_iter()
            .chain(only_by)
    }
}

/// Sampler of a topic's keys, for its [`KeyAudit`]. Several of them may share the topic's partitions.
#[derive(Debug, Clone)]
pub struct KeySampler {
    n_partitions: NonZeroU32,
    n_observed: u64,
    samples: Vec<KeySample>,
}

impl KeySampler {
    pub fn new(n_partitions: NonZeroU32) -> Self {
        KeySampler {
            n_partitions,
            n_observed: 0,
            samples: Vec::new(),
        }
    }

    /// Takes the next `n` records of a partition, and samples a few. `key` returns the key of a record by its index.
    pub fn observe<'a>(&mut self, n: usize, partition: i32, key: impl Fn(usize) -> Option<&'a [u8]>) {
        let before = self.n_observed;
        self.n_observed += n as u64;
        let first = before + 1..=self.n_observed.min(N_FIRST);
        // Later samples are at multiples of the stride, so the choice does not depend on the sizes of batches.
        let later = before.max(N_FIRST) / STRIDE + 1..=self.n_observed / STRIDE;
        for number in first.chain(later.map(|stride| stride * STRIDE)) {
            // Records are numbered from 1 over all batches, but `key` takes the index within this one.
            let key = key((number - before - 1) as usize);
            self.samples
                .push(KeySample::of(key, partition, self.n_partitions));
        }
    }

    /// Returns the samples since the last call.
    pub fn take(&mut self) -> Vec<KeySample> {
        std::mem::take(&mut self.samples)
    }
}

/// Comparison of a topic's keys with its partitions.
#[derive(Debug, Clone)]
pub struct KeyAudit {
    topic: String,
    n_partitions: NonZeroU32,
    sampler: KeySampler,
    counts: KeyCounts,
    recent: VecDeque<KeySample>,
}

impl KeyAudit {
    pub fn new(topic: &str, n_partitions: NonZeroU32) -> Self {
        KeyAudit {
            topic: topic.to_owned(),
            n_partitions,
            sampler: KeySampler::new(n_partitions),
            counts: KeyCounts::default(),
            recent: VecDeque::new(),
        }
    }

    /// Takes the next record of the topic. Only a few of the records are sampled.
    pub fn observe(&mut self, key: Option<&[u8]>, partition: i32) {
        self.sampler.observe(1, partition, |_| key);
        let samples = self.sampler.take();
        self.add(&samples);
    }

    /// Creates a sampler for a part of the topic's records.
    pub fn sampler(&self) -> KeySampler {
        KeySampler::new(self.n_partitions)
    }

    /// Adds samples of the topic.
    pub fn add(&mut self, samples: &[KeySample]) {
        for sample in samples {
            self.counts.add(*sample, self.n_partitions);
            if self.recent.len() == MAX_RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(*sample);
        }
    }

    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Returns the counts of all samples since the start, for telemetry.
    pub fn counts(&self) -> KeyCounts {
        self.counts
    }

    pub fn verdict(&self) -> PartitionerVerdict {
        let mut seen = HashSet::new();
        let mut keys = Vec::new();
        for sample in &self.recent {
            // A key that comes again is not new evidence: a bot may send one key many times.
            if let KeySample::Keyed { place, fitting } = sample
                && seen.insert(place)
            {
                keys.push(*fitting);
            }
        }
        PartitionerVerdict::of(&keys, self.n_partitions)
    }

    fn lacks_keys(&self) -> bool {
        let n = self.recent.len();
        let without = self
            .recent
            .iter()
            .filter(|sample| **sample == KeySample::NoKey)
            .count();
        // With a single partition, keys do not matter.
        self.n_partitions.get() > 1 && n >= MIN_SAMPLES && without * TOLERANCE > n
    }
}

#[cfg(test)]
pub(super) mod tests {
    use Partitioner::*;

    use super::*;

    fn partitions(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    pub fn feed(audit: &mut KeyAudit, ids: std::ops::Range<u32>, partitioner: Partitioner) {
        for id in ids {
            let key = format!("r-{id}");
            let partition = partitioner.partition(key.as_bytes(), audit.n_partitions);
            audit.observe(Some(key.as_bytes()), partition as i32);
        }
    }

    /// Feeds keys whose partitions the producer computes itself, from the squares of the key's bytes.
    pub fn feed_foreign(audit: &mut KeyAudit, ids: std::ops::Range<u32>) {
        for id in ids {
            let key = format!("r-{id}");
            let sum: u32 = key.bytes().map(u32::from).map(|digit| digit * digit).sum();
            audit.observe(Some(key.as_bytes()), (sum / 3 % audit.n_partitions) as i32);
        }
    }

    pub fn audit_of(topic: &str, n_partitions: u32, partitioner: Partitioner) -> KeyAudit {
        let mut audit = KeyAudit::new(topic, partitions(n_partitions));
        feed(&mut audit, 0..500, partitioner);
        audit
    }

    #[test]
    fn a_verdict_names_the_partitioner() {
        for n in [2, 3, 4, 12, 100] {
            for partitioner in Partitioner::ALL
                .into_iter()
                .filter(|one| one.differs(partitions(n)))
            {
                let verdict = audit_of("t", n, partitioner).verdict();
                assert_eq!(verdict, PartitionerVerdict::By(partitioner), "{n}");
            }
            let mut foreign = KeyAudit::new("t", partitions(n));
            feed_foreign(&mut foreign, 0..500);
            assert_eq!(foreign.verdict(), PartitionerVerdict::Foreign, "{n}");
        }
    }

    #[test]
    fn two_partitioners_in_one_topic_are_mixed() {
        let mut audit = audit_of("t", 4, Murmur2);
        feed(&mut audit, 500..600, Crc32);
        assert_eq!(
            audit.verdict(),
            PartitionerVerdict::Mixed([Murmur2, Crc32].into_iter().collect())
        );
    }

    #[test]
    fn one_odd_key_in_a_hundred_is_tolerated() {
        let mut audit = audit_of("t", 4, Murmur2);
        audit.observe(Some(b"21"), -1);
        assert_eq!(
            (audit.counts().foreign, audit.verdict()),
            (1, PartitionerVerdict::By(Murmur2))
        );
    }

    /// Six keys repeat many times, as with a bot, or a topic keyed by few tenants.
    #[test]
    fn a_repeated_key_is_counted_once() {
        let mut audit = KeyAudit::new("t", partitions(12));
        for _ in 0..200 {
            feed(&mut audit, 0..6, Crc32);
        }
        assert_eq!(audit.counts().sampled, 1000 + 200 / 64);
        let PartitionerVerdict::Undetermined {
            n_keys: 6,
            n_needed: 7,
            possible,
        } = audit.verdict()
        else {
            panic!("{:?}", audit.verdict());
        };
        assert_eq!(possible, Crc32.into());
        feed(&mut audit, 6..900, Crc32);
        assert_eq!(audit.verdict(), PartitionerVerdict::By(Crc32));
    }

    #[test]
    fn one_partition_determines_and_harms_nothing() {
        let mut audit = audit_of("t", 1, Murmur2);
        for _ in 0..500 {
            audit.observe(None, 0);
        }
        let counts = KeyCounts {
            sampled: 1000,
            null: 500,
            ..KeyCounts::default()
        };
        assert_eq!(audit.counts(), counts);
        assert!(matches!(audit.verdict(), PartitionerVerdict::Undetermined { .. }));
        assert_eq!(findings(&[&audit]), []);
    }

    /// A key that several partitioners explain counts for none of them.
    #[test]
    fn telemetry_counts_keys_that_only_one_partitioner_explains() {
        let counts = audit_of("t", 12, Fnv1a).counts();
        let found: Vec<_> = counts.findings().filter(|(_, n)| *n > 0).collect();
        let [("fnv1a", only)] = found[..] else {
            panic!("{found:?}")
        };
        // Both kinds of FNV-1a agree on half of the keys.
        assert!((100..250).contains(&only), "{only}");
    }

    #[test]
    fn looks_at_the_first_thousand_records_then_at_one_in_sixty_four() {
        let mut audit = KeyAudit::new("t", partitions(4));
        feed(&mut audit, 0..1000, Murmur2);
        assert_eq!(audit.counts().sampled, 1000);
        feed(&mut audit, 1000..1000 + 64 * 50, Murmur2);
        assert_eq!(audit.counts().sampled, 1050);
    }

    #[test]
    fn batches_are_sampled_like_single_records() {
        let keys: Vec<String> = (0..5000).map(|id| format!("r-{id}")).collect();
        let mut single = KeySampler::new(partitions(4));
        for key in &keys {
            single.observe(1, 2, |_| Some(key.as_bytes()));
        }
        let mut batches = KeySampler::new(partitions(4));
        let mut rest = &keys[..];
        for n in [1, 0, 900, 99, 1, 62, 1, 64, 1000, 2872] {
            let (batch, after) = rest.split_at(n);
            batches.observe(n, 2, |place| Some(batch[place].as_bytes()));
            rest = after;
        }
        assert!(rest.is_empty());
        assert_eq!(batches.take(), single.take());
    }

    #[test]
    fn a_verdict_follows_producers_that_are_fixed() {
        let mut audit = KeyAudit::new("t", partitions(4));
        feed(&mut audit, 0..2_000, Crc32);
        assert_eq!(audit.verdict(), PartitionerVerdict::By(Crc32));
        feed(&mut audit, 2_000..400_000, Murmur2);
        assert_eq!(audit.verdict(), PartitionerVerdict::By(Murmur2));
        assert!(
            audit.counts().only_by[Crc32 as usize] > 200,
            "telemetry forgets nothing: {:?}",
            audit.counts()
        );
    }
}
