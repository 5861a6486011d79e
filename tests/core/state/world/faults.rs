//! Faults of a schedule and their probabilities.

use crate::state::dice::Dice;

/// Probabilities of faults in percent.
pub struct Faults {
    pub late: usize,
    pub lost: usize,
    /// Share of lost claims and seals that are acknowledged all the same, because a replica without them becomes the leader.
    pub forgotten: usize,
    pub unanswered: usize,
    pub doubled: usize,
    pub cleaned: usize,
    /// Probability that an instance stops, blocks or resumes; `deaths` is the probability that it dies.
    pub stops: usize,
    pub deaths: usize,
    pub moves: usize,
    pub jumps: usize,
    /// Maximum duration of a step in ms.
    pub pace_ms: usize,
    /// Probability that an instance loses or regains its connection to the state partition.
    pub deaf: usize,
    /// Probability that an answer to a question for the end arrives when it can.
    pub answers: usize,
}

impl Faults {
    pub fn any(dice: &mut Dice) -> Faults {
        Faults {
            late: dice.one_of(&[0, 10, 30, 60]),
            lost: dice.one_of(&[0, 0, 5, 20]),
            forgotten: dice.one_of(&[0, 50]),
            unanswered: dice.one_of(&[0, 5, 30]),
            doubled: dice.one_of(&[0, 20, 60]),
            cleaned: dice.one_of(&[0, 30, 60, 100]),
            stops: dice.one_of(&[0, 1, 5]),
            deaths: dice.one_of(&[0, 1, 3]),
            moves: dice.one_of(&[10, 40, 100]),
            jumps: dice.one_of(&[0, 3, 10, 30]),
            pace_ms: dice.one_of(&[60, 60, 400, 1_200]),
            deaf: dice.one_of(&[0, 0, 4]),
            answers: dice.one_of(&[100, 50, 10]),
        }
    }

    pub fn none() -> Faults {
        Faults {
            late: 0,
            lost: 0,
            forgotten: 0,
            unanswered: 0,
            doubled: 0,
            cleaned: 0,
            stops: 0,
            deaths: 0,
            moves: 0,
            jumps: 0,
            pace_ms: 0,
            deaf: 0,
            answers: 100,
        }
    }
}
