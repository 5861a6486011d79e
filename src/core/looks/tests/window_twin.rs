//! Intervals in the window compared with a recount of its cells, while pairs come and go.

use std::collections::BTreeSet;

use super::super::window::CELL_BYTES;
use super::window::{SLOTS_A_CELL, cells_of, window};
use super::*;
use crate::ledger::BucketSums;

/// Pairs that come and go, and the lists of each.
struct Twin {
    lists: Vec<List>,
    looks: Looks,
    n_cells: i64,
    pairs: Vec<Live>,
}

struct Live {
    pair: Pair,
    is_ours: bool,
    /// Slots that it has reported.
    begin: i64,
    end: i64,
}

const N_PAIRS: u32 = 3;

impl Twin {
    fn new(lists: Vec<List>, n_cells: i64, asked: Experiment) -> Twin {
        let looks = Looks::new(LookRules {
            window: window(n_cells),
            ..rules(asked)
        });
        let pairs = (0..N_PAIRS as i32).map(|id| Live {
            pair: Pair::new(id),
            is_ours: true,
            begin: 0,
            end: 0,
        });
        let mut twin = Twin {
            lists,
            looks,
            n_cells,
            pairs: pairs.collect(),
        };
        twin.own();
        twin
    }

    fn own(&mut self) {
        let ours = self.pairs.iter().filter(|live| live.is_ours);
        let ours: Vec<PairId> = ours.map(|live| live.pair.id).collect();
        self.looks.take(owned(&ours));
    }

    /// Lists that a pair has reported from this slot on.
    fn reported(&self, live: &Live, from: i64) -> Vec<List> {
        let is_of = |list: &&List| {
            list.user % N_PAIRS == live.pair.id as u32
                && list.slot >= from.max(live.begin)
                && list.slot < live.end
        };
        self.lists.iter().filter(is_of).copied().collect()
    }

    /// Advances all of our pairs to this slot.
    fn settle(&mut self, until: i64) {
        for number in 0..self.pairs.len() {
            let before = self.pairs[number].end;
            self.pairs[number].end = until.max(before);
            let new = self.reported(&self.pairs[number], before);
            let live = &mut self.pairs[number];
            let news = live.pair.settle(&new, live.end);
            if live.is_ours {
                self.looks.take(news);
            }
        }
    }

    /// Restarts a pair at this slot, or moves it elsewhere until it comes back.
    fn drop_pair(&mut self, number: usize, begin: i64, comes_back: bool) {
        let id = self.pairs[number].pair.id;
        self.pairs[number] = Live {
            pair: Pair::new(id),
            is_ours: comes_back,
            begin,
            end: begin,
        };
        self.looks.take(PairNews::Dropped(id));
        self.own();
    }

    /// First slot in the window of a look.
    fn begin(&self, looked: &Look) -> i64 {
        (looked.as_of_ms / LOOK_MS - self.n_cells) * SLOTS_A_CELL
    }

    /// Results of fresh looks that have seen only the lists in this look's window, over all of their lists.
    fn recount(&self, looked: &Look) -> BTreeMap<String, WindowLook> {
        let until = looked.as_of_ms / SLOT_MS;
        let ours = self.pairs.iter().filter(|live| live.is_ours);
        let lists = ours.flat_map(|live| self.reported(live, self.begin(looked)));
        let lists: Vec<List> = lists.filter(|list| list.slot < until).collect();
        let mut looks = Looks::new(rules(Experiment::default()));
        looks.take(owned(&[0]));
        looks.take(Pair::new(0).settle(&lists, until));
        let arms = all(&mut looks)
            .pop()
            .map(|last| last.experiments["e"].arms.clone());
        let window = |arm: ArmLook| WindowLook {
            lists: arm.size.lists,
            metrics: arm.metrics,
            lifts: BTreeMap::new(),
        };
        let arms = arms.into_iter().flatten();
        arms.map(|(name, arm)| (name, window(arm))).collect()
    }

    /// Bytes of the cells and sums in the window of the last look.
    fn bytes(&self, looked: &Look) -> u64 {
        let ours = self.pairs.iter().filter(|live| live.is_ours);
        ours.map(|live| {
            let until = looked.as_of_ms / SLOT_MS;
            let lists = self.reported(live, self.begin(looked)).into_iter();
            let cells = cells_of(&lists.filter(|list| list.slot < until).collect::<Vec<_>>());
            let mut rows = BTreeSet::new();
            let mut bytes = 0;
            for (arm, sums) in cells.iter().flatten() {
                rows.extend(sums.buckets().iter().map(|bucket| (*arm, *bucket)));
                bytes += packed_bytes(sums) + CELL_BYTES;
            }
            bytes + rows.len() as u64 * row_bytes(ranking().width() + 1)
        })
        .sum()
    }
}

fn packed_bytes(sums: &BucketSums) -> u64 {
    let length = |number: u128| u64::from((128 - number.leading_zeros()).div_ceil(7).max(1));
    let signed = |number: &i128| length(number.unsigned_abs() * 2);
    let rows = sums
        .rows()
        .map(|(_, row)| 1 + row.iter().map(|sum| signed(&sum)).sum::<u64>());
    length(ranking().width() as u128 + 1) + length(sums.buckets().len() as u128) + rows.sum::<u64>()
}

/// An event in the world.
#[derive(Debug, Clone)]
enum Step {
    Settle {
        cells: i64,
    },
    Drop {
        pair: usize,
        back_by: i64,
        comes_back: bool,
    },
}

fn some_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..4_i64).prop_map(|cells| Step::Settle { cells }),
        1 => (0..N_PAIRS as usize, 0..30_i64, any::<bool>())
            .prop_map(|(pair, back_by, comes_back)| Step::Drop { pair, back_by, comes_back }),
    ]
}

prop_compose! {
    /// Cells with few lists, and some with many.
    fn some_list()(slot in 0..60_i64, user in 1..300_u32, arm in 0..2_usize, is_clicked in any::<bool>()) -> List {
        List { is_clicked, ..list(slot, user, ["a", "b"][arm]) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any pairs may restart or move, and there may be any epochs.
    #[test]
    fn a_window_and_its_memory_equal_a_recount_of_its_cells(
        lists in prop::collection::vec(some_list(), 1..1500),
        steps in prop::collection::vec(some_step(), 1..14),
        n_cells in 1..6_i64,
        epoch_cell in 0..10_i64,
    ) {
        let asked = Experiment {
            epochs: vec![EpochStart { start_ms: epoch_cell * LOOK_MS, shares: BTreeMap::new() }],
            ..Experiment::default()
        };
        let mut twin = Twin::new(lists, n_cells, asked);
        let mut until = 0;
        for step in steps {
            match step {
                Step::Settle { cells } => until += cells * SLOTS_A_CELL,
                Step::Drop { pair, back_by, comes_back } => twin.drop_pair(pair, (until - back_by).max(0), comes_back),
            }
            twin.settle(until);
            let looked = all(&mut twin.looks);
            for looked in &looked {
                let arms = looked.experiments.get("e").map(|look| look.arms.clone()).unwrap_or_default();
                let windows = arms.into_iter().filter_map(|(name, arm)| Some((name, arm.windows.get("day")?.clone())));
                prop_assert_eq!(windows.collect::<BTreeMap<_, _>>(), twin.recount(looked));
            }
            if let Some(last) = looked.last() {
                let bytes = twin.looks.bytes().get("e").map_or(0, |of| of.window);
                prop_assert_eq!(bytes, twin.bytes(last));
            }
        }
    }
}
