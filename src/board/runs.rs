//! Tallies of one arm that go to the same cell, put together before they go there.
//!
//! ```text
//! slots of an arm, newest first │ 11:59:55 │ 11:59:50 │ … │ 11:58:55 │ …
//! cells of a minute             └──────── one run ───────┘  └ the next
//! ```
//! Who catches up hands over many slots at once. Their sums add up here in the cache; a cell and the sums of its window
//! are touched once for all of them.

use crate::engine::window::add_all;

/// A cell that holds all time.
pub const ALL_TIME: i64 = i64::MAX;

/// Room for the sum of a run.
#[derive(Debug)]
pub struct Runs {
    sums: Box<[i64]>,
}

/// Neighbours in one cell: a single one stays where it is.
struct Run<'a> {
    number: i64,
    begin_ms: i64,
    only: Option<&'a [i64]>,
}

impl Runs {
    pub fn new(width: usize) -> Runs {
        Runs {
            sums: vec![0; width].into(),
        }
    }

    /// Hands over the sum of each run of tallies, given by begin (epoch ms), that lie in one cell: with the cell's
    /// number. What would not fit into 64 bits begins a run of its own.
    pub fn each<'a>(
        &mut self,
        tallies: impl Iterator<Item = (i64, &'a [i64])>,
        cell_ms: i64,
        mut to: impl FnMut(i64, &[i64]),
    ) {
        let mut open: Option<Run> = None;
        for (start_ms, tally) in tallies {
            if let Some(run) = &mut open {
                // As one comparison of what does not lie before it.
                let is_inside = (start_ms.wrapping_sub(run.begin_ms) as u64) < cell_ms as u64;
                if is_inside && self.join(run, tally) {
                    continue;
                }
                to(run.number, run.only.unwrap_or(&self.sums));
            }
            let number = start_ms.div_euclid(cell_ms);
            open = Some(Run {
                number,
                begin_ms: number * cell_ms,
                only: Some(tally),
            });
        }
        if let Some(run) = open {
            to(run.number, run.only.unwrap_or(&self.sums));
        }
    }

    fn join(&mut self, run: &mut Run, tally: &[i64]) -> bool {
        if let Some(only) = run.only {
            let (first, rest) = self.sums.split_at_mut(only.len());
            first.copy_from_slice(only);
            rest.fill(0);
        }
        let fits = add_all(&mut self.sums, tally);
        if fits {
            run.only = None;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What arrives at each cell is what the tallies of that cell add up to, in neighbouring runs or not.
        #[test]
        fn cells_get_what_their_tallies_add_up_to(
            tallies in prop::collection::vec((-50_i64..50, -9_i64..9, any::<bool>()), 0..60),
            cell_ms in prop::sample::select(vec![1, 7, 60, ALL_TIME]),
        ) {
            let tallies: Vec<(i64, [i64; 2])> = tallies
                .into_iter()
                .map(|(ms, small, is_large)| (ms, [small, if is_large { i64::MAX - 9 } else { 1 }]))
                .collect();
            let mut expected = std::collections::BTreeMap::<i64, [i128; 2]>::new();
            for (ms, tally) in &tallies {
                let sums = expected.entry(ms.div_euclid(cell_ms)).or_default();
                sums.iter_mut().zip(tally).for_each(|(sum, term)| *sum += i128::from(*term));
            }
            let mut arrived = std::collections::BTreeMap::<i64, [i128; 2]>::new();
            Runs::new(2).each(tallies.iter().map(|(ms, tally)| (*ms, &tally[..])), cell_ms, |number, tally| {
                let sums = arrived.entry(number).or_default();
                sums.iter_mut().zip(tally).for_each(|(sum, term)| *sum += i128::from(*term));
            });
            prop_assert_eq!(arrived, expected);
        }
    }

    #[test]
    fn neighbours_in_a_cell_arrive_together() {
        let tallies = [(70, [1]), (60, [2]), (59, [3]), (0, [4]), (-1, [5])];
        let mut arrived = Vec::new();
        let tallies = tallies.iter().map(|(ms, tally)| (*ms, &tally[..]));
        Runs::new(1).each(tallies, 60, |number, tally| arrived.push((number, tally[0])));
        assert_eq!(arrived, [(1, 3), (0, 7), (-1, 5)]);
    }
}
