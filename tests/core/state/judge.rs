//! An omniscient checker of the invariants: it sees the log, every append, and everything shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use abgauge_core::journal::{BlobId, RecordKey, Role, Seal, SealId, Session, SharedBytes, ShownState};

use crate::state::log::Record;
use crate::state::pair::{Account, Pair, recount};

pub type Verdict = Result<(), String>;

/// A state that has been in force.
struct Link {
    content: u128,
    since_ms: i64,
    account: Account,
}

/// Time since which an instance has shown a view without a break, as far as an observer can see.
#[derive(Default)]
struct Showing {
    live_ms: Option<i64>,
    settled_ms: Option<i64>,
    /// Time since which it has shown the live view under its latest claim.
    by_claim: Option<(Session, i64)>,
    /// Set while the process is stopped. It shows nothing then, but may resume in the same state.
    is_stopped: bool,
}

#[derive(Default)]
pub struct Judge {
    lease_ms: i64,
    claims: BTreeSet<Session>,
    seals: BTreeMap<SealId, Arc<Seal>>,
    blobs: BTreeMap<BlobId, SharedBytes>,
    /// Values of all appends by key.
    sent: BTreeMap<RecordKey, SharedBytes>,
    chain: Vec<Link>,
    /// Position in the chain by seal, for seals that have been in force.
    places: BTreeMap<SealId, usize>,
    /// Views shown, by incarnation.
    showing: BTreeMap<u64, Showing>,
}

impl Judge {
    pub fn new(lease_ms: i64) -> Judge {
        Judge {
            lease_ms,
            ..Judge::default()
        }
    }

    /// I3: checks that a key never has two values.
    pub fn sent(&mut self, key: RecordKey, value: &SharedBytes) -> Verdict {
        let known = self.sent.entry(key).or_insert_with(|| Arc::clone(value));
        if known != value {
            return Err(format!("I3: {key:?} has two contents"));
        }
        Ok(())
    }

    pub fn landed(&mut self, record: &Record, inputs: &[i64], now_ms: i64) -> Verdict {
        match (&record.value, record.key) {
            (None, RecordKey::Claim(session)) => drop(self.claims.remove(&session)),
            (None, RecordKey::Seal(id)) => drop(self.seals.remove(&id)),
            (None, RecordKey::Blob(id)) => drop(self.blobs.remove(&id)),
            (Some(_), RecordKey::Claim(session)) => drop(self.claims.insert(session)),
            (Some(value), RecordKey::Seal(id)) => {
                let seal = Seal::decode(value).map_err(|error| format!("{id:?}: {error}"))?;
                self.seals.insert(id, Arc::new(seal));
            }
            (Some(value), RecordKey::Blob(id)) => drop(self.blobs.insert(id, Arc::clone(value))),
        }
        let Some((id, seal)) = self.seals.last_key_value() else {
            return self.nothing_is_lost();
        };
        let (id, seal) = (*id, Arc::clone(seal));
        self.whole(id, &seal)?;
        if self.claims.last() <= Some(&id.session) {
            self.current(id, &seal, inputs, now_ms)?;
        }
        Ok(())
    }

    fn nothing_is_lost(&self) -> Verdict {
        match self.chain.is_empty() {
            true => Ok(()),
            false => Err("I10: there is no seal any more".to_owned()),
        }
    }

    /// I10: checks that all blobs of the highest seal exist.
    fn whole(&self, id: SealId, seal: &Seal) -> Verdict {
        let mut entries = seal.entries();
        match entries.find(|entry| !self.blobs.contains_key(&entry.blob)) {
            Some(entry) => Err(format!("I10: {:?} of {id:?} is not there", entry.blob)),
            None => Ok(()),
        }
    }

    /// I1, I2, I4: checks that a seal continues the chain and equals a recount.
    fn current(&mut self, id: SealId, seal: &Seal, inputs: &[i64], now_ms: i64) -> Verdict {
        if self.places.contains_key(&id) {
            return Ok(());
        }
        if self.chain.last().is_none_or(|last| last.content != seal.content) {
            let roles = self.roles(seal).ok_or("I10: a role is not there")?;
            let account = Account::decode(&seal.header, &roles);
            let Account {
                begin,
                position,
                moves,
                ..
            } = &account;
            if account != recount(inputs, *begin, *position, moves) {
                return Err(format!("I4: a recount does not give {account:?}"));
            }
            let mut restored = Pair::restore(&seal.header, &roles);
            restored.read(&inputs[..*position], usize::MAX)?;
            if restored.account() != account {
                return Err(format!("I1: what is restored is not {account:?}"));
            }
            if let Some(last) = self.chain.last()
                && !continues(&last.account, &account)
            {
                return Err(format!("I2: {:?} is followed by {account:?}", last.account));
            }
            self.chain.push(Link {
                content: seal.content,
                since_ms: now_ms,
                account,
            });
        }
        self.places.insert(id, self.chain.len() - 1);
        Ok(())
    }

    fn roles(&self, seal: &Seal) -> Option<BTreeMap<Role, SharedBytes>> {
        let roles = seal.table.iter();
        let roles = roles.map(|(role, entries)| {
            let parts = entries.iter().map(|entry| self.blobs.get(&entry.blob));
            let parts: Vec<&SharedBytes> = parts.collect::<Option<_>>()?;
            let bytes = parts.into_iter().flat_map(|part| part.iter().copied());
            Some((role.clone(), bytes.collect()))
        });
        roles.collect()
    }

    /// Returns a seal's position in the chain, if it was ever in force.
    pub fn place(&self, id: SealId) -> Option<usize> {
        self.places.get(&id).copied()
    }

    /// I5, I8: checks what a scrape of an instance would show. `seen` is the latest state by another instance that it has
    /// read in force.
    pub fn shown(
        &mut self,
        who: u64,
        session: Option<Session>,
        shown: ShownState,
        seen: Option<usize>,
        now_ms: i64,
    ) -> Verdict {
        if let Some(content) = shown.settled {
            let place = self.place_of(content)?;
            self.is_young(place, now_ms)?;
            if Some(place) < seen {
                return Err(format!("I8: {place} is shown after {seen:?} was read"));
            }
        }
        let showing = self.showing.entry(who).or_default();
        prolong(&mut showing.live_ms, shown.live, now_ms);
        prolong(&mut showing.settled_ms, shown.settled.is_some(), now_ms);
        showing.is_stopped = false;
        let claim = session.filter(|_| shown.live).map(|session| (session, now_ms));
        if claim.map(|(session, _)| session) != showing.by_claim.map(|(session, _)| session) {
            showing.by_claim = claim;
        }
        Ok(())
    }

    /// I5: returns the position in the chain of the shown state.
    pub fn place_of(&self, content: u128) -> Result<usize, String> {
        let place = self.chain.iter().rposition(|link| link.content == content);
        place.ok_or_else(|| "I5: what is shown was never in force".to_owned())
    }

    /// I8: checks that the successor of a shown state came into force within the last lease.
    fn is_young(&self, place: usize, now_ms: i64) -> Verdict {
        let next = self.chain.get(place + 1);
        match next.is_some_and(|next| now_ms - next.since_ms > self.lease_ms) {
            true => Err("I8: what is shown was followed more than a lease ago".to_owned()),
            false => Ok(()),
        }
    }

    /// I7: checks that two instances show the same pair for at most one lease.
    pub fn one_lease(&self, now_ms: i64) -> Verdict {
        for (view, since_ms) in [
            ("live", (|showing| showing.live_ms) as fn(&Showing) -> Option<i64>),
            ("settled", |showing| showing.settled_ms),
        ] {
            let seen = self.showing.values().filter(|showing| !showing.is_stopped);
            let mut since: Vec<i64> = seen.filter_map(since_ms).collect();
            since.sort_unstable();
            // Two instances have shown the view since the second of the sorted times.
            if since
                .get(1)
                .is_some_and(|both_ms| now_ms - both_ms > self.lease_ms)
            {
                return Err(format!("I7: two show the {view} view for more than a lease"));
            }
        }
        self.nothing_after_the_lease(now_ms)
    }

    /// I7: checks that no instance with a lower claim shows the pair again after that lease.
    fn nothing_after_the_lease(&self, now_ms: i64) -> Verdict {
        let seen = self.showing.values().filter(|showing| !showing.is_stopped);
        let claims: Vec<(Session, i64)> = seen.filter_map(|showing| showing.by_claim).collect();
        let is_old = |(_, since_ms): &&(Session, i64)| now_ms - since_ms > self.lease_ms;
        let newest = claims.iter().filter(is_old).max();
        match newest.is_some_and(|newest| claims.iter().any(|(session, _)| *session < newest.0)) {
            true => Err("I7: the live view is shown more than a lease after another began to".to_owned()),
            false => Ok(()),
        }
    }

    pub fn stopped(&mut self, who: u64) {
        self.showing.entry(who).or_default().is_stopped = true;
    }

    pub fn ended(&mut self, who: u64) {
        self.showing.remove(&who);
    }

    /// I11: checks that at rest there is one claim and one seal with its blobs, and that its state equals a recount.
    pub fn at_rest(&self, inputs: &[i64]) -> Result<u128, String> {
        let Some((_, seal)) = self.seals.last_key_value() else {
            return Err("there is no seal".to_owned());
        };
        let named: BTreeSet<BlobId> = seal.entries().map(|entry| entry.blob).collect();
        let is_alone = self.seals.len() == 1 && self.blobs.keys().copied().eq(named);
        let claim = self.claims.last() == self.seals.keys().next().map(|id| &id.session);
        if !is_alone || !claim || self.claims.len() > 1 {
            return Err(format!(
                "there are claims {:?}, seals {:?}, blobs {:?}",
                self.claims,
                self.seals.keys(),
                self.blobs.keys()
            ));
        }
        match self.chain.last() {
            Some(last) if last.account.position == inputs.len() => Ok(last.content),
            _ => Err("not all is sealed".to_owned()),
        }
    }

    /// Returns the number of states that have been in force.
    pub fn n_states(&self) -> usize {
        self.chain.len()
    }

    /// Returns the state in force at rest.
    pub fn last(&self) -> Option<(Arc<Seal>, BTreeMap<Role, SharedBytes>)> {
        let seal = self.seals.values().next_back()?;
        Some((Arc::clone(seal), self.roles(seal)?))
    }
}

fn prolong(since_ms: &mut Option<i64>, is_shown: bool, now_ms: i64) {
    *since_ms = is_shown.then(|| since_ms.unwrap_or(now_ms));
}

/// I2: checks that begin is unchanged, that frontier, position and totals do not decrease, and that earlier idle moves are
/// kept.
fn continues(before: &Account, after: &Account) -> bool {
    let n_moves = before.moves.len();
    let new_moves = after.moves.get(n_moves..).unwrap_or_default();
    after.begin == before.begin
        && after.frontier >= before.frontier
        && after.position >= before.position
        && after.total.n >= before.total.n
        && after.moves.get(..n_moves) == Some(&before.moves[..])
        && new_moves.iter().all(|(position, _)| *position >= before.position)
}
