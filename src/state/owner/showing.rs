//! What may be shown of the pair (S2, S7).

use super::{Command, Owner, Phase, Shown};
use crate::state::key::SealId;
use crate::state::rules::Clause;
use crate::state::view::End;

impl Owner {
    /// S7: what a scrape may show at this time.
    pub fn shown(&self, now_ms: i64) -> Shown {
        let stands_still = now_ms.saturating_sub(self.now_ms) > self.settings.still_ms;
        if self.visible.is_none() || (stands_still && self.rules.hold(Clause::HideIfTheLoopStandsStill)) {
            return Shown::default();
        }
        let has_lease = self.has_lease(now_ms);
        let live = has_lease || matches!(self.phase, Phase::Holding(_));
        Shown {
            live,
            settled: self.settled.filter(|_| has_lease).map(|(_, content)| content),
        }
    }

    pub(super) fn has_lease(&self, now_ms: i64) -> bool {
        let is_young = |from_ms| now_ms - from_ms <= self.settings.lease_ms;
        self.lease_from_ms.is_some_and(is_young) || !self.rules.hold(Clause::ShowForALease)
    }

    /// S6: what is shown is out of date once somebody else has sealed the pair.
    pub(super) fn look_at_a_seal(&mut self, id: SealId) {
        let own = match &self.phase {
            Phase::Holding(holding) => Some(holding.session),
            _ => None,
        };
        let is_of_another = Some(id.session) != own && Some(id.session) > self.visible;
        if is_of_another && self.rules.hold(Clause::HideAtAHigherSeal) {
            self.hide();
        }
    }

    /// S7: the own claim is the highest. If the highest seal holds more than what is shown, that is not prolonged: others may have shown
    /// more for as long.
    pub(super) fn renew_lease(&mut self, end: &End) {
        let (Some((_, shown)), Some((_, Ok(seal)))) = (self.settled, &end.seal) else {
            return self.renew_lease_from(end);
        };
        if seal.content == shown || !self.rules.hold(Clause::LeaseForTheHighestSeal) {
            self.renew_lease_from(end);
        }
    }

    pub(super) fn renew_lease_from(&mut self, end: &End) {
        self.lease_from_ms = Some(match self.rules.hold(Clause::LeaseFromTheQuestion) {
            true => end.asked_ms,
            false => self.now_ms,
        });
    }

    /// S2.
    pub(super) fn show(&mut self, id: SealId, content: u128) {
        if self.settled != Some((id, content)) {
            self.settled = Some((id, content));
            self.commands.push(Command::Show { content });
        }
    }

    pub(super) fn hide(&mut self) {
        self.visible = None;
        self.settled = None;
    }
}
