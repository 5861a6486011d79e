//! Which partitioner wrote a topic, judged by the keys of its records and the partitions that hold them.
//!
//! A click reaches its list only if both topics put a key into the same partition. Java's client hashes keys with
//! murmur2, librdkafka (Python, Go, C, Node.js) with CRC32 unless told otherwise: nine in ten clicks then miss their list.

mod finding;
mod partitioner;

use std::num::NonZeroU32;

pub use self::finding::{KeyFinding, findings};
pub use self::partitioner::{crc32_partition, murmur2, murmur2_partition, partition_of_murmur2};

/// Records of a topic looked at from its first on; afterwards one in [`STRIDE`].
const N_FIRST: u64 = 1000;
const STRIDE: u64 = 64;
/// A verdict needs this many samples that tell something.
const MIN_SAMPLES: u64 = 100;
/// Counts behind a verdict are halved whenever there are this many, so that it follows a producer that is mended.
const MAX_RECENT: u64 = 1024;
/// A share of the samples below one in this many is no finding.
const TOLERANCE: u64 = 100;

/// What sampled records of a topic were.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct KeyCounts {
    /// Without a key, or with an empty one.
    pub null: u64,
    /// In the partition of murmur2, which is not that of CRC32.
    pub murmur2: u64,
    /// In the partition of CRC32, which is not that of murmur2.
    pub crc32: u64,
    /// In the partition of both, which tells nothing.
    pub both: u64,
    /// In the partition of neither.
    pub foreign: u64,
}

impl KeyCounts {
    pub fn sampled(&self) -> u64 {
        self.null + self.murmur2 + self.crc32 + self.both + self.foreign
    }

    /// Samples that tell the partitioners apart.
    pub fn informative(&self) -> u64 {
        self.murmur2 + self.crc32 + self.foreign
    }

    fn of(&mut self, key: Option<&[u8]>, partition: i32, n_partitions: NonZeroU32) -> &mut u64 {
        let Some(key) = key.filter(|key| !key.is_empty()) else {
            return &mut self.null;
        };
        let is_here = |expected: u32| i32::try_from(expected) == Ok(partition);
        match (
            is_here(murmur2_partition(key, n_partitions)),
            is_here(crc32_partition(key, n_partitions)),
        ) {
            (true, false) => &mut self.murmur2,
            (false, true) => &mut self.crc32,
            (true, true) => &mut self.both,
            (false, false) => &mut self.foreign,
        }
    }

    fn halve(&mut self) {
        self.each(&KeyCounts::default(), |count, _| *count /= 2);
    }

    fn add(&mut self, more: &KeyCounts) {
        self.each(more, |count, more| *count += more);
    }

    fn each(&mut self, other: &KeyCounts, change: impl Fn(&mut u64, u64)) {
        change(&mut self.null, other.null);
        change(&mut self.murmur2, other.murmur2);
        change(&mut self.crc32, other.crc32);
        change(&mut self.both, other.both);
        change(&mut self.foreign, other.foreign);
    }
}

/// Looks at some of a topic's keys, for its [`KeyAudit`]: several of them may share the topic's partitions.
#[derive(Debug, Clone)]
pub struct KeySampler {
    n_partitions: NonZeroU32,
    n_observed: u64,
    counts: KeyCounts,
}

impl KeySampler {
    pub fn new(n_partitions: NonZeroU32) -> Self {
        KeySampler {
            n_partitions,
            n_observed: 0,
            counts: KeyCounts::default(),
        }
    }

    /// Takes the next `n` records of a partition, of which `key` tells one by its place; looks at few.
    pub fn observe<'a>(&mut self, n: usize, partition: i32, key: impl Fn(usize) -> Option<&'a [u8]>) {
        let before = self.n_observed;
        self.n_observed += n as u64;
        let first = before + 1..=self.n_observed.min(N_FIRST);
        let later = before.max(N_FIRST) / STRIDE + 1..=self.n_observed / STRIDE;
        for number in first.chain(later.map(|stride| stride * STRIDE)) {
            let key = key((number - before - 1) as usize);
            *self.counts.of(key, partition, self.n_partitions) += 1;
        }
    }

    /// What was seen since it was last taken.
    pub fn take(&mut self) -> KeyCounts {
        std::mem::take(&mut self.counts)
    }
}

/// The partitioner of a topic's producers, as far as its recent samples show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Too few informative samples; always so with one partition.
    Undetermined,
    Murmur2,
    Crc32,
    /// Both, from different producers.
    Mixed,
    /// Neither, for more than a few keys: another partitioner, explicit partitions, or partitions added later.
    Foreign,
}

/// Compares a topic's keys with its partitions.
#[derive(Debug, Clone)]
pub struct KeyAudit {
    topic: String,
    n_partitions: NonZeroU32,
    sampler: KeySampler,
    counts: KeyCounts,
    recent: KeyCounts,
}

impl KeyAudit {
    pub fn new(topic: &str, n_partitions: NonZeroU32) -> Self {
        KeyAudit {
            topic: topic.to_owned(),
            n_partitions,
            sampler: KeySampler::new(n_partitions),
            counts: KeyCounts::default(),
            recent: KeyCounts::default(),
        }
    }

    /// Takes every record of the topic; looks at few.
    pub fn observe(&mut self, key: Option<&[u8]>, partition: i32) {
        self.sampler.observe(1, partition, |_| key);
        let counts = self.sampler.take();
        self.add(&counts);
    }

    /// A sampler for a part of the topic's records.
    pub fn sampler(&self) -> KeySampler {
        KeySampler::new(self.n_partitions)
    }

    /// Takes what a sampler has seen.
    pub fn add(&mut self, counts: &KeyCounts) {
        if self.recent.sampled() >= MAX_RECENT {
            self.recent.halve();
        }
        self.counts.add(counts);
        self.recent.add(counts);
    }

    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// All samples since the start, for telemetry.
    pub fn counts(&self) -> KeyCounts {
        self.counts
    }

    pub fn verdict(&self) -> Verdict {
        let KeyCounts {
            murmur2,
            crc32,
            foreign,
            ..
        } = self.recent;
        let n = self.recent.informative();
        if n < MIN_SAMPLES {
            Verdict::Undetermined
        } else if is_notable(foreign, n) {
            Verdict::Foreign
        } else if is_notable(murmur2, n) && is_notable(crc32, n) {
            Verdict::Mixed
        } else if murmur2 > crc32 {
            Verdict::Murmur2
        } else {
            Verdict::Crc32
        }
    }

    fn lacks_keys(&self) -> bool {
        let n = self.recent.sampled();
        self.n_partitions.get() > 1 && n >= MIN_SAMPLES && is_notable(self.recent.null, n)
    }
}

fn is_notable(count: u64, n: u64) -> bool {
    count * TOLERANCE > n
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    type Partitioner = fn(&[u8], NonZeroU32) -> u32;

    fn partitions(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    pub fn feed(audit: &mut KeyAudit, ids: std::ops::Range<u32>, partitioner: Partitioner) {
        for id in ids {
            let key = format!("r-{id}");
            let partition = partitioner(key.as_bytes(), audit.n_partitions);
            audit.observe(Some(key.as_bytes()), partition as i32);
        }
    }

    pub fn audit_of(topic: &str, n_partitions: u32, partitioner: Partitioner) -> KeyAudit {
        let mut audit = KeyAudit::new(topic, partitions(n_partitions));
        feed(&mut audit, 0..500, partitioner);
        audit
    }

    pub fn fnv1a_partition(key: &[u8], n_partitions: NonZeroU32) -> u32 {
        let hash = key.iter().fold(0x811c_9dc5_u32, |hash, &byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        hash % n_partitions
    }

    #[test]
    fn a_verdict_names_the_partitioner() {
        for n in [2, 3, 4, 12, 100] {
            assert_eq!(
                audit_of("t", n, murmur2_partition).verdict(),
                Verdict::Murmur2,
                "{n}"
            );
            assert_eq!(audit_of("t", n, crc32_partition).verdict(), Verdict::Crc32, "{n}");
            assert_eq!(
                audit_of("t", n, fnv1a_partition).verdict(),
                Verdict::Foreign,
                "{n}"
            );
        }
    }

    #[test]
    fn two_partitioners_in_one_topic_are_mixed() {
        let mut audit = audit_of("t", 4, murmur2_partition);
        feed(&mut audit, 500..600, crc32_partition);
        assert_eq!(audit.verdict(), Verdict::Mixed);
    }

    #[test]
    fn one_odd_key_in_a_hundred_is_tolerated() {
        let mut audit = audit_of("t", 4, murmur2_partition);
        audit.observe(Some(b"21"), -1);
        assert_eq!((audit.counts().foreign, audit.verdict()), (1, Verdict::Murmur2));
    }

    #[test]
    fn nothing_is_said_before_a_hundred_informative_samples() {
        let mut audit = KeyAudit::new("t", partitions(2));
        let mut ids = 0..;
        while audit.counts().informative() < 99 {
            let id = ids.next().unwrap();
            feed(&mut audit, id..id + 1, crc32_partition);
        }
        assert_eq!(audit.verdict(), Verdict::Undetermined);
        while audit.counts().informative() < 100 {
            let id = ids.next().unwrap();
            feed(&mut audit, id..id + 1, crc32_partition);
        }
        assert_eq!(audit.verdict(), Verdict::Crc32);
    }

    #[test]
    fn one_partition_tells_and_harms_nothing() {
        let mut audit = audit_of("t", 1, murmur2_partition);
        for _ in 0..500 {
            audit.observe(None, 0);
        }
        assert_eq!(
            audit.counts(),
            KeyCounts {
                both: 500,
                null: 500,
                ..KeyCounts::default()
            }
        );
        assert_eq!(audit.verdict(), Verdict::Undetermined);
        assert_eq!(findings(&[&audit]), []);
    }

    #[test]
    fn looks_at_the_first_thousand_records_then_at_one_in_sixty_four() {
        let mut audit = KeyAudit::new("t", partitions(4));
        feed(&mut audit, 0..1000, murmur2_partition);
        assert_eq!(audit.counts().sampled(), 1000);
        feed(&mut audit, 1000..1000 + 64 * 50, murmur2_partition);
        assert_eq!(audit.counts().sampled(), 1050);
    }

    #[test]
    fn many_records_at_a_time_are_sampled_as_one_by_one() {
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
    fn a_verdict_follows_producers_that_are_mended() {
        let mut audit = KeyAudit::new("t", partitions(4));
        feed(&mut audit, 0..2_000, crc32_partition);
        assert_eq!(audit.verdict(), Verdict::Crc32);
        feed(&mut audit, 2_000..400_000, murmur2_partition);
        assert_eq!(audit.verdict(), Verdict::Murmur2);
        assert!(
            audit.counts().crc32 > 500,
            "telemetry forgets nothing: {:?}",
            audit.counts()
        );
    }
}
