//! Shapes of other systems, from their public documentation. docs/events.md shows each as settings.

use super::{ArmsShape, ClickShape, Path, Paths, ServedShape, Shape, TsUnit};
use crate::engine::event::Kind;

/// Experiment and arm of lists in which none of the experiments is named.
const ALL: &str = "all";

fn path(names: &[&str]) -> Paths {
    Path::of_names(names).into()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns the shape of Metarank's ranking and interaction events: <https://docs.metarank.ai/reference/event-schema>. They
/// have no field for experiments. Additional `fields`, with a name and a value each, may contain anything.
pub(super) fn metarank() -> Shape {
    let own = Shape::default();
    Shape {
        kind: Some(path(&["event"])),
        ts_unit: Some(TsUnit::Milliseconds),
        served: ServedShape {
            kinds: words(&["ranking"]),
            request_id: path(&["id"]),
            further_ids: Vec::new(),
            user_id: Some(path(&["user"])),
            ts: path(&["timestamp"]),
            items: path(&["items"]),
            item_id: Some(path(&["id"])),
            arms: ArmsShape {
                experiments: Some(path(&["fields"])),
                experiment: Some(path(&["name"])),
                arm: Some(path(&["value"])),
                only: words(&["experiment"]),
                experiment_name: Some(ALL.to_owned()),
                arm_name: Some(ALL.to_owned()),
                ..ArmsShape::default()
            },
            ..own.served
        },
        click: ClickShape {
            kinds: words(&["interaction"]),
            action: Some(path(&["type"])),
            actions: words(&["click"]),
            request_id: path(&["ranking"]),
            further_ids: Vec::new(),
            user_id: Some(path(&["user"])),
            ts: path(&["timestamp"]),
            item: path(&["item"]),
        },
        ..own
    }
}

/// Returns the shape of queries and events of OpenSearch User Behavior Insights:
/// <https://docs.opensearch.org/latest/search-plugins/ubi/schemas/>. A query has no field for its type; an event has its
/// action. Experiments are among the attributes of a query.
pub(super) fn ubi() -> Shape {
    let own = Shape::default();
    Shape {
        kind: Some(path(&["action_name"])),
        without_kind: Some(Kind::Served),
        ts_unit: Some(TsUnit::Milliseconds),
        served: ServedShape {
            kinds: Vec::new(),
            request_id: path(&["query_id"]),
            further_ids: Vec::new(),
            user_id: Some(path(&["client_id"])),
            ts: path(&["timestamp"]),
            items: path(&["query_response_hit_ids"]),
            arms: ArmsShape {
                experiments: Some(path(&["query_attributes"])),
                only: words(&["experiment"]),
                experiment_name: Some(ALL.to_owned()),
                arm_name: Some(ALL.to_owned()),
                ..ArmsShape::default()
            },
            ..own.served
        },
        click: ClickShape {
            kinds: words(&["click", "click_through"]),
            request_id: path(&["query_id"]),
            further_ids: Vec::new(),
            user_id: Some(path(&["client_id"])),
            ts: path(&["timestamp"]),
            item: path(&["event_attributes", "object", "object_id"]),
            ..own.click
        },
        ..own
    }
}

/// Returns the shape of requests of Amazon Personalize's PutEvents:
/// <https://docs.aws.amazon.com/personalize/latest/dg/API_UBS_PutEvents.html>. The sender chooses the names of event types.
/// The source that metrics are attributed to serves as the arm.
pub(super) fn personalize() -> Shape {
    let own = Shape::default();
    let user = Paths::parse("^.userId").expect("it is a path");
    Shape {
        records: Some(Path::of_names(&["eventList"])),
        kind: Some(path(&["eventType"])),
        ts_unit: Some(TsUnit::Seconds),
        served: ServedShape {
            kinds: words(&["impression", "Impression"]),
            request_id: path(&["recommendationId"]),
            further_ids: Vec::new(),
            user_id: Some(user.clone()),
            ts: path(&["sentAt"]),
            items: path(&["impression"]),
            arms: ArmsShape {
                arm: Some(path(&["metricAttribution", "eventAttributionSource"])),
                experiment_name: Some("source".to_owned()),
                arm_name: Some("undefined".to_owned()),
                ..ArmsShape::default()
            },
            ..own.served
        },
        click: ClickShape {
            kinds: words(&["click", "Click"]),
            request_id: path(&["recommendationId"]),
            further_ids: Vec::new(),
            user_id: Some(user),
            ts: path(&["sentAt"]),
            item: path(&["itemId"]),
            ..own.click
        },
        ..own
    }
}
