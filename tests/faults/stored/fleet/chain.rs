//! Check of a state topic, record by record: the states that were ever current must be one chain.
//!
//! Records are not compacted while a test runs, so the log contains everything that happened.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use abgauge_core::journal::{BlobId, RecordKey, Seal, SealId, Session};

use crate::support::topics::Record;

#[derive(Default)]
struct Partition {
    claims: BTreeSet<Session>,
    seals: BTreeMap<SealId, Seal>,
    blobs: BTreeSet<BlobId>,
    /// Values that were ever written, by key.
    written: HashMap<Vec<u8>, Vec<u8>>,
    /// Seals that were current, in order.
    chain: Vec<(SealId, Seal)>,
}

/// Asserts the invariants of all partitions, and returns how many states were current.
#[track_caller]
pub fn assert_is_one(records: &[Record]) -> usize {
    let mut partitions = BTreeMap::<i32, Partition>::new();
    for record in records {
        let partition = partitions.entry(record.partition).or_default();
        if let Err(broken) = partition.take(record) {
            panic!(
                "partition {}, offset {}: {broken}",
                record.partition, record.offset
            );
        }
    }
    partitions.values().map(|partition| partition.chain.len()).sum()
}

impl Partition {
    fn take(&mut self, record: &Record) -> Result<(), String> {
        let text = record.key.as_deref().ok_or("a record without a key")?;
        let (_, key) = RecordKey::parse(text).ok_or("a key that is none")?;
        let Some(value) = &record.payload else {
            return self.delete(key);
        };
        let known = self.written.entry(text.to_vec()).or_insert_with(|| value.clone());
        if known != value {
            return Err(format!("{key:?} has two contents"));
        }
        match key {
            RecordKey::Claim(session) => drop(self.claims.insert(session)),
            RecordKey::Seal(id) => {
                let seal = Seal::decode(value).map_err(|error| format!("{id:?}: {error}"))?;
                self.seals.insert(id, seal);
            }
            RecordKey::Blob(id) => drop(self.blobs.insert(id)),
        }
        self.judge()
    }

    fn delete(&mut self, key: RecordKey) -> Result<(), String> {
        match key {
            RecordKey::Claim(session) => drop(self.claims.remove(&session)),
            RecordKey::Seal(id) => drop(self.seals.remove(&id)),
            RecordKey::Blob(id) => drop(self.blobs.remove(&id)),
        }
        self.judge()
    }

    /// Checks that the highest seal is complete, and that it continues the last current one if it is current itself.
    fn judge(&mut self) -> Result<(), String> {
        let Some((id, seal)) = self.seals.last_key_value() else {
            return match self.chain.is_empty() {
                true => Ok(()),
                false => Err("no seal is left".to_owned()),
            };
        };
        if let Some(entry) = seal.entries().find(|entry| !self.blobs.contains(&entry.blob)) {
            return Err(format!("{:?} of {id:?} is not there", entry.blob));
        }
        if self.claims.last() > Some(&id.session) {
            return Ok(());
        }
        if let Some((last_id, last)) = self.chain.last() {
            if last_id == id {
                return Ok(());
            }
            if last_id > id {
                return Err(format!("{id:?} is in force after {last_id:?}"));
            }
            let (before, after) = (&last.header, &seal.header);
            if !after.reaches(before)
                || after.frontier_ms < before.frontier_ms
                || after.begin_ms != before.begin_ms && before.begin_ms.is_some()
            {
                return Err(format!("{before:?} is followed by {after:?}"));
            }
        }
        self.chain.push((*id, seal.clone()));
        Ok(())
    }
}
