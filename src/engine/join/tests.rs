//! What the state of an engine takes, and what it asks for before it takes more.

use std::num::NonZeroU32;

use super::*;
use crate::engine::event::ArmName;
use crate::engine::ranking::Measures;
use crate::engine::tally::SlotTally;

const T0: i64 = 1_763_596_800_000;
const N_ITEMS: u32 = 10;

fn engine() -> Engine {
    let rules = Rules {
        attribution_ms: 10_000,
        click_skew_ms: 0,
        lateness_ms: 0,
        max_future_ms: 0,
        slot_ms: 1000,
        max_off_list: 10,
        max_arms: 10_000,
        one_topic: true,
    };
    let ranking = Ranking::new(&Measures::usual(&[NonZeroU32::MIN]));
    Engine::new(rules, ranking, None)
}

fn batch(bodies: impl IntoIterator<Item = Body>) -> Batch {
    let mut batch = Batch::default();
    batch.items.extend(0..u64::from(N_ITEMS));
    for (offset, body) in (0..).zip(bodies) {
        if let Body::Served(list) = &body {
            let arm = u128::from(list.arms.start);
            let start = batch.text.len() as u32;
            batch.text.push_str(&format!("e{arm}"));
            batch.arms.push(ArmName {
                hash: arm + 1,
                experiment: start..start + 1,
                arm: start + 1..batch.text.len() as u32,
            });
        }
        let at = Position {
            side: Side::Served,
            offset,
            record_ts_ms: i64::MAX,
        };
        batch.events.push(Event { at, body });
    }
    batch
}

/// A list in the arm of this number.
fn list(arm: u32) -> Body {
    Body::Served(Served {
        id: u128::from(arm),
        user: None,
        ts_ms: T0,
        items: 0..N_ITEMS,
        arms: arm..arm + 1,
    })
}

fn click(arm: u32, item: u64) -> Body {
    Body::Click(Click {
        id: u128::from(arm),
        ts_ms: T0,
        item,
    })
}

#[test]
fn a_list_of_an_arm_that_has_no_other_in_its_slot_takes_little_more_than_one_of_few_arms() {
    let mut engine = engine();
    engine.apply(&batch((0..2000).map(list)), u64::MAX);
    let of_rows = engine.state_bytes() - 2000 * 103;
    // With what chunks had no room for.
    assert!((2000 * 104..2000 * 108).contains(&of_rows), "{of_rows}");
    engine.settle_all();
    assert_eq!(engine.state_bytes(), 0);
}

#[test]
fn a_click_is_taken_where_there_is_room_for_all_that_it_may_bring() {
    let mut engine = engine();
    engine.apply(&batch([list(0)]), u64::MAX);
    let shed = |engine: &Engine| engine.changes().counts.outcome(Side::Served, Outcome::Shed);
    for (n, item) in (0..).zip([3, 4, 99]) {
        let before = engine.state_bytes();
        let room_bytes =
            before + KeptClicks::COST + OFF_LIST_BYTES + SlotTally::max_row_bytes(engine.ranking.width());
        engine.apply(&batch([click(0, item)]), room_bytes - 1);
        assert_eq!((shed(&engine), engine.state_bytes()), (n + 1, before));
        engine.apply(&batch([click(0, item)]), room_bytes);
        assert_eq!(shed(&engine), n + 1);
        assert!((before + 1..=room_bytes).contains(&engine.state_bytes()));
    }
}
