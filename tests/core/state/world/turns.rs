//! Steps of a single instance.

use abgauge_core::journal::{OwnerCommand, RecordKey};

use super::World;
use crate::state::instance::{Instance, Life};
use crate::state::judge::Verdict;
use crate::state::pair::Pair;

impl World {
    pub(super) fn turn(&mut self, who: usize) -> Verdict {
        match self.instances[who].life {
            Life::Dead if self.dice.percent(20) => {
                self.instances[who] = self.new_instance();
                self.tell(|_| format!("{who} starts"));
                self.assigned = self.assigned.filter(|assigned| *assigned != who);
            }
            Life::Stopped | Life::Stuck if self.dice.percent(20) => {
                self.instances[who].life = Life::Runs;
                self.tell(|_| format!("{who} goes on"));
            }
            Life::Runs if self.dice.percent(self.faults.stops) => {
                let life = self.dice.one_of(&[Life::Stopped, Life::Stuck]);
                self.instances[who].life = life;
                self.tell(|_| format!("{who} is {life:?}"));
            }
            Life::Runs if self.dice.percent(self.faults.deaths) => {
                self.instances[who].life = Life::Dead;
                self.tell(|_| format!("{who} dies"));
            }
            Life::Runs if self.dice.percent(self.faults.deaf) => {
                return self.turn_deaf(who);
            }
            Life::Runs => return self.work(who),
            _ => {}
        }
        Ok(())
    }

    /// Cuts an instance off from the state partition, or reconnects it and first delivers the answer to its earlier question.
    pub(super) fn turn_deaf(&mut self, who: usize) -> Verdict {
        let instance = &mut self.instances[who];
        instance.is_deaf = !instance.is_deaf;
        let is_deaf = instance.is_deaf;
        self.tell(|_| format!("{who} is deaf: {is_deaf}"));
        if is_deaf {
            return Ok(());
        }
        let commands = self.instances[who].reach_end(self.now_ms);
        self.obey(who, "is at the end", commands)
    }

    pub(super) fn work(&mut self, who: usize) -> Verdict {
        if self.instances[who].must_hear() {
            return self.notice(who);
        }
        match self.dice.below(100) {
            0..=24 => self.go_round(who, 3),
            25..=39 => self.read_state(who, 4),
            40..=49 => self.ask(who),
            50..=54 => self.ask_and_compact(who),
            55..=64 => self.acknowledge(who),
            65..=70 => self.commit(who),
            71..=76 => self.notice(who),
            77..=81 => self.read_inputs(who, 3),
            82..=85 => self.idle(who),
            86..=96 => self.offer(who),
            _ => self.tick(who),
        }
    }

    /// Runs one round of the loop: delivers what is pending, reads the state to its end, then some inputs, and offers.
    pub(super) fn go_round(&mut self, who: usize, n_inputs: usize) -> Verdict {
        while !(self.instances[who].commits.is_empty() && self.instances[who].answers.is_empty()) {
            self.commit(who)?;
        }
        while !self.instances[who].acknowledged.is_empty() {
            self.acknowledge(who)?;
        }
        while !(self.instances[who].has_read(&self.log) || self.instances[who].is_deaf) {
            self.read_state(who, 1)?;
        }
        self.ask(who)?;
        self.read_inputs(who, n_inputs)?;
        self.offer(who)?;
        self.tick(who)
    }

    pub(super) fn read_state(&mut self, who: usize, at_most: usize) -> Verdict {
        if self.instances[who].is_deaf {
            return Ok(());
        }
        for _ in 0..=self.dice.below(at_most) {
            let instance = &mut self.instances[who];
            let (put, commands) = instance.read(&self.log, self.now_ms);
            if let Some(RecordKey::Seal(id)) = put
                && !instance.own.contains(&id.session)
            {
                instance.seen = instance.seen.max(self.judge.place(id));
            }
            self.obey(who, "reads", commands)?;
            if self.dice.percent(self.faults.answers) {
                let commands = self.instances[who].reach_end(self.now_ms);
                self.obey(who, "is at the end", commands)?;
            }
        }
        Ok(())
    }

    /// Asks for the end, unless an answer is pending; even then it sometimes asks again.
    pub(super) fn ask(&mut self, who: usize) -> Verdict {
        let instance = &self.instances[who];
        if !instance.is_deaf && (!instance.has_asked() || self.dice.percent(20)) {
            self.instances[who].ask(&self.log, self.now_ms);
        }
        self.read_state(who, 1)
    }

    /// Makes a record below the end obsolete: an instance that lags asks for the end, the record is appended again behind it,
    /// and compaction removes the first copy before it is read.
    pub(super) fn ask_and_compact(&mut self, who: usize) -> Verdict {
        let is_behind = |instance: &Instance| {
            instance.life == Life::Runs && !instance.is_deaf && !instance.has_read(&self.log)
        };
        let who = self.instances.iter().position(is_behind).unwrap_or(who);
        if self.instances[who].is_deaf {
            return Ok(());
        }
        self.instances[who].ask(&self.log, self.now_ms);
        let from = self.instances[who].position();
        for _ in 0..self.dice.below(4) {
            self.land_again(from)?;
        }
        if self.faults.cleaned > 0 {
            self.log.compact(100, &mut self.dice);
        }
        self.read_state(who, 4)
    }

    pub(super) fn acknowledge(&mut self, who: usize) -> Verdict {
        let instance = &mut self.instances[who];
        if instance.acknowledged.is_empty() {
            return Ok(());
        }
        let which = self.dice.below(instance.acknowledged.len());
        let commands = instance.acknowledge(which, self.now_ms);
        self.obey(who, "hears", commands)
    }

    /// Has the group answer a commit, or delivers an answer. The answer may be lost.
    pub(super) fn commit(&mut self, who: usize) -> Verdict {
        let is_known = self.assigned == Some(who) && self.instances[who].generation == Some(self.generation);
        let instance = &mut self.instances[who];
        if let Some(number) = instance.commits.pop() {
            if !self.dice.percent(self.faults.lost) {
                instance.answers.push((number, is_known));
            }
        } else if !instance.answers.is_empty() {
            let which = self.dice.below(instance.answers.len());
            let commands = instance.answer(which, self.now_ms);
            return self.obey(who, "is answered", commands);
        }
        Ok(())
    }

    pub(super) fn notice(&mut self, who: usize) -> Verdict {
        let notice = self.instances[who].notices.front().copied();
        let commands = self.instances[who].notice(self.now_ms);
        if let Some((_, notice)) = notice {
            self.tell(|_| format!("{who} hears {notice:?}"));
        }
        self.obey(who, "hears", commands)
    }

    pub(super) fn read_inputs(&mut self, who: usize, n_records: usize) -> Verdict {
        match &mut self.instances[who].pair {
            Some(pair) => pair.read(&self.inputs, n_records),
            None => Ok(()),
        }
    }

    pub(super) fn idle(&mut self, who: usize) -> Verdict {
        if let Some(pair) = &mut self.instances[who].pair
            && pair.is_at_end(&self.inputs)
        {
            pair.idle();
            self.tell(|_| format!("{who} makes an idle move"));
        }
        Ok(())
    }

    pub(super) fn offer(&mut self, who: usize) -> Verdict {
        let instance = &mut self.instances[who];
        if !instance.wants_state() && self.dice.percent(90) {
            return Ok(());
        }
        let commands = instance.offer(self.now_ms);
        self.obey(who, "offers", commands)
    }

    pub(super) fn tick(&mut self, who: usize) -> Verdict {
        let commands = self.instances[who].tick(self.now_ms);
        self.obey(who, "ticks", commands)
    }

    pub(super) fn obey(&mut self, who: usize, cause: &str, commands: Vec<OwnerCommand>) -> Verdict {
        self.instances[who].last_step_ms = self.now_ms;
        for command in commands {
            self.tell(|_| format!("{who} {cause}: {}", brief(&command)));
            match command {
                OwnerCommand::Send { key, value } => self.send(who, key, value)?,
                OwnerCommand::Commit { number } => self.instances[who].commits.push(number),
                OwnerCommand::Begin => self.instances[who].pair = Some(Pair::begin(&self.inputs)),
                OwnerCommand::Restore { seal, roles } => {
                    self.instances[who].pair = Some(Pair::restore(&seal.header, &roles));
                }
                OwnerCommand::Show { content } => drop(self.judge.place_of(content)?),
                OwnerCommand::Drop => self.instances[who].pair = None,
                OwnerCommand::Refuse(refusal) => return Err(format!("I10: {who} refuses: {refusal}")),
            }
        }
        Ok(())
    }
}

fn brief(command: &OwnerCommand) -> String {
    match command {
        OwnerCommand::Send { key, value: Some(_) } => format!("sends {key:?}"),
        OwnerCommand::Send { key, value: None } => format!("buries {key:?}"),
        OwnerCommand::Restore { seal, .. } => format!("restores {:x}", seal.content),
        OwnerCommand::Show { content } => format!("shows {content:x}"),
        other => format!("{other:?}"),
    }
}
