//! Tests of `[events]`: possible shapes and errors.

use abgauge_core::decode::shape::{Path, Paths, TsUnit, Zone};
use abgauge_core::engine::event::Kind;
use proptest::prelude::*;

use super::*;

fn shape(text: &str, env: &[(&str, &str)]) -> Option<Shape> {
    config(text, env).events
}

#[test]
fn our_own_shape_written_out_is_none() {
    assert_eq!(shape("", &[]), None);
    let ours = "[events]\ntype = \"type\"\n[events.served]\ntypes = [\"served\"]\nexperiments = \"experiments\"\n\
                [events.click]\nitem = \"item\"\n";
    assert_eq!(shape(ours, &[]), None);
    // An explicit `ms` is not the default, because it also reads fractions.
    assert_ne!(
        shape("[events]\nts_unit = \"ms\"\n", &[]),
        None,
        "it reads fractions"
    );
}

#[test]
fn settings_override_the_preset_and_variables_override_both() {
    let text = "[events]\npreset = \"ubi\"\nts_unit = \"us\"\nwithout_type = \"click\"\n[events.served]\n\
                items = \"response.'hit.ids'\"\n[events.click]\ntypes = [\"tap\"]\n";
    let env = [
        ("ABGAUGE_EVENTS__CLICK__TYPES", "tap,open"),
        ("ABGAUGE_EVENTS__SERVED__REQUEST_ID", "response.id"),
        ("ABGAUGE_EVENTS__SERVED__USER_ID", ""),
    ];
    let path = |text| Paths::parse(text).expect("a path");
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
fn switches_set_parts_of_the_list_shape() {
    let text = "[events]\nts_zone = \"+01:00\"\n[events.served]\nposition = \"rank\"\nskip_others = true\nrows = true\n\
                row_items = \"tiles\"\n";
    let mut expected = Shape {
        ts_zone: Zone::parse("+01:00"),
        ..Shape::default()
    };
    let path = |text| Some(Paths::parse(text).expect("a path"));
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

fn any(paths: &[&str]) -> Paths {
    let paths = paths.iter().map(|path| Path::parse(path).expect(path));
    Paths::any(paths.collect()).expect("some paths")
}

#[test]
fn a_path_can_have_alternatives() {
    let users = any(&["user_id", "ctx.cookie"]);
    let mut expected = Shape::default();
    expected.served.user_id = Some(users.clone());
    expected.click.user_id = Some(users.clone());
    let text = "[events]\nuser_id = { any = [\"user_id\", \"ctx.cookie\"] }\n";
    assert_eq!(shape(text, &[]), Some(expected.clone()));

    // Set by a variable, as TOML.
    let env = [(
        "ABGAUGE_EVENTS__USER_ID",
        "{ any = [\"user_id\", \"ctx.cookie\"] }",
    )];
    assert_eq!(shape("", &env), Some(expected.clone()));

    // A setting of one kind overrides the setting of both.
    expected.served.user_id = None;
    expected.click.user_id = Some(any(&["uid"]));
    expected.click.ts = any(&["ts", "timestamp"]);
    let both = format!(
        "{text}[events.served]\nuser_id = \"\"\n[events.click]\nuser_id = \"uid\"\nts.any = [\"ts\", \"timestamp\"]\n"
    );
    assert_eq!(shape(&both, &[]), Some(expected));
    assert_eq!(
        shape("[events]\nuser_id = \"user_id\"\n", &[]),
        None,
        "our own shape"
    );
    let none = shape("[events]\nuser_id = \"\"\n", &[]).expect("a shape");
    assert_eq!((none.served.user_id, none.click.user_id), (None, None));
}

#[test]
fn a_request_id_can_have_several_parts() {
    let served = "[events.served]\nrequest_id = { all = [\"view\", \"ctx.shelf\"] }\n";
    let both = format!("{served}[events.click]\nrequest_id.all = [\"rid\", \"shelf\"]\n");
    let path = |text| Path::parse(text).expect(text);
    let mut expected = Shape::default();
    expected.served.request_id = path("view").into();
    expected.served.further_ids = vec![path("ctx.shelf")];
    expected.click.request_id = path("rid").into();
    expected.click.further_ids = vec![path("shelf")];
    assert_eq!(shape(&both, &[]), Some(expected.clone()));
    let env = [(
        "ABGAUGE_EVENTS__CLICK__REQUEST_ID",
        "{ all = [\"rid\", \"shelf\"] }",
    )];
    assert_eq!(shape(served, &env), Some(expected.clone()));

    // A click may have fewer parts than a list.
    expected.click.request_id = path("rid").into();
    expected.click.further_ids = Vec::new();
    let fewer = format!("{served}[events.click]\nrequest_id = \"rid\"\n");
    assert_eq!(shape(&fewer, &[]), Some(expected));

    // State stored with other parts is not resumed.
    let fingerprint = |text: &str| config(text, &[]).fingerprint();
    assert!(fingerprint(&both).ends_with("id of lists view + ctx.shelf, of clicks rid + shelf"));
    assert_eq!(
        fingerprint("[events.served]\nrequest_id = \"view\""),
        fingerprint("")
    );
}

#[test]
fn parts_of_an_id_are_two_to_four_paths_in_lists() {
    for (text, fragments) in [
        (
            "[events.served]\nrequest_id = { all = [\"a\"] }",
            &[
                "events.served.request_id",
                ":2:14",
                "`all` names 1 paths",
                "2 to 4",
            ][..],
        ),
        (
            "[events.served]\nrequest_id = { all = [\"a\", \"b\", \"c\", \"d\", \"e\"] }",
            &["`all` names 5 paths", "2 to 4"],
        ),
        (
            "[events.served]\nrequest_id = { all = [\"a\", \"a\"] }",
            &[":2:28", "the path `a` is there twice"],
        ),
        (
            "[events.served]\nrequest_id = { all = [\"a\", \"^.b\"] }",
            &[":2:28", "starts with `^.`"],
        ),
        (
            "[events.click]\nrequest_id = { all = [\"a\", \"b\"] }",
            &[
                "events.click.request_id",
                ":2:14",
                "names 2 parts of the id, and events.served.request_id names 1",
                "a click may have fewer",
            ],
        ),
        (
            "[events.served]\nrequest_id = { some = [\"a\", \"b\"] }",
            &["events.served.request_id", "has `some` in its table"],
        ),
    ] {
        check_refused(text, &[], fragments);
    }
}

#[test]
fn too_many_paths_in_a_shape_are_refused() {
    let paths: Vec<String> = (0..8).map(|n| format!("\"p{n}\"")).collect();
    let any = format!("{{ any = [{}] }}", paths.join(", "));
    let served = ["request_id", "user_id", "ts", "items"].map(|name| format!("{name} = {any}\n"));
    let click = ["request_id", "user_id", "ts", "item"].map(|name| format!("{name} = {any}\n"));
    let text = |click: &[String]| {
        format!(
            "[events.served]\n{}[events.click]\n{}",
            served.concat(),
            click.concat()
        )
    };
    assert!(shape(&text(&click[..3]), &[]).is_some());
    check_refused(&text(&click), &[], &["events: has 56 alternatives", "at most 49"]);
}

proptest! {
    #[test]
    fn a_single_alternative_equals_a_plain_path(names in prop::collection::vec("[a-z.']{1,6}", 1..4)) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let path = Path::of(&names).expect("a path").to_string();
        let written = toml::Value::from(path).to_string();
        for setting in ["events.type", "events.user_id", "events.served.items", "events.served.item_id", "events.click.ts"] {
            let plain = shape(&format!("{setting} = {written}\n"), &[]);
            let any = shape(&format!("{setting} = {{ any = [{written}] }}\n"), &[]);
            prop_assert_eq!(plain, any);
        }
    }
}

#[test]
fn each_shape_error_names_its_setting_line_and_fix() {
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
            &[
                "events.served.ts",
                ":2:6",
                "5 is not a path",
                "write a path in quotes",
                "any = [",
            ],
        ),
        (
            "[events.served]\nts = { any = [] }",
            &[
                "events.served.ts",
                ":2:6",
                "`any` has no paths",
                "between the brackets",
            ],
        ),
        (
            "[events]\nuser_id = { any = [\"a\", \"b\", \"'a'\"] }",
            &[
                "events.user_id",
                ":2:30",
                "the path `a` is there twice",
                "leave one of them out",
            ],
        ),
        (
            "[events.click]\nitem = { any = [\"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\"] }",
            &["events.click.item", ":2:8", "`any` names 9 paths", "at most 8"],
        ),
        (
            "[events.click]\nitem = { any = [\"a\", 5] }",
            &[
                "events.click.item",
                ":2:22",
                "5 is not a text",
                "write text in quotes",
            ],
        ),
        (
            "[events.click]\nitem = { any = \"a\" }",
            &[
                "events.click.item",
                ":2:16",
                "\"a\" is not a list",
                "write a list in brackets",
            ],
        ),
        (
            "[events.click]\nitem = { any = [\"a\", \"\"] }",
            &["events.click.item", ":2:22", "is empty", "\"ctx.exp.name\""],
        ),
        (
            "[events.click]\nitem = { all = [\"a\"] }",
            &[
                "events.click.item",
                "has `all` in its table",
                "{ any = [\"ts\", \"timestamp\"] }",
            ],
        ),
        (
            "[events.click]\nitem = {}",
            &[
                "events.click.item",
                "has no `any` in its table",
                "write a path in quotes",
            ],
        ),
        (
            "[events.click]\nitem = \"{ any = ['a'] }\"",
            &[
                "events.click.item",
                ":2:8",
                "starts with a brace",
                "without quotes around it",
            ],
        ),
        (
            "[events]\nts_unit = { any = [\"s\"] }",
            &["events.ts_unit", ":2:11", "a table is not a text"],
        ),
        (
            "[events.click]\ntypes = [\"served\"]\n[kafka]\nclicks_topic = \"served\"",
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
            "[events]\ntype = \"\"\n[kafka]\nclicks_topic = \"served\"",
            &["events.type", ":2:8", "nothing distinguishes them"],
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
                "names the experiment of the arm",
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
                "`arm_name` has no experiment",
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
fn a_shape_error_in_a_variable_names_the_variable() {
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

#[test]
fn gathered_records_are_refused_with_settings_for_arrays() {
    let gathers = "[events.served]\nitems = \"item\"\nposition = \"position\"\ngather = \"10s\"\n";
    let config = config(gathers, &[]);
    assert_eq!(
        config.events.and_then(|shape| shape.served.gather_ms),
        Some(10_000)
    );
    assert_eq!(config.join.gather_ms, 10_000);
    let table: [(String, &[&str]); 5] = [
        (
            format!("{gathers}item_id = \"id\""),
            &["events.served.gather", ":4:10", "`item_id` is for arrays"],
        ),
        (
            format!("{gathers}rows = true"),
            &["events.served.gather", "`rows` is for arrays"],
        ),
        (
            format!("kafka.clicks_topic = \"served\"\n{gathers}clicked_items = \"hits\""),
            &["events.served.gather", "write `clicked`"],
        ),
        (
            format!("join.same_list = \"9s\"\n{gathers}"),
            &[
                "events.served.gather",
                "longer than join.same_list (9s)",
                "set join.same_list to 10s",
            ],
        ),
        (
            format!("kafka.clicks_topic = \"served\"\n{gathers}clicked = \"clicked\""),
            &[
                "events.served.gather",
                "longer than join.click_skew (0s)",
                "set join.click_skew to 10s",
            ],
        ),
    ];
    for (text, fragments) in table {
        check_refused(&text, &[], fragments);
    }
}

#[test]
fn the_gather_span_changes_the_fingerprint_and_delays_counting() {
    let span = |span: &str| {
        config(
            &format!("[events.served]\nitems = \"item\"\ngather = \"{span}\""),
            &[],
        )
    };
    assert_ne!(span("10s").fingerprint(), span("11s").fingerprint());
    assert!(span("10s").fingerprint().contains("gather_ms 10000"));
    assert!(!config("", &[]).fingerprint().contains("gather"), "as before");
    let join = config(
        "[join]\nattribution = \"1m\"\n[events.served]\nitems = \"item\"\ngather = \"10s\"",
        &[],
    )
    .join;
    assert_eq!(
        join.settle_after_ms(),
        190_000,
        "same_list, the span and lateness"
    );
}
