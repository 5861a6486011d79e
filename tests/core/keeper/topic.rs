//! An in-process state topic. Appends land late, twice or never, acknowledged or not, and readers lag. The seed determines
//! each outcome.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use abgauge::clock::Clock;
use abgauge_core::journal::{
    Cursor, EndQuestion, Log, LogEvent, LogProgress, Namespace, PartitionEvent, RecordKey, SharedBytes,
};

use crate::state::dice::Dice;
use crate::state::log::{self, Record};

/// Probabilities of faults in percent.
#[derive(Clone, Copy)]
pub struct Faults {
    pub late: usize,
    pub lost: usize,
    /// Share of lost claims and seals that are acknowledged all the same.
    pub forgotten: usize,
    pub unanswered: usize,
    pub doubled: usize,
    /// Share of questions that are never answered.
    pub unheard: usize,
    pub cleaned: usize,
}

impl Faults {
    pub const NONE: Faults = Faults {
        late: 0,
        lost: 0,
        forgotten: 0,
        unanswered: 0,
        doubled: 0,
        unheard: 0,
        cleaned: 0,
    };

    pub fn any(dice: &mut Dice) -> Faults {
        Faults {
            late: dice.one_of(&[0, 10, 40]),
            lost: dice.one_of(&[0, 0, 10]),
            forgotten: dice.one_of(&[0, 50]),
            unanswered: dice.one_of(&[0, 10, 30]),
            doubled: dice.one_of(&[0, 20, 60]),
            unheard: dice.one_of(&[0, 0, 20]),
            cleaned: dice.one_of(&[0, 30, 100]),
        }
    }
}

/// An append in flight.
struct Flight {
    partition: i32,
    record: Record,
    sender: Option<usize>,
}

struct Shared {
    namespace: Namespace,
    partitions: Vec<log::Log>,
    flights: Vec<Flight>,
    acknowledged: Vec<(usize, i32, RecordKey)>,
    dice: Dice,
    faults: Faults,
    n_connections: usize,
    /// Records handed over for appending, until [`Topic::sent`] takes them. `landed` is the same for records that have
    /// landed.
    sent: Vec<(RecordKey, SharedBytes)>,
    landed: Vec<Record>,
}

/// Handle to the topic. All clones share one topic.
#[derive(Clone)]
pub struct Topic(Arc<Mutex<Shared>>);

impl Topic {
    pub fn new(namespace: Namespace, n_partitions: usize, seed: u64, faults: Faults) -> Topic {
        Topic(Arc::new(Mutex::new(Shared {
            namespace,
            partitions: (0..n_partitions).map(|_| log::Log::default()).collect(),
            flights: Vec::new(),
            acknowledged: Vec::new(),
            dice: Dice::new(seed),
            faults,
            n_connections: 0,
            sent: Vec::new(),
            landed: Vec::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects a process.
    pub fn connect(&self, clock: Clock) -> Connection {
        let mut shared = self.lock();
        shared.n_connections += 1;
        Connection {
            id: shared.n_connections,
            topic: self.clone(),
            clock,
            partitions: BTreeMap::new(),
            answers: Vec::new(),
        }
    }

    /// Stops all faults, and lands all appends in flight.
    pub fn calm(&self) {
        self.lock().faults = Faults::NONE;
        self.land_all();
    }

    /// Lands all appends in flight.
    pub fn land_all(&self) {
        let mut shared = self.lock();
        while !shared.flights.is_empty() {
            shared.land_some();
        }
    }

    pub fn compact(&self) {
        let Shared {
            partitions,
            dice,
            faults,
            ..
        } = &mut *self.lock();
        for partition in partitions {
            partition.compact(faults.cleaned, dice);
        }
    }

    /// Loses all appends from now on.
    pub fn lose_what_is_sent(&self) {
        self.lock().faults.lost = 100;
    }

    /// Deletes all records.
    pub fn lose_all(&self) {
        let partitions = &mut self.lock().partitions;
        partitions
            .iter_mut()
            .for_each(|partition| *partition = log::Log::default());
    }

    pub fn sent(&self) -> Vec<(RecordKey, SharedBytes)> {
        std::mem::take(&mut self.lock().sent)
    }

    pub fn landed(&self) -> Vec<Record> {
        std::mem::take(&mut self.lock().landed)
    }

    /// Returns the keys of a partition that have not been deleted.
    pub fn keys(&self, partition: usize) -> Vec<RecordKey> {
        let shared = self.lock();
        let mut held = BTreeMap::new();
        let mut offset = 0;
        while let (Some(record), next) = shared.partitions[partition].next(offset) {
            held.insert(record.key, record.value.is_some());
            offset = next;
        }
        let put = held.into_iter().filter(|(_, is_put)| *is_put);
        put.map(|(key, _)| key).collect()
    }
}

impl Shared {
    fn append(&mut self, sender: usize, partition: i32, key: RecordKey, value: Option<SharedBytes>) {
        if let Some(value) = &value {
            self.sent.push((key, Arc::clone(value)));
        }
        let is_answered = value.is_some() && !self.dice.percent(self.faults.unanswered);
        let record = Record::new(self.namespace, key, value);
        if self.dice.percent(self.faults.lost) {
            let is_forgotten = !matches!(key, RecordKey::Blob(_)) && self.dice.percent(self.faults.forgotten);
            if is_answered && is_forgotten {
                self.acknowledged.push((sender, partition, key));
            }
            return;
        }
        let flight = |record, sender| Flight {
            partition,
            record,
            sender,
        };
        if self.dice.percent(self.faults.doubled) {
            self.flights.push(flight(record.clone(), None));
        }
        let append = flight(record, is_answered.then_some(sender));
        match self.dice.percent(self.faults.late) {
            true => self.flights.push(append),
            false => self.land(append),
        }
    }

    fn land(&mut self, flight: Flight) {
        let Flight {
            partition,
            record,
            sender,
        } = flight;
        let answer = sender.map(|sender| (sender, partition, record.key));
        self.acknowledged.extend(answer);
        self.landed.push(record.clone());
        self.partitions[partition as usize].append(record);
    }

    fn land_some(&mut self) {
        if !self.flights.is_empty() {
            let which = self.dice.below(self.flights.len());
            let flight = self.flights.swap_remove(which);
            self.land(flight);
        }
    }
}

#[derive(Default)]
struct Partition {
    cursor: Cursor,
    /// Next offset.
    read: usize,
}

/// A process's connection to the topic.
pub struct Connection {
    id: usize,
    topic: Topic,
    clock: Clock,
    partitions: BTreeMap<i32, Partition>,
    /// Answers in flight, with the end of the partition at the time of the question.
    answers: Vec<(i32, EndQuestion, i64)>,
}

impl Log for Connection {
    fn follow(&mut self, partition: i32) {
        self.partitions.entry(partition).or_default();
    }

    fn ask(&mut self, partition: i32, question: EndQuestion) {
        let mut shared = self.topic.lock();
        let end = shared.partitions[partition as usize].end() as i64;
        let unheard = shared.faults.unheard;
        if !shared.dice.percent(unheard) {
            self.answers.push((partition, question, end));
        }
        let asked = self.partitions.get_mut(&partition);
        asked.expect("it is followed").cursor.ask(question);
    }

    fn append(&mut self, partition: i32, key: RecordKey, value: Option<SharedBytes>) {
        self.topic.lock().append(self.id, partition, key, value);
    }

    fn poll(&mut self, _wait_ms: u64, take: &mut dyn FnMut(LogEvent<'_>)) {
        let now_ms = self.clock.lasting_ms();
        let shared = &mut *self.topic.lock();
        if shared.dice.percent(30) {
            shared.land_some();
        }
        let is_mine = |(sender, ..): &mut (usize, i32, RecordKey)| *sender == self.id;
        for (_, partition, key) in shared.acknowledged.extract_if(.., is_mine) {
            take(LogEvent::Partition(partition, PartitionEvent::Acknowledged(key)));
        }
        for (partition, question, end) in self.answers.drain(..) {
            let of = self.partitions.get_mut(&partition).expect("it is followed");
            let answer = of.cursor.answer(question, end, now_ms);
            hand_over(partition, of, answer, take);
        }
        for (partition, of) in &mut self.partitions {
            for _ in 0..shared.dice.below(12) {
                let (record, next) = shared.partitions[*partition as usize].next(of.read);
                of.read = of.read.max(next);
                if let Some(record) = record {
                    let (key, value) = (&record.text[..], record.value.as_deref());
                    let record = PartitionEvent::Record {
                        offset: of.read as i64 - 1,
                        key,
                        value,
                        written_ms: None,
                    };
                    take(LogEvent::Partition(*partition, record));
                }
                let n_bytes = record.map_or(0, |record| record.text.len());
                let answer = of.cursor.read(of.read as i64, n_bytes as u64, now_ms);
                hand_over(*partition, of, answer, take);
            }
        }
    }

    fn progress(&self, partition: i32) -> LogProgress {
        let of = self.partitions.get(&partition);
        of.map_or_else(LogProgress::default, |of| of.cursor.progress())
    }
}

fn hand_over(
    partition: i32,
    of: &mut Partition,
    event: Option<PartitionEvent<'static>>,
    take: &mut dyn FnMut(LogEvent<'_>),
) {
    let Some(event) = event else { return };
    if event == PartitionEvent::StartOver {
        of.cursor.start_over();
        of.read = 0;
    }
    take(LogEvent::Partition(partition, event));
}
