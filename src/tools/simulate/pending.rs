//! Records that have been created but have not arrived yet, in blocks by arrival time.
//!
//! ```text
//!   arrival ──▶
//!   │ block: in order  │ block │ block │ … the longest delay away
//!   │ of creation      │       │       │
//!     └─ sorted once no record can join it, then read
//! ```

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::block::Block;
use super::draft::RecordDraft;

/// Minimum and maximum range of arrival times in one block.
const SPANS_MS: std::ops::RangeInclusive<f64> = 256.0..=4_194_304.0;
/// Target number of lists in a block. With far fewer, most work would be spent on empty blocks.
const LISTS: f64 = 64.0;
/// Distance in blocks at which memory is reserved. Within this many of the shortest blocks (3 s, see `network_ms`) no list
/// and few clicks arrive, so the block is still nearly empty. A block that grows gradually is copied each time it doubles.
const SPANS_AHEAD: usize = 13;

const LOW_HALF: u64 = u32::MAX as u64;

/// Blocks that records are added to.
#[derive(Debug)]
pub struct Pending {
    span_ms: i64,
    /// Number of the first block, which begins this many spans after the epoch.
    first: i64,
    blocks: VecDeque<Block>,
}

impl Pending {
    /// Creates blocks sized for this rate. The order of records does not depend on it.
    pub fn new(lists_per_second: f64) -> Pending {
        let span_ms = (LISTS * 1000.0 / lists_per_second).clamp(*SPANS_MS.start(), *SPANS_MS.end());
        Pending {
            span_ms: span_ms as i64,
            first: 0,
            blocks: VecDeque::new(),
        }
    }

    pub fn put(&mut self, draft: RecordDraft) {
        // Euclidean, because times before 1970 are negative.
        let number = draft.arrival_ms.div_euclid(self.span_ms);
        if self.blocks.is_empty() {
            self.first = number;
        }
        // A later record may arrive before all that were added so far.
        while number < self.first {
            self.blocks.push_front(Block::default());
            self.first -= 1;
        }
        let index = (number - self.first) as usize;
        if index >= self.blocks.len() {
            self.blocks.resize_with(index + 1, Block::default);
        }
        self.blocks[index].put(draft);
    }

    /// Returns the end of the first block with a record, Unix ms, or `None` if there are no records.
    pub fn first_end_ms(&mut self) -> Option<i64> {
        while self.blocks.front()?.is_empty() {
            self.blocks.pop_front();
            self.first += 1;
        }
        Some((self.first + 1) * self.span_ms)
    }

    /// Removes the first block. No record may be added to it any more.
    pub fn take_first(&mut self) -> Arriving {
        self.first += 1;
        let block = self.blocks.pop_front().unwrap_or_default();
        if let Some(ahead) = self.blocks.get_mut(SPANS_AHEAD) {
            ahead.grow_like(&block);
        }
        Arriving::new(block, self.span_ms)
    }
}

/// Block that is read in the order of arrival, ties in the order of creation.
#[derive(Debug, Default)]
pub struct Arriving {
    block: Block,
    /// Remaining records in reverse order: arrival within the span (ms) in the high half, number of the entry in the low
    /// half.
    order: Vec<u64>,
}

impl Arriving {
    fn new(block: Block, span_ms: i64) -> Arriving {
        let key = |(number, arrival_ms): (usize, i64)| {
            let within_span = arrival_ms.rem_euclid(span_ms) as u64;
            within_span << 32 | number as u64
        };
        let mut order: Vec<u64> = block.arrivals_ms().enumerate().map(key).collect();
        order.sort_unstable_by_key(|key| Reverse(*key));
        Arriving { block, order }
    }

    pub fn next_arrival_ms(&self) -> Option<i64> {
        Some(self.block.arrival_ms((self.order.last()? & LOW_HALF) as usize))
    }

    pub fn take(&mut self) -> Option<RecordDraft<'_>> {
        Some(self.block.draft((self.order.pop()? & LOW_HALF) as usize))
    }
}

#[cfg(test)]
mod tests {
    use abgauge_core::engine::event::Side;

    use super::*;
    use crate::tools::simulate::RecordKind;
    use crate::tools::simulate::draft::{Content, Origin};

    /// Adds records with these arrivals, numbered in that order, and reads them all, at several rates.
    #[track_caller]
    fn check(arrivals: &[i64], expected: &[(i64, &str)]) {
        for lists_per_second in [100_000.0, 10.0, 0.000_01] {
            check_at(Pending::new(lists_per_second), arrivals, expected);
        }
    }

    #[track_caller]
    fn check_at(mut pending: Pending, arrivals: &[i64], expected: &[(i64, &str)]) {
        let span_ms = pending.span_ms;
        for (number, arrival_ms) in arrivals.iter().enumerate() {
            let number = number.to_string();
            pending.put(RecordDraft {
                arrival_ms: *arrival_ms,
                side: Side::Clicks,
                kind: RecordKind::Click,
                origin: Origin::default(),
                content: Content::Text(number.as_bytes()),
            });
        }
        let mut read = Vec::new();
        while let Some(end_ms) = pending.first_end_ms() {
            let mut arriving = pending.take_first();
            while let Some(arrival_ms) = arriving.next_arrival_ms() {
                let record = arriving.take().unwrap();
                assert!(record.arrival_ms == arrival_ms && (end_ms - span_ms..end_ms).contains(&arrival_ms));
                let Content::Text(number) = record.content else {
                    panic!("{record:?}");
                };
                read.push((arrival_ms, String::from_utf8(number.to_vec()).unwrap()));
            }
        }
        let read: Vec<_> = read.iter().map(|(ms, number)| (*ms, number.as_str())).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn records_are_read_by_arrival_with_ties_in_creation_order() {
        check(&[], &[]);
        check(
            &[700, 3, 255, 3, 256, 2],
            &[(2, "5"), (3, "1"), (3, "3"), (255, "2"), (256, "4"), (700, "0")],
        );
    }

    #[test]
    fn the_span_of_a_block_is_bounded_at_any_rate() {
        let span_ms = |lists_per_second| Pending::new(lists_per_second).span_ms;
        assert_eq!(
            [1e6, 250.0, 64.0, 1.0, 1e-5].map(span_ms),
            [256, 256, 1_000, 64_000, 4_194_304]
        );
    }

    #[test]
    fn a_record_can_arrive_long_before_others_and_before_the_epoch() {
        check(
            &[1_000_000, -1, -257],
            &[(-257, "2"), (-1, "1"), (1_000_000, "0")],
        );
    }
}
