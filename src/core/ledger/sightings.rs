//! Sightings of users: one number per user for all experiments together, so that a list costs a single table lookup.
//!
//! ```text
//! user ─▶ state ─▶ [ mark of an experiment: first arm of the epoch, seen in two arms or not │ … ]
//! (state, set of arms of a list) ─▶ next state, and what that adds
//! ```
//! Many users have the same marks and share a state. The step from a state with a set of arms is computed only once.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::LedgerError;
use super::exposures::Exposed;
use crate::bytes::{Reader, Writer};
use crate::engine::ArmId;

/// Sighting of a user in one experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark {
    pub experiment: u32,
    /// Arm of the first list in `epoch`.
    pub arm: ArmId,
    /// Latest epoch with a list.
    pub epoch: u16,
    /// True if the user was seen in two arms within one epoch.
    pub is_in_two: bool,
}

/// Marks of a user, sorted by experiment.
type Marks = Arc<[Mark]>;
/// Number of a set of marks. 0 is the empty set.
pub type MarkSet = u32;

/// Counts that a change of state adds to an arm.
pub type Gain = (ArmId, Exposed);

/// Users of a pair.
#[derive(Debug)]
pub struct SeenUsers {
    /// Tables by the upper eight bits of the user. None gets large, so growing one takes negligible time.
    tables: Vec<HashMap<u32, MarkSet>>,
    marks: Vec<Marks>,
    states: HashMap<Marks, MarkSet>,
    /// Step for a user without marks, by set of arms.
    first_steps: Vec<Option<Step>>,
    /// Steps for users in other states, by state and set of arms.
    steps: HashMap<(MarkSet, u32), Step>,
    /// Counts that each step adds.
    gains: Vec<Box<[Gain]>>,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    to: MarkSet,
    /// Index of its counts in `gains`.
    change: u32,
}

/// Change that a list made to the state of a user.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    pub before: MarkSet,
    /// Index for [`SeenUsers::gains`].
    pub change: u32,
}

/// Maximum number of remembered steps. If every user has a unique set of arms, few steps occur twice.
const MAX_STEPS: usize = 1 << 16;
/// Number of unused states that are kept, beyond one per user.
const MAX_IDLE_STATES: usize = 1 << 10;
const N_TABLES: usize = 256;

impl SeenUsers {
    pub fn new() -> SeenUsers {
        let none = Marks::default();
        SeenUsers {
            tables: (0..N_TABLES).map(|_| HashMap::new()).collect(),
            marks: vec![Arc::clone(&none)],
            states: HashMap::from_iter([(none, 0)]),
            first_steps: Vec::new(),
            steps: HashMap::new(),
            gains: Vec::new(),
        }
    }

    /// Looks up users only to bring them into the cache: the processor overlaps several of these loads.
    pub fn prefetch(&self, users: impl Iterator<Item = u32>) {
        let states = users.filter_map(|user| self.tables[table_of(user)].get(&user));
        std::hint::black_box(states.fold(0, |all, state| all ^ state));
    }

    /// Adds a list of a user. `set` is the number of its arms; `made` are the marks of a new user with such a list.
    pub fn see(&mut self, user: u32, set: u32, made: &[Mark]) -> Option<Change> {
        let first = self.first_steps.get(set as usize).copied().flatten();
        let first = first.unwrap_or_else(|| self.work_out(0, set, made));
        let state = self.tables[table_of(user)].entry(user).or_insert(0);
        let from = *state;
        // Usually a user is in the same arms again. A list changes a new user to `first.to`, so it does not change that state.
        if from == first.to {
            return None;
        }
        if from == 0 {
            *state = first.to;
            return Some(Change {
                before: 0,
                change: first.change,
            });
        }
        let step = self.steps.get(&(from, set)).copied();
        let step = step.unwrap_or_else(|| self.work_out(from, set, made));
        if step.to == from {
            return None;
        }
        self.tables[table_of(user)].insert(user, step.to);
        Some(Change {
            before: from,
            change: step.change,
        })
    }

    #[cold]
    fn work_out(&mut self, from: MarkSet, set: u32, made: &[Mark]) -> Step {
        let before = Arc::clone(&self.marks[from as usize]);
        let mut marks = before.to_vec();
        made.iter().for_each(|mark| add(&mut marks, *mark));
        let step = Step {
            to: self.state(&marks),
            change: self.gains.len() as u32,
        };
        self.gains.push(gains(&before, &marks).collect());
        if from == 0 {
            let n_sets = self.first_steps.len().max(set as usize + 1);
            self.first_steps.resize(n_sets, None);
            self.first_steps[set as usize] = Some(step);
        } else {
            self.steps.insert((from, set), step);
        }
        step
    }

    /// Returns the counts that a change adds.
    pub fn gains(&self, change: Change) -> &[Gain] {
        &self.gains[change.change as usize]
    }

    /// Returns the marks of a state.
    pub fn marks(&self, state: MarkSet) -> &[Mark] {
        &self.marks[state as usize]
    }

    /// Returns the marks of a user.
    pub fn of(&self, user: u32) -> &[Mark] {
        let state = self.tables[table_of(user)].get(&user);
        &self.marks[state.copied().unwrap_or(0) as usize]
    }

    /// Sets the marks of a user.
    pub fn set(&mut self, user: u32, marks: &[Mark]) {
        let state = self.state(marks);
        self.tables[table_of(user)].insert(user, state);
    }

    /// Drops all marks of an experiment, and users without any other marks.
    pub fn forget(&mut self, experiment: u32) {
        self.renumber(|mark| mark.experiment != experiment);
    }

    /// Forgets all sets and steps, and drops unused states if they are the majority. The caller must renumber its sets.
    pub fn forget_sets(&mut self) {
        self.first_steps.clear();
        self.steps.clear();
        self.gains.clear();
        let n_users: usize = self.tables.iter().map(HashMap::len).sum();
        if self.marks.len() > 2 * n_users + MAX_IDLE_STATES {
            self.renumber(|_| true);
        }
    }

    /// Returns whether more steps are remembered than are likely to help.
    pub fn is_full(&self) -> bool {
        self.gains.len() > MAX_STEPS
    }

    /// Renumbers the states in use, keeping only the selected marks.
    fn renumber(&mut self, is_kept: impl Fn(&Mark) -> bool) {
        let old = std::mem::replace(self, SeenUsers::new());
        let mut states: Vec<Option<MarkSet>> = vec![None; old.marks.len()];
        let mut tables = old.tables;
        for table in &mut tables {
            table.retain(|_, state| {
                let old_state = *state as usize;
                *state = *states[old_state].get_or_insert_with(|| {
                    let kept = old.marks[old_state].iter().filter(|mark| is_kept(mark));
                    self.state(&kept.copied().collect::<Vec<_>>())
                });
                // State 0 has no marks: the user is forgotten.
                *state != 0
            });
            table.shrink_to_fit();
        }
        self.tables = tables;
    }

    /// Returns all users with their marks.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[Mark])> {
        let users = self.tables.iter().flatten();
        users.map(|(user, state)| (*user, &*self.marks[*state as usize]))
    }

    fn state(&mut self, marks: &[Mark]) -> MarkSet {
        if let Some(state) = self.states.get(marks) {
            return *state;
        }
        let (marks, state) = (Marks::from(marks), self.marks.len() as MarkSet);
        self.marks.push(Arc::clone(&marks));
        self.states.insert(marks, state);
        state
    }

    /// Writes users in ascending order, each with the arm, epoch and flag of each mark.
    pub fn encode(&self, to: &mut Writer) {
        let mut users: Vec<(u32, &[Mark])> = self.iter().collect();
        users.sort_unstable_by_key(|(user, _)| *user);
        to.number(users.len() as u64);
        for (user, marks) in users {
            to.number(user.into());
            to.number(marks.len() as u64);
            for mark in marks {
                to.number(mark.arm.into());
                to.number(u64::from(mark.epoch) << 1 | u64::from(mark.is_in_two));
            }
        }
    }

    /// Decodes users, keeping only marks of arms in `can_resume`. Users without such a mark are dropped. `experiments` is by arm.
    pub fn decode(
        from: &mut Reader,
        experiments: &[u32],
        can_resume: &[bool],
    ) -> Result<SeenUsers, LedgerError> {
        let mut users = SeenUsers::new();
        let mut last = None;
        for _ in 0..from.length()? {
            let user = u32::try_from(from.number()?).map_err(|_| LedgerError::Number)?;
            let mut marks = decode_marks(from, experiments)?;
            if last >= Some(user) {
                return Err(LedgerError::Number);
            }
            last = Some(user);
            marks.retain(|mark| can_resume[mark.arm as usize]);
            if !marks.is_empty() {
                users.set(user, &marks);
            }
        }
        Ok(users)
    }
}

/// Decodes the marks of a user, at least one.
fn decode_marks(from: &mut Reader, experiments: &[u32]) -> Result<Vec<Mark>, LedgerError> {
    let mut marks: Vec<Mark> = Vec::new();
    for _ in 0..from.length()? {
        let mark = decode_mark(from, experiments)?;
        let is_next = marks.last().is_none_or(|last| last.experiment < mark.experiment);
        is_next.then_some(()).ok_or(LedgerError::Number)?;
        marks.push(mark);
    }
    let is_any = !marks.is_empty();
    is_any.then_some(marks).ok_or(LedgerError::Number)
}

fn decode_mark(from: &mut Reader, experiments: &[u32]) -> Result<Mark, LedgerError> {
    let [arm, epoch] = [from.number()?, from.number()?];
    let experiment = usize::try_from(arm).ok().and_then(|arm| experiments.get(arm));
    Ok(Mark {
        experiment: *experiment.ok_or(LedgerError::Number)?,
        arm: arm as ArmId,
        epoch: u16::try_from(epoch >> 1).map_err(|_| LedgerError::Number)?,
        is_in_two: epoch & 1 == 1,
    })
}

fn table_of(user: u32) -> usize {
    (user >> 24) as usize
}

/// Adds a sighting to the marks of a user.
pub fn add(marks: &mut Vec<Mark>, seen: Mark) {
    match marks.binary_search_by_key(&seen.experiment, |mark| mark.experiment) {
        Err(place) => marks.insert(place, seen),
        Ok(place) => {
            let mark = &mut marks[place];
            if mark.is_in_two {
                return; // and so it stays
            }
            // In a new epoch, a user may be in another arm without being in two.
            if mark.epoch != seen.epoch {
                (mark.arm, mark.epoch) = (seen.arm, seen.epoch);
            }
            mark.is_in_two |= mark.arm != seen.arm;
        }
    }
}

/// Returns the counts that a user adds to arms when the marks change from `before` to `now`, in the same epochs or later ones.
pub fn gains(before: &[Mark], now: &[Mark]) -> impl Iterator<Item = Gain> {
    now.iter().filter_map(|mark| {
        let known = before.iter().find(|known| known.experiment == mark.experiment);
        let was_in_two = known.is_some_and(|known| known.is_in_two);
        let gain = Exposed {
            first: u64::from(known.is_none()),
            in_two: u64::from(mark.is_in_two && !was_in_two),
        };
        (gain != Exposed::default()).then_some((mark.arm, gain))
    })
}
