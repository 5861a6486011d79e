//! A pair of partitions for cases worked by hand. Times are counted from [`T0`].

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use abgauge_core::engine::event::{Batch, Position, Side};
use abgauge_core::engine::outcome::{ClickResult, Counts, Outcome};
use abgauge_core::engine::settling::Settled;
use abgauge_core::engine::{Engine, Rules};
use abgauge_core::ledger::{Keep, Ledger, SettledSlot};
use abgauge_core::metrics::{CLICKS, ITEMS_SHOWN, LISTS, Measures, Ranking};

use crate::oracle::drive::push;
use crate::oracle::world::{Click, List, Record, Says, Shelf, T0, UnreadableClick, usual};

/// Rules with slots of 10 and lateness 5: the slot [0, 10) settles when a list of 17 and a click of 45 were read.
pub const RULES: Rules = Rules {
    attribution_ms: 30,
    click_skew_ms: 2,
    same_list_ms: 1,
    lateness_ms: 5,
    max_future_ms: 3,
    slot_ms: 10,
    max_off_list: 2,
    max_lists_per_click: 3,
    max_arms: 100,
    one_topic: false,
    gather: None,
};

/// Engine that reads one record at a time and never hands over.
pub struct Pair {
    pub engine: Engine,
    ledger: Ledger,
    settled: Vec<SettledSlot>,
    /// Start of the slot and user of each refused click that has settled with its list.
    pub refused: Vec<(i64, Option<u32>)>,
    ranking: Ranking,
    pub room_bytes: u64,
    next_offset: i64,
    n_waiting_rows: u64,
}

impl Pair {
    pub fn new() -> Pair {
        Pair::with(RULES, None)
    }

    pub fn with(rules: Rules, begin: Option<i64>) -> Pair {
        Pair::measuring(&usual(), rules, begin)
    }

    pub fn measuring(measures: &Measures, rules: Rules, begin: Option<i64>) -> Pair {
        let ranking = Ranking::new(measures);
        let begin_ms = begin.map(|begin| T0 + begin);
        Pair {
            engine: Engine::new(rules, ranking.clone(), begin_ms),
            ledger: Ledger::new(&ranking, &Keep::default()),
            settled: Vec::new(),
            refused: Vec::new(),
            ranking,
            room_bytes: u64::MAX,
            next_offset: 0,
            n_waiting_rows: 0,
        }
    }

    pub fn read(&mut self, side: Side, record_ts: i64, says: Says) -> Outcome {
        let outcome = self.try_read(side, record_ts, says);
        outcome.expect("every record has an outcome")
    }

    /// The outcome of a record; `None` for a row that waits.
    pub fn try_read(&mut self, side: Side, record_ts: i64, says: Says) -> Option<Outcome> {
        let at = Position {
            side,
            offset: self.next_offset,
            record_ts_ms: T0 + record_ts,
        };
        self.next_offset += 1;
        let mut batch = Batch::default();
        push(&mut batch, &Record { at, says });
        let before = self.counts();
        self.engine.apply(&batch, self.room_bytes);
        self.settle();
        let after = self.counts();
        let counted = |outcome: &Outcome| after.outcome(side, *outcome) > before.outcome(side, *outcome);
        let n_waiting = self.engine.n_waiting_rows()[0];
        let waits = n_waiting > std::mem::replace(&mut self.n_waiting_rows, n_waiting);
        // Lists that it completes are counted too.
        let mut outcomes = Outcome::OF_EVENTS.into_iter().filter(|_| !waits);
        outcomes.find(counted)
    }

    /// Reads a list of one arm, whose record has the same time.
    pub fn list(&mut self, id: u8, ts: i64, items: &[u16]) -> Outcome {
        self.list_of(&[(0, 0)], id, ts, items)
    }

    pub fn list_of(&mut self, arms: &[(u8, u8)], id: u8, ts: i64, items: &[u16]) -> Outcome {
        self.read(Side::Served, ts, Says::List(list(arms, id, ts, items)))
    }

    pub fn click(&mut self, id: u8, ts: i64, item: u16) -> Outcome {
        self.read(
            Side::Clicks,
            ts,
            Says::Click(Click {
                id,
                shelf: Shelf::Without,
                ts_ms: T0 + ts,
                item,
            }),
        )
    }

    /// Reads an invalid click whose record has this time.
    pub fn unreadable_click(&mut self, id: u8, record_ts: i64, ts: Option<i64>, user: Option<u8>) {
        let click = UnreadableClick {
            id,
            shelf: Shelf::Without,
            ts_ms: ts.map(|ts| T0 + ts),
            user,
        };
        let outcome = self.read(Side::Clicks, record_ts, Says::Unreadable(click));
        assert_eq!(outcome, Outcome::Invalid);
    }

    pub fn idle(&mut self, side: Side, live_end: Option<i64>) {
        self.engine.idle(side, live_end.map(|end| T0 + end), i64::MAX);
        self.settle();
    }

    pub fn close_all(&mut self) {
        self.engine.close_all();
        self.settle();
    }

    fn settle(&mut self) {
        let Pair {
            engine,
            ledger,
            settled,
            refused,
            ..
        } = self;
        ledger.admit(&engine.arms()[ledger.arms().len()..]);
        engine.visit_settled(usize::MAX, |reported| {
            if let Settled::Refused { start_ms, click } = &reported {
                refused.push((start_ms - T0, click.user.map(NonZeroU32::get)));
            }
            settled.extend(ledger.take(reported));
        });
    }

    pub fn counts(&mut self) -> Counts {
        self.engine.counts().clone()
    }

    /// Returns the clicks by result: matched, repeat, off-list, unmatched, undecided.
    pub fn results(&mut self) -> [u64; 5] {
        let counts = self.counts();
        ClickResult::ALL.map(|result| counts.result(result))
    }

    pub fn frontier(&self) -> Option<i64> {
        self.engine.frontier_ms().map(|ms| ms - T0)
    }

    pub fn newest(&self, side: Side) -> Option<i64> {
        self.engine.newest_ms(side).map(|ms| ms - T0)
    }

    /// Returns lists, items shown and clicks, by start of a settled slot and arm.
    pub fn settled(&mut self) -> BTreeMap<(i64, String), [i64; 3]> {
        let slots = self.settled.clone();
        let rows = slots
            .iter()
            .flat_map(|slot| slot.tallies.iter().map(move |row| (slot.start_ms - T0, row)));
        rows.map(|(start, (arm, sums))| {
            let arm = self.engine.arm(arm);
            let name = format!("{}/{}", arm.experiment, arm.arm);
            ((start, name), [sums[LISTS], sums[ITEMS_SHOWN], sums[CLICKS]])
        })
        .collect()
    }

    /// Settles everything, and returns a metric over all lists.
    pub fn value(&mut self, key: &str) -> Option<f64> {
        self.close_all();
        let mut total = vec![0_i128; self.ranking.width()];
        let slots = self.settled.iter();
        for (_, sums) in slots.flat_map(|slot| slot.tallies.iter()) {
            total
                .iter_mut()
                .zip(sums)
                .for_each(|(total, sum)| *total += i128::from(*sum));
        }
        let mut columns = self.ranking.columns().iter();
        columns.find(|column| column.key() == key)?.value(&total)
    }

    /// Settles everything, and returns the numbers in all slots for the arm that [`Pair::list`] serves.
    pub fn end(&mut self) -> Vec<(i64, [i64; 3])> {
        self.close_all();
        self.settled()
            .into_iter()
            .map(|((start, _), sums)| (start, sums))
            .collect()
    }
}

pub fn list(arms: &[(u8, u8)], id: u8, ts: i64, items: &[u16]) -> List {
    let arms = arms.iter().copied().collect();
    List {
        id,
        shelf: Shelf::Without,
        ts_ms: T0 + ts,
        user: None,
        items: items.to_vec(),
        position: 0,
        arms,
    }
}
