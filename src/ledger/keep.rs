//! What a ledger is asked to keep: totals, spans of cells, and whose users it tells apart.

use std::collections::BTreeMap;

/// What a ledger keeps besides the current slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keep {
    /// What arms add up to since the begin.
    pub total: bool,
    /// Whose users are told apart: what they add up to, by bucket and each, is what differences between arms are judged by.
    pub users: Users,
    pub spans: Vec<Span>,
}

impl Keep {
    /// What users of these experiments add up to in spans of this length, and nothing else.
    pub fn of_users(users: Users, cell_ms: i64) -> Keep {
        let span = Span {
            cell_ms,
            n_cells: None,
            by_user_only: true,
        };
        Keep {
            total: false,
            users,
            spans: vec![span],
        }
    }

    /// The length of the only cells that are kept, if they are of users alone, ms.
    pub(super) fn stretch_ms(&self) -> Option<i64> {
        match self.spans[..] {
            [span] if span.by_user_only && !self.total => Some(span.cell_ms),
            _ => None,
        }
    }
}

/// The experiments whose users are told apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Users {
    #[default]
    Nobody,
    Everybody,
    /// Those of these experiments.
    Of(BTreeMap<String, Epochs>),
}

impl Users {
    /// When the users of an experiment are told apart; none if they are not.
    pub fn epochs(&self, experiment: &str) -> Option<Epochs> {
        match self {
            Users::Nobody => None,
            Users::Everybody => Some(Epochs::default()),
            Users::Of(experiments) => experiments.get(experiment).cloned(),
        }
    }

    /// Leaves out an experiment that was named.
    pub fn forget(&mut self, experiment: &str) {
        if let Users::Of(experiments) = self {
            experiments.remove(experiment);
        }
    }
}

/// Spans of an experiment within which each user is to be in one arm: all have the length of whole slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Epochs {
    /// Earlier slots do not count, epoch ms; none: all do.
    pub start_ms: Option<i64>,
    /// When later epochs begin, epoch ms, ascending.
    pub later_ms: Vec<i64>,
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
}

/// Cells that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Length of each, a multiple of the slot.
    pub cell_ms: i64,
    /// How many, up to the newest; none: all of them.
    pub n_cells: Option<i64>,
    /// Whether they are kept of users alone.
    pub by_user_only: bool,
}
impl Span {
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
