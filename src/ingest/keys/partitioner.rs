//! Where the common clients put a key.

use std::num::NonZeroU32;

/// The hash of Java's default partitioner, `org.apache.kafka.common.utils.Utils.murmur2`.
pub fn murmur2(key: &[u8]) -> i32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ key.len() as u32;
    let (words, tail) = key.as_chunks::<4>();
    for word in words {
        let k = u32::from_le_bytes(*word).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ (k ^ (k >> 24)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (i, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * i);
        }
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    (hash ^ (hash >> 15)) as i32
}

/// The partition that Java's client, or `partitioner=murmur2_random`, gives a key.
pub fn murmur2_partition(key: &[u8], n_partitions: NonZeroU32) -> u32 {
    partition_of_murmur2(murmur2(key), n_partitions)
}

/// The same of a key with this hash.
pub fn partition_of_murmur2(hash: i32, n_partitions: NonZeroU32) -> u32 {
    (hash as u32 & 0x7fff_ffff) % n_partitions
}

/// The partition that librdkafka's default, `partitioner=consistent_random`, gives a key.
pub fn crc32_partition(key: &[u8], n_partitions: NonZeroU32) -> u32 {
    crc32fast::hash(key) % n_partitions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    /// The cases of Apache Kafka's `UtilsTest.testMurmur2`.
    #[test]
    fn murmur2_is_that_of_java() {
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

    /// -973932308 & 0x7fffffff = 1173551340; the CRC32 of `123456789` is published as 0xcbf43926 = 3421780262.
    #[test]
    fn partitions_are_those_of_the_clients() {
        assert_eq!(murmur2_partition(b"21", partitions(7)), 1_173_551_340 % 7);
        assert_eq!(murmur2_partition(b"abc", partitions(10)), 7);
        assert_eq!(crc32_partition(b"123456789", partitions(10)), 2);
        assert_eq!(crc32_partition(b"123456789", partitions(7)), 3_421_780_262 % 7);
    }
}
