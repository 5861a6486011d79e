//! Shapes of other systems, from their public documentation. docs/events.md shows each as settings.

use super::{ArmsShape, ClickShape, Path, Paths, ServedShape, Shape, TsUnit};
use crate::engine::event::Kind;

/// Where none of the experiments is named, a list counts in this arm of this experiment.
const ALL: &str = "all";

fn path(names: &[&str]) -> Paths {
    Path::of_names(names).into()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Metarank's ranking and interaction events: <https://docs.metarank.ai/reference/event-schema>. They have no place for
/// experiments of their own; additional `fields`, with a name and a value each, may say anything.
pub(super) fn metarank() -> Shape {
    Shape {
        kind: Some(path(&["event"])),
        without_kind: None,
        ts_unit: Some(TsUnit::Milliseconds),
        ts_zone: None,
        served: ServedShape {
            kinds: words(&["ranking"]),
            request_id: path(&["id"]),
            user_id: Some(path(&["user"])),
            ts: path(&["timestamp"]),
            items: path(&["items"]),
            item_id: Some(path(&["id"])),
            position: None,
            skip_others: false,
            rows: false,
            row_items: None,
            arms: ArmsShape {
                experiments: Some(path(&["fields"])),
                experiment: Some(path(&["name"])),
                arm: Some(path(&["value"])),
                only: words(&["experiment"]),
                experiment_name: Some(ALL.to_owned()),
                arm_name: Some(ALL.to_owned()),
            },
        },
        click: ClickShape {
            kinds: words(&["interaction"]),
            action: Some(path(&["type"])),
            actions: words(&["click"]),
            request_id: path(&["ranking"]),
            user_id: Some(path(&["user"])),
            ts: path(&["timestamp"]),
            item: path(&["item"]),
        },
    }
}

/// The queries and events of OpenSearch User Behavior Insights:
/// <https://docs.opensearch.org/latest/search-plugins/ubi/schemas/>. A query has no field that says what it is; an event
/// has its action. Experiments stand among the attributes of a query.
pub(super) fn ubi() -> Shape {
    Shape {
        kind: Some(path(&["action_name"])),
        without_kind: Some(Kind::Served),
        ts_unit: Some(TsUnit::Milliseconds),
        ts_zone: None,
        served: ServedShape {
            kinds: Vec::new(),
            request_id: path(&["query_id"]),
            user_id: Some(path(&["client_id"])),
            ts: path(&["timestamp"]),
            items: path(&["query_response_hit_ids"]),
            item_id: None,
            position: None,
            skip_others: false,
            rows: false,
            row_items: None,
            arms: ArmsShape {
                experiments: Some(path(&["query_attributes"])),
                only: words(&["experiment"]),
                experiment_name: Some(ALL.to_owned()),
                arm_name: Some(ALL.to_owned()),
                ..ArmsShape::default()
            },
        },
        click: ClickShape {
            kinds: words(&["click", "click_through"]),
            action: None,
            actions: Vec::new(),
            request_id: path(&["query_id"]),
            user_id: Some(path(&["client_id"])),
            ts: path(&["timestamp"]),
            item: path(&["event_attributes", "object", "object_id"]),
        },
    }
}

/// Requests of Amazon Personalize's PutEvents with one event each:
/// <https://docs.aws.amazon.com/personalize/latest/dg/API_UBS_PutEvents.html>. The types of events are the sender's own
/// words. The source that metrics are attributed to takes the place of an arm.
pub(super) fn personalize() -> Shape {
    let event = |name| path(&["eventList", name]);
    Shape {
        kind: Some(event("eventType")),
        without_kind: None,
        ts_unit: Some(TsUnit::Seconds),
        ts_zone: None,
        served: ServedShape {
            kinds: words(&["impression", "Impression"]),
            request_id: event("recommendationId"),
            user_id: Some(path(&["userId"])),
            ts: event("sentAt"),
            items: event("impression"),
            item_id: None,
            position: None,
            skip_others: false,
            rows: false,
            row_items: None,
            arms: ArmsShape {
                arm: Some(path(&[
                    "eventList",
                    "metricAttribution",
                    "eventAttributionSource",
                ])),
                experiment_name: Some("source".to_owned()),
                arm_name: Some("undefined".to_owned()),
                ..ArmsShape::default()
            },
        },
        click: ClickShape {
            kinds: words(&["click", "Click"]),
            action: None,
            actions: Vec::new(),
            request_id: event("recommendationId"),
            user_id: Some(path(&["userId"])),
            ts: event("sentAt"),
            item: event("itemId"),
        },
    }
}
