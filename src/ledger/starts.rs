//! From when on an experiment counts in totals.

use std::collections::BTreeMap;

use super::LedgerError;
use super::book::insert_last;
use crate::bytes::{Reader, Writer};

/// When experiments start, epoch ms, by name: slots that begin earlier are left out of their totals. Others count from the begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Starts(BTreeMap<String, i64>);

impl FromIterator<(String, i64)> for Starts {
    fn from_iter<I: IntoIterator<Item = (String, i64)>>(starts: I) -> Starts {
        Starts(starts.into_iter().collect())
    }
}

impl Starts {
    /// When an experiment starts, epoch ms; none: it counts from the begin.
    pub fn of(&self, experiment: &str) -> Option<i64> {
        self.0.get(experiment).copied()
    }

    /// Whether a total that was kept until `until_ms` with the starts `stored` goes on. It does not if it is to start later, as
    /// what was before that cannot be taken out.
    pub(super) fn go_on(&self, stored: &Starts, experiment: &str, until_ms: Option<i64>) -> bool {
        let (own, stored) = (self.of(experiment), stored.of(experiment));
        own <= stored && stored < until_ms
    }

    /// These, as of a ledger that goes on from `until_ms`: what goes on starts where it did, what does not starts there.
    pub(super) fn resumed(
        &self,
        stored: &Starts,
        experiments: impl Iterator<Item = String>,
        until_ms: Option<i64>,
    ) -> Starts {
        let mut starts = self.clone();
        let known = experiments.chain(self.0.keys().cloned());
        for experiment in known.collect::<Vec<_>>() {
            let start_ms = if self.go_on(stored, &experiment, until_ms) {
                stored.of(&experiment)
            } else {
                self.of(&experiment).max(until_ms)
            };
            starts.0.extend(start_ms.map(|start_ms| (experiment, start_ms)));
        }
        starts
    }

    /// Of totals that are those of both: the later start of each.
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

    /// What becomes of a total of `e` that was kept until 100: whether it goes on, and from when on it counts.
    #[track_caller]
    fn check(own: Option<i64>, stored: Option<i64>, goes_on: bool, resumed: Option<i64>) {
        let of = |start: Option<i64>| {
            start
                .into_iter()
                .map(|ms| ("e".to_owned(), ms))
                .collect::<Starts>()
        };
        let (own, stored) = (of(own), of(stored));
        assert_eq!(own.go_on(&stored, "e", Some(100)), goes_on);
        let experiments = std::iter::once("e".to_owned());
        assert_eq!(own.resumed(&stored, experiments, Some(100)).of("e"), resumed);
    }

    #[test]
    fn a_total_goes_on_unless_something_in_it_is_to_be_left_out() {
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
