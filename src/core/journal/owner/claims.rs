//! Claims on the pair, the base of a session, and answers from the group (S3, S6).

use std::mem;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::holding::Holding;
use super::passed::Passed;
use super::{Owner, OwnerCommand, OwnerPhase, Refusal};
use crate::journal::key::{RecordKey, Session};
use crate::journal::record::Seal;
use crate::journal::rules::Clause;
use crate::journal::view::NamespaceEnd;

impl Owner {
    pub(super) fn assigned(&mut self) {
        // In any other phase the pair is assigned already.
        if let OwnerPhase::Away(held) = &mut self.phase {
            self.phase = OwnerPhase::Reading(held.take());
        }
    }

    pub(super) fn revoked(&mut self) {
        let held = match mem::replace(&mut self.phase, OwnerPhase::Away(None)) {
            OwnerPhase::Holding(mut holding) => {
                // The claim is kept: if the pair returns before another session claims it, no new claim is needed.
                holding.rest();
                Some(holding)
            }
            OwnerPhase::Away(held) | OwnerPhase::Reading(held) => held,
            _ => None,
        };
        self.phase = OwnerPhase::Away(held);
        self.hide();
    }

    pub(super) fn forgotten(&mut self) {
        self.forget_memory();
        match &mut self.phase {
            OwnerPhase::Away(held) | OwnerPhase::Reading(held) => *held = None,
            // A claim without memory cannot seal anything, so the pair is claimed again and restored.
            OwnerPhase::Holding(_) => self.phase = OwnerPhase::Reading(None),
            // In these phases, the next hold finds no memory, and restores it.
            OwnerPhase::Claiming { .. } | OwnerPhase::Superseded { .. } | OwnerPhase::Refused => {}
        }
        self.hide();
    }

    /// S6: a higher claim supersedes.
    pub(super) fn look_at_claims(&mut self) {
        let (own, clause) = match &self.phase {
            OwnerPhase::Claiming { session, .. } => (*session, Clause::TheHighestClaimHolds),
            OwnerPhase::Holding(holding) => (holding.session, Clause::SealNothingSuperseded),
            _ => return,
        };
        if self.view.highest_claim() > Some(own) && self.rules.hold(clause) {
            self.superseded();
        }
    }

    pub(super) fn superseded(&mut self) {
        if !self.rules.hold(Clause::AskTheGroup) {
            return self.claim();
        }
        // Commits are numbered, so that a late answer to an earlier one is not taken for this one.
        self.n_commits += 1;
        self.ask_the_group(self.n_commits);
    }

    pub(super) fn ask_the_group(&mut self, number: u64) {
        self.commands.push(OwnerCommand::Commit { number });
        self.phase = OwnerPhase::Superseded {
            number,
            asked_ms: self.now_ms,
        };
    }

    /// S6: a member that the group knows claims again.
    pub(super) fn committed(&mut self, answered: u64, is_known: bool) {
        let OwnerPhase::Superseded { number, .. } = &self.phase else {
            return;
        };
        if *number != answered {
            return;
        }
        if is_known || !self.rules.hold(Clause::DropWhatTheGroupTook) {
            return self.claim();
        }
        // The pair belongs to another member, so neither the claim nor the memory may be used again.
        self.phase = OwnerPhase::Away(None);
        self.forget_memory();
        self.hide();
        self.commands.push(OwnerCommand::Drop);
    }

    /// Resumes the held claim if it is the highest; otherwise claims.
    pub(super) fn end_of_reading(&mut self, end: &NamespaceEnd) {
        // Check the base first, so that a pair that cannot be resumed is not claimed.
        if let Err(refusal) = self.base(end) {
            return self.refuse(refusal);
        }
        let OwnerPhase::Reading(held) = &mut self.phase else {
            return;
        };
        match held.take() {
            // No higher claim exists at this end, so no other instance can have taken the pair.
            Some(holding) if end.claim == Some(holding.session) => {
                self.visible = Some(holding.session);
                self.phase = OwnerPhase::Holding(holding);
                self.end_of_holder(end);
            }
            _ => self.claim(),
        }
    }

    /// S3: claims above all claims, and above all seals, because a claim may have been deleted while its seals remain. Below an
    /// epoch that no instance claims, it keeps reading until that record is deleted.
    pub(super) fn claim(&mut self) {
        let top = self.view.top().and_then(RecordKey::session);
        let read = top.map_or(0, |top| top.epoch);
        if top.is_some_and(Session::is_unsurpassable) {
            self.phase = OwnerPhase::Reading(None);
            return;
        }
        // An earlier claim of ours may still land, so the new one must be above it, too.
        let epoch = match self.rules.hold(Clause::ClaimHigher) {
            true => read.max(self.tried).saturating_add(1),
            false => 1,
        };
        let session = Session {
            epoch,
            unique: self.new_unique(),
        };
        self.tried = epoch;
        self.phase = OwnerPhase::Claiming {
            session,
            sent_ms: self.now_ms,
            acknowledged_ms: None,
        };
        let value = self.settings.claim.encode();
        self.commands
            .push(OwnerCommand::send(RecordKey::Claim(session), value.into()));
    }

    pub(super) fn new_unique(&mut self) -> u64 {
        if self.rules.hold(Clause::EachClaimIsNew) {
            self.n_claims += 1;
        }
        xxh3_64_with_seed(&self.n_claims.to_le_bytes(), self.seed)
    }

    pub(super) fn claim_acknowledged(&mut self, acknowledged: Session) {
        let OwnerPhase::Claiming {
            session,
            acknowledged_ms,
            ..
        } = &mut self.phase
        else {
            return;
        };
        if *session != acknowledged {
            return;
        }
        acknowledged_ms.get_or_insert(self.now_ms);
        if !self.rules.hold(Clause::BaseIsReadAfterTheClaim)
            && let Some(end) = self.view.end(self.view.question(self.now_ms))
        {
            self.hold(acknowledged, &end);
        }
    }

    /// S3: the log has lost the claim, though it was acknowledged: a replica that lacked it has become the leader.
    pub(super) fn claim_again(&mut self) {
        if self.rules.hold(Clause::ClaimAgainOnceLost) {
            self.claim();
        }
    }

    /// S3: holds the pair by the highest claim, and resumes from the highest seal.
    pub(super) fn hold(&mut self, session: Session, end: &NamespaceEnd) {
        // This end has the own claim, so seals of earlier sessions that land later are not in force. The base cannot
        // change any more.
        let base = match self.base(end).and_then(|base| self.remember(base)) {
            Ok(base) => base,
            Err(refusal) => return self.refuse(refusal),
        };
        if let (Some((id, _)), Some(base)) = (&end.seal, &base)
            && !self.rules.hold(Clause::ShowTheBaseOnceSealed)
        {
            self.show(*id, base.content);
        }
        let mut holding = Holding::new(session, base, self.rules);
        // The claim is above the base's session, so no seal is in force until the base is sealed again.
        holding.seal_base_again(self.now_ms, &mut self.commands);
        self.visible = Some(session);
        self.phase = OwnerPhase::Holding(holding);
        self.keep();
        // If blobs of the base are lost, there is no base to seal again, and the kept bytes are written instead.
        self.write_again();
        self.has_the_pair(end);
    }

    /// Returns the highest seal, or a refusal if it cannot be resumed.
    pub(super) fn base(&self, end: &NamespaceEnd) -> Result<Option<Arc<Seal>>, Refusal> {
        // Records of a newer version may change the meaning of all others, so nothing else is read.
        if let Some(key) = self.view.newer_key() {
            return Err(Refusal::Key(key.to_owned()));
        }
        let Some((id, seal)) = &end.seal else {
            return Ok(None);
        };
        match seal {
            Err(error) => Err(Refusal::Seal {
                id: *id,
                error: *error,
            }),
            Ok(seal) => match self.settings.identity.difference(&seal.header.identity) {
                Some(difference) => Err(Refusal::Identity { id: *id, difference }),
                None => Ok(Some(Arc::clone(seal))),
            },
        }
    }

    /// S6: keeps memory that has passed through the base; otherwise orders it to be rebuilt. Returns the seal to be sealed again,
    /// if any.
    pub(super) fn remember(&mut self, base: Option<Arc<Seal>>) -> Result<Option<Arc<Seal>>, Refusal> {
        let Some(base) = base else {
            // Memory may exist although nothing was sealed: it has begun, and its first seal was lost.
            if self.memory.is_none() {
                self.memory = Some(Passed::default());
                self.commands.push(OwnerCommand::Begin);
            }
            return Ok(None);
        };
        let roles = self.view.roles(&base);
        // Memory that has passed through the base contains all of it, and need not be made again.
        let has_passed = self
            .memory
            .as_ref()
            .is_some_and(|passed| passed.has(base.content));
        let is_any_kept = self.memory.is_some() && !self.rules.hold(Clause::KeepMemoryIfItPassedThrough);
        if has_passed || is_any_kept {
            // Blobs that are lost are written again.
            return Ok(roles.is_ok().then_some(base));
        }
        // From here on memory must be rebuilt, so a damaged base is a refusal.
        let roles = roles.map_err(Refusal::Damage)?;
        self.memory = Some(Passed::from_base(base.content));
        self.commands.push(OwnerCommand::Restore {
            seal: Arc::clone(&base),
            roles,
        });
        Ok(Some(base))
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.phase = OwnerPhase::Refused;
        self.hide();
        self.commands.push(OwnerCommand::Refuse(refusal));
    }
}
