//! First exposures: users first seen in each arm, for the sample ratio test, and users seen in two arms.
//!
//! A user counts once, at the first list in the experiment. Slots arrive in order of time, but lists within a slot do not. If
//! the order within a slot matters, its lists are sorted when it ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::book::{Aggregate, ByArm};
use super::keep::{Epochs, Keep, Users};
use super::sightings::{Gain, Mark, MarkSet, SeenUsers, add, gains};
use super::stored::StoredLedger;
use super::{LedgerError, decode_count};
use crate::bytes::{Reader, Writer};
use crate::engine::settling::SettledList;
use crate::engine::{Arm, ArmId};
use crate::metrics::Ranking;

/// Number of users of an arm. Users are halves of keyed hashes: among n users of a pair, n²/2³³ collide, or 116 in a million.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exposed {
    /// Users first seen in this arm.
    pub first: u64,
    /// Users also seen in another arm within one epoch. They count in the arm they were in first.
    pub in_two: u64,
}

impl Exposed {
    pub fn add(&mut self, more: Exposed) {
        self.first += more.first;
        self.in_two += more.in_two;
    }

    fn subtract(&mut self, less: Exposed) {
        self.first -= less.first;
        self.in_two -= less.in_two;
    }
}

/// Maximum bytes per user and experiment. A user takes one number in a table for all experiments, plus marks shared with
/// others.
pub const USER_BYTES: u64 = 32;

#[derive(Debug)]
pub struct Exposures {
    users: Users,
    arms: Vec<ExposureArm>,
    experiments: HashMap<Arc<str>, u32>,
    sets: Sets,
    seen: SeenUsers,
    slot: Slot,
    /// New counts of the current slot, by arm.
    counts: Vec<Exposed>,
    /// True if any count is not 0. Saves a scan, as there may be many arms.
    has_counts: bool,
}

/// Arm of a known experiment.
#[derive(Debug)]
struct ExposureArm {
    name: Arc<str>,
    experiment: u32,
    /// Epochs of the experiment, or `None` if its users are not tracked.
    epochs: Option<Epochs>,
}

/// Sets of arms that lists have, valid until an epoch starts.
#[derive(Debug, Default)]
struct Sets {
    ids: HashMap<Box<[ArmId]>, u32>,
    /// Marks of each set, ordered by the name of the arm.
    marks: Vec<Box<[Mark]>>,
    /// Start of the last slot the sets were checked for, Unix ms.
    start_ms: Option<i64>,
    /// Start of the next epoch, Unix ms.
    until_ms: i64,
}

/// Lists of the current slot.
#[derive(Debug, Default)]
struct Slot {
    start_ms: Option<i64>,
    lists: Vec<Sighting>,
    n_processed: usize,
    /// States of users before each change in this slot.
    before: Vec<(u32, MarkSet)>,
    disputed: Vec<u32>,
    /// Experiments to forget when the slot ends.
    forgotten: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Sighting {
    user: u32,
    in_slot_ms: u32,
    set: u32,
}

/// Maximum number of sets remembered across slots.
const MAX_SETS: usize = 1 << 16;
/// Number of lists looked up together.
const GROUP: usize = 32;

impl Exposures {
    /// Returns the set of arms of a list, or `None` if none of their experiments tracks users.
    fn set(&mut self, list: &SettledList) -> Option<u32> {
        if self.sets.start_ms != Some(list.start_ms) {
            self.renew_sets(list.start_ms);
        }
        let set = match self.sets.ids.get(list.arms) {
            Some(set) => *set,
            None => self.new_set(list),
        };
        (!self.sets.marks[set as usize].is_empty()).then_some(set)
    }

    /// Discards all sets if an epoch has started.
    fn renew_sets(&mut self, start_ms: i64) {
        let sets = &mut self.sets;
        if sets.start_ms.is_none_or(|last_ms| start_ms < last_ms) || start_ms >= sets.until_ms {
            // `marks` stays, because lists of this slot and remembered steps refer to sets by number.
            sets.ids.clear();
            let epochs = self.arms.iter().filter_map(|arm| arm.epochs.as_ref());
            let next = epochs.filter_map(|epochs| epochs.next_ms(start_ms)).min();
            sets.until_ms = next.unwrap_or(i64::MAX);
        }
        sets.start_ms = Some(start_ms);
    }

    #[cold]
    fn new_set(&mut self, list: &SettledList) -> u32 {
        let mark = |arm: &ArmId| {
            let known = &self.arms[*arm as usize];
            let epoch = known.epochs.as_ref()?.of(list.start_ms)?;
            Some(Mark {
                experiment: known.experiment,
                arm: *arm,
                epoch,
                is_in_two: false,
            })
        };
        let mut marks: Vec<Mark> = list.arms.iter().filter_map(mark).collect();
        // Numbers of arms differ from pair to pair, so the order is by name.
        marks.sort_by_key(|mark| &self.arms[mark.arm as usize].name);
        let set = self.sets.marks.len() as u32;
        self.sets.marks.push(marks.into());
        self.sets.ids.insert(list.arms.into(), set);
        set
    }

    /// Counts the lists added since the last call.
    fn process(&mut self) {
        let Exposures {
            sets,
            seen,
            slot,
            counts,
            has_counts,
            ..
        } = self;
        let lists = &slot.lists[slot.n_processed..];
        slot.n_processed = slot.lists.len();
        seen.prefetch(lists.iter().map(|list| list.user));
        for list in lists {
            let Some(change) = seen.see(list.user, list.set, &sets.marks[list.set as usize]) else {
                continue;
            };
            *has_counts = true;
            let gains = seen.gains(change);
            count(counts, gains.iter().copied(), Exposed::add);
            slot.before.push((list.user, change.before));
            // Which arm was first depends on the order of lists, so decide at the end of the slot.
            if gains.iter().any(|(_, gain)| gain.in_two > 0) {
                slot.disputed.push(list.user);
            }
        }
    }

    /// Ends the slot. Users who turned out to be in two arms count in the arm of their first list.
    fn close_slot(&mut self) {
        self.process();
        if !self.slot.disputed.is_empty() {
            self.settle_disputes();
        }
        let slot = &mut self.slot;
        slot.forgotten
            .drain(..)
            .for_each(|experiment| self.seen.forget(experiment));
        // Between two slots no list refers to a set by number, so sets can be renumbered.
        if self.seen.is_full() || self.sets.marks.len() > MAX_SETS {
            self.sets = Sets::default();
            self.seen.forget_sets();
        }
        slot.lists.clear();
        slot.n_processed = 0;
        slot.before.clear();
        slot.disputed.clear();
    }

    fn settle_disputes(&mut self) {
        let disputed = self.slot.disputed.iter().copied();
        let mut lists: BTreeMap<u32, Vec<Sighting>> = disputed.map(|user| (user, Vec::new())).collect();
        for list in &self.slot.lists {
            if let Some(own) = lists.get_mut(&list.user) {
                own.push(*list);
            }
        }
        // In reverse order, the first change of each user is inserted last and wins.
        let before = self.slot.before.iter().rev().copied();
        let before: HashMap<u32, MarkSet> = before.filter(|(user, _)| lists.contains_key(user)).collect();
        for (user, lists) in lists {
            self.settle_dispute(user, before[&user], &lists);
        }
    }

    fn settle_dispute(&mut self, user: u32, before: MarkSet, lists: &[Sighting]) {
        let seen = lists.iter().flat_map(|list| {
            let marks = &self.sets.marks[list.set as usize];
            marks.iter().map(|mark| (list.in_slot_ms, *mark))
        });
        let mut seen: Vec<(u32, Mark)> = seen.collect();
        // Lists of the same time are ordered by the name of the arm, so that the result does not depend on arrival.
        seen.sort_by_key(|(ms, mark)| (*ms, &self.arms[mark.arm as usize].name));
        let before = self.seen.marks(before);
        let mut now = before.to_vec();
        seen.iter().for_each(|(_, mark)| add(&mut now, *mark));
        // Replace the provisional counts of this slot by counts in order of time.
        count(
            &mut self.counts,
            gains(before, self.seen.of(user)),
            Exposed::subtract,
        );
        count(&mut self.counts, gains(before, &now), Exposed::add);
        self.seen.set(user, &now);
    }

    /// Returns the experiment of each arm.
    fn experiments(&self) -> Vec<u32> {
        self.arms.iter().map(|arm| arm.experiment).collect()
    }
}

fn count(counts: &mut [Exposed], gains: impl Iterator<Item = Gain>, by: fn(&mut Exposed, Exposed)) {
    gains.for_each(|(arm, gain)| by(&mut counts[arm as usize], gain));
}

impl Aggregate for Exposures {
    type Cell = Exposed;
    type Slot = ByArm<Exposed>;
    const ID: &str = "exposures";
    const VERSION: u64 = 1;
    const BY_USER: bool = true;

    fn new(_: &Ranking, keep: &Keep) -> Exposures {
        Exposures {
            users: keep.users.clone(),
            arms: Vec::new(),
            experiments: HashMap::new(),
            sets: Sets::default(),
            seen: SeenUsers::new(),
            slot: Slot::default(),
            counts: Vec::new(),
            has_counts: false,
        }
    }

    fn admit(&mut self, arms: &[Arm]) {
        for arm in arms {
            let n_experiments = self.experiments.len() as u32;
            let experiment = self.experiments.entry(Arc::clone(&arm.experiment));
            self.arms.push(ExposureArm {
                name: Arc::clone(&arm.arm),
                experiment: *experiment.or_insert(n_experiments),
                epochs: self.users.epochs(&arm.experiment),
            });
        }
        // Known sets do not include the new arms' epochs.
        self.sets.start_ms = None;
        self.counts.resize(self.arms.len(), Exposed::default());
    }

    fn forget_users(&mut self, experiment: &str, arms: &[ArmId]) {
        self.users.forget(experiment);
        arms.iter().for_each(|arm| self.arms[*arm as usize].epochs = None);
        self.sets.start_ms = None;
        self.slot.forgotten.extend(self.experiments.get(experiment));
        // Between two slots nothing depends on these users any more. Forget them now, to keep them out of the encoded bytes.
        if self.slot.lists.is_empty() {
            self.close_slot();
        }
    }

    fn add(&mut self, list: &SettledList) {
        let Some(user) = list.user.filter(|_| self.users != Users::Nobody) else {
            return;
        };
        // Slots may be ended together, but disputes are settled slot by slot.
        if self.slot.start_ms != Some(list.start_ms) {
            self.close_slot();
            self.slot.start_ms = Some(list.start_ms);
        }
        let Some(set) = self.set(list) else { return };
        self.slot.lists.push(Sighting {
            user: user.get(),
            in_slot_ms: (list.ts_ms - list.start_ms) as u32,
            set,
        });
        // Process groups, so that the lookups of several users overlap.
        if self.slot.lists.len() - self.slot.n_processed >= GROUP {
            self.process();
        }
    }

    fn end_slot(&mut self) -> ByArm<Exposed> {
        self.close_slot();
        if !std::mem::take(&mut self.has_counts) {
            return ByArm::new();
        }
        let counts = (0..).zip(&mut self.counts);
        let counts = counts.filter(|(_, count)| **count != Exposed::default());
        counts.map(|(arm, count)| (arm, std::mem::take(count))).collect()
    }

    fn add_slot(&self, slot: &ByArm<Exposed>, cells: &mut ByArm<Exposed>) {
        for (arm, more) in slot {
            cells.entry(*arm).or_default().add(*more);
        }
    }

    fn merge(cell: &mut Exposed, more: &Exposed) {
        cell.add(*more);
    }

    fn encode(&self, cell: &Exposed, to: &mut Writer) {
        to.number(cell.first);
        to.number(cell.in_two);
    }

    fn decode(&self, from: &mut Reader, _: &StoredLedger) -> Result<Option<Exposed>, LedgerError> {
        Ok(Some(Exposed {
            first: decode_count(from)?,
            in_two: decode_count(from)?,
        }))
    }

    fn encode_memory(&self, to: &mut Writer) {
        self.seen.encode(to);
    }

    fn decode_memory(&mut self, from: &mut Reader, stored: &StoredLedger) -> Result<(), LedgerError> {
        self.seen = SeenUsers::decode(from, &self.experiments(), &stored.users_go_on)?;
        Ok(())
    }

    /// Merges seen users. A user should be in one pair only; otherwise the marks of this ledger win.
    fn merge_memory(&mut self, other: &Exposures, ids: &[ArmId]) {
        for (user, marks) in other.seen.iter() {
            let mut own: Vec<Mark> = self.seen.of(user).to_vec();
            for mark in marks {
                let arm = ids[mark.arm as usize];
                let experiment = self.arms[arm as usize].experiment;
                if own.iter().all(|known| known.experiment != experiment) {
                    own.push(Mark {
                        experiment,
                        arm,
                        ..*mark
                    });
                }
            }
            own.sort_by_key(|mark| mark.experiment);
            self.seen.set(user, &own);
        }
    }
}
