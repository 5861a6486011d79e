//! Owner of the state of a pair, as a machine: inputs with their times go in, commands come out (rules S1 to S8).
//!
//! ```text
//! Away ── assigned ─▶ Reading ── end ─▶ Claiming ── end that has the claim ─▶ Holding
//!  ▲                                        ▲                                    │
//!  ├── revoked, or not known to the group   └── known ── Superseded ◀── a higher claim is read
//!  └── Refused: until it is revoked
//! ```

mod claims;
mod holding;
mod interface;
mod kept_seal;
mod loss;
mod passed;
mod sealing;
mod showing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::mem;

use self::holding::Holding;
pub use self::holding::Urgency;
pub use self::interface::{
    Loss, OwnerCommand, OwnerInput, OwnerSettings, Refusal, ShownState, StateFault, Visibility,
};
use self::kept_seal::KeptSeal;
use self::passed::Passed;
use super::key::{RecordKey, SealId, Session};
use super::log::PartitionEvent;
use super::rules::{Clause, JournalRules};
use super::view::{EndQuestion, PartitionView};

#[derive(Debug)]
enum OwnerPhase {
    /// The pair is not assigned. Contains the holding from before it was revoked.
    Away(Option<Holding>),
    /// Waits for the end, then claims or resumes.
    Reading(Option<Holding>),
    /// Waits for an end that includes the claim.
    Claiming {
        session: Session,
        sent_ms: i64,
        acknowledged_ms: Option<i64>,
    },
    Holding(Holding),
    /// Waits for the group's answer.
    Superseded {
        number: u64,
        asked_ms: i64,
    },
    Refused,
}

/// Phase of an owner, as shown to people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OwnerStatus {
    /// The group has not assigned the pair.
    #[default]
    Away,
    /// Reads the stored records.
    Reading,
    /// Has claimed, and waits to read its claim.
    Claiming,
    /// Seals.
    Holding,
    /// Another session has claimed the pair: asks the group.
    Superseded,
    /// Cannot resume from the stored state.
    Refused,
}

/// Owner of one pair within a process. It outlives revocations.
///
/// # What a driver provides
///
/// - One loop per pair, and one owner that tracks the pair's memory in this process: [`OwnerInput::Forgotten`]
///   if it is dropped other than by a command. The seed is random, and new for each owner.
/// - The time with each input, in ms of a clock that never goes back and counts suspension. An [`OwnerInput::Tick`] at least
///   each second, even while nothing can be read. After each input the driver puts [`Owner::showing`] where scrapes find it
///   without waiting for the loop; scrapes evaluate it with the same clock.
/// - The records of the state partition from its first one on, in the order of offsets, from the leader, including tombstones.
///   While the pair is away the driver keeps reading, or resumes from the same position when the pair comes back.
/// - [`PartitionEvent::Begins`] when the log of the state partition begins behind records that were read. The driver asks for it
///   with the ends.
/// - Ends: the driver takes a [`EndQuestion`], asks the broker where the partition ends, and hands the question in as
///   [`PartitionEvent::End`] once its position is there. If records were read since the question, the answer proves nothing, and
///   the driver asks again. While a claim or a seal is pending it asks right after each record, otherwise about each second,
///   and never less often than a third of the lease. [`PartitionEvent::StartOver`] if the end lies before the position, followed by
///   all records from the first one on.
/// - Appends in any order, without transactions, `acks=all`. [`PartitionEvent::Acknowledged`] for each key with a value that is
///   acknowledged; a failure is not an answer. The driver holds nothing back: an append may land at any later time, or never.
/// - Commits: [`OwnerInput::Committed`] with `is_known: false` only for an answer that means it (unknown member, illegal
///   generation, fenced instance, rebalance in progress). A timeout or an unreachable coordinator is not an answer, and the
///   command comes again.
/// - Memory: at [`OwnerCommand::Begin`] by the start rule; at [`OwnerCommand::Restore`] from header and roles, replaying from
///   the resume offsets. A [`State`](super::State) at a batch border when [`Owner::wants`] asks for it, and not before the
///   replay has met its digests. Equal states must have equal bytes.
/// - Settled deltas wait, by the content of the state that contains them, for [`OwnerCommand::Show`]. Each Show releases all
///   deltas up to that state. Until then the board keeps what was shown before, and [`Visibility::shown`] decides whether it is
///   visible.
/// - A final state before it leaves, if time allows: the machine seals what it is offered until [`OwnerInput::Revoked`].
#[derive(Debug)]
pub struct Owner {
    settings: OwnerSettings,
    rules: JournalRules,
    view: PartitionView,
    phase: OwnerPhase,
    /// Chain position of the memory that exists.
    memory: Option<Passed>,
    /// The current state that this memory has passed through, kept to be written again if the topic loses it.
    kept: Option<KeptSeal>,
    /// Loss that is not repaired yet.
    lost: Option<Loss>,
    n_lost: u64,
    /// Random; all u come from it.
    seed: u64,
    n_claims: u64,
    /// The highest epoch that was claimed.
    tried: u64,
    n_commits: u64,
    /// Session since the pair was last held. Nothing is shown without it.
    visible: Option<Session>,
    settled: Option<(SealId, u128)>,
    /// Time at which the loop resumed after a stall; cleared once an end is asked for after it.
    went_on_ms: Option<i64>,
    /// Time of the last question whose end had the own claim as the highest.
    lease_from_ms: Option<i64>,
    /// Tombstones sent, and when.
    buried: BTreeMap<RecordKey, i64>,
    /// Time of the last input.
    now_ms: i64,
    commands: Vec<OwnerCommand>,
}

impl Owner {
    /// Creates an owner with weakened rules, for tests. `seed` is random, and different for each owner.
    #[doc(hidden)]
    pub fn with_rules(settings: OwnerSettings, seed: u64, rules: JournalRules) -> Owner {
        let view = PartitionView::new(settings.namespace, rules);
        Owner::over(view, settings, seed)
    }

    /// Creates an owner from a view that has been read already and has all records up to the read position.
    pub fn over(view: PartitionView, settings: OwnerSettings, seed: u64) -> Owner {
        let rules = view.rules();
        Owner {
            view,
            settings,
            rules,
            phase: OwnerPhase::Away(None),
            memory: None,
            kept: None,
            lost: None,
            n_lost: 0,
            seed,
            n_claims: 0,
            tried: 0,
            n_commits: 0,
            visible: None,
            settled: None,
            went_on_ms: None,
            lease_from_ms: None,
            buried: BTreeMap::new(),
            now_ms: i64::MIN,
            commands: Vec::new(),
        }
    }

    /// Takes an input at a time (ms of a clock that never goes back and counts suspension). At least one must come each second,
    /// if only a [`OwnerInput::Tick`].
    pub fn step(&mut self, now_ms: i64, input: OwnerInput) -> Vec<OwnerCommand> {
        // A stall must be noticed before the input can show anything again.
        self.note_time(now_ms);
        match input {
            OwnerInput::Assigned => self.assigned(),
            OwnerInput::Revoked => self.revoked(),
            OwnerInput::Forgotten => self.forgotten(),
            OwnerInput::Log(event) => self.log(event),
            OwnerInput::State(state) => self.state(state),
            OwnerInput::Committed { number, is_known } => self.committed(number, is_known),
            OwnerInput::Tick => {}
        }
        // Deadlines are checked after every input, so they need no timers.
        self.look_at_the_clock();
        mem::take(&mut self.commands)
    }

    fn log(&mut self, event: PartitionEvent) {
        match event {
            PartitionEvent::Record {
                offset, key, value, ..
            } => self.record(offset, key, value),
            PartitionEvent::Begins(offset) => self.view.starts_at(offset),
            PartitionEvent::End(question) => self.end(question),
            PartitionEvent::Quiet(question) => self.quiet(question),
            PartitionEvent::Acknowledged(key) => self.acknowledged(key),
            PartitionEvent::StartOver => self.start_over(),
        }
    }

    /// Returns a question for the end of the state partition. Ask it now: it covers the records handed in so far.
    pub fn question(&self, now_ms: i64) -> EndQuestion {
        self.view.question(now_ms)
    }

    /// Returns whether the owner waits for an end. If so, ask for it right after each read.
    pub fn awaits_end(&self) -> bool {
        match &self.phase {
            OwnerPhase::Reading(_) | OwnerPhase::Claiming { .. } => true,
            OwnerPhase::Holding(holding) => holding.awaits_end(),
            _ => false,
        }
    }

    /// Returns the phase, for people.
    pub fn standing(&self) -> OwnerStatus {
        match &self.phase {
            OwnerPhase::Away(_) => OwnerStatus::Away,
            OwnerPhase::Reading(_) => OwnerStatus::Reading,
            OwnerPhase::Claiming { .. } => OwnerStatus::Claiming,
            OwnerPhase::Holding(_) => OwnerStatus::Holding,
            OwnerPhase::Superseded { .. } => OwnerStatus::Superseded,
            OwnerPhase::Refused => OwnerStatus::Refused,
        }
    }

    /// Returns the records read so far.
    pub fn view(&self) -> &PartitionView {
        &self.view
    }

    fn record(&mut self, offset: i64, key: &[u8], value: Option<&[u8]>) {
        match self.view.take_at(offset, key, value) {
            Some(RecordKey::Claim(_)) => self.look_at_claims(),
            Some(RecordKey::Seal(id)) => self.look_at_a_seal(id),
            _ => {}
        }
    }

    fn end(&mut self, question: EndQuestion) {
        let Some(end) = self.view.end(question) else {
            return;
        };
        match &self.phase {
            OwnerPhase::Reading(_) => self.end_of_reading(&end),
            // The own claim was read back, and with it every seal that landed before it.
            OwnerPhase::Claiming { session, .. } if self.view.has_claim(*session) => {
                let session = *session;
                self.hold(session, &end);
            }
            // The end was asked for after the claim was acknowledged, but lacks it: the log has lost the claim.
            OwnerPhase::Claiming { acknowledged_ms, .. } if end.was_asked_after(*acknowledged_ms) => {
                self.claim_again();
            }
            OwnerPhase::Holding(_) => self.end_of_holder(&end),
            _ => {}
        }
    }

    /// Treats a quiet partition as its end, but drops the held claim. A new claim is read back before it counts, so a missing
    /// record does no harm; resuming an old claim has no such check.
    fn quiet(&mut self, question: EndQuestion) {
        if let OwnerPhase::Reading(held) = &mut self.phase {
            *held = None;
            self.end(question);
        }
    }

    fn acknowledged(&mut self, key: RecordKey) {
        match key {
            RecordKey::Claim(session) => self.claim_acknowledged(session),
            RecordKey::Seal(id) => self.seal_acknowledged(id),
            RecordKey::Blob(id) => self.blob_acknowledged(id),
        }
    }

    fn start_over(&mut self) {
        self.lose_the_log();
        self.view.start_over();
        // The held claim was in the log that is gone, so it must be made again.
        self.phase = match &self.phase {
            OwnerPhase::Away(_) => OwnerPhase::Away(None),
            _ => OwnerPhase::Reading(None),
        };
    }

    fn look_at_the_clock(&mut self) {
        let (now_ms, answer_ms) = (self.now_ms, self.settings.answer_ms);
        match &mut self.phase {
            OwnerPhase::Claiming {
                session,
                sent_ms,
                acknowledged_ms: None,
            } if now_ms - *sent_ms >= answer_ms => {
                // A claim that was read has landed, even if its answer is lost. The next end decides whether it
                // holds.
                let is_read = self.view.has_claim(*session);
                if !is_read && self.rules.hold(Clause::ClaimAgainUnanswered) {
                    self.claim();
                }
            }
            OwnerPhase::Holding(holding) => {
                // The order matters: giving up an attempt makes room for sealing the base, or else the kept state.
                holding.doubt(now_ms, answer_ms);
                holding.seal_base_again(now_ms, &mut self.commands);
                self.write_again();
            }
            OwnerPhase::Superseded { number, asked_ms } if now_ms - *asked_ms >= answer_ms => {
                let number = *number;
                self.ask_the_group(number);
            }
            _ => {}
        }
    }
}
