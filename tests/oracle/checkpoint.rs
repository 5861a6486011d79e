//! What a pair says that it stands at.

use abgauge::engine::event::{Batch, Position, Side};
use abgauge::engine::ranking::Ranking;
use abgauge::engine::{ResumePoint, Rules};
use abgauge::ledger::{Checkpoint, Keep, LogCheckpoint, PairTracker};

use crate::drive::push;
use crate::world::{List, Record, Says, T0, usual};

#[test]
fn a_checkpoint_has_the_read_position_where_nothing_before_it_is_open() {
    let rules = Rules {
        attribution_ms: 10,
        click_skew_ms: 0,
        lateness_ms: 5,
        max_future_ms: 0,
        slot_ms: 5,
        max_off_list: 1,
        max_lists_per_click: 1,
        max_arms: 1,
        one_topic: false,
    };
    let ranking = Ranking::new(&usual());
    let mut tracker = PairTracker::new(rules, ranking, None, &Keep::default());
    let list = |offset, id| Record {
        at: Position {
            side: Side::Served,
            offset,
            record_ts_ms: T0,
        },
        says: Says::List(List {
            id,
            ts_ms: T0,
            user: None,
            items: vec![1],
            arms: [(0, 0)].into(),
        }),
    };
    let read = |tracker: &mut PairTracker, record: &Record, room_bytes| {
        let mut batch = Batch::default();
        push(&mut batch, record);
        tracker.apply(&batch, room_bytes);
    };
    let at = |offset, newest_ms| ResumePoint { offset, newest_ms };
    let expected = |until_ms, is_exact, position, resume| Checkpoint {
        until_ms,
        begin_ms: None,
        is_exact,
        logs: vec![LogCheckpoint {
            side: Side::Served,
            position,
            resume,
        }],
    };
    let fresh = at(7, None);
    assert_eq!(
        tracker.checkpoint(&[(Side::Served, 7)]),
        expected(None, true, fresh, fresh)
    );
    read(&mut tracker, &list(7, 1), u64::MAX);
    let next = at(8, Some(T0));
    assert_eq!(
        tracker.checkpoint(&[(Side::Served, 8)]),
        expected(None, true, next, fresh)
    );
    read(&mut tracker, &list(8, 2), 0);
    let next = at(9, Some(T0));
    assert_eq!(
        tracker.checkpoint(&[(Side::Served, 9)]),
        expected(None, false, next, fresh)
    );
    tracker.close_all();
    let settled = tracker.checkpoint(&[(Side::Served, 9)]);
    assert_eq!(settled.logs[0].resume, next);
    assert_eq!(settled.until_ms, tracker.ledger().until_ms());
}
