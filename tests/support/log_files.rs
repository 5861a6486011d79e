//! Direct access to a broker's files, to damage a batch of records and to repair it.

use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use super::kafka::Kafka;

/// Position of a batch in a segment: first offset i64, i32 length of the rest, …, last offset − first i32 at byte 23.
struct Batch {
    offsets: RangeInclusive<i64>,
    begin: usize,
    length: usize,
}

impl Kafka {
    /// Inverts a byte of the batch with this offset behind the broker's back. The first call damages the batch, the second
    /// repairs it. Returns the offsets of the batch.
    ///
    /// # Panics
    /// If the partition's log has more than one segment, or does not hold the offset.
    #[track_caller]
    pub fn damage(&self, topic: &str, partition: i32, offset: i64) -> RangeInclusive<i64> {
        let path = self.segment(topic, partition);
        let log = fs::read(&path).expect("read the segment");
        let batch = batches(&log)
            .find(|batch| batch.offsets.contains(&offset))
            .expect("a batch with the offset");
        // This position is among the records, behind the batch header.
        let place = batch.begin + batch.length - 20;
        let file = File::options().write(true).open(path).expect("open the segment");
        file.write_all_at(&[!log[place]], place as u64)
            .expect("write the segment");
        batch.offsets
    }

    fn segment(&self, topic: &str, partition: i32) -> PathBuf {
        let dir = self.data_dir().join(format!("{topic}-{partition}"));
        dir.join("00000000000000000000.log")
    }
}

fn batches(log: &[u8]) -> impl Iterator<Item = Batch> {
    let number = |at: usize| Some(i32::from_be_bytes(log.get(at..at + 4)?.try_into().ok()?));
    let mut at = 0;
    std::iter::from_fn(move || {
        let first = i64::from_be_bytes(log.get(at..at + 8)?.try_into().ok()?);
        let (length, last) = (number(at + 8)? as usize + 12, number(at + 23)?);
        let batch = Batch {
            offsets: first..=first + i64::from(last),
            begin: at,
            length,
        };
        at += length;
        Some(batch)
    })
}
