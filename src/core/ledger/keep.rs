//! Configuration of a ledger: its totals, its spans of cells, and the experiments whose users it tracks.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::LedgerError;
use super::starts::Starts;
use crate::bytes::{Reader, Writer, insert_last};

/// Everything a ledger keeps besides the current slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keep {
    /// Aggregates with a running total since the start, if any.
    pub total: Option<KeptAggregates>,
    /// Start of each experiment in the total.
    pub starts: Starts,
    /// Experiments with tracked users. Differences between arms are judged by the sums of their buckets and of single
    /// users.
    pub users: Users,
    /// Spans of cells. No two have the same length and the same aggregates.
    pub spans: Vec<Span>,
    /// Fingerprint of the catalogue that lists are counted with, including the places of its items. State stored with
    /// another fingerprint is not resumed. `None` without stored state or without a catalogue.
    pub catalogue: Option<u64>,
}

impl Keep {
    /// Keeps only the aggregates of these users, in cells of this length.
    pub fn of_users(users: Users, cell_ms: i64) -> Keep {
        let span = Span {
            cell_ms,
            n_cells: None,
            kept: KeptAggregates::ByUser,
        };
        Keep {
            total: None,
            starts: Starts::default(),
            users,
            spans: vec![span],
            catalogue: None,
        }
    }

    /// Returns the cell length in ms if a single span is all that is kept of an aggregate, without a total.
    pub(super) fn only_cell_ms(&self, by_user: bool) -> Option<i64> {
        let mut spans = self.spans.iter().filter(|span| span.kept.has(by_user));
        let only = spans.next().filter(|_| spans.next().is_none())?;
        let has_total = self.total.is_some_and(|kept| kept.has(by_user));
        (!has_total).then_some(only.cell_ms)
    }
}

/// Aggregates kept for a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeptAggregates {
    All,
    /// Aggregates by arm, independent of users.
    ByArm,
    /// Aggregates of tracked users only.
    ByUser,
}

impl KeptAggregates {
    pub const EACH: [KeptAggregates; 3] =
        [KeptAggregates::All, KeptAggregates::ByArm, KeptAggregates::ByUser];

    /// Returns whether the selection contains aggregates of tracked users (`by_user`), or else of arms.
    pub fn has(self, by_user: bool) -> bool {
        match self {
            KeptAggregates::All => true,
            KeptAggregates::ByArm => !by_user,
            KeptAggregates::ByUser => by_user,
        }
    }
}

/// Experiments with tracked users.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Users {
    #[default]
    Nobody,
    /// Users of all experiments.
    Everybody(Epochs),
    /// Users of these experiments.
    Of(BTreeMap<String, Epochs>),
}

impl Users {
    /// Returns the epochs of an experiment, or `None` if its users are not tracked.
    pub fn epochs(&self, experiment: &str) -> Option<Epochs> {
        match self {
            Users::Nobody => None,
            Users::Everybody(epochs) => Some(epochs.clone()),
            Users::Of(experiments) => experiments.get(experiment).cloned(),
        }
    }

    /// Returns the first slot that counts for an experiment, Unix ms. It is `i64::MAX` if users are not tracked.
    pub fn start_ms(&self, experiment: &str) -> i64 {
        let epochs = self.epochs(experiment);
        epochs.map_or(i64::MAX, |epochs| epochs.start_ms.unwrap_or(i64::MIN))
    }

    /// Stops tracking an experiment that was listed by name.
    pub fn forget(&mut self, experiment: &str) {
        if let Users::Of(experiments) = self {
            experiments.remove(experiment);
        }
    }

    /// Returns the epochs of a ledger resumed from state that tracked `stored` until `until_ms`.
    pub(super) fn resumed(&self, stored: &Users, until_ms: Option<i64>) -> Users {
        match self {
            Users::Nobody => Users::Nobody,
            Users::Everybody(epochs) => {
                let stored = match stored {
                    Users::Everybody(stored) => Some(stored),
                    _ => None,
                };
                Users::Everybody(epochs.resumed(stored, until_ms))
            }
            Users::Of(experiments) => {
                let resumed = experiments.iter().map(|(experiment, epochs)| {
                    let stored = stored.epochs(experiment);
                    (experiment.clone(), epochs.resumed(stored.as_ref(), until_ms))
                });
                Users::Of(resumed.collect())
            }
        }
    }

    /// Returns whether the stored users of an experiment can be resumed. It is also true if they are tracked neither then
    /// nor now.
    pub(super) fn can_resume(&self, stored: &Users, experiment: &str, until_ms: Option<i64>) -> bool {
        match (self, stored) {
            // `Everybody` has a single start, which cannot be earlier for the experiments that were listed before.
            (Users::Everybody(_), Users::Of(_)) => false,
            _ => match (self.epochs(experiment), stored.epochs(experiment)) {
                (Some(own), Some(stored)) => own.can_resume(&stored, until_ms),
                (own, stored) => own == stored,
            },
        }
    }

    /// Merges with the users of another ledger: sums of both are complete only from the later start on.
    pub(super) fn merge(&mut self, other: &Users) {
        match (self, other) {
            (Users::Everybody(own), Users::Everybody(other)) => own.merge(other),
            (Users::Of(own), other) => {
                for (experiment, epochs) in own {
                    other
                        .epochs(experiment)
                        .iter()
                        .for_each(|other| epochs.merge(other));
                }
            }
            _ => {}
        }
    }

    pub(super) fn encode(&self, to: &mut Writer) {
        match self {
            Users::Nobody => to.byte(0),
            Users::Everybody(epochs) => {
                to.byte(1 + self.caps_tag());
                epochs.encode(to);
                self.encode_caps(to);
            }
            Users::Of(experiments) => {
                to.byte(2 + self.caps_tag());
                to.number(experiments.len() as u64);
                for (experiment, epochs) in experiments {
                    to.text(experiment);
                    epochs.encode(to);
                }
                self.encode_caps(to);
            }
        }
    }

    fn all_epochs(&self) -> Vec<&Epochs> {
        match self {
            Users::Nobody => Vec::new(),
            Users::Everybody(epochs) => vec![epochs],
            Users::Of(experiments) => experiments.values().collect(),
        }
    }

    /// Returns 0 without caps, so that the encoding stays the same as before caps were introduced.
    fn caps_tag(&self) -> u8 {
        let has_caps = self.all_epochs().iter().any(|epochs| epochs.max_lists.is_some());
        if has_caps { CAPPED } else { 0 }
    }

    /// Writes one number per experiment: its cap, or 0 without one.
    fn encode_caps(&self, to: &mut Writer) {
        if self.caps_tag() == CAPPED {
            for epochs in self.all_epochs() {
                to.number(epochs.max_lists.map_or(0, |max| max.get().into()));
            }
        }
    }

    pub(super) fn decode(from: &mut Reader) -> Result<Users, LedgerError> {
        let tag = from.byte()?;
        if ![1 + CAPPED, 2 + CAPPED].contains(&tag) {
            return Users::decode_uncapped(tag, from);
        }
        let mut users = Users::decode_uncapped(tag - CAPPED, from)?;
        let all = match &mut users {
            Users::Nobody => Vec::new(),
            Users::Everybody(epochs) => vec![epochs],
            Users::Of(experiments) => experiments.values_mut().collect(),
        };
        for epochs in all {
            let max = u32::try_from(from.number()?).map_err(|_| LedgerError::Number)?;
            epochs.max_lists = NonZeroU32::new(max);
        }
        // Reject a capped tag without any cap: every value has exactly one encoding.
        (users.caps_tag() == CAPPED)
            .then_some(users)
            .ok_or(LedgerError::Number)
    }

    fn decode_uncapped(tag: u8, from: &mut Reader) -> Result<Users, LedgerError> {
        match tag {
            0 => Ok(Users::Nobody),
            1 => Ok(Users::Everybody(Epochs::decode(from)?)),
            2 => {
                let mut experiments = BTreeMap::new();
                for _ in 0..from.length()? {
                    let experiment = from.text()?.to_owned();
                    insert_last(&mut experiments, experiment, Epochs::decode(from)?)?;
                }
                Ok(Users::Of(experiments))
            }
            _ => Err(LedgerError::Number),
        }
    }
}

/// Offset added to the tag of users if any experiment has a cap.
const CAPPED: u8 = 2;

/// Periods of an experiment. Within one epoch each user should be in one arm. Epochs start and end at slot boundaries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Epochs {
    /// Start of the first epoch, Unix ms. Earlier slots do not count. `None`: all slots count.
    pub start_ms: Option<i64>,
    /// Starts of the later epochs, Unix ms, ascending.
    pub later_ms: Vec<i64>,
    /// Maximum number of lists counted per user. `None`: no limit.
    pub max_lists: Option<NonZeroU32>,
}

impl Epochs {
    /// Returns the number of a slot's epoch, or `None` if the slot does not count.
    pub fn of(&self, slot_ms: i64) -> Option<u16> {
        let epoch = self.later_ms.partition_point(|start_ms| *start_ms <= slot_ms);
        self.start_ms
            .is_none_or(|start_ms| start_ms <= slot_ms)
            .then_some(epoch as u16)
    }

    /// Returns the start of the next epoch after this slot, Unix ms.
    pub fn next_ms(&self, slot_ms: i64) -> Option<i64> {
        let starts = self.start_ms.iter().chain(&self.later_ms).copied();
        starts.filter(|start_ms| *start_ms > slot_ms).min()
    }

    /// Returns whether users kept under the epochs `stored` until `until_ms` can be resumed. They cannot if the new start
    /// is later (older data cannot be subtracted), if other epochs have started since, or if the cap on lists per user has
    /// changed.
    fn can_resume(&self, stored: &Epochs, until_ms: Option<i64>) -> bool {
        let is_same =
            self.max_lists == stored.max_lists && self.started(until_ms) == stored.started(until_ms);
        self.start_ms <= stored.start_ms && is_same
    }

    /// Returns the starts of later epochs that began before this time, Unix ms.
    fn started(&self, until_ms: Option<i64>) -> &[i64] {
        let has_started = |start_ms: &i64| Some(*start_ms) < until_ms;
        &self.later_ms[..self.later_ms.partition_point(has_started)]
    }

    /// Returns these epochs for a ledger resumed at `until_ms`. Resumed users keep their stored start; all others start at
    /// `until_ms`.
    fn resumed(&self, stored: Option<&Epochs>, until_ms: Option<i64>) -> Epochs {
        let stored = stored.filter(|stored| self.can_resume(stored, until_ms));
        Epochs {
            start_ms: stored.map_or(self.start_ms.max(until_ms), |stored| stored.start_ms),
            later_ms: self.later_ms.clone(),
            max_lists: self.max_lists,
        }
    }

    fn merge(&mut self, other: &Epochs) {
        self.start_ms = self.start_ms.max(other.start_ms);
    }

    fn encode(&self, to: &mut Writer) {
        to.time(self.start_ms);
        to.number(self.later_ms.len() as u64);
        self.later_ms.iter().for_each(|ms| to.signed((*ms).into()));
    }

    fn decode(from: &mut Reader) -> Result<Epochs, LedgerError> {
        let start_ms = from.time()?;
        let later_ms: Vec<i64> = (0..from.length()?).map(|_| from.ms()).collect::<Result<_, _>>()?;
        // Epochs are found by binary search, which relies on this order.
        let ascend = later_ms.is_sorted();
        ascend
            .then_some(Epochs {
                start_ms,
                later_ms,
                max_lists: None,
            })
            .ok_or(LedgerError::Number)
    }
}

/// Cells of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Length of each cell, a multiple of the slot.
    pub cell_ms: i64,
    /// Number of cells kept, counted back from the newest. `None`: all cells.
    pub n_cells: Option<i64>,
    /// Aggregates kept in the cells.
    pub kept: KeptAggregates,
}

impl Span {
    /// Returns since when the span is complete, Unix ms, after resuming from a stored span with fewer cells: older ones
    /// were dropped.
    pub(super) fn since_ms<C>(&self, n_cells: Option<i64>, cells: &BTreeMap<i64, C>) -> Option<i64> {
        let n_cells = n_cells.filter(|stored| self.n_cells.is_none_or(|n_cells| n_cells > *stored))?;
        let (newest, _) = cells.last_key_value()?;
        let oldest = newest.saturating_sub(n_cells).saturating_add(1);
        Some(oldest.saturating_mul(self.cell_ms))
    }

    /// Drops cells that have left the span.
    pub(super) fn trim<C>(&self, cells: &mut BTreeMap<i64, C>) {
        let newest = cells.last_key_value().map(|(number, _)| *number);
        if let (Some(n_cells), Some(newest)) = (self.n_cells, newest) {
            while let Some(first) = cells
                .first_entry()
                .filter(|first| *first.key() <= newest.saturating_sub(n_cells))
            {
                first.remove();
            }
        }
    }
}
