//! Property tests of a board whose pairs are replaced by their ledgers, compared with one that gets all deltas.

use proptest::prelude::*;

use super::resumed::{keep, steps};
use super::*;

/// Settled end, and settled sums of the arms that have any.
fn settled(board: &Board) -> (Option<i64>, BTreeMap<String, String>) {
    let snapshot = board.snapshot(None);
    let settled = View::Settled as usize;
    let arms = snapshot.arms.into_iter();
    let with_lists = arms.filter(|arm| arm.sums[settled].iter().any(|sums| sums[LISTS] != 0));
    let sums = with_lists.map(|arm| (arm.arm.to_string(), format!("{:?}", arm.sums[settled])));
    (snapshot.settled_end_ms, sums.collect())
}

proptest! {
    /// Checks that after any number of replacements, the last ledgers add up to the same as all deltas, and no end ever
    /// moves back.
    #[test]
    fn replaced_pairs_add_up_to_their_deltas(
        pairs in prop::collection::vec(steps(), 1..4),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..6),
    ) {
        let ranking = of_coverage();
        let mut config = config(&[]);
        config.join.slot_ms = 1000;
        let [reported, replaced] = [(); 2].map(|()| Board::new(&config, &ranking));
        for board in [&reported, &replaced] {
            board.set_catalogue(catalogue(9));
        }
        let begin = |steps| (tracker(ranking.clone(), Some(catalogue(9)), &keep(&[])), steps, 0);
        let mut trackers: Vec<_> = pairs.into_iter().map(begin).collect();
        let n_pairs = trackers.len();
        let all = cuts.iter().map(|(pair, until)| (pair.index(n_pairs), Some(*until)));
        let mut last_end_ms = None;
        for (pair, until) in all.chain((0..n_pairs).map(|pair| (pair, None))) {
            let (tracker, steps, n_read) = &mut trackers[pair];
            let until = until.map_or(steps.len(), |until| until.index(steps.len()));
            let mut after_ms: i64 = steps[..*n_read].iter().map(|(_, seconds, _)| seconds * 1000).sum();
            while *n_read < until {
                let (arm, seconds, first) = steps[*n_read];
                after_ms += seconds * 1000;
                let items: Vec<u64> = (first..first + 3).collect();
                read(tracker, *n_read, &[(["a", "b", "c"][arm], after_ms)], &items);
                *n_read += 1;
            }
            tracker.checkpoint(&[(Side::Served, *n_read as i64)]).expect("it replays nothing");
            let delta = tracker.take_delta();
            reported.merge(pair as PairId, &delta);
            let ledger = Ledger::decode(&tracker.encode_ledger(), &ranking, &keep(&[]));
            replaced.replace(pair as PairId, &ledger.expect("it was encoded"), delta.reach);
            for board in [&reported, &replaced] {
                board.show_in(View::Settled, pair as PairId);
            }
            let (end_ms, _) = settled(&replaced);
            prop_assert!(end_ms >= last_end_ms, "{end_ms:?} after {last_end_ms:?}");
            last_end_ms = end_ms;
        }
        prop_assert_eq!(settled(&replaced), settled(&reported));
        prop_assert_eq!(replaced.is_exact(), reported.is_exact());
    }
}

#[test]
fn a_replaced_pair_stays_shown_in_the_settled_view_and_drops_missing_sums() {
    let ranking = of_coverage();
    let board = Board::new(&config(&[]), &ranking);
    let state = |lists: &[(&str, i64)]| {
        let mut tracker = tracker(ranking.clone(), None, &keep(&[]));
        read(&mut tracker, 0, lists, &[]);
        tracker
            .checkpoint(&[(Side::Served, lists.len() as i64)])
            .expect("it replays nothing");
        let reach = tracker.take_delta().reach;
        let ledger = Ledger::decode(&tracker.encode_ledger(), &ranking, &keep(&[]));
        (ledger.expect("it was encoded"), reach)
    };
    let (first, reach) = state(&[("a", 0), ("b", 0), ("a", 90_000)]);
    board.replace(0, &first, reach);
    assert_eq!(lists(&board, View::Settled, 2), []);
    board.show_in(View::Settled, 0);
    assert_eq!(lists(&board, View::Settled, 2), named(&[("a", 1), ("b", 1)]));
    board.show_in(View::Live, 0);
    assert_eq!(lists(&board, View::Live, 2), named(&[("a", 0), ("b", 0)]));
    let end_ms = board.snapshot(None).settled_end_ms;
    let (less, reach) = state(&[("a", 0), ("a", 0), ("a", 50_000)]);
    board.replace(0, &less, reach);
    assert_eq!(lists(&board, View::Settled, 2), named(&[("a", 2)]));
    assert_eq!(
        board.snapshot(None).settled_end_ms,
        end_ms,
        "an end does not fall"
    );
}
