//! `events.served.gather`: settings that are valid with records of one shown item each.

use abgauge_core::decode::shape::Shape;
use toml::Spanned;

use crate::settings::Join;
use crate::settings::error::ErrorReport;
use crate::settings::raw::Raw;
use crate::settings::units::{TimeSpan, display_ms};

const GATHER: &str = "events.served.gather";

/// Checks the span, and settings that concern the array of a list: a record of one item has none.
pub(super) fn gather(raw: &Raw, shape: Option<&Shape>, join: &Join, report: &mut ErrorReport) {
    let served = &raw.events.served;
    let (Some(written), Some(shape)) = (&served.gather, shape) else {
        return;
    };
    if !report.is_sound(GATHER) {
        return;
    }
    let lists = &shape.served;
    let of_arrays = [
        (
            "item_id",
            lists.item_id.is_some(),
            "let `items` lead to the id itself",
        ),
        ("rows", lists.rows, "leave it out"),
        ("skip_others", lists.skip_others, "leave it out"),
        (
            "clicked_items",
            lists.clicked_items.is_some(),
            "write `clicked`, the path to the click flag of a record",
        ),
    ];
    for (name, is_set, remedy) in of_arrays {
        if is_set {
            let message =
                format!("reads records of one shown item each, and `{name}` is for arrays of items");
            report.refuse(
                GATHER,
                written,
                message,
                format!("for events.served.{name}, {remedy}"),
            );
        }
    }
    spans(written, shape, join, report);
}

fn spans(written: &Spanned<TimeSpan>, shape: &Shape, join: &Join, report: &mut ErrorReport) {
    let Join {
        gather_ms,
        same_list_ms,
        click_skew_ms,
        ..
    } = *join;
    if gather_ms > same_list_ms {
        let message = format!(
            "is longer than join.same_list ({}): records of one list might be two",
            display_ms(same_list_ms)
        );
        let remedy = format!(
            "write a span no longer than that, or set join.same_list to {}",
            display_ms(gather_ms)
        );
        report.refuse(GATHER, written, message, remedy);
    }
    let clicks_have_no_time = shape.served.clicked.is_some() && shape.served.clicked_ts.is_none();
    if clicks_have_no_time && click_skew_ms < gather_ms {
        let message = format!(
            "is longer than join.click_skew ({}), and `clicked` gives clicks the times of their records: one that lies before the first \
             record of its list would not count",
            display_ms(click_skew_ms)
        );
        let remedy = format!("set join.click_skew to {}", display_ms(gather_ms));
        report.refuse(GATHER, written, message, remedy);
    }
}
