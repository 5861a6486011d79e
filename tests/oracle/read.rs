//! What the twin makes of records one by one: their outcomes, the marks of both topics and the frontier.

use abgauge::engine::Rules;
use abgauge::engine::event::Side;
use abgauge::engine::outcome::{Counts, Outcome};

use crate::account::Step;
use crate::world::{Click, List, Record, Says, World};

/// An accepted event and the step that read it.
pub struct Accepted<'a, T> {
    pub event: &'a T,
    pub step: usize,
    /// M of its topic before it.
    pub newest_ms: Option<i64>,
}

/// Outcomes of all records, and the frontier at every step.
pub struct Read<'a> {
    pub counts: Counts,
    pub marks: Marks,
    pub lists: Vec<Accepted<'a, List>>,
    pub clicks: Vec<Accepted<'a, Click>>,
    /// start(F) when a step began; `i64::MIN` where there is none.
    pub frontier_at_ms: Vec<i64>,
    pub frontier_ms: i64,
}

pub fn read<'a>(world: &World, history: &[Step<'a>]) -> Read<'a> {
    let mut read = Read {
        counts: Counts::default(),
        marks: Marks::default(),
        lists: Vec::new(),
        clicks: Vec::new(),
        frontier_at_ms: Vec::new(),
        frontier_ms: world.begin_ms.unwrap_or(i64::MIN),
    };
    for (step, done) in history.iter().enumerate() {
        read.frontier_at_ms.push(read.frontier_ms);
        match *done {
            Step::Read(record) => read.record(world, record, step, false),
            Step::Shed(record) => read.record(world, record, step, true),
            Step::BatchEnd => read.settle(&world.rules),
            Step::Idle(side, live_end_ms) => {
                read.marks.idle(side, live_end_ms, &world.rules);
                read.settle(&world.rules);
            }
            Step::SettleAll => read.frontier_ms = i64::MAX,
            Step::Cut => read.marks.lent_ms = [None; 2],
            Step::Catalogue(_) => {}
        }
    }
    read
}

impl<'a> Read<'a> {
    /// A list from here on may have a copy that is yet to come: D7. At the border of a slot, no later than start(F).
    pub fn copies_from_ms(&self, rules: &Rules) -> i64 {
        let watermark_ms = self.marks.newest_ms[0].map_or(i64::MIN, |newest| newest - rules.lateness_ms);
        let next_ms = watermark_ms.max(self.frontier_ms);
        if next_ms == i64::MIN {
            return next_ms;
        }
        let border_ms = (next_ms - rules.same_list_ms).div_euclid(rules.slot_ms) * rules.slot_ms;
        border_ms.min(self.frontier_ms)
    }

    fn record(&mut self, world: &World, record: &'a Record, step: usize, shed: bool) {
        let side = record.at.side;
        self.marks.busy(side, &world.rules);
        let begin_ms = world.begin_ms.unwrap_or(i64::MIN);
        // D1 and the order of checks under "Outcomes". `reach_ms` is the last time that a list of this event may have.
        let (ts_ms, reach_ms) = match &record.says {
            Says::Invalid(reason) => {
                self.counts.count(side, Outcome::Invalid);
                return self.counts.count_reason(side, *reason);
            }
            Says::Ignored => return self.counts.count(side, Outcome::Ignored),
            Says::List(list) => (list.ts_ms, list.ts_ms),
            Says::Click(click) => (click.ts_ms, click.ts_ms + world.rules.click_skew_ms),
        };
        let newest_ms = self.marks.newest_ms[side as usize];
        let outcome = if let Err(refused) = self.marks.check(record, ts_ms, &world.rules) {
            refused
        } else if reach_ms < begin_ms {
            Outcome::Replayed
        } else if reach_ms < self.frontier_ms {
            Outcome::AfterSettled
        } else {
            match &record.says {
                Says::List(list) => {
                    // D3. Lists were accepted in the order of their offsets.
                    let is_near = |other: &&Accepted<List>| {
                        let apart_ms = other.event.ts_ms.abs_diff(list.ts_ms);
                        let is_same = (other.event.id, other.event.shelf) == (list.id, list.shelf);
                        is_same && apart_ms <= world.rules.same_list_ms as u64
                    };
                    if let Some(Accepted { event, .. }) = self.lists.iter().find(is_near) {
                        let is_same = (&event.items, &event.arms) == (&list.items, &list.arms);
                        self.counts.conflicting_lists += u64::from(!is_same);
                        Outcome::Duplicate
                    } else if shed {
                        Outcome::Shed
                    } else {
                        self.lists.push(Accepted {
                            event: list,
                            step,
                            newest_ms,
                        });
                        Outcome::Accepted
                    }
                }
                Says::Click(_) if shed => Outcome::Shed,
                Says::Click(click) => {
                    self.clicks.push(Accepted {
                        event: click,
                        step,
                        newest_ms,
                    });
                    Outcome::Accepted
                }
                Says::Invalid(_) | Says::Ignored => unreachable!("has returned"),
            }
        };
        self.counts.count(side, outcome);
    }

    /// D4: slot s settles when the served watermark ≥ end(s) + max(click_skew, same_list) and the clicks watermark ≥ end(s) + A.
    fn settle(&mut self, rules: &Rules) {
        let [Some(served), Some(clicks)] = self.marks.for_settling(rules) else {
            return;
        };
        let after_ms = rules.click_skew_ms.max(rules.same_list_ms);
        let ends_until = (served - after_ms).min(clicks - rules.attribution_ms);
        let start = ends_until.div_euclid(rules.slot_ms) * rules.slot_ms;
        self.frontier_ms = self.frontier_ms.max(start);
    }
}

/// M of each topic partition, and what idleness adds to it. Both sides are equal where there is one topic.
#[derive(Default)]
pub struct Marks {
    pub newest_ms: [Option<i64>; 2],
    /// A watermark that an idle move lent to a side, until a record comes.
    lent_ms: [Option<i64>; 2],
}

impl Marks {
    fn sides(side: Side, rules: &Rules) -> Vec<usize> {
        if rules.one_topic {
            vec![0, 1]
        } else {
            vec![side as usize]
        }
    }

    fn check(&mut self, record: &Record, ts_ms: i64, rules: &Rules) -> Result<(), Outcome> {
        if ts_ms > record.at.record_ts_ms + rules.max_future_ms {
            return Err(Outcome::Future);
        }
        for side in Marks::sides(record.at.side, rules) {
            let newest = self.newest_ms[side].get_or_insert(ts_ms);
            if ts_ms < *newest - rules.lateness_ms {
                return Err(Outcome::Late);
            }
            *newest = ts_ms.max(*newest);
        }
        Ok(())
    }

    fn busy(&mut self, side: Side, rules: &Rules) {
        for side in Marks::sides(side, rules) {
            self.lent_ms[side] = None;
        }
    }

    /// D7.
    fn idle(&mut self, side: Side, live_end_ms: Option<i64>, rules: &Rules) {
        let Some(newest) = self.newest_ms[0].max(self.newest_ms[1]) else {
            return; // a pair that never had a record takes no part
        };
        let end = live_end_ms.map_or(newest, |live_end| live_end.max(newest));
        for side in Marks::sides(side, rules) {
            self.lent_ms[side] = Some(end - rules.lateness_ms).max(self.lent_ms[side]);
        }
    }

    fn for_settling(&self, rules: &Rules) -> [Option<i64>; 2] {
        [0, 1].map(|side| {
            self.newest_ms[side]
                .map(|newest| newest - rules.lateness_ms)
                .max(self.lent_ms[side])
        })
    }
}
