//! Sequences of events that chance alone produces too rarely.

use abgauge_core::journal::RecordKey;

use super::World;
use crate::state::instance::{Instance, LEASE_MS, Life, Notice};
use crate::state::judge::Verdict;

impl World {
    /// Moves the pair to an instance that claims it while a seal is in flight. The sender learns that the seal landed before
    /// it reads the claim.
    pub(super) fn take_over(&mut self) -> Verdict {
        let mut flights = self.flights.iter();
        let sender = flights.find_map(|flight| match flight.record.key {
            RecordKey::Seal(_) => flight.sender,
            _ => None,
        });
        let Some(heir) = self.somebody(|instance| Some(instance.incarnation) != sender) else {
            return Ok(());
        };
        if sender.is_none() {
            return Ok(());
        }
        self.assign(heir);
        while !self.instances[heir].notices.is_empty() {
            self.notice(heir)?;
        }
        self.go_round(heir, 0)?;
        self.land_claims()?;
        self.land_seals()?;
        self.acknowledge_all_of(sender)
    }

    /// Delivers an old assignment late. The member claims after the owner's seals have landed, without having read them, and
    /// resumes when its lease is over.
    pub(super) fn claim_late(&mut self) -> Verdict {
        let assigned = self
            .assigned
            .and_then(|who| Some(self.instances.get(who)?.incarnation));
        let had_it = |instance: &Instance| {
            let next = instance.notices.front();
            let is_news = next.is_some_and(|(_, notice)| matches!(notice, Notice::Assigned { .. }));
            is_news && Some(instance.incarnation) != assigned
        };
        let Some(who) = self.somebody(had_it) else {
            return Ok(());
        };
        self.land_seals()?;
        match self.assigned {
            Some(owner) if self.runs(owner) && self.dice.percent(50) => self.answer_late(owner, who),
            _ => {
                self.notice(who)?;
                self.go_round(who, 0)?;
                self.land_claims()?;
                self.now_ms += LEASE_MS + 1;
                Ok(())
            }
        }
    }

    /// Delays the owner's answer about the end until another instance has claimed, sealed and died. The owner has read none
    /// of that.
    fn answer_late(&mut self, owner: usize, other: usize) -> Verdict {
        while !self.instances[owner].has_read(&self.log) {
            self.read_state(owner, 1)?;
        }
        self.instances[owner].ask(&self.log, self.now_ms);
        self.notice(other)?;
        for _ in 0..5 {
            self.go_round(other, 3)?;
            self.land_claims()?;
        }
        self.instances[other].life = Life::Dead;
        self.tick_for(owner, 4)?;
        let commands = self.instances[owner].reach_end(self.now_ms);
        self.obey(owner, "is at the end", commands)?;
        self.tick_for(owner, 3)
    }

    fn tick_for(&mut self, who: usize, n_times: usize) -> Verdict {
        for _ in 0..n_times {
            self.now_ms += 3_000;
            self.tick(who)?;
            self.look()?;
        }
        Ok(())
    }

    /// Blocks the owner for longer than a lease while another takes the pair over. The owner resumes before it learns of
    /// that.
    pub(super) fn oversleep(&mut self) -> Verdict {
        let Some(owner) = self.assigned.filter(|owner| self.runs(*owner)) else {
            return Ok(());
        };
        let owners = self.instances[owner].incarnation;
        let Some(heir) = self.somebody(|instance| instance.incarnation != owners) else {
            return Ok(());
        };
        self.assign(heir);
        while !self.instances[heir].notices.is_empty() {
            self.notice(heir)?;
        }
        for _ in 0..7 {
            self.go_round(heir, 3)?;
            self.land_claims()?;
            self.look()?;
            self.now_ms += 3_000;
        }
        self.tick(owner)
    }

    /// Returns an instance that runs, is connected and satisfies `is_meant`.
    fn somebody(&self, is_meant: impl Fn(&Instance) -> bool) -> Option<usize> {
        let mut all = 0..self.instances.len();
        all.find(|who| self.runs(*who) && is_meant(&self.instances[*who]))
    }

    fn runs(&self, who: usize) -> bool {
        let instance = &self.instances[who];
        instance.life == Life::Runs && !instance.is_deaf
    }
}
