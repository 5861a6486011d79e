//! A schedule: a few instances, a log, a group and a clock, and what happens to them in the order that a seed decides.

use abgauge::state::{Bytes, Command, Key, Onlooker, Question, Rules};

use crate::dice::Dice;
use crate::instance::{Instance, LEASE_MS, Life, Notice, namespace};
use crate::judge::{Judge, Verdict};
use crate::log::{Log, Record};
use crate::pair::{Account, Pair, recount};

/// Steps with faults, before peace comes.
const N_STEPS: usize = 400;
/// Rounds of peace, half a second each, in which the pair must come to rest.
const N_ROUNDS: usize = 240;
/// More claims than this in peace are quarrel.
const MAX_CLAIMS: usize = 3;
/// A member that runs knows within this time what the group has decided.
const HEARTBEAT_MS: i64 = 5_000;

/// What goes wrong, in percent.
struct Faults {
    late: usize,
    lost: usize,
    unanswered: usize,
    doubled: usize,
    cleaned: usize,
    /// How often an instance stops, sticks, goes on, dies.
    stops: usize,
    deaths: usize,
    moves: usize,
    jumps: usize,
    /// How long a step may take, ms.
    pace_ms: usize,
    /// How often an instance no longer hears from the state partition, and hears from it again.
    deaf: usize,
    /// How often the answer to a question for the end arrives, when it might.
    answers: usize,
}

impl Faults {
    fn any(dice: &mut Dice) -> Faults {
        Faults {
            late: dice.one_of(&[0, 10, 30, 60]),
            lost: dice.one_of(&[0, 0, 5, 20]),
            unanswered: dice.one_of(&[0, 5, 30]),
            doubled: dice.one_of(&[0, 20, 60]),
            cleaned: dice.one_of(&[0, 30, 60, 100]),
            stops: dice.one_of(&[0, 1, 5]),
            deaths: dice.one_of(&[0, 1, 3]),
            moves: dice.one_of(&[10, 40, 100]),
            jumps: dice.one_of(&[0, 3, 10]),
            pace_ms: dice.one_of(&[60, 60, 400, 1_200]),
            deaf: dice.one_of(&[0, 0, 4]),
            answers: dice.one_of(&[100, 50, 10]),
        }
    }

    fn none() -> Faults {
        Faults {
            late: 0,
            lost: 0,
            unanswered: 0,
            doubled: 0,
            cleaned: 0,
            stops: 0,
            deaths: 0,
            moves: 0,
            jumps: 0,
            pace_ms: 0,
            deaf: 0,
            answers: 100,
        }
    }
}

/// An append that has not landed.
struct Flight {
    record: Record,
    /// Whom the acknowledgement is for, if there is to be one.
    sender: Option<u64>,
}

/// Somebody who reads the state without owning it.
struct Watcher {
    onlooker: Onlooker,
    read: usize,
    asked: Option<(Question, usize)>,
    place: Option<usize>,
}

pub struct World {
    dice: Dice,
    faults: Faults,
    rules: Rules,
    now_ms: i64,
    inputs: Vec<i64>,
    log: Log,
    flights: Vec<Flight>,
    instances: Vec<Instance>,
    n_incarnations: u64,
    /// Whom the group has given the pair to.
    assigned: Option<usize>,
    generation: u64,
    watcher: Watcher,
    judge: Judge,
    n_claims: usize,
    /// What happened, if somebody wants to know.
    story: Option<Vec<String>>,
}

/// What was violated, and what had happened, if it is told.
pub struct Failure {
    pub violated: String,
    pub story: Vec<String>,
}

/// Runs a schedule. Returns how many states were in force.
///
/// # Errors
/// The first invariant that was violated.
pub fn run(seed: u64, rules: Rules, is_told: bool) -> Result<usize, Failure> {
    let mut world = World::new(seed, rules, is_told);
    match world.faults_and_peace() {
        Ok(()) => Ok(world.judge.n_states()),
        Err(violated) => Err(Failure {
            violated,
            story: world.story.unwrap_or_default(),
        }),
    }
}

impl World {
    fn new(seed: u64, rules: Rules, is_told: bool) -> World {
        let mut dice = Dice::new(seed);
        let faults = Faults::any(&mut dice);
        let n_instances = 2 + dice.below(2);
        let onlooker = Onlooker::with_rules(namespace(), 1, LEASE_MS, rules);
        let mut world = World {
            dice,
            faults,
            rules,
            now_ms: 1_000_000,
            inputs: vec![10],
            log: Log::default(),
            flights: Vec::new(),
            instances: Vec::new(),
            n_incarnations: 0,
            assigned: None,
            generation: 0,
            watcher: Watcher {
                onlooker,
                read: 0,
                asked: None,
                place: None,
            },
            judge: Judge::new(LEASE_MS),
            n_claims: 0,
            story: is_told.then(Vec::new),
        };
        for _ in 0..n_instances {
            let instance = world.new_instance();
            world.instances.push(instance);
        }
        world
    }

    fn new_instance(&mut self) -> Instance {
        self.n_incarnations += 1;
        Instance::new(self.n_incarnations, self.rules)
    }

    fn tell(&mut self, what: impl FnOnce(&World) -> String) {
        if self.story.is_some() {
            let line = format!("{:>9} {}", self.now_ms, what(self));
            self.story.iter_mut().for_each(|story| story.push(line.clone()));
        }
    }

    fn faults_and_peace(&mut self) -> Verdict {
        self.assign(0);
        for _ in 0..N_STEPS {
            self.let_time_pass();
            self.step()?;
            self.look()?;
        }
        self.peace()
    }

    fn let_time_pass(&mut self) {
        self.now_ms += match self.dice.percent(self.faults.jumps) {
            true => self
                .dice
                .one_of(&[500, 1_000, 2_000, 4_000, 5_001, 8_000, 15_001]),
            false => self.dice.below(self.faults.pace_ms) as i64,
        };
    }

    /// Something happens somewhere.
    fn step(&mut self) -> Verdict {
        match self.dice.below(100) {
            0..=2 if self.dice.percent(self.faults.moves) => self.move_pair(),
            3..=11 => self.write_inputs(),
            12..=18 => return self.land_some(),
            19..=20 => self.log.compact(self.faults.cleaned, &mut self.dice),
            21..=24 => return self.watch(),
            _ => {
                let who = self.whom();
                return self.turn(who);
            }
        }
        Ok(())
    }

    /// Whose turn it is: mostly that of the member that has the pair.
    fn whom(&mut self) -> usize {
        match self.assigned {
            Some(who) if self.dice.percent(50) => who,
            _ => self.dice.below(self.instances.len()),
        }
    }

    fn write_inputs(&mut self) {
        let newest = self.inputs.iter().max().copied().unwrap_or(0);
        let ts = newest + self.dice.below(8) as i64 - 4;
        self.inputs.push(ts);
    }

    /// The group gives the pair to somebody, who may have it already.
    fn move_pair(&mut self) {
        let who = self.dice.below(self.instances.len());
        if self.instances[who].life != Life::Dead {
            self.assign(who);
        }
    }

    fn assign(&mut self, who: usize) {
        let due_ms = self.now_ms + HEARTBEAT_MS;
        let drops_memory = self.dice.percent(30);
        if let Some(before) = self.assigned {
            let notice = Notice::Revoked { drops_memory };
            self.instances[before].notices.push_back((due_ms, notice));
        }
        self.generation += 1;
        let generation = self.generation;
        let notice = Notice::Assigned { generation };
        self.instances[who].notices.push_back((due_ms, notice));
        self.assigned = Some(who);
        self.tell(|_| format!("the group gives the pair to {who}"));
    }

    fn land_some(&mut self) -> Verdict {
        if self.flights.is_empty() {
            return Ok(());
        }
        let which = self.dice.below(self.flights.len());
        let Flight { record, sender } = self.flights.swap_remove(which);
        self.land(record, sender)
    }

    fn land(&mut self, record: Record, sender: Option<u64>) -> Verdict {
        self.tell(|world| {
            let what = record.value.as_ref().map_or("tombstone of ", |_| "");
            format!("at {} lands {what}{:?}", world.log.end(), record.key)
        });
        let mut instances = self.instances.iter_mut();
        if let Some(instance) = instances.find(|instance| Some(instance.incarnation) == sender) {
            instance.acknowledged.push(record.key);
        }
        self.log.append(record.clone());
        self.judge.landed(&record, &self.inputs, self.now_ms)?;
        match record.key {
            Key::Claim(_) if record.value.is_some() && self.dice.percent(40) => self.land_seals(),
            Key::Seal(_) if self.dice.percent(30) => self.acknowledge_all_of(sender),
            _ => Ok(()),
        }
    }

    /// Seals that were sent before a claim, and land behind it.
    fn land_seals(&mut self) -> Verdict {
        let is_seal = |flight: &mut Flight| matches!(flight.record.key, Key::Seal(_));
        let seals: Vec<Flight> = self.flights.extract_if(.., is_seal).collect();
        for Flight { record, sender } in seals {
            self.land(record, sender)?;
        }
        Ok(())
    }

    /// It hears that its appends are in the log before it reads what else is.
    fn acknowledge_all_of(&mut self, sender: Option<u64>) -> Verdict {
        let runs = |instance: &Instance| Some(instance.incarnation) == sender && instance.life == Life::Runs;
        if let Some(who) = self.instances.iter().position(runs) {
            while !self.instances[who].acknowledged.is_empty() {
                self.acknowledge(who)?;
            }
        }
        Ok(())
    }

    /// What everybody may see.
    fn look(&mut self) -> Verdict {
        for instance in &self.instances {
            match instance.life {
                Life::Dead => self.judge.ended(instance.incarnation),
                Life::Stopped => self.judge.stopped(instance.incarnation),
                Life::Runs | Life::Stuck => {
                    let shown = instance.shown(self.now_ms);
                    let who = instance.incarnation;
                    self.judge.shown(who, shown, instance.seen, self.now_ms)?;
                }
            }
        }
        self.judge.one_lease(self.now_ms)
    }

    fn watch(&mut self) -> Verdict {
        let Watcher {
            onlooker,
            read,
            asked,
            place,
        } = &mut self.watcher;
        if asked.is_none() {
            *asked = Some((onlooker.question(0, self.now_ms), self.log.end()));
        }
        for _ in 0..self.dice.below(12) {
            let (record, next) = self.log.next(*read);
            *read = next;
            if let Some(record) = record {
                onlooker.take(0, &record.text, record.value.as_deref());
            }
        }
        if let Some((question, _)) = asked.take_if(|(_, end)| *end <= *read)
            && let Some(sealed) = onlooker.end(0, question)
        {
            let now = self.judge.place_of(sealed.seal.content)?;
            if Some(now) < place.replace(now) {
                return Err("I8: an onlooker goes back".to_owned());
            }
        }
        Ok(())
    }

    fn turn(&mut self, who: usize) -> Verdict {
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

    /// It is cut off from the state partition; or no longer, and hears first what it had asked before.
    fn turn_deaf(&mut self, who: usize) -> Verdict {
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

    fn work(&mut self, who: usize) -> Verdict {
        let now_ms = self.now_ms;
        let is_overdue = |(due_ms, _): &(i64, Notice)| *due_ms <= now_ms;
        if self.instances[who].notices.front().is_some_and(is_overdue) {
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

    /// All that a loop does: hears what there is, reads the state to its end, then some inputs, and offers.
    fn go_round(&mut self, who: usize, n_inputs: usize) -> Verdict {
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

    fn read_state(&mut self, who: usize, at_most: usize) -> Verdict {
        if self.instances[who].is_deaf {
            return Ok(());
        }
        for _ in 0..=self.dice.below(at_most) {
            let instance = &mut self.instances[who];
            let (put, commands) = instance.read(&self.log, self.now_ms);
            if let Some(Key::Seal(id)) = put
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

    /// An answer that is on its way is waited for, more often than not.
    fn ask(&mut self, who: usize) -> Verdict {
        let instance = &self.instances[who];
        if !instance.is_deaf && (!instance.has_asked() || self.dice.percent(20)) {
            self.instances[who].ask(&self.log, self.now_ms);
        }
        self.read_state(who, 1)
    }

    /// What lies below the end when it is asked for comes again behind it, and is taken before it is read.
    fn ask_and_compact(&mut self, who: usize) -> Verdict {
        if self.instances[who].is_deaf {
            return Ok(());
        }
        self.instances[who].ask(&self.log, self.now_ms);
        for _ in 0..self.dice.below(3) {
            self.land_again()?;
        }
        self.log.compact(self.faults.cleaned, &mut self.dice);
        self.read_state(who, 4)
    }

    /// One of the last appends is repeated: its answer was lost, or the leader of the partition has changed.
    fn land_again(&mut self) -> Verdict {
        let back = self.log.end().saturating_sub(self.dice.below(8) + 1);
        let (record, _) = self.log.next(back);
        match record.filter(|_| self.faults.doubled > 0).cloned() {
            Some(record) => self.land(record, None),
            None => Ok(()),
        }
    }

    fn acknowledge(&mut self, who: usize) -> Verdict {
        let instance = &mut self.instances[who];
        if instance.acknowledged.is_empty() {
            return Ok(());
        }
        let which = self.dice.below(instance.acknowledged.len());
        let commands = instance.acknowledge(which, self.now_ms);
        self.obey(who, "hears", commands)
    }

    /// The group answers a commit, or the answer arrives; it may be lost.
    fn commit(&mut self, who: usize) -> Verdict {
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

    fn notice(&mut self, who: usize) -> Verdict {
        let notice = self.instances[who].notices.front().copied();
        let commands = self.instances[who].notice(self.now_ms);
        if let Some((_, notice)) = notice {
            self.tell(|_| format!("{who} hears {notice:?}"));
        }
        self.obey(who, "hears", commands)
    }

    fn read_inputs(&mut self, who: usize, n_records: usize) -> Verdict {
        match &mut self.instances[who].pair {
            Some(pair) => pair.read(&self.inputs, n_records),
            None => Ok(()),
        }
    }

    fn idle(&mut self, who: usize) -> Verdict {
        if let Some(pair) = &mut self.instances[who].pair
            && pair.is_at_end(&self.inputs)
        {
            pair.idle();
            self.tell(|_| format!("{who} makes an idle move"));
        }
        Ok(())
    }

    fn offer(&mut self, who: usize) -> Verdict {
        let instance = &mut self.instances[who];
        if !instance.wants_state() && self.dice.percent(90) {
            return Ok(());
        }
        let commands = instance.offer(self.now_ms);
        self.obey(who, "offers", commands)
    }

    fn tick(&mut self, who: usize) -> Verdict {
        let commands = self.instances[who].tick(self.now_ms);
        self.obey(who, "ticks", commands)
    }

    fn obey(&mut self, who: usize, cause: &str, commands: Vec<Command>) -> Verdict {
        for command in commands {
            self.tell(|_| format!("{who} {cause}: {}", brief(&command)));
            match command {
                Command::Send { key, value } => self.send(who, key, value)?,
                Command::Commit { number } => self.instances[who].commits.push(number),
                Command::Begin => self.instances[who].pair = Some(Pair::begin(&self.inputs)),
                Command::Restore { seal, roles } => {
                    self.instances[who].pair = Some(Pair::restore(&seal.header, &roles));
                }
                Command::Show { content } => drop(self.judge.place_of(content)?),
                Command::Drop => self.instances[who].pair = None,
                Command::Refuse(refusal) => return Err(format!("I10: {who} refuses: {refusal}")),
            }
        }
        Ok(())
    }

    fn send(&mut self, who: usize, key: Key, value: Option<Bytes>) -> Verdict {
        if let Some(value) = &value {
            self.judge.sent(key, value)?;
        }
        let instance = &mut self.instances[who];
        if let (Key::Claim(session), Some(_)) = (key, &value) {
            self.n_claims += 1;
            instance.claims(session)?;
        }
        let is_answered = value.is_some() && !self.dice.percent(self.faults.unanswered);
        let sender = is_answered.then_some(instance.incarnation);
        let record = Record::new(namespace(), key, value);
        if self.dice.percent(self.faults.lost) {
            return Ok(());
        }
        if self.dice.percent(self.faults.doubled) {
            let record = record.clone();
            self.flights.push(Flight { record, sender: None });
        }
        let late = match key {
            Key::Seal(_) | Key::Claim(_) => self.faults.late * 3 / 2,
            Key::Blob(_) => self.faults.late / 2,
        };
        if self.dice.percent(late) {
            self.flights.push(Flight { record, sender });
            return Ok(());
        }
        self.land(record, sender)
    }

    /// Nothing goes wrong any more: what is under way lands, everybody goes on, and the pair comes to rest.
    fn peace(&mut self) -> Verdict {
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

    fn wake_all(&mut self) {
        for who in 0..self.instances.len() {
            match self.instances[who].life {
                Life::Dead => self.instances[who].notices.clear(),
                _ => self.instances[who].life = Life::Runs,
            }
            self.instances[who].is_deaf = false;
        }
        let is_alive = |who: &usize| self.instances[*who].life == Life::Runs;
        if self.assigned.is_none_or(|who| !is_alive(&who)) {
            let alive = (0..self.instances.len()).find(is_alive);
            let who = alive.unwrap_or_else(|| {
                self.instances[0] = self.new_instance();
                0
            });
            self.assign(who);
        }
    }

    /// Everybody does all there is to do.
    fn round(&mut self) -> Verdict {
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

    fn rest(&self) -> Verdict {
        let content = self.judge.at_rest(&self.inputs)?;
        let who = self.assigned.expect("it was assigned");
        if self.instances[who].shown(self.now_ms).settled != Some(content) {
            return Err("the owner does not show it".to_owned());
        }
        let mut states = self
            .watcher
            .onlooker
            .shown(self.now_ms)
            .map_err(|why| why.to_string())?;
        let seen = states.next().flatten().map(|sealed| sealed.seal.content);
        if seen != Some(content) {
            return Err("an onlooker does not show it".to_owned());
        }
        Ok(())
    }

    /// I1: the seal in force alone gives back all there is.
    fn is_restored_alone(&self) -> Verdict {
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

fn brief(command: &Command) -> String {
    match command {
        Command::Send { key, value: Some(_) } => format!("sends {key:?}"),
        Command::Send { key, value: None } => format!("buries {key:?}"),
        Command::Restore { seal, .. } => format!("restores {:x}", seal.content),
        Command::Show { content } => format!("shows {content:x}"),
        other => format!("{other:?}"),
    }
}
