//! What a ledger is asked to keep: totals, spans of cells, and whose users it tells apart.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use super::LedgerError;
use super::book::insert_last;
use super::starts::Starts;
use crate::bytes::{Reader, Writer};

/// What a ledger keeps besides the current slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keep {
    /// Of what there is a total since the begin, if there is one.
    pub total: Option<Kept>,
    /// From when on experiments count in it.
    pub starts: Starts,
    /// Whose users are told apart: what they add up to, by bucket and each, is what differences between arms are judged by.
    pub users: Users,
    /// No two of one length and of the same.
    pub spans: Vec<Span>,
    /// Stands for the catalogue by which lists are counted, and for the places that it gives its items: what was stored under
    /// another one begins anew. None where nothing is stored, or there is no catalogue.
    pub catalogue: Option<u64>,
}

impl Keep {
    /// What users of these experiments add up to in spans of this length, and nothing else.
    pub fn of_users(users: Users, cell_ms: i64) -> Keep {
        let span = Span {
            cell_ms,
            n_cells: None,
            kept: Kept::ByUser,
        };
        Keep {
            total: None,
            starts: Starts::default(),
            users,
            spans: vec![span],
            catalogue: None,
        }
    }

    /// The length of the cells of an aggregate, if nothing is kept of it but the cells of one span, ms.
    pub(super) fn only_cell_ms(&self, by_user: bool) -> Option<i64> {
        let mut spans = self.spans.iter().filter(|span| span.kept.has(by_user));
        let only = spans.next().filter(|_| spans.next().is_none())?;
        let has_total = self.total.is_some_and(|kept| kept.has(by_user));
        (!has_total).then_some(only.cell_ms)
    }
}

/// What is kept of a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kept {
    All,
    /// What arms add up to, whoever their users are.
    ByArm,
    /// What is kept of users alone.
    ByUser,
}

impl Kept {
    pub const EACH: [Kept; 3] = [Kept::All, Kept::ByArm, Kept::ByUser];

    /// Whether an aggregate is among it that is kept of users alone, or one that is not.
    pub fn has(self, by_user: bool) -> bool {
        match self {
            Kept::All => true,
            Kept::ByArm => !by_user,
            Kept::ByUser => by_user,
        }
    }
}

/// The experiments whose users are told apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Users {
    #[default]
    Nobody,
    /// Those of all experiments.
    Everybody(Epochs),
    /// Those of these experiments.
    Of(BTreeMap<String, Epochs>),
}

impl Users {
    /// When the users of an experiment are told apart; none if they are not.
    pub fn epochs(&self, experiment: &str) -> Option<Epochs> {
        match self {
            Users::Nobody => None,
            Users::Everybody(epochs) => Some(epochs.clone()),
            Users::Of(experiments) => experiments.get(experiment).cloned(),
        }
    }

    /// Earlier slots of an experiment do not count, epoch ms; none counts if its users are not told apart.
    pub fn start_ms(&self, experiment: &str) -> i64 {
        let epochs = self.epochs(experiment);
        epochs.map_or(i64::MAX, |epochs| epochs.start_ms.unwrap_or(i64::MIN))
    }

    /// Leaves out an experiment that was named.
    pub fn forget(&mut self, experiment: &str) {
        if let Users::Of(experiments) = self {
            experiments.remove(experiment);
        }
    }

    /// What becomes of these if `stored` were told apart until `until_ms`.
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

    /// Whether what was kept of the users of an experiment goes on: where they are told apart neither then nor now, it stays.
    pub(super) fn go_on(&self, stored: &Users, experiment: &str, until_ms: Option<i64>) -> bool {
        match (self, stored) {
            (Users::Everybody(_), Users::Of(_)) => false,
            _ => match (self.epochs(experiment), stored.epochs(experiment)) {
                (Some(own), Some(stored)) => own.go_on(&stored, until_ms),
                (own, stored) => own == stored,
            },
        }
    }

    /// Of sums that are those of both: the later start of each.
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

    /// Without caps the bytes are those of before there were any.
    fn caps_tag(&self) -> u8 {
        let has_caps = self.all_epochs().iter().any(|epochs| epochs.max_lists.is_some());
        if has_caps { CAPPED } else { 0 }
    }

    /// For each experiment, 0 or its cap.
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
        // One way to write each.
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

/// Added to the tag of users if any experiment has a cap.
const CAPPED: u8 = 2;

/// Spans of an experiment within which each user is to be in one arm: all have the length of whole slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Epochs {
    /// Earlier slots do not count, epoch ms; none: all do.
    pub start_ms: Option<i64>,
    /// When later epochs begin, epoch ms, ascending.
    pub later_ms: Vec<i64>,
    /// How many lists of a user count; none: all of them.
    pub max_lists: Option<NonZeroU32>,
}

impl Epochs {
    /// The number of the epoch that a slot is in; none where it does not count.
    pub fn of(&self, slot_ms: i64) -> Option<u16> {
        let epoch = self.later_ms.partition_point(|start_ms| *start_ms <= slot_ms);
        self.start_ms
            .is_none_or(|start_ms| start_ms <= slot_ms)
            .then_some(epoch as u16)
    }

    /// When the first one begins of those that begin after this slot, epoch ms.
    pub fn next_ms(&self, slot_ms: i64) -> Option<i64> {
        let starts = self.start_ms.iter().chain(&self.later_ms).copied();
        starts.filter(|start_ms| *start_ms > slot_ms).min()
    }

    /// Whether what was kept of users until `until_ms`, by the epochs `stored`, goes on. It does not if they are to start later, as
    /// what was before that cannot be taken out, if others than these have begun, and if another number of lists of a user counts.
    fn go_on(&self, stored: &Epochs, until_ms: Option<i64>) -> bool {
        let is_same = self.max_lists == stored.max_lists && self.begun(until_ms) == stored.begun(until_ms);
        self.start_ms <= stored.start_ms && is_same
    }

    /// The later ones that have slots before this time, epoch ms.
    fn begun(&self, until_ms: Option<i64>) -> &[i64] {
        let has_begun = |start_ms: &i64| Some(*start_ms) < until_ms;
        &self.later_ms[..self.later_ms.partition_point(has_begun)]
    }

    /// These, as of a ledger that goes on from `until_ms`: what went on starts where it did, what does not starts there.
    fn resumed(&self, stored: Option<&Epochs>, until_ms: Option<i64>) -> Epochs {
        let stored = stored.filter(|stored| self.go_on(stored, until_ms));
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

/// Cells that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Length of each, a multiple of the slot.
    pub cell_ms: i64,
    /// How many, up to the newest; none: all of them.
    pub n_cells: Option<i64>,
    /// Of what.
    pub kept: Kept,
}

impl Span {
    /// Since when there are as many as are to be kept, epoch ms, if `n_cells` were kept so far: earlier ones had left.
    pub(super) fn since_ms<C>(&self, n_cells: Option<i64>, cells: &BTreeMap<i64, C>) -> Option<i64> {
        let n_cells = n_cells.filter(|stored| self.n_cells.is_none_or(|n_cells| n_cells > *stored))?;
        let (newest, _) = cells.last_key_value()?;
        let oldest = newest.saturating_sub(n_cells).saturating_add(1);
        Some(oldest.saturating_mul(self.cell_ms))
    }

    /// Drops cells that have left.
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
