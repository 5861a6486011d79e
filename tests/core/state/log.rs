//! A state partition: records by offset, with compaction.

use std::collections::{BTreeMap, BTreeSet};

use abgauge_core::journal::{Namespace, RecordKey, SharedBytes};

use crate::state::dice::Dice;

/// A record as stored in the log.
#[derive(Clone)]
pub struct Record {
    pub key: RecordKey,
    pub text: SharedBytes,
    /// Value, or `None` for a tombstone.
    pub value: Option<SharedBytes>,
}

impl Record {
    pub fn new(namespace: Namespace, key: RecordKey, value: Option<SharedBytes>) -> Record {
        let text = key.text(namespace).into_bytes().into();
        Record { key, text, value }
    }
}

/// Records by offset, with `None` for those that compaction removed.
#[derive(Default)]
pub struct Log(Vec<Option<Record>>);

impl Log {
    pub fn append(&mut self, record: Record) {
        self.0.push(Some(record));
    }

    pub fn end(&self) -> usize {
        self.0.len()
    }

    /// Returns the first record at or after an offset, and the offset at which to continue.
    pub fn next(&self, offset: usize) -> (Option<&Record>, usize) {
        let mut later = self.0.iter().enumerate().skip(offset);
        let found = later.find_map(|(at, record)| Some((record.as_ref()?, at + 1)));
        found.map_or((None, self.end()), |(record, next)| (Some(record), next))
    }

    /// Removes this share of the records that compaction may remove: those with a later record of the same key, and
    /// tombstones that no longer delete anything.
    pub fn compact(&mut self, percent: usize, dice: &mut Dice) {
        let mut n_behind = BTreeMap::<RecordKey, usize>::new();
        for record in self.0.iter().flatten() {
            *n_behind.entry(record.key).or_default() += 1;
        }
        let mut left = BTreeSet::new();
        for place in &mut self.0 {
            let Some(record) = place else { continue };
            let n_behind = n_behind.get_mut(&record.key).expect("it was counted");
            *n_behind -= 1;
            let deletes_nothing = record.value.is_none() && !left.contains(&record.key);
            if (*n_behind > 0 || deletes_nothing) && dice.percent(percent) {
                *place = None;
            } else {
                left.insert(record.key);
            }
        }
    }
}
