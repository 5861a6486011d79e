//! Shards, and the threads that read them in parallel.
//!
//! ```text
//!            few records wait                many records wait
//! worker     read 0 │ read 1 │ round         read 0 ────────────┐ round
//! worker-1                                   read 1 ──────────┐ ┘
//!                                              └─ a shard goes to its thread by value, and comes back
//! ```
//!
//! Between two rounds the worker owns every shard, so nothing is shared and nothing is locked. Waking a thread and waiting
//! for it costs about 20 µs, as much as fifty records: a short queue is read on the worker's own thread. The first thread to
//! finish waits for the last one. If many records wait, each thread therefore reads several batches in a row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use abgauge_core::decode::Decoder;

use super::pair::Pair;
use super::phase::Phase;
use super::shard::{DeadLetterSink, Shard, ShardReport};
use crate::stream::keys::KeyAudit;
use crate::stream::schemas::Schemas;
use crate::stream::{Source, queue_of};

/// Number of waiting records from which a thread is woken.
const WORTH_A_THREAD: usize = 500;
/// Batches that each thread processes before all wait for the slowest one: about 8 ms.
const BATCHES: usize = 16;
/// More bytes than one batch of records can add to the state. If less is free for each shard, the shards are read one after
/// the other, because they share the bound.
const AMPLE_BYTES: u64 = 64 << 20;

pub struct Shards {
    /// Shards, indexed by [`queue_of`] their partitions.
    shards: Vec<Shard>,
    /// Threads of the shards, started when first needed. The first shard uses the worker's own thread.
    threads: Vec<Option<Thread>>,
    max_state_bytes: u64,
}

/// Reason why shards can no longer be read.
#[derive(Debug)]
pub struct Broken(pub String);

impl Shards {
    /// Makes one shard for each source. `max_state_bytes` bounds them all together.
    pub fn new(
        sources: Vec<Box<dyn Source>>,
        decoder: &Decoder,
        schemas: &Arc<Schemas>,
        one_topic: bool,
        max_state_bytes: u64,
    ) -> Shards {
        let shard = |source| Shard::new(source, decoder.clone(), schemas, one_topic);
        let shards: Vec<_> = sources.into_iter().map(shard).collect();
        Shards {
            threads: shards.iter().map(|_| None).collect(),
            shards,
            max_state_bytes,
        }
    }

    pub fn set_dead_letters(&mut self, dead_letters: Option<&DeadLetterSink>) {
        for shard in &mut self.shards {
            shard.set_dead_letters(dead_letters.cloned());
        }
    }

    /// Samples keys for these audits from now on.
    pub fn set_audits(&mut self, audits: &[KeyAudit]) {
        for shard in &mut self.shards {
            shard.set_samplers(audits.iter().map(KeyAudit::sampler).collect());
        }
    }

    /// Returns all known pairs, by partition.
    pub fn phases(&self) -> impl Iterator<Item = (i32, &Phase)> + Clone {
        let all = self.shards.iter().flat_map(Shard::phases);
        let mut all: Vec<_> = all.map(|(partition, phase)| (*partition, phase)).collect();
        all.sort_unstable_by_key(|(partition, _)| *partition);
        all.into_iter()
    }

    /// Returns all known pairs, by partition.
    pub fn phases_mut(&mut self) -> impl Iterator<Item = (i32, &mut Phase)> {
        let all = self.shards.iter_mut().flat_map(Shard::phases_mut);
        let mut all: Vec<_> = all.map(|(partition, phase)| (*partition, phase)).collect();
        all.sort_unstable_by_key(|(partition, _)| *partition);
        all.into_iter()
    }

    /// Returns the phase of a pair, if it is known.
    pub fn phase(&self, partition: i32) -> Option<&Phase> {
        self.phases()
            .find(|(number, _)| *number == partition)
            .map(|(_, phase)| phase)
    }

    /// Returns the pairs that are read.
    pub fn pairs(&self) -> impl Iterator<Item = (i32, &Pair)> + Clone {
        self.phases()
            .filter_map(|(partition, phase)| Some((partition, phase.reading()?)))
    }

    /// Returns the pairs that are read.
    pub fn pairs_mut(&mut self) -> impl Iterator<Item = (i32, &mut Pair)> {
        self.phases_mut()
            .filter_map(|(partition, phase)| Some((partition, phase.reading_mut()?)))
    }

    /// Returns the pairs that are read and shown.
    pub fn serving(&self) -> impl Iterator<Item = &Pair> + Clone {
        self.phases().filter_map(|(_, phase)| phase.serving())
    }

    /// Returns the partitions of the pairs whose start is not known yet.
    pub fn locating(&self) -> BTreeSet<i32> {
        let locating = self.phases().filter(|(_, phase)| phase.is_locating());
        locating.map(|(partition, _)| partition).collect()
    }

    pub fn reads_nothing(&self) -> bool {
        self.pairs().next().is_none()
    }

    /// Returns a pair if it is read.
    pub fn get_mut(&mut self, partition: i32) -> Option<&mut Pair> {
        let phase = self.shard_of(partition).phases_mut().get_mut(&partition);
        phase.and_then(Phase::reading_mut)
    }

    /// Returns a pair in any phase that has one.
    pub fn known_mut(&mut self, partition: i32) -> Option<&mut Pair> {
        let phase = self.shard_of(partition).phases_mut().get_mut(&partition);
        phase.and_then(Phase::pair_mut)
    }

    pub fn insert(&mut self, partition: i32, phase: Phase) {
        self.shard_of(partition).phases_mut().insert(partition, phase);
    }

    pub fn remove(&mut self, partition: i32) -> Option<Phase> {
        self.shard_of(partition).phases_mut().remove(&partition)
    }

    /// Moves a pair to another phase.
    pub fn change(&mut self, partition: i32, transition: impl FnOnce(Phase) -> Phase) {
        if let Some(phase) = self.remove(partition) {
            self.insert(partition, transition(phase));
        }
    }

    /// Removes and returns all pairs.
    pub fn take(&mut self) -> BTreeMap<i32, Phase> {
        let of_shard = |shard: &mut Shard| std::mem::take(shard.phases_mut());
        self.shards.iter_mut().flat_map(of_shard).collect()
    }

    #[cfg(test)]
    pub fn n_threads(&self) -> usize {
        self.threads.iter().flatten().count()
    }

    #[cfg(test)]
    pub fn set_source(&mut self, index: usize, source: Box<dyn Source>) {
        self.shards[index].set_source(source);
    }

    fn shard_of(&mut self, partition: i32) -> &mut Shard {
        let n = self.shards.len();
        &mut self.shards[queue_of(partition, n)]
    }

    /// Returns the news of each shard since the last call.
    pub fn take_news(&mut self) -> Vec<ShardReport> {
        self.shards.iter_mut().map(Shard::take_news).collect()
    }

    /// Returns the bytes of all engines. Pairs that are not read at the moment count, too.
    pub fn state_bytes(&self) -> u64 {
        let pairs = self.phases().filter_map(|(_, phase)| phase.pair());
        pairs.map(|pair| pair.engine().state_bytes()).sum()
    }

    /// Processes waiting records, at most a batch of each shard.
    ///
    /// # Errors
    /// A thread panicked or could not be started: its shard is lost.
    pub fn read(&mut self) -> Result<(), Broken> {
        let waiting: Vec<usize> = self.shards.iter().map(Shard::n_waiting).collect();
        // Measured once: the read keeps to what is free now.
        let free_bytes = self.max_state_bytes.saturating_sub(self.state_bytes());
        let n_large = waiting.iter().filter(|n| **n >= WORTH_A_THREAD).count();
        let share_bytes = free_bytes / self.shards.len() as u64;
        if n_large > 1 && share_bytes >= AMPLE_BYTES {
            self.read_in_parallel(&waiting, share_bytes)
        } else {
            self.read_sequentially(&waiting, free_bytes);
            Ok(())
        }
    }

    fn read_sequentially(&mut self, waiting: &[usize], mut free_bytes: u64) {
        for (shard, n_waiting) in self.shards.iter_mut().zip(waiting) {
            if *n_waiting > 0 {
                free_bytes = shard.read(free_bytes);
            }
        }
    }

    fn read_in_parallel(&mut self, waiting: &[usize], share_bytes: u64) -> Result<(), Broken> {
        let mut home = Vec::with_capacity(waiting.len());
        let mut away = Vec::new();
        for (index, shard) in std::mem::take(&mut self.shards).into_iter().enumerate() {
            // The first shard stays: the worker's own thread would otherwise just wait.
            if index > 0 && waiting[index] >= WORTH_A_THREAD {
                self.thread(index)?.send(shard, share_bytes);
                away.push(index);
            } else {
                home.push(shard);
            }
        }
        for shard in home.iter_mut().filter(|shard| shard.n_waiting() > 0) {
            read_batches(shard, share_bytes);
        }
        for index in away {
            // Indexes ascend, so each shard returns to the place that it had.
            home.insert(index, self.thread(index)?.receive()?);
        }
        self.shards = home;
        Ok(())
    }

    fn thread(&mut self, index: usize) -> Result<&mut Thread, Broken> {
        let thread = &mut self.threads[index];
        match thread {
            Some(thread) => Ok(thread),
            None => Ok(thread.insert(Thread::start(index)?)),
        }
    }
}

/// Processes several batches, as long as many records wait and `free_bytes` are left.
fn read_batches(shard: &mut Shard, mut free_bytes: u64) {
    for _ in 0..BATCHES {
        free_bytes = shard.read(free_bytes);
        if free_bytes < AMPLE_BYTES || shard.n_waiting() < WORTH_A_THREAD || shard.has_inputs() {
            return;
        }
    }
}

/// Thread that reads one shard at a time. Dropping this ends it.
struct Thread {
    // Dropped first, which ends the thread.
    shards: Option<SyncSender<(Shard, u64)>>,
    read: Receiver<Shard>,
    handle: Option<JoinHandle<()>>,
}

impl Thread {
    fn start(index: usize) -> Result<Thread, Broken> {
        let (shards, taken) = sync_channel::<(Shard, u64)>(1);
        let (give_back, read) = sync_channel(1);
        let run = move || {
            for (mut shard, free_bytes) in taken {
                read_batches(&mut shard, free_bytes);
                if give_back.send(shard).is_err() {
                    return;
                }
            }
        };
        let handle = std::thread::Builder::new()
            .name(format!("worker-{index}"))
            .spawn(run)
            .map_err(|error| {
                Broken(format!(
                    "a thread for ingest.workers could not be started: {error}"
                ))
            })?;
        Ok(Thread {
            shards: Some(shards),
            read,
            handle: Some(handle),
        })
    }

    /// Sends a shard to the thread. If the thread has ended, [`Self::receive`] reports why.
    fn send(&self, shard: Shard, free_bytes: u64) {
        if let Some(shards) = &self.shards {
            let _ = shards.send((shard, free_bytes));
        }
    }

    fn receive(&mut self) -> Result<Shard, Broken> {
        self.read.recv().map_err(|_| {
            let ended = self.handle.take().map(JoinHandle::join);
            let why = match ended {
                Some(Err(panic)) => panic_message(&*panic),
                _ => "it ended".to_owned(),
            };
            Broken(format!(
                "a worker thread panicked, which is a bug in abgauge: {why}"
            ))
        })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // Closing the channel ends the loop of the thread.
        self.shards = None;
        if let Some(handle) = self.handle.take() {
            // Its panic, if any, was printed when it happened.
            let _ = handle.join();
        }
    }
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it gave no reason".to_owned())
}
