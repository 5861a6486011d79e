//! Outcomes: every record read gets exactly one, and every accepted click one result.

use std::collections::BTreeMap;

use super::event::{Reason, Side};
use super::float_times::FloatTimes;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(usize)]
pub enum Outcome {
    Accepted,
    /// A copy of an accepted list.
    Duplicate,
    /// Older than the topic partition's watermark.
    Late,
    /// Further ahead of the record's timestamp than `max_future`.
    Future,
    Invalid,
    /// The slot is settled. Happens only after an idle move.
    AfterSettled,
    /// A row of a gathered list that silence has already completed.
    LateRow,
    /// A type that is not ours.
    Ignored,
    /// A record before the start of counting in this process, or counted by an earlier one.
    Replayed,
    /// A memory bound was reached: numbers are no longer exact.
    Shed,
    /// The operator leaves it out.
    Skipped,
    /// A record of several events, each with its own outcome.
    Several,
}

const N_OUTCOMES: usize = Outcome::Several as usize + 1;

impl Outcome {
    /// Outcomes of events, and so of records with one event.
    pub const OF_EVENTS: [Outcome; 11] = [
        Outcome::Accepted,
        Outcome::Duplicate,
        Outcome::Late,
        Outcome::Future,
        Outcome::Invalid,
        Outcome::AfterSettled,
        Outcome::LateRow,
        Outcome::Ignored,
        Outcome::Replayed,
        Outcome::Shed,
        Outcome::Skipped,
    ];

    /// The value of the label `outcome`.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Accepted => "accepted",
            Outcome::Duplicate => "duplicate",
            Outcome::Late => "late",
            Outcome::Future => "future",
            Outcome::Invalid => "invalid",
            Outcome::AfterSettled => "after_settled",
            Outcome::LateRow => "late_row",
            Outcome::Ignored => "ignored",
            Outcome::Replayed => "replayed",
            Outcome::Shed => "shed",
            Outcome::Skipped => "skipped",
            Outcome::Several => "several",
        }
    }
}

/// Result of an accepted click. Clicks that wait for their list are a gauge, not a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(usize)]
pub enum ClickResult {
    Matched,
    /// The same item of the same list again.
    Repeat,
    /// The item is not in the list.
    OffList,
    /// No list of its id can come any more.
    Unmatched,
    /// The list may lie before the start of the log as it was read, or its task ended while it waited.
    Undecided,
}

impl ClickResult {
    pub const ALL: [ClickResult; 5] = [
        ClickResult::Matched,
        ClickResult::Repeat,
        ClickResult::OffList,
        ClickResult::Unmatched,
        ClickResult::Undecided,
    ];

    /// The value of the label `result`.
    pub fn name(self) -> &'static str {
        match self {
            ClickResult::Matched => "matched",
            ClickResult::Repeat => "repeat",
            ClickResult::OffList => "off_list",
            ClickResult::Unmatched => "unmatched",
            ClickResult::Undecided => "undecided",
        }
    }
}

/// Likely cause of many copies with other items or arms, and the remedy.
pub const SHELVES: &str = "several lists share one id; do your pages show several shelves? Give each list an id of its own, or let the \
                           shelf be part of it, as `request_id = { all = [\"request_id\", \"shelf\"] }` under [events] does (docs/events.md)";

/// Counts since they were last taken, of one pair.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    outcomes: [[u64; N_OUTCOMES]; 2],
    /// Counts of events in records of several.
    parts: [[u64; N_OUTCOMES]; 2],
    invalid: [[u64; Reason::ALL.len()]; 2],
    results: [u64; ClickResult::ALL.len()],
    /// Rows of gathered lists besides their heads. Outcomes minus these are lists.
    pub further_rows: u64,
    /// Copies that show other items or arms than their list.
    pub conflicting_lists: u64,
    /// Positions of accepted lists that repeat an item from a higher rank.
    pub repeated_items: u64,
    /// Skipped elements of lists that are not items.
    pub skipped_elements: u64,
    /// Lists that share their request id with a great many lists.
    pub shared_id_lists: u64,
    /// Clicks that fall to more lists of their request id than they count for.
    pub cut_clicks: u64,
    /// Events whose time is [on a step](super::float_times) of 32-bit floats, by `Side as usize`.
    pub on_float_steps: [u64; 2],
    /// Late events that lie more than a day behind the newest one, by `Side as usize`.
    pub days_late: [u64; 2],
    /// Arms that cannot be one, by experiment: their lists count without it.
    pub bad_arms: BTreeMap<String, u64>,
}

impl Counts {
    pub fn count(&mut self, side: Side, outcome: Outcome) {
        self.outcomes[side as usize][outcome as usize] += 1;
    }

    #[cold]
    pub fn count_part(&mut self, side: Side, outcome: Outcome) {
        self.parts[side as usize][outcome as usize] += 1;
    }

    pub fn count_many(&mut self, side: Side, outcome: Outcome, n: u64) {
        self.outcomes[side as usize][outcome as usize] += n;
    }

    pub fn count_many_parts(&mut self, side: Side, outcome: Outcome, n: u64) {
        self.parts[side as usize][outcome as usize] += n;
    }

    /// Counts the reason why an event is invalid, in addition to its outcome.
    pub fn count_reason(&mut self, side: Side, reason: Reason) {
        self.invalid[side as usize][reason as usize] += 1;
    }

    pub fn count_result(&mut self, result: ClickResult) {
        self.results[result as usize] += 1;
    }

    pub fn count_results(&mut self, result: ClickResult, n: u64) {
        self.results[result as usize] += n;
    }

    /// Returns the counts of lists besides their outcomes.
    pub(super) fn of_lists(&self) -> [u64; 3] {
        [self.conflicting_lists, self.repeated_items, self.shared_id_lists]
    }

    /// Resets the counts of lists to earlier values.
    pub(super) fn set_of_lists(&mut self, of_lists: [u64; 3]) {
        [self.conflicting_lists, self.repeated_items, self.shared_id_lists] = of_lists;
    }

    pub fn outcome(&self, side: Side, outcome: Outcome) -> u64 {
        self.outcomes[side as usize][outcome as usize]
    }

    /// Events of this side that have a time.
    pub fn float_times(&self, side: Side) -> FloatTimes {
        let without = [Outcome::Invalid, Outcome::Ignored, Outcome::Skipped];
        let timed = Outcome::OF_EVENTS.into_iter();
        let timed = timed.filter(|outcome| !without.contains(outcome));
        FloatTimes {
            n: timed.map(|outcome| self.events(side, outcome)).sum(),
            n_on_steps: self.on_float_steps[side as usize],
        }
    }

    /// Returns the number of events of both sides with this outcome.
    pub fn n_of(&self, outcome: Outcome) -> u64 {
        Side::BOTH.map(|side| self.events(side, outcome)).iter().sum()
    }

    /// Events of this outcome: records of one event, and parts of others.
    pub fn events(&self, side: Side, outcome: Outcome) -> u64 {
        match outcome {
            Outcome::Several => 0,
            _ => self.outcome(side, outcome) + self.parts[side as usize][outcome as usize],
        }
    }

    pub fn invalid(&self, side: Side, reason: Reason) -> u64 {
        self.invalid[side as usize][reason as usize]
    }

    pub fn result(&self, result: ClickResult) -> u64 {
        self.results[result as usize]
    }

    /// Records read, whatever became of them.
    pub fn records(&self, side: Side) -> u64 {
        self.outcomes[side as usize].iter().sum()
    }

    pub fn add_bad_arms(&mut self, more: &BTreeMap<String, u64>) {
        for (experiment, n) in more {
            *self.bad_arms.entry(experiment.clone()).or_default() += n;
        }
    }

    pub fn add(&mut self, other: &Counts) {
        let ours = self.outcomes.as_flattened_mut().iter_mut();
        for (a, b) in ours.zip(other.outcomes.as_flattened()) {
            *a += b;
        }
        let ours = self.parts.as_flattened_mut().iter_mut();
        for (a, b) in ours.zip(other.parts.as_flattened()) {
            *a += b;
        }
        let ours = self.invalid.as_flattened_mut().iter_mut();
        for (a, b) in ours.zip(other.invalid.as_flattened()) {
            *a += b;
        }
        for (a, b) in self.results.iter_mut().zip(&other.results) {
            *a += b;
        }
        self.further_rows += other.further_rows;
        self.conflicting_lists += other.conflicting_lists;
        self.repeated_items += other.repeated_items;
        self.skipped_elements += other.skipped_elements;
        self.shared_id_lists += other.shared_id_lists;
        self.cut_clicks += other.cut_clicks;
        for side in Side::BOTH {
            self.on_float_steps[side as usize] += other.on_float_steps[side as usize];
            self.days_late[side as usize] += other.days_late[side as usize];
        }
        self.add_bad_arms(&other.bad_arms);
    }
}
