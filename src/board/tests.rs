//! Tests of the board with pairs that have read a few lists.

mod replaced;
mod resumed;

use std::num::NonZeroU32;

use abgauge_core::engine::Rules;
use abgauge_core::engine::event::{ArmName, Batch, Body, Event, Position, Served, Side};
use abgauge_core::ledger::{Keep, PairTracker};
use abgauge_core::metrics::catalogue::NewItem;
use abgauge_core::metrics::{LISTS, Measures};

use super::*;

pub(crate) const T0: i64 = 1_763_596_800_000;

fn board(starts: &[(&str, i64)]) -> Board {
    Board::new(&config(starts), &ranking())
}

/// Windows of a minute and of an hour.
pub(crate) fn config(starts: &[(&str, i64)]) -> Config {
    let window = |name: &str, span_ms| settings::WindowSpan {
        name: name.into(),
        span_ms,
    };
    let mut config = defaults();
    config.windows = vec![window("1m", 60_000), window("1h", 3_600_000)];
    config.experiments = starting(starts);
    config
}

/// Experiments that start at these times.
fn starting(starts: &[(&str, i64)]) -> BTreeMap<String, settings::Experiment> {
    let experiment = |(name, start_ms): &(&str, i64)| {
        let experiment = settings::Experiment {
            start_ms: Some(*start_ms),
            ..settings::Experiment::default()
        };
        (name.to_string(), experiment)
    };
    starts.iter().map(experiment).collect()
}

fn defaults() -> Config {
    let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "localhost:9092".to_owned());
    settings::load(None, [brokers].into_iter()).expect("the defaults are valid")
}

/// Ranking with coverage at 1 and over the whole list.
fn of_coverage() -> Ranking {
    Ranking::new(&Measures {
        metrics: vec!["coverage"],
        catalogue: true,
        ..Measures::usual(&[NonZeroU32::MIN])
    })
}

/// Catalogue of the items 1, 2, … by their hashes.
fn catalogue(n_items: u64) -> Arc<Catalogue> {
    let item = |hash: u64| NewItem {
        id: hash.to_string(),
        hash,
        aspects: Vec::new(),
        users: 0,
    };
    Arc::new(Catalogue::new((1..=n_items).map(item).collect(), 1, None))
}

fn ranking() -> Ranking {
    Ranking::new(&Measures::usual(&[NonZeroU32::MIN]))
}

/// Delta of a pair that has read lists of `(arm, time after T0)` in the experiment `e`.
fn delta(lists: &[(&str, i64)]) -> PairDelta {
    delta_of(ranking(), lists, &[], None)
}

/// Delta of lists that each have these items.
fn delta_of(
    ranking: Ranking,
    lists: &[(&str, i64)],
    items: &[u64],
    catalogue: Option<Arc<Catalogue>>,
) -> PairDelta {
    let mut tracker = tracker(ranking, catalogue, &Keep::default());
    read(&mut tracker, 0, lists, items);
    tracker.take_delta()
}

pub(crate) fn tracker(ranking: Ranking, catalogue: Option<Arc<Catalogue>>, keep: &Keep) -> PairTracker {
    let mut tracker = PairTracker::new(rules(), ranking, None, keep);
    if let Some(catalogue) = catalogue {
        tracker.set_catalogue(catalogue);
    }
    tracker
}

fn rules() -> Rules {
    Rules {
        attribution_ms: 10_000,
        click_skew_ms: 0,
        same_list_ms: 0,
        lateness_ms: 0,
        max_future_ms: 0,
        slot_ms: 1000,
        max_off_list: 0,
        max_lists_per_click: 32,
        max_arms: 10,
        one_topic: true,
        gather: None,
    }
}

/// Reads lists that all have these items, starting at this offset.
pub(crate) fn read(tracker: &mut PairTracker, offset: usize, lists: &[(&str, i64)], items: &[u64]) {
    let mut batch = Batch::default();
    batch.items.extend(items);
    for (n, (arm, after_ms)) in lists.iter().enumerate() {
        let start = batch.text.len() as u32;
        batch.text.push_str(&format!("e{arm}"));
        let hash = arm
            .bytes()
            .fold(1, |hash: u128, byte| hash * 257 + u128::from(byte));
        let end = batch.text.len() as u32;
        batch.arms.push(ArmName {
            hash,
            experiment: start..start + 1,
            arm: start + 1..end,
        });
        let n = n as u32;
        let list = Served {
            id: (offset + n as usize) as u128,
            user: None,
            ts_ms: T0 + after_ms,
            items: 0..items.len() as u32,
            arms: n..n + 1,
        };
        let at = Position {
            side: Side::Served,
            offset: offset as i64 + i64::from(n),
            record_ts_ms: i64::MAX,
        };
        batch.events.push(Event::new(at, Body::Served(list)));
    }
    tracker.apply(&batch, u64::MAX);
}

/// Lists by arm in one view and window.
fn lists(board: &Board, view: View, window: usize) -> Vec<(String, i128)> {
    let arms = board.snapshot(None).arms;
    arms.iter()
        .map(|arm| (arm.arm.to_string(), arm.sums(view, window)[LISTS]))
        .collect()
}

fn named(expected: &[(&str, i128)]) -> Vec<(String, i128)> {
    expected.iter().map(|(arm, n)| (arm.to_string(), *n)).collect()
}

#[test]
fn adds_up_the_shown_pairs() {
    let board = board(&[]);
    board.merge(0, &delta(&[("a", 0), ("a", 100), ("b", 200)]));
    board.merge(1, &delta(&[("b", 0)]));
    board.set_live_end(T0 + 200);
    assert_eq!(lists(&board, View::Live, 2), []);
    board.show(0);
    assert_eq!(lists(&board, View::Live, 2), named(&[("a", 2), ("b", 1)]));
    board.show(1);
    assert_eq!(lists(&board, View::Live, 2), named(&[("a", 2), ("b", 2)]));
    board.hide(0);
    assert_eq!(lists(&board, View::Live, 2), named(&[("b", 1)]));
    board.remove(1);
    board.show(0);
    assert_eq!(lists(&board, View::Live, 2), named(&[("a", 2), ("b", 1)]));
}

/// `/metrics` left them out, so that the totals of all arms did not add up to the accepted lists.
#[test]
fn shows_an_arm_whose_lists_are_all_ahead_of_the_clock() {
    let board = board(&[]);
    board.show_until([T0 + 500, T0]);
    board.merge(0, &delta(&[("a", 0), ("b", 5_000), ("b", 6_000)]));
    board.set_live_end(T0 + 6_000);
    board.show(0);
    assert_eq!(lists(&board, View::Live, 2), named(&[("a", 1), ("b", 2)]));
    assert_eq!(lists(&board, View::Live, 0), named(&[("a", 1), ("b", 0)]));
    let last_lists = || {
        board
            .snapshot(None)
            .arms
            .into_iter()
            .map(|arm| arm.last_list_ms - T0)
    };
    assert_eq!(last_lists().collect::<Vec<_>>(), [0, 500]);
    board.show_until([T0 + 9_000, T0]);
    assert_eq!(lists(&board, View::Live, 0), named(&[("a", 1), ("b", 2)]));
    assert_eq!(last_lists().collect::<Vec<_>>(), [0, 6_000]);
}

/// A resumed pair has its settled numbers at once, while its log is still to be re-read.
#[test]
fn a_pair_may_be_shown_in_one_view_before_it_is_in_both() {
    let board = board(&[]);
    board.merge(0, &delta(&[("a", 0), ("a", 20_000)]));
    board.set_live_end(T0 + 20_000);
    board.show_in(View::Settled, 0);
    assert_eq!(lists(&board, View::Settled, 2), named(&[("a", 1)]));
    assert_eq!(lists(&board, View::Live, 2), named(&[("a", 0)]));
    board.show(0);
    assert_eq!(lists(&board, View::Settled, 2), named(&[("a", 1)]));
    assert_eq!(lists(&board, View::Live, 2), named(&[("a", 2)]));
    board.hide(0);
    assert_eq!(lists(&board, View::Settled, 2), []);
}

#[test]
fn a_settled_window_ends_with_the_furthest_pair() {
    let board = board(&[]);
    board.merge(0, &delta(&[("a", 0), ("a", 20_000)]));
    board.merge(1, &delta(&[("a", 0), ("a", 100_000)]));
    board.set_live_end(T0 + 100_000);
    board.show(0);
    board.show(1);
    let snapshot = board.snapshot(None);
    assert_eq!(snapshot.settled_end_ms, Some(T0 + 89_999));
    let arm = &snapshot.arms[0];
    assert_eq!(
        arm.sums(View::Settled, 0)[LISTS],
        0,
        "both settled lists are more than a minute back"
    );
    assert_eq!(arm.sums(View::Settled, 1)[LISTS], 2);
    assert_eq!(arm.sums(View::Live, 0)[LISTS], 1, "the list at 100 s");
}

#[test]
fn a_settled_window_does_not_slide_back_when_the_furthest_pair_is_hidden() {
    let board = board(&[]);
    board.merge(0, &delta(&[("a", 0), ("a", 20_000)]));
    board.merge(1, &delta(&[("a", 0), ("a", 100_000)]));
    board.show(0);
    board.show(1);
    let before = board.snapshot(None);
    board.hide(1);
    let after = board.snapshot(None);
    assert_eq!(after.settled_end_ms, before.settled_end_ms);
    assert_eq!(
        after.arms[0].sums(View::Settled, 0)[LISTS],
        0,
        "its cells left with the window"
    );
    assert_eq!(after.arms[0].sums(View::Settled, 1)[LISTS], 1);
}

/// Regression: coverage slid with the pair's settled slots at once, but the sums only if a scrape came in between.
#[test]
fn a_settled_window_keeps_its_end_without_a_scrape_before_its_furthest_pair_leaves() {
    for leave in [Board::hide, Board::remove] {
        let board = board(&[]);
        board.merge(0, &delta(&[("a", 0), ("a", 20_000)]));
        board.merge(1, &delta(&[("a", 0), ("a", 100_000)]));
        board.show(0);
        board.show(1);
        leave(&board, 1);
        let snapshot = board.snapshot(None);
        assert_eq!(snapshot.settled_end_ms, Some(T0 + 89_999));
        assert_eq!(snapshot.arms[0].sums(View::Settled, 0)[LISTS], 0);
    }
}

#[test]
fn a_total_starts_at_the_start_of_its_experiment() {
    let board = board(&[("e", T0 + 5000)]);
    board.merge(0, &delta(&[("a", 0), ("a", 5000), ("a", 6000)]));
    board.set_live_end(T0 + 6000);
    board.show(0);
    assert_eq!(lists(&board, View::Live, 2), named(&[("a", 2)]));
    assert_eq!(
        lists(&board, View::Live, 1),
        named(&[("a", 3)]),
        "windows slide over it"
    );
}

#[test]
fn a_timeline_adds_cells_of_any_length() {
    let cell = |tally: &[i64]| {
        let mut cell = Cell::default();
        cell.add(tally).expect("small sums");
        cell
    };
    let (short, long) = (cell(&[1]), cell(&[2, 5]));
    for cells in [[&short, &long], [&long, &short]] {
        let mut timeline = board(&[]).timeline(0, T0);
        let number = T0 / timeline.cell_ms;
        timeline.add(3, cells.map(|cell| (number, cell)).into_iter());
        let last = timeline.cells.last().and_then(Option::as_deref);
        assert_eq!(last, Some(&[3, 5, 0][..]));
    }
}

#[test]
fn timelines_of_a_few_arms_match_a_snapshot() {
    let board = board(&[]);
    board.merge(0, &delta(&[("a", 0), ("b", 20_000), ("b", 100_000)]));
    board.merge(1, &delta(&[("b", 3000), ("c", 4000)]));
    board.set_live_end(T0 + 100_000);
    board.show(0);
    let reported = board.snapshot(None);
    let [a, b] = [0, 1].map(|place| reported.arms[place].clone());
    let of_hidden = ArmSnapshot {
        arm: "c".into(),
        ..a.clone()
    };
    let unknown = ArmSnapshot {
        arm: "d".into(),
        ..a.clone()
    };
    let found = board.timelines(1, &[&b, &of_hidden, &unknown, &a]);
    assert!(found[1].is_none() && found[2].is_none());
    let cells = |lines: &Option<[Timeline; 2]>| {
        let lines = lines.as_ref().expect("it is shown");
        lines.each_ref().map(|line| (line.start_ms, line.cells.clone()))
    };
    let all = board.snapshot(Some(1));
    assert_eq!(cells(&found[3]), cells(&all.arms[0].timelines));
    assert_eq!(cells(&found[0]), cells(&all.arms[1].timelines));
    assert_ne!(cells(&found[0]), cells(&found[3]));
}

#[test]
fn a_timeline_has_the_cells_of_its_window() {
    let board = board(&[]);
    board.merge(0, &delta(&[("a", 0), ("a", 500), ("a", 3000)]));
    board.set_live_end(T0 + 3000);
    board.show(0);
    let snapshot = board.snapshot(Some(0));
    let [live, _] = snapshot.arms[0].timelines.as_ref().expect("it was asked for");
    assert_eq!(
        (live.start_ms, live.cell_ms, live.cells.len()),
        (T0 - 56_000, 1000, 60)
    );
    let cells = live
        .cells
        .iter()
        .map(|cell| cell.as_ref().map_or(0, |sums| sums[LISTS]));
    assert_eq!(cells.skip(56).collect::<Vec<_>>(), [2, 0, 0, 1]);
}

#[test]
fn a_reused_snapshot_equals_a_new_one() {
    let board = board(&[]);
    let mut snapshot = Snapshot::default();
    let mut look = || {
        board.snapshot_into(Some(0), &mut snapshot);
        assert_eq!(format!("{snapshot:?}"), format!("{:?}", board.snapshot(Some(0))));
        snapshot.arms.len()
    };
    board.show(0);
    board.show(1);
    board.set_live_end(T0 + 500);
    assert_eq!(look(), 0);
    board.merge(0, &delta(&[("b", 0), ("d", 100)]));
    assert_eq!(look(), 2);
    board.merge(1, &delta(&[("c", 0), ("a", 100), ("d", 200)]));
    assert_eq!(look(), 4, "arms have come in between");
    board.hide(0);
    assert_eq!(look(), 3);
    board.remove(1);
    board.show(0);
    assert_eq!(look(), 2);
}

#[test]
fn coverage_is_the_union_over_the_shown_pairs() {
    let ranking = of_coverage();
    let config = defaults();
    let catalogue = catalogue(3);
    let board = Board::new(&config, &ranking);
    board.set_catalogue(Arc::clone(&catalogue));
    for (pair, items) in [(0, [1, 2]), (1, [1, 3])] {
        let delta = delta_of(ranking.clone(), &[("a", 0)], &items, Some(Arc::clone(&catalogue)));
        board.merge(pair, &delta);
    }
    let columns = ranking.coverage().expect("it is measured");
    let shown = || {
        let arms = board.snapshot(None).arms;
        arms[0].sums(View::Live, 0)[columns.seen.clone()].to_vec()
    };
    board.show(0);
    assert_eq!(shown(), [1, 2], "at rank 1, and in all");
    board.show(1);
    assert_eq!(shown(), [1, 3]);
    board.remove(0);
    assert_eq!(shown(), [1, 2]);
}

#[test]
fn an_arm_without_room_for_its_coverage_has_none_until_its_pairs_are_removed() {
    let ranking = of_coverage();
    let mut config = defaults();
    let catalogue = catalogue(1);
    let of_part = 2 * abgauge_core::engine::coverage::Coverage::part_bytes(&catalogue, 2);
    config.limits.max_coverage_bytes = 2 * of_part;
    let board = Board::new(&config, &ranking);
    board.set_catalogue(Arc::clone(&catalogue));
    let delta = |arm| delta_of(ranking.clone(), &[(arm, 0)], &[1], Some(Arc::clone(&catalogue)));
    for (pair, arm, n_left_out) in [(0, "a", 0), (1, "b", 0), (2, "c", 1), (3, "c", 1)] {
        board.merge(pair, &delta(arm));
        assert_eq!(board.n_arms_without_coverage(), n_left_out, "{arm}");
    }
    board.remove(2);
    assert_eq!(board.n_arms_without_coverage(), 1);
    board.remove(3);
    assert_eq!(board.n_arms_without_coverage(), 0);
    board.remove(0);
    board.merge(4, &delta("c"));
    assert_eq!(board.n_arms_without_coverage(), 0, "there is room again");
}

/// Regression: the arms were checked in the order of a hash map, so each start left out others.
#[test]
fn a_larger_catalogue_keeps_coverage_for_the_first_arms_by_name() {
    let ranking = of_coverage();
    let mut config = defaults();
    let (small, large) = (catalogue(1), catalogue(2));
    let part_bytes = |catalogue| 2 * abgauge_core::engine::coverage::Coverage::part_bytes(catalogue, 2);
    config.limits.max_coverage_bytes = 4 * part_bytes(&large);
    assert_eq!(
        part_bytes(&large),
        2 * part_bytes(&small),
        "room for eight arms, then for four"
    );
    let board = Board::new(&config, &ranking);
    board.set_catalogue(Arc::clone(&small));
    let arms = ["f", "c", "h", "a", "e", "b", "g", "d"].map(|arm| (arm, 0));
    board.merge(0, &delta_of(ranking.clone(), &arms, &[1], Some(small)));
    board.show(0);
    assert_eq!(board.n_arms_without_coverage(), 0);
    board.set_catalogue(large);
    let size = ranking.coverage().expect("it is measured").size;
    let snapshot = board.snapshot(None);
    let covered = snapshot
        .arms
        .iter()
        .filter(|arm| arm.sums(View::Live, 0)[size] > 0);
    let covered: Vec<&str> = covered.map(|arm| &*arm.arm).collect();
    assert_eq!(covered, ["a", "b", "c", "d"]);
}
