//! The end of a schedule, when all faults stop and the pair must become quiescent.

use super::World;
use super::faults::Faults;
use crate::state::instance::{LEASE_MS, Life};
use crate::state::judge::Verdict;
use crate::state::pair::{Account, Pair, recount};

/// Number of rounds of half a second in which the pair must become quiescent.
const N_ROUNDS: usize = 240;
/// Maximum number of claims. More of them mean that instances fight over the pair.
const MAX_CLAIMS: usize = 3;

impl World {
    /// Stops all faults, lands all appends in flight, resumes all instances, and checks that the pair becomes quiescent.
    pub(super) fn peace(&mut self) -> Verdict {
        self.tell(|_| "peace".to_owned());
        self.faults = Faults::none();
        while !self.flights.is_empty() {
            self.land_some()?;
        }
        self.wake_all();
        self.n_claims = 0;
        let mut unrest = String::new();
        for _ in 0..N_ROUNDS {
            self.now_ms += 500;
            self.round()?;
            self.look()?;
            match self.rest() {
                Ok(()) => return self.is_restored_alone(),
                Err(why) => unrest = why,
            }
        }
        Err(format!("I11: no rest: {unrest}"))
    }

    pub(super) fn wake_all(&mut self) {
        for who in 0..self.instances.len() {
            match self.instances[who].life {
                Life::Dead => self.instances[who].notices.clear(),
                _ => self.instances[who].life = Life::Runs,
            }
            self.instances[who].is_deaf = false;
        }
        let is_alive = |who: &usize| self.instances[*who].life == Life::Runs;
        // A pair without a living owner would never become quiescent, so the group assigns it to a living instance.
        if self.assigned.is_none_or(|who| !is_alive(&who)) {
            let alive = (0..self.instances.len()).find(is_alive);
            let who = alive.unwrap_or_else(|| {
                self.instances[0] = self.new_instance();
                0
            });
            self.assign(who);
        }
    }

    /// Lets every instance do all pending work.
    pub(super) fn round(&mut self) -> Verdict {
        for who in 0..self.instances.len() {
            if self.instances[who].life == Life::Dead {
                continue;
            }
            while !self.instances[who].notices.is_empty() {
                self.notice(who)?;
            }
            self.go_round(who, usize::MAX)?;
        }
        while self.watcher.read < self.log.end() {
            self.watch()?;
        }
        self.watcher.asked = None;
        self.watch()
    }

    pub(super) fn rest(&self) -> Verdict {
        let content = self.judge.at_rest(&self.inputs)?;
        let who = self.assigned.expect("it was assigned");
        if self.instances[who].shown(self.now_ms).settled != Some(content) {
            return Err("the owner does not show it".to_owned());
        }
        let asked_ms = self.watcher.onlooker.asked_ms();
        let is_young = asked_ms.is_some_and(|asked_ms| self.now_ms - asked_ms <= LEASE_MS);
        if self.watcher.shown != Some(content) || !self.watcher.onlooker.is_known() || !is_young {
            return Err("an onlooker does not show it".to_owned());
        }
        Ok(())
    }

    /// I1: checks that the seal in force is enough to restore everything.
    pub(super) fn is_restored_alone(&self) -> Verdict {
        if self.n_claims > MAX_CLAIMS {
            return Err(format!("peace: {} claims", self.n_claims));
        }
        let Some((seal, roles)) = self.judge.last() else {
            return Err("I1: there is no state".to_owned());
        };
        let sealed = Account::decode(&seal.header, &roles);
        let mut pair = Pair::restore(&seal.header, &roles);
        pair.read(&self.inputs, usize::MAX)?;
        let expected = recount(&self.inputs, sealed.begin, self.inputs.len(), &sealed.moves);
        match pair.account() == expected {
            true => Ok(()),
            false => Err("I1: what is restored is not what was counted".to_owned()),
        }
    }
}
