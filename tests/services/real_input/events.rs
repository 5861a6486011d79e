//! The events of `lists-a`, and the order in which they reach the brokers.

use std::collections::HashMap;
use std::fs;

use rand::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg32;
use serde::Deserialize;

use crate::support::tools;

pub const FILE: &str = "tests/data/lists-a.events.jsonl";

/// Maximum delay of an event. With the producers' delay the sum stays below the default lateness of 2m.
const LONGEST_WAY_MS: i64 = 100_000;

#[derive(Debug, Clone)]
pub struct Event {
    pub body: Body,
    pub request_id: String,
    /// User of the list. A click has no user of its own.
    pub user_id: String,
    pub ts_ms: i64,
    pub json: String,
}

#[derive(Debug, Clone)]
pub enum Body {
    Served { items: Vec<String> },
    Click { item: String },
}

impl Event {
    pub fn is_click(&self) -> bool {
        matches!(self.body, Body::Click { .. })
    }

    /// Returns a list of the experiment `end`, and a click on it.
    pub fn end(request_id: &str, ts_ms: i64) -> [Event; 2] {
        let event = |body, json| Event {
            body,
            request_id: request_id.to_owned(),
            user_id: request_id.to_owned(),
            ts_ms,
            json,
        };
        let head = format!(r#""request_id":"{request_id}","ts":{ts_ms}"#);
        [
            event(
                Body::Served {
                    items: vec!["i1".to_owned()],
                },
                format!(r#"{{"type":"served",{head},"experiments":{{"end":"only"}},"items":["i1"]}}"#),
            ),
            event(
                Body::Click {
                    item: "i1".to_owned(),
                },
                format!(r#"{{"type":"click",{head},"item":"i1"}}"#),
            ),
        ]
    }
}

/// An event and its time of arrival at the brokers (Unix ms of event time).
#[derive(Debug, Clone)]
pub struct Arrival {
    pub at_ms: i64,
    pub event: Event,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Served {
        request_id: String,
        user_id: String,
        ts: i64,
        items: Vec<String>,
    },
    Click {
        request_id: String,
        ts: i64,
        item: String,
    },
}

/// Returns all events of the file in its order.
pub fn events() -> Vec<Event> {
    let text = fs::read_to_string(tools::repository(FILE)).expect("read the events");
    let lines: Vec<(Line, &str)> = text
        .lines()
        .map(|json| (serde_json::from_str(json).expect("an event"), json))
        .collect();
    let users: HashMap<String, String> = lines
        .iter()
        .filter_map(|(line, _)| match line {
            Line::Served {
                request_id, user_id, ..
            } => Some((request_id.clone(), user_id.clone())),
            Line::Click { .. } => None,
        })
        .collect();
    lines
        .into_iter()
        .map(|(line, json)| {
            let (body, request_id, ts_ms) = match line {
                Line::Served {
                    request_id,
                    ts,
                    items,
                    ..
                } => (Body::Served { items }, request_id, ts),
                Line::Click {
                    request_id, ts, item, ..
                } => (Body::Click { item }, request_id, ts),
            };
            let user_id = users[&request_id].clone();
            Event {
                body,
                request_id,
                user_id,
                ts_ms,
                json: json.to_owned(),
            }
        })
        .collect()
}

/// Returns every event twice.
pub fn doubled(events: Vec<Event>) -> Vec<Event> {
    [events.clone(), events].concat()
}

/// Delays each event by a random time that is the same in every run.
pub fn shuffled(events: Vec<Event>) -> Vec<Arrival> {
    let mut random = Pcg32::seed_from_u64(7);
    let mut arrivals: Vec<Arrival> = events
        .into_iter()
        .map(|event| Arrival {
            at_ms: event.ts_ms + random.random_range(0..=LONGEST_WAY_MS),
            event,
        })
        .collect();
    arrivals.sort_by_key(|arrival| arrival.at_ms);
    arrivals
}
