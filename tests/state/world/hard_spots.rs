//! What chance alone brings about too seldom.

use abgauge::state::Key;

use super::World;
use crate::instance::{Instance, LEASE_MS, Life, Notice};
use crate::judge::Verdict;

impl World {
    /// The pair is moved and claimed while a seal is under way, and its sender hears that it landed before he reads that claim.
    pub(super) fn take_over(&mut self) -> Verdict {
        let mut flights = self.flights.iter();
        let sender = flights.find_map(|flight| match flight.record.key {
            Key::Seal(_) => flight.sender,
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

    /// A member hears late that it had the pair once, and claims, after seals of the owner have landed that he has not read. He goes on
    /// when his lease is over.
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
        self.notice(who)?;
        self.go_round(who, 0)?;
        self.land_claims()?;
        self.now_ms += LEASE_MS + 1;
        Ok(())
    }

    /// An instance that runs and hears, if there is such a one.
    fn somebody(&self, is_meant: impl Fn(&Instance) -> bool) -> Option<usize> {
        let runs = |instance: &Instance| instance.life == Life::Runs && !instance.is_deaf;
        let mut instances = self.instances.iter();
        instances.position(|instance| runs(instance) && is_meant(instance))
    }
}
