//! Turns the current states of all pairs, from every instance, into [`PairNews`], so that all instances take the same looks.
//!
//! ```text
//! states of a pair   ─ s1 ──── s2 ──── s3 ──── s4 ─▶        one chain; the feed may miss any of them
//! cells in them        0 1 2   0 1 2 3 │ 2 3 4 5            cells before 2 were dropped once users had them
//!                      ╰─ restart ──╯  ╰ 3 4 5 are new: reached
//! ```
//! One rule: if a state does not continue the one fed before, *all* pairs restart from the current states and the looks stored
//! in them. A state does not continue if
//! - its pair was rebuilt from scratch,
//! - its frontier fell,
//! - its arms differ,
//! - its users or metrics count from another time,
//! - cells were dropped before they were fed.
//!
//! A look depends only on current states, so an instance that restarts computes the same looks.
//!
//! Cells wait in the stored states. If a pair is ahead of the others, only a few cells beyond the next look are fed, and more
//! are read from its latest state as looks get there. So the cells in memory are bounded, however far one pair is behind.

use std::collections::BTreeMap;
use std::fmt;

use super::stored::UpTo;
use super::{AsOf, AsOfError, PairLooks, PairNews, Resumed};
use crate::engine::Arm;
use crate::ledger::{EncodedLedger, Keep, Ledger, LedgerError, PairId, Users};
use crate::metrics::Ranking;

/// Index of the only span in these ledgers: the cells of users.
const USERS: usize = 0;

/// Most cells of a pair that are fed beyond those that all pairs have.
pub(super) const AHEAD: i64 = 6;
/// Number of cells ahead at which more are fed. It is below [`AHEAD`], so a state is decoded only for every third look.
const ENOUGH: i64 = 3;

/// A state of a pair that is or was current.
#[derive(Debug, Clone)]
pub struct PairState {
    /// Random id of the pair's incarnation. States that continue one another share it.
    pub incarnation_id: u64,
    /// True if looks wait for the pair. False only if it was read to the ends of its logs and never had a record.
    pub holds: bool,
    /// No list before this can still settle, Unix ms.
    pub until_ms: Option<i64>,
    pub ledger: EncodedLedger,
    pub looks: Option<PairLooks>,
}

/// Reason why a state cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedError {
    Ledger(LedgerError),
    Looks(AsOfError),
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeedError::Ledger(error) => write!(f, "cannot read its ledger: {error}"),
            FeedError::Looks(error) => {
                write!(f, "cannot read the stored analyses of experiments: {error}")
            }
        }
    }
}

impl std::error::Error for FeedError {}

/// Takes states and returns news. There is none until every pair has a state.
#[derive(Debug)]
pub struct LookFeed {
    ranking: Ranking,
    /// Keeps users only.
    keep: Keep,
    every_ms: i64,
    n_pairs: usize,
    /// Latest state of each pair.
    states: BTreeMap<PairId, PairState>,
    /// Progress of each pair: empty, or complete for all pairs.
    reported: BTreeMap<PairId, ReportedPair>,
}

/// Progress of one pair: the contents of the news so far.
#[derive(Debug)]
struct ReportedPair {
    incarnation_id: u64,
    holds: bool,
    until_ms: Option<i64>,
    arms: Vec<Arm>,
    since: Since,
}

/// Times from which sums and users count.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Since {
    whole_from_ms: Option<i64>,
    users_ms: BTreeMap<String, i64>,
}

impl LookFeed {
    /// Creates a feed for `n_pairs` pairs, with `every_ms` of event time between two looks, that tracks `users`.
    pub fn new(ranking: Ranking, users: Users, every_ms: i64, n_pairs: usize) -> LookFeed {
        LookFeed {
            ranking,
            keep: Keep::of_users(users, every_ms),
            every_ms,
            n_pairs,
            states: BTreeMap::new(),
            reported: BTreeMap::new(),
        }
    }

    /// Drops an experiment: later news do not contain its users.
    pub fn forget(&mut self, experiment: &str) {
        self.keep.users.forget(experiment);
        for reported in self.reported.values_mut() {
            reported.since.users_ms.remove(experiment);
        }
    }

    /// Takes a state that has become current.
    ///
    /// # Errors
    /// [`FeedError`] if this state cannot be read, or another one that is due now. Then there is no news, the state is
    /// discarded, and the next state restarts all pairs.
    pub fn take(&mut self, pair: PairId, state: PairState) -> Result<Vec<PairNews>, FeedError> {
        let before = self.states.insert(pair, state);
        let news = self.news();
        if news.is_err() {
            // Some news of this call may be lost with the error, so the recorded progress is no longer true.
            self.reported.clear();
            match before {
                Some(before) => self.states.insert(pair, before),
                None => self.states.remove(&pair),
            };
        }
        news
    }

    fn news(&mut self) -> Result<Vec<PairNews>, FeedError> {
        if self.states.len() < self.n_pairs {
            return Ok(Vec::new());
        }
        let mut news = Vec::new();
        while let Some(pair) = self.next_to_report() {
            match self.new_part(pair)? {
                Some(more) => news.extend(more),
                // A restart contains all pairs, so it replaces the news collected so far.
                None => return self.start_over(),
            }
        }
        Ok(news)
    }

    /// Returns the number below which cells are complete in all pairs that looks wait for. None until each has settled something.
    fn n_covered(&self) -> Option<i64> {
        let holding = self.states.values().filter(|state| state.holds);
        let until_ms = holding.map(|state| state.until_ms).min()??;
        Some(until_ms.div_euclid(self.every_ms))
    }

    /// Finds a pair with something to feed now.
    fn next_to_report(&self) -> Option<PairId> {
        let wanted = self.n_covered().map_or(i64::MIN, |n_covered| n_covered + ENOUGH);
        let mut pairs = self.states.iter();
        let found = pairs.find(|(pair, state)| {
            let reported = self.reported.get(pair);
            reported.is_none_or(|reported| reported.lacks(state, wanted, self.every_ms))
        });
        found.map(|(pair, _)| *pair)
    }

    /// Caps a frontier (Unix ms) at a few cells beyond those that all pairs have, but not below cell `least`.
    fn reported_until_ms(&self, until_ms: Option<i64>, least: i64) -> Option<i64> {
        let most = self.n_covered().map_or(i64::MIN, |n_covered| n_covered + AHEAD);
        let most_ms = most.max(least).saturating_mul(self.every_ms);
        until_ms.map(|until_ms| until_ms.min(most_ms))
    }

    /// Returns the new part of a pair. None if its state does not continue the one fed before, or none was fed yet.
    fn new_part(&mut self, pair: PairId) -> Result<Option<Vec<PairNews>>, FeedError> {
        let Some(state) = self.states.get(&pair) else {
            return Ok(None);
        };
        let mut ledger = self.ledger(state)?;
        let since = since(&ledger, &self.keep.users);
        let let_go = match &state.looks {
            Some(looks) => UpTo::of(&looks.users).map_err(FeedError::Looks)?.cells_from,
            None => i64::MIN,
        };
        let until_ms = self.reported_until_ms(state.until_ms, i64::MIN);
        let Some(reported) = self.reported.get_mut(&pair) else {
            return Ok(None);
        };
        // New cells start here. Read it before the progress is updated below.
        let end = reported.end(self.every_ms);
        let continues = state.incarnation_id == reported.incarnation_id
            && state.until_ms >= reported.until_ms
            && ledger.arms().starts_with(&reported.arms)
            && since == reported.since
            && let_go <= end;
        if !continues {
            return Ok(None);
        }
        let arms = ledger.arms()[reported.arms.len()..].to_vec();
        reported.arms.extend_from_slice(&arms);
        // The cap falls if looks start to wait for a pair that is behind, but cells that were fed stay fed.
        (reported.holds, reported.until_ms) = (state.holds, reported.until_ms.max(until_ms));
        // The state may still contain cells that were fed before, and cells beyond the cap.
        let new = end..reported.end(self.every_ms);
        let mut cells = ledger.take_complete(USERS);
        cells.retain(|(number, _)| new.contains(number));
        let reached = PairNews::Reached {
            pair,
            arms,
            cells,
            until_ms: reported.until_ms,
        };
        let holds = self
            .reported
            .iter()
            .map(|(pair, reported)| (*pair, reported.holds));
        Ok(Some(vec![reached, PairNews::Owned(holds.collect())]))
    }

    fn start_over(&mut self) -> Result<Vec<PairNews>, FeedError> {
        let (mut all_reported, mut resumed) = (BTreeMap::new(), Vec::new());
        for (pair, state) in &self.states {
            let mut ledger = self.ledger(state)?;
            let since = since(&ledger, &self.keep.users);
            let as_of = |looks: &PairLooks| {
                AsOf::decode(&looks.users, &looks.sequences, &self.ranking, ledger.arms().len())
            };
            let as_of = state.looks.as_ref().map(as_of).transpose();
            let as_of = as_of.map_err(FeedError::Looks)?;
            // The stored users already contain the cells before this one. They are fed for windows only, and never again as new.
            let stored = as_of.as_ref().map_or(i64::MIN, |as_of| as_of.users.up_to.end);
            let reported = ReportedPair {
                incarnation_id: state.incarnation_id,
                holds: state.holds,
                until_ms: self.reported_until_ms(state.until_ms, stored),
                arms: ledger.arms().to_vec(),
                since: since.clone(),
            };
            let mut cells = ledger.take_complete(USERS);
            cells.retain(|(number, _)| *number < reported.end(self.every_ms));
            resumed.push(Resumed {
                pair: *pair,
                incarnation_id: state.incarnation_id,
                holds: state.holds,
                arms: reported.arms.clone(),
                cells,
                until_ms: reported.until_ms,
                whole_from_ms: since.whole_from_ms,
                users_since_ms: since.users_ms,
                as_of,
            });
            all_reported.insert(*pair, reported);
        }
        self.reported = all_reported;
        Ok(vec![PairNews::Resumed(resumed)])
    }

    fn ledger(&self, state: &PairState) -> Result<Ledger, FeedError> {
        Ledger::decode(&state.ledger, &self.ranking, &self.keep).map_err(FeedError::Ledger)
    }
}

impl ReportedPair {
    /// Returns the number below which cells were fed.
    fn end(&self, every_ms: i64) -> i64 {
        self.until_ms
            .map_or(i64::MIN, |until_ms| until_ms.div_euclid(every_ms))
    }

    /// Reports whether a state has something to feed now, if cells below `wanted` are due. Usually it has not, because looks need
    /// whole cells.
    fn lacks(&self, state: &PairState, wanted: i64, every_ms: i64) -> bool {
        let has = state
            .until_ms
            .map_or(i64::MIN, |until_ms| until_ms.div_euclid(every_ms));
        state.incarnation_id != self.incarnation_id
            || state.holds != self.holds
            || state.until_ms < self.until_ms
            || (state.until_ms.is_some() && self.until_ms.is_none())
            || self.end(every_ms) < has.min(wanted)
    }
}

fn since(ledger: &Ledger, users: &Users) -> Since {
    let experiments = match users {
        Users::Of(experiments) => experiments.keys().cloned().collect(),
        Users::Nobody | Users::Everybody(_) => Vec::new(),
    };
    let users_ms = experiments.into_iter().filter_map(|name| {
        let since_ms = ledger.users_since_ms(&name)?;
        Some((name, since_ms))
    });
    Since {
        users_ms: users_ms.collect(),
        whole_from_ms: ledger.columns_since_ms(),
    }
}
