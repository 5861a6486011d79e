//! Tests of ledgers fed list by list: contents, merging and encoding.

mod resumed;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::engine::settling::{SettledItems, SettledList};
use crate::metrics::catalogue::{Catalogue, item};
use crate::metrics::{CLICKS, ITEMS_SHOWN, LISTS, ListOutcome, Measures};

const SLOT_MS: i64 = 10;
const N_ITEMS: u32 = 5;
const N_SLOTS: i64 = 9;

fn ranking() -> Ranking {
    let ks = [1, 3].into_iter().filter_map(NonZeroU32::new).collect::<Vec<_>>();
    let usual = Measures::usual(&ks);
    let metrics = [&usual.metrics[..], &["coverage", "popularity", "alpha_ndcg"]].concat();
    Ranking::new(&Measures {
        metrics,
        catalogue: true,
        ..usual
    })
}

fn catalogue() -> Catalogue {
    let items = (0..8).map(|n| item(&format!("i{n}"), &["even", "odd"][n % 2..][..1], n as u64));
    Catalogue::new(items.collect(), 10, None)
}

fn keep() -> Keep {
    let span = |n_slots, n_cells| Span {
        cell_ms: n_slots * SLOT_MS,
        n_cells,
        kept: KeptAggregates::All,
    };
    Keep {
        total: Some(KeptAggregates::All),
        starts: Starts::default(),
        users: Users::Everybody(Epochs::default()),
        spans: vec![span(1, Some(3)), span(2, None)],
        catalogue: Some(1),
    }
}

/// Returns the parts with one of them changed.
fn changed(parts: &EncodedLedger, part: Part, change: impl FnOnce(&mut Vec<u8>)) -> EncodedLedger {
    let mut all = parts.clone();
    let mut bytes = all[&part].to_vec();
    change(&mut bytes);
    all.insert(part, bytes.into());
    all
}

/// List in a slot: its arms, its clicked items, and the place of its first item.
#[derive(Debug, Clone)]
struct List {
    slot: i64,
    arms: Vec<u8>,
    clicked: u32,
    first: u32,
}

impl List {
    fn ts_ms(&self) -> i64 {
        self.slot * SLOT_MS + i64::from(self.clicked % 7)
    }

    fn user(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.first % 4)
    }
}

fn list() -> impl Strategy<Value = List> {
    let arms = prop::collection::btree_set(0..4_u8, 0..3);
    (0..N_SLOTS, arms, 0..1_u32 << N_ITEMS, 0..7_u32).prop_map(|(slot, arms, clicked, first)| List {
        slot,
        arms: arms.into_iter().collect(),
        clicked,
        first,
    })
}

fn arm(n: u8) -> Arm {
    Arm {
        experiment: "e".into(),
        arm: n.to_string().into(),
    }
}

/// Returns the number of an arm and admits it if needed.
fn number_of(ledger: &mut Ledger, arm: &Arm) -> ArmId {
    let known = ledger.arms().iter().position(|known| known == arm);
    if known.is_none() {
        ledger.admit(std::slice::from_ref(arm));
    }
    known.unwrap_or(ledger.arms().len() - 1) as ArmId
}

/// Returns a ledger that has settled these lists, with arms admitted in order of appearance.
fn reported(lists: &[List], ranking: &Ranking, catalogue: &Catalogue) -> Ledger {
    let mut ledger = Ledger::new(ranking, &keep());
    settle_lists(&mut ledger, lists, 0..N_SLOTS, catalogue);
    ledger
}

/// Settles the lists of these slots.
fn settle_lists(ledger: &mut Ledger, lists: &[List], slots: Range<i64>, catalogue: &Catalogue) {
    for slot in slots {
        for list in lists.iter().filter(|list| list.slot == slot) {
            let arms: Vec<ArmId> = list.arms.iter().map(|n| number_of(ledger, &arm(*n))).collect();
            let places: Vec<u32> = (list.first..list.first + N_ITEMS)
                .map(|place| place % 8)
                .collect();
            let outcome = ListOutcome {
                n_items: N_ITEMS,
                clicked: &[list.clicked],
                n_off_list: 0,
            };
            let reported = ledger.take(Settled::List(SettledList {
                start_ms: slot * SLOT_MS,
                ts_ms: list.ts_ms(),
                user: list.user(),
                arms: &arms,
                capped: &[],
                tags: &places,
                off_list: &[],
                outcome,
                items: Some(SettledItems {
                    catalogue,
                    places: &places,
                }),
            }));
            assert_eq!(reported, None);
        }
        let (start_ms, end_ms) = (slot * SLOT_MS, (slot + 1) * SLOT_MS);
        let reported = ledger.take(Settled::Slot { start_ms, end_ms });
        assert_eq!(reported.map(|reported| reported.start_ms), Some(start_ms));
    }
}

/// Settles an empty list of user 1 at the start of its slot.
fn settle_empty(ledger: &mut Ledger, start_ms: i64, arms: &[ArmId]) {
    ledger.take(Settled::List(SettledList {
        start_ms,
        ts_ms: start_ms,
        user: NonZeroU32::new(1),
        arms,
        capped: &[],
        tags: &[],
        off_list: &[],
        outcome: ListOutcome {
            n_items: 0,
            clicked: &[],
            n_off_list: 0,
        },
        items: None,
    }));
}

/// Numbers of arms by name.
type Named<'a> = BTreeMap<Arm, OfArm<'a>>;

fn named<'a>(ledger: &'a Ledger, numbers: Numbers<'a>) -> Named<'a> {
    let ids = numbers.sums.keys();
    let arms = ids.map(|id| (ledger.arms()[*id as usize].clone(), numbers.of(*id)));
    arms.collect()
}

/// Returns totals and all cells by arm name, independent of arm numbers.
fn all(ledger: &Ledger) -> (Named<'_>, Vec<BTreeMap<i64, Named<'_>>>) {
    let cells = |span| {
        let cells = ledger.cells(span);
        cells
            .map(|(number, numbers)| (number, named(ledger, numbers)))
            .filter(|(_, cell)| !cell.is_empty())
            .collect()
    };
    (named(ledger, ledger.total()), vec![cells(0), cells(1)])
}

proptest! {
    /// Two pairs merge to the ledger of a single pair with all lists, in either order, and also after encoding and decoding.
    #[test]
    fn ledgers_merge_to_the_whole(lists in prop::collection::vec((list(), any::<bool>()), 0..40)) {
        let (ranking, catalogue) = (ranking(), catalogue());
        // All lists of a user go through one pair.
        let is_in_first = |(list, without_user): &&(List, bool)| match list.user() {
            Some(user) => user.get() % 2 == 0,
            None => *without_user,
        };
        let of = |is_first: bool| -> Vec<List> {
            let own = lists.iter().filter(|list| is_in_first(list) == is_first);
            own.map(|(list, _)| list.clone()).collect()
        };
        let whole: Vec<List> = lists.iter().map(|(list, _)| list.clone()).collect();
        let whole = reported(&whole, &ranking, &catalogue);
        for order in [[true, false], [false, true]] {
            let [mut one, mut other] = order.map(|is_first| {
                let bytes = reported(&of(is_first), &ranking, &catalogue).encode();
                Ledger::decode(&bytes, &ranking, &keep()).expect("it was encoded")
            });
            one.merge(&mut other);
            prop_assert_eq!(all(&one), all(&whole));
            prop_assert_eq!(one.until_ms(), whole.until_ms());
        }
    }

    #[test]
    fn equal_ledgers_have_equal_bytes_and_round_trip(lists in prop::collection::vec(list(), 0..40)) {
        let (ranking, catalogue) = (ranking(), catalogue());
        let mut ledger = reported(&lists, &ranking, &catalogue);
        let bytes = ledger.encode();
        let mut again = Ledger::decode(&bytes, &ranking, &keep()).expect("it was encoded");
        prop_assert_eq!(all(&again), all(&ledger));
        prop_assert_eq!(again.encode(), bytes.clone());
        // Change the order within each slot, but admit arms in the same order.
        let mut turned = lists.clone();
        turned.sort_by_key(|list| list.arms.first().copied());
        if lists.iter().all(|list| list.arms.len() < 2) && reported(&turned, &ranking, &catalogue).arms() == ledger.arms() {
            prop_assert_eq!(reported(&turned, &ranking, &catalogue).encode(), bytes);
        }
    }

    /// Damaged bytes are refused or decoded, without a panic.
    #[test]
    fn damaged_bytes_are_refused_with_a_message(
        lists in prop::collection::vec(list(), 0..9),
        part in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let (ranking, catalogue) = (ranking(), catalogue());
        let parts = reported(&lists, &ranking, &catalogue).encode();
        let part = *parts.keys().nth(part.index(parts.len())).expect("there is a head");
        let damaged = changed(&parts, part, |bytes| {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        });
        let _ = Ledger::decode(&damaged, &ranking, &keep());
        let n_left = cut.index(parts[&part].len());
        let cut = changed(&parts, part, |bytes| bytes.truncate(n_left));
        prop_assert!(Ledger::decode(&cut, &ranking, &keep()).is_err());
        let mut without = parts.clone();
        without.remove(&part);
        prop_assert!(Ledger::decode(&without, &ranking, &keep()).is_err(), "{}", part);
    }

    /// The bytes do not depend on when cells are packed.
    #[test]
    fn packing_does_not_change_the_bytes_of_a_ledger(
        lists in prop::collection::vec(list(), 0..40),
        packed in prop::collection::btree_set(0..=N_SLOTS, 0..4),
    ) {
        let (ranking, catalogue) = (ranking(), catalogue());
        let mut keep = keep();
        keep.spans.iter_mut().for_each(|span| span.kept = KeptAggregates::ByArm);
        let mut ledgers = [(); 2].map(|()| Ledger::new(&ranking, &keep));
        for slot in 0..N_SLOTS {
            let [plain, other] = &mut ledgers;
            settle_lists(plain, &lists, slot..slot + 1, &catalogue);
            settle_lists(other, &lists, slot..slot + 1, &catalogue);
            if packed.contains(&slot) {
                other.pack();
                let is_complete = |span| other.cells(span).any(|(number, _)| other.is_complete(span, number));
                prop_assert!(!is_complete(0) && !is_complete(1));
            }
            prop_assert_eq!(other.encode(), plain.encode());
        }
    }
}

#[test]
fn cells_leave_and_totals_stay() {
    let lists = [(0, 0b1), (0, 0), (1, 0b11), (8, 0)].map(|(slot, clicked)| List {
        slot,
        arms: vec![3],
        clicked,
        first: 0,
    });
    let (ranking, catalogue) = (ranking(), catalogue());
    let ledger = reported(&lists, &ranking, &catalogue);
    let total = &ledger.total().sums[&0];
    assert_eq!(
        [LISTS, ITEMS_SHOWN, CLICKS].map(|column| total[column]),
        [4, 20, 3]
    );
    let cells = |span| -> Vec<(i64, Option<i128>)> {
        let cells = ledger.cells(span);
        cells
            .map(|(number, cell)| (number, cell.sums.get(&0).map(|sums| sums[LISTS])))
            .collect()
    };
    assert_eq!(cells(0), [(6, None), (7, None), (8, Some(1))], "the newest three");
    assert_eq!(
        cells(1),
        [(0, Some(3)), (1, None), (2, None), (3, None), (4, Some(1))]
    );
    assert_eq!(ledger.until_ms(), Some(90));
    assert!(
        ledger.is_complete(1, 3) && !ledger.is_complete(1, 4),
        "the slot 90 is missing"
    );
    let mut ledger = ledger;
    ledger.cover_until(Some(200));
    let taken: Vec<i64> = ledger
        .take_complete(1)
        .iter()
        .map(|(number, _)| *number)
        .collect();
    assert_eq!(
        taken,
        [0, 1, 2, 3, 4],
        "no list is still to come, though none came"
    );
    assert_eq!(ledger.cells(1).count(), 0);
    ledger.merge(&mut Ledger::new(&ranking, &keep()));
    assert_eq!(ledger.until_ms(), None, "one of them covers nothing");
}

#[test]
fn bytes_of_another_layout_are_refused() {
    let parts = reported(&[], &ranking(), &catalogue()).encode();
    let decode = |change: fn(&mut Vec<u8>)| {
        let parts = changed(&parts, Part::Head, change);
        Ledger::decode(&parts, &ranking(), &keep()).err()
    };
    assert_eq!(decode(|bytes| bytes[0] = 9), Some(LedgerError::Version));
    assert_eq!(decode(|bytes| bytes.push(0)), Some(LedgerError::Length));
    let nothing = Ledger::decode(&EncodedLedger::default(), &ranking(), &keep()).err();
    assert_eq!(nothing, Some(LedgerError::Missing(Part::Head)));
}

#[test]
fn many_arms_are_split_into_several_parts() {
    let mut ledger = Ledger::new(&ranking(), &keep());
    let arms = (0..600).map(|n: u32| Arm {
        experiment: "e".into(),
        arm: n.to_string().into(),
    });
    let arms: Vec<Arm> = arms.collect();
    ledger.admit(&arms);
    let parts = ledger.encode();
    let names: Vec<String> = parts.keys().map(Part::to_string).collect();
    assert_eq!(names, ["head", "arms 0", "arms 1", "arms 2", "total", "memory"]);
    let again = Ledger::decode(&parts, &ranking(), &keep()).expect("it was encoded");
    assert_eq!(again.arms(), arms);
}

/// A decoded or merged ledger accepts more lists.
#[test]
fn a_ledger_continues_after_it_is_decoded_or_merged() {
    let list = |slot, n| List {
        slot,
        arms: vec![n],
        clicked: 1,
        first: 1,
    };
    let (ranking, catalogue) = (ranking(), catalogue());
    let bytes = reported(&[list(0, 3)], &ranking, &catalogue).encode();
    let mut ledger = Ledger::decode(&bytes, &ranking, &keep()).expect("it was encoded");
    ledger.merge(&mut reported(&[list(0, 2)], &ranking, &catalogue));
    for arm in [0, 1] {
        settle_empty(&mut ledger, 0, &[arm]);
    }
    ledger.take(Settled::Slot {
        start_ms: 0,
        end_ms: SLOT_MS,
    });
    let total = ledger.total();
    let n_lists = |arm: ArmId| {
        total.buckets[&arm]
            .rows()
            .map(|(_, sums)| sums.get(LISTS))
            .sum::<i128>()
    };
    assert_eq!([n_lists(0), n_lists(1)], [2, 2]);
}

/// Keeps only users of the experiment `e`, from slot 3 on.
#[test]
fn users_are_tracked_in_configured_experiments_from_their_start() {
    let (ranking, catalogue) = (ranking(), catalogue());
    let epochs = Epochs {
        start_ms: Some(3 * SLOT_MS),
        ..Epochs::default()
    };
    let users = Users::Of([("e".to_owned(), epochs)].into());
    let keep = Keep::of_users(users, 2 * SLOT_MS);
    let mut ledger = Ledger::new(&ranking, &keep);
    let other = Arm {
        experiment: "f".into(),
        ..arm(0)
    };
    ledger.admit(&[arm(0), arm(1), other]);
    let settle_lists = |ledger: &mut Ledger, slot: i64| {
        ledger.take(Settled::List(SettledList {
            start_ms: slot * SLOT_MS,
            ts_ms: slot * SLOT_MS,
            user: NonZeroU32::new(5),
            arms: &[0, 2],
            capped: &[],
            tags: &[],
            off_list: &[],
            outcome: ListOutcome {
                n_items: N_ITEMS,
                clicked: &[1],
                n_off_list: 0,
            },
            items: Some(SettledItems {
                catalogue: &catalogue,
                places: &[0, 1, 2, 3, 4],
            }),
        }));
        ledger.take(Settled::Slot {
            start_ms: slot * SLOT_MS,
            end_ms: (slot + 1) * SLOT_MS,
        })
    };
    (2..6).for_each(|slot| _ = settle_lists(&mut ledger, slot));
    ledger.forget_users("e");
    let reported = settle_lists(&mut ledger, 6).expect("a slot has ended");
    assert_eq!(reported.tallies.iter().count(), 2, "the board hears of all arms");
    ledger.cover_until(Some(8 * SLOT_MS));
    let cells = ledger.take_complete(0);
    let found = cells.iter().map(|(number, cell)| {
        let numbers = cell.numbers();
        assert!(numbers.sums.is_empty() && numbers.seen.is_empty());
        let lists = numbers.buckets.iter();
        let lists =
            lists.map(|(arm, sums)| (*arm, sums.rows().map(|(_, sums)| sums.get(LISTS)).sum::<i128>()));
        (*number, lists.collect::<Vec<_>>(), numbers.exposures.len())
    });
    // The user counts once.
    let expected = [(1, vec![(0, 1)], 1), (2, vec![(0, 2)], 0), (3, vec![], 0)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

proptest! {
    /// Buckets add up to the sums of their arm, and the column after them to the lists with a click.
    #[test]
    fn buckets_add_up_to_the_sums(lists in prop::collection::vec(list(), 0..40)) {
        let (ranking, catalogue) = (ranking(), catalogue());
        let ledger = reported(&lists, &ranking, &catalogue);
        let total = ledger.total();
        prop_assert_eq!(total.buckets.len(), total.sums.len());
        for (id, sums) in total.sums {
            let of_arm = |list: &&List| arm_of(&ledger, *id, list);
            let clicked = lists.iter().filter(of_arm).filter(|list| list.clicked != 0).count();
            let mut added = vec![0; ranking.width() + 1];
            for (_, bucket) in total.buckets[id].rows() {
                added.iter_mut().zip(bucket.iter()).for_each(|(sum, term)| *sum += term);
            }
            prop_assert_eq!(&added[..ranking.width()], &sums[..]);
            prop_assert_eq!(added[ranking.width()], clicked as i128);
        }
    }
}

fn arm_of(ledger: &Ledger, id: ArmId, list: &List) -> bool {
    let name = &ledger.arms()[id as usize];
    list.arms.iter().any(|n| arm(*n) == *name)
}

/// Recounts list by list: users by the arm of their first list, and users in two arms.
fn recount(lists: &[List]) -> BTreeMap<Arm, Exposed> {
    let mut users: BTreeMap<u32, Vec<(i64, String)>> = BTreeMap::new();
    for list in lists {
        for (user, n) in list
            .user()
            .iter()
            .flat_map(|user| list.arms.iter().map(move |n| (user, n)))
        {
            users
                .entry(user.get())
                .or_default()
                .push((list.ts_ms(), n.to_string()));
        }
    }
    let mut arms: BTreeMap<Arm, Exposed> = BTreeMap::new();
    for sightings in users.values() {
        let (_, first) = sightings.iter().min().expect("there is one");
        let exposed = arms
            .entry(Arm {
                experiment: "e".into(),
                arm: first.as_str().into(),
            })
            .or_default();
        exposed.first += 1;
        exposed.in_two += u64::from(sightings.iter().any(|(_, arm)| arm != first));
    }
    arms
}

proptest! {
    /// Users count once, at their first list, in any order of the lists within a slot.
    #[test]
    fn exposures_equal_a_recount(lists in prop::collection::vec(list(), 0..60)) {
        let (ranking, catalogue) = (ranking(), catalogue());
        let ledger = reported(&lists, &ranking, &catalogue);
        let found = ledger.total().exposures.iter();
        let found: BTreeMap<Arm, Exposed> = found
            .map(|(id, exposed)| (ledger.arms()[*id as usize].clone(), *exposed))
            .collect();
        prop_assert_eq!(found, recount(&lists));
    }

    /// A decoded ledger keeps its users.
    #[test]
    fn a_decoded_ledger_continues_without_a_difference(lists in prop::collection::vec(list(), 0..40), until in 0..N_SLOTS) {
        let (ranking, catalogue) = (ranking(), catalogue());
        let mut whole = Ledger::new(&ranking, &keep());
        settle_lists(&mut whole, &lists, 0..N_SLOTS, &catalogue);
        let mut ledger = Ledger::new(&ranking, &keep());
        settle_lists(&mut ledger, &lists, 0..until, &catalogue);
        let mut ledger = Ledger::decode(&ledger.encode(), &ranking, &keep()).expect("it was encoded");
        settle_lists(&mut ledger, &lists, until..N_SLOTS, &catalogue);
        prop_assert_eq!(ledger.encode(), whole.encode());
    }

    /// Cells of users are ended at once, and equal cells ended slot by slot.
    #[test]
    fn slots_ended_together_add_up_to_the_same_cells(lists in prop::collection::vec(list(), 0..60)) {
        let (ranking, catalogue) = (ranking(), catalogue());
        let mut ledger = Ledger::new(&ranking, &Keep::of_users(Users::Everybody(Epochs::default()), 2 * SLOT_MS));
        settle_lists(&mut ledger, &lists, 0..N_SLOTS, &catalogue);
        ledger.cover_until(Some(10 * SLOT_MS));
        let taken = ledger.take_complete(0);
        let whole = reported(&lists, &ranking, &catalogue);
        prop_assert_eq!(taken.len(), whole.cells(1).count());
        for ((number, cell), (expected_number, expected)) in taken.iter().zip(whole.cells(1)) {
            prop_assert_eq!(*number, expected_number);
            prop_assert_eq!(cell.numbers().buckets, expected.buckets);
            prop_assert_eq!(cell.numbers().exposures, expected.exposures);
        }
    }
}

/// A consumer of removed cells may need them again after a restart.
#[test]
fn taken_cells_stay_encoded_until_released() {
    let keep = Keep::of_users(Users::Everybody(Epochs::default()), 2 * SLOT_MS);
    let lists: Vec<List> = (0..N_SLOTS)
        .map(|slot| List {
            slot,
            arms: vec![0],
            clicked: 1,
            first: 1,
        })
        .collect();
    let reported = |keeps: bool| {
        let mut ledger = Ledger::new(&ranking(), &keep);
        if keeps {
            ledger.keep_taken();
        }
        settle_lists(&mut ledger, &lists, 0..N_SLOTS, &catalogue());
        let untouched = ledger.encode();
        let taken = ledger.take_complete(0);
        (ledger, untouched, taken)
    };
    let numbers = |taken: &[(i64, Cell)]| taken.iter().map(|(number, _)| *number).collect::<Vec<_>>();
    let (mut ledger, untouched, taken) = reported(true);
    assert_eq!(numbers(&taken), [0, 1, 2, 3], "the fifth is not complete");
    assert_eq!(ledger.encode(), untouched);
    assert_eq!(ledger.cells(0).count(), 1);
    ledger.let_go(0, 2);
    let mut resumed = Ledger::decode(&ledger.encode(), &ranking(), &keep).expect("it was encoded");
    assert_eq!(resumed.take_complete(0), taken[2..]);

    let (mut forgetful, _, _) = reported(false);
    let mut resumed = Ledger::decode(&forgetful.encode(), &ranking(), &keep).expect("it was encoded");
    assert_eq!(resumed.take_complete(0), []);
}
