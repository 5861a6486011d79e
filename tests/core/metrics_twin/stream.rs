//! Random events with many collisions, as the lines of a file, and their evaluation.

use std::collections::HashMap;
use std::sync::Arc;

use abgauge_core::decode::Decoder;
use abgauge_core::decode::catalogue;
use abgauge_core::evaluate::{Evaluation, Evaluator, Options};
use abgauge_core::metrics::{Measures, Profile};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::twin::Items;
use crate::twin::items::items;
use crate::twin::measured::measures;

/// Origin of all times in Unix ms, a border of all slots and spans.
pub const T0: i64 = 1_763_596_800_000;

/// Experiment and arm.
pub type ArmName = (&'static str, &'static str);

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    List(List),
    Click(Click),
}

/// A served list. Ids and items are small numbers here, and text in a line: see [`text`].
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    pub id: u8,
    pub at_ms: i64,
    pub items: Vec<u8>,
    pub arms: Vec<ArmName>,
    /// Set if ids that look like integers are written as integers.
    pub numbers: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Click {
    pub id: u8,
    pub at_ms: i64,
    pub item: u8,
    pub numbers: bool,
}

/// Returns the text of an id or an item. Even ones are integers.
pub fn text(n: u8) -> String {
    if n.is_multiple_of(2) {
        n.to_string()
    } else {
        format!("i{n}")
    }
}

fn spelled(n: u8, numbers: bool) -> Value {
    if n.is_multiple_of(2) && numbers {
        json!(n)
    } else {
        json!(text(n))
    }
}

impl Event {
    pub fn id(&self) -> u8 {
        match self {
            Event::List(list) => list.id,
            Event::Click(click) => click.id,
        }
    }

    pub fn set_time(&mut self, ms: i64) {
        match self {
            Event::List(list) => list.at_ms = ms,
            Event::Click(click) => click.at_ms = ms,
        }
    }

    pub fn line(&self) -> String {
        let line = match self {
            Event::List(list) => {
                let experiments: HashMap<&str, &str> = list.arms.iter().copied().collect();
                let items: Vec<Value> = list
                    .items
                    .iter()
                    .map(|item| spelled(*item, list.numbers))
                    .collect();
                let (id, ts) = (spelled(list.id, list.numbers), T0 + list.at_ms);
                json!({ "type": "served", "request_id": id, "ts": ts, "experiments": experiments, "items": items })
            }
            Event::Click(click) => {
                let (id, ts) = (spelled(click.id, click.numbers), T0 + click.at_ms);
                let item = spelled(click.item, click.numbers);
                json!({ "type": "click", "request_id": id, "ts": ts, "item": item })
            }
        };
        line.to_string()
    }
}

/// Settings for the join of clicks and lists.
#[derive(Debug, Clone)]
pub struct Rules {
    pub attribution_ms: i64,
    pub click_skew_ms: i64,
    pub same_list_ms: i64,
    pub slot_ms: i64,
}

impl Rules {
    pub fn slot_of(&self, at_ms: i64) -> i64 {
        at_ms.div_euclid(self.slot_ms) * self.slot_ms
    }

    /// Returns whether a list is a copy of one accepted before it.
    pub fn is_copy(&self, list: &List, accepted: &List) -> bool {
        list.id == accepted.id && (list.at_ms - accepted.at_ms).abs() <= self.same_list_ms
    }
}

/// Events, and the settings to evaluate them with.
#[derive(Debug, Clone)]
pub struct Case {
    pub events: Vec<Event>,
    pub rules: Rules,
    pub measures: Measures,
    pub items: Items,
    pub span_ms: Option<i64>,
}

impl Case {
    pub fn evaluate(&self) -> Evaluation {
        let decoder = Decoder::new(0, 1000, 100);
        let catalogue = || catalogue::read(self.items.to_jsonl().as_bytes(), &decoder, None);
        let options = Options {
            measures: self.measures.clone(),
            catalogue: self
                .measures
                .catalogue
                .then(|| Arc::new(catalogue().expect("it can be read"))),
            attribution_ms: self.rules.attribution_ms,
            click_skew_ms: self.rules.click_skew_ms,
            same_list_ms: self.rules.same_list_ms,
            slot_ms: self.rules.slot_ms,
            span_ms: self.span_ms,
            ..Options::default()
        };
        let lines: Vec<String> = self.events.iter().map(Event::line).collect();
        let mut evaluator = Evaluator::new(&options);
        evaluator
            .read("events", lines.join("\n").as_bytes())
            .expect("memory can be read");
        let evaluation = evaluator.finish();
        assert!(evaluation.unreadable.is_empty(), "{:?}", evaluation.unreadable);
        evaluation
    }

    pub fn with_events(&self, events: Vec<Event>) -> Case {
        Case {
            events,
            ..self.clone()
        }
    }

    pub fn with_measures(&self, measures: Measures) -> Case {
        Case {
            measures,
            ..self.clone()
        }
    }

    /// Makes copies equal to their list, at the same time. Then it does not matter which one is first.
    fn agreeing(mut self) -> Case {
        let mut accepted: Vec<List> = Vec::new();
        for event in &mut self.events {
            if let Event::List(list) = event {
                let mut stands = accepted.iter().filter(|other| self.rules.is_copy(list, other));
                match stands.next().cloned() {
                    None => accepted.push(list.clone()),
                    Some(stands) => {
                        let numbers = list.numbers;
                        *list = List { numbers, ..stands };
                    }
                }
            }
        }
        self
    }
}

/// Generates events of one to four arms under these profiles.
pub fn case(profiles: impl Strategy<Value = Vec<Profile>>) -> impl Strategy<Value = Case> {
    let rules = (
        select(vec![0, 2000, 10_000]),
        select(vec![0, 1000]),
        select(vec![0, 1000, 5000]),
        select(vec![1000, 5000]),
    );
    let rules = rules.prop_map(|(attribution_ms, click_skew_ms, same_list_ms, slot_ms)| Rules {
        attribution_ms,
        click_skew_ms,
        same_list_ms,
        slot_ms,
    });
    let measures = measures(profiles, &[1, 2, 3, 5, 10, 64], 3);
    let names = (0..8_u8).chain([90, 91, 99]).map(text).collect();
    let one_arm = prop::bool::weighted(0.2);
    (events(), rules, measures, items(names), one_arm).prop_map(
        |(mut events, rules, measures, items, one_arm)| {
            if one_arm {
                let lists = events.iter_mut().filter_map(|event| match event {
                    Event::List(list) => Some(list),
                    Event::Click(_) => None,
                });
                lists.for_each(|list| list.arms = vec![("ranker", "a")]);
            }
            let case = Case {
                events,
                rules,
                measures,
                items,
                span_ms: Some(10_000),
            };
            case.agreeing()
        },
    )
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let lists = vec(list().prop_map(Event::List), 0..14);
    let clicks = vec(click().prop_map(Event::Click), 0..30);
    let all = (lists, clicks).prop_map(|(lists, clicks)| [lists, clicks].concat());
    all.prop_shuffle()
}

/// Generates half seconds, and times one millisecond before or after.
fn at_ms() -> impl Strategy<Value = i64> {
    (0..40_i64, prop_oneof![4 => Just(0), 1 => Just(-1), 1 => Just(1)])
        .prop_map(|(half, beside)| half * 500 + beside)
}

pub fn list() -> impl Strategy<Value = List> {
    // Long lists start with items that are never clicked.
    let unclicked = prop_oneof![9 => Just(0_u8), 1 => 28..70_u8];
    let items = (unclicked, vec(0..8_u8, 0..7))
        .prop_map(|(unclicked, items)| (90..90 + unclicked).chain(items).collect::<Vec<_>>());
    let arms = (
        weighted(0.9, select(vec!["a", "b"])),
        weighted(0.3, select(vec!["x", "y"])),
    );
    (0..5_u8, at_ms(), items, arms, any::<bool>()).prop_map(|(id, at_ms, items, (ranker, page), numbers)| {
        List {
            id,
            at_ms,
            items,
            arms: [("ranker", ranker), ("page", page)]
                .into_iter()
                .filter_map(|(experiment, arm)| Some((experiment, arm?)))
                .collect(),
            numbers,
        }
    })
}

pub fn click() -> impl Strategy<Value = Click> {
    (0..5_u8, at_ms(), 0..10_u8, any::<bool>()).prop_map(|(id, at_ms, item, numbers)| Click {
        id,
        at_ms,
        item,
        numbers,
    })
}
