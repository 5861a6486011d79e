//! The twin's decision on each record: its outcome, the watermarks of both topics and the frontier.

use abgauge_core::engine::event::{Reason, Side};
use abgauge_core::engine::outcome::{Counts, Outcome};
use abgauge_core::engine::{GatherRules, Rules};

use crate::oracle::account::Step;
use crate::oracle::world::{Click, List, Record, Says, Shelf, UnreadableClick, World};

/// The reason for which an [`UnreadableClick`] is invalid.
pub const UNREADABLE: Reason = Reason::MissingField;

/// An accepted event and the step that read it.
#[derive(Clone)]
pub struct Accepted<T> {
    pub event: T,
    pub step: usize,
    /// M of its topic before it.
    pub newest_ms: Option<i64>,
}

/// A refused click whose id can be read, and the step that read it.
pub struct Refused {
    pub id: u8,
    pub shelf: Shelf,
    /// The time at which it looks for its lists.
    pub ts_ms: i64,
    pub user: Option<u8>,
    pub step: usize,
    /// M of its topic before it.
    pub newest_ms: Option<i64>,
}

/// A list of one record per shown item.
pub struct Gathered {
    /// The head, with the items of all rows once it is complete.
    pub list: List,
    pub is_complete: bool,
    /// Item, if it has one, and position of each row, by place.
    pub rows: Vec<Accepted<(Option<u16>, i64)>>,
}

/// Outcomes of all records, and the frontier at every step.
pub struct Read<'a> {
    pub counts: Counts,
    pub marks: Marks,
    pub lists: Vec<Accepted<List>>,
    pub clicks: Vec<Accepted<&'a Click>>,
    pub refused: Vec<Refused>,
    /// Gathered lists, by the places of their heads.
    pub gathered: Vec<Gathered>,
    /// start(F) when a step began; `i64::MIN` without a frontier.
    pub frontier_at_ms: Vec<i64>,
    pub frontier_ms: i64,
}

pub fn read<'a>(world: &World, history: &[Step<'a>]) -> Read<'a> {
    let mut read = Read {
        counts: Counts::default(),
        marks: Marks::default(),
        lists: Vec::new(),
        clicks: Vec::new(),
        refused: Vec::new(),
        gathered: Vec::new(),
        frontier_at_ms: Vec::new(),
        frontier_ms: world.begin_ms.unwrap_or(i64::MIN),
    };
    for (step, done) in history.iter().enumerate() {
        read.frontier_at_ms.push(read.frontier_ms);
        match *done {
            Step::Read(record) => read.record(world, record, step, false),
            Step::Shed(record) => read.record(world, record, step, true),
            Step::BatchEnd => read.settle(&world.rules, step),
            Step::Idle(side, live_end_ms) => {
                read.marks.idle(side, live_end_ms, &world.rules);
                read.settle(&world.rules, step);
            }
            Step::SettleAll => {
                read.complete(&world.rules, i64::MAX, step);
                read.frontier_ms = i64::MAX;
            }
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
        let next_ms = watermark_ms
            .saturating_sub(gather_ms(rules))
            .max(self.frontier_ms);
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
            Says::Unreadable(click) => {
                self.counts.count(side, Outcome::Invalid);
                self.counts.count_reason(side, UNREADABLE);
                return self.refuse(&world.rules, record, click, step);
            }
            Says::Ignored => return self.counts.count(side, Outcome::Ignored),
            Says::List(list) => (list.ts_ms, list.ts_ms),
            Says::Click(click) => (click.ts_ms, click.ts_ms + world.rules.click_skew_ms),
        };
        let newest_ms = self.marks.newest_ms[side as usize];
        let outcome = if let Err(refused) = self.marks.check(record, ts_ms, &world.rules) {
            if let Says::Click(Click { id, shelf, .. }) = record.says {
                let (ts_ms, user) = (Some(ts_ms), None);
                let click = UnreadableClick {
                    id,
                    shelf,
                    ts_ms,
                    user,
                };
                self.refuse(&world.rules, record, &click, step);
            }
            refused
        } else if reach_ms < begin_ms {
            Outcome::Replayed
        } else if reach_ms < self.frontier_ms {
            Outcome::AfterSettled
        } else {
            match &record.says {
                Says::List(row) if world.rules.gather.is_some() => {
                    let row = Accepted {
                        event: row,
                        step,
                        newest_ms,
                    };
                    match self.row(&world.rules, row, shed) {
                        None => return,
                        Some(outcome) => outcome,
                    }
                }
                Says::List(list) => {
                    // D3. Lists were accepted in the order of their offsets.
                    if let Some(outcome) = self.copy(&world.rules, list) {
                        outcome
                    } else if shed {
                        Outcome::Shed
                    } else {
                        self.lists.push(Accepted {
                            event: list.clone(),
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
                Says::Unreadable(_) | Says::Invalid(_) | Says::Ignored => unreachable!("has returned"),
            }
        };
        self.counts.count(side, outcome);
    }

    /// Without a time, or with one in the future, a click has the time of its record. Any time is moved into the range that is
    /// neither late nor in the future. There is none before the topic has a time.
    fn refuse(&mut self, rules: &Rules, record: &Record, click: &UnreadableClick, step: usize) {
        let record_ms = record.at.record_ts_ms;
        let is_future = |ts_ms: &i64| *ts_ms > record_ms + rules.max_future_ms;
        let mut ts_ms = click.ts_ms.filter(|ts_ms| !is_future(ts_ms)).unwrap_or(record_ms);
        let Some(newest_ms) = self.marks.newest_ms[record.at.side as usize] else {
            return;
        };
        ts_ms = ts_ms
            .max(newest_ms - rules.lateness_ms)
            .min(newest_ms + rules.max_future_ms);
        self.refused.push(Refused {
            id: click.id,
            shelf: click.shelf,
            ts_ms,
            user: click.user,
            step,
            newest_ms: Some(newest_ms),
        });
    }

    /// D3: lists were accepted in the order of their offsets, or if they are gathered in that of (time, place) of their heads.
    fn copy(&mut self, rules: &Rules, list: &List) -> Option<Outcome> {
        let is_near = |other: &&Accepted<List>| is_near(&other.event, list, rules.same_list_ms);
        let Accepted { event, .. } = self.lists.iter().find(is_near)?;
        let is_same = (&event.items, &event.arms) == (&list.items, &list.arms);
        self.counts.conflicting_lists += u64::from(!is_same);
        Some(Outcome::Duplicate)
    }

    /// A row belongs to the list of its id whose head is near it; of two, to the one with the lower place. None: it waits.
    fn row(&mut self, rules: &Rules, row: Accepted<&List>, shed: bool) -> Option<Outcome> {
        let GatherRules { span_ms, max_items } = rules.gather?;
        let Accepted {
            event,
            step,
            newest_ms,
        } = row;
        let of_row = Accepted {
            event: (event.items.first().copied(), event.position),
            step,
            newest_ms,
        };
        let is_of = |list: &&mut Gathered| is_near(&list.list, event, span_ms);
        let Some(list) = self.gathered.iter_mut().find(is_of) else {
            if shed {
                return Some(Outcome::Shed);
            }
            self.gathered.push(Gathered {
                list: event.clone(),
                is_complete: false,
                rows: vec![of_row],
            });
            return None;
        };
        let (item, _) = of_row.event;
        let n_items = list.rows.iter().filter(|row| row.event.0.is_some()).count();
        if list.is_complete {
            Some(Outcome::LateRow)
        } else if item.is_none() || list.rows.iter().any(|other| other.event == of_row.event) {
            Some(Outcome::Duplicate)
        } else if n_items >= max_items as usize {
            self.counts.count_reason(Side::Served, Reason::TooManyItems);
            Some(Outcome::Invalid)
        } else if shed {
            Some(Outcome::Shed)
        } else {
            list.rows.push(of_row);
            None
        }
    }

    /// Lists are complete once the served watermark has passed their time plus the span.
    fn complete(&mut self, rules: &Rules, watermark_ms: i64, step: usize) {
        let is_due = |list: &Gathered| !list.is_complete && list.list.ts_ms + gather_ms(rules) < watermark_ms;
        let mut due: Vec<usize> = (0..self.gathered.len())
            .filter(|n| is_due(&self.gathered[*n]))
            .collect();
        // Equal times stay in the order of places.
        due.sort_by_key(|n| self.gathered[*n].list.ts_ms);
        for n in due {
            let list = &mut self.gathered[n];
            list.is_complete = true;
            let mut items: Vec<(i64, u16)> = Vec::new();
            for row in &list.rows {
                let (item, position) = row.event;
                items.extend(item.map(|item| (position, item)));
            }
            items.sort_by_key(|(position, _)| *position);
            list.list.items = items.into_iter().map(|(_, item)| item).collect();
            let (list, n_rows) = (list.list.clone(), list.rows.len() as u64);
            let outcome = self.copy(rules, &list).unwrap_or(Outcome::Accepted);
            self.counts.count_many(Side::Served, outcome, n_rows);
            self.counts.further_rows += n_rows - 1;
            if outcome == Outcome::Accepted {
                let newest_ms = None;
                self.lists.push(Accepted {
                    event: list,
                    step,
                    newest_ms,
                });
            }
        }
    }

    /// Lists, or their rows if they are gathered, with the times of their lists: a log is read again for them.
    pub fn held(&self) -> Vec<Accepted<i64>> {
        let lists = self.lists.iter().map(|list| Accepted {
            event: list.event.ts_ms,
            step: list.step,
            newest_ms: list.newest_ms,
        });
        let rows = self.gathered.iter().flat_map(|list| {
            let held = |row: &Accepted<_>| Accepted {
                event: list.list.ts_ms,
                step: row.step,
                newest_ms: row.newest_ms,
            };
            list.rows.iter().map(held)
        });
        match self.gathered.is_empty() {
            true => lists.collect(),
            false => rows.collect(),
        }
    }

    /// D4: slot s settles when the served watermark ≥ end(s) + max(click_skew, same_list) and the clicks watermark ≥ end(s) + A.
    fn settle(&mut self, rules: &Rules, step: usize) {
        let marks = self.marks.for_settling(rules);
        if let Some(served) = marks[0] {
            self.complete(rules, served, step);
        }
        let [Some(served), Some(clicks)] = marks else {
            return;
        };
        let after_ms = rules.click_skew_ms.max(rules.same_list_ms) + gather_ms(rules);
        let ends_until = (served - after_ms).min(clicks - rules.attribution_ms);
        let start = ends_until.div_euclid(rules.slot_ms) * rules.slot_ms;
        self.frontier_ms = self.frontier_ms.max(start);
    }
}

fn is_near(one: &List, other: &List, span_ms: i64) -> bool {
    let is_same = (one.id, one.shelf) == (other.id, other.shelf);
    is_same && one.ts_ms.abs_diff(other.ts_ms) <= span_ms as u64
}

/// Span of gathered lists; 0 if lists are whole records.
pub fn gather_ms(rules: &Rules) -> i64 {
    rules.gather.map_or(0, |gather| gather.span_ms)
}

/// M of each topic partition, and its advance through idleness. Both sides are equal if there is one topic.
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
