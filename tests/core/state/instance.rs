//! A miniature process: an owner, the memory of its pair, and its incoming messages.

use std::collections::{BTreeSet, VecDeque};

use abgauge_core::journal::{
    Claim, EndQuestion, JournalRules, Namespace, Owner, OwnerCommand, OwnerInput, OwnerSettings,
    PartitionEvent, RecordKey, Session, ShownState, Urgency,
};

use crate::state::log::Log;
use crate::state::pair::{Pair, identity};

pub const ANSWER_MS: i64 = 5_000;
pub const LEASE_MS: i64 = 15_000;

pub fn namespace() -> Namespace {
    Namespace::of("slot 1", "group")
}

fn settings() -> OwnerSettings {
    OwnerSettings {
        namespace: namespace(),
        identity: identity(),
        claim: Claim::default(),
        answer_ms: ANSWER_MS,
        lease_ms: LEASE_MS,
        still_ms: 5_000,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    Runs,
    /// Stopped by SIGSTOP: scrapes are not answered.
    Stopped,
    /// Blocked in its loop, while scrapes are still answered.
    Stuck,
    Dead,
}

/// Fate of a revoked pair's memory.
#[derive(Debug, Clone, Copy)]
pub enum Memory {
    Stays,
    /// The memory is dropped, and the owner is notified.
    Goes,
    /// The memory is dropped together with the owner.
    GoesWithTheOwner,
}

#[derive(Debug, Clone, Copy)]
pub enum Notice {
    Assigned { generation: u64 },
    Revoked { memory: Memory },
}

/// The answer to a request for the partition's end.
struct Asked {
    question: EndQuestion,
    end: usize,
}

pub struct Instance {
    /// Unique number of the process.
    pub incarnation: u64,
    pub life: Life,
    /// Set while the instance is cut off from the state partition. Its pending question may still be answered afterwards.
    pub is_deaf: bool,
    owner: Owner,
    rules: JournalRules,
    pub pair: Option<Pair>,
    read: usize,
    asked: Option<Asked>,
    /// Keys of acknowledged appends.
    pub acknowledged: Vec<RecordKey>,
    /// Commits without an answer from the group.
    pub commits: Vec<u64>,
    /// Answers to commits, in transit.
    pub answers: Vec<(u64, bool)>,
    /// Notices with the time by which they must be delivered.
    pub notices: VecDeque<(i64, Notice)>,
    /// Time of its last step.
    pub last_step_ms: i64,
    /// Generation of the group as known to this member.
    pub generation: Option<u64>,
    n_owners: u64,
    /// Latest claim since the pair was assigned.
    last_claim: Option<Session>,
    /// Sessions under which it has claimed.
    pub own: BTreeSet<Session>,
    /// Set when a higher claim was read, until the group confirms that the pair is ours.
    needs_leave: bool,
    /// Position in the chain of the latest seal by another instance that was read.
    pub seen: Option<usize>,
}

impl Instance {
    pub fn new(incarnation: u64, rules: JournalRules) -> Instance {
        Instance {
            incarnation,
            life: Life::Runs,
            is_deaf: false,
            owner: Owner::with_rules(settings(), incarnation << 16, rules),
            rules,
            pair: None,
            read: 0,
            asked: None,
            acknowledged: Vec::new(),
            commits: Vec::new(),
            answers: Vec::new(),
            notices: VecDeque::new(),
            last_step_ms: 0,
            generation: None,
            n_owners: 1,
            last_claim: None,
            own: BTreeSet::new(),
            needs_leave: false,
            seen: None,
        }
    }

    pub fn shown(&self, now_ms: i64) -> ShownState {
        self.owner.showing().shown(now_ms)
    }

    /// Returns the session whose claim allows it to show the pair.
    pub fn session(&self) -> Option<Session> {
        self.owner.showing().session()
    }

    pub fn wants_state(&self) -> bool {
        self.owner.wants() != Urgency::No
    }

    pub fn tick(&mut self, now_ms: i64) -> Vec<OwnerCommand> {
        self.owner.step(now_ms, OwnerInput::Tick)
    }

    /// Delivers the end of the partition, if it was asked for and every record before it has been read.
    pub fn reach_end(&mut self, now_ms: i64) -> Vec<OwnerCommand> {
        match self.asked.take_if(|asked| asked.end <= self.read) {
            Some(asked) => self
                .owner
                .step(now_ms, OwnerInput::Log(PartitionEvent::End(asked.question))),
            None => Vec::new(),
        }
    }

    /// Reads the next record and passes it to the owner. Returns the record's key, unless it is a tombstone.
    pub fn read(&mut self, log: &Log, now_ms: i64) -> (Option<RecordKey>, Vec<OwnerCommand>) {
        let (record, next) = log.next(self.read);
        self.read = next;
        let Some(record) = record else {
            return (None, Vec::new());
        };
        if let RecordKey::Claim(session) = record.key
            && self.last_claim.is_some_and(|own| session > own)
        {
            self.needs_leave |= record.value.is_some();
        }
        let (key, value) = (&record.text[..], record.value.as_deref());
        let put = value.is_some().then_some(record.key);
        let offset = next as i64 - 1;
        (
            put,
            self.owner.step(
                now_ms,
                OwnerInput::Log(PartitionEvent::Record {
                    offset,
                    key,
                    value,
                    written_ms: None,
                }),
            ),
        )
    }

    pub fn has_read(&self, log: &Log) -> bool {
        self.read == log.end()
    }

    /// Returns the first position that has not been read.
    pub fn position(&self) -> usize {
        self.read
    }

    pub fn has_asked(&self) -> bool {
        self.asked.is_some()
    }

    pub fn ask(&mut self, log: &Log, now_ms: i64) {
        self.asked = Some(Asked {
            question: self.owner.question(now_ms),
            end: log.end(),
        });
    }

    pub fn acknowledge(&mut self, which: usize, now_ms: i64) -> Vec<OwnerCommand> {
        let key = self.acknowledged.swap_remove(which);
        self.owner
            .step(now_ms, OwnerInput::Log(PartitionEvent::Acknowledged(key)))
    }

    pub fn answer(&mut self, which: usize, now_ms: i64) -> Vec<OwnerCommand> {
        let (number, is_known) = self.answers.swap_remove(which);
        self.needs_leave &= !is_known;
        self.owner
            .step(now_ms, OwnerInput::Committed { number, is_known })
    }

    /// Returns whether the next notice must be delivered before anything else. An instance that was blocked may act before it
    /// learns of the notice.
    pub fn must_hear(&self) -> bool {
        let due = |(due_ms, _): &(i64, Notice)| *due_ms <= self.last_step_ms;
        self.notices.front().is_some_and(due)
    }

    pub fn notice(&mut self, now_ms: i64) -> Vec<OwnerCommand> {
        match self.notices.pop_front() {
            Some((_, Notice::Assigned { generation })) => {
                self.generation = Some(generation);
                (self.last_claim, self.needs_leave) = (None, false);
                self.owner.step(now_ms, OwnerInput::Assigned)
            }
            Some((_, Notice::Revoked { memory })) => {
                self.generation = None;
                let commands = self.owner.step(now_ms, OwnerInput::Revoked);
                match memory {
                    Memory::Stays => {}
                    Memory::Goes => {
                        self.pair = None;
                        self.owner.step(now_ms, OwnerInput::Forgotten);
                    }
                    Memory::GoesWithTheOwner => self.start_anew(),
                }
                commands
            }
            None => Vec::new(),
        }
    }

    /// Drops the memory and the owner.
    fn start_anew(&mut self) {
        let seed = (self.incarnation << 16) + self.n_owners;
        self.n_owners += 1;
        self.owner = Owner::with_rules(settings(), seed, self.rules);
        (self.pair, self.read, self.asked, self.seen) = (None, 0, None, None);
        (self.acknowledged, self.answers, self.commits) = (Vec::new(), Vec::new(), Vec::new());
    }

    pub fn offer(&mut self, now_ms: i64) -> Vec<OwnerCommand> {
        match &self.pair {
            Some(pair) => {
                let state = pair.account().state();
                self.owner.step(now_ms, OwnerInput::State(state))
            }
            None => Vec::new(),
        }
    }

    /// Notes a claim of its own.
    ///
    /// # Errors
    /// If the instance claims without the group's permission after it read a higher claim.
    pub fn claims(&mut self, session: Session) -> Result<(), String> {
        self.last_claim = Some(session);
        self.own.insert(session);
        match self.needs_leave {
            true => Err("peace: claimed again without leave of the group".to_owned()),
            false => Ok(()),
        }
    }
}
