//! Source of records, from Kafka or a test: queues that the partitions are spread over.

use super::{Input, Record};

/// Queue of records, read by one shard of the worker.
pub trait Source: Send {
    /// Returns roughly how many records wait.
    fn n_waiting(&self) -> usize;

    /// Hands over waiting records, at most a batch, in slices of one partition of one topic with ascending offsets; then
    /// other inputs. Never blocks. Returns the number of records.
    fn read(&mut self, take: &mut dyn FnMut(&[Record<'_>]), others: &mut Vec<Input>) -> usize;
}

/// Returns the queue of a partition, out of `n` queues. Neighboring partitions are in different ones.
pub fn queue_of(partition: i32, n: usize) -> usize {
    partition.unsigned_abs() as usize % n
}
