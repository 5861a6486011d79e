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
//! If pairs are stored, a pair that is not in memory starts as `Restoring`, and is `Restored` once it is made from its stored
//! state. `Restored` is like `Locating`, except that the pair is refused if its logs no longer have its positions: there is no
//! other state to restore.
//!
//! A transition that does not fit a phase leaves it unchanged. A pair that is read may also be *held*: see `hold`.

use abgauge_core::engine::event::Side;

use super::pair::Pair;
use crate::stream::LogStart;

#[derive(Debug)]
pub enum Phase {
    /// Owned and hidden, until its stored state is known.
    Restoring,
    /// Owned and hidden, until the bounds of its logs are known. An earlier pair is resumed if the logs still have its
    /// positions.
    Locating(Option<Pair>),
    /// Owned and hidden, until the bounds of its logs are known. It was made from its stored state, and has read nothing since.
    Restored(Pair),
    /// Read but hidden: it has not reached the ends that were noted when it was located.
    Replaying(Pair),
    /// Read and shown.
    Serving(Pair),
    /// Revoked and hidden: the next assignment decides whether it comes back.
    Parked(Pair),
}

impl Phase {
    /// Enters the phase after an assignment. `before` is the earlier phase, if any. If pairs are stored, a pair that is not
    /// in memory waits for its stored state.
    pub fn assigned(before: Option<Phase>, are_stored: bool) -> Phase {
        let pair = match before {
            Some(Phase::Restored(pair)) => return Phase::Restored(pair),
            before => before.and_then(Phase::into_pair),
        };
        match pair {
            None if are_stored => Phase::Restoring,
            pair => Phase::Locating(pair),
        }
    }

    /// Continues with the pair made from the stored state, or with `None` if nothing is stored.
    pub fn restored(self, pair: Option<Pair>) -> Phase {
        match self {
            // Revoked while it was being restored: the next assignment decides.
            Phase::Parked(_) => self,
            _ => pair.map_or(Phase::Locating(None), Phase::Restored),
        }
    }

    /// Continues once the bounds of its logs are known. Resumes the earlier pair, or returns it and replaces it with one
    /// made by `begin`.
    pub fn located(self, logs: &[(Side, LogStart)], begin: impl FnOnce() -> Pair) -> (Phase, Option<Pair>) {
        match self {
            Phase::Locating(None) => (Phase::Replaying(begin()), None),
            Phase::Locating(Some(pair)) | Phase::Restored(pair) if pair.is_within(logs) => {
                (Phase::Replaying(pair.resumed(logs)), None)
            }
            Phase::Locating(Some(pair)) | Phase::Restored(pair) => {
                // The caller removes the sums of the earlier pair, so the new one starts from zero.
                let anew = begin().with_position_lost(true);
                (Phase::Replaying(anew), Some(pair))
            }
            other => (other, None),
        }
    }

    /// Returns whether it has read everything that it needs before it is shown.
    pub fn has_caught_up(&self) -> bool {
        matches!(self, Phase::Replaying(pair) if pair.has_reached_noted_ends())
    }

    /// Shows the pair from now on, however far it falls behind later.
    pub fn caught_up(self) -> Phase {
        match self {
            Phase::Replaying(pair) => Phase::Serving(pair.with_position_lost(false)),
            other => other,
        }
    }

    /// Locates the pair again, because the log no longer has its position.
    pub fn position_lost(self) -> Phase {
        match self {
            Phase::Replaying(pair) | Phase::Serving(pair) => {
                Phase::Locating(Some(pair.with_position_lost(true)))
            }
            other => other,
        }
    }

    /// Parks the pair, which is no longer ours. A pair that never began is dropped.
    pub fn revoked(self) -> Option<Phase> {
        self.into_pair().map(Phase::Parked)
    }

    pub fn is_restoring(&self) -> bool {
        matches!(self, Phase::Restoring)
    }

    pub fn is_locating(&self) -> bool {
        matches!(self, Phase::Locating(_) | Phase::Restored(_))
    }

    /// Returns whether the pair has read nothing since it was restored.
    pub fn is_restored(&self) -> bool {
        matches!(self, Phase::Restored(_))
    }

    /// Returns the pair, if its records are being read.
    pub fn reading(&self) -> Option<&Pair> {
        match self {
            Phase::Replaying(pair) | Phase::Serving(pair) => Some(pair),
            Phase::Restoring | Phase::Locating(_) | Phase::Restored(_) | Phase::Parked(_) => None,
        }
    }

    pub fn reading_mut(&mut self) -> Option<&mut Pair> {
        match self {
            Phase::Replaying(pair) | Phase::Serving(pair) => Some(pair),
            Phase::Restoring | Phase::Locating(_) | Phase::Restored(_) | Phase::Parked(_) => None,
        }
    }

    pub fn replaying(&self) -> Option<&Pair> {
        match self {
            Phase::Replaying(pair) => Some(pair),
            _ => None,
        }
    }

    pub fn serving(&self) -> Option<&Pair> {
        match self {
            Phase::Serving(pair) => Some(pair),
            _ => None,
        }
    }

    /// Returns the pair, in any phase that has one.
    pub fn pair(&self) -> Option<&Pair> {
        match self {
            Phase::Restoring => None,
            Phase::Locating(pair) => pair.as_ref(),
            Phase::Restored(pair) | Phase::Replaying(pair) | Phase::Serving(pair) | Phase::Parked(pair) => {
                Some(pair)
            }
        }
    }

    pub fn pair_mut(&mut self) -> Option<&mut Pair> {
        match self {
            Phase::Restoring => None,
            Phase::Locating(pair) => pair.as_mut(),
            Phase::Restored(pair) | Phase::Replaying(pair) | Phase::Serving(pair) | Phase::Parked(pair) => {
                Some(pair)
            }
        }
    }

    pub fn into_pair(self) -> Option<Pair> {
        match self {
            Phase::Restoring => None,
            Phase::Locating(pair) => pair,
            Phase::Restored(pair) | Phase::Replaying(pair) | Phase::Serving(pair) | Phase::Parked(pair) => {
                Some(pair)
            }
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

    fn states() -> [Phase; 7] {
        [
            Phase::Restoring,
            Phase::Locating(None),
            Phase::Locating(Some(pair())),
            Phase::Restored(pair()),
            Phase::Replaying(pair()),
            Phase::Serving(pair()),
            Phase::Parked(pair()),
        ]
    }

    fn name(phase: Option<&Phase>) -> &'static str {
        match phase {
            None => "nothing",
            Some(Phase::Restoring) => "restoring",
            Some(Phase::Locating(None)) => "locating nothing",
            Some(Phase::Locating(Some(_))) => "locating",
            Some(Phase::Restored(_)) => "restored",
            Some(Phase::Replaying(_)) => "replaying",
            Some(Phase::Serving(_)) => "serving",
            Some(Phase::Parked(_)) => "parked",
        }
    }

    /// Checks the outcome of a transition for each of the [`states`].
    #[track_caller]
    fn check(transition: impl Fn(Phase) -> Option<Phase>, expected: [&str; 7]) {
        assert_eq!(states().map(|phase| name(transition(phase).as_ref())), expected);
    }

    #[test]
    fn each_transition_applies_only_to_its_states() {
        let before = [
            "restoring",
            "locating nothing",
            "locating",
            "restored",
            "replaying",
            "serving",
            "parked",
        ];
        check(Some, before);
        check(
            |phase| Some(phase.located(&logs(0, 9), pair).0),
            [
                "restoring",
                "replaying",
                "replaying",
                "replaying",
                "replaying",
                "serving",
                "parked",
            ],
        );
        check(
            |phase| Some(phase.caught_up()),
            [
                "restoring",
                "locating nothing",
                "locating",
                "restored",
                "serving",
                "serving",
                "parked",
            ],
        );
        check(
            |phase| Some(phase.position_lost()),
            [
                "restoring",
                "locating nothing",
                "locating",
                "restored",
                "locating",
                "locating",
                "parked",
            ],
        );
        check(
            Phase::revoked,
            [
                "nothing", "nothing", "parked", "parked", "parked", "parked", "parked",
            ],
        );
        check(
            |phase| Some(Phase::assigned(Some(phase), false)),
            [
                "locating nothing",
                "locating nothing",
                "locating",
                "restored",
                "locating",
                "locating",
                "locating",
            ],
        );
        check(
            |phase| Some(Phase::assigned(Some(phase), true)),
            [
                "restoring",
                "restoring",
                "locating",
                "restored",
                "locating",
                "locating",
                "locating",
            ],
        );
        check(
            |phase| Some(phase.restored(Some(pair()))),
            [
                "restored", "restored", "restored", "restored", "restored", "restored", "parked",
            ],
        );
        check(
            |phase| Some(phase.restored(None)),
            [
                "locating nothing",
                "locating nothing",
                "locating nothing",
                "locating nothing",
                "locating nothing",
                "locating nothing",
                "parked",
            ],
        );
        assert_eq!(name(Some(&Phase::assigned(None, false))), "locating nothing");
        assert_eq!(name(Some(&Phase::assigned(None, true))), "restoring");
    }

    /// Checks a pair that is located in logs from `low` to `high`: the records left to read, whether the position counts as
    /// lost, and whether the earlier pair is given back.
    #[track_caller]
    fn check_located(low: i64, high: i64, n_left: i64, is_lost: bool) {
        let (phase, given_up) = Phase::Locating(Some(pair())).located(&logs(low, high), || pair_at(0, 100));
        let pair = phase.replaying().expect("it is read");
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
        let mut phase = Phase::Replaying(pair());
        assert!(!phase.has_caught_up());
        let pair = phase.reading_mut().expect("it is read");
        pair.logs[0].position = 10;
        assert!(phase.has_caught_up());
        assert!(!phase.caught_up().has_caught_up(), "once");
    }
}
