//! A schedule: a few instances, a log and a group. A seed determines what happens to them and in which order.

mod appends;
mod faults;
mod hard_spots;
mod peace;
mod turns;

use abgauge_core::journal::{EndQuestion, JournalRules, Onlooker, PartitionView};

use self::faults::Faults;
use crate::state::dice::Dice;
use crate::state::instance::{Instance, LEASE_MS, Life, Memory, Notice, namespace};
use crate::state::judge::{Judge, Verdict};
use crate::state::log::{Log, Record};

/// Number of steps with faults.
const N_STEPS: usize = 400;
/// Time within which a running member learns of the group's decisions.
const HEARTBEAT_MS: i64 = 5_000;

/// An append in flight.
struct Flight {
    record: Record,
    /// Recipient of the acknowledgement, if there will be one.
    sender: Option<u64>,
}

/// A reader of the state that never owns it.
struct Watcher {
    view: PartitionView,
    onlooker: Onlooker,
    read: usize,
    asked: Option<(EndQuestion, usize)>,
    /// The state that it shows, and its position in the chain.
    shown: Option<u128>,
    place: Option<usize>,
}

pub struct World {
    dice: Dice,
    faults: Faults,
    rules: JournalRules,
    now_ms: i64,
    inputs: Vec<i64>,
    log: Log,
    flights: Vec<Flight>,
    instances: Vec<Instance>,
    n_incarnations: u64,
    /// Instance to which the group has assigned the pair.
    assigned: Option<usize>,
    generation: u64,
    watcher: Watcher,
    judge: Judge,
    n_claims: usize,
    /// Events so far, if they are recorded.
    story: Option<Vec<String>>,
}

/// The violated invariant and the events before it, if they were recorded.
pub struct Failure {
    pub violated: String,
    pub story: Vec<String>,
}

/// Runs a schedule. Returns the number of states that were in force.
///
/// # Errors
/// The first violated invariant.
pub fn run(seed: u64, rules: JournalRules, is_reported: bool) -> Result<usize, Failure> {
    let mut world = World::new(seed, rules, is_reported);
    match world.faults_and_peace() {
        Ok(()) => Ok(world.judge.n_states()),
        Err(violated) => Err(Failure {
            violated,
            story: world.story.unwrap_or_default(),
        }),
    }
}

impl World {
    fn new(seed: u64, rules: JournalRules, is_reported: bool) -> World {
        let mut dice = Dice::new(seed);
        let faults = Faults::any(&mut dice);
        let n_instances = 2 + dice.below(2);
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
                view: PartitionView::new(namespace(), rules),
                onlooker: Onlooker::default(),
                read: 0,
                asked: None,
                shown: None,
                place: None,
            },
            judge: Judge::new(LEASE_MS),
            n_claims: 0,
            story: is_reported.then(Vec::new),
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

    /// Makes one random step.
    fn step(&mut self) -> Verdict {
        match self.dice.below(100) {
            0..=2 if self.dice.percent(self.faults.moves) => self.move_pair(),
            3..=11 => self.write_inputs(),
            12..=18 => return self.land_some(),
            19..=20 => self.log.compact(self.faults.cleaned, &mut self.dice),
            21..=24 => return self.watch(),
            25 => return self.take_over(),
            26 => return self.claim_late(),
            27 if self.dice.percent(self.faults.moves) => return self.oversleep(),
            _ => {
                let who = self.whom();
                return self.turn(who);
            }
        }
        Ok(())
    }

    /// Picks the instance whose turn it is, often the one with the pair.
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

    /// Assigns the pair to a random instance, which may already have it.
    fn move_pair(&mut self) {
        let who = self.dice.below(self.instances.len());
        if self.instances[who].life != Life::Dead {
            self.assign(who);
        }
    }

    fn assign(&mut self, who: usize) {
        let due_ms = self.now_ms + HEARTBEAT_MS;
        let memory = match self.dice.below(100) {
            0..15 => Memory::Goes,
            15..30 => Memory::GoesWithTheOwner,
            _ => Memory::Stays,
        };
        if let Some(before) = self.assigned {
            let notice = Notice::Revoked { memory };
            self.instances[before].notices.push_back((due_ms, notice));
        }
        self.generation += 1;
        let generation = self.generation;
        let notice = Notice::Assigned { generation };
        self.instances[who].notices.push_back((due_ms, notice));
        self.assigned = Some(who);
        self.tell(|_| format!("the group gives the pair to {who}"));
    }

    /// Passes everything that an observer can see to the judge.
    fn look(&mut self) -> Verdict {
        for instance in &self.instances {
            match instance.life {
                Life::Dead => self.judge.ended(instance.incarnation),
                Life::Stopped => self.judge.stopped(instance.incarnation),
                Life::Runs | Life::Stuck => {
                    let shown = instance.shown(self.now_ms);
                    let who = instance.incarnation;
                    self.judge
                        .shown(who, instance.session(), shown, instance.seen, self.now_ms)?;
                }
            }
        }
        self.judge.one_lease(self.now_ms)
    }

    fn watch(&mut self) -> Verdict {
        let Watcher {
            view,
            onlooker,
            read,
            asked,
            shown,
            place,
        } = &mut self.watcher;
        if asked.is_none() {
            *asked = Some((view.question(self.now_ms), self.log.end()));
        }
        for _ in 0..self.dice.below(12) {
            let (record, next) = self.log.next(*read);
            *read = next;
            if let Some(record) = record {
                view.take(&record.text, record.value.as_deref());
            }
        }
        // The end counts only once every record before it has been read.
        let Some((question, _)) = asked.take_if(|(_, end)| *end <= *read) else {
            return Ok(());
        };
        let sealed = onlooker.end(view, question);
        if let Some(sealed) = sealed.map_err(|refusal| format!("I10: an onlooker reads that {refusal}"))? {
            *shown = Some(sealed.seal.content);
            let now = self.judge.place_of(sealed.seal.content)?;
            if Some(now) < place.replace(now) {
                return Err("I8: an onlooker goes back".to_owned());
            }
        }
        Ok(())
    }
}
