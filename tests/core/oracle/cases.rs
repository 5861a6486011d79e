//! Clauses of the join that look odd, each worked by hand. Times are relative to [`T0`].

use std::sync::Arc;

use abgauge_core::engine::event::Side;
use abgauge_core::engine::outcome::Outcome::{
    Accepted, AfterSettled, Duplicate, Future, Late, Replayed, Shed,
};
use abgauge_core::engine::{RefusedArm, Rules};
use abgauge_core::metrics::{Measures, Profile};

use crate::oracle::drive::{catalogue, half_of_user};
use crate::oracle::pair::{Pair, RULES, list};
use crate::oracle::world::{Click, List, Says, Shelf, T0, UnreadableClick, usual};
use crate::twin::Items;
use crate::twin::items::Known;
use crate::twin::measured::all_metrics;

#[test]
fn a_late_list_moves_nothing_and_a_list_at_the_watermark_is_in_time() {
    let mut pair = Pair::new();
    assert_eq!(pair.list(1, 100, &[]), Accepted);
    assert_eq!(pair.list(2, 95, &[]), Accepted);
    assert_eq!(pair.list(3, 94, &[]), Late);
    assert_eq!(pair.newest(Side::Served), Some(100));
}

#[test]
fn an_event_too_far_ahead_of_its_record_moves_nothing() {
    let mut pair = Pair::new();
    assert_eq!(
        pair.read(Side::Served, 96, Says::List(list(&[], 1, 100, &[]))),
        Future
    );
    assert_eq!(pair.newest(Side::Served), None);
    assert_eq!(
        pair.read(Side::Served, 97, Says::List(list(&[], 1, 100, &[]))),
        Accepted
    );
}

#[test]
fn a_duplicate_moves_the_watermark_but_is_not_an_accepted_list() {
    let mut pair = copies_within(9);
    assert_eq!(pair.list(1, 100, &[]), Accepted);
    assert_eq!(pair.list(1, 109, &[]), Duplicate);
    assert_eq!(pair.newest(Side::Served), Some(109));
    assert_eq!(pair.engine.accepted_ms(), Some((T0 + 100, T0 + 100)));
    assert_eq!(pair.list(2, 103, &[]), Late);
}

#[test]
fn a_list_of_a_settled_slot_moves_the_watermark() {
    let mut pair = Pair::new();
    pair.list(1, 100, &[]);
    for side in Side::BOTH {
        pair.idle(side, Some(1000));
    }
    assert_eq!(pair.frontier(), Some(960));
    assert_eq!(pair.list(2, 500, &[]), AfterSettled);
    assert_eq!(pair.list(3, 494, &[]), Late);
    assert_eq!(pair.list(4, 960, &[]), Accepted);
}

#[test]
fn an_arm_with_refused_lists_alone_is_named_and_takes_no_place_of_another() {
    let mut pair = Pair::with(Rules { max_arms: 1, ..RULES }, None);
    pair.list_of(&[], 1, 100, &[]);
    assert_eq!(pair.list_of(&[(1, 1)], 2, 94, &[]), Late);
    assert_eq!(pair.list_of(&[(1, 1)], 3, 93, &[]), Late);
    assert_eq!(pair.engine.arms().len(), 0);
    let refused = pair.engine.take_refused();
    let names: Vec<&RefusedArm> = refused.iter().map(|list| &list.arm).collect();
    assert!(
        matches!(names[..], [RefusedArm::Unlisted(one), RefusedArm::Unlisted(other)] if one == other),
        "{names:?}"
    );
    assert_eq!(pair.list_of(&[(0, 0)], 4, 100, &[]), Accepted);
    assert_eq!(pair.list_of(&[(0, 0)], 5, 94, &[]), Late);
    assert_eq!(pair.engine.take_refused()[0].arm, RefusedArm::Admitted(0));
    assert_eq!((pair.engine.arms().len(), pair.engine.n_folded_arms()), (1, 0));
}

#[test]
fn a_refused_click_settles_with_its_list_whichever_comes_first() {
    for clicks_first in [true, false] {
        let mut pair = Pair::new();
        let read_clicks = |pair: &mut Pair| {
            // Not counted yet.
            pair.unreadable_click(1, 12, None, Some(3));
            pair.click(8, 12, 5);
            // Found by the record's time, then by the click's own time, twice.
            pair.unreadable_click(1, 12, None, Some(3));
            pair.unreadable_click(2, 90, Some(14), None);
            pair.unreadable_click(2, 90, Some(14), None);
            // Clicks on a list shown later, on a list shown too long ago, and on no list.
            pair.unreadable_click(1, 4, None, Some(3));
            pair.click(8, 44, 5);
            pair.unreadable_click(1, 42, None, Some(3));
            pair.unreadable_click(9, 12, None, Some(3));
        };
        if clicks_first {
            read_clicks(&mut pair);
        }
        assert_eq!(pair.list(1, 11, &[5]), Accepted);
        let of_user = Says::List(List {
            user: Some(1),
            ..list(&[(0, 0), (1, 0)], 2, 13, &[5])
        });
        assert_eq!(pair.read(Side::Served, 13, of_user), Accepted);
        if !clicks_first {
            read_clicks(&mut pair);
        }
        assert_eq!((pair.results(), pair.engine.n_waiting()), ([0; 5], 2));
        assert_eq!(pair.engine.take_refused(), []);
        pair.end();
        // The second list has a user, and two arms.
        let [one, three] = [1, 3].map(|user| Some(half_of_user(user)));
        let mut users: Vec<_> = std::mem::take(&mut pair.refused);
        users.sort_unstable();
        let mut expected = vec![(10, one), (10, one), (10, one), (10, one), (10, three)];
        expected.sort_unstable();
        assert_eq!(users, expected, "clicks first: {clicks_first}");
        assert_eq!(pair.engine.state_bytes(), 0);
    }
}

#[test]
fn late_and_future_clicks_count_in_the_arms_of_their_open_lists() {
    let rules = Rules {
        lateness_ms: 30,
        ..RULES
    };
    let mut pair = Pair::with(rules, None);
    assert_eq!(pair.list(1, 66, &[5]), Accepted);
    assert_eq!(pair.list(2, 39, &[5]), Accepted);
    assert_eq!(pair.click(7, 100, 5), Accepted);
    assert_eq!(pair.click(1, 68, 5), Late);
    // It counts as if it came at the watermark, 70, at which its list may be settled.
    assert_eq!(pair.click(2, 68, 5), Late);
    let ahead = Says::Click(Click {
        id: 1,
        shelf: Shelf::Without,
        ts_ms: T0 + 700,
        item: 5,
    });
    assert_eq!(pair.read(Side::Clicks, 96, ahead), Future);
    pair.end();
    assert_eq!(pair.refused, [(60, None), (60, None)]);
}

#[test]
fn a_shed_click_counts_at_once_if_its_list_is_open() {
    let mut pair = Pair::new();
    pair.list(1, 3, &[5]);
    pair.click(1, 3, 5);
    pair.room_bytes = pair.engine.state_bytes();
    assert_eq!(pair.click(1, 4, 5), Shed);
    assert_eq!(pair.click(2, 4, 5), Shed);
    pair.unreadable_click(1, 4, None, None);
    let refused = pair.engine.take_refused();
    let arms: Vec<_> = refused.iter().map(|click| (&click.arm, click.with_ms)).collect();
    assert_eq!(arms, [(&RefusedArm::Admitted(0), T0); 2]);
    assert_eq!(pair.engine.state_bytes(), pair.room_bytes);
}

#[test]
fn a_refused_click_counts_on_a_limited_number_of_lists() {
    for clicks_first in [true, false] {
        let mut pair = Pair::with(
            Rules {
                lateness_ms: 30,
                ..RULES
            },
            None,
        );
        pair.click(2, 30, 5);
        if clicks_first {
            pair.unreadable_click(1, 30, None, None);
        }
        for ts in [10, 1, 20, 30] {
            assert_eq!(pair.list(1, ts, &[5]), Accepted);
        }
        if !clicks_first {
            pair.unreadable_click(1, 30, None, None);
        }
        pair.end();
        assert_eq!(pair.refused, [(0, None), (10, None), (20, None)]);
        assert_eq!(pair.counts().cut_clicks, 0);
    }
}

#[test]
fn a_refused_click_without_a_shelf_counts_on_all_shelves() {
    for clicks_first in [true, false] {
        let mut pair = copies_within(9);
        pair.click(2, 5, 5);
        let click = Says::Unreadable(UnreadableClick {
            id: 1,
            shelf: Shelf::Any,
            ts_ms: None,
            user: None,
        });
        if clicks_first {
            pair.read(Side::Clicks, 5, click.clone());
        }
        pair.read(Side::Served, 5, list_on(1, 1, &[5]));
        pair.read(Side::Served, 5, list_on(2, 2, &[]));
        if !clicks_first {
            pair.read(Side::Clicks, 5, click);
        }
        pair.end();
        assert_eq!(pair.refused, [(0, None); 2]);
    }
}

#[test]
fn a_click_is_refused_if_no_open_list_can_take_it() {
    let mut pair = Pair::new();
    pair.list(1, 100, &[]);
    for side in Side::BOTH {
        pair.idle(side, Some(1000));
    }
    assert_eq!(pair.click(1, 957, 1), AfterSettled);
    assert_eq!(
        pair.click(1, 958, 1),
        Accepted,
        "a list of 960 may be its own, by click_skew"
    );
}

#[test]
fn the_click_window_includes_attribution_and_skew() {
    let mut pair = Pair::new();
    for (id, ts) in [(1, 98), (2, 97), (3, 130), (4, 131)] {
        assert_eq!(pair.click(id, ts, 1), Accepted);
        assert_eq!(pair.list(id, 100, &[1]), Accepted);
    }
    // Ids 1 and 3 are at the ends of the window, 2 and 4 are one beyond.
    assert_eq!(pair.end(), [(100, [4, 4, 2])]);
    assert_eq!(pair.results(), [2, 0, 0, 2, 0]);
}

#[test]
fn a_click_waits_until_the_watermark_passes_its_reach() {
    let mut pair = Pair::new();
    pair.click(1, 100, 1);
    pair.list(2, 107, &[]);
    assert_eq!((pair.engine.n_waiting(), pair.results()), (1, [0; 5]));
    pair.list(3, 108, &[]);
    assert_eq!((pair.engine.n_waiting(), pair.results()), (0, [0, 0, 0, 1, 0]));
}

#[test]
fn a_matched_click_is_kept_for_a_second_list_of_its_id() {
    let mut pair = Pair::new();
    pair.list(1, 9, &[7, 5]);
    pair.click(1, 12, 5);
    assert_eq!(pair.results(), [1, 0, 0, 0, 0]);
    assert_eq!(pair.list(1, 11, &[5]), Accepted);
    assert_eq!(pair.results(), [1, 0, 0, 0, 0]);
    assert_eq!(pair.end(), [(0, [1, 2, 1]), (10, [1, 1, 1])]);
}

#[test]
fn a_click_has_the_result_of_the_list_with_the_lower_offset() {
    let mut pair = Pair::new();
    pair.list(1, 11, &[7]);
    pair.list(1, 9, &[5]);
    pair.click(1, 12, 5);
    assert_eq!(
        pair.results(),
        [0, 0, 1, 0, 0],
        "off the list that was read first"
    );
    assert_eq!(pair.end(), [(0, [1, 1, 1]), (10, [1, 1, 0])]);
}

/// Returns a list of request 1 on a shelf.
fn list_on(shelf: u8, ts: i64, items: &[u16]) -> Says {
    let shelf = Shelf::Named(shelf);
    Says::List(List {
        shelf,
        ..list(&[(0, 0)], 1, ts, items)
    })
}

fn click_on(shelf: Shelf, ts: i64, item: u16) -> Says {
    let (id, ts_ms) = (1, T0 + ts);
    Says::Click(Click {
        id,
        shelf,
        ts_ms,
        item,
    })
}

#[test]
fn a_click_without_a_shelf_belongs_to_lists_that_show_its_item() {
    let mut pair = copies_within(9);
    let steps = [
        (Side::Served, list_on(1, 1, &[5, 6])),
        (Side::Served, list_on(2, 2, &[7])),
        (Side::Served, list_on(3, 3, &[8, 7])),
        // These clicks are on both lists that show the item, on no list, and twice on the list of the named shelf.
        (Side::Clicks, click_on(Shelf::Any, 4, 7)),
        (Side::Clicks, click_on(Shelf::Any, 4, 9)),
        (Side::Clicks, click_on(Shelf::Named(1), 4, 6)),
        (Side::Clicks, click_on(Shelf::Any, 4, 6)),
        // A click that names its shelf may be on an item that its list does not show.
        (Side::Clicks, click_on(Shelf::Named(2), 4, 5)),
    ];
    for (side, says) in steps {
        assert_eq!(pair.read(side, 5, says), Accepted);
    }
    assert_eq!(pair.end(), [(0, [3, 5, 3])]);
    assert_eq!(pair.results(), [2, 1, 1, 1, 0]);
}

#[test]
fn kept_clicks_with_and_without_a_shelf_are_taken_in_offset_order() {
    // If the click on shelf 2 comes first, the other one is a repeat there, but has its result from shelf 1.
    for (first, second, expected) in [
        (Shelf::Named(1), Shelf::Any, [1, 1, 0, 0, 0]),
        (Shelf::Any, Shelf::Named(2), [1, 1, 0, 0, 0]),
        (Shelf::Named(2), Shelf::Any, [2, 0, 0, 0, 0]),
    ] {
        let mut pair = copies_within(9);
        for shelf in [first, second] {
            assert_eq!(pair.read(Side::Clicks, 5, click_on(shelf, 4, 7)), Accepted);
        }
        for shelf in [1, 2] {
            assert_eq!(pair.read(Side::Served, 5, list_on(shelf, 2, &[7])), Accepted);
        }
        assert_eq!(pair.end(), [(0, [2, 2, 2])]);
        assert_eq!(pair.results(), expected, "{first:?}, {second:?}");
    }
}

#[test]
fn copies_share_the_whole_id_and_clicks_without_a_shelf_obey_the_list_limit() {
    let mut pair = copies_within(9);
    for shelf in 1..=4 {
        assert_eq!(pair.read(Side::Served, 5, list_on(shelf, 2, &[7])), Accepted);
        assert_eq!(pair.read(Side::Served, 5, list_on(shelf, 3, &[7])), Duplicate);
    }
    assert_eq!(pair.read(Side::Clicks, 5, click_on(Shelf::Any, 4, 7)), Accepted);
    assert_eq!(pair.counts().cut_clicks, 1);
    assert_eq!(pair.end(), [(0, [4, 4, 3])]);
    assert_eq!(pair.engine.state_bytes(), 0);
}

#[test]
fn conflicting_contents_keep_the_lower_offset() {
    let mut pair = Pair::new();
    pair.list(1, 3, &[5]);
    assert_eq!(pair.list(1, 4, &[5, 6]), Duplicate);
    assert_eq!(pair.list(1, 3, &[5]), Duplicate);
    assert_eq!(pair.counts().conflicting_lists, 1);
    assert_eq!(pair.end(), [(0, [1, 1, 0])]);
}

/// Makes a pair with this `same_list_ms`. Slots settle as with [`RULES`] if it is no more than the skew.
fn copies_within(same_list_ms: i64) -> Pair {
    let rules = Rules {
        same_list_ms,
        ..RULES
    };
    Pair::with(rules, None)
}

#[test]
fn a_copy_counts_as_a_copy_across_the_border_of_its_slot() {
    let mut pair = copies_within(30);
    assert_eq!(pair.list(1, 6, &[5]), Accepted);
    assert_eq!(pair.list(1, 14, &[5]), Duplicate);
    assert_eq!(pair.counts().conflicting_lists, 0, "another time is no conflict");
    assert_eq!(pair.end(), [(0, [1, 1, 0])]);
}

#[test]
fn a_list_just_beyond_is_separate_and_a_copy_of_both_is_compared_with_the_lower_offset() {
    // B is after A or before it, in time.
    for (a, b) in [(20, 41), (41, 20)] {
        let mut pair = Pair::with(
            Rules {
                same_list_ms: 20,
                lateness_ms: 30,
                ..RULES
            },
            None,
        );
        assert_eq!(pair.list(1, a, &[5]), Accepted);
        assert_eq!(pair.list(1, b, &[6]), Accepted);
        assert_eq!(pair.list(1, 30, &[5]), Duplicate);
        assert_eq!(pair.counts().conflicting_lists, 0, "it is as A");
        assert_eq!(pair.list(1, 31, &[6]), Duplicate);
        assert_eq!(pair.counts().conflicting_lists, 1, "it is not as A");
    }
}

#[test]
fn copies_of_copies_do_not_count() {
    let mut pair = copies_within(10);
    assert_eq!(pair.list(1, 0, &[5]), Accepted);
    assert_eq!(pair.list(1, 8, &[5]), Duplicate);
    assert_eq!(pair.list(1, 11, &[5]), Accepted, "8 was none");
    assert_eq!(pair.list(1, 21, &[5]), Duplicate);
    assert_eq!(pair.list(1, 22, &[5]), Accepted);
}

#[test]
fn a_zero_span_makes_copies_only_at_the_same_time() {
    let mut pair = copies_within(0);
    assert_eq!(pair.list(1, 3, &[5]), Accepted);
    assert_eq!(pair.list(1, 4, &[5]), Accepted);
    assert_eq!(pair.list(1, 3, &[5]), Duplicate);
    assert_eq!(pair.end(), [(0, [2, 2, 0])]);
}

#[test]
fn items_and_arms_cause_conflicts_but_users_do_not() {
    let mut pair = Pair::new();
    let to = |user, items: &[u16], arms: &[(u8, u8)]| {
        Says::List(List {
            user,
            ..list(arms, 1, 0, items)
        })
    };
    pair.read(Side::Served, 0, to(Some(1), &[5, 6], &[(0, 0)]));
    let mut conflicts = |says| {
        let before = pair.counts().conflicting_lists;
        assert_eq!(pair.read(Side::Served, 0, says), Duplicate);
        pair.counts().conflicting_lists - before
    };
    assert_eq!(conflicts(to(Some(2), &[5, 6], &[(0, 0)])), 0);
    assert_eq!(conflicts(to(None, &[5, 6], &[(0, 0)])), 0);
    assert_eq!(conflicts(to(Some(1), &[6, 5], &[(0, 0)])), 1);
    assert_eq!(conflicts(to(Some(1), &[5, 6], &[(0, 1)])), 1);
}

#[test]
fn a_slot_is_open_while_a_copy_of_its_lists_may_come() {
    let mut pair = copies_within(20);
    pair.list(1, 9, &[]);
    pair.click(3, 100, 1);
    pair.list(2, 34, &[]);
    assert_eq!(pair.frontier(), Some(0));
    pair.list(2, 35, &[]);
    assert_eq!(pair.frontier(), Some(10));
}

/// Silence settles a list, and then its copy arrives with a time that is not settled.
#[test]
fn lists_settled_by_silence_detect_copies_until_the_served_watermark_passes() {
    let mut pair = copies_within(20);
    pair.list(1, 57, &[5]);
    pair.idle(Side::Served, Some(96));
    pair.idle(Side::Clicks, Some(96));
    assert_eq!((pair.frontier(), pair.engine.n_open_lists()), (Some(60), 0));
    assert!(pair.engine.state_bytes() > 0, "it is kept");
    assert_eq!(pair.list(1, 60, &[5]), Duplicate);
    assert_eq!(pair.list(1, 77, &[6]), Duplicate);
    assert_eq!(pair.counts().conflicting_lists, 1);
    assert_eq!(pair.list(1, 78, &[6]), Accepted);
    assert_eq!(pair.list(1, 77, &[6]), Duplicate);
    assert_eq!(
        pair.counts().conflicting_lists,
        2,
        "the first one has the lower offset"
    );
    // The settled list gets no more clicks.
    assert_eq!(pair.click(1, 85, 5), Accepted);
    assert_eq!(pair.results(), [0, 0, 1, 0, 0], "off the list of 78");
}

#[test]
fn lists_kept_for_copies_leave_as_silence_continues() {
    let mut pair = copies_within(20);
    pair.list(1, 57, &[5]);
    for (live_end, is_kept) in [(96, true), (106, true), (116, false)] {
        Side::BOTH
            .into_iter()
            .for_each(|side| pair.idle(side, Some(live_end)));
        assert_eq!(pair.engine.state_bytes() > 0, is_kept, "{live_end}");
    }
}

#[test]
fn a_slot_settles_when_both_watermarks_reach_its_end() {
    let settles = |served, clicks| {
        let mut pair = Pair::new();
        pair.list(1, 9, &[]);
        pair.list(2, served, &[]);
        pair.click(3, clicks, 1);
        pair.settled().len() == 1
    };
    assert!(settles(17, 45));
    assert!(!settles(16, 45));
    assert!(!settles(17, 44));
}

#[test]
fn the_click_of_a_late_list_is_unmatched() {
    let mut pair = Pair::new();
    pair.list(2, 100, &[]);
    pair.click(1, 94, 1);
    assert_eq!(pair.list(1, 94, &[1]), Late);
    pair.list(2, 102, &[]);
    assert_eq!(pair.results(), [0, 0, 0, 1, 0]);
}

#[test]
fn an_idle_served_side_does_not_decide_a_click_whose_list_may_come() {
    let mut pair = Pair::new();
    pair.list(9, 0, &[]);
    pair.click(1, 100, 5);
    pair.idle(Side::Served, None);
    assert_eq!((pair.frontier(), pair.newest(Side::Served)), (Some(60), Some(0)));
    assert_eq!((pair.engine.n_waiting(), pair.results()), (1, [0; 5]));
    assert_eq!(pair.list(1, 98, &[5]), Accepted);
    assert_eq!(pair.results(), [1, 0, 0, 0, 0]);
}

#[test]
fn a_record_ends_idleness_and_its_side_holds_the_frontier_again() {
    let mut pair = Pair::new();
    pair.list(1, 0, &[]);
    pair.click(1, 100, 5);
    pair.idle(Side::Served, None);
    assert_eq!(pair.frontier(), Some(60));
    // The producer of lists was away and returns. Clicks must not overtake it.
    assert_eq!(pair.list(2, 61, &[]), Accepted);
    pair.click(1, 130, 5);
    assert_eq!(pair.frontier(), Some(60));
    assert_eq!(pair.list(3, 75, &[]), Accepted);
}

#[test]
fn a_pair_without_a_record_takes_no_idle_move() {
    let mut pair = Pair::new();
    for side in Side::BOTH {
        pair.idle(side, Some(1000));
    }
    assert_eq!(pair.frontier(), None);
    assert_eq!(pair.list(1, 0, &[]), Accepted);
}

#[test]
fn events_before_the_start_are_replayed_and_leave_clicks_undecided() {
    let mut pair = Pair::with(RULES, Some(100));
    assert_eq!(pair.list(1, 99, &[5]), Replayed);
    assert_eq!(pair.list(2, 100, &[5]), Accepted);
    assert_eq!(pair.click(1, 97, 5), Replayed);
    assert_eq!(
        pair.click(1, 98, 5),
        Accepted,
        "a list of 100 may be its own, by click_skew"
    );
    assert_eq!(pair.click(1, 130, 5), Accepted);
    assert_eq!(pair.click(1, 131, 5), Accepted);
    assert_eq!(pair.click(2, 130, 5), Accepted, "it has its list");
    assert_eq!(pair.end(), [(100, [1, 1, 1])]);
    assert_eq!(pair.results(), [1, 0, 0, 1, 2]);
}

#[test]
fn a_late_list_before_the_start_is_late() {
    let mut pair = Pair::with(RULES, Some(100));
    pair.list(1, 99, &[]);
    assert_eq!(pair.list(2, 93, &[]), Late);
}

#[test]
fn a_repeated_item_is_shown_twice_and_clicked_once() {
    let mut pair = Pair::new();
    pair.list(1, 0, &[4, 5, 4]);
    pair.click(1, 1, 4);
    pair.click(1, 2, 4);
    assert_eq!(pair.results(), [1, 1, 0, 0, 0]);
    assert_eq!(pair.counts().repeated_items, 1);
    assert_eq!(pair.end(), [(0, [1, 3, 1])]);
}

#[test]
fn off_list_items_are_distinguished_up_to_the_remembered_number() {
    let mut pair = Pair::new();
    pair.list(1, 0, &[]);
    for item in [7, 8, 9, 7, 8, 9] {
        pair.click(1, 1, item);
    }
    // Items 7 and 8 are remembered and repeat, and 9 is off the list each time.
    assert_eq!(pair.results(), [0, 2, 4, 0, 0]);
    assert_eq!(pair.end(), [(0, [1, 0, 0])]);
}

#[test]
fn a_list_without_arms_takes_clicks_but_counts_in_no_arm() {
    let mut pair = Pair::new();
    assert_eq!(pair.list_of(&[], 1, 0, &[5]), Accepted);
    pair.click(1, 1, 5);
    assert_eq!(pair.results(), [1, 0, 0, 0, 0]);
    assert_eq!(pair.end(), []);
}

#[test]
fn one_topic_has_one_watermark_for_both_kinds() {
    let mut pair = Pair::with(
        Rules {
            one_topic: true,
            ..RULES
        },
        None,
    );
    let click = Says::Click(Click {
        id: 1,
        shelf: Shelf::Without,
        ts_ms: T0 + 100,
        item: 5,
    });
    assert_eq!(pair.read(Side::Served, 100, click), Accepted);
    assert_eq!(pair.list(1, 94, &[5]), Late);
    assert_eq!(pair.list(1, 95, &[5]), Accepted);
    assert_eq!(pair.results(), [1, 0, 0, 0, 0]);
    assert_eq!(pair.frontier(), Some(60));
}

#[test]
fn arms_beyond_the_bound_fold_into_their_known_experiment() {
    let mut pair = Pair::with(Rules { max_arms: 1, ..RULES }, None);
    pair.list_of(&[(0, 0)], 1, 0, &[]);
    pair.list_of(&[(0, 1), (1, 0)], 2, 1, &[]);
    pair.list_of(&[(0, 0), (1, 0)], 3, 2, &[]);
    // Both fold into one arm, which then has the list once.
    pair.list_of(&[(1, 0), (2, 0)], 4, 3, &[]);
    assert_eq!(
        pair.engine.n_folded_arms(),
        1,
        "as many as there may be arms are told apart"
    );
    pair.close_all();
    let rows = pair.settled();
    let lists = |name: &str| rows.get(&(0, name.to_owned())).map(|sums| sums[0]);
    assert_eq!(lists("experiment-0/arm-0"), Some(2));
    assert_eq!(lists("experiment-0/__other__"), Some(1));
    assert_eq!(lists("__other__/__other__"), Some(3));
}

#[test]
fn a_copy_with_different_folded_arms_is_a_conflict() {
    let mut pair = Pair::with(Rules { max_arms: 2, ..RULES }, None);
    pair.list_of(&[(0, 0)], 1, 0, &[]);
    // There is still room for an arm.
    assert_eq!(pair.list_of(&[(0, 1)], 1, 0, &[]), Duplicate);
    pair.list_of(&[(0, 1)], 2, 0, &[]);
    // Now the arm has one, and it is still a different one.
    assert_eq!(pair.list_of(&[(0, 1)], 1, 0, &[]), Duplicate);
    assert_eq!(pair.counts().conflicting_lists, 2);
    assert_eq!(pair.list_of(&[(0, 0), (1, 3), (2, 4)], 3, 0, &[]), Accepted);
    assert_eq!(pair.list_of(&[(0, 0), (1, 3), (2, 4)], 3, 0, &[]), Duplicate);
    assert_eq!(pair.counts().conflicting_lists, 2, "the same");
    for other in [
        &[(0, 0), (1, 3), (2, 5)][..],
        &[(0, 0), (1, 4), (2, 3)],
        &[(0, 0), (1, 3)],
        &[(0, 0)],
        &[(0, 0), (1, 3), (2, 4), (3, 0)],
    ] {
        let before = pair.counts().conflicting_lists;
        assert_eq!(pair.list_of(other, 3, 0, &[]), Duplicate);
        assert_eq!(pair.counts().conflicting_lists, before + 1, "{other:?}");
    }
}

#[test]
fn a_click_counts_for_a_limited_number_of_lists_with_the_lowest_offsets() {
    let ended = |clicks_first: bool, n_lists: usize| {
        let rules = Rules {
            lateness_ms: 30,
            ..RULES
        };
        let mut pair = Pair::with(rules, None);
        if clicks_first {
            pair.click(1, 30, 5);
        }
        // The list with the lowest offset is not the first in time.
        for ts in [10, 1, 20, 30].into_iter().take(n_lists) {
            assert_eq!(pair.list(1, ts, &[5]), Accepted);
        }
        if !clicks_first {
            pair.click(1, 30, 5);
        }
        let (results, cut) = (pair.results(), pair.counts().cut_clicks);
        assert_eq!(results, [1, 0, 0, 0, 0]);
        let slots = pair.end().into_iter();
        let clicked = slots.filter(|(_, [_, _, n_clicks])| *n_clicks > 0);
        (cut, clicked.map(|(start, _)| start).collect::<Vec<_>>())
    };
    for clicks_first in [true, false] {
        assert_eq!(ended(clicks_first, 3), (0, vec![0, 10, 20]));
        assert_eq!(ended(clicks_first, 4), (1, vec![0, 10, 20]));
    }
}

/// Makes a pair with all metrics of ranx, which counts off-list clicks as relevant. Items have these aspects and shares of
/// 10 users.
fn pair_with_catalogue(items: &[(u16, &[&'static str], u64)]) -> Pair {
    let profile = Profile {
        metrics: all_metrics(),
        ..Profile::named("ranx").expect("it is there")
    };
    let measures = Measures {
        profiles: vec![profile],
        metrics: all_metrics(),
        catalogue: true,
        ..usual()
    };
    let mut pair = Pair::measuring(&measures, RULES, None);
    pair.engine
        .set_catalogue(Arc::new(catalogue(&items_of(items), None)));
    pair
}

fn items_of(items: &[(u16, &[&'static str], u64)]) -> Items {
    let known = items.iter().map(|(item, aspects, users)| {
        let (aspects, users) = (aspects.to_vec(), *users);
        (item.to_string(), Known { aspects, users })
    });
    Items {
        known: known.collect(),
        n_users: 10,
    }
}

#[test]
fn only_the_first_remembered_off_list_items_are_relevant() {
    // The clicks precede the list, and two off-list items are remembered. The list takes the clicks in the order of their
    // offsets.
    let mut pair = pair_with_catalogue(&[
        (5, &["x"], 1),
        (7, &["x", "y", "z"], 1),
        (8, &[], 1),
        (9, &["x", "y"], 1),
    ]);
    for item in [9, 8, 9, 7, 5] {
        pair.click(1, 1, item);
    }
    pair.list(1, 0, &[5, 6]);
    assert_eq!(pair.results(), [1, 1, 3, 0, 0]);
    assert_eq!(
        pair.value("recall"),
        Some(((1_u64 << 32) as f64 / 3.0).round() / (1_u64 << 32) as f64)
    );
    // The ideal begins with 9, which has two aspects, and 7 is not in it.
    assert_eq!(pair.value("alpha_ndcg@1"), Some(1.0 / 2.0));
}

#[test]
fn a_list_counts_by_the_catalogue_at_the_first_list_of_its_slot() {
    let shares = |users| [(5, &[][..], users)];
    let mut pair = pair_with_catalogue(&shares(1));
    pair.list(1, 0, &[5]);
    pair.engine
        .set_catalogue(Arc::new(catalogue(&items_of(&shares(5)), None)));
    pair.list(2, 1, &[5]);
    pair.list(3, 10, &[5]);
    // The first slot has two lists of share 1/10, the next one a list of share 5/10.
    let popularity = pair.value("popularity").expect("there are lists");
    assert!((popularity - 0.7 / 3.0).abs() < 1e-9, "{popularity}");
}
