//! Phases of a pair, and the transitions between them.
//!
//! ```text
//!           assigned             located              caught up
//! nothing ──────────▶ Locating ──────────▶ Replaying ──────────▶ Serving
//!    ▲                 ▲  │ ▲                 │ │                 │ │
//!    │                 │  │ └── position lost ┴─┼─────────────────┘ │
//!    │        assigned │  │ revoked             │ revoked           │ revoked
//!    │                 │  ▼                     ▼                   │
//!    └──────────────── Parked ◀─────────────────┴───────────────────┘
//!      went elsewhere
//! ```
//!
//! A transition that does not fit a phase leaves it unchanged. A pair that is read may also be *held*: see `hold`.

use abgauge_core::engine::event::Side;

use super::pair::Pair;
use crate::stream::LogStart;

#[derive(Debug)]
pub enum Life {
    /// Owned and hidden, until its stored state is known.
    Restoring,
    /// Owned and hidden, until the bounds of its logs are known. An earlier pair is resumed if the logs still have its
    /// positions.
    Locating(Option<Pair>),
    /// Read but hidden: it has not reached the ends that were noted when it was located.
    Replaying(Pair),
    /// Read and shown.
    Serving(Pair),
    /// Revoked and hidden: the next assignment decides whether it comes back.
    Parked(Pair),
}

impl Life {
    /// Enters the phase after an assignment. `before` is the earlier phase, if any. If pairs are stored, a pair that is not
    /// in memory waits for its stored state.
    pub fn assigned(before: Option<Life>, are_stored: bool) -> Life {
        match before.and_then(Life::into_pair) {
            None if are_stored => Life::Restoring,
            pair => Life::Locating(pair),
        }
    }

    /// Continues with the pair made from the stored state, or with `None` if nothing is stored.
    pub fn restored(self, pair: Option<Pair>) -> Life {
        match self {
            // Revoked while it was being restored: the next assignment decides.
            Life::Parked(_) => self,
            _ => Life::Locating(pair),
        }
    }

    /// Continues once the bounds of its logs are known. Resumes the earlier pair, or returns it and replaces it with one
    /// made by `begin`.
    pub fn located(self, logs: &[(Side, LogStart)], begin: impl FnOnce() -> Pair) -> (Life, Option<Pair>) {
        match self {
            Life::Locating(None) => (Life::Replaying(begin()), None),
            Life::Locating(Some(pair)) if pair.stands_within(logs) => {
                (Life::Replaying(pair.resumed(logs)), None)
            }
            Life::Locating(Some(pair)) => {
                // The caller removes the sums of the earlier pair, so the new one starts from zero.
                let anew = begin().with_position_lost(true);
                (Life::Replaying(anew), Some(pair))
            }
            other => (other, None),
        }
    }

    /// Returns whether it has read everything that it needs before it is shown.
    pub fn has_caught_up(&self) -> bool {
        matches!(self, Life::Replaying(pair) if pair.has_reached_noted_ends())
    }

    /// Shows the pair from now on, however far it falls behind later.
    pub fn caught_up(self) -> Life {
        match self {
            Life::Replaying(pair) => Life::Serving(pair.with_position_lost(false)),
            other => other,
        }
    }

    /// Locates the pair again, because the log no longer has its position.
    pub fn position_lost(self) -> Life {
        match self {
            Life::Replaying(pair) | Life::Serving(pair) => {
                Life::Locating(Some(pair.with_position_lost(true)))
            }
            other => other,
        }
    }

    /// Parks the pair, which is no longer ours. A pair that never began is dropped.
    pub fn revoked(self) -> Option<Life> {
        self.into_pair().map(Life::Parked)
    }

    pub fn is_restoring(&self) -> bool {
        matches!(self, Life::Restoring)
    }

    pub fn is_locating(&self) -> bool {
        matches!(self, Life::Locating(_))
    }

    /// Returns the pair, if its records are being read.
    pub fn reading(&self) -> Option<&Pair> {
        match self {
            Life::Replaying(pair) | Life::Serving(pair) => Some(pair),
            Life::Restoring | Life::Locating(_) | Life::Parked(_) => None,
        }
    }

    pub fn reading_mut(&mut self) -> Option<&mut Pair> {
        match self {
            Life::Replaying(pair) | Life::Serving(pair) => Some(pair),
            Life::Restoring | Life::Locating(_) | Life::Parked(_) => None,
        }
    }

    pub fn replaying(&self) -> Option<&Pair> {
        match self {
            Life::Replaying(pair) => Some(pair),
            _ => None,
        }
    }

    pub fn serving(&self) -> Option<&Pair> {
        match self {
            Life::Serving(pair) => Some(pair),
            _ => None,
        }
    }

    /// Returns the pair, in any phase that has one.
    pub fn pair(&self) -> Option<&Pair> {
        match self {
            Life::Restoring => None,
            Life::Locating(pair) => pair.as_ref(),
            Life::Replaying(pair) | Life::Serving(pair) | Life::Parked(pair) => Some(pair),
        }
    }

    pub fn pair_mut(&mut self) -> Option<&mut Pair> {
        match self {
            Life::Restoring => None,
            Life::Locating(pair) => pair.as_mut(),
            Life::Replaying(pair) | Life::Serving(pair) | Life::Parked(pair) => Some(pair),
        }
    }

    pub fn into_pair(self) -> Option<Pair> {
        match self {
            Life::Restoring => None,
            Life::Locating(pair) => pair,
            Life::Replaying(pair) | Life::Serving(pair) | Life::Parked(pair) => Some(pair),
        }
    }
}

#[cfg(test)]
mod tests {
    use abgauge_core::ledger::{Keep, PairTracker};
    use abgauge_core::metrics::Ranking;

    use super::*;
    use crate::settings;
    use crate::stream::worker::pair::PartitionLog;
    use crate::stream::worker::rules;

    /// Pair that is at offset 5 and must reach 10.
    fn pair() -> Pair {
        pair_at(5, 10)
    }

    fn pair_at(position: i64, noted_end: i64) -> Pair {
        let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "localhost:9092".to_owned());
        let config = settings::load(None, std::iter::once(brokers)).unwrap();
        let ranking = Ranking::new(&config.measures);
        let tracker = PairTracker::new(rules(&config), ranking, None, &Keep::default());
        Pair::new(
            tracker,
            vec![PartitionLog::new(Side::Served, position, noted_end)],
        )
    }

    fn logs(low: i64, high: i64) -> Vec<(Side, LogStart)> {
        let start = LogStart {
            low,
            high,
            by_time: None,
            first_record_ms: None,
        };
        vec![(Side::Served, start)]
    }

    fn states() -> [Life; 6] {
        [
            Life::Restoring,
            Life::Locating(None),
            Life::Locating(Some(pair())),
            Life::Replaying(pair()),
            Life::Serving(pair()),
            Life::Parked(pair()),
        ]
    }

    fn name(life: Option<&Life>) -> &'static str {
        match life {
            None => "nothing",
            Some(Life::Restoring) => "restoring",
            Some(Life::Locating(None)) => "locating nothing",
            Some(Life::Locating(Some(_))) => "locating",
            Some(Life::Replaying(_)) => "replaying",
            Some(Life::Serving(_)) => "serving",
            Some(Life::Parked(_)) => "parked",
        }
    }

    /// Checks the outcome of a transition for each of the [`states`].
    #[track_caller]
    fn check(transition: impl Fn(Life) -> Option<Life>, expected: [&str; 6]) {
        assert_eq!(states().map(|life| name(transition(life).as_ref())), expected);
    }

    #[test]
    fn each_transition_applies_only_to_its_states() {
        let before = [
            "restoring",
            "locating nothing",
            "locating",
            "replaying",
            "serving",
            "parked",
        ];
        check(Some, before);
        check(
            |life| Some(life.located(&logs(0, 9), pair).0),
            [
                "restoring",
                "replaying",
                "replaying",
                "replaying",
                "serving",
                "parked",
            ],
        );
        check(
            |life| Some(life.caught_up()),
            [
                "restoring",
                "locating nothing",
                "locating",
                "serving",
                "serving",
                "parked",
            ],
        );
        check(
            |life| Some(life.position_lost()),
            [
                "restoring",
                "locating nothing",
                "locating",
                "locating",
                "locating",
                "parked",
            ],
        );
        check(
            Life::revoked,
            ["nothing", "nothing", "parked", "parked", "parked", "parked"],
        );
        check(
            |life| Some(Life::assigned(Some(life), false)),
            [
                "locating nothing",
                "locating nothing",
                "locating",
                "locating",
                "locating",
                "locating",
            ],
        );
        check(
            |life| Some(Life::assigned(Some(life), true)),
            [
                "restoring",
                "restoring",
                "locating",
                "locating",
                "locating",
                "locating",
            ],
        );
        check(
            |life| Some(life.restored(None)),
            [
                "locating nothing",
                "locating nothing",
                "locating nothing",
                "locating nothing",
                "locating nothing",
                "parked",
            ],
        );
        assert_eq!(name(Some(&Life::assigned(None, false))), "locating nothing");
        assert_eq!(name(Some(&Life::assigned(None, true))), "restoring");
    }

    /// Checks a pair that is located in logs from `low` to `high`: the records left to read, whether the position counts as
    /// lost, and whether the earlier pair is given back.
    #[track_caller]
    fn check_located(low: i64, high: i64, n_left: i64, is_lost: bool) {
        let (life, given_up) = Life::Locating(Some(pair())).located(&logs(low, high), || pair_at(0, 100));
        let pair = life.replaying().expect("it is read");
        let found = (pair.n_left(), pair.position_lost, given_up.is_some());
        assert_eq!(found, (n_left, is_lost, is_lost));
    }

    #[test]
    fn a_pair_resumes_if_its_logs_still_have_its_position() {
        check_located(0, 7, 2, false);
        check_located(5, 5, 0, false);
        check_located(6, 9, 100, true);
        check_located(0, 4, 100, true);
    }

    #[test]
    fn a_pair_has_caught_up_once_it_reaches_the_noted_ends() {
        let mut life = Life::Replaying(pair());
        assert!(!life.has_caught_up());
        let pair = life.reading_mut().expect("it is read");
        pair.logs[0].position = 10;
        assert!(life.has_caught_up());
        assert!(!life.caught_up().has_caught_up(), "once");
    }
}
