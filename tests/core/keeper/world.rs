//! A schedule: a few processes with a keeper and a worker each, a topic, a group and a clock. A seed determines the order of
//! events.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use abgauge::clock::{Clock, ClockControl};
use abgauge::store::keeper::{
    self, KeeperHandle, KeeperOrder, KeeperSettings, KeeperWork, Memory, Offer, Urgency,
};
use abgauge::store::publications::Publications;
use abgauge_core::journal::{self, Claim, Namespace};

use crate::keeper::readers::{PATIENCE, Ticking, damage};
use crate::keeper::topic::{Connection, Faults, Topic};
use crate::state::dice::Dice;
use crate::state::judge::{Judge, Verdict};
use crate::state::pair::{Pair, identity};

const N_STEPS: usize = 600;
const LEASE_MS: i64 = 15_000;
/// Number of the only pair.
const PAIR: i32 = 0;

pub fn settings(seed: u64) -> KeeperSettings {
    KeeperSettings {
        owner: journal::OwnerSettings {
            namespace: namespace(),
            identity: identity(),
            claim: Claim::default(),
            answer_ms: 5_000,
            lease_ms: LEASE_MS,
            still_ms: 5_000,
        },
        interval_ms: 2_000,
        max_bytes_per_second: 1 << 20,
        leave_ms: 2_000,
        has_read: false,
        seed,
    }
}

pub fn namespace() -> Namespace {
    Namespace::of("slot 1", "group")
}

struct Process {
    work: KeeperWork<Connection>,
    handle: KeeperHandle,
    orders: Receiver<(i32, KeeperOrder)>,
    incarnation: Option<(Memory, Pair)>,
    /// Read positions of the offered states by offer.
    offered: BTreeMap<Offer, usize>,
    /// Read position of the last state that was to be shown.
    shown: Option<usize>,
    /// Current states for onlookers in this process, if there are any.
    publications: Option<Publications>,
    /// Position in the chain of the last state that was published.
    published: Option<usize>,
}

pub struct World {
    dice: Dice,
    clock: Clock,
    hand: ClockControl,
    topic: Topic,
    inputs: Vec<i64>,
    processes: Vec<Process>,
    assigned: Option<usize>,
    judge: Judge,
    is_reported: bool,
}

/// Runs a schedule, and prints its events if `is_reported`. Returns the number of states that were in force.
pub fn run(seed: u64, is_reported: bool) -> Result<usize, String> {
    run_world(World::new(seed, is_reported, false))
}

/// Runs a schedule in which each process follows the pair and publishes its states, whether or not the pair is assigned to it.
pub fn run_published(seed: u64) -> Result<usize, String> {
    run_world(World::new(seed, false, true))
}

fn run_world(mut world: World) -> Result<usize, String> {
    for _ in 0..N_STEPS {
        world.step()?;
    }
    world.peace()?;
    Ok(world.judge.n_states())
}

/// Runs a schedule with occasional readers of the topic. Returns the number of reads.
pub fn run_with_readers(seed: u64) -> Result<usize, String> {
    let mut world = World::new(seed, false, false);
    let mut n_read = 0;
    for _ in 0..N_STEPS {
        world.step()?;
        if world.dice.percent(3) {
            world.is_read()?;
            n_read += 1;
        }
    }
    world.peace()?;
    world.is_read()?;
    Ok(n_read + 1)
}

impl World {
    /// Reads the topic to its end, and checks that nothing in it is damaged.
    fn is_read(&mut self) -> Verdict {
        let mut reader = Ticking::reader(&self.topic, 1, None);
        let read = reader.read(PATIENCE);
        read.map_err(|unread| unread.to_string())?;
        self.judge_appends()?;
        match damage(&reader, namespace())[..] {
            [] => Ok(()),
            ref damage => Err(format!("whoever reads finds {damage:?}")),
        }
    }

    fn new(seed: u64, is_reported: bool, is_published: bool) -> World {
        let mut dice = Dice::new(seed);
        let faults = Faults::any(&mut dice);
        let (clock, hand) = Clock::simulated(1_000_000);
        let topic = Topic::new(namespace(), 1, dice.next(), faults);
        let process = |number: u64| {
            let log = topic.connect(clock.clone());
            let publications = is_published.then(|| Publications::new(LEASE_MS, clock.clone()));
            let settings = settings(seed << 8 | number);
            let (work, handle, orders) = keeper::work(log, settings, publications.clone(), clock.clone());
            Process {
                work,
                handle,
                orders,
                incarnation: None,
                offered: BTreeMap::new(),
                shown: None,
                publications,
                published: None,
            }
        };
        let processes = (0..3).map(process).collect();
        World {
            dice,
            clock,
            hand,
            topic,
            inputs: vec![10],
            processes,
            assigned: None,
            judge: Judge::new(LEASE_MS),
            is_reported,
        }
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.is_reported {
            println!("{:>9} {}", self.clock.lasting_ms(), what());
        }
    }

    fn step(&mut self) -> Verdict {
        let late = if self.dice.percent(3) { 3_000 } else { 100 };
        let ms = self.dice.below(late) as i64;
        self.advance(ms);
        match self.dice.below(100) {
            0..=2 => self.give_to_another(),
            3..=15 => self.write(),
            16..=17 => self.topic.compact(),
            _ => {
                let who = self.dice.below(self.processes.len());
                self.round(who)?;
            }
        }
        self.look()
    }

    fn advance(&mut self, ms: i64) {
        self.hand.advance_to(self.clock.lasting_ms() + ms);
    }

    fn write(&mut self) {
        let newest = self.inputs.iter().max().copied().unwrap_or(0);
        self.inputs.push(newest + self.dice.below(8) as i64 - 4);
    }

    /// Moves the pair to a random process, which may learn of it before the previous owner gives it back.
    fn give_to_another(&mut self) {
        let heir = self.dice.below(self.processes.len());
        if let Some(before) = self.assigned.replace(heir) {
            let leaves = self.dice.percent(50);
            self.take_from(before, leaves);
        }
        self.tell(|| format!("the group gives the pair to {heir}"));
        self.processes[heir].handle.assigned(PAIR);
    }

    fn take_from(&mut self, who: usize, leaves: bool) {
        self.tell(|| format!("{who} is to give it back, leaves: {leaves}"));
        let process = &mut self.processes[who];
        if leaves {
            let last = process.incarnation.as_ref().map(|(incarnation, pair)| {
                let account = pair.account();
                (*incarnation, account.header(), account.roles())
            });
            let position = process
                .incarnation
                .as_ref()
                .map(|(_, pair)| pair.account().position);
            let offer = process.handle.leave(PAIR, last);
            process.offered.extend(offer.zip(position));
            return;
        }
        process.handle.revoked(PAIR);
        if self.dice.percent(30)
            && let Some((incarnation, _)) = process.incarnation.take()
        {
            process.handle.forgotten(PAIR, incarnation);
        }
    }

    /// Runs one round of the keeper and one of the worker.
    fn round(&mut self, who: usize) -> Verdict {
        if !self.processes[who].work.round(0) {
            return Err(format!("{who} has ended"));
        }
        self.judge_appends()?;
        while let Ok((pair, order)) = self.processes[who].orders.try_recv() {
            assert_eq!(pair, PAIR);
            self.obey(who, order)?;
        }
        let process = &mut self.processes[who];
        if let Some((incarnation, pair)) = &mut process.incarnation {
            let n_records = self.dice.below(4);
            pair.read(&self.inputs, n_records)?;
            if pair.is_at_end(&self.inputs) && self.dice.percent(10) {
                pair.idle();
            }
            let wants = process.handle.wants(PAIR);
            // A completed cell is sealed before the interval is over.
            if wants == Urgency::AtOnce || (wants == Urgency::WhenDue && self.dice.percent(20)) {
                let account = pair.account();
                let offer = process
                    .handle
                    .offer(PAIR, *incarnation, account.header(), account.roles());
                process.offered.insert(offer, account.position);
                let incarnation = *incarnation;
                self.tell(|| {
                    let (position, moves) = (account.position, &account.moves);
                    format!("{who} offers {offer:?} of {incarnation:?}: {position}, {moves:?}")
                });
            }
        }
        Ok(())
    }

    fn judge_appends(&mut self) -> Verdict {
        let now_ms = self.clock.lasting_ms();
        for (key, value) in self.topic.sent() {
            self.judge.sent(key, &value)?;
        }
        for record in self.topic.landed() {
            let what = if record.value.is_some() {
                ""
            } else {
                "tombstone of "
            };
            self.tell(|| format!("lands {what}{:?}", record.key));
            self.judge.landed(&record, &self.inputs, now_ms)?;
        }
        Ok(())
    }

    fn obey(&mut self, who: usize, order: KeeperOrder) -> Verdict {
        let is_known = self.assigned == Some(who);
        self.tell(|| format!("{who} is ordered {}", brief(&order)));
        let process = &mut self.processes[who];
        match order {
            KeeperOrder::Begin { incarnation } => {
                process.handle.made(PAIR, incarnation);
                process.incarnation = Some((incarnation, Pair::begin(&self.inputs)));
            }
            KeeperOrder::Restore {
                incarnation,
                offer,
                header,
                roles,
            } => {
                let pair = Pair::restore(&header, &roles);
                process
                    .offered
                    .insert(offer, header.reaches[0].read_position as usize);
                process.shown = None;
                process.handle.made(PAIR, incarnation);
                process.incarnation = Some((incarnation, pair));
            }
            KeeperOrder::Show { offer } => {
                let position = process.offered.get(&offer).copied();
                let position = position.ok_or("shows what was never offered")?;
                if Some(position) < process.shown {
                    return Err("what is shown goes back".to_owned());
                }
                process.shown = Some(position);
            }
            KeeperOrder::Drop => process.incarnation = None,
            KeeperOrder::Refuse(refusal) => return Err(format!("{who} refuses: {refusal}")),
            KeeperOrder::Commit { number } => process.handle.committed(PAIR, number, is_known),
            KeeperOrder::Left => {}
        }
        Ok(())
    }

    fn look(&mut self) -> Verdict {
        let now_ms = self.clock.lasting_ms();
        for (who, process) in self.processes.iter_mut().enumerate() {
            while let Some((_, state)) = process.publications.as_ref().and_then(|of| of.next(true)) {
                let place = self.judge.place_of(state.seal.content)?;
                if Some(place) < process.published.replace(place) {
                    return Err("I8: an onlooker goes back".to_owned());
                }
            }
            if let Some(showing) = process.handle.showing(PAIR) {
                let shown = process.handle.shown(PAIR, now_ms);
                self.judge
                    .shown(who as u64, showing.session(), shown, None, now_ms)?;
            }
        }
        self.judge.one_lease(now_ms)
    }

    /// Stops all faults, and checks that the pair becomes quiescent at its owner.
    fn peace(&mut self) -> Verdict {
        self.topic.calm();
        if self.assigned.is_none() {
            self.give_to_another();
        }
        let mut unrest = String::new();
        for _ in 0..1_200 {
            self.advance(100);
            for who in 0..self.processes.len() {
                self.round(who)?;
            }
            self.look()?;
            match self.rest() {
                Ok(()) => return Ok(()),
                Err(why) => unrest = why,
            }
        }
        Err(format!("no rest: {unrest}"))
    }

    fn rest(&self) -> Verdict {
        let content = self.judge.at_rest(&self.inputs)?;
        let owner = self.assigned.expect("it is assigned");
        let handle = &self.processes[owner].handle;
        if handle.shown(PAIR, self.clock.lasting_ms()).settled != Some(content) {
            return Err("its owner does not show it".to_owned());
        }
        if self.processes[owner].shown != Some(self.inputs.len()) {
            return Err("its worker was not told to show it".to_owned());
        }
        let last = self.judge.place_of(content)?;
        let is_behind = |process: &Process| process.publications.is_some() && process.published != Some(last);
        match self.processes.iter().any(is_behind) {
            true => Err("an onlooker does not show it".to_owned()),
            false => Ok(()),
        }
    }
}

fn brief(order: &KeeperOrder) -> String {
    match order {
        KeeperOrder::Restore {
            incarnation,
            offer,
            header,
            ..
        } => {
            let position = header.reaches[0].read_position;
            format!("Restore {incarnation:?}, {offer:?}: {position}")
        }
        other => format!("{other:?}"),
    }
}
