//! Records that were made and have not arrived yet, in blocks by the time of their arrival.
//!
//! ```text
//!   arrival ──▶
//!   │ block: in the order │ block │ block │ … the longest delay away
//!   │ of their making     │       │       │
//!     └─ sorted once no record can join it, then read
//! ```

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::block::Block;
use super::draft::Draft;

/// Arrival time of one block, the shortest and the longest.
const SPANS_MS: std::ops::RangeInclusive<f64> = 256.0..=4_194_304.0;
/// Lists of a block, where its span allows it: far fewer, and most of the work were with empty blocks.
const LISTS: f64 = 64.0;
/// So many of the shortest blocks ahead of the first no list arrives yet, and few clicks (3 s, see `network_ms`): time to give a
/// block the room that another took. One that grows by and by is copied as often as it doubles.
const SPANS_AHEAD: usize = 13;

const LOW_HALF: u64 = u32::MAX as u64;

/// The blocks that records are put into.
#[derive(Debug)]
pub struct Pending {
    span_ms: i64,
    /// Number of the first block: it begins at so many spans since the epoch.
    first: i64,
    blocks: VecDeque<Block>,
}

impl Pending {
    /// For so many lists a second; the order of records does not depend on it.
    pub fn new(lists_per_second: f64) -> Pending {
        let span_ms = (LISTS * 1000.0 / lists_per_second).clamp(*SPANS_MS.start(), *SPANS_MS.end());
        Pending {
            span_ms: span_ms as i64,
            first: 0,
            blocks: VecDeque::new(),
        }
    }

    pub fn put(&mut self, draft: Draft) {
        let number = draft.arrival_ms.div_euclid(self.span_ms);
        if self.blocks.is_empty() {
            self.first = number;
        }
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

    /// When the first block ends that holds a record, epoch ms; `None` where there is none.
    pub fn first_end_ms(&mut self) -> Option<i64> {
        while self.blocks.front()?.is_empty() {
            self.blocks.pop_front();
            self.first += 1;
        }
        Some((self.first + 1) * self.span_ms)
    }

    /// Takes the first block: no record may be put into it any more.
    pub fn take_first(&mut self) -> Arriving {
        self.first += 1;
        let block = self.blocks.pop_front().unwrap_or_default();
        if let Some(ahead) = self.blocks.get_mut(SPANS_AHEAD) {
            ahead.grow_like(&block);
        }
        Arriving::new(block, self.span_ms)
    }
}

/// A block that is read in the order of arrival, ties in the order of their making.
#[derive(Debug, Default)]
pub struct Arriving {
    block: Block,
    /// Arrival within the span (ms) in the high half, number of the entry in the low one: what is left, the last first.
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

    pub fn take(&mut self) -> Option<Draft<'_>> {
        Some(self.block.draft((self.order.pop()? & LOW_HALF) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::event::Side;
    use crate::simulate::RecordKind;
    use crate::simulate::draft::{Content, Origin};

    /// Puts records of these arrivals, numbered in that order, and reads them all, whatever the rate.
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
            pending.put(Draft {
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
    fn records_are_read_by_arrival_and_ties_in_the_order_of_their_making() {
        check(&[], &[]);
        check(
            &[700, 3, 255, 3, 256, 2],
            &[(2, "5"), (3, "1"), (3, "3"), (255, "2"), (256, "4"), (700, "0")],
        );
    }

    #[test]
    fn a_block_has_room_for_some_lists_within_bounds() {
        let span_ms = |lists_per_second| Pending::new(lists_per_second).span_ms;
        assert_eq!(
            [1e6, 250.0, 64.0, 1.0, 1e-5].map(span_ms),
            [256, 256, 1_000, 64_000, 4_194_304]
        );
    }

    #[test]
    fn one_may_arrive_long_before_all_others_and_before_the_epoch() {
        check(
            &[1_000_000, -1, -257],
            &[(-257, "2"), (-1, "1"), (1_000_000, "0")],
        );
    }
}
