//! Positions in the checkpoint of a pair.

use abgauge_core::engine::event::{Batch, Position, Side};
use abgauge_core::engine::{
    Accepted, Checkpoint, CopiesCheckpoint, GatherCheckpoint, LogCheckpoint, ResumePoint, Rules,
};
use abgauge_core::ledger::{Keep, PairTracker};
use abgauge_core::metrics::Ranking;

use crate::oracle::drive::push;
use crate::oracle::world::{List, Record, Says, Shelf, T0, usual};

#[test]
fn a_checkpoint_has_the_read_position_if_nothing_before_it_is_open() {
    let rules = Rules {
        attribution_ms: 10,
        click_skew_ms: 0,
        same_list_ms: 0,
        lateness_ms: 5,
        max_future_ms: 0,
        slot_ms: 5,
        max_off_list: 1,
        max_lists_per_click: 1,
        max_arms: 1,
        one_topic: false,
        gather: None,
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
            shelf: Shelf::Without,
            ts_ms: T0,
            user: None,
            items: vec![1],
            position: 0,
            arms: [(0, 0)].into(),
        }),
    };
    let read = |tracker: &mut PairTracker, record: &Record, room_bytes| {
        let mut batch = Batch::default();
        push(&mut batch, record);
        tracker.apply(&batch, room_bytes);
    };
    let at = |offset, newest_ms| ResumePoint { offset, newest_ms };
    let accepted = Accepted {
        first_ms: T0,
        last_ms: T0,
        last_record_ms: T0,
    };
    let check = |tracker: &mut PairTracker, n_open, is_exact, position: ResumePoint, resume| {
        let found = tracker.checkpoint(&[(Side::Served, position.offset)]);
        let found = found.expect("it does not replay");
        let open = found.logs[0].open;
        assert_eq!((open.n, open.hash != 0), (n_open, n_open > 0));
        let expected = Checkpoint {
            until_ms: tracker.ledger().until_ms(),
            begin_ms: None,
            accepted: (position.offset > 7).then_some(accepted),
            is_exact,
            logs: vec![LogCheckpoint {
                side: Side::Served,
                position,
                resume,
                open,
            }],
            copies: CopiesCheckpoint::default(),
            gathered: GatherCheckpoint::default(),
            folded: Vec::new(),
        };
        assert_eq!(found, expected);
    };
    let fresh = at(7, None);
    check(&mut tracker, 0, true, fresh, fresh);
    read(&mut tracker, &list(7, 1), u64::MAX);
    check(&mut tracker, 1, true, at(8, Some(T0)), fresh);
    read(&mut tracker, &list(8, 2), 0);
    check(&mut tracker, 1, false, at(9, Some(T0)), fresh);
    assert_eq!(tracker.ledger().until_ms(), None);
    tracker.close_all();
    let end = at(9, Some(T0));
    check(&mut tracker, 0, false, end, end);
    assert!(tracker.ledger().until_ms() > Some(T0));
}
