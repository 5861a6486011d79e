//! Intervals of arms in the window that ends with a look.

use std::collections::BTreeSet;

use super::*;
use crate::ledger::{BucketSums, Epochs, N_BUCKETS};
use crate::statistics::Interval;

pub(super) const SLOTS_A_CELL: i64 = LOOK_MS / SLOT_MS;

pub(super) fn window(n_cells: i64) -> Option<CellWindow> {
    let name = "day".to_owned();
    Some(CellWindow { name, n_cells })
}

fn in_window<'a>(looked: &'a Look, arm: &str) -> Option<&'a WindowLook> {
    looked.experiments["e"].arms.get(arm)?.windows.get("day")
}

/// Sums of these lists in a separate pair, by cell, then arm.
pub(super) fn cells_of(lists: &[List]) -> Vec<BTreeMap<u32, BucketSums>> {
    let until = lists.iter().map(|list| list.slot / SLOTS_A_CELL + 1).max();
    let PairNews::Reached { cells, .. } = Pair::new(0).settle(lists, until.unwrap_or(0) * SLOTS_A_CELL)
    else {
        unreachable!("a pair that settles has come further")
    };
    let cells = cells.iter();
    cells.map(|(_, cell)| cell.numbers().buckets.clone()).collect()
}

/// Users, each in a bucket of its own.
fn users_of_buckets(n: usize) -> Vec<u32> {
    let mut taken = BTreeSet::new();
    let is_new = |user: &u32| {
        let cells = cells_of(&[list(0, *user, "a")]);
        let bucket = cells[0][&0].buckets()[0];
        taken.insert(bucket)
    };
    (1..).filter(is_new).take(n).collect()
}

/// 32 buckets of two lists, both clicked or neither: R = 1/2; e_b = ±1/64; V = 32/31 · 32/64² = 1/124; t of 31 degrees 2.0395134.
#[test]
fn a_window_of_two_cells_by_hand() {
    let mut looks = Looks::new(LookRules {
        window: window(2),
        ..rules(Experiment::default())
    });
    let users = users_of_buckets(32);
    let lists = users.iter().enumerate().flat_map(|(number, user)| {
        [0, 1, 2].map(|cell| List {
            is_clicked: cell == 0 || number % 2 == 0,
            ..list(SLOTS_A_CELL * cell, *user, "a")
        })
    });
    let lists: Vec<List> = lists.collect();
    looks.take(owned(&[0]));
    looks.take(Pair::new(0).settle(&lists, 4 * SLOTS_A_CELL));
    let looked = all(&mut looks);
    let lists_in_window = looked
        .iter()
        .map(|looked| in_window(looked, "a").map(|window| window.lists));
    assert_eq!(
        lists_in_window.collect::<Vec<_>>(),
        [32.0, 64.0, 64.0, 32.0].map(Some)
    );
    let hit_rate = |look: usize| in_window(&looked[look], "a").expect("it has lists").metrics["hit_rate@1"];
    assert_eq!([hit_rate(0).value, hit_rate(1).value], [1.0, 0.75]);
    assert_eq!(hit_rate(0).interval, None, "nothing differs between buckets");
    let found = hit_rate(2);
    let interval = found.interval.expect("32 buckets and 32 clicks");
    let half_width = 2.039_513_446_396_4 / 124.0_f64.sqrt();
    assert_eq!(found.value, 0.5);
    assert!((interval.lower - (0.5 - half_width)).abs() < 1e-9, "{interval:?}");
    assert!((interval.upper - (0.5 + half_width)).abs() < 1e-9, "{interval:?}");
    let total = looked[2].experiments["e"].arms["a"].metrics["hit_rate@1"];
    assert_eq!(total.value, 64.0 / 96.0, "of all three cells");
}

/// R_C = 1/4. R_T = 1/4 in the first cell and 1/2 in the second, so 3/8 since the start.
#[test]
fn a_window_has_the_lift_of_its_own_lists() {
    let looked = |n_cells, epochs| {
        let asked = Experiment { epochs, ..compared() };
        let lists = (0..4000_u32).flat_map(|user| {
            let (arm, turn) = (["a", "b"][user as usize % 2], user / 2 % 4);
            [0, 1].map(|cell| List {
                is_clicked: turn == 0 || (turn == 1 && arm == "b" && cell == 1),
                ..list(SLOTS_A_CELL * cell, user + 1, arm)
            })
        });
        let lists: Vec<List> = lists.collect();
        let mut looks = Looks::new(LookRules {
            window: window(n_cells),
            ..rules(asked.clone())
        });
        looks.take(owned(&[0]));
        looks.take(Pair::of(0, &asked).settle(&lists, 2 * SLOTS_A_CELL));
        all(&mut looks).pop().expect("two looks are due")
    };
    let lift = |looked: &Look, arm: &str| {
        let lifts = &in_window(looked, arm).expect("it has lists").lifts;
        lifts.get("hit_rate@1").copied()
    };
    let last = looked(1, Vec::new());
    let found = lift(&last, "b").expect("there are enough users and clicks");
    assert_eq!(found.lift, 1.0);
    assert!(found.interval.is_some_and(Interval::excludes_zero), "{found:?}");
    let (_, report) = last.experiments["e"]
        .comparison
        .as_ref()
        .expect("it has a control");
    assert_eq!(
        report.arms["b"].metrics["hit_rate@1"].lift,
        Some(0.5),
        "since the start"
    );
    assert_eq!(lift(&last, "a"), None, "it is the control");
    // Shares that change within the window could look like an effect.
    let shares = || BTreeMap::from([("a".to_owned(), 0.5), ("b".to_owned(), 0.5)]);
    let later = || {
        vec![EpochStart {
            start_ms: LOOK_MS,
            shares: shares(),
        }]
    };
    assert_eq!(lift(&looked(2, later()), "b"), None);
    assert_eq!(lift(&looked(1, later()), "b"), Some(found));
}

#[test]
fn an_arm_without_lists_in_the_window_is_absent_and_takes_no_memory() {
    let mut looks = Looks::new(LookRules {
        window: window(2),
        ..rules(compared())
    });
    let lists = [list(0, 1, "a"), list(0, 2, "b"), list(SLOTS_A_CELL, 2, "b")];
    looks.take(owned(&[0]));
    looks.take(Pair::new(0).settle(&lists, 4 * SLOTS_A_CELL));
    let looked = all(&mut looks);
    let has = |arm: &str| {
        looked
            .iter()
            .map(|looked| in_window(looked, arm).is_some())
            .collect::<Vec<_>>()
    };
    assert_eq!(has("a"), [true, true, false, false]);
    assert_eq!(has("b"), [true, true, true, false]);
    assert_eq!(looks.bytes()["e"].window, 0);
    assert!(
        looked[3].experiments["e"].arms.contains_key("a"),
        "in total it has"
    );
}

/// The interval since the start is wider at 99%, but the interval in the window is not.
#[test]
fn intervals_of_a_window_always_use_95_percent() {
    let asked = |alpha| Experiment {
        settings: Some(Settings {
            alpha,
            ..Settings::new("a")
        }),
        ..Experiment::default()
    };
    let lists: Vec<List> = (1..300).map(|user| list(0, user, "a")).collect();
    let look = |alpha| {
        let mut looks = Looks::new(LookRules {
            window: window(1),
            ..rules(asked(alpha))
        });
        looks.take(owned(&[0]));
        looks.take(Pair::new(0).settle(&lists, SLOTS_A_CELL));
        let looked = looks.look().expect("it is due");
        let total = looked.experiments["e"].arms["a"].metrics["hit_rate@1"];
        let window = in_window(&looked, "a").expect("it has lists").metrics["hit_rate@1"];
        (total, window)
    };
    let [(total, window), (strict_total, strict_window)] = [0.05, 0.01].map(look);
    assert_eq!((total, strict_window), (window, window));
    let width = |metric: MetricLook| metric.interval.map(|interval| interval.upper - interval.lower);
    assert!(width(strict_total) > width(total));
}

#[test]
fn the_window_is_given_up_before_the_experiment_and_its_memory_is_free() {
    let lists: Vec<List> = (1..50).map(|user| list(0, user, "a")).collect();
    let bytes_of = |max_bytes| {
        let mut looks = Looks::new(LookRules {
            window: window(9),
            max_bytes,
            // Without a control, because a history would take more memory from look to look.
            ..rules(Experiment::default())
        });
        looks.take(owned(&[0]));
        looks.take(Pair::new(0).settle(&lists, 3 * SLOTS_A_CELL));
        let looked = all(&mut looks);
        (looked, looks.bytes().get("e").copied().unwrap_or_default())
    };
    let (looked, whole) = bytes_of(u64::MAX);
    assert!(looked.iter().all(|looked| looked.given_up.is_none()));
    let (_, untouched) = bytes_of(whole.own + whole.window);
    assert_eq!(untouched, whole);

    let window = || GivenUp::Window("e".to_owned());
    let (looked, left) = bytes_of(whole.own + whole.window - 1);
    let given_up = |looked: &[Look]| {
        looked
            .iter()
            .map(|looked| looked.given_up.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(given_up(&looked), [Some(window()), None, None]);
    assert_eq!((left.own, left.window), (whole.own, 0));
    assert!(looked.iter().all(|looked| in_window(looked, "a").is_none()));
    assert_eq!(looked[2].experiments["e"].arms["a"].size.lists, 49.0);

    let (looked, left) = bytes_of(whole.own - 1);
    let experiment = GivenUp::Experiment("e".to_owned());
    assert_eq!(given_up(&looked), [Some(window()), Some(experiment), None]);
    assert_eq!((left.own, left.window), (0, 0));
}

#[test]
fn histories_count_toward_memory() {
    let lists: Vec<List> = (1..50).map(|user| list(0, user, "a")).collect();
    let own_bytes = |asked| {
        let mut looks = Looks::new(rules(asked));
        looks.take(owned(&[0]));
        looks.take(Pair::new(0).settle(&lists, 3 * SLOTS_A_CELL));
        let looked = all(&mut looks);
        let history = looked[2].experiments["e"].history.bytes();
        (looks.bytes()["e"].own, history)
    };
    let (without, nothing) = own_bytes(Experiment::default());
    let (with, history) = own_bytes(compared());
    assert_eq!((with - without, nothing), (history, 0));
    assert_eq!(
        history,
        2 * 3 * size_of::<Point>() as u64,
        "an arm, a metric and the users, three looks"
    );
}

#[test]
fn the_longest_window_of_whole_cells_is_taken() {
    let longest = |windows: &[(&'static str, i64)]| {
        let window = CellWindow::longest(windows.iter().copied(), LOOK_MS);
        window.map(|window| (window.name, window.n_cells))
    };
    let [five, hour, odd, day] = [
        ("5m", 300_000),
        ("1h", 3_600_000),
        ("65m", 3_900_000),
        ("24h", 86_400_000),
    ];
    assert_eq!(longest(&[five, hour, day]), Some(("24h".to_owned(), 144)));
    assert_eq!(longest(&[five, hour, odd]), Some(("1h".to_owned(), 6)));
    assert_eq!(longest(&[five, odd]), None);
}

/// Megabytes of an arm's day in one pair, if each bucket has this many lists of ten items in a cell, one in ten with a click.
fn megabytes_of_a_day(lists_a_bucket: u32) -> f64 {
    let ks = [1, 5, 10].map(|k| NonZeroU32::new(k).expect("it is not 0"));
    let ranking = Ranking::new(&Measures::usual(&ks));
    let users = Users::Of([("e".to_owned(), Epochs::default())].into());
    let mut ledger = Ledger::new(&ranking, &Keep::of_users(users, LOOK_MS));
    let arm = Arm {
        experiment: "e".into(),
        arm: "a".into(),
    };
    ledger.admit(std::slice::from_ref(&arm));
    for n in 0..N_BUCKETS as u32 * lists_a_bucket {
        let clicked = if n % 10 == 0 { 1 << (n / 10 % 10) } else { 0 };
        ledger.take(Settled::List(SettledList {
            start_ms: 0,
            ts_ms: 5,
            user: NonZeroU32::new(n + 1),
            arms: &[0],
            capped: &[],
            tags: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
            off_list: &[],
            outcome: ListOutcome {
                n_items: 10,
                clicked: &[clicked],
                n_off_list: 0,
            },
            items: None,
        }));
    }
    let (start_ms, end_ms) = (0, SLOT_MS);
    ledger.take(Settled::Slot { start_ms, end_ms });
    let until_ms = Some(LOOK_MS);
    ledger.cover_until(until_ms);
    let n_columns = ranking.width() + 1;
    let mut looks = Looks::new(LookRules {
        ranking,
        window: window(144),
        ..rules(Experiment::default())
    });
    looks.take(owned(&[0]));
    looks.take(PairNews::Reached {
        pair: 0,
        arms: vec![arm],
        cells: ledger.take_complete(0),
        until_ms,
    });
    looks.look().expect("it is due");
    let sums = N_BUCKETS as u64 * row_bytes(n_columns);
    let day = 144 * (looks.bytes()["e"].window - sums) + sums;
    assert!(day <= max_window_bytes(144, n_columns));
    day as f64 / 1e6
}

#[test]
fn memory_of_dense_arms_matches_docs_sizing() {
    let found = [8, 48].map(megabytes_of_a_day);
    let rounded = found.map(|megabytes| (megabytes * 10.0).round() / 10.0);
    assert_eq!(rounded, [2.3, 3.6]);
}
