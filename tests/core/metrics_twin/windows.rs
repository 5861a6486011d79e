//! Windows of the board against a recount of the slots inside them, while pairs come and go.
//!
//! Times never decrease by more than the lateness, so that every event counts. `tests/core/oracle/` covers late events.

use std::collections::BTreeMap;
use std::sync::Arc;

use abgauge::board::Board;
use abgauge::board::snapshot::{Snapshot, SnapshotSource};
use abgauge::settings::{self, Experiment, N_CELLS, WindowSpan};
use abgauge_core::decode::Decoder;
use abgauge_core::decode::catalogue;
use abgauge_core::engine::View;
use abgauge_core::engine::event::{Batch, Position, Side};
use abgauge_core::engine::{self, Arm};
use abgauge_core::ledger::{Keep, PairTracker};
use abgauge_core::metrics::catalogue::Catalogue;
use abgauge_core::metrics::{LISTS, Measures, Ranking};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::metrics_twin::recount::{Counted, Joined, assert_close, joined, value};
use crate::metrics_twin::stream::{Event, List, Rules, T0, click, list, text};
use crate::twin::Items;
use crate::twin::items::items;
use crate::twin::measured::{measures, profile};

const RULES: Rules = Rules {
    attribution_ms: 4000,
    click_skew_ms: 500,
    same_list_ms: 2500,
    slot_ms: 1000,
};
const LATENESS_MS: i64 = 2000;
/// Lengths of cells: one slot, and three.
const SPANS_MS: [i64; 2] = [60_000, 180_000];
/// Start of the experiment `page` after its restart, from T0.
const PAGE_BEGINS_MS: i64 = 40_000;
const N_PAIRS: i32 = 3;

#[derive(Debug, Clone)]
enum Step {
    /// Advances the time. A pair reads events, each with this lag.
    Read {
        pair: i32,
        later_ms: i64,
        events: Vec<(i64, Event)>,
    },
    Show(i32),
    Hide(i32),
    /// Removes the pair. It starts from scratch if it returns.
    Remove(i32),
    Reload(Items),
    /// Takes a scrape.
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let event = prop_oneof![
        2 => list().prop_map(Event::List),
        3 => click().prop_map(Event::Click),
    ];
    let later_ms = prop_oneof![6 => 0..3000_i64, 2 => 3000..20_000_i64, 1 => 60_000..200_000_i64];
    let events = vec((0..=LATENESS_MS, event), 1..6);
    let read = (0..N_PAIRS, later_ms, events).prop_map(|(pair, later_ms, events)| Step::Read {
        pair,
        later_ms,
        events,
    });
    let step = prop_oneof![
        14 => read,
        3 => (0..N_PAIRS).prop_map(Step::Show),
        1 => (0..N_PAIRS).prop_map(Step::Hide),
        1 => (0..N_PAIRS).prop_map(Step::Remove),
        1 => catalogue_items().prop_map(Step::Reload),
        4 => Just(Step::Look),
    ];
    vec(step, 1..40)
}

fn catalogue_items() -> impl Strategy<Value = Items> {
    items((0..8_u8).chain([90, 99]).map(text).collect())
}

/// The parts of the daemon that matter to the board.
struct Subject {
    board: Board,
    ranking: Ranking,
    decoder: Decoder,
    trackers: BTreeMap<i32, PairTracker>,
    catalogue: Arc<Catalogue>,
    n_read: i64,
}

impl Subject {
    fn new(measures: &Measures, items: &Items) -> Subject {
        let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "localhost:9092".to_owned());
        let mut config = settings::load(None, [brokers].into_iter()).expect("the defaults are valid");
        config.windows = SPANS_MS
            .map(|span_ms| WindowSpan {
                name: span_ms.to_string(),
                span_ms,
            })
            .into();
        config.join.slot_ms = RULES.slot_ms;
        let page = Experiment {
            start_ms: Some(T0 + PAGE_BEGINS_MS),
            ..Experiment::default()
        };
        config.experiments = BTreeMap::from([("page".to_owned(), page)]);
        let ranking = Ranking::new(measures);
        let decoder = Decoder::new(0, 1000, 100);
        let subject = Subject {
            board: Board::new(&config, &ranking),
            ranking,
            trackers: BTreeMap::new(),
            catalogue: Arc::new(read_catalogue(items, &decoder, None)),
            decoder,
            n_read: 0,
        };
        subject.board.set_catalogue(Arc::clone(&subject.catalogue));
        subject
    }

    fn reload(&mut self, items: &Items) {
        self.catalogue = Arc::new(read_catalogue(items, &self.decoder, Some(&self.catalogue)));
        self.board.set_catalogue(Arc::clone(&self.catalogue));
        for tracker in self.trackers.values_mut() {
            tracker.set_catalogue(Arc::clone(&self.catalogue));
        }
    }

    /// Reads events and passes them to the board. Returns start(F).
    fn read(&mut self, pair: i32, events: &[Event]) -> Option<i64> {
        let mut batch = Batch::default();
        for event in events {
            let at = Position {
                side: Side::Served,
                offset: self.n_read,
                record_ts_ms: i64::MAX,
            };
            self.n_read += 1;
            self.decoder
                .decode(Some(event.line().as_bytes()), None, at, &mut batch);
        }
        let tracker = self.trackers.entry(pair).or_insert_with(|| {
            let mut tracker = PairTracker::new(rules(), self.ranking.clone(), None, &Keep::default());
            tracker.set_catalogue(Arc::clone(&self.catalogue));
            tracker
        });
        tracker.apply(&batch, u64::MAX);
        self.board.merge(pair, &tracker.take_delta());
        if let Some((_, newest_ms)) = tracker.engine().accepted_ms() {
            self.board.set_live_end(newest_ms);
        }
        tracker.settled_until_ms()
    }
}

fn rules() -> engine::Rules {
    engine::Rules {
        attribution_ms: RULES.attribution_ms,
        click_skew_ms: RULES.click_skew_ms,
        same_list_ms: RULES.same_list_ms,
        lateness_ms: LATENESS_MS,
        max_future_ms: 0,
        slot_ms: RULES.slot_ms,
        max_off_list: 100,
        max_lists_per_click: 32,
        max_arms: 100,
        one_topic: true,
        gather: None,
    }
}

fn read_catalogue(items: &Items, decoder: &Decoder, previous: Option<&Catalogue>) -> Catalogue {
    catalogue::read(items.to_jsonl().as_bytes(), decoder, previous).expect("it can be read")
}

/// Events read so far, by pair, and the pairs that are shown. Times are from T0.
struct Recount {
    now_ms: i64,
    pairs: BTreeMap<i32, Pair>,
    /// Catalogues so far. The last one is current.
    catalogues: Vec<Items>,
    live_end_ms: Option<i64>,
    settled_end_ms: Option<i64>,
}

#[derive(Default)]
struct Pair {
    shown: bool,
    events: Vec<Event>,
    /// Lists with the index of the catalogue that was current when the slot opened.
    lists: Vec<(List, usize)>,
    frontier_ms: Option<i64>,
}

impl Recount {
    fn new(items: Items) -> Recount {
        Recount {
            now_ms: 0,
            pairs: BTreeMap::new(),
            catalogues: vec![items],
            live_end_ms: None,
            settled_end_ms: None,
        }
    }

    fn read(&mut self, pair: i32, events: &[Event]) {
        let held = self.catalogues.len() - 1;
        let pair = self.pairs.entry(pair).or_default();
        for event in events {
            let accepted_ms = match event {
                Event::List(list) => pair.add(list, held).then_some(list.at_ms),
                Event::Click(click) => Some(click.at_ms),
            };
            pair.events.push(event.clone());
            self.live_end_ms = self.live_end_ms.max(accepted_ms);
        }
    }

    /// Updates the end of the settled view: the furthest time to which a shown pair has ever settled.
    fn note_settled_end(&mut self) {
        let shown = self.pairs.values().filter(|pair| pair.shown);
        let furthest = shown.filter_map(|pair| Some(pair.frontier_ms? - 1)).max();
        self.settled_end_ms = self.settled_end_ms.max(furthest);
        self.live_end_ms = self.live_end_ms.max(self.settled_end_ms);
    }

    /// Returns the lists of the shown pairs in this view and window (`None` is the total), with their catalogues.
    fn inside(&self, view: View, window: Option<usize>) -> Vec<(Joined, &Items)> {
        let end_ms = match view {
            View::Live => self.live_end_ms,
            View::Settled => self.settled_end_ms,
        };
        let is_inside = |slot_ms: i64| {
            window.is_none_or(|window| {
                let cell_ms = SPANS_MS[window] / N_CELLS;
                let end_cell = end_ms.expect("there is a list").div_euclid(cell_ms);
                slot_ms.div_euclid(cell_ms) > end_cell - N_CELLS
            })
        };
        let mut inside = Vec::new();
        for pair in self.pairs.values().filter(|pair| pair.shown) {
            for (list, catalogue) in &pair.lists {
                let slot_ms = RULES.slot_of(list.at_ms);
                let is_settled = pair.frontier_ms.is_some_and(|frontier_ms| slot_ms < frontier_ms);
                if (view == View::Live || is_settled) && is_inside(slot_ms) {
                    inside.push((joined(list, &pair.events, &RULES), &self.catalogues[*catalogue]));
                }
            }
        }
        inside
    }

    fn check(&self, snapshot: &Snapshot, ranking: &Ranking, measures: &Measures) {
        assert_eq!(snapshot.settled_end_ms.map(|ms| ms - T0), self.settled_end_ms);
        assert_eq!(snapshot.live_end_ms.map(|ms| ms - T0), self.live_end_ms);
        let shown = self.inside(View::Live, None);
        let mut arms: Vec<_> = shown.iter().flat_map(|(list, _)| list.arms.clone()).collect();
        arms.sort_unstable();
        arms.dedup();
        let snapshot_arms = snapshot.arms.iter().map(|arm| (&*arm.experiment, &*arm.arm));
        assert_eq!(snapshot_arms.collect::<Vec<_>>(), arms);
        for view in View::BOTH {
            for window in (0..SPANS_MS.len()).map(Some).chain([None]) {
                let inside = self.inside(view, window);
                for arm in &snapshot.arms {
                    let name = Arm {
                        experiment: arm.experiment.clone(),
                        arm: arm.arm.clone(),
                    };
                    let sums = arm.sums(view, window.unwrap_or(SPANS_MS.len()));
                    let counted = counted(&inside, &name, window.is_none());
                    let what = format!("{view:?} {window:?} {name:?}");
                    self.check_sums(sums, &counted, ranking, measures, &what);
                }
            }
        }
    }

    fn check_sums(
        &self,
        sums: &[i128],
        lists: &[Counted],
        ranking: &Ranking,
        measures: &Measures,
        what: &str,
    ) {
        assert_eq!(sums[LISTS], lists.len() as i128, "lists in {what}");
        let held = self.catalogues.last().expect("there is one");
        for column in ranking.columns() {
            let expected = value(lists, column, measures, held);
            assert_close(column.value(sums), expected, || {
                format!("{} in {what}", column.key())
            });
        }
    }
}

impl Pair {
    /// Adds a list unless it is a copy. Returns whether it was added.
    fn add(&mut self, list: &List, held: usize) -> bool {
        if self.lists.iter().any(|(other, _)| RULES.is_copy(list, other)) {
            return false;
        }
        let slot = |list: &List| RULES.slot_of(list.at_ms);
        let mut of_slot = self.lists.iter().filter(|(other, _)| slot(other) == slot(list));
        let opened_by = of_slot.next().map_or(held, |(_, catalogue)| *catalogue);
        self.lists.push((list.clone(), opened_by));
        true
    }
}

/// Returns the lists of one arm, or only those in its total.
fn counted<'a>(lists: &'a [(Joined, &'a Items)], arm: &Arm, in_total: bool) -> Vec<Counted<'a>> {
    let is_in = |list: &Joined| {
        let mut arms = list.arms.iter();
        let starts_ms = if &*arm.experiment == "page" {
            PAGE_BEGINS_MS
        } else {
            i64::MIN
        };
        let has_started = !in_total || RULES.slot_of(list.at_ms) >= starts_ms;
        has_started && arms.any(|(experiment, name)| **experiment == *arm.experiment && **name == *arm.arm)
    };
    let of_arm = lists.iter().filter(|(list, _)| is_in(list));
    of_arm
        .map(|(list, items)| Counted {
            list: &list.outcome,
            items,
        })
        .collect()
}

proptest! {
    #[test]
    fn a_window_is_a_recount_of_the_slots_inside_it(
        measures in measures(vec(profile(), 1..=2), &[1, 3, 64], 1),
        items in catalogue_items(),
        steps in steps(),
    ) {
        let measures = Measures { catalogue: true, ..measures };
        let mut subject = Subject::new(&measures, &items);
        let mut recount = Recount::new(items);
        for step in steps {
            match step {
                Step::Read { pair, later_ms, mut events } => {
                    recount.now_ms += later_ms;
                    let now_ms = recount.now_ms;
                    events.iter_mut().for_each(|(back_ms, event)| event.set_time(now_ms - *back_ms));
                    let events: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
                    let frontier_ms = subject.read(pair, &events);
                    recount.read(pair, &events);
                    if let Some(pair) = recount.pairs.get_mut(&pair) {
                        pair.frontier_ms = frontier_ms.map(|ms| ms - T0);
                    }
                }
                Step::Show(pair) => {
                    subject.board.show(pair);
                    recount.pairs.entry(pair).or_default().shown = true;
                }
                Step::Hide(pair) => {
                    subject.board.hide(pair);
                    recount.pairs.entry(pair).or_default().shown = false;
                }
                Step::Remove(pair) => {
                    subject.board.remove(pair);
                    subject.trackers.remove(&pair);
                    recount.pairs.remove(&pair);
                }
                Step::Reload(items) => {
                    subject.reload(&items);
                    recount.catalogues.push(items);
                }
                Step::Look => {
                    let snapshot = subject.board.snapshot(None);
                    recount.check(&snapshot, &subject.ranking, &measures);
                }
            }
            recount.note_settled_end();
        }
        recount.check(&subject.board.snapshot(None), &subject.ranking, &measures);
        prop_assert!(subject.board.is_exact());
        prop_assert_eq!(subject.board.n_arms_without_coverage(), 0);
    }
}
