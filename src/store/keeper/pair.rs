//! The keeper's side of one pair: its owner, the numbers of its states, and its deadlines.

use std::collections::VecDeque;

use abgauge_core::journal::{LogProgress, Owner, OwnerStatus, State, Urgency};

use super::KeeperSettings;
use super::Memory;
use super::handle::{Offer, Offered};
use super::pace::WritePace;
use super::status_board::{PairStatus, Restored};

pub(super) struct KeptPair {
    pub owner: Owner,
    /// Memory that the worker was ordered to have.
    pub incarnation: Option<Memory>,
    /// Contents of the offered states, starting with the one that is shown.
    offers: VecDeque<(u128, Offer)>,
    /// The content of the state that was last found in force.
    shown: Option<u128>,
    pub leaving: Option<LeavingPair>,
    /// Time at which the next state is due.
    due_ms: i64,
    n_commits: u64,
    /// Bytes of keys and values read before its stored state was looked for.
    n_bytes_before: u64,
    /// Bytes of the state from which memory was restored since then.
    n_bytes_live: Option<u64>,
    pub status: PairStatus,
}

/// Progress of a pair that is about to be given back.
pub(super) struct LeavingPair {
    pub until_ms: i64,
    /// Last state, not handed over yet.
    pub last: Option<State>,
    pub content: Option<u128>,
}

impl KeptPair {
    /// Creates a pair. The first `n_bytes_before` bytes do not count as read to restore it.
    pub fn new(owner: Owner, n_bytes_before: u64) -> KeptPair {
        let progress = LogProgress {
            n_bytes: n_bytes_before,
            ..LogProgress::default()
        };
        KeptPair {
            owner,
            incarnation: None,
            offers: VecDeque::new(),
            shown: None,
            leaving: None,
            due_ms: i64::MIN,
            n_commits: 0,
            n_bytes_before: 0,
            n_bytes_live: None,
            status: PairStatus {
                progress,
                ..PairStatus::default()
            },
        }
    }

    /// Handles an assignment: the stored state must be found.
    pub fn assigned(&mut self, now_ms: i64) {
        (self.leaving, self.status.refusal) = (None, None);
        (self.status.assigned_ms, self.status.restored) = (Some(now_ms), None);
        (self.n_bytes_before, self.n_bytes_live) = (self.status.progress.n_bytes, None);
    }

    /// Returns whether the owner needs ends: while it waits for one, and to renew its lease.
    pub fn needs_ends(&self) -> bool {
        matches!(
            self.owner.standing(),
            OwnerStatus::Reading | OwnerStatus::Claiming | OwnerStatus::Holding
        )
    }

    /// Returns whether the owner waits for something, so that the loop should poll soon.
    pub fn is_busy(&self) -> bool {
        self.leaving.is_some() || self.owner.awaits_end()
    }

    /// Returns the state, if it belongs to the present memory and can be sealed now.
    pub fn state(&mut self, offered: Offered, settings: &KeeperSettings, now_ms: i64) -> Option<State> {
        // While the pair is leaving, only its last state is sealed.
        if self.leaving.is_some() || self.owner.wants() == Urgency::No {
            return None;
        }
        let state = self.remember(offered)?;
        // Counted from now and not from the last deadline, so that a late state is not followed by a burst.
        self.due_ms = now_ms + settings.interval_ms;
        Some(state)
    }

    pub fn leave(&mut self, last: Option<Offered>, settings: &KeeperSettings, now_ms: i64) {
        let last = last.and_then(|offered| self.remember(offered));
        self.leaving = Some(LeavingPair {
            until_ms: now_ms + settings.leave_ms,
            content: last.as_ref().map(|state| state.content),
            last,
        });
    }

    /// Returns whether the pair can be given back now.
    pub fn has_left(&self, now_ms: i64) -> bool {
        self.leaving.as_ref().is_some_and(|leaving| {
            // The last state need not be in force if nothing can bring it into force any more.
            let is_current = leaving.content.is_none() || leaving.content == self.shown;
            let is_idle = leaving.last.is_none() && !self.owner.awaits_end();
            let holds = self.owner.standing() == OwnerStatus::Holding;
            now_ms >= leaving.until_ms || !holds || is_current || is_idle
        })
    }

    fn remember(&mut self, offered: Offered) -> Option<State> {
        // The state is from a memory that was dropped since. Sealing it would undo the restored one.
        if self.incarnation != Some(offered.incarnation) {
            return None;
        }
        let state = State::new(offered.header, offered.roles);
        // Drop an equal state: nothing has settled between the two.
        let is_same = |(content, _): &(u128, Offer)| *content == state.content;
        if self.offers.back().is_some_and(is_same) {
            self.offers.pop_back();
        }
        self.offers.push_back((state.content, offered.offer));
        Some(state)
    }

    /// Notes that memory is made again or is gone, so states offered from the former one must not be sealed any more.
    pub fn forget(&mut self, incarnation: Option<Memory>) {
        self.incarnation = incarnation;
        self.offers.clear();
        if let Some(leaving) = &mut self.leaving {
            (leaving.last, leaving.content) = (None, None);
        }
    }

    /// Notes the state from which memory is restored.
    pub fn restored(&mut self, content: u128, offer: Offer, n_bytes: u64) {
        self.offers.push_back((content, offer));
        self.n_bytes_live = Some(n_bytes);
    }

    /// Notes that this content is current. Returns its offer if it belongs to the present memory.
    pub fn show(&mut self, content: u128, now_ms: i64) -> Option<Offer> {
        if self.shown.replace(content) != Some(content) {
            self.status.n_sealed += 1;
            self.status.sealed_ms = Some(now_ms);
        }
        // The latest offer with this content releases the most.
        let place = self.offers.iter().rposition(|(known, _)| *known == content)?;
        // Earlier offers are part of this one.
        self.offers.drain(..place);
        self.offers.front().map(|(_, offer)| *offer)
    }

    pub fn superseded(&mut self, number: u64) {
        if self.n_commits != number {
            self.n_commits = number;
            self.status.n_superseded += 1;
        }
    }

    pub fn wants(&self, pace: &WritePace, now_ms: i64) -> Urgency {
        if self.leaving.is_some() || self.incarnation.is_none() {
            return Urgency::No;
        }
        match self.owner.wants() {
            // The bound delays regular states only, not the ones that replace a seal in doubt.
            Urgency::WhenDue if !pace.is_free(now_ms) => Urgency::No,
            Urgency::WhenDue if now_ms >= self.due_ms => Urgency::AtOnce,
            wanted => wanted,
        }
    }

    pub fn note(&mut self, progress: LogProgress, now_ms: i64) {
        let standing = self.owner.standing();
        if standing != self.status.standing {
            (self.status.standing, self.status.since_ms) = (standing, now_ms);
        }
        self.status.progress = progress;
        self.status.trouble = self.owner.trouble().map(|trouble| trouble.to_string());
        self.status.malformed_key = self.owner.view().malformed_key().map(str::to_owned);
        let n_lost = self.owner.n_lost();
        if n_lost != self.status.n_lost {
            (self.status.n_lost, self.status.lost_ms) = (n_lost, Some(now_ms));
        }
        // Holding the pair for the first time since the assignment means that its stored state was found.
        if let (OwnerStatus::Holding, Some(assigned_ms), None) =
            (standing, self.status.assigned_ms, self.status.restored)
        {
            self.status.restored = Some(Restored {
                took_ms: now_ms - assigned_ms,
                n_bytes_read: progress.n_bytes - self.n_bytes_before,
                n_bytes_live: self.n_bytes_live,
            });
        }
    }
}
