//! Starts of experiments within totals.

use std::collections::BTreeMap;

use super::LedgerError;
use crate::bytes::{Reader, Writer, insert_last};

/// Start of each experiment by name, Unix ms. Its total leaves out earlier slots. Unlisted experiments count from the
/// start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Starts(BTreeMap<String, i64>);

impl FromIterator<(String, i64)> for Starts {
    fn from_iter<I: IntoIterator<Item = (String, i64)>>(starts: I) -> Starts {
        Starts(starts.into_iter().collect())
    }
}

impl Starts {
    /// Returns when an experiment starts, Unix ms, or `None` if it counts from the start.
    pub fn of(&self, experiment: &str) -> Option<i64> {
        self.0.get(experiment).copied()
    }

    /// Returns whether a total kept until `until_ms` with the starts `stored` can be resumed. It cannot if the new start is
    /// later, because older data cannot be subtracted.
    pub(super) fn can_resume(&self, stored: &Starts, experiment: &str, until_ms: Option<i64>) -> bool {
        let (own, stored) = (self.of(experiment), stored.of(experiment));
        // Before a stored start there is no data to continue.
        own <= stored && stored < until_ms
    }

    /// Returns these starts for a ledger resumed at `until_ms`. Resumed totals keep their stored start; others start at
    /// `until_ms`.
    pub(super) fn resumed(
        &self,
        stored: &Starts,
        experiments: impl Iterator<Item = String>,
        until_ms: Option<i64>,
    ) -> Starts {
        let mut starts = self.clone();
        let known = experiments.chain(self.0.keys().cloned());
        for experiment in known.collect::<Vec<_>>() {
            let start_ms = if self.can_resume(stored, &experiment, until_ms) {
                stored.of(&experiment)
            } else {
                self.of(&experiment).max(until_ms)
            };
            starts.0.extend(start_ms.map(|start_ms| (experiment, start_ms)));
        }
        starts
    }

    /// Merges with the starts of another ledger: a common total is complete only from the later start on.
    pub(super) fn merge(&mut self, other: &Starts) {
        for (experiment, start_ms) in &other.0 {
            let own = self.0.entry(experiment.clone()).or_insert(*start_ms);
            *own = (*own).max(*start_ms);
        }
    }

    pub(super) fn encode(&self, to: &mut Writer) {
        to.number(self.0.len() as u64);
        for (experiment, start_ms) in &self.0 {
            to.text(experiment);
            to.signed((*start_ms).into());
        }
    }

    pub(super) fn decode(from: &mut Reader) -> Result<Starts, LedgerError> {
        let mut starts = BTreeMap::new();
        for _ in 0..from.length()? {
            insert_last(&mut starts, from.text()?.to_owned(), from.ms()?)?;
        }
        Ok(Starts(starts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks whether a total of `e` kept until 100 is resumed, and its start afterwards.
    #[track_caller]
    fn check(own: Option<i64>, stored: Option<i64>, continues: bool, resumed: Option<i64>) {
        let of = |start: Option<i64>| {
            start
                .into_iter()
                .map(|ms| ("e".to_owned(), ms))
                .collect::<Starts>()
        };
        let (own, stored) = (of(own), of(stored));
        assert_eq!(own.can_resume(&stored, "e", Some(100)), continues);
        let experiments = std::iter::once("e".to_owned());
        assert_eq!(own.resumed(&stored, experiments, Some(100)).of("e"), resumed);
    }

    #[test]
    fn a_total_continues_unless_part_of_it_must_be_excluded() {
        check(None, None, true, None);
        check(Some(50), Some(50), true, Some(50));
        check(Some(40), Some(50), true, Some(50));
        check(None, Some(50), true, Some(50));
        check(Some(60), Some(50), false, Some(100));
        check(Some(60), None, false, Some(100));
        check(Some(170), Some(50), false, Some(170));
        check(Some(170), Some(170), false, Some(170));
        check(Some(40), Some(170), false, Some(100));
        check(None, Some(170), false, Some(100));
    }
}
