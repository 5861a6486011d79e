//! Events in other shapes than ours: the presets on their samples, `[events]` as in the documents, and the output of `abgauge
//! check --sample`.

use std::path::Path;

use abgauge::settings;
use abgauge_core::decode::shape::Shape;

use crate::support::program::{Ran, file, program, run, run_with_input, temporary_dir};

const DOCUMENT: &str = include_str!("../../docs/events.md");
const COOKBOOK: &str = include_str!("../../docs/cookbook.md");

/// Recipes of the cookbook: their headings, and the names of their files in docs/events.
const RECIPES: [(&str, &str); 3] = [("Segment", "segment"), ("Snowplow", "snowplow"), ("GA4", "ga4")];

#[test]
fn a_personalize_request_of_several_events_is_read_event_by_event() {
    let dir = temporary_dir();
    let config = file(&dir, "events.toml", "[events]\npreset = \"personalize\"\n");
    let event = |more: &str| format!(r#"{{"recommendationId":"r","sentAt":1763596800,{more}}}"#);
    let shown = event(r#""eventType":"impression","impression":["a","b"]"#);
    let clicked = event(r#""eventType":"click","itemId":"b""#);
    let request = format!(r#"{{"userId":"u","eventList":[{shown},{clicked}]}}"#);
    let ran = run_with_input(&["check", "--sample", "-", "--config", &config], &request);
    let expected = "\
ok       line 1: served list r of user u at 2025-11-20T00:00:00Z
         experiments: source = undefined
         items: a, b
ok       line 1: click on b of list r of user u at 2025-11-20T00:00:00Z
ok       records: 1 with 2 events; served lists: 1, clicks: 1, ignored: 0, refused: 0
";
    assert_eq!((ran.code, &*ran.stdout), (Some(0), expected));
}

/// Runs the program with this preset.
fn run_as(preset: &str, arguments: &[&str]) -> Ran {
    let mut command = program(arguments);
    command.env("ABGAUGE_EVENTS__PRESET", preset);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.output().expect("abgauge starts").into()
}

/// Checks the output of `check --sample` for a preset's sample, which is free of faults.
#[track_caller]
fn check_preset(preset: &str, expected: &str) {
    let sample = format!("docs/events/{preset}.jsonl");
    let ran = run_as(preset, &["check", "--sample", &sample]);
    let expected = expected.trim_start_matches('\n');
    assert_eq!(
        (ran.code, &*ran.stderr, &*ran.stdout),
        (Some(0), "", expected),
        "{preset}"
    );
}

#[test]
fn events_documented_by_metarank_are_read() {
    check_preset(
        "metarank",
        "
note     line 1: ignored: `event` is \"item\", neither a served list nor a click
ok       line 2: served list r-1 of user u-7 at 2025-11-20T00:00:00.123Z
         experiments: experiment = neural
         items: p3, p7, p1
ok       line 3: served list r-2 of user u-8 at 2025-11-20T00:00:01Z
         experiments: experiment = baseline
         items: p5, p9, p2
ok       line 4: served list r-3 at 2025-11-20T00:00:02Z
         experiments: all = all
         items: p4, p6
ok       line 5: click on p7 of list r-1 of user u-7 at 2025-11-20T00:00:05.123Z
note     line 6: ignored: `type` is \"purchase\", neither a served list nor a click
ok       line 7: click on p5 of list r-2 of user u-8 at 2025-11-20T00:00:11Z
ok       records: 7; served lists: 3, clicks: 2, ignored: 2, refused: 0
",
    );
}

#[test]
fn queries_and_events_documented_by_ubi_are_read() {
    check_preset(
        "ubi",
        "
ok       line 1: served list q-1 of user c-7 at 2025-11-20T00:00:00.123Z
         experiments: experiment = neural
         items: p3, p7, p1
ok       line 2: served list q-2 of user c-8 at 2025-11-20T00:00:01Z
         experiments: experiment = baseline
         items: p5, p9, p2
note     line 3: ignored: `action_name` is \"on_search\", neither a served list nor a click
ok       line 4: click on p7 of list q-1 of user c-7 at 2025-11-20T00:00:05.123Z
note     line 5: ignored: `action_name` is \"add_to_cart\", neither a served list nor a click
ok       line 6: click on p5 of list q-2 of user c-8 at 2025-11-20T00:00:11Z
ok       records: 6; served lists: 2, clicks: 2, ignored: 2, refused: 0
",
    );
}

#[test]
fn requests_documented_by_personalize_are_read() {
    check_preset(
        "personalize",
        "
ok       line 1: served list RID-1 of user u-7 at 2025-11-20T00:00:00.123Z
         experiments: source = campaign-neural
         items: p3, p7, p1
ok       line 2: served list RID-2 of user u-8 at 2025-11-20T00:00:01Z
         experiments: source = popular
         items: p5, p9, p2
ok       line 3: click on p7 of list RID-1 of user u-7 at 2025-11-20T00:00:05.123Z
note     line 4: ignored: `eventType` is \"purchase\", neither a served list nor a click
ok       line 5: click on p5 of list RID-2 of user u-8 at 2025-11-20T00:00:11Z
ok       records: 5; served lists: 2, clicks: 2, ignored: 1, refused: 0
",
    );
}

/// Returns the lists and clicks of the samples in our own shape, with these names of experiment and arms.
fn own_events(experiment: &str, arms: [&str; 2]) -> String {
    let [first, second] = arms;
    format!(
        r#"{{"type":"served","request_id":"1","ts":1763596800123,"experiments":{{"{experiment}":"{first}"}},"items":["p3","p7","p1"]}}
{{"type":"served","request_id":"2","ts":1763596801000,"experiments":{{"{experiment}":"{second}"}},"items":["p5","p9","p2"]}}
{{"type":"click","request_id":"1","ts":1763596805123,"item":"p7"}}
{{"type":"click","request_id":"2","ts":1763596811000,"item":"p5"}}
"#
    )
}

#[test]
fn evaluate_gives_equal_numbers_for_presets_and_our_shape() {
    let all = r#"{"type":"served","request_id":"3","ts":1763596802000,"experiments":{"all":"all"},"items":["p4","p6"]}"#;
    for (preset, own) in [
        ("metarank", own_events("experiment", ["neural", "baseline"]) + all),
        ("ubi", own_events("experiment", ["neural", "baseline"])),
        (
            "personalize",
            own_events("source", ["campaign-neural", "popular"]),
        ),
    ] {
        let sample = format!("docs/events/{preset}.jsonl");
        let theirs = run_as(preset, &["evaluate", "--strict", "--format", "json", &sample]);
        let ours = run_with_input(&["evaluate", "--strict", "--format", "json", "-"], &own);
        assert_eq!(ours.code, Some(0), "{}", ours.stderr);
        assert!(ours.stdout.contains("\"mrr\":0.5"), "{}", ours.stdout);
        // The counts of lines come after the numbers, and differ for events of other types.
        let numbers = |text: &str| text.split(",\"records\":").next().map(str::to_owned);
        assert_eq!(
            (theirs.code, numbers(&theirs.stdout)),
            (ours.code, numbers(&ours.stdout)),
            "{preset}: {}",
            theirs.stderr
        );
    }
}

#[test]
fn evaluate_gives_equal_numbers_for_recipes_and_our_shape() {
    for (_, name) in RECIPES {
        let sample = format!("docs/events/{name}.jsonl");
        let config = format!("docs/events/{name}.toml");
        let mut command = program(&[
            "evaluate", "--strict", "--format", "json", "--config", &config, &sample,
        ]);
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        let theirs: Ran = command.output().expect("abgauge starts").into();
        let own = own_events("ranker", ["neural", "baseline"]);
        let ours = run_with_input(&["evaluate", "--strict", "--format", "json", "-"], &own);
        assert!(ours.stdout.contains("\"mrr\":0.5"), "{}", ours.stdout);
        let numbers = |text: &str| text.split(",\"records\":").next().map(str::to_owned);
        assert_eq!(
            (theirs.code, numbers(&theirs.stdout)),
            (Some(0), numbers(&ours.stdout)),
            "{name}: {}",
            theirs.stderr
        );
    }
}

#[test]
fn recipes_in_the_document_match_their_files() {
    for (heading, name) in RECIPES {
        let (_, section) = COOKBOOK.split_once(&format!("\n## {heading}\n")).expect(heading);
        let (_, written) = section.split_once("```toml\n").expect("settings");
        let (written, _) = written.split_once("```").expect("an end");
        let file = std::fs::read_to_string(format!("{}/docs/events/{name}.toml", env!("CARGO_MANIFEST_DIR")));
        assert_eq!(shape(written), shape(&file.expect("a file")), "{name}");
        assert!(shape(written).is_some(), "{name}");
    }
}

/// Parses the shape in a configuration.
fn shape(text: &str) -> Option<Shape> {
    let dir = temporary_dir();
    let path = file(&dir, "abgauge.toml", text);
    let counting = settings::load_counting(Some(Path::new(&path)), std::iter::empty());
    counting
        .unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
        .events
}

#[test]
fn presets_match_the_document() {
    for (name, preset) in Shape::PRESETS {
        let (_, section) = DOCUMENT
            .split_once(&format!("\n### {name}\n"))
            .expect("a section");
        let (_, written) = section.split_once("```toml\n").expect("settings");
        let (written, _) = written.split_once("```").expect("an end");
        assert_eq!(shape(written), Some(preset()), "{name}");
        assert_eq!(shape(&format!("[events]\npreset = \"{name}\"\n")), Some(preset()));
    }
}

#[test]
fn examples_in_the_document_match_their_files() {
    let (_, written) = DOCUMENT.split_once("```toml\n").expect("an example");
    let (written, _) = written.split_once("```").expect("an end");
    assert_eq!(shape(written), shape(include_str!("../../docs/events/own.toml")));
    assert!(shape(written).is_some());
    let (_, section) = DOCUMENT
        .split_once("\n### Several lists with one request id\n")
        .expect("a section");
    let (_, written) = section.split_once("```toml\n").expect("settings");
    let (written, _) = written.split_once("```").expect("an end");
    assert_eq!(
        shape(written),
        shape(include_str!("../../docs/events/shelves.toml"))
    );
    let (_, section) = DOCUMENT
        .split_once("\n### One record per shown item\n")
        .expect("a section");
    let (_, written) = section.split_once("```toml\n").expect("settings");
    let (written, _) = written.split_once("```").expect("an end");
    assert_eq!(shape(written), shape(include_str!("../../docs/events/rows.toml")));
}

#[test]
fn a_setting_overrides_its_preset_and_empty_text_removes_it() {
    let changed = shape(
        "[events]\npreset = \"personalize\"\n[events.served]\nrequest_id = \"recommendationId\"\nuser_id = \"\"\n",
    );
    let mut expected = Shape::PRESETS[2].1();
    expected.served.request_id =
        abgauge_core::decode::shape::Paths::parse("recommendationId").expect("a path");
    expected.served.user_id = None;
    assert_eq!(changed, Some(expected));
    assert_eq!(
        shape("[events]\ntype = \"type\"\n[events.served]\nts = \"ts\"\n"),
        None,
        "our own shape"
    );
}

/// Checks a sample of one event with these arguments, and returns the output.
#[track_caller]
fn check(event: &str, arguments: &[&str], code: i32) -> String {
    let arguments = [&["check", "--sample", "-"], arguments].concat();
    let ran = run_with_input(&arguments, event);
    assert_eq!(
        (ran.code, &*ran.stderr),
        (Some(code), ""),
        "{event}: {}",
        ran.stdout
    );
    ran.stdout
}

#[test]
fn each_refusal_names_reason_field_and_fix() {
    let list = |fields: &str| {
        format!("{{\"type\":\"served\",\"request_id\":1,\"ts\":1763596800123,\"items\":[]{fields}}}")
    };
    let with_ts = |ts: &str| format!("{{\"type\":\"click\",\"request_id\":1,\"ts\":{ts},\"item\":1}}");
    for (event, reported) in [
        (
            "{\"type\"".to_owned(),
            ["refused as not_json\n", "one JSON object"],
        ),
        ("5".to_owned(), ["refused as wrong_type\n", "one JSON object"]),
        (
            r#"{"request_id":1}"#.to_owned(),
            ["missing_field: there is no `type`", "--as served"],
        ),
        (
            r#"{"type":"click"}"#.to_owned(),
            [
                "missing_field: there is no `request_id`",
                "events.click.request_id",
            ],
        ),
        (
            r#"{"type":"click","request_id":[1]}"#.to_owned(),
            ["wrong_type: `request_id` is [1]", "text or an integer"],
        ),
        (
            r#"{"type":"click","request_id":1.5}"#.to_owned(),
            ["number: `request_id` is 1.5", "at most 20 digits"],
        ),
        (
            r#"{"type":"click","request_id":""}"#.to_owned(),
            ["id_length: `request_id` is \"\"", "1 to 2048 bytes"],
        ),
        (
            with_ts("1763596800"),
            ["ts_seconds: `ts` is 1763596800", "ts_unit = \"s\""],
        ),
        (
            with_ts("1763596800123456"),
            ["ts_micros: `ts` is 1763596800123456", "ts_unit = \"us\""],
        ),
        (
            with_ts("\"today\""),
            ["ts_range: `ts` is \"today\"", "text with its zone"],
        ),
        (with_ts("true"), ["wrong_type: `ts` is true", "a number or text"]),
        (
            list(r#","experiments":[{"e":"a"}]"#),
            [
                "wrong_type: `experiments` is [{\"e\":\"a\"}]",
                "events.served.experiment ",
            ],
        ),
        (
            list(r#","experiments":{"e":"a","e":"b"}"#),
            ["not_json: `experiments`", "each experiment once"],
        ),
        (
            list(r#","user_id":{}"#),
            ["wrong_type: `user_id` is {}", "events.served.user_id"],
        ),
    ] {
        let printed = check(&event, &[], 65);
        for fragment in reported {
            assert!(
                printed.contains(fragment),
                "{fragment:?} is missing for {event}:\n{printed}"
            );
        }
        assert!(printed.starts_with("error    line 1: refused as "), "{printed}");
        assert!(printed.contains("\n         → "), "{printed}");
        assert!(
            printed.contains("error    records: 1; served lists: 0, clicks: 0, ignored: 0, refused: 1 ("),
            "{printed}"
        );
    }
}

/// The problem is reported once instead of once per line.
#[test]
fn a_sample_in_another_format_is_reported_once() {
    for (sample, what, remedy) in [
        (
            "{\n\"type\":\"click\"\n}",
            "JSON over several lines",
            "jq --compact-output . FILE",
        ),
        ("[]", "the sample has no record", "write one JSON object per line"),
        (
            "1,2\n3,4",
            "a table (CSV) without a first row",
            "name them in a first row",
        ),
    ] {
        let printed = check(sample, &[], 65);
        assert!(printed.contains(what) && printed.contains(remedy), "{printed}");
        assert_eq!(printed.lines().count(), 2, "{printed}");
    }
}

#[test]
fn a_sample_is_read_with_the_configuration() {
    let dir = temporary_dir();
    let config = file(
        &dir,
        "abgauge.toml",
        "[join]\nmax_items = 1\n[events.served]\nitem_id = \"sku\"\n",
    );
    let list = |items: &str| {
        format!(
            "{{\"type\":\"served\",\"request_id\":1,\"ts\":1763596800123,\"experiments\":{{\"e\":\"a\"}},\"items\":{items}}}"
        )
    };
    let with_config = ["--config", &*config];
    assert!(check(&list(r#"[{"sku":"i5"}]"#), &with_config, 0).contains("items: i5\n"));
    let printed = check(&list("[1,2]"), &with_config, 65);
    assert!(
        printed.contains("too_many_items: `items` is [1,2]") && printed.contains("join.max_items"),
        "{printed}"
    );
    let printed = check(&list(r#"[{"id":"i5"}]"#), &with_config, 65);
    let reported = "missing_field: there is no `sku` in element 1 of `items`";
    assert!(printed.contains(reported), "{printed}");
    assert!(printed.contains("correct events.served.item_id"), "{printed}");

    let bad = file(&dir, "bad.toml", "[events.served]\nitem_id = \"a..b\"\n");
    let ran = run_with_input(&["check", "--sample", "-", "--config", &bad], "");
    assert_eq!(ran.code, Some(78));
    assert!(
        ran.stderr.contains("events.served.item_id: has an empty name"),
        "{}",
        ran.stderr
    );
}

#[test]
fn check_and_evaluate_read_a_fallback_user_id() {
    let dir = temporary_dir();
    let setting = "[events]\nuser_id = { any = [\"user_id\", \"cookie\"] }\n";
    let config = file(&dir, "abgauge.toml", setting);
    let event = |n: usize, user: &str| {
        let arm = ["a", "b"][n % 2];
        format!(
            "{{\"type\":\"served\",\"request_id\":{n},\"ts\":1763596800123,\"experiments\":{{\"e\":\"{arm}\"}},\"items\":[1]{user}}}\n\
             {{\"type\":\"click\",\"request_id\":{n},\"ts\":1763596800124,\"item\":1{user}}}\n"
        )
    };
    let printed = check(
        &event(1, r#","user_id":"","cookie":"c-1""#),
        &["--config", &config],
        0,
    );
    for reported in [
        "served list 1 of user c-1 at",
        "items: 1\n         events.served.user_id: read at `cookie`\n",
        "click on 1 of list 1 of user c-1 at 2025-11-20T00:00:00.124Z\n         events.click.user_id: read at `cookie`\n",
    ] {
        assert!(printed.contains(reported), "{reported}: {printed}");
    }
    let printed = check(&event(1, ""), &["--config", &config], 0);
    let reported = "events.served.user_id: nothing at `user_id` or `cookie`\n";
    assert!(printed.contains(reported), "{printed}");
    let printed = check(
        &event(1, r#","user_id":"u","cookie":[]"#),
        &["--config", &config],
        0,
    );
    assert!(
        printed.contains("events.click.user_id: read at `user_id`\n"),
        "{printed}"
    );
    let printed = check(&event(1, r#","cookie":[]"#), &["--config", &config], 65);
    assert!(printed.contains("wrong_type: `cookie` is []"), "{printed}");

    // Every other user has only a cookie.
    let events = |names: [&str; 2]| -> String {
        let user = |n: usize| format!(",\"{}\":\"u{}\"", names[n % 41 % 2], n % 41);
        (0..820).map(|n| event(n, &user(n))).collect()
    };
    let evaluate = |arguments: &[&str], events: &str| {
        let compare = [
            "evaluate",
            "-",
            "--compare",
            "a",
            "--shares",
            "a=.5,b=.5",
            "--format",
            "json",
        ];
        let ran = run_with_input(&[&compare, arguments].concat(), events);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    let expected = evaluate(&[], &events(["user_id"; 2]));
    let with_cookie = events(["user_id", "cookie"]);
    assert_eq!(evaluate(&["--config", &config], &with_cookie), expected);
    assert_ne!(evaluate(&[], &with_cookie), expected);
}

#[test]
fn a_missing_field_is_reported_with_all_its_paths() {
    let dir = temporary_dir();
    let config = file(
        &dir,
        "abgauge.toml",
        "events.click.ts.any = [\"ts\", \"at\", \"timestamp\"]\n",
    );
    let printed = check(
        r#"{"type":"click","request_id":1,"item":1}"#,
        &["--config", &config],
        65,
    );
    let reported = "missing_field: there is no `ts`, `at` or `timestamp`\n         → send it, or correct events.click.ts";
    assert!(printed.contains(reported), "{printed}");
    let ran = run_with_input(&["config", "show", "--config", &config], "");
    let reported = "ts = { any = [\"ts\", \"at\", \"timestamp\"] }";
    assert!(ran.stdout.contains(reported), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn skipped_elements_are_counted() {
    let dir = temporary_dir();
    let config = file(&dir, "abgauge.toml", "events.served.skip_others = true\n");
    let list = r#"{"type":"served","request_id":1,"ts":1763596800123,"experiments":{"e":"a"},"items":["i5",null,{}]}"#;
    let printed = check(list, &["--config", &config], 0);
    assert!(
        printed.contains("items: i5\n         elements that are not items, skipped: 2\n"),
        "{printed}"
    );
    let ran = run_with_input(&["evaluate", "-", "--config", &config], list);
    let reported = "skipped elements of lists that are not items: 2";
    assert!(
        ran.code == Some(0) && ran.stderr.contains(reported),
        "{}",
        ran.stderr
    );
    assert!(check(list, &[], 65).contains("wrong_type: element 2 of `items` is null"));
}

#[test]
fn a_flag_replaces_the_type_implied_by_a_topic() {
    let click = r#"{"request_id":"r","ts":1763596805123,"item":"i"}"#;
    let printed = check(click, &["--as", "click"], 0);
    assert!(
        printed.starts_with("ok       line 1: click on i of list r at 2025-11-20T00:00:05.123Z\n"),
        "{printed}"
    );
    assert!(check(click, &["--as", "served"], 65).contains("there is no `items`"));
    let typed = click.replace('{', r#"{"type":"click","#);
    check(&typed, &["--as", "click"], 0);
    let printed = check(&typed, &["--as", "served"], 65);
    for fragment in [
        "refused as wrong_topic: `type` is \"click\"",
        "the topic of its kind",
    ] {
        assert!(printed.contains(fragment), "{printed}");
    }
    // Without `--as`, a sample is treated like one topic for both kinds, which does not decide the kind.
    assert!(check(click, &[], 65).contains("missing_field: there is no `type`"));
    let dir = temporary_dir();
    let config = file(&dir, "abgauge.toml", "events.without_type = \"click\"\n");
    assert!(check(click, &["--config", &config], 0).starts_with("ok       line 1: click on i"));
}

#[test]
fn a_list_in_too_many_experiments_is_refused_with_the_setting() {
    let named = |n: usize| {
        let experiments: Vec<String> = (0..n).map(|number| format!("\"e{number}\":\"a\"")).collect();
        let experiments = experiments.join(",");
        format!(
            "{{\"type\":\"served\",\"request_id\":1,\"ts\":1763596800123,\"items\":[],\"experiments\":{{{experiments}}}}}"
        )
    };
    check(&named(100), &[], 0);
    let printed = check(&named(101), &[], 65);
    for fragment in [
        "refused as too_many_experiments: `experiments` is",
        "join.max_experiments",
    ] {
        assert!(printed.contains(fragment), "{printed}");
    }
    let dir = temporary_dir();
    let config = file(&dir, "abgauge.toml", "[join]\nmax_experiments = 101\n");
    check(&named(101), &["--config", &config], 0);
}

#[test]
fn lists_without_an_arm_and_samples_without_known_types_are_reported() {
    let list = r#"{"type":"served","request_id":1,"ts":1763596800123,"items":[]}"#;
    let printed = check(list, &[], 65);
    assert!(
        printed.contains("experiments: none\n         items: none\n"),
        "{printed}"
    );
    let reported = "error    none of 1 served lists names an experiment: they count in no arm";
    assert!(printed.contains(reported), "{printed}");
    let other = r#"{"type":"served","request_id":2,"ts":1763596800123,"experiments":{"e":"a"},"items":[]}"#;
    let printed = check(&format!("{list}\n{other}"), &[], 0);
    let reported = "warning  1 of 2 served lists name no experiment: they count in no arm";
    assert!(printed.contains(reported), "{printed}");
    let printed = check(r#"{"type":"view"}"#, &[], 65);
    assert!(printed.contains("ignored: `type` is \"view\""), "{printed}");
    assert!(
        printed.contains("error    no record is a served list or a click"),
        "{printed}"
    );
    assert!(check("\n\n", &[], 65).contains("error    the sample has no record"));
}

/// Drafts a section for a sample and reads the sample with it. Both must succeed.
#[track_caller]
fn check_suggested(name: &str, sample: &str, as_kind: &[&str]) -> String {
    let dir = temporary_dir();
    let sample = file(&dir, "sample.jsonl", sample);
    let read = ["check", "--sample", &sample];
    let drafted = run(&[&read[..], &["--suggest"], as_kind].concat());
    assert_eq!(
        (drafted.code, &*drafted.stderr),
        (Some(0), ""),
        "{name}: {}",
        drafted.stdout
    );
    let config = file(&dir, "drafted.toml", &drafted.stdout);
    let again = run(&[&read[..], &["--config", &*config], as_kind].concat());
    assert_eq!(
        (again.code, &*again.stderr),
        (Some(0), ""),
        "{name}: {}{}",
        drafted.stdout,
        again.stdout
    );
    assert!(
        !again.stdout.contains("warning"),
        "{name}: {}{}",
        drafted.stdout,
        again.stdout
    );
    drafted.stdout
}

#[test]
fn a_drafted_section_reads_its_sample() {
    for name in ["metarank", "ubi", "personalize", "own"] {
        let path = format!("{}/docs/events/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let sample = std::fs::read_to_string(path).expect("a sample");
        let drafted = check_suggested(name, &sample, &[]);
        assert!(drafted.contains("[events]\n"), "{name}: {drafted}");
    }
    // These are two topics with times without a zone, and lists in rows with elements that are not items.
    let lists = r#"
{"rid":"1","when":"2025-11-20 00:00:00","variant":"a","results":[["i1",null,"i2"],["i3"]]}
{"rid":"2","when":"2025-11-20 00:00:01","variant":"b","results":[["i2"],["i1","i4"]]}
"#;
    let drafted = check_suggested("lists", lists, &["--as", "served"]);
    for line in [
        "ts_zone = \"UTC\"",
        "rows = true",
        "skip_others = true",
        "request_id = \"rid\"",
    ] {
        assert!(drafted.lines().any(|other| other == line), "{line}: {drafted}");
    }
    assert!(!drafted.contains("[events.click]"), "{drafted}");
    let clicks = r#"{"rid":"1","when":1763596800123456,"item":"i2"}"#;
    let drafted = check_suggested("clicks", clicks, &["--as", "click"]);
    assert!(
        drafted.contains("ts_unit = \"us\"\n") && !drafted.contains("[events.served]"),
        "{drafted}"
    );
}

#[test]
fn an_incomplete_draft_reports_refused_records() {
    let own = include_str!("../../docs/events/own.jsonl");
    let ran = run_with_input(&["check", "--sample", "-", "--suggest"], &format!("{own}{{\n"));
    assert_eq!(ran.code, Some(65), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("# refused as not_json: 1, line 4 first"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("item_id = \"product.sku\""), "{}", ran.stdout);
    assert_eq!(run(&["check", "--suggest"]).code, Some(2));
}

#[test]
fn a_large_sample_is_summarized_in_a_few_short_lines() {
    let long = "x".repeat(400);
    let items = vec![format!("\"{long}\""); 900].join(",");
    let list = format!(
        "{{\"type\":\"served\",\"request_id\":\"{long}\",\"ts\":1763596800123,\"items\":[{items}]}}\n"
    );
    let bad = format!("{{\"type\":\"click\",\"request_id\":[{items}]}}\n");
    let printed = check(&(list.repeat(30) + &bad.repeat(30)), &[], 65);
    assert!(printed.len() < 40_000, "{} bytes", printed.len());
    assert_eq!(printed.matches(": served list ").count(), 10);
    assert_eq!(printed.matches(": refused as ").count(), 10);
    assert!(printed.contains(", and 890 more\n"), "{printed}");
    assert!(printed.contains("records: 60; served lists: 30, clicks: 0, ignored: 0, refused: 30; the first 10 of each are shown (wrong_type 30)"), "{printed}");
}

#[test]
fn an_event_cannot_steer_the_terminal() {
    let click = "{\"type\":\"click\",\"request_id\":\"\\u001b[2J\",\"ts\":1763596800123,\"item\":\"a\\nb\"}";
    let printed = check(click, &[], 0);
    assert!(
        printed.contains("click on a\\nb of list \\u{1b}[2J at"),
        "{printed}"
    );
    assert!(!printed.contains('\u{1b}'), "{printed}");
}

#[test]
fn a_sample_file_replaces_the_brokers() {
    let ran = run(&["check", "--sample", "no/such.jsonl"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("no/such.jsonl"), "{}", ran.stderr);
    assert_eq!(run(&["check", "--sample", "x", "--connect"]).code, Some(2));
    assert_eq!(run(&["check", "--as", "click"]).code, Some(2));
}
