//! Records in memory, as a source that the test fills.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use abgauge_core::decode::framing::NoHeaders;
use abgauge_core::engine::event::Side;

use crate::stream::{Input, Record, Source};

/// Records of a batch, and of a slice of it. The odd sizes cut partitions at arbitrary records.
const BATCH: usize = 1009;
const SLICE: usize = 101;

#[derive(Debug, Clone)]
pub struct Owned {
    pub side: Side,
    pub partition: i32,
    pub offset: i64,
    pub timestamp_ms: i64,
    pub payload: Vec<u8>,
}

#[derive(Debug, Default, Clone)]
pub struct Memory(Arc<Mutex<VecDeque<Owned>>>);

impl Memory {
    pub fn push(&self, record: Owned) {
        self.0.lock().unwrap().push_back(record);
    }
}

impl Source for Memory {
    fn n_waiting(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn read(&mut self, take: &mut dyn FnMut(&[Record<'_>]), _: &mut Vec<Input>) -> usize {
        let mut queue = self.0.lock().unwrap();
        let n = queue.len().min(BATCH);
        let batch: Vec<Owned> = queue.drain(..n).collect();
        drop(queue);
        let neighbours = |one: &Owned, next: &Owned| {
            (one.side, one.partition) == (next.side, next.partition) && one.offset < next.offset
        };
        for slice in batch.chunk_by(neighbours).flat_map(|run| run.chunks(SLICE)) {
            let records: Vec<Record> = slice.iter().map(Owned::record).collect();
            take(&records);
        }
        n
    }
}

impl Owned {
    fn record(&self) -> Record<'_> {
        Record {
            side: self.side,
            partition: self.partition,
            offset: self.offset,
            timestamp_ms: self.timestamp_ms,
            key: Some(b"k"),
            payload: Some(&self.payload),
            headers: &NoHeaders,
        }
    }
}
