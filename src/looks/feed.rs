//! Makes news of the states in force of all pairs, whoever owns them, so that every instance takes the same looks.
//!
//! ```text
//! states of a pair   ─ s1 ──── s2 ──── s3 ──── s4 ─▶        one chain, of which any may be missed here
//! cells in them        0 1 2   0 1 2 3 │ 2 3 4 5            those before 2 were let go when users had them
//!                      ╰ begin over ╯  ╰ 3 4 5 are new: reached
//! ```
//! There is one rule: a state that does not go on from what was told here lets *all* pairs begin over, with the states in force and what
//! is stored in them as of looks. What does not go on: a pair that began anew; a frontier that fell; other arms; users or metrics that
//! count since another time; cells that were let go before they were told here. A look is a function of what is in force, so whoever
//! begins over comes to the same looks.
//!
//! Cells wait where they are stored. Of a pair that is ahead of the others only a few more cells are told than looks can be taken of, and
//! more of them from its last state when looks come near: so the cells that wait in memory are bounded, however long a pair is behind.

use std::collections::BTreeMap;
use std::fmt;

use super::stored::UpTo;
use super::{AsOf, AsOfError, News, PairLooks, Resumed};
use crate::engine::Arm;
use crate::engine::ranking::Ranking;
use crate::ledger::{Keep, Ledger, LedgerError, PairId, Parts, Users};

/// The only span of the ledgers here: the cells of users.
const USERS: usize = 0;

/// Of a pair so many cells are told at most beyond those that all pairs have.
pub(super) const AHEAD: i64 = 6;
/// More are told once it has no more than these: so a state is read again for every third look only.
const ENOUGH: i64 = 3;

/// A state of a pair that was in force.
#[derive(Debug, Clone)]
pub struct State {
    /// Tells the pair apart from one that begins anew: all states that go on from one another have the same.
    pub life: u64,
    /// Whether looks wait for it: for each but one that has reached the ends of its logs and never had a record.
    pub holds: bool,
    /// No list before this can still settle, epoch ms.
    pub until_ms: Option<i64>,
    pub ledger: Parts,
    pub looks: Option<PairLooks>,
}

/// Why a state cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedError {
    Ledger(LedgerError),
    Looks(AsOfError),
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeedError::Ledger(error) => write!(f, "its ledger cannot be read: {error}"),
            FeedError::Looks(error) => {
                write!(f, "what is kept for looks at experiments cannot be read: {error}")
            }
        }
    }
}

impl std::error::Error for FeedError {}

/// Takes states, gives news. Until all pairs have a state there are none.
#[derive(Debug)]
pub struct Feed {
    ranking: Ranking,
    /// Of users alone.
    keep: Keep,
    every_ms: i64,
    n_pairs: usize,
    /// The last of each pair.
    states: BTreeMap<PairId, State>,
    /// Nothing, or all pairs.
    told: BTreeMap<PairId, Told>,
}

/// What was told of a pair.
#[derive(Debug)]
struct Told {
    life: u64,
    holds: bool,
    until_ms: Option<i64>,
    arms: Vec<Arm>,
    since: Since,
}

/// Since when sums and users count.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Since {
    whole_from_ms: Option<i64>,
    users_ms: BTreeMap<String, i64>,
}

impl Feed {
    /// For so many pairs, with so much event time between two looks, ms. The users of these experiments are told apart.
    pub fn new(ranking: Ranking, users: Users, every_ms: i64, n_pairs: usize) -> Feed {
        Feed {
            ranking,
            keep: Keep::of_users(users, every_ms),
            every_ms,
            n_pairs,
            states: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    /// Nothing more is said of an experiment.
    pub fn forget(&mut self, experiment: &str) {
        self.keep.users.forget(experiment);
        for told in self.told.values_mut() {
            told.since.users_ms.remove(experiment);
        }
    }

    /// Takes a state that is in force now.
    ///
    /// # Errors
    /// [`FeedError`] if it, or another that is to be told now, cannot be read. Then there are no news, the state is as if it had not come,
    /// and with the next one everything begins over.
    pub fn take(&mut self, pair: PairId, state: State) -> Result<Vec<News>, FeedError> {
        let before = self.states.insert(pair, state);
        let news = self.news();
        if news.is_err() {
            self.told.clear();
            match before {
                Some(before) => self.states.insert(pair, before),
                None => self.states.remove(&pair),
            };
        }
        news
    }

    fn news(&mut self) -> Result<Vec<News>, FeedError> {
        if self.states.len() < self.n_pairs {
            return Ok(Vec::new());
        }
        let mut news = Vec::new();
        while let Some(pair) = self.next_to_tell() {
            match self.go_on(pair)? {
                Some(more) => news.extend(more),
                None => return self.begin_over(),
            }
        }
        Ok(news)
    }

    /// Cells below this number are complete in all pairs that looks wait for. None before all of these have settled something.
    fn n_covered(&self) -> Option<i64> {
        let holding = self.states.values().filter(|state| state.holds);
        let until_ms = holding.map(|state| state.until_ms).min()??;
        Some(until_ms.div_euclid(self.every_ms))
    }

    /// A pair of which something is to be told now.
    fn next_to_tell(&self) -> Option<PairId> {
        let wanted = self.n_covered().map_or(i64::MIN, |n_covered| n_covered + ENOUGH);
        let mut pairs = self.states.iter();
        let found = pairs.find(|(pair, state)| {
            let told = self.told.get(pair);
            told.is_none_or(|told| told.lacks(state, wanted, self.every_ms))
        });
        found.map(|(pair, _)| *pair)
    }

    /// How far a pair is told that has settled until then (epoch ms), as far as this cell at least: to a few cells beyond those of all.
    fn told_until_ms(&self, until_ms: Option<i64>, least: i64) -> Option<i64> {
        let most = self.n_covered().map_or(i64::MIN, |n_covered| n_covered + AHEAD);
        let most_ms = most.max(least).saturating_mul(self.every_ms);
        until_ms.map(|until_ms| until_ms.min(most_ms))
    }

    /// What is new of a pair; none where that does not go on from what was told, or nothing was.
    fn go_on(&mut self, pair: PairId) -> Result<Option<Vec<News>>, FeedError> {
        let Some(state) = self.states.get(&pair) else {
            return Ok(None);
        };
        let mut ledger = self.ledger(state)?;
        let since = since(&ledger, &self.keep.users);
        let let_go = match &state.looks {
            Some(looks) => UpTo::of(&looks.users).map_err(FeedError::Looks)?.cells_from,
            None => i64::MIN,
        };
        let until_ms = self.told_until_ms(state.until_ms, i64::MIN);
        let Some(told) = self.told.get_mut(&pair) else {
            return Ok(None);
        };
        let end = told.end(self.every_ms);
        let goes_on = state.life == told.life
            && state.until_ms >= told.until_ms
            && ledger.arms().starts_with(&told.arms)
            && since == told.since
            && let_go <= end;
        if !goes_on {
            return Ok(None);
        }
        let arms = ledger.arms()[told.arms.len()..].to_vec();
        told.arms.extend_from_slice(&arms);
        (told.holds, told.until_ms) = (state.holds, told.until_ms.max(until_ms));
        let new = end..told.end(self.every_ms);
        let mut cells = ledger.take_complete(USERS);
        cells.retain(|(number, _)| new.contains(number));
        let reached = News::Reached {
            pair,
            arms,
            cells,
            until_ms: told.until_ms,
        };
        let holds = self.told.iter().map(|(pair, told)| (*pair, told.holds));
        Ok(Some(vec![reached, News::Owned(holds.collect())]))
    }

    fn begin_over(&mut self) -> Result<Vec<News>, FeedError> {
        let (mut all_told, mut resumed) = (BTreeMap::new(), Vec::new());
        for (pair, state) in &self.states {
            let mut ledger = self.ledger(state)?;
            let since = since(&ledger, &self.keep.users);
            let as_of = |looks: &PairLooks| {
                AsOf::decode(&looks.users, &looks.sequences, &self.ranking, ledger.arms().len())
            };
            let as_of = state.looks.as_ref().map(as_of).transpose();
            let as_of = as_of.map_err(FeedError::Looks)?;
            // Its users have the cells before, which are told for windows alone: they must not be told again as new ones.
            let stored = as_of.as_ref().map_or(i64::MIN, |as_of| as_of.users.up_to.end);
            let told = Told {
                life: state.life,
                holds: state.holds,
                until_ms: self.told_until_ms(state.until_ms, stored),
                arms: ledger.arms().to_vec(),
                since: since.clone(),
            };
            let mut cells = ledger.take_complete(USERS);
            cells.retain(|(number, _)| *number < told.end(self.every_ms));
            resumed.push(Resumed {
                pair: *pair,
                life: state.life,
                holds: state.holds,
                arms: told.arms.clone(),
                cells,
                until_ms: told.until_ms,
                whole_from_ms: since.whole_from_ms,
                users_since_ms: since.users_ms,
                as_of,
            });
            all_told.insert(*pair, told);
        }
        self.told = all_told;
        Ok(vec![News::Resumed(resumed)])
    }

    fn ledger(&self, state: &State) -> Result<Ledger, FeedError> {
        Ledger::decode(&state.ledger, &self.ranking, &self.keep).map_err(FeedError::Ledger)
    }
}

impl Told {
    /// Cells below this number were told.
    fn end(&self, every_ms: i64) -> i64 {
        self.until_ms
            .map_or(i64::MIN, |until_ms| until_ms.div_euclid(every_ms))
    }

    /// Whether there is something in a state that is to be told now, where the cells below `wanted` are. Mostly there is not: looks go by
    /// whole cells.
    fn lacks(&self, state: &State, wanted: i64, every_ms: i64) -> bool {
        let has = state
            .until_ms
            .map_or(i64::MIN, |until_ms| until_ms.div_euclid(every_ms));
        state.life != self.life
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
