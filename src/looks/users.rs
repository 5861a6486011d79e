//! Who was seen where: each user counts in one arm, that of the first list, and those seen in two arms are counted.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt};

use crate::engine::ArmId;
use crate::ledger::FirstSeen;

/// The users of an experiment, cell by cell in the order of time.
#[derive(Debug, Default)]
pub struct SeenUsers {
    sightings: Option<HashMap<u32, Sighting>>,
    /// Users by the epoch and the arm of their first list.
    first: BTreeMap<(usize, ArmId), u64>,
    n_in_two: u64,
}

/// Of a user.
#[derive(Debug, Clone, Copy)]
struct Sighting {
    /// The first one in `epoch`, the latest in which there was a list.
    arm: ArmId,
    epoch: u16,
    /// Seen in two arms within one epoch.
    is_in_two: bool,
}

/// Bytes of a user: key and sighting in a table that is at least seven sixteenths full.
pub const USER_BYTES: u64 = 32;

impl SeenUsers {
    /// Adds what was seen in one cell: by arm, with its name. Of two lists of one time, that of the first name counts.
    pub fn add(&mut self, epoch: usize, seen: &[(ArmId, &str, &FirstSeen)]) {
        let mut arms = seen.to_vec();
        arms.sort_unstable_by_key(|(_, name, _)| *name);
        let mut sightings: Vec<(u32, i64, usize)> = arms
            .iter()
            .enumerate()
            .flat_map(|(rank, (_, _, seen))| seen.iter().map(move |(user, ms)| (*user, *ms, rank)))
            .collect();
        sightings.sort_unstable();
        for of_user in sightings.chunk_by(|one, next| one.0 == next.0) {
            let user = of_user[0].0;
            self.see(user, epoch, of_user.iter().map(|(_, _, rank)| arms[*rank].0));
        }
    }

    /// The arms of a user in a cell, that of the first list first.
    fn see(&mut self, user: u32, epoch: usize, mut arms: impl Iterator<Item = ArmId>) {
        let Some(first) = arms.next() else { return };
        let sightings = self.sightings.get_or_insert_with(HashMap::new);
        let n_known = sightings.len();
        let new = Sighting {
            arm: first,
            epoch: epoch as u16,
            is_in_two: false,
        };
        let sighting = sightings.entry(user).or_insert(new);
        if usize::from(sighting.epoch) != epoch {
            (sighting.arm, sighting.epoch) = (first, epoch as u16);
        }
        let is_in_two = first != sighting.arm || arms.any(|arm| arm != sighting.arm);
        if is_in_two && !sighting.is_in_two {
            sighting.is_in_two = true;
            self.n_in_two += 1;
        }
        if sightings.len() > n_known {
            *self.first.entry((epoch, first)).or_default() += 1;
        }
    }

    /// Users whose first list was in this epoch and arm.
    pub fn n_first(&self, epoch: usize, arm: ArmId) -> u64 {
        self.first.get(&(epoch, arm)).copied().unwrap_or_default()
    }

    /// Users seen in two arms within one epoch.
    pub fn n_in_two(&self) -> u64 {
        self.n_in_two
    }

    pub fn bytes(&self) -> u64 {
        self.sightings
            .as_ref()
            .map_or(0, |seen| seen.len() as u64 * USER_BYTES)
    }
}
