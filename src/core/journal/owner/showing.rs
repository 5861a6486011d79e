//! Rules for what may be shown of the pair (S2, S7).

use super::{Owner, OwnerCommand, OwnerPhase, OwnerSettings, Visibility};
use crate::journal::key::SealId;
use crate::journal::rules::Clause;
use crate::journal::view::NamespaceEnd;

impl Owner {
    /// Returns the rule by which scrapes decide what to show from now on.
    pub fn showing(&self) -> Visibility {
        let OwnerSettings {
            lease_ms, still_ms, ..
        } = self.settings;
        // Before the first end that has the own claim, there is no lease.
        let lease_ms = match self.rules.hold(Clause::ShowForALease) {
            true => self.lease_from_ms.map_or(i64::MIN, |from_ms| from_ms + lease_ms),
            false => i64::MAX,
        };
        let still_ms = match self.rules.hold(Clause::HideIfTheLoopStandsStill) {
            true => self.now_ms.saturating_add(still_ms),
            false => i64::MAX,
        };
        Visibility {
            session: self.visible.filter(|_| self.went_on_ms.is_none()),
            is_holder: matches!(self.phase, OwnerPhase::Holding(_)),
            settled: self.settled.map(|(_, content)| content),
            lease_ms,
            still_ms,
        }
    }

    /// S7: a loop that stalled may have lost the pair without having been notified.
    pub(super) fn note_time(&mut self, now_ms: i64) {
        // `now_ms` starts at the minimum, so the first input counts as a stall: nothing is shown before an end.
        let stood_still = now_ms.saturating_sub(self.now_ms) > self.settings.still_ms;
        if stood_still && self.rules.hold(Clause::ShowAgainAfterAnEnd) {
            self.went_on_ms = Some(now_ms);
        }
        self.now_ms = now_ms;
    }

    /// Notes that the own claim is the highest.
    pub(super) fn has_the_pair(&mut self, end: &NamespaceEnd) {
        // Only an end asked for after the stall shows that the pair is still ours.
        self.went_on_ms = self.went_on_ms.filter(|went_on_ms| *went_on_ms > end.asked_ms);
        self.renew_lease(end);
    }

    /// S6: hides what is shown once another session has sealed the pair, because it is out of date.
    pub(super) fn look_at_a_seal(&mut self, id: SealId) {
        let own = match &self.phase {
            OwnerPhase::Holding(holding) => Some(holding.session),
            _ => None,
        };
        // Seals of earlier sessions may land late. Only one above the shown session makes the numbers outdated.
        let is_of_another = Some(id.session) != own && Some(id.session) > self.visible;
        if is_of_another && self.rules.hold(Clause::HideAtAHigherSeal) {
            self.hide();
        }
    }

    /// S7: renews the lease, unless the highest seal contains more than what is shown: then others may have shown more meanwhile.
    fn renew_lease(&mut self, end: &NamespaceEnd) {
        // Nothing is shown or sealed yet, so nothing can be outdated.
        let (Some((_, shown)), Some((_, Ok(seal)))) = (self.settled, &end.seal) else {
            return self.renew_lease_from(end);
        };
        if seal.content == shown || !self.rules.hold(Clause::LeaseForTheHighestSeal) {
            self.renew_lease_from(end);
        }
    }

    fn renew_lease_from(&mut self, end: &NamespaceEnd) {
        self.lease_from_ms = Some(match self.rules.hold(Clause::LeaseFromTheQuestion) {
            true => end.asked_ms,
            false => self.now_ms,
        });
    }

    /// S2.
    pub(super) fn show(&mut self, id: SealId, content: u128) {
        if self.settled != Some((id, content)) {
            self.settled = Some((id, content));
            self.commands.push(OwnerCommand::Show { content });
        }
    }

    pub(super) fn hide(&mut self) {
        self.visible = None;
        self.settled = None;
    }
}
