//! Verdict on a topic's partitioner, from the partitioners that would have put each key into its partition.

use std::num::NonZeroU32;

use super::partitioner::{Partitioner, Partitioners};

/// Divisor: one key in this many may be in any partition without a finding.
const TOLERANCE: usize = 100;
/// Margin: a partitioner is ruled out if more keys than these, in addition to the tolerated ones, are elsewhere.
const MARGIN: usize = 3;
/// Inverse of the chance that an unknown partitioner puts all keys where a known one would.
const CHANCE: u64 = 10_000_000;
/// Number of different keys that show that no single partitioner chose their partitions. If there are two partitions, two
/// partitioners together explain three in four keys of any other one, so they need more keys than one.
const KEYS_OF_TWO: usize = 100;

/// Partitioner of a topic's producers, as far as its recent samples show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionerVerdict {
    /// Too few different keys, as always with one partition.
    Undetermined {
        n_keys: usize,
        /// Number of different keys to sample before the next verdict, if more can be sampled.
        n_needed: usize,
        /// Partitioners that would have put them there.
        possible: Partitioners,
    },
    By(Partitioner),
    /// Two partitioners, from different producers. If several pairs explain the keys, all partitioners in these pairs.
    Mixed(Partitioners),
    /// Unknown partitioner of more than a few keys: another one, explicit partitions, or partitions added later.
    Foreign,
}

impl PartitionerVerdict {
    /// Judges different keys by the partitioners that fit each of them.
    pub(super) fn of(keys: &[Partitioners], n_partitions: NonZeroU32) -> PartitionerVerdict {
        let known = Partitioner::ALL
            .into_iter()
            .filter(|one| one.differs(n_partitions));
        let singles: Vec<Partitioners> = known.map(Partitioners::from).collect();
        let one = RemainingCandidates::of(&singles, keys);
        let n_of_one = keys_of_one(n_partitions);
        // An unknown partitioner could put this few keys where a known one would, so no candidate may win yet.
        if keys.len() < n_of_one {
            let fitting = RemainingCandidates {
                possible: Vec::new(),
                ..one
            };
            return fitting.undetermined(n_of_one);
        }
        match one.fitting[..] {
            [(_, only)] if one.possible.is_empty() => {
                return only
                    .iter()
                    .next()
                    .map_or(PartitionerVerdict::Foreign, PartitionerVerdict::By);
            }
            [] if one.possible.is_empty() => {}
            _ => return one.undetermined(one.n_needed()),
        }

        // No single partitioner fits, so two producers may use different ones.
        if keys.len() < KEYS_OF_TWO {
            return one.undetermined(KEYS_OF_TWO);
        }
        // Each pair counts once, since the order of the two does not matter.
        let others = |place: usize| singles[place + 1..].iter();
        let pairs = singles
            .iter()
            .enumerate()
            .flat_map(|(place, one)| others(place).map(|other| one.union(*other)));
        let two = RemainingCandidates::of(&pairs.collect::<Vec<_>>(), keys);
        match (&two.fitting[..], &two.possible[..]) {
            ([], []) => PartitionerVerdict::Foreign,
            ([], _) => two.undetermined(two.n_needed()),
            _ => PartitionerVerdict::Mixed(two.named()),
        }
    }
}

/// Candidates that the keys have not ruled out, each with the number of keys that it does not fit, in ascending order.
struct RemainingCandidates {
    n_keys: usize,
    /// Candidates that fit all keys but the tolerated ones.
    fitting: Vec<(usize, Partitioners)>,
    /// Candidates that will fit if keys in other partitions turn out to be rare.
    possible: Vec<(usize, Partitioners)>,
}

impl RemainingCandidates {
    fn of(candidates: &[Partitioners], keys: &[Partitioners]) -> RemainingCandidates {
        let misses = |some: &Partitioners| keys.iter().filter(|fitting| !fitting.overlaps(*some)).count();
        let tolerated = keys.len() / TOLERANCE;
        let mut all: Vec<_> = candidates.iter().map(|some| (misses(some), *some)).collect();
        all.retain(|(misses, _)| *misses <= tolerated + MARGIN);
        all.sort_by_key(|(misses, _)| *misses);
        let possible = all.split_off(all.partition_point(|(misses, _)| *misses <= tolerated));
        RemainingCandidates {
            n_keys: keys.len(),
            fitting: all,
            possible,
        }
    }

    fn named(&self) -> Partitioners {
        let all = self.fitting.iter().chain(&self.possible);
        all.fold(Partitioners::default(), |named, (_, some)| named.union(*some))
    }

    fn undetermined(&self, n_needed: usize) -> PartitionerVerdict {
        PartitionerVerdict::Undetermined {
            n_keys: self.n_keys,
            n_needed,
            possible: self.named(),
        }
    }

    /// Returns the least number of keys that can rule out all but the first candidate, or make the first one fit.
    fn n_needed(&self) -> usize {
        let misses_of_second = match (&self.fitting[..], &self.possible[..]) {
            ([], [(misses, _), ..]) => return misses * TOLERANCE,
            ([_, (misses, _), ..], _) | ([_], [(misses, _), ..]) => *misses,
            ([], []) | ([_], []) => return self.n_keys,
        };
        self.n_keys + self.n_keys / TOLERANCE + MARGIN + 1 - misses_of_second
    }
}

/// Returns the least number of keys that land in given partitions by a chance of less than one in [`CHANCE`].
/// No number suffices for one partition.
fn keys_of_one(n_partitions: NonZeroU32) -> usize {
    if n_partitions.get() == 1 {
        return usize::MAX;
    }
    let mut power = 1_u64;
    let mut n_keys = 0;
    while power < CHANCE {
        power = power.saturating_mul(u64::from(n_partitions.get()));
        n_keys += 1;
    }
    n_keys
}

#[cfg(test)]
mod tests {
    use super::super::murmur2;
    use super::*;
    use Partitioner::*;

    fn n(n: u32) -> NonZeroU32 {
        NonZeroU32::new(n).unwrap()
    }

    fn judge(keys: impl Iterator<Item = (u32, Partitioner)>, n: NonZeroU32) -> PartitionerVerdict {
        let fitting = keys.map(|(id, partitioner)| {
            let key = format!("r-{id}");
            let partition = partitioner.partition(key.as_bytes(), n).cast_signed();
            Partitioners::of(key.as_bytes(), partition, n)
        });
        PartitionerVerdict::of(&fitting.collect::<Vec<_>>(), n)
    }

    fn all_by(partitioner: Partitioner, n_keys: u32, n: NonZeroU32) -> PartitionerVerdict {
        judge((0..n_keys).map(|id| (id, partitioner)), n)
    }

    /// 2^23 < 10^7 < 2^24, 12^6 < 10^7 < 12^7.
    #[test]
    fn fewer_partitions_need_more_keys() {
        assert_eq!([2, 3, 12, 100].map(|p| keys_of_one(n(p))), [24, 15, 7, 4]);
    }

    /// 12^6 < 10^7, so six keys are too few. Hashes below 2^31 do not distinguish related partitioners.
    #[test]
    fn few_keys_leave_exactly_the_partitioners_that_fit() {
        let possible = |verdict| match verdict {
            PartitionerVerdict::Undetermined { possible, .. } => possible,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            possible(all_by(Murmur2, 0, n(12))).len(),
            7,
            "nothing is ruled out"
        );
        assert_eq!(possible(all_by(Crc32, 6, n(12))), Crc32.into());
        let both = [Murmur2, Murmur2Unsigned].into_iter().collect();
        let alike = |id: &u32| murmur2(format!("r-{id}").as_bytes()) >= 0;
        let keys = (0..200).filter(alike).map(|id| (id, Murmur2Unsigned));
        assert_eq!(possible(judge(keys, n(12))), both);
    }

    #[test]
    fn distinguishes_related_partitioners_unless_they_agree() {
        assert_eq!(
            all_by(Murmur2Unsigned, 40, n(12)),
            PartitionerVerdict::By(Murmur2Unsigned)
        );
        assert_eq!(
            all_by(Murmur2Unsigned, 400, n(16)),
            PartitionerVerdict::By(Murmur2)
        );
        assert_eq!(all_by(Fnv1aMasked, 400, n(2)), PartitionerVerdict::By(Fnv1a));
        assert_eq!(
            all_by(Fnv1aMasked, 40, n(12)),
            PartitionerVerdict::By(Fnv1aMasked)
        );
    }

    #[test]
    fn names_two_partitioners_only_if_they_alone_fit() {
        let half = |id| (id, if id % 2 == 0 { Xxh32 } else { Fnv1a });
        let both = [Xxh32, Fnv1a].into_iter().collect();
        for p in [3, 12, 16] {
            assert_eq!(
                judge((0..300).map(half), n(p)),
                PartitionerVerdict::Mixed(both),
                "{p}"
            );
        }
        // Three producers, chosen by `id % 3`.
        let three = |id| (id, [Xxh32, Fnv1a, Crc32][id as usize % 3]);
        assert_eq!(judge((0..300).map(three), n(12)), PartitionerVerdict::Foreign);
        let waits = judge((0..99).map(half), n(12));
        assert!(
            matches!(
                waits,
                PartitionerVerdict::Undetermined {
                    n_needed: KEYS_OF_TWO,
                    ..
                }
            ),
            "{waits:?}"
        );
    }

    /// With two partitions, a few keys of a second producer fit several hashes.
    #[test]
    fn names_all_partitioners_that_cannot_be_distinguished() {
        let few_others = |id| (id, if id < 14 { Crc32 } else { Murmur2 });
        let verdict = judge((0..120).map(few_others), n(2));
        let PartitionerVerdict::Mixed(named) = verdict else {
            panic!("{verdict:?}");
        };
        assert!(
            named.has(Murmur2) && named.has(Crc32) && named.len() > 2,
            "{named:?}"
        );
    }
}
