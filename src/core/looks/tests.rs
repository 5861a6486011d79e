//! Tests of looks at pairs that settle their lists one by one.

mod feed;
mod group;
mod resumed;
mod window;
mod window_twin;

use std::num::NonZeroU32;

use proptest::prelude::*;

use self::window::{SLOTS_A_CELL, window};
use super::*;
use crate::engine::settling::{Settled, SettledList};
use crate::ledger::{Keep, Ledger, Users};
use crate::metrics::{ListOutcome, Measures};
use crate::statistics::Settings;

const SLOT_MS: i64 = 100_000;

fn ranking() -> Ranking {
    Ranking::new(&Measures::usual(&[NonZeroU32::MIN]))
}

fn rules(asked: Experiment) -> LookRules {
    LookRules {
        every_ms: LOOK_MS,
        ranking: ranking(),
        experiments: [("e".to_owned(), asked)].into(),
        counts_users: true,
        window: None,
        max_bytes: u64::MAX,
        bounds_waiting: false,
    }
}

fn compared() -> Experiment {
    Experiment {
        settings: Some(Settings {
            shares: [("a".to_owned(), 0.5), ("b".to_owned(), 0.5)].into(),
            primary: vec!["hit_rate@1".to_owned()],
            ..Settings::new("a")
        }),
        ..Experiment::default()
    }
}

/// A list of three items. The first one is clicked or not.
#[derive(Debug, Clone, Copy)]
struct List {
    slot: i64,
    user: u32,
    arm: &'static str,
    is_clicked: bool,
}

fn list(slot: i64, user: u32, arm: &'static str) -> List {
    List {
        slot,
        user,
        arm,
        is_clicked: user.is_multiple_of(3),
    }
}

/// A pair that settles slots in order.
struct Pair {
    id: PairId,
    ledger: Ledger,
    n_reported: usize,
}

impl Pair {
    fn new(id: PairId) -> Pair {
        Pair::of(id, &compared())
    }

    fn of(id: PairId, asked: &Experiment) -> Pair {
        let users = Users::Of([("e".to_owned(), asked.epochs(LOOK_MS))].into());
        Pair {
            id,
            ledger: Ledger::new(&ranking(), &Keep::of_users(users, LOOK_MS)),
            n_reported: 0,
        }
    }

    fn settle(&mut self, lists: &[List], until_slot: i64) -> PairNews {
        for slot in 0..until_slot {
            let lists: Vec<&List> = lists.iter().filter(|list| list.slot == slot).collect();
            if lists.is_empty() {
                continue;
            }
            lists.iter().for_each(|list| self.settle_list(list));
            let (start_ms, end_ms) = (slot * SLOT_MS, (slot + 1) * SLOT_MS);
            self.ledger.take(Settled::Slot { start_ms, end_ms });
        }
        self.ledger.cover_until(Some(until_slot * SLOT_MS));
        let arms = self.ledger.arms()[self.n_reported..].to_vec();
        self.n_reported += arms.len();
        PairNews::Reached {
            pair: self.id,
            arms,
            cells: self.ledger.take_complete(0),
            until_ms: self.ledger.until_ms(),
        }
    }

    fn settle_list(&mut self, list: &List) {
        let arm = Arm {
            experiment: "e".into(),
            arm: list.arm.into(),
        };
        let known = self.ledger.arms().iter().position(|known| *known == arm);
        let id = known.unwrap_or_else(|| {
            self.ledger.admit(std::slice::from_ref(&arm));
            self.ledger.arms().len() - 1
        });
        self.ledger.take(Settled::List(SettledList {
            start_ms: list.slot * SLOT_MS,
            ts_ms: list.slot * SLOT_MS + 5,
            user: NonZeroU32::new(list.user),
            arms: &[id as u32],
            capped: &[],
            tags: &[1, 2, 3],
            off_list: &[],
            outcome: ListOutcome {
                n_items: 3,
                clicked: &[u32::from(list.is_clicked)],
                n_off_list: 0,
            },
            items: None,
        }));
    }
}

/// Takes all looks that are due.
fn all(looks: &mut Looks) -> Vec<Look> {
    std::iter::from_fn(|| looks.look()).collect()
}

fn owned(pairs: &[PairId]) -> PairNews {
    PairNews::Owned(pairs.iter().map(|pair| (*pair, true)).collect())
}

fn times(looked: &[Look]) -> Vec<i64> {
    looked.iter().map(|looked| looked.as_of_ms / LOOK_MS).collect()
}

#[test]
fn looks_are_taken_in_order_once_every_pair_has_settled() {
    let mut looks = Looks::new(rules(compared()));
    let [mut one, mut other] = [Pair::new(0), Pair::new(1)];
    let lists = [list(7, 1, "a"), list(13, 2, "b"), list(20, 1, "a")];
    looks.take(owned(&[0, 1]));
    looks.take(one.settle(&lists, 30));
    assert_eq!(
        times(&all(&mut looks)),
        [0; 0],
        "nothing is known of the other pair"
    );
    assert_eq!(looks.waits_for(), Some(1));
    looks.take(other.settle(&[], 17));
    assert_eq!(
        times(&all(&mut looks)),
        [2],
        "the first cell with a list is the second one"
    );
    looks.take(other.settle(&[], 30));
    let looked = all(&mut looks);
    assert_eq!(times(&looked), [3, 4, 5]);
    let last = &looked[2].experiments["e"];
    assert_eq!([last.arms["a"].size.lists, last.arms["b"].size.lists], [2.0, 1.0]);
    assert_eq!(
        [last.arms["a"].size.users, last.arms["b"].size.users],
        [Some(1.0), Some(1.0)]
    );
    assert_eq!(last.start_ms, LOOK_MS);
    let (_, report) = last.comparison.as_ref().expect("there is a control");
    assert_eq!((report.look, report.as_of_ms), (4, 5 * LOOK_MS));
}

/// A user comes through one pair, in any number of cells and epochs.
#[test]
fn the_user_with_most_lists_of_an_arm_is_found_over_all_cells() {
    let asked = Experiment {
        epochs: vec![EpochStart {
            start_ms: 2 * LOOK_MS,
            shares: BTreeMap::new(),
        }],
        ..compared()
    };
    let mut looks = Looks::new(rules(asked.clone()));
    let [mut one, mut other] = [0, 1].map(|id| Pair::of(id, &asked));
    looks.take(owned(&[0, 1]));
    let of_one = [(0, 1), (0, 1), (0, 2), (8, 1), (20, 1), (20, 2)].map(|(slot, user)| list(slot, user, "a"));
    looks.take(one.settle(&of_one, 30));
    let of_other = [list(0, 5, "a"), list(1, 5, "a"), list(1, 5, "a"), list(1, 6, "b")];
    looks.take(other.settle(&of_other, 30));
    let looked = all(&mut looks);
    let top = |look: &Look| {
        let arms = &look.experiments["e"].arms;
        ["a", "b"].map(|arm| arms[arm].top_user_lists)
    };
    assert_eq!(top(&looked[0]), [Some(3.0), Some(1.0)], "user 5, then user 6");
    assert_eq!(top(&looked[4]), [Some(4.0), Some(1.0)], "user 1");
}

#[test]
fn a_pair_without_records_does_not_hold_looks_once_caught_up() {
    let mut looks = Looks::new(rules(compared()));
    let mut pair = Pair::new(0);
    looks.take(owned(&[0, 1]));
    looks.take(pair.settle(&[list(0, 1, "a")], 12));
    assert_eq!(all(&mut looks).len(), 0);
    looks.take(PairNews::Owned([(0, true), (1, false)].into()));
    assert_eq!(all(&mut looks).len(), 2);
}

#[test]
fn dropping_a_pair_drops_its_sums() {
    let mut looks = Looks::new(rules(compared()));
    let [mut one, mut other] = [Pair::new(0), Pair::new(1)];
    looks.take(owned(&[0, 1]));
    looks.take(one.settle(&[list(0, 1, "a")], 6));
    looks.take(other.settle(&[list(0, 2, "b")], 6));
    assert_eq!(all(&mut looks)[0].experiments["e"].arms.len(), 2);
    looks.take(PairNews::Dropped(1));
    looks.take(one.settle(&[], 12));
    assert_eq!(all(&mut looks).len(), 0, "it begins anew, and looks wait for it");
    looks.take(owned(&[0]));
    let looked = all(&mut looks);
    assert_eq!(looked[0].experiments["e"].arms.keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn users_of_two_arms_count_only_within_an_epoch() {
    let asked = Experiment {
        epochs: vec![EpochStart {
            start_ms: LOOK_MS,
            shares: [("a".to_owned(), 0.9), ("b".to_owned(), 0.1)].into(),
        }],
        ..compared()
    };
    let mut pair = Pair::of(0, &asked);
    let mut looks = Looks::new(rules(asked));
    // User 1 changes arms with the epoch, user 2 within the first epoch, user 3 within the second.
    let lists = [
        list(0, 1, "a"),
        list(6, 1, "b"),
        list(0, 2, "a"),
        list(3, 2, "b"),
        list(7, 3, "a"),
        list(8, 3, "b"),
    ];
    looks.take(owned(&[0]));
    looks.take(pair.settle(&lists, 12));
    let looked = all(&mut looks);
    let (_, report) = looked[1].experiments["e"]
        .comparison
        .as_ref()
        .expect("there is a control");
    let multi_arm = report.multi_arm.expect("users are counted");
    assert_eq!([multi_arm.in_two, multi_arm.users], [2.0, 3.0]);
}

#[test]
fn shares_date_from_the_epoch_of_the_latest_lists() {
    let asked = Experiment {
        epochs: vec![EpochStart {
            // In the first cell, so the epoch begins with the second.
            start_ms: 1,
            shares: [("a".to_owned(), 0.9), ("b".to_owned(), 0.1)].into(),
        }],
        ..compared()
    };
    let mut pair = Pair::of(0, &asked);
    let mut looks = Looks::new(rules(asked));
    looks.take(owned(&[0]));
    looks.take(pair.settle(&[list(0, 1, "a"), list(6, 2, "b")], 12));
    let looked = all(&mut looks);
    let since_ms = looked.iter().map(|look| look.experiments["e"].shares_since_ms);
    assert_eq!(since_ms.collect::<Vec<_>>(), [0, LOOK_MS]);
}

/// A first look past whole weeks and the planned end would decide on ten minutes, and spend the α that is kept for the end.
#[test]
fn days_count_from_the_first_list_if_the_log_begins_after_the_start() {
    const DAY_MS: i64 = 86_400_000;
    let first_cell_ms = 20 * DAY_MS;
    for (start_ms, expected_ms) in [
        (DAY_MS, first_cell_ms),
        (first_cell_ms + 1000, first_cell_ms + 1000),
    ] {
        let mut asked = compared();
        asked.start_ms = Some(start_ms);
        let settings = asked.settings.as_mut().expect("there is a control");
        settings.planned_days = Some(14.0);
        let mut pair = Pair::of(0, &asked);
        let mut looks = Looks::new(rules(asked));
        let slot = first_cell_ms / SLOT_MS + 1;
        let lists: Vec<List> = (0..1_500)
            .map(|user| list(slot, user + 1, ["a", "b"][user as usize % 2]))
            .collect();
        looks.take(owned(&[0]));
        looks.take(pair.settle(&lists, slot + 5));
        let look = &all(&mut looks)[0].experiments["e"];
        assert_eq!(look.start_ms, expected_ms);
        let (_, report) = look.comparison.as_ref().expect("there is a control");
        assert_eq!(report.next_decision_ms, Some(expected_ms + 7 * DAY_MS));
        assert_eq!(report.planned_end_ms, Some(expected_ms + 14 * DAY_MS));
        let decision = report.arms["b"].decision.as_ref().expect("it is tested");
        assert_eq!(decision.reason, "0 of 7 days");
    }
}

#[test]
fn without_a_control_arms_have_intervals_and_nothing_is_compared() {
    let mut looks = Looks::new(rules(Experiment::default()));
    let mut pair = Pair::new(0);
    let lists: Vec<List> = (1..300)
        .map(|user| list(i64::from(user % 6), user, "a"))
        .collect();
    looks.take(owned(&[0]));
    looks.take(pair.settle(&lists, 6));
    let looked = all(&mut looks);
    let look = &looked[0].experiments["e"];
    assert_eq!(look.comparison, None);
    let hit_rate = look.arms["a"].metrics["hit_rate@1"];
    let interval = hit_rate.interval.expect("more than 30 buckets and 10 clicks");
    assert_eq!(hit_rate.value, 99.0 / 299.0);
    assert!(interval.lower < hit_rate.value && hit_rate.value < interval.upper);
}

#[test]
fn users_of_many_partitions_are_not_counted_and_the_reason_is_given() {
    let mut looks = Looks::new(LookRules {
        counts_users: false,
        ..rules(compared())
    });
    let mut pair = Pair::new(0);
    looks.take(owned(&[0]));
    looks.take(pair.settle(&[list(0, 1, "a")], 6));
    let looked = all(&mut looks);
    let look = &looked[0].experiments["e"];
    assert_eq!(look.arms["a"].size.users, None);
    assert!(look.no_users.is_some_and(|why| why.contains("kafka.key")));
    let (_, report) = look.comparison.as_ref().expect("there is a control");
    assert_eq!((report.srm_p, report.multi_arm), (None, None));
}

#[test]
fn the_largest_experiment_is_given_up_at_the_memory_limit() {
    let mut looks = Looks::new(LookRules {
        max_bytes: 500,
        ..rules(compared())
    });
    let mut pair = Pair::new(0);
    looks.take(owned(&[0]));
    looks.take(pair.settle(
        &[list(0, 1, "a"), list(6, 1, "a"), list(0, 2, "a"), list(0, 3, "a")],
        12,
    ));
    let looked = all(&mut looks);
    assert_eq!(looked[0].given_up, Some(GivenUp::Experiment("e".to_owned())));
    assert!(looked.iter().all(|looked| looked.experiments.is_empty()));
    assert_eq!(looked[1].given_up, None);
}

/// Returns the waiting cells of a pair that settles nothing, and the findings, at this memory limit.
fn waiting(max_bytes: u64, lists: &[List]) -> (u64, Vec<ResumeFinding>) {
    let mut looks = Looks::new(LookRules {
        max_bytes,
        bounds_waiting: true,
        ..rules(compared())
    });
    looks.take(owned(&[0, 1]));
    looks.take(Pair::new(0).settle(lists, 24));
    (
        looks.bytes().values().map(|of| of.waiting).sum(),
        looks.take_found(),
    )
}

#[test]
fn waiting_cells_are_given_up_with_their_experiment_at_the_memory_limit() {
    let lists: Vec<List> = (1..200)
        .map(|user| list(i64::from(user % 24), user, "a"))
        .collect();
    let (needed, found) = waiting(u64::MAX, &lists);
    assert!(needed > 4 * 30 && found.is_empty());
    assert_eq!(waiting(needed, &lists), (needed, vec![]));
    let given_up = ResumeFinding::GivenUp(GivenUp::Experiment("e".to_owned()));
    assert_eq!(waiting(needed - 1, &lists), (0, vec![given_up]));
}

#[test]
fn waiting_cells_displace_windows_first() {
    let lists: Vec<List> = (1..200)
        .map(|user| list(i64::from(user % 24), user, "a"))
        .collect();
    let looks = |max_bytes| {
        let mut looks = Looks::new(LookRules {
            max_bytes,
            bounds_waiting: true,
            window: window::window(3),
            ..rules(compared())
        });
        let mut pair = Pair::new(0);
        looks.take(owned(&[0, 1]));
        looks.take(Pair::new(1).settle(&[], 12));
        looks.take(pair.settle(&lists, 12));
        assert_eq!(all(&mut looks).len(), 2);
        let later: Vec<List> = lists.iter().filter(|list| list.slot >= 12).copied().collect();
        looks.take(pair.settle(&later, 24));
        let of = looks.bytes()["e"];
        (of, looks.take_found())
    };
    let (of, found) = looks(u64::MAX);
    assert!(of.window > 1 && found.is_empty());
    let (left, found) = looks(of.own + of.window + of.waiting - 1);
    assert_eq!(found, [ResumeFinding::GivenUp(GivenUp::Window("e".to_owned()))]);
    assert_eq!(left, ExperimentBytes { window: 0, ..of });
}

prop_compose! {
    fn some_list()(slot in 0..24_i64, user in 1..400_u32, arm in 0..2_usize) -> List {
        list(slot, user, ["a", "b"][arm])
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// To the last digit, at every look. Over several epochs the compared values are means of ratios and have no parts.
    #[test]
    fn every_value_is_the_ratio_of_its_parts(
        lists in prop::collection::vec(some_list(), 1..600),
        epoch_slot in 0..24_i64,
    ) {
        let first_slot = epoch_slot / SLOTS_A_CELL * SLOTS_A_CELL;
        let asked = Experiment {
            epochs: vec![EpochStart {
                start_ms: first_slot * SLOT_MS,
                shares: [("a".to_owned(), 0.25), ("b".to_owned(), 0.75)].into(),
            }],
            ..compared()
        };
        let mut looks = Looks::new(LookRules { window: window(2), ..rules(asked.clone()) });
        looks.take(owned(&[0]));
        looks.take(Pair::of(0, &asked).settle(&lists, 24));
        for looked in all(&mut looks) {
            let Some(look) = looked.experiments.get("e") else { continue };
            for arm in look.arms.values() {
                for metric in arm.windows.values().flat_map(|window| window.metrics.values()).chain(arm.metrics.values()) {
                    prop_assert_eq!(metric.value, metric.parts.value());
                }
            }
            let until = looked.as_of_ms / SLOT_MS;
            let has = |arm: &str, is_later: bool| {
                lists.iter().any(|list| list.arm == arm && list.slot < until && (list.slot >= first_slot) == is_later)
            };
            let n_epochs = [false, true].iter().filter(|later| has("a", **later) && has("b", **later)).count();
            let (_, report) = look.comparison.as_ref().expect("it has a control");
            for (key, metric) in report.arms.values().flat_map(|arm| &arm.metrics) {
                // Recall does not count an epoch without a click, and metrics per user have no value.
                if metric.arm.is_some() && !key.starts_with("recall") {
                    prop_assert_eq!(metric.parts.is_some(), n_epochs == 1, "{}", key);
                }
                if let Some(parts) = metric.parts {
                    prop_assert_eq!([metric.control, metric.arm], [parts.control, parts.arm].map(|of| Some(of.value())));
                }
            }
        }
    }

    /// Looks depend neither on how users are spread over pairs, nor on how often pairs report their progress.
    #[test]
    fn looks_do_not_depend_on_the_order_of_lists(
        lists in prop::collection::vec(some_list(), 1..600),
        steps in prop::collection::vec(1..24_i64, 0..4),
    ) {
        let mut whole = Looks::new(rules(compared()));
        whole.take(owned(&[0]));
        whole.take(Pair::new(0).settle(&lists, 24));
        let expected = all(&mut whole);

        let mut looks = Looks::new(rules(compared()));
        looks.take(owned(&[0, 1]));
        let mut pairs = [Pair::new(0), Pair::new(1)];
        let mut steps = steps;
        steps.push(24);
        steps.sort_unstable();
        let mut found = Vec::new();
        let mut reported = 0;
        for step in steps {
            for (index, pair) in (0..).zip(&mut pairs) {
                let own = lists.iter().filter(|list| list.slot >= reported && list.user % 2 == index);
                let own: Vec<List> = own.copied().collect();
                looks.take(pair.settle(&own, step));
            }
            reported = step;
            found.extend(all(&mut looks));
        }
        prop_assert_eq!(times(&found), times(&expected));
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(&found.experiments, &expected.experiments);
        }
    }
}
