//! Memory taken by an engine, its bounds, and the output for a settled list.

use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::engine::checkpoint::LogCheckpoint;
use crate::engine::event::ArmName;
use crate::engine::replay::Replayed;
use crate::engine::tally::SlotTally;
use crate::metrics::Measures;

const T0: i64 = 1_763_596_800_000;
const N_ITEMS: u32 = 10;

fn engine() -> Engine {
    let rules = Rules {
        attribution_ms: 10_000,
        click_skew_ms: 0,
        same_list_ms: 999,
        lateness_ms: 0,
        max_future_ms: 0,
        slot_ms: 1000,
        max_off_list: 10,
        max_lists_per_click: 32,
        max_arms: 10_000,
        one_topic: true,
        gather: None,
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
        batch.events.push(Event::new(at, body));
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
        user: None,
        id: u128::from(arm),
        ts_ms: T0,
        item,
    })
}

#[test]
fn a_list_alone_in_its_arm_takes_little_extra_memory() {
    let mut engine = engine();
    engine.apply(&batch((0..2000).map(list)), u64::MAX);
    let of_rows = engine.state_bytes() - 2000 * 103;
    // With the unused ends of chunks.
    assert!((2000 * 104..2000 * 108).contains(&of_rows), "{of_rows}");
    engine.close_each(|_| {});
    assert_eq!(engine.state_bytes(), 0);
}

#[test]
fn a_click_needs_room_for_everything_it_may_add() {
    let mut engine = engine();
    engine.apply(&batch([list(0)]), u64::MAX);
    let shed = |engine: &Engine| engine.counts().outcome(Side::Served, Outcome::Shed);
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

#[test]
fn settled_lists_name_clicked_items_without_a_catalogue() {
    let mut engine = engine();
    let far = 5 << 32 | 99;
    let clicks = [3, 7, far].map(|item| click(0, item));
    engine.apply(&batch([list(0)].into_iter().chain(clicks)), u64::MAX);
    let mut reported = Vec::new();
    engine.close_each(|settled| {
        if let Settled::List(list) = settled {
            let tags = list
                .outcome
                .ranks(u32::MAX)
                .map(|rank| list.tags[rank as usize - 1]);
            reported.push((tags.collect::<Vec<u32>>(), list.off_list.to_vec()));
        }
    });
    assert_eq!(reported, [(vec![3, 7], vec![far])]);
}

/// Lists with an id and an arm of few, each so long after the last one.
fn sparse(n: u32, step_ms: i64) -> impl Iterator<Item = Body> {
    (0..n).map(move |id| {
        let Body::Served(list) = list(0) else {
            unreachable!("it is one")
        };
        Body::Served(Served {
            id: u128::from(id),
            ts_ms: T0 + i64::from(id) * step_ms,
            arms: 0..1,
            ..list
        })
    })
}

/// Each slot has its own chunks. Once there were fewer chunk numbers than slots in a month.
#[test]
fn a_month_of_sparse_slots_is_shed_only_by_the_memory_limit() {
    let month_ms = 30 * 24 * 60 * 60 * 1000;
    let rules = Rules {
        attribution_ms: month_ms,
        slot_ms: 5_000,
        ..engine().rules
    };
    let n = 300_000;
    let mut engine = Engine::new(rules, engine().ranking, None);
    for first in (0..n).step_by(10_000) {
        let lists = sparse(n, 8_640).skip(first as usize).take(10_000);
        engine.apply(&batch(lists), u64::MAX);
    }
    // The last one comes on the thirtieth day; the first may still be clicked.
    let first = Body::Click(Click {
        user: None,
        id: 0,
        ts_ms: T0 + month_ms,
        item: 3,
    });
    engine.apply(&batch([first]), u64::MAX);
    assert_eq!(engine.n_open_lists(), u64::from(n));
    assert_eq!(engine.counts().outcome(Side::Served, Outcome::Shed), 0);
    assert_eq!(engine.counts().result(ClickResult::Matched), 1);
    let per_list = engine.state_bytes() / u64::from(n);
    assert!(
        (500..1000).contains(&per_list),
        "{per_list}: a slot has its price"
    );
    let mut n_slots = 0;
    engine.close_each(|reported| n_slots += u32::from(matches!(reported, Settled::Slot { .. })));
    assert_eq!(engine.state_bytes(), 0);
    assert_eq!(n_slots, n);
}

#[test]
fn slots_settled_together_take_little_more_than_their_lists() {
    let n = 20_000;
    let rules = Rules {
        attribution_ms: 1_000_000_000,
        ..engine().rules
    };
    let mut engine = Engine::new(rules, engine().ranking, None).settling_by(3_600_000);
    engine.apply(&batch(sparse(n, 6_000)), u64::MAX);
    let per_list = engine.state_bytes() / u64::from(n);
    assert!((100..115).contains(&per_list), "{per_list}");
}

proptest! {
    /// Duplicates, conflicts and sums are the same as for single slots, however many settle as one.
    #[test]
    fn slots_settled_together_count_like_single_slots(
        events in prop::collection::vec((0_u32..6, 0_i64..9_000, 0_u64..12, any::<bool>()), 1..80),
        n_slots in 1_i64..7,
    ) {
        let bodies = events.iter().map(|(id, ms, item, is_click)| match is_click {
            true => Body::Click(Click { user: None, id: u128::from(*id), ts_ms: T0 + ms, item: *item }),
            false => {
                let Body::Served(list) = list(0) else { unreachable!("it is one") };
                let items = 0..(*item as u32).min(N_ITEMS);
                Body::Served(Served { id: u128::from(*id), ts_ms: T0 + ms, items, arms: 0..1, ..list })
            }
        });
        let rules = Rules { lateness_ms: 1_000_000, ..engine().rules };
        let ranking = engine().ranking;
        let totals = |mut engine: Engine| {
            engine.apply(&batch(bodies.clone()), u64::MAX);
            let mut total = vec![0; engine.ranking.width()];
            let mut sums = total.clone();
            engine.close_each(|reported| {
                if let Settled::List(list) = reported {
                    ranking.contribute(&list.outcome, &mut sums);
                    total.iter_mut().zip(&sums).for_each(|(total, sum)| *total += sum);
                }
            });
            (engine.counts().clone(), total)
        };
        let each = Engine::new(rules.clone(), engine().ranking, None);
        let several = Engine::new(rules, engine().ranking, None).settling_by(n_slots * 1000);
        prop_assert_eq!(totals(several), totals(each));
    }
}

/// Each click used to hit each list of its id, and each list was walked by all clicks of the id.
#[test]
fn a_shared_id_costs_each_click_a_bounded_number_of_lists() {
    const N_SLOTS: i64 = 10;
    const N_CLICKS: u64 = 200;
    let max_lists = 3;
    let with_id = |body, ts_ms| match body {
        Body::Served(list) => Body::Served(Served { id: 7, ts_ms, ..list }),
        Body::Click(click) => Body::Click(Click {
            id: 7,
            ts_ms,
            ..click
        }),
        other => other,
    };
    let lists = || (0..N_SLOTS).map(|slot| with_id(list(slot as u32), T0 + slot * 1000));
    let clicks = || (0..N_CLICKS).map(|item| with_id(click(0, 100 + item), T0 + N_SLOTS * 1000 - 1));
    for lists_first in [true, false] {
        let rules = Rules {
            max_lists_per_click: max_lists,
            max_off_list: 1000,
            ..engine().rules
        };
        let mut engine = Engine::new(rules, engine().ranking, None);
        // In any order, all of it is in time.
        engine.marks = Watermarks::new(60_000, 60_000, true);
        match lists_first {
            true => engine.apply(&batch(lists().chain(clicks())), u64::MAX),
            false => engine.apply(&batch(clicks().chain(lists())), u64::MAX),
        }
        let is_in_chain = |engine: &Engine| {
            let found = engine.store.find(&engine.store.key(7, engine.store.tag(7)));
            engine.kept_of(found).count()
        };
        // All are off the list, and each list that a click counts for remembers its item.
        let handles: Vec<ChunkHandle> = {
            let mut all = Vec::new();
            let found = engine.store.find(&engine.store.key(7, engine.store.tag(7)));
            let times_ms = i64::MIN..=i64::MAX;
            engine
                .lists
                .add_of_times(&engine.store, 7, found, times_ms, &mut all);
            all.iter().map(|other| other.list).collect()
        };
        let hits: Vec<usize> = handles
            .iter()
            .map(|list| engine.lists.off_list(&engine.store, *list).len())
            .collect();
        let n = N_CLICKS as usize;
        assert_eq!(hits, [n, n, n, 0, 0, 0, 0, 0, 0, 0], "lists first: {lists_first}");
        let counts = engine.counts();
        assert_eq!(counts.cut_clicks, N_CLICKS);
        assert_eq!(counts.result(ClickResult::OffList), N_CLICKS);
        assert_eq!(engine.n_waiting(), 0);
        assert!(is_in_chain(&engine) <= 1, "no list walks by clicks that are cut");
        engine.close_each(|_| {});
        assert_eq!((engine.state_bytes(), engine.clicks.len()), (0, 0));
    }
}

/// The lists of an id are in several slots, and each leaves with its own.
#[test]
fn lists_of_an_id_leave_with_their_slots() {
    let mut engine = engine();
    let at = |ts_ms| {
        let Body::Served(list) = list(0) else {
            unreachable!("it is a list")
        };
        Body::Served(Served { ts_ms, ..list })
    };
    let n_of_id = |engine: &Engine| {
        let found = engine.store.find(&engine.store.key(0, engine.store.tag(0)));
        let mut all = Vec::new();
        engine
            .lists
            .add_of_times(&engine.store, 0, found, i64::MIN..=i64::MAX, &mut all);
        all.len()
    };
    for slot in 0..40 {
        engine.apply(&batch([at(T0 + 1000 * slot)]), u64::MAX);
        // Ten slots and the one that has begun are open.
        assert_eq!(n_of_id(&engine), (slot as usize + 1).min(11), "{slot}");
        assert_eq!(engine.n_open_lists(), n_of_id(&engine) as u64);
    }
    engine.close_each(|_| {});
    assert_eq!((n_of_id(&engine), engine.state_bytes()), (0, 0));
}

/// Two lists that silence has settled, and a log whose start only their copies would need.
#[test]
fn a_truncated_log_is_read_from_the_first_open_event() {
    let rules = Rules {
        same_list_ms: 10_000,
        ..engine().rules
    };
    let ranking = || Ranking::new(&Measures::usual(&[NonZeroU32::MIN]));
    let at = |id: u32, ts_ms: i64| match list(id) {
        Body::Served(list) => Body::Served(Served {
            ts_ms,
            arms: 0..1,
            ..list
        }),
        other => other,
    };
    let mut before = Engine::new(rules.clone(), ranking(), None);
    before.apply(&batch([at(1, T0), at(2, T0 + 2_000)]), u64::MAX);
    for side in Side::BOTH {
        before.idle(side, Some(T0 + 14_000), i64::MAX);
    }
    before.visit_settled(usize::MAX, |_| ());
    let checkpoint = before.checkpoint(&[(Side::Served, 2)]).expect("it stands still");
    let offsets = |log: LogCheckpoint| log.resume.offset;
    assert_eq!(
        checkpoint.logs.iter().copied().map(offsets).collect::<Vec<_>>(),
        [2]
    );
    assert_eq!(checkpoint.logs_for_copies().map(offsets).collect::<Vec<_>>(), [0]);

    let resumed =
        || Engine::resume(rules.clone(), ranking(), &checkpoint, before.arms()).expect("the same rules");
    let mut copy = batch([at(1, T0), at(2, T0 + 2_000), at(1, T0 + 4_000)]);
    let outcomes = |engine: &mut Engine, batch: &Batch| {
        engine.apply(batch, u64::MAX);
        let replayed = engine.replayed(Side::Served);
        let n = |outcome| engine.counts().outcome(Side::Served, outcome);
        (
            replayed,
            [
                n(Outcome::Replayed),
                n(Outcome::Duplicate),
                n(Outcome::AfterSettled),
            ],
        )
    };
    let mut whole = resumed();
    assert_eq!(outcomes(&mut whole, &copy), (Some(Replayed::Same), [2, 1, 0]));

    let mut without_copies = resumed();
    assert_eq!(without_copies.give_up_copies(), Some(2));
    assert_eq!(without_copies.give_up_copies(), None, "they are given up once");
    copy.events.drain(..2);
    // Silence had settled its slot: it is too late, as it would be without silence's lists.
    let (replayed, [_, n_duplicate, _]) = outcomes(&mut without_copies, &copy);
    assert_eq!((replayed, n_duplicate), (Some(Replayed::Same), 0));
}
