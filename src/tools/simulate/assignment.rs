//! Assignment of users to arms by a hash of user number and experiment, independent of the ledger's buckets.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::design::{Combination, Design};

/// Assignment of users to arms for a given seed. A user always stays in the same arms.
#[derive(Debug, Clone)]
pub struct Assignment {
    experiments: Vec<Dealt>,
}

/// Arms of one experiment that have users.
#[derive(Debug, Clone)]
struct Dealt {
    salt: u64,
    /// First hash of each arm but the first. The first arm has all hashes below.
    begins: Vec<u64>,
    /// Contribution of each arm to the number of a combination.
    adds: Vec<Combination>,
}

impl Assignment {
    pub fn new(design: &Design, seed: u64) -> Assignment {
        let dealt = |index: usize| {
            let experiment = &design.experiments()[index];
            let stride = design.stride(index);
            let mut dealt = Dealt {
                salt: xxh3_64_with_seed(experiment.name.as_bytes(), seed),
                begins: Vec::new(),
                adds: Vec::new(),
            };
            let mut before = 0.0;
            for (arm, of_arm) in experiment.arms.iter().enumerate() {
                if of_arm.share > 0.0 {
                    // The first arm with users has no lower end: it takes all hashes below the second.
                    if before > 0.0 {
                        dealt.begins.push((before * 2_f64.powi(64)) as u64);
                    }
                    dealt.adds.push((arm * stride) as Combination);
                    before += of_arm.share;
                }
            }
            dealt
        };
        Assignment {
            experiments: (0..design.experiments().len()).map(dealt).collect(),
        }
    }

    /// Returns the arms that a user is in.
    pub fn of(&self, user: u32) -> Combination {
        self.experiments.iter().map(|dealt| dealt.of(user)).sum()
    }
}

impl Dealt {
    fn of(&self, user: u32) -> Combination {
        let hash = xxh3_64_with_seed(&u64::from(user).to_le_bytes(), self.salt);
        // Counting avoids a branch on the hash, which the processor would mispredict half of the time.
        let n_started: usize = self.begins.iter().map(|begin| usize::from(*begin <= hash)).sum();
        self.adds[n_started]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: u32 = 60_000;

    fn counts(shares: &[(&str, f64)], seed: u64) -> Vec<f64> {
        let shares: Vec<_> = shares
            .iter()
            .map(|(arm, share)| ((*arm).to_owned(), *share))
            .collect();
        let assignment = Assignment::new(&Design::default().with_shares(&shares).unwrap(), seed);
        let mut counts = vec![0.0; 6];
        for user in 0..N {
            counts[usize::from(assignment.of(user))] += 1.0;
        }
        counts
    }

    /// Checks that each combination has as many users as with independent draws.
    #[track_caller]
    fn check(shares: &[(&str, f64)], expected: [f64; 6]) {
        for seed in 0..5 {
            let counts = counts(shares, seed);
            for (count, share) in counts.iter().zip(expected) {
                let n = f64::from(N);
                let bound = 4.0 * (n * share * (1.0 - share)).sqrt();
                assert!((count - n * share).abs() <= bound, "{counts:?}");
            }
        }
    }

    #[test]
    fn arms_get_their_shares_independently_in_each_experiment() {
        check(&[], [1.0 / 6.0; 6]);
        check(
            &[("control", 0.9), ("neural", 0.09), ("blend", 0.01)],
            [0.45, 0.45, 0.045, 0.045, 0.005, 0.005],
        );
        check(
            &[("grid", 0.2), ("carousel", 0.8)],
            [0.2, 0.8, 0.2, 0.8, 0.2, 0.8].map(|share| share / 3.0),
        );
    }

    #[test]
    fn an_arm_without_a_share_gets_no_users() {
        check(
            &[("control", 0.5), ("blend", 0.5)],
            [0.25, 0.25, 0.0, 0.0, 0.25, 0.25],
        );
        check(&[("blend", 1.0)], [0.0, 0.0, 0.0, 0.0, 0.5, 0.5]);
    }

    #[test]
    fn another_seed_assigns_users_independently() {
        let [one, other] = [1, 2].map(|seed| Assignment::new(&Design::default(), seed));
        let n_same = (0..N).filter(|user| one.of(*user) == other.of(*user)).count();
        // Chance alone gives 10,000.
        assert!((9_600..10_400).contains(&n_same), "{n_same}");
    }

    #[test]
    fn a_growing_arm_keeps_its_users() {
        let treated = |share: f64| {
            let shares = [("control".to_owned(), 1.0 - share), ("neural".to_owned(), share)];
            let assignment = Assignment::new(&Design::default().with_shares(&shares).unwrap(), 1);
            move |user: &u32| assignment.of(*user) / 2 == 1
        };
        let (narrow, wide) = (treated(0.1), treated(0.5));
        let users: Vec<u32> = (0..N).filter(narrow).collect();
        assert!(users.len() > 5_000 && users.iter().all(wide));
    }
}
