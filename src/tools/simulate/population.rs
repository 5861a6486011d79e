//! Users: how many there are, how often each comes, and how eagerly each clicks.
//!
//! There is no table of users. A user is a number: low numbers come often, and all other traits follow from a hash of it.

use std::num::NonZeroU32;

use super::random::Random;

/// Number of eagerness classes. Each user belongs to one for good, all equally likely.
pub const N_EAGERNESS: usize = 3;

/// Users of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Population {
    pub n_users: NonZeroU32,
    pub activity: Activity,
    /// Factor on the click model for each class of users. It correlates the lists of one user.
    pub eagerness: [f64; N_EAGERNESS],
}

impl Default for Population {
    fn default() -> Population {
        Population {
            n_users: NonZeroU32::new(20_000).expect("20000 is not zero"),
            activity: Activity::Heavy,
            eagerness: [0.5, 1.0, 1.5],
        }
    }
}

impl Population {
    /// Draws the user of a request, in constant time for any number of users.
    pub fn draw(&self, random: &mut Random) -> u32 {
        let n_users = u64::from(self.n_users.get());
        let user = match self.activity {
            Activity::Even => random.below(n_users),
            Activity::Moderate => random.uneven(n_users),
            Activity::Heavy => random.skewed(n_users),
        };
        user as u32
    }
}

/// Distribution of requests over users. With N users, P(a request is from one of the first n) = (n/N)^(1 − 1/α), a Pareto
/// law with index α. All powers can be computed with +, × and √, which are the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Same frequency for all users.
    Even,
    /// α = 3: the busiest hundredth has 5% of the requests.
    Moderate,
    /// α = 2: the busiest hundredth has 10% of the requests, and the variance is infinite.
    Heavy,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the share of requests from the first hundredth of 100,000 users.
    #[track_caller]
    fn check(activity: Activity, expected: f64) {
        const N: u32 = 100_000;
        for n_users in [1_000, 3_000_000] {
            let population = Population {
                n_users: NonZeroU32::new(n_users).unwrap(),
                activity,
                ..Population::default()
            };
            let mut random = Random::new(1);
            let users: Vec<u32> = (0..N).map(|_| population.draw(&mut random)).collect();
            assert!(users.iter().all(|user| *user < n_users));
            let n_first = users.iter().filter(|user| **user < n_users / 100).count() as f64;
            let n = f64::from(N);
            let error = (expected * (1.0 - expected) / n).sqrt();
            assert!(
                (n_first / n - expected).abs() < 4.0 * error,
                "{activity:?}: {n_first}"
            );
        }
    }

    #[test]
    fn the_first_users_have_their_expected_share_of_requests() {
        check(Activity::Even, 0.01);
        check(Activity::Moderate, 0.01_f64.powf(2.0 / 3.0));
        check(Activity::Heavy, 0.1);
    }

    #[test]
    fn a_population_can_be_one_user() {
        let population = Population {
            n_users: NonZeroU32::MIN,
            ..Population::default()
        };
        assert_eq!(population.draw(&mut Random::new(1)), 0);
    }
}
