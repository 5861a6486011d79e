//! Property tests of a board that starts a pair from its ledger, compared with one that gets all deltas.

use abgauge_core::engine::Checkpoint;
use abgauge_core::ledger::{KeptAggregates, Span, Starts, Users};
use proptest::prelude::*;

use super::*;

/// Parts of a ledger needed for the windows of [`board`].
pub fn keep(starts: &[(&str, i64)]) -> Keep {
    let span = |cell_ms| Span {
        cell_ms,
        n_cells: Some(N_CELLS),
        kept: KeptAggregates::ByArm,
    };
    Keep {
        total: Some(KeptAggregates::ByArm),
        starts: starts
            .iter()
            .map(|(name, ms)| ((*name).to_owned(), *ms))
            .collect::<Starts>(),
        users: Users::Nobody,
        spans: vec![span(1000), span(60_000)],
        catalogue: Some(1),
    }
}

/// Steps of an arm, seconds since the previous list, and the first item. Some lists are far apart.
pub fn steps() -> impl Strategy<Value = Vec<(usize, i64, u64)>> {
    let seconds = prop_oneof![8 => 0..3_i64, 3 => 3..90_i64, 1 => 90..5000_i64];
    prop::collection::vec((0..3_usize, seconds, 1..6_u64), 1..60)
}

/// Sums of each arm by view and window, and the time of its last list.
fn shown(board: &Board) -> BTreeMap<String, String> {
    let arms = board.snapshot(None).arms;
    let sums = arms.into_iter().map(|arm| {
        (
            arm.arm.to_string(),
            format!("{:?} {}", arm.sums, arm.last_list_ms),
        )
    });
    sums.collect()
}

proptest! {
    /// Wherever the log is cut, a ledger up to the cut plus the re-read rest add up to the same, in both views.
    #[test]
    fn a_pair_resumed_from_its_ledger_equals_an_uninterrupted_one(
        steps in steps(),
        cut in any::<prop::sample::Index>(),
        start in prop::option::of(0..200_i64),
    ) {
        let starts: Vec<(&str, i64)> = start.iter().map(|second| ("e", T0 + second * 1000)).collect();
        let ranking = of_coverage();
        let lists: Vec<(usize, i64, u64)> = steps
            .iter()
            .scan(0, |after_ms, (arm, seconds, first)| {
                *after_ms += seconds * 1000;
                Some((*arm, *after_ms, *first))
            })
            .collect();
        let mut config = config(&starts);
        config.join.slot_ms = 1000;
        let [whole, resumed] = [(); 2].map(|()| Board::new(&config, &ranking));
        for board in [&whole, &resumed] {
            board.set_catalogue(catalogue(9));
        }
        let read_one = |tracker: &mut PairTracker, n: usize| {
            let (arm, ts_ms, first) = lists[n];
            let items: Vec<u64> = (first..first + 3).collect();
            read(tracker, n, &[(["a", "b", "c"][arm], ts_ms)], &items);
        };
        let catalogue = || Some(catalogue(9));
        let mut tracker = tracker(ranking.clone(), catalogue(), &keep(&starts));
        let cut = cut.index(lists.len());
        for n in 0..lists.len() {
            read_one(&mut tracker, n);
            let delta = tracker.take_delta();
            whole.merge(0, &delta);
            if n == cut {
                let position = n as i64 + 1;
                let checkpoint = tracker.checkpoint(&[(Side::Served, position)]).expect("it replays nothing");
                let delta = tracker.take_delta();
                whole.merge(0, &delta);
                let ledger = Ledger::decode(&tracker.encode_ledger(), &ranking, &keep(&starts)).expect("it was encoded");
                resumed.resume(0, &ledger, delta.reach);
                let mut again = resume(&ranking, catalogue(), &keep(&starts), &checkpoint, ledger);
                for n in checkpoint.logs[0].resume.offset as usize..lists.len() {
                    read_one(&mut again, n);
                    again.reached(Side::Served, n as i64 + 1);
                    resumed.merge(0, &again.take_delta());
                }
            }
        }
        for board in [&whole, &resumed] {
            board.set_live_end(lists.last().map_or(0, |(_, after_ms, _)| T0 + after_ms));
            board.show(0);
        }
        prop_assert_eq!(shown(&resumed), shown(&whole));
        prop_assert_eq!(resumed.is_exact(), whole.is_exact());
    }
}

fn resume(
    ranking: &Ranking,
    catalogue: Option<Arc<Catalogue>>,
    keep: &Keep,
    checkpoint: &Checkpoint,
    ledger: Ledger,
) -> PairTracker {
    let mut tracker = PairTracker::resume(rules(), ranking.clone(), keep, checkpoint, ledger)
        .expect("it was made by these rules");
    catalogue
        .into_iter()
        .for_each(|catalogue| tracker.set_catalogue(catalogue));
    tracker
}
