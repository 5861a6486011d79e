//! A process in miniature: an owner, the memory of its pair, and what is on its way to it.

use std::collections::{BTreeSet, VecDeque};

use abgauge::state::{
    Claim, Command, Input, Key, Namespace, Owner, Question, Rules, Session, Settings, Shown, Wanted,
};

use crate::log::Log;
use crate::pair::{Pair, identity};

pub const ANSWER_MS: i64 = 5_000;
pub const LEASE_MS: i64 = 15_000;

pub fn namespace() -> Namespace {
    Namespace::of("slot 1", "group")
}

fn settings() -> Settings {
    Settings {
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
    /// SIGSTOP: nobody can look at it.
    Stopped,
    /// Its loop stands still; scrapes are answered.
    Stuck,
    Dead,
}

/// What becomes of the memory of a pair that is revoked.
#[derive(Debug, Clone, Copy)]
pub enum Memory {
    Stays,
    /// And the owner is told.
    Goes,
    /// And the owner with it.
    GoesWithTheOwner,
}

#[derive(Debug, Clone, Copy)]
pub enum Notice {
    Assigned { generation: u64 },
    Revoked { memory: Memory },
}

/// An end was asked for, and this is the answer.
struct Asked {
    question: Question,
    end: usize,
}

pub struct Instance {
    /// Another one for each process.
    pub incarnation: u64,
    pub life: Life,
    /// It no longer hears from the state partition; what it asked may still be answered once it does.
    pub is_deaf: bool,
    owner: Owner,
    rules: Rules,
    pub pair: Option<Pair>,
    read: usize,
    asked: Option<Asked>,
    /// Keys whose appends are acknowledged.
    pub acknowledged: Vec<Key>,
    /// Commits that the group has not answered.
    pub commits: Vec<u64>,
    /// Answers on their way.
    pub answers: Vec<(u64, bool)>,
    /// With the time by which they are known.
    pub notices: VecDeque<(i64, Notice)>,
    /// When it last did anything.
    pub last_step_ms: i64,
    /// Of the group, as this member knows it.
    pub generation: Option<u64>,
    n_owners: u64,
    /// Its last claim since it was assigned.
    last_claim: Option<Session>,
    /// All that it has claimed as.
    pub own: BTreeSet<Session>,
    /// A higher claim was read, and the group has not said yet that the pair is ours.
    needs_leave: bool,
    /// Place in the chain of the latest seal of another that was read.
    pub seen: Option<usize>,
}

impl Instance {
    pub fn new(incarnation: u64, rules: Rules) -> Instance {
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

    pub fn shown(&self, now_ms: i64) -> Shown {
        self.owner.showing().shown(now_ms)
    }

    /// Whose claim it shows the pair by.
    pub fn session(&self) -> Option<Session> {
        self.owner.showing().session()
    }

    pub fn wants_state(&self) -> bool {
        self.owner.wants() != Wanted::No
    }

    pub fn tick(&mut self, now_ms: i64) -> Vec<Command> {
        self.owner.step(now_ms, Input::Tick)
    }

    /// The end, if it was asked for and nothing is left below it.
    pub fn reach_end(&mut self, now_ms: i64) -> Vec<Command> {
        match self.asked.take_if(|asked| asked.end <= self.read) {
            Some(asked) => self.owner.step(now_ms, Input::End(asked.question)),
            None => Vec::new(),
        }
    }

    /// Hands in the next record. Returns its key, unless it is a tombstone.
    pub fn read(&mut self, log: &Log, now_ms: i64) -> (Option<Key>, Vec<Command>) {
        let (record, next) = log.next(self.read);
        self.read = next;
        let Some(record) = record else {
            return (None, Vec::new());
        };
        if let Key::Claim(session) = record.key
            && self.last_claim.is_some_and(|own| session > own)
        {
            self.needs_leave |= record.value.is_some();
        }
        let (key, value) = (&record.text[..], record.value.as_deref());
        let put = value.is_some().then_some(record.key);
        let offset = next as i64 - 1;
        (put, self.owner.step(now_ms, Input::Record { offset, key, value }))
    }

    pub fn has_read(&self, log: &Log) -> bool {
        self.read == log.end()
    }

    /// Records that it has not read lie from here on.
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

    pub fn acknowledge(&mut self, which: usize, now_ms: i64) -> Vec<Command> {
        let key = self.acknowledged.swap_remove(which);
        self.owner.step(now_ms, Input::Acknowledged(key))
    }

    pub fn answer(&mut self, which: usize, now_ms: i64) -> Vec<Command> {
        let (number, is_known) = self.answers.swap_remove(which);
        self.needs_leave &= !is_known;
        self.owner.step(now_ms, Input::Committed { number, is_known })
    }

    /// Who runs knows in time. Who stood still may do something else first.
    pub fn must_hear(&self) -> bool {
        let due = |(due_ms, _): &(i64, Notice)| *due_ms <= self.last_step_ms;
        self.notices.front().is_some_and(due)
    }

    pub fn notice(&mut self, now_ms: i64) -> Vec<Command> {
        match self.notices.pop_front() {
            Some((_, Notice::Assigned { generation })) => {
                self.generation = Some(generation);
                (self.last_claim, self.needs_leave) = (None, false);
                self.owner.step(now_ms, Input::Assigned)
            }
            Some((_, Notice::Revoked { memory })) => {
                self.generation = None;
                let commands = self.owner.step(now_ms, Input::Revoked);
                match memory {
                    Memory::Stays => {}
                    Memory::Goes => {
                        self.pair = None;
                        self.owner.step(now_ms, Input::Forgotten);
                    }
                    Memory::GoesWithTheOwner => self.start_anew(),
                }
                commands
            }
            None => Vec::new(),
        }
    }

    /// Memory is dropped, and the owner with it.
    fn start_anew(&mut self) {
        let seed = (self.incarnation << 16) + self.n_owners;
        self.n_owners += 1;
        self.owner = Owner::with_rules(settings(), seed, self.rules);
        (self.pair, self.read, self.asked, self.seen) = (None, 0, None, None);
        (self.acknowledged, self.answers, self.commits) = (Vec::new(), Vec::new(), Vec::new());
    }

    pub fn offer(&mut self, now_ms: i64) -> Vec<Command> {
        match &self.pair {
            Some(pair) => {
                let state = pair.account().state();
                self.owner.step(now_ms, Input::State(state))
            }
            None => Vec::new(),
        }
    }

    /// # Errors
    /// If it claims without leave of the group after a higher claim was read.
    pub fn claims(&mut self, session: Session) -> Result<(), String> {
        self.last_claim = Some(session);
        self.own.insert(session);
        match self.needs_leave {
            true => Err("peace: claimed again without leave of the group".to_owned()),
            false => Ok(()),
        }
    }
}
