//! Looks at experiments: at fixed event times, in order, over what all pairs have settled up to then.
//!
//! ```text
//! cells by user of each pair ─▶ wait ─▶ look n: all pairs cover it ─▶ sums by epoch ─▶ statistics ─▶ ExperimentLook
//!                                                    │                    kept: running maxima ◀┘        ▲
//!                                                    ╰▶ the last cells ─▶ sums over the window ─▶ intervals ╯
//! ```
//! A look takes place once every pair has settled all slots before its time, and looks are taken one after the other, also while
//! the log is read back: so the same log gives the same looks, whenever the program was started. A pair that is behind holds them
//! back. Pure: no clock, no I/O. [`Looks`] takes [`News`] of pairs and gives [`Looked`]. Where pairs are stored, a [`Feed`] makes news of
//! the states in force of all pairs, whoever owns them: so all instances take the same looks.

mod arms;
mod course;
mod experiment;
mod feed;
mod history;
mod inbox;
mod pair;
mod published;
mod resume;
mod stored;
mod sums;
#[cfg(test)]
mod tests;
mod waiting;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use self::arms::{ArmLook, MetricLook, WindowLook};
use self::course::Course;
pub use self::course::ExperimentLook;
pub use self::experiment::{EpochStart, Experiment};
pub use self::feed::{Feed, FeedError, State};
pub use self::history::{Estimate, History, Point};
pub use self::inbox::{Inbox, Taken};
pub use self::pair::row_bytes;
use self::pair::{Bytes, PairUsers};
pub use self::published::{Published, Shown};
pub use self::resume::{Found, Resumed};
pub use self::stored::{AsOf, AsOfError, PairLooks, StoredLooks, StoredPair, UpTo};
pub use self::sums::{arm_totals, compared, default_primary, refused_lists};
pub use self::window::{Window, max_window_bytes};
use crate::engine::Arm;
use crate::engine::ranking::Ranking;
use crate::ledger::{Cell, PairId};

/// Event time between two looks, ms, where slots fit into it.
const LOOK_MS: i64 = 600_000;

/// Event time between two looks, ms: the smallest multiple of a slot from ten minutes on.
pub fn every_ms(slot_ms: i64) -> i64 {
    (LOOK_MS + slot_ms - 1) / slot_ms * slot_ms
}

/// What happens to pairs.
#[derive(Debug)]
pub enum News {
    /// These are ours, and whether looks wait for each; what others have added up to is dropped.
    Owned(BTreeMap<PairId, bool>),
    /// A pair has come so far.
    Reached {
        pair: PairId,
        /// Those that it has admitted since, in its order.
        arms: Vec<Arm>,
        /// Complete cells, by number.
        cells: Vec<(i64, Cell)>,
        /// No list before this can still settle, epoch ms.
        until_ms: Option<i64>,
    },
    /// Everything begins over, with what is stored of these pairs, which are all.
    Resumed(Vec<Resumed>),
    /// What a pair has added up to is void: it begins anew, or went elsewhere.
    Dropped(PairId),
}

/// One look at all experiments.
#[derive(Debug, Clone)]
pub struct Looked {
    /// Its event time, epoch ms: everything before it has settled.
    pub as_of_ms: i64,
    /// By name.
    pub experiments: BTreeMap<String, Arc<ExperimentLook>>,
    /// What is given up from now on, because all experiments took too much memory.
    pub given_up: Option<GivenUp>,
}

/// What of an experiment is given up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GivenUp {
    /// What is said of it in its window.
    Window(String),
    /// All that is said of it.
    Experiment(String),
}

/// What is asked of all looks.
#[derive(Debug)]
pub struct Rules {
    /// Event time between two looks, ms: a multiple of the slot.
    pub every_ms: i64,
    pub ranking: Ranking,
    /// By experiment.
    pub experiments: BTreeMap<String, Experiment>,
    /// Whether all lists of a user come through one pair; if not, users cannot be counted.
    pub counts_users: bool,
    /// The window in which arms have intervals, if one of those that are shown consists of whole cells.
    pub window: Option<Window>,
    /// Bytes of sums by bucket, of users that were seen, and of what looks have shown. If there are more, windows are given up, and then experiments.
    pub max_bytes: u64,
    /// Whether cells that wait count in it too, when they come. Not where a [`Feed`] bounds them: how many wait depends on when that is
    /// asked, and all instances are to give up the same.
    pub bounds_waiting: bool,
}

/// Takes looks.
#[derive(Debug)]
pub struct Looks {
    rules: Rules,
    pairs: BTreeMap<PairId, PairUsers>,
    courses: BTreeMap<String, Course>,
    /// As they were before the last look.
    before: BTreeMap<String, Course>,
    /// Experiments that were given up.
    given_up: BTreeSet<String>,
    /// Experiments whose window was given up.
    without_window: BTreeSet<String>,
    /// What was found and not taken yet, and what was found at all: nothing is found twice.
    found: Vec<Found>,
    all_found: BTreeSet<Found>,
    /// The number of the next one: its cell ends at its time. None before there was a list.
    next: Option<i64>,
    /// The one before that was taken here.
    has_looked: bool,
}

impl Looks {
    pub fn new(rules: Rules) -> Looks {
        let courses = rules
            .experiments
            .keys()
            .map(|name| (name.clone(), Course::default()));
        Looks {
            courses: courses.collect(),
            pairs: BTreeMap::new(),
            before: BTreeMap::new(),
            given_up: BTreeSet::new(),
            without_window: BTreeSet::new(),
            found: Vec::new(),
            all_found: BTreeSet::new(),
            next: None,
            has_looked: false,
            rules,
        }
    }

    pub fn take(&mut self, news: News) {
        match news {
            News::Owned(owned) => {
                self.pairs.retain(|pair, _| owned.contains_key(pair));
                for (pair, holds) in owned {
                    self.pairs.entry(pair).or_default().holds = holds;
                }
            }
            News::Reached {
                pair,
                arms,
                cells,
                until_ms,
            } => {
                let has_cells = !cells.is_empty();
                let pair = self.pairs.entry(pair).or_default();
                pair.reached(arms, cells, until_ms);
                // To add up what waits takes a walk over all of it.
                if has_cells && self.rules.bounds_waiting {
                    self.make_room();
                }
            }
            News::Resumed(pairs) => self.resume(pairs),
            News::Dropped(pair) => {
                if let Some(pair) = self.pairs.get_mut(&pair) {
                    *pair = PairUsers::default();
                }
            }
        }
    }

    /// Takes the next look, if it is due.
    pub fn look(&mut self) -> Option<Looked> {
        let number = self.next.or_else(|| self.first_number())?;
        if number >= self.n_covered()? {
            return None;
        }
        self.next = Some(number + 1);
        self.has_looked = true;
        self.before.clone_from(&self.courses);
        let as_of_ms = (number + 1) * self.rules.every_ms;
        for pair in self.pairs.values_mut() {
            pair.settle(number, &self.rules, &self.without_window);
        }
        let given_up = self.give_up(|of| of.own + of.window);
        let Looks {
            rules,
            pairs,
            courses,
            ..
        } = self;
        let looks = courses.iter_mut().filter_map(|(name, course)| {
            let look = course.look(name, rules, pairs, as_of_ms)?;
            Some((name.clone(), Arc::new(look)))
        });
        Some(Looked {
            as_of_ms,
            experiments: looks.collect(),
            given_up,
        })
    }

    /// The pair that the next look waits for: the one that is furthest behind.
    pub fn waits_for(&self) -> Option<PairId> {
        let holding = self.pairs.iter().filter(|(_, pair)| pair.holds);
        let last = holding.min_by_key(|(_, pair)| pair.until_ms);
        last.map(|(pair, _)| *pair)
    }

    /// The first cell that has anything.
    fn first_number(&self) -> Option<i64> {
        self.pairs.values().filter_map(PairUsers::first_number).min()
    }

    /// Cells below this number are complete in all pairs. None before all of them are known.
    fn n_covered(&self) -> Option<i64> {
        let holding = self.pairs.values().filter(|pair| pair.holds);
        let until_ms = holding.map(|pair| pair.until_ms).min()??;
        Some(until_ms.div_euclid(self.rules.every_ms))
    }

    /// Bytes by experiment.
    fn bytes(&self) -> BTreeMap<&str, Bytes> {
        let mut bytes = BTreeMap::new();
        for pair in self.pairs.values() {
            pair.add_bytes(&self.rules, &mut bytes);
        }
        for (name, course) in &self.courses {
            bytes.entry(name).or_default().own += course.history.bytes();
        }
        bytes
    }

    /// Gives up until what waits has room.
    fn make_room(&mut self) {
        while let Some(given_up) = self.give_up(|of| of.own + of.window + of.waiting) {
            self.find(Found::GivenUp(given_up));
        }
    }

    /// If all experiments take too much memory: gives up the window that takes most. Once there is none, the experiment that
    /// takes most: decisions rest on the rest.
    fn give_up(&mut self, counted: impl Fn(&Bytes) -> u64) -> Option<GivenUp> {
        let bytes = self.bytes();
        if bytes.values().map(&counted).sum::<u64>() <= self.rules.max_bytes {
            return None;
        }
        let (name, of) = bytes.into_iter().max_by_key(|(_, of)| (of.window, counted(of)))?;
        let name = name.to_owned();
        if of.window > 0 {
            self.give_up_window(&name);
            return Some(GivenUp::Window(name));
        }
        self.give_up_experiment(&name);
        Some(GivenUp::Experiment(name))
    }

    fn give_up_window(&mut self, experiment: &str) {
        self.without_window.insert(experiment.to_owned());
        for pair in self.pairs.values_mut() {
            pair.forget_window(experiment);
        }
    }

    fn give_up_experiment(&mut self, name: &str) {
        self.given_up.insert(name.to_owned());
        self.rules.experiments.remove(name);
        self.courses.remove(name);
        for pair in self.pairs.values_mut() {
            pair.forget(name);
        }
    }
}
