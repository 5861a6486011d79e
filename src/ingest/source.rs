//! Where records come from, whether Kafka or a test: queues that partitions are spread over.

use super::{Input, Record};

/// A queue of records, read by one shard of the worker.
pub trait Source: Send {
    /// How many records wait, roughly.
    fn n_waiting(&self) -> usize;

    /// Hands over waiting records, at most a batch, in slices of one partition of one topic with ascending offsets; then
    /// other inputs. Never blocks. Returns the number of records.
    fn read(&mut self, take: &mut dyn FnMut(&[Record<'_>]), others: &mut Vec<Input>) -> usize;
}

/// The queue of a partition, out of `n` queues: neighbours are in different ones.
pub fn queue_of(partition: i32, n: usize) -> usize {
    partition.unsigned_abs() as usize % n
}
