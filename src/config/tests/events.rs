//! `[events]`: what a shape may be, and what is wrong with it.

use super::*;
use crate::engine::event::Kind;
use crate::ingest::wire::shape::{Path, TsUnit, Zone};

fn shape(text: &str, env: &[(&str, &str)]) -> Option<Shape> {
    config(text, env).events
}

#[test]
fn our_own_shape_is_none_whoever_writes_it() {
    assert_eq!(shape("", &[]), None);
    let ours = "[events]\ntype = \"type\"\n[events.served]\ntypes = [\"served\"]\nexperiments = \"experiments\"\n\
                [events.click]\nitem = \"item\"\n";
    assert_eq!(shape(ours, &[]), None);
    // Beginning with a preset one ends there too.
    assert_ne!(
        shape("[events]\nts_unit = \"ms\"\n", &[]),
        None,
        "it reads numbers in quotes"
    );
}

#[test]
fn a_shape_is_what_is_written_over_the_preset_and_variables_over_both() {
    let text = "[events]\npreset = \"ubi\"\nts_unit = \"us\"\nwithout_type = \"click\"\n[events.served]\n\
                items = \"response.'hit.ids'\"\n[events.click]\ntypes = [\"tap\"]\n";
    let env = [
        ("ABGAUGE_EVENTS__CLICK__TYPES", "tap,open"),
        ("ABGAUGE_EVENTS__SERVED__REQUEST_ID", "response.id"),
        ("ABGAUGE_EVENTS__SERVED__USER_ID", ""),
    ];
    let path = |text| Path::parse(text).expect("a path");
    let mut expected = Shape::PRESETS[1].1();
    expected.ts_unit = Some(TsUnit::Microseconds);
    expected.without_kind = Some(Kind::Click);
    expected.served.items = path("response.\"hit.ids\"");
    expected.served.request_id = path("response.id");
    expected.served.user_id = None;
    expected.click.kinds = vec!["tap".to_owned(), "open".to_owned()];
    assert_eq!(shape(text, &env), Some(expected));
}

#[test]
fn what_lists_are_is_said_by_switches_too() {
    let text = "[events]\nts_zone = \"+01:00\"\n[events.served]\nposition = \"rank\"\nskip_others = true\nrows = true\n\
                row_items = \"tiles\"\n";
    let mut expected = Shape {
        ts_zone: Zone::parse("+01:00"),
        ..Shape::default()
    };
    let path = |text| Some(Path::parse(text).expect("a path"));
    expected.served.position = path("rank");
    expected.served.skip_others = true;
    expected.served.rows = true;
    expected.served.row_items = path("tiles");
    assert_eq!(shape(text, &[]), Some(expected.clone()));
    expected.served.skip_others = false;
    expected.ts_zone = None;
    let env = [
        ("ABGAUGE_EVENTS__SERVED__SKIP_OTHERS", "false"),
        ("ABGAUGE_EVENTS__TS_ZONE", ""),
    ];
    assert_eq!(shape(text, &env), Some(expected));
    assert_eq!(shape("[events.served]\nrows = false\n", &[]), None);
}

#[test]
fn each_fault_of_a_shape_names_its_setting_its_line_and_its_remedy() {
    let table: &[(&str, &[&str])] = &[
        (
            "[events]\npreset = \"metarnak\"",
            &["events.preset", ":2:10", "did you mean \"metarank\"?"],
        ),
        (
            "[events]\nts_unit = \"sec\"",
            &["events.ts_unit", ":2:11", "\"s\", \"ms\""],
        ),
        (
            "[events]\nts_zone = \"Europe/Berlin\"",
            &["events.ts_zone", ":2:11", "is no zone", "\"+01:00\""],
        ),
        (
            "[events.served]\nrow_items = \"tiles\"",
            &["events.served.row_items", ":2:13", "write `rows = true`"],
        ),
        (
            "[events.served]\nrows = \"yes\"",
            &["events.served.rows", ":2:8", "true"],
        ),
        (
            "[events]\nwithout_type = \"list\"",
            &["events.without_type", "\"served\", \"click\" or"],
        ),
        (
            "[events]\nrequest_id = \"id\"",
            &["events.request_id", "there is no such setting"],
        ),
        (
            "[events.served]\nitem = \"id\"",
            &["events.served.item", ":2:1", "did you mean `items`?"],
        ),
        (
            "[events]\nserved = \"id\"",
            &["events.served: is a table", "write [events.served]"],
        ),
        (
            "[events.served]\nrequest_id = \"\"",
            &[
                "events.served.request_id",
                ":2:14",
                "is empty",
                "\"ctx.exp.name\"",
            ],
        ),
        (
            "[events.click]\nitem = \"a..b\"",
            &["events.click.item", ":2:8", "has an empty name"],
        ),
        (
            "[events.served]\nuser_id = \"'a\"",
            &["events.served.user_id", "not closed", "\"ctx.'exp.name'\""],
        ),
        (
            "[events.served]\nts = 5",
            &["events.served.ts", "5 is not a text", "write text in quotes"],
        ),
        (
            "[events.click]\ntypes = [\"served\"]",
            &["events.click.types", ":2:9", "\"served\" means both"],
        ),
        (
            "[events.served]\ntypes = [\"a\", \"a\"]",
            &["events.served.types", ":2:15", "is there twice"],
        ),
        (
            "[events]\ntype = \"\"\n[events.click]\ntypes = [\"tap\"]",
            &["events.click.types", ":4:9", "write `type`"],
        ),
        (
            "[events]\ntype = \"\"\nwithout_type = \"served\"\n[kafka]\nclicks_topic = \"served\"",
            &["events.type", ":2:8", "nothing tells them apart"],
        ),
        (
            "[events.click]\naction = \"type\"",
            &["events.click.action", ":2:10", "write `actions`"],
        ),
        (
            "[events.click]\nactions = [\"click\"]",
            &["events.click.actions", ":2:11", "write `action`"],
        ),
        (
            "[events.served]\nexperiment = \"name\"",
            &["events.served.experiment", ":2:14", "write `arm` too"],
        ),
        (
            "[events.served]\nexperiments = \"\"\narm = \"variant\"",
            &[
                "events.served.arm",
                ":3:7",
                "of which experiment",
                "`experiment_name`",
            ],
        ),
        (
            "[events.served]\narm_name = \"all\"",
            &["events.served.arm_name", "write `experiment_name` too"],
        ),
        (
            "[events.served]\nexperiment_name = \"all\"",
            &["events.served.experiment_name", "write `arm_name` too"],
        ),
        (
            "[events]\npreset = \"metarank\"\n[events.served]\nexperiment_name = \"\"",
            &[
                "events.served.experiment_name",
                ":4:19",
                "`arm_name` is of no experiment",
            ],
        ),
        (
            "[events.served]\nexperiment_name = \"e\"\narm_name = \"__other__\"",
            &["events.served.arm_name", ":3:12", "other than `__other__`"],
        ),
    ];
    for (text, fragments) in table {
        check_refused(text, &[], fragments);
    }
}

#[test]
fn a_fault_of_a_variable_of_a_shape_names_the_variable() {
    check_refused(
        "",
        &[("ABGAUGE_EVENTS__SERVED__TS", "a.")],
        &[
            "events.served.ts (from ABGAUGE_EVENTS__SERVED__TS)",
            "has an empty name",
        ],
    );
    check_refused(
        "",
        &[("ABGAUGE_EVENTS__SERVED__TIME", "a")],
        &["ABGAUGE_EVENTS__SERVED__TIME: there is no such setting"],
    );
}
