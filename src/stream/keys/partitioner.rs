//! Partitioners of known clients, and how to make each client use Java's murmur2.

use std::fmt;
use std::num::NonZeroU32;

use xxhash_rust::xxh32::xxh32;

/// Function from a key to its partition. docs/topics.md lists the clients of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Partitioner {
    /// Java's client, and most others.
    Murmur2,
    /// librdkafka's default, `consistent_random`.
    Crc32,
    /// Sarama's default and `Hash` of kafka-go: the hash is signed, and its absolute value counts.
    Fnv1a,
    /// `NewReferenceHashPartitioner` of Sarama and `ReferenceHash` of kafka-go: the sign bit is cleared.
    Fnv1aMasked,
    /// The default of @platformatic/kafka: Java's hash without its mask of the sign bit.
    Murmur2Unsigned,
    /// `LegacyPartitioner` of kafkajs: Java's hash in floating point, which loses bits.
    KafkajsLegacy,
    /// The default of Rust's `kafka`.
    Xxh32,
}

impl Partitioner {
    pub const ALL: [Partitioner; 7] = [
        Partitioner::Murmur2,
        Partitioner::Crc32,
        Partitioner::Fnv1a,
        Partitioner::Fnv1aMasked,
        Partitioner::Murmur2Unsigned,
        Partitioner::KafkajsLegacy,
        Partitioner::Xxh32,
    ];

    pub fn partition(self, key: &[u8], n_partitions: NonZeroU32) -> u32 {
        let hash = match self {
            Partitioner::Murmur2 => return partition_of_murmur2(murmur2(key), n_partitions),
            Partitioner::Crc32 => crc32fast::hash(key),
            // The hash is signed, so its remainder may be negative.
            Partitioner::Fnv1a => return (fnv1a(key) % n_partitions.get().cast_signed()).unsigned_abs(),
            Partitioner::Fnv1aMasked => fnv1a(key).cast_unsigned() & 0x7fff_ffff,
            Partitioner::Murmur2Unsigned => murmur2(key).cast_unsigned(),
            Partitioner::KafkajsLegacy => murmur2_of_kafkajs(key).cast_unsigned() & 0x7fff_ffff,
            Partitioner::Xxh32 => xxh32(key, 0),
        };
        hash % n_partitions
    }

    /// Returns whether this partitioner puts some key elsewhere than all those before it in [`Partitioner::ALL`]. The sign
    /// bit adds 2^31 to a hash, which does not matter modulo a power of two. Two partitions depend on parity, and the
    /// absolute value has the same one.
    pub fn differs(self, n_partitions: NonZeroU32) -> bool {
        match self {
            _ if n_partitions.get() == 1 => false,
            Partitioner::Murmur2Unsigned => !n_partitions.is_power_of_two(),
            Partitioner::Fnv1aMasked => n_partitions.get() > 2,
            _ => true,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Partitioner::Murmur2 => "murmur2",
            Partitioner::Crc32 => "CRC32",
            Partitioner::Fnv1a => "FNV-1a",
            Partitioner::Fnv1aMasked => "FNV-1a without its sign",
            Partitioner::Murmur2Unsigned => "unsigned murmur2",
            Partitioner::KafkajsLegacy => "the legacy hash of kafkajs",
            Partitioner::Xxh32 => "XXH32",
        }
    }

    /// Returns the label in telemetry.
    pub fn label(self) -> &'static str {
        match self {
            Partitioner::Murmur2 => "murmur2",
            Partitioner::Crc32 => "crc32",
            Partitioner::Fnv1a => "fnv1a",
            Partitioner::Fnv1aMasked => "fnv1a_masked",
            Partitioner::Murmur2Unsigned => "murmur2_unsigned",
            Partitioner::KafkajsLegacy => "kafkajs_legacy",
            Partitioner::Xxh32 => "xxh32",
        }
    }

    /// Returns how to make its clients use murmur2, at a place such as "in the producers of `clicks`".
    pub(super) fn remedy(self, place: &str) -> String {
        match self {
            Partitioner::Murmur2 => format!("change nothing {place}"),
            Partitioner::Crc32 => format!(
                "set partitioner=murmur2_random {place} (Rust's confluent-kafka ignores that: \
                 partitioner.type=Murmur2RandomPartitioner)"
            ),
            Partitioner::Fnv1a | Partitioner::Fnv1aMasked => format!(
                "set sarama.NewMurmur2Partitioner (Sarama), kafka.Murmur2Balancer{{}} (kafka-go) or \
                 partitioner=murmur2_random (librdkafka) {place}"
            ),
            Partitioner::Murmur2Unsigned => format!("set partitioner: compatibilityPartitioner {place}"),
            Partitioner::KafkajsLegacy => {
                format!("set createPartitioner: Partitioners.DefaultPartitioner {place}")
            }
            Partitioner::Xxh32 => format!("use with_partitioner and the hasher of docs/topics.md {place}"),
        }
    }
}

/// Writes the name and the clients that use it.
impl fmt::Display for Partitioner {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let of = match self {
            Partitioner::Murmur2 => "Java's",
            Partitioner::Crc32 => "librdkafka's default",
            Partitioner::Fnv1a => "Sarama's default, Hash of kafka-go",
            Partitioner::Fnv1aMasked => "NewReferenceHashPartitioner of Sarama, ReferenceHash of kafka-go",
            Partitioner::Murmur2Unsigned => "@platformatic/kafka's default",
            Partitioner::KafkajsLegacy => "its LegacyPartitioner",
            Partitioner::Xxh32 => "default of Rust's kafka",
        };
        write!(f, "{} ({of})", self.name())
    }
}

/// Set of partitioners.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Partitioners(u8);

impl Partitioners {
    /// Returns the partitioners that put this key into this partition.
    pub fn of(key: &[u8], partition: i32, n_partitions: NonZeroU32) -> Partitioners {
        let puts = |one: &Partitioner| i32::try_from(one.partition(key, n_partitions)) == Ok(partition);
        Partitioner::ALL.into_iter().filter(puts).collect()
    }

    pub fn has(self, one: Partitioner) -> bool {
        self.overlaps(one.into())
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub fn union(self, other: Partitioners) -> Partitioners {
        Partitioners(self.0 | other.0)
    }

    pub fn overlaps(self, other: Partitioners) -> bool {
        self.0 & other.0 != 0
    }

    pub fn iter(self) -> impl Iterator<Item = Partitioner> {
        Partitioner::ALL.into_iter().filter(move |one| self.has(*one))
    }

    /// Lists the names, with `word` before the last.
    pub fn joined(self, word: &str) -> String {
        let names: Vec<String> = self.iter().map(|one| one.to_string()).collect();
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} {word} {last}", rest.join(", ")),
            Some((only, _)) => only.clone(),
            None => String::new(),
        }
    }
}

impl From<Partitioner> for Partitioners {
    fn from(one: Partitioner) -> Self {
        // Each partitioner has a bit of its own. There must be at most eight.
        Partitioners(1 << one as u8)
    }
}

impl FromIterator<Partitioner> for Partitioners {
    fn from_iter<I: IntoIterator<Item = Partitioner>>(all: I) -> Self {
        let all = all.into_iter().map(Partitioners::from);
        all.fold(Partitioners::default(), Partitioners::union)
    }
}

/// Computes the hash of Java's default partitioner, `org.apache.kafka.common.utils.Utils.murmur2`.
pub fn murmur2(key: &[u8]) -> i32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ key.len() as u32;
    let (words, tail) = key.as_chunks::<4>();
    for word in words {
        let k = u32::from_le_bytes(*word).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ (k ^ (k >> 24)).wrapping_mul(M);
    }
    // Java adds the remaining bytes in a switch without breaks.
    if !tail.is_empty() {
        for (i, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * i);
        }
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    (hash ^ (hash >> 15)) as i32
}

/// Returns the partition that Java's client, or `partitioner=murmur2_random`, chooses for a key.
pub fn murmur2_partition(key: &[u8], n_partitions: NonZeroU32) -> u32 {
    Partitioner::Murmur2.partition(key, n_partitions)
}

/// Returns the partition of a key with this hash.
fn partition_of_murmur2(hash: i32, n_partitions: NonZeroU32) -> u32 {
    // Java clears the sign bit instead of taking the absolute value, which would overflow for the lowest hash.
    (hash as u32 & 0x7fff_ffff) % n_partitions
}

fn fnv1a(key: &[u8]) -> i32 {
    let hash = key.iter().fold(0x811c_9dc5_u32, |hash, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash.cast_signed()
}

/// Computes `murmur2` of kafkajs before 2.0 (src/producer/partitioners/legacy/murmur2.js). Its products are JavaScript's
/// numbers: rounded to 53 bits before they are cut to 32. Its loop also takes a last, partial word, padded with zeros.
fn murmur2_of_kafkajs(key: &[u8]) -> i32 {
    const M: f64 = 0x5bd1_e995_u32 as f64;
    // The seed exceeds 2^31, and `^` makes it signed.
    let mut hash = f64::from((0x9747_b28c ^ key.len() as u32).cast_signed());
    for word in key.chunks(4) {
        let mut bytes = [0; 4];
        bytes[..word.len()].copy_from_slice(word);
        let product = f64::from(i32::from_le_bytes(bytes)) * M;
        let mixed = to_int32(product) ^ (to_int32(product).cast_unsigned() >> 24).cast_signed();
        hash = f64::from(to_int32(hash * M) ^ to_int32(f64::from(mixed) * M));
    }
    let (_, tail) = key.as_chunks::<4>();
    if !tail.is_empty() {
        let mut bits = to_int32(hash);
        for (i, byte) in tail.iter().enumerate() {
            bits ^= i32::from(*byte) << (8 * i);
        }
        hash = f64::from(bits) * M;
    }
    let bits = to_int32(hash);
    let bits = to_int32(f64::from(bits ^ (bits.cast_unsigned() >> 13).cast_signed()) * M);
    bits ^ (bits.cast_unsigned() >> 15).cast_signed()
}

/// Computes `ToInt32` of JavaScript, for whole numbers that are products of 32 bits.
fn to_int32(number: f64) -> i32 {
    // Such products are below 2^63, so the first cast does not saturate, and the second keeps the low 32 bits.
    number as i64 as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    /// Cases of Apache Kafka's `UtilsTest.testMurmur2`.
    #[test]
    fn murmur2_matches_java() {
        for (key, hash) in [
            ("21", -973932308),
            ("foobar", -790332482),
            ("a-little-bit-long-string", -985981536),
            ("a-little-bit-longer-string", -1486304829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
            ("abc", 479470107),
        ] {
            assert_eq!(murmur2(key.as_bytes()), hash, "{key}");
        }
    }

    /// -973932308 & 0x7fffffff = 1173551340, and as unsigned it is 3321034988. The CRC32 of `123456789` is published as
    /// 0xcbf43926 = 3421780262. The FNV-1a of `a` is published as 0xe40c292c = -468965076, which without its sign bit is
    /// 1678518572.
    #[test]
    fn partitions_match_the_clients() {
        let cases = [
            (Partitioner::Murmur2, "21", 1_173_551_340),
            (Partitioner::Murmur2Unsigned, "21", 3_321_034_988),
            (Partitioner::Crc32, "123456789", 3_421_780_262),
            (Partitioner::Fnv1a, "a", 468_965_076),
            (Partitioner::Fnv1aMasked, "a", 1_678_518_572),
        ];
        for (partitioner, key, hash) in cases {
            for n in [1, 7, 10, 12] {
                assert_eq!(
                    partitioner.partition(key.as_bytes(), partitions(n)),
                    hash % n,
                    "{partitioner} {n}"
                );
            }
        }
    }

    /// Some key of a thousand distinguishes each partitioner from each other, unless `differs` denies it.
    #[test]
    fn partitioners_differ_exactly_as_declared() {
        for n in 1..=70 {
            let n = partitions(n);
            for (place, one) in Partitioner::ALL.into_iter().enumerate() {
                let as_before = Partitioner::ALL[..place].iter().any(|before| {
                    (0..1000).all(|id| {
                        let key = format!("key-{id}");
                        one.partition(key.as_bytes(), n) == before.partition(key.as_bytes(), n)
                    })
                });
                let alone = n.get() == 1;
                assert_eq!(one.differs(n), !as_before && !alone, "{one} {n}");
            }
        }
    }
}
