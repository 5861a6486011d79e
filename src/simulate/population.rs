//! Users: how many there are, how often each comes, and how eagerly each clicks.
//!
//! There is no table of them. A user is a number: low numbers come often, and all else follows from a hash of it.

use std::num::NonZeroU32;

use super::random::Random;

/// Kinds of users by eagerness; each user is one of them for good, all equally likely.
pub const N_EAGERNESS: usize = 3;

/// The users of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Population {
    pub n_users: NonZeroU32,
    pub activity: Activity,
    /// By how much each kind of user clicks more often than the click model says: what makes the lists of one user alike.
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
    /// Draws the user of a request, in constant time however many there are.
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

/// How unevenly requests are spread over users. With N users, P(a request is of one of the first n) = (n/N)^(1 − 1/α): their
/// shares follow a Pareto law of index α. Powers that +, × and √ make are the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// All come equally often.
    Even,
    /// α = 3: the busiest hundredth has 5% of the requests.
    Moderate,
    /// α = 2: the busiest hundredth has 10% of the requests, and the variance is infinite.
    Heavy,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of the first hundredth of the users, of 100,000.
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
    fn the_first_users_have_as_many_requests_as_the_law_says() {
        check(Activity::Even, 0.01);
        check(Activity::Moderate, 0.01_f64.powf(2.0 / 3.0));
        check(Activity::Heavy, 0.1);
    }

    #[test]
    fn one_user_is_a_population() {
        let population = Population {
            n_users: NonZeroU32::MIN,
            ..Population::default()
        };
        assert_eq!(population.draw(&mut Random::new(1)), 0);
    }
}
