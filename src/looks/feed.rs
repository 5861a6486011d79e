//! Makes news of the states in force of all pairs, whoever owns them, so that every instance takes the same looks.
//!
//! ```text
//! states of a pair   ─ s1 ──── s2 ──── s3 ──── s4 ─▶        one chain, of which any may be missed here
//! cells in them        0 1 2   0 1 2 3 │ 2 3 4 5            those before 2 were let go when users had them
//!                      ╰ begin over ╯  ╰ 3 4 5 are new: reached
//! ```
//! There is one rule: a state that does not go on from the last one that was told here lets *all* pairs begin over, with the states in
//! force and what is stored in them as of looks. What does not go on: a pair that began anew; a frontier that fell; other arms;
//! users or metrics that count since another time; cells that were let go before they were told here. A look is a function of what
//! is in force, so whoever begins over comes to the same looks.

use std::collections::BTreeMap;
use std::fmt;

use super::stored::UpTo;
use super::{AsOf, AsOfError, News, PairLooks, Resumed};
use crate::engine::Arm;
use crate::engine::ranking::Ranking;
use crate::ledger::{Keep, Ledger, LedgerError, PairId, Parts, Users};

/// The only span of the ledgers here: the cells of users.
const USERS: usize = 0;

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
    /// [`FeedError`] if it, or another that everything is to begin over with, cannot be read. Then there are no news.
    pub fn take(&mut self, pair: PairId, state: State) -> Result<Vec<News>, FeedError> {
        let news = match self.told.get(&pair) {
            Some(told) if !told.has_more(&state, self.every_ms) => Some(Vec::new()),
            Some(_) => self.go_on(pair, &state)?,
            None => None,
        };
        self.states.insert(pair, state);
        match news {
            Some(news) => Ok(news),
            None if self.states.len() < self.n_pairs => Ok(Vec::new()),
            None => self.begin_over(),
        }
    }

    /// What is new of a pair; none where that does not go on from what was told.
    fn go_on(&mut self, pair: PairId, state: &State) -> Result<Option<Vec<News>>, FeedError> {
        let mut ledger = self.ledger(state)?;
        let since = since(&ledger, &self.keep.users);
        let let_go = match &state.looks {
            Some(looks) => UpTo::of(&looks.users).map_err(FeedError::Looks)?.cells_from,
            None => i64::MIN,
        };
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
        (told.holds, told.until_ms) = (state.holds, state.until_ms);
        let mut cells = ledger.take_complete(USERS);
        cells.retain(|(number, _)| *number >= end);
        let reached = News::Reached {
            pair,
            arms,
            cells,
            until_ms: state.until_ms,
        };
        let holds = self.told.iter().map(|(pair, told)| (*pair, told.holds));
        Ok(Some(vec![reached, News::Owned(holds.collect())]))
    }

    fn begin_over(&mut self) -> Result<Vec<News>, FeedError> {
        self.told.clear();
        let (mut told, mut resumed) = (BTreeMap::new(), Vec::new());
        for (pair, state) in &self.states {
            let mut ledger = self.ledger(state)?;
            let since = since(&ledger, &self.keep.users);
            let as_of = |looks: &PairLooks| {
                AsOf::decode(&looks.users, &looks.sequences, &self.ranking, ledger.arms().len())
            };
            let as_of = state.looks.as_ref().map(as_of).transpose();
            let as_of = as_of.map_err(FeedError::Looks)?;
            let arms = ledger.arms().to_vec();
            told.insert(
                *pair,
                Told {
                    life: state.life,
                    holds: state.holds,
                    until_ms: state.until_ms,
                    arms: arms.clone(),
                    since: since.clone(),
                },
            );
            resumed.push(Resumed {
                pair: *pair,
                life: state.life,
                holds: state.holds,
                arms,
                cells: ledger.take_complete(USERS),
                until_ms: state.until_ms,
                whole_from_ms: since.whole_from_ms,
                users_since_ms: since.users_ms,
                as_of,
            });
        }
        self.told = told;
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

    /// Whether a state has something that looks go by. Most have not: looks go by whole cells.
    fn has_more(&self, state: &State, every_ms: i64) -> bool {
        let n_covered = state.until_ms.map(|until_ms| until_ms.div_euclid(every_ms));
        let n_told = self.until_ms.map(|until_ms| until_ms.div_euclid(every_ms));
        state.life != self.life
            || state.holds != self.holds
            || n_covered != n_told
            || state.until_ms < self.until_ms
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
