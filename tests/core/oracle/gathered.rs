//! Lists of one record per shown item, worked by hand. The span is 6, lateness 5: the list of 100 is complete when a row of 112
//! was read.

use abgauge_core::engine::event::Side;
use abgauge_core::engine::outcome::Outcome;
use abgauge_core::engine::{GatherRules, Rules};

use crate::oracle::pair::{Pair, RULES, list};
use crate::oracle::world::{List, Says};

pub const GATHER: GatherRules = GatherRules {
    span_ms: 6,
    max_items: 3,
};

fn pair() -> Pair {
    let rules = Rules {
        gather: Some(GATHER),
        same_list_ms: 20,
        ..RULES
    };
    Pair::with(rules, None)
}

/// Reads a row; `None` if it waits.
fn row(pair: &mut Pair, id: u8, ts: i64, item: u16, position: i64) -> Option<Outcome> {
    let row = List {
        position,
        ..list(&[(0, 0)], id, ts, &[item])
    };
    pair.try_read(Side::Served, ts, Says::List(row))
}

fn accepted(pair: &mut Pair) -> u64 {
    pair.counts().outcome(Side::Served, Outcome::Accepted)
}

#[test]
fn a_list_opens_once_the_watermark_passes_its_time_and_the_span() {
    let mut pair = pair();
    assert_eq!(row(&mut pair, 1, 100, 5, 0), None);
    assert_eq!(row(&mut pair, 1, 106, 6, 1), None);
    assert_eq!(row(&mut pair, 2, 111, 5, 0), None);
    assert_eq!((accepted(&mut pair), pair.engine.n_open_lists()), (0, 0));
    // The watermark is 107 now: a row of 106 could have come until then.
    row(&mut pair, 3, 112, 5, 0);
    assert_eq!((accepted(&mut pair), pair.engine.n_open_lists()), (2, 1));
    assert_eq!(pair.end(), [(100, [1, 2, 0]), (110, [2, 2, 0])]);
}

#[test]
fn rows_on_either_side_of_the_head_are_its_list_and_rank_by_position() {
    let mut pair = pair();
    for (ts, item, position) in [(104, 7, 30), (100, 5, 10), (110, 6, 20)] {
        assert_eq!(row(&mut pair, 1, ts, item, position), None);
    }
    // One beyond the span is the head of another list, and a copy.
    assert_eq!(row(&mut pair, 1, 111, 8, 0), None);
    pair.click(1, 112, 6);
    assert_eq!(pair.value("mrr"), Some(1.0 / 2.0));
    assert_eq!(pair.counts().outcome(Side::Served, Outcome::Accepted), 3);
    assert_eq!(pair.counts().outcome(Side::Served, Outcome::Duplicate), 1);
    assert_eq!(pair.settled().len(), 1, "at the time of its head");
}

#[test]
fn a_repeated_row_is_a_duplicate_and_an_excess_row_is_invalid() {
    let mut pair = pair();
    assert_eq!(row(&mut pair, 1, 100, 5, 0), None);
    assert_eq!(row(&mut pair, 1, 103, 5, 0), Some(Outcome::Duplicate));
    assert_eq!(row(&mut pair, 1, 103, 5, 1), None, "at another position");
    assert_eq!(row(&mut pair, 1, 103, 6, 1), None, "beside it");
    assert_eq!(row(&mut pair, 1, 103, 7, 2), Some(Outcome::Invalid));
    assert_eq!(pair.end(), [(100, [1, 3, 0])]);
    assert_eq!(pair.counts().repeated_items, 1);
}

#[test]
fn a_row_after_silence_has_completed_its_list_is_late() {
    let mut pair = pair();
    assert_eq!(row(&mut pair, 1, 100, 5, 0), None);
    pair.idle(Side::Served, Some(200));
    assert_eq!(accepted(&mut pair), 1);
    assert_eq!(row(&mut pair, 1, 103, 6, 1), Some(Outcome::LateRow));
    assert_eq!(row(&mut pair, 2, 103, 6, 1), None, "another list");
    // Once the topic's own watermark has passed the span, such rows are late.
    row(&mut pair, 3, 130, 5, 0);
    assert_eq!(row(&mut pair, 1, 103, 7, 2), Some(Outcome::Late));
    pair.close_all();
    assert_eq!(pair.engine.state_bytes(), 0);
}

#[test]
fn waiting_rows_count_toward_the_memory_limit() {
    let mut pair = pair();
    row(&mut pair, 1, 100, 5, 0);
    let one = pair.engine.state_bytes();
    row(&mut pair, 1, 100, 6, 1);
    let two = pair.engine.state_bytes();
    row(&mut pair, 2, 100, 6, 1);
    assert!(0 < one && one < two && two < pair.engine.state_bytes());
}
