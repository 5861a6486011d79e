//! Looks at experiments, taken in order at fixed event times over everything that all pairs have settled by then.
//!
//! ```text
//! cells by user of each pair ─▶ wait ─▶ look n: all pairs cover it ─▶ sums by epoch ─▶ statistics ─▶ ExperimentLook
//!                                                    │                    kept: running maxima ◀┘        ▲
//!                                                    ╰▶ the last cells ─▶ sums over the window ─▶ intervals ╯
//! ```
//! A look is taken once every pair has settled all slots before its time. Looks are taken one after the other, also while the
//! log is replayed, so the same log yields the same looks whenever the program started. A pair that is behind delays them. The
//! module is pure: no clock, no I/O. [`Looks`] takes [`PairNews`] of pairs and returns [`Look`]. If pairs are stored, a
//! [`LookFeed`] derives the news from the current states of all pairs, whichever instance owns them, so all instances take the
//! same looks.

mod arms;
mod experiment;
mod experiment_progress;
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
pub use self::experiment::{EpochStart, Experiment};
pub use self::experiment_progress::ExperimentLook;
use self::experiment_progress::ExperimentProgress;
pub use self::feed::{FeedError, LookFeed, PairState};
pub use self::history::{Estimate, History, Point};
pub use self::inbox::{Inbox, Taken};
use self::pair::{ExperimentBytes, PairUsers};
pub use self::published::{Published, PublishedLooks};
pub use self::resume::{ResumeFinding, Resumed};
pub use self::stored::{AsOf, AsOfError, PairLooks, StoredLookPair, StoredLooks, UpTo};
pub use self::sums::{arm_totals, compared, default_primary, refused_lists};
pub use self::window::{CellWindow, max_window_bytes, row_bytes};
use crate::engine::Arm;
use crate::ledger::{Cell, PairId};
use crate::metrics::Ranking;

/// Least event time between two looks, ms. It is rounded up to whole slots.
const LOOK_MS: i64 = 600_000;

/// Returns the event time between two looks, ms: the smallest multiple of a slot that is at least ten minutes.
pub fn every_ms(slot_ms: i64) -> i64 {
    (LOOK_MS + slot_ms - 1) / slot_ms * slot_ms
}

/// A change to the pairs.
#[derive(Debug)]
pub enum PairNews {
    /// The complete set of our pairs, each with a flag that looks wait for it. Sums of all other pairs are dropped.
    Owned(BTreeMap<PairId, bool>),
    /// Progress of a pair.
    Reached {
        pair: PairId,
        /// Arms admitted since the last news, in the pair's order.
        arms: Vec<Arm>,
        /// Complete cells, by number.
        cells: Vec<(i64, Cell)>,
        /// No list before this can still settle, Unix ms.
        until_ms: Option<i64>,
    },
    /// A restart of everything from the stored states of these pairs, which are all pairs.
    Resumed(Vec<Resumed>),
    /// Loss of a pair's sums: the pair is rebuilt from scratch, or moved elsewhere.
    Dropped(PairId),
}

/// One look at all experiments.
#[derive(Debug, Clone)]
pub struct Look {
    /// Event time of the look, Unix ms: everything before it has settled.
    pub as_of_ms: i64,
    /// Results by experiment name.
    pub experiments: BTreeMap<String, Arc<ExperimentLook>>,
    /// Given up from now on, because all experiments together took too much memory.
    pub given_up: Option<GivenUp>,
}

/// A part of an experiment that is given up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GivenUp {
    /// The window of an experiment.
    Window(String),
    /// The experiment with all its statistics.
    Experiment(String),
}

/// Settings of all looks.
#[derive(Debug)]
pub struct LookRules {
    /// Event time between two looks, ms: a multiple of the slot.
    pub every_ms: i64,
    pub ranking: Ranking,
    /// Settings by experiment name.
    pub experiments: BTreeMap<String, Experiment>,
    /// True if all lists of a user come through one pair. Otherwise users cannot be counted.
    pub counts_users: bool,
    /// Window in which arms have intervals, if one of the exported windows consists of whole cells.
    pub window: Option<CellWindow>,
    /// Limit on the bytes of sums by bucket, seen users and history. Above it, windows are given up first, then experiments.
    pub max_bytes: u64,
    /// Counts waiting cells toward the limit as soon as they come. False if a [`LookFeed`] bounds them: their number depends on
    /// when it is read, and all instances must give up the same things.
    pub bounds_waiting: bool,
}

/// State between looks.
#[derive(Debug)]
pub struct Looks {
    rules: LookRules,
    pairs: BTreeMap<PairId, PairUsers>,
    courses: BTreeMap<String, ExperimentProgress>,
    /// Copy of `courses` from before the last look, for storing.
    before: BTreeMap<String, ExperimentProgress>,
    /// Experiments that were given up.
    given_up: BTreeSet<String>,
    /// Experiments whose window was given up.
    without_window: BTreeSet<String>,
    /// Findings not taken yet. `all_found` keeps every finding, so that none is reported twice.
    found: Vec<ResumeFinding>,
    all_found: BTreeSet<ResumeFinding>,
    /// Number of the next look, which is taken at the end of the cell with that number. None until there is a list.
    next: Option<i64>,
    /// True once this instance has taken the look before `next`.
    has_looked: bool,
}

impl Looks {
    pub fn new(rules: LookRules) -> Looks {
        let courses = rules
            .experiments
            .keys()
            .map(|name| (name.clone(), ExperimentProgress::default()));
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

    pub fn take(&mut self, news: PairNews) {
        match news {
            PairNews::Owned(owned) => {
                self.pairs.retain(|pair, _| owned.contains_key(pair));
                for (pair, holds) in owned {
                    self.pairs.entry(pair).or_default().holds = holds;
                }
            }
            PairNews::Reached {
                pair,
                arms,
                cells,
                until_ms,
            } => {
                let has_cells = !cells.is_empty();
                let pair = self.pairs.entry(pair).or_default();
                pair.reached(arms, cells, until_ms);
                // Summing the waiting cells walks over all of them, so it is done only if there are new ones.
                if has_cells && self.rules.bounds_waiting {
                    self.make_room();
                }
            }
            PairNews::Resumed(pairs) => self.resume(pairs),
            PairNews::Dropped(pair) => {
                if let Some(pair) = self.pairs.get_mut(&pair) {
                    *pair = PairUsers::default();
                }
            }
        }
    }

    /// Takes the next look if it is due.
    pub fn look(&mut self) -> Option<Look> {
        let number = self.next.or_else(|| self.first_number())?;
        if number >= self.n_covered()? {
            return None;
        }
        self.next = Some(number + 1);
        self.has_looked = true;
        // A restart takes this look again, so the state from before it is stored.
        self.before.clone_from(&self.courses);
        let as_of_ms = (number + 1) * self.rules.every_ms;
        for pair in self.pairs.values_mut() {
            pair.settle(number, &self.rules, &self.without_window);
        }
        // Waiting cells are left out: their number depends on timing, and all instances must give up the same.
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
        Some(Look {
            as_of_ms,
            experiments: looks.collect(),
            given_up,
        })
    }

    /// Returns the pair that delays the next look: the one that is furthest behind.
    pub fn waits_for(&self) -> Option<PairId> {
        let holding = self.pairs.iter().filter(|(_, pair)| pair.holds);
        let last = holding.min_by_key(|(_, pair)| pair.until_ms);
        last.map(|(pair, _)| *pair)
    }

    /// Returns the number of the first cell with lists.
    fn first_number(&self) -> Option<i64> {
        self.pairs.values().filter_map(PairUsers::first_number).min()
    }

    /// Returns the number below which cells are complete in all pairs. None until every pair has a frontier.
    fn n_covered(&self) -> Option<i64> {
        let holding = self.pairs.values().filter(|pair| pair.holds);
        // `None` sorts first, so a pair without a frontier holds back all looks.
        let until_ms = holding.map(|pair| pair.until_ms).min()??;
        Some(until_ms.div_euclid(self.rules.every_ms))
    }

    /// Returns the bytes that each experiment takes.
    fn bytes(&self) -> BTreeMap<&str, ExperimentBytes> {
        let mut bytes = BTreeMap::new();
        for pair in self.pairs.values() {
            pair.add_bytes(&self.rules, &mut bytes);
        }
        for (name, course) in &self.courses {
            bytes.entry(name).or_default().own += course.history.bytes();
        }
        bytes
    }

    /// Gives up windows and experiments until the waiting cells fit.
    fn make_room(&mut self) {
        while let Some(given_up) = self.give_up(|of| of.own + of.window + of.waiting) {
            self.find(ResumeFinding::GivenUp(given_up));
        }
    }

    /// Gives something up if all experiments together take too much memory: the largest window first, because decisions do not
    /// depend on windows. If there is no window left, the largest experiment.
    fn give_up(&mut self, counted: impl Fn(&ExperimentBytes) -> u64) -> Option<GivenUp> {
        let bytes = self.bytes();
        if bytes.values().map(&counted).sum::<u64>() <= self.rules.max_bytes {
            return None;
        }
        // Any window sorts above none, so experiments are compared only once no window is left.
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
