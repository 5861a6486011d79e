//! Shapes of events that teams send, processed as a newcomer would: a draft by `check --sample FILE --suggest`, then
//! `evaluate` with it. Either the unchanged draft yields the values the events were made with, or the draft is refused with a
//! description of the shape.

use serde_json::{Value, json};

use crate::support::program::run;

/// One of forty lists, with its click if it has one.
struct Shown {
    n: i64,
    arm: &'static str,
    items: Vec<String>,
    clicked: Option<String>,
}

const START_MS: i64 = 1_763_596_800_000;

impl Shown {
    fn request(&self) -> String {
        format!("req-{:03}", self.n)
    }

    fn user(&self) -> String {
        format!("user-{}", self.n % 13)
    }

    fn ts_ms(&self) -> i64 {
        START_MS + self.n * 7_000
    }

    /// Returns the list in our own shape.
    fn list(&self) -> Value {
        json!({"type": "served", "request_id": self.request(), "user_id": self.user(), "ts": self.ts_ms(),
            "experiments": {"ranker": self.arm}, "items": self.items})
    }

    fn click(&self) -> Option<Value> {
        let item = self.clicked.as_ref()?;
        Some(json!({"type": "click", "request_id": self.request(), "ts": self.ts_ms() + 4_000, "item": item}))
    }
}

/// Builds the lists. Arm `b` is clicked more often, and every fifth of its lists is empty.
fn world() -> Vec<Shown> {
    let shown = |n: i64| {
        let arm = if n % 2 == 0 { "a" } else { "b" };
        let is_empty = n % 10 == 9;
        let items: Vec<String> = (0..3)
            .filter(|_| !is_empty)
            .map(|rank| format!("sku-{}", (n * 7 + rank * 11) % 40))
            .collect();
        let has_click = if arm == "a" { n % 8 == 0 } else { n % 4 == 1 };
        let clicked = items.get(1).filter(|_| has_click).cloned();
        Shown {
            n,
            arm,
            items,
            clicked,
        }
    };
    (0..40).map(shown).collect()
}

/// Returns the number of lists and of lists with a click, by arm.
fn expected() -> [(u64, u64); 2] {
    ["a", "b"].map(|arm| {
        let world = world();
        let of_arm = || world.iter().filter(|shown| shown.arm == arm);
        let n_hits = of_arm().filter(|shown| shown.clicked.is_some()).count();
        (of_arm().count() as u64, n_hits as u64)
    })
}

/// Writes a line for each list and click, using `list` and `click`.
fn lines(list: impl Fn(&Shown) -> Vec<Value>, click: impl Fn(&Shown, Value) -> Value) -> String {
    let mut text = String::new();
    for shown in world() {
        let clicks = shown.click().map(|own| click(&shown, own));
        for event in list(&shown).into_iter().chain(clicks) {
            text.push_str(&event.to_string());
            text.push('\n');
        }
    }
    text
}

fn own_click(_: &Shown, click: Value) -> Value {
    click
}

/// Returns a function that formats a list with a change.
fn list_with(change: impl Fn(&Shown, &mut Value)) -> impl Fn(&Shown) -> Vec<Value> {
    move |shown| {
        let mut list = shown.list();
        change(shown, &mut list);
        vec![list]
    }
}

/// Drafts a section for a sample. Returns the exit code, the draft, and the directory of the sample.
fn drafted(sample: &str) -> (Option<i32>, String, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("events.jsonl");
    std::fs::write(&path, sample).expect("it can be written");
    let ran = run(&["check", "--sample", path.to_str().expect("UTF-8"), "--suggest"]);
    (ran.code, ran.stdout, dir)
}

/// Checks that the draft can be used unchanged, contains these settings, and yields the expected counts.
#[track_caller]
fn check(sample: &str, settings: &[&str], arms: [&str; 2], expected: [(u64, u64); 2]) {
    let (code, draft, dir) = drafted(sample);
    assert_eq!(code, Some(0), "{draft}");
    for setting in settings {
        assert!(draft.contains(setting), "{setting} is missing:\n{draft}");
    }
    let config = dir.path().join("draft.toml");
    std::fs::write(&config, &draft).expect("it can be written");
    let [config, events] =
        [config, dir.path().join("events.jsonl")].map(|path| path.to_str().expect("UTF-8").to_owned());
    let ran = run(&[
        "evaluate",
        &events,
        "--config",
        &config,
        "--metrics",
        "hit_rate",
        "--k",
        "3",
        "--format",
        "json",
    ]);
    assert_eq!(ran.code, Some(0), "{draft}\n{}", ran.stderr);
    let all: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let results = all["experiments"].as_object().expect("experiments");
    let all_arms = results.values().map(|experiment| &experiment["arms"]);
    let of_arms = all_arms
        .clone()
        .find(|of| arms.iter().all(|arm| of.get(arm).is_some()));
    let of_arms = of_arms.unwrap_or_else(|| panic!("no experiment has {arms:?}: {}", ran.stdout));
    let found = arms.map(|arm| {
        let of = &of_arms[arm];
        let n_lists = of["lists"].as_u64().expect("a number");
        let hit_rate = of["metrics"]["hit_rate@3"].as_f64().expect("a number");
        (n_lists, (hit_rate * n_lists as f64).round() as u64)
    });
    assert_eq!(found, expected, "{draft}\n{}", ran.stdout);
}

#[track_caller]
fn check_own_arms(sample: &str, settings: &[&str]) {
    check(sample, settings, ["a", "b"], expected());
}

/// Checks that the draft is refused with these messages.
#[track_caller]
fn check_refused(sample: &str, reported: &[&str]) {
    let (code, draft, _dir) = drafted(sample);
    let words = draft.replace("\n# ", " ");
    assert_eq!(code, Some(65), "{draft}");
    for reported in reported {
        assert!(words.contains(reported), "{reported:?} is missing:\n{draft}");
    }
}

#[test]
fn lists_of_another_type_are_found() {
    let sample = lines(list_with(|_, list| list["type"] = "impression".into()), own_click);
    check_own_arms(&sample, &["types = [\"impression\"]"]);
}

#[test]
fn lists_without_their_array_count_as_empty() {
    let list = list_with(|shown, list| {
        if shown.items.is_empty() {
            list.as_object_mut().expect("an object").remove("items");
        }
    });
    check_own_arms(&lines(list, own_click), &["no_items = \"empty\""]);
    let null = list_with(|shown, list| {
        if shown.items.is_empty() {
            list["items"] = Value::Null;
        }
    });
    check_own_arms(&lines(null, own_click), &["no_items = \"empty\""]);
}

#[test]
fn clicks_with_an_array_of_items_are_read() {
    let list = |shown: &Shown| {
        let hits: Vec<Value> = shown.items.iter().map(|item| json!({"objectID": item})).collect();
        vec![
            json!({"eventType": "search", "queryID": shown.request(), "userToken": shown.user(), "timestamp": shown.ts_ms(),
            "variant": shown.arm, "hits": hits}),
        ]
    };
    let click = |shown: &Shown, click: Value| {
        json!({"eventType": "click", "eventName": "Clicked", "queryID": shown.request(), "userToken": shown.user(),
            "timestamp": click["ts"], "objectIDs": [click["item"]], "positions": [2]})
    };
    check_own_arms(
        &lines(list, click),
        &["item = \"objectIDs\"", "item_id = \"objectID\""],
    );
}

#[test]
fn flags_with_a_prefix_are_experiments_unless_false() {
    let list = |shown: &Shown| {
        let other = if shown.n % 3 == 0 {
            json!("on")
        } else {
            json!(false)
        };
        vec![
            json!({"event": "reco_shown", "distinct_id": shown.user(), "timestamp": shown.ts_ms(), "properties": {
            "$feature/ranker": shown.arm, "$feature/banner": other, "request_id": shown.request(), "items": shown.items}}),
        ]
    };
    let click = |shown: &Shown, click: Value| {
        json!({"event": "reco_click", "distinct_id": shown.user(), "timestamp": click["ts"],
            "properties": {"request_id": shown.request(), "item": click["item"]}})
    };
    let settings = [
        "prefix = \"$feature/\"",
        "not_in = [\"false\"]",
        "user_id = \"distinct_id\"",
    ];
    check_own_arms(&lines(list, click), &settings);
}

#[test]
fn a_null_arm_leaves_a_list_in_its_other_experiments() {
    let list = list_with(|shown, list| {
        list["experiments"]["layout"] = if shown.n % 3 == 0 {
            "grid".into()
        } else {
            Value::Null
        };
    });
    check_own_arms(&lines(list, own_click), &["our own shape"]);
}

#[test]
fn experiments_can_be_text_or_json_text() {
    let arrays = list_with(|shown, list| {
        list["experiments"] = json!([format!("ranker={}", shown.arm), "layout=grid"]);
    });
    check_own_arms(&lines(arrays, own_click), &["arm_separator = \"=\""]);
    let text =
        list_with(|shown, list| list["experiments"] = format!("ranker:{};layout:grid", shown.arm).into());
    check_own_arms(
        &lines(text, own_click),
        &["arm_separator = \":\"", "pair_separator = \";\""],
    );
    let json_text =
        list_with(|shown, list| list["experiments"] = json!({"ranker": shown.arm}).to_string().into());
    check_own_arms(&lines(json_text, own_click), &[]);
}

#[test]
fn json_within_json_is_read() {
    let quoted = |event: Value| Value::from(event.to_string());
    let whole = lines(|shown| vec![quoted(shown.list())], |_, click| quoted(click));
    check_own_arms(&whole, &["nested = \".\""]);
    let held = |event: Value| json!({"version": 1, "payload": event.to_string()});
    let field = lines(|shown| vec![held(shown.list())], |_, click| held(click));
    check_own_arms(&field, &["nested = \"payload\""]);
}

#[test]
fn records_can_hold_several_events() {
    let mut text = String::new();
    for shown in world() {
        let mut list = shown.list();
        list.as_object_mut().expect("an object").remove("user_id");
        let events: Vec<Value> = [list].into_iter().chain(shown.click()).collect();
        text.push_str(&json!({"userId": shown.user(), "sessionId": "s", "eventList": events}).to_string());
        text.push('\n');
    }
    check_own_arms(&text, &["records = \"eventList\"", "user_id = \"^.userId\""]);
}

#[test]
fn lists_can_hold_their_clicks() {
    let base = |shown: &Shown| json!({"request_id": shown.request(), "user_id": shown.user(), "ts": shown.ts_ms(), "arm": shown.arm});
    let flags = |shown: &Shown| {
        let mut list = base(shown);
        let item = |item: &String| json!({"id": item, "clicked": shown.clicked.as_ref() == Some(item)});
        list["items"] = shown.items.iter().map(item).collect();
        vec![list]
    };
    let without_clicks = |list: &dyn Fn(&Shown) -> Vec<Value>| {
        let events = world().into_iter().flat_map(|shown| list(&shown));
        events.map(|event| format!("{event}\n")).collect::<String>()
    };
    check_own_arms(&without_clicks(&flags), &["clicked = \"clicked\""]);
    let ids = |shown: &Shown| {
        let mut list = base(shown);
        list["items"] = json!(shown.items);
        list["clicked_skus"] = shown.clicked.iter().cloned().collect();
        vec![list]
    };
    check_own_arms(&without_clicks(&ids), &["clicked_items = \"clicked_skus\""]);
    let times = |shown: &Shown| {
        let mut list = base(shown);
        let item = |item: &String| {
            let is_clicked = shown.clicked.as_ref() == Some(item);
            json!({"id": item, "clickedAt": is_clicked.then_some("2025-11-20 00:10:00")})
        };
        list["items"] = shown.items.iter().map(item).collect();
        vec![list]
    };
    check_own_arms(&without_clicks(&times), &["clicked = \"clickedAt\""]);
    let quoted = |shown: &Shown| {
        let mut list = base(shown);
        let item = |item: &String| json!({"id": item, "clicked": (shown.clicked.as_ref() == Some(item)).to_string()});
        list["items"] = shown.items.iter().map(item).collect();
        vec![list]
    };
    check_own_arms(&without_clicks(&quoted), &["clicked = \"clicked\""]);
}

#[test]
fn times_with_a_zone_are_read_in_several_formats() {
    for form in [
        "%Y-%m-%d %H:%M:%S UTC",
        "%Y-%m-%dT%H:%M:%S+0000",
        "%Y%m%dT%H%M%SZ",
        "%a, %d %b %Y %H:%M:%S GMT",
    ] {
        let text = |event: &mut Value| {
            let ms = event["ts"].as_i64().expect("a number");
            let time = jiff::Timestamp::from_millisecond(ms).expect("a time");
            event["ts"] = time.strftime(form).to_string().into();
        };
        let sample = lines(list_with(|_, list| text(list)), |_, mut click| {
            text(&mut click);
            click
        });
        check_own_arms(&sample, &["our own shape"]);
    }
}

#[test]
fn lists_resent_by_one_arm_count_once() {
    let again = |shown: &Shown| {
        let mut later = shown.list();
        later["ts"] = (shown.ts_ms() + 8_000).into();
        match shown.arm {
            "b" => vec![shown.list(), later],
            _ => vec![shown.list()],
        }
    };
    check_own_arms(&lines(again, own_click), &["our own shape"]);
}

#[test]
fn placeholder_user_ids_are_not_users() {
    for nobody in ["", "0", "anonymous"] {
        let list = list_with(|_, list| list["user_id"] = nobody.into());
        check_own_arms(&lines(list, own_click), &["our own shape"]);
    }
}

#[test]
fn records_of_single_items_are_gathered_into_lists() {
    let rows = |shown: &Shown| {
        let row = |(position, item): (usize, &String)| {
            json!({"type": "impression", "request_id": shown.request(), "user_id": shown.user(), "ts": shown.ts_ms(),
                "experiment": "ranker", "arm": shown.arm, "position": position, "item": item})
        };
        let mut rows: Vec<Value> = shown.items.iter().enumerate().map(row).collect();
        if rows.is_empty() {
            rows.push(json!({"type": "impression", "request_id": shown.request(), "user_id": shown.user(), "ts": shown.ts_ms(),
                "experiment": "ranker", "arm": shown.arm}));
        }
        rows
    };
    check_own_arms(
        &lines(rows, own_click),
        &[
            "Records show one item each",
            "gather = \"10s\"",
            "position = \"position\"",
            "no_items = \"empty\"",
        ],
    );
}

#[test]
fn records_of_one_shown_item_may_have_a_click_flag() {
    let sample = |flag: &dyn Fn(bool) -> Value| {
        let mut text = String::new();
        for shown in world() {
            // A table of rows has none for an empty list.
            for (position, item) in shown.items.iter().enumerate() {
                let is_clicked = shown.clicked.as_ref() == Some(item);
                let row = json!({"request_id": shown.request(), "user_id": shown.user(), "ts": shown.ts_ms(), "experiment": "ranker",
                    "arm": shown.arm, "position": position + 1, "item": item, "clicked": flag(is_clicked)});
                text.push_str(&format!("{row}\n"));
            }
        }
        text
    };
    let n_lists = |arm: &str| {
        let world = world();
        world
            .iter()
            .filter(|shown| shown.arm == arm && !shown.items.is_empty())
            .count() as u64
    };
    let [(_, hits_of_a), (_, hits_of_b)] = expected();
    let expected = [(n_lists("a"), hits_of_a), (n_lists("b"), hits_of_b)];
    let settings = [
        "gather = \"10s\"",
        "click_skew = \"10s\"",
        "clicked = \"clicked\"",
        "position = \"position\"",
    ];
    check(&sample(&Value::from), &settings, ["a", "b"], expected);
    check(
        &sample(&|is_clicked| u8::from(is_clicked).into()),
        &settings,
        ["a", "b"],
        expected,
    );
}

#[test]
fn arms_in_separate_events_are_reported() {
    let list = |shown: &Shown| {
        let mut list = shown.list();
        list.as_object_mut().expect("an object").remove("experiments");
        let enroll = json!({"type": "enroll", "user_id": shown.user(), "ts": shown.ts_ms() - 500, "variant": shown.arm});
        vec![enroll, list]
    };
    check_refused(
        &lines(list, own_click),
        &["No list names an arm", "a separate event"],
    );
}

#[test]
fn clicks_without_a_list_id_are_reported() {
    let list = list_with(|_, list| drop(list.as_object_mut().expect("an object").remove("request_id")));
    let click = |shown: &Shown, mut click: Value| {
        click.as_object_mut().expect("an object").remove("request_id");
        click["user_id"] = shown.user().into();
        click
    };
    check_refused(&lines(list, click), &["no field is unique to each list"]);
    let of_item = list_with(|shown, list| {
        let item = |item: &String| json!({"impression_id": format!("{}-{item}", shown.n), "sku": item});
        list["items"] = shown.items.iter().map(item).collect();
    });
    let click = |shown: &Shown, click: Value| {
        let item = click["item"].as_str().expect("text");
        json!({"type": "click", "impression_id": format!("{}-{item}", shown.n), "user_id": shown.user(), "ts": click["ts"]})
    };
    check_refused(
        &lines(of_item, click),
        &[
            "Clicks name a shown item (`impression_id`)",
            "no field links clicks to lists",
        ],
    );
}

#[test]
fn a_file_without_a_matching_click_has_no_numbers() {
    let sample = lines(list_with(|_, _| ()), |_, mut click| {
        click["item"] = "elsewhere".into();
        click
    });
    check_refused(&sample, &["No click is on an item of its list"]);
    let (_, _, dir) = drafted(&sample);
    let ran = run(&[
        "evaluate",
        dir.path().join("events.jsonl").to_str().expect("UTF-8"),
    ]);
    assert_eq!(ran.code, Some(65), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("none is on an item of its list"),
        "{}",
        ran.stderr
    );
}

#[test]
fn times_rounded_to_32_bit_floats_are_reported() {
    let step_ms = 131_072;
    let on_steps = |event: &mut Value| {
        let ms = event["ts"].as_i64().expect("a number");
        event["ts"] = ((ms + step_ms / 2) / step_ms * step_ms).into();
    };
    let sample = lines(list_with(|_, list| on_steps(list)), |_, mut click| {
        on_steps(&mut click);
        click
    });
    let (_, _, dir) = drafted(&sample);
    let events = dir.path().join("events.jsonl");
    let warned = run(&["evaluate", events.to_str().expect("UTF-8")]).stderr;
    assert!(
        warned.contains("times of 40 of 40 lists are multiples of 131072 ms"),
        "{warned}"
    );
    let checked = run(&["check", "--sample", events.to_str().expect("UTF-8")]).stdout;
    for reported in [
        "times of 40 of 40 lists are multiples of 131072 ms",
        "of 13 clicks are multiples",
    ] {
        assert!(checked.contains(reported), "{checked}");
    }
    let (_, _, dir) = drafted(&lines(list_with(|_, _| ()), own_click));
    let events = dir.path().join("events.jsonl");
    let warned = run(&["evaluate", events.to_str().expect("UTF-8")]).stderr;
    assert!(!warned.contains("131072"), "{warned}");
    let checked = run(&["check", "--sample", events.to_str().expect("UTF-8")]).stdout;
    assert!(!checked.contains("131072"), "{checked}");
}

type ValueOf<'a> = dyn Fn(&Shown) -> Value + 'a;

/// The experiment in every shape that a newcomer may send, with other facts beside it that must not become arms.
#[test]
fn an_experiment_is_drafted_without_the_users_and_times_beside_it() {
    let ranker = |shown: &Shown| json!({"id": "ranker", "variant": shown.arm, "userId": shown.user(), "assigned_at": shown.ts_ms(), "enabled": true});
    let of_flags = |shown: &Shown| json!({"key": "ranker", "variationId": shown.arm, "hashValue": shown.user(), "inExperiment": true});
    let map = |shown: &Shown| {
        json!({"ranker": shown.arm, "user": shown.user(), "assignment_id": format!("as-{}", shown.n), "assigned_at": shown.ts_ms(),
            "context": "{\"os\":\"ios\"}"})
    };
    let array =
        |shown: &Shown| json!([{"bucket": shown.n * 37 % 97, "experiment": "ranker", "variant": shown.arm}]);
    let inner = |shown: &Shown| json!({"ranker": {"variant": shown.arm, "userId": shown.user(), "at": shown.ts_ms()}});
    let json_text = |shown: &Shown| Value::from(array(shown).to_string());
    let query =
        |shown: &Shown| format!("ranker={}&uid={}&t={}", shown.arm, shown.user(), shown.ts_ms()).into();
    let forms: [(&str, &ValueOf<'_>); 7] = [
        ("experiment", &ranker),
        ("experiment", &of_flags),
        ("experiments", &map),
        ("experiments", &array),
        ("experiments", &inner),
        ("experiments", &json_text),
        ("ab", &query),
    ];
    for (field, experiment) in forms {
        let list = list_with(|shown, list| {
            list.as_object_mut().expect("an object").remove("experiments");
            list[field] = experiment(shown);
        });
        let sample = lines(list, own_click);
        check_own_arms(&sample, &[]);
        // Nothing else has become an experiment.
        let (_, draft, _dir) = drafted(&sample);
        assert!(
            draft.contains("# arms with their lists: ranker: a 20, b 20\n"),
            "{draft}"
        );
    }
}

#[test]
fn fields_with_a_prefix_are_experiments_only_if_their_values_are_arms() {
    let list = |shown: &Shown| {
        vec![
            json!({"event": "reco_shown", "distinct_id": shown.user(), "timestamp": shown.ts_ms(), "properties": {
            "$feature/ranker": shown.arm, "$feature/ranker_payload": "{\"k\": 1}", "$feature/evaluated_at": shown.ts_ms(),
            "request_id": shown.request(), "items": shown.items}}),
        ]
    };
    let click = |shown: &Shown, click: Value| {
        json!({"event": "reco_click", "distinct_id": shown.user(), "timestamp": click["ts"],
            "properties": {"request_id": shown.request(), "item": click["item"]}})
    };
    check_own_arms(&lines(list, click), &["only = [\"ranker\"]"]);
}

#[test]
fn a_value_for_not_in_the_experiment_is_drafted_in_our_own_shape_too() {
    for not_in in ["none", "", "unassigned"] {
        let list = list_with(|shown, list| {
            list["experiments"]["banner"] = if shown.n % 3 == 0 { "on" } else { not_in }.into();
        });
        let sample = lines(list, own_click);
        check_own_arms(&sample, &[&format!("not_in = [\"{not_in}\"]")]);
        let (_, draft, _dir) = drafted(&sample);
        assert!(draft.contains("banner: on 14; ranker: a 20, b 20"), "{draft}");
    }
    // In an array, an empty arm leaves the other experiments of its list.
    let list = list_with(|shown, list| {
        let banner = if shown.n % 7 == 0 { "" } else { "on" };
        list["experiments"] =
            json!([{"name": "ranker", "variant": shown.arm}, {"name": "banner", "variant": banner}]);
    });
    check_own_arms(&lines(list, own_click), &["not_in = [\"\"]"]);
}

#[test]
fn a_time_or_an_opaque_text_is_not_an_arm() {
    let list = list_with(|shown, list| {
        list.as_object_mut().expect("an object").remove("experiments");
        list["variant"] = shown.ts_ms().into();
        list["test_user_id"] = shown.user().into();
    });
    check_refused(&lines(list, own_click), &["No list names an arm: `test_user_id`"]);
    // A path does not lead into JSON text.
    let list = list_with(|shown, list| {
        list.as_object_mut().expect("an object").remove("experiments");
        list["experiment"] = json!({"id": "ranker", "variant": shown.arm}).to_string().into();
    });
    check_refused(
        &lines(list, own_click),
        &["`experiment` has the name of an experiment or arm, but its values cannot be read as such"],
    );
}

/// A second shelf on the page of each list, with items of its own.
fn with_shelf(shown: &Shown, field: Option<&str>) -> Vec<Value> {
    let mut lists = vec![shown.list(), shown.list()];
    lists[1]["items"] = shown.items.iter().map(|item| format!("{item}-mid")).collect();
    for (list, shelf) in lists.iter_mut().zip(["top", "mid"]) {
        if let Some(field) = field {
            list[field] = shelf.into();
        }
    }
    lists
}

#[test]
fn lists_of_one_request_are_separated_by_their_shelf() {
    let on_mid =
        |click: &mut Value| click["item"] = format!("{}-mid", click["item"].as_str().expect("text")).into();
    let [(n_of_a, hits_of_a), (n_of_b, hits_of_b)] = expected();
    let expected = [(2 * n_of_a, hits_of_a), (2 * n_of_b, hits_of_b)];
    // A click may name its shelf or not.
    for names_shelf in [true, false] {
        let sample = lines(
            |shown| with_shelf(shown, Some("placement")),
            |_, mut click| {
                on_mid(&mut click);
                if names_shelf {
                    click["placement"] = "mid".into();
                }
                click
            },
        );
        let setting = "request_id = { all = [\"request_id\", \"placement\"] }";
        check(&sample, &[setting], ["a", "b"], expected);
    }
    let sample = lines(
        |shown| with_shelf(shown, None),
        |_, mut click| {
            on_mid(&mut click);
            click
        },
    );
    check_refused(&sample, &["several lists share one id"]);
}

#[test]
fn a_draft_whose_clicks_are_all_early_or_late_is_refused() {
    for (delay_ms, reported) in [
        (
            5 * 3_600_000,
            [
                "they come too late: 13 of 13, up to 5h after their list",
                "raise attribution",
            ],
        ),
        (
            -120_000,
            [
                "they come before their list: 13 of 13, up to 2m before it",
                "set click_skew",
            ],
        ),
    ] {
        let sample = lines(list_with(|_, _| ()), |shown, mut click| {
            click["ts"] = (shown.ts_ms() + delay_ms).into();
            click
        });
        check_refused(&sample, &reported);
        let (_, _, dir) = drafted(&sample);
        let events = dir.path().join("events.jsonl");
        // `evaluate` and `check --sample` have the same exit code.
        for command in [vec!["evaluate"], vec!["check", "--sample"]] {
            let ran = run(&[&command[..], &[events.to_str().expect("UTF-8")]].concat());
            assert_eq!(ran.code, Some(65), "{command:?}: {}{}", ran.stdout, ran.stderr);
        }
    }
}

#[test]
fn times_that_are_arrays_are_drafted() {
    let in_parts = |event: &mut Value| {
        let ms = event["ts"].as_i64().expect("a number");
        let time = jiff::Timestamp::from_millisecond(ms)
            .expect("a time")
            .to_zoned(jiff::tz::TimeZone::UTC);
        event["ts"] = json!([
            time.year(),
            time.month(),
            time.day(),
            time.hour(),
            time.minute(),
            time.second()
        ]);
    };
    let sample = lines(list_with(|_, list| in_parts(list)), |_, mut click| {
        in_parts(&mut click);
        click
    });
    check_own_arms(&sample, &["ts_zone = \"UTC\""]);
}

#[test]
fn rows_of_viewed_items_are_gathered() {
    for kind in ["view", "viewed", "seen"] {
        let rows = |shown: &Shown| {
            let row = |item: &String| {
                json!({"type": kind, "request_id": shown.request(), "user_id": shown.user(), "ts": shown.ts_ms(), "experiment": "ranker",
                    "arm": shown.arm, "item": item})
            };
            let empty = || {
                let mut empty = row(&String::new());
                empty.as_object_mut().expect("an object").remove("item");
                empty
            };
            let rows: Vec<Value> = shown.items.iter().map(row).collect();
            if rows.is_empty() { vec![empty()] } else { rows }
        };
        check_own_arms(&lines(rows, own_click), &["gather = \"10s\""]);
    }
}

/// Every shape that cannot be drafted names a recipe that exists.
#[test]
fn shapes_that_cannot_be_drafted_have_a_recipe() {
    let cookbook = include_str!("../../docs/cookbook.md");
    let without = |mut event: Value, name: &str| {
        event.as_object_mut().expect("an object").remove(name);
        event
    };
    let arms_apart = lines(
        |shown| {
            let enroll = json!({"type": "enroll", "user_id": shown.user(), "ts": shown.ts_ms() - 500, "variant": shown.arm});
            vec![enroll, without(shown.list(), "experiments")]
        },
        own_click,
    );
    let no_id = lines(
        |shown| vec![without(shown.list(), "request_id")],
        |_, click| without(click, "request_id"),
    );
    let shown_item = lines(
        |shown| {
            let mut list = shown.list();
            let item = |item: &String| json!({"impression_id": format!("{}-{item}", shown.n), "sku": item});
            list["items"] = shown.items.iter().map(item).collect();
            vec![list]
        },
        |shown, click| {
            let item = click["item"].as_str().expect("text");
            json!({"type": "click", "impression_id": format!("{}-{item}", shown.n), "ts": click["ts"]})
        },
    );
    let param = |key: &str, value: &str| json!({"key": key, "value": {"string_value": value}});
    let ga4 = lines(
        |shown| {
            let items: Vec<Value> = shown.items.iter().map(|item| json!({"item_id": item})).collect();
            vec![
                json!({"event_name": "view_item_list", "event_timestamp": shown.ts_ms() * 1_000, "user_pseudo_id": shown.user(),
                "event_params": [param("recommendation_id", &shown.request()), param("arm", shown.arm)], "items": items}),
            ]
        },
        |shown, click| {
            json!({"event_name": "select_item", "event_timestamp": shown.ts_ms() * 1_000 + 1, "user_pseudo_id": shown.user(),
                "event_params": [param("recommendation_id", &shown.request())], "items": [{"item_id": click["item"]}]})
        },
    );
    let other = "events-of-other-shapes";
    let seconds = lines(list_with(|_, _| ()), |shown, mut click| {
        click["ts"] = (shown.ts_ms() / 1_000 + 4).into();
        click
    });
    let commas = lines(
        list_with(|shown, list| list["items"] = shown.items.join(",").into()),
        own_click,
    );
    let not_enrolled = lines(
        list_with(|shown, list| {
            list["experiments"] =
                json!({"ranker": {"variationId": shown.arm, "inExperiment": shown.n % 3 > 0}});
        }),
        own_click,
    );
    let attributes = lines(
        |shown| {
            let mut list = without(shown.list(), "experiments");
            list["properties"] = json!({"place": "home", "arm": shown.arm}).to_string().into();
            vec![list]
        },
        own_click,
    );
    let in_base64 =
        |kind: &str| json!({"specversion": "1.0", "id": "e", "type": kind, "data_base64": "e30="});
    let base64 = lines(|_| vec![in_base64("served")], |_, _| in_base64("click"));
    let american = lines(
        list_with(|_, list| list["ts"] = "11/20/2025 12:00:09 AM".into()),
        own_click,
    );
    let no_type = lines(
        |shown| vec![without(shown.list(), "type")],
        |_, click| without(click, "type"),
    );
    let log = "2025-11-20T00:00:00Z GET /list?items=a,b\n2025-11-20T00:00:01Z GET /click?item=a".to_owned();
    for (sample, anchor, heading) in [
        (arms_apart, "arms-in-a-separate-event", "Arms in a separate event"),
        (no_id, "clicks-without-a-list-id", "Clicks without a list id"),
        (
            shown_item,
            "clicks-that-name-a-shown-item",
            "Clicks that name a shown item",
        ),
        (ga4, "ga4", "GA4"),
        (log, "access-logs", "Access logs"),
        (seconds, other, "Events of other shapes"),
        (commas, other, "Events of other shapes"),
        (not_enrolled, other, "Events of other shapes"),
        (attributes, other, "Events of other shapes"),
        (base64, other, "Events of other shapes"),
        (american, other, "Events of other shapes"),
        (no_type, other, "Events of other shapes"),
    ] {
        check_refused(&sample, &[&format!("docs/cookbook.md#{anchor}")]);
        assert!(cookbook.contains(&format!("\n## {heading}\n")), "{heading}");
    }
}

/// A redirected draft would hide why it cannot be used.
#[test]
fn a_draft_that_cannot_be_used_is_reported_on_standard_error() {
    let sample = lines(list_with(|_, _| ()), |_, mut click| {
        click["item"] = "elsewhere".into();
        click
    });
    let (_, _, dir) = drafted(&sample);
    let events = dir.path().join("events.jsonl");
    let ran = run(&["check", "--sample", events.to_str().expect("UTF-8"), "--suggest"]);
    assert!(
        ran.stderr
            .contains("the draft cannot be used unchanged: no click is on an item of its list"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_tombstone_in_a_file_is_not_a_fault() {
    let sample = lines(|shown| vec![shown.list(), Value::Null], own_click);
    check_own_arms(&sample, &["our own shape"]);
    let (_, _, dir) = drafted(&sample);
    let events = dir.path().join("events.jsonl");
    let ran = run(&["check", "--sample", events.to_str().expect("UTF-8")]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains("note     line 2: a tombstone: it has no value"),
        "{}",
        ran.stdout
    );
}

#[test]
fn types_in_the_json_of_avro_are_part_of_a_path() {
    let list = |shown: &Shown| {
        vec![
            json!({"type": "served", "request_id": shown.request(), "user_id": {"string": shown.user()},
            "ts": {"long": shown.ts_ms()}, "experiments": {"map": {"ranker": shown.arm}}, "items": {"array": shown.items}}),
        ]
    };
    let click = |_: &Shown, click: Value| json!({"type": "click", "request_id": click["request_id"], "ts": {"long": click["ts"]}, "item": {"string": click["item"]}});
    check_own_arms(
        &lines(list, click),
        &[
            "user_id = \"user_id.string\"",
            "experiments = \"experiments.map\"",
        ],
    );
}

/// Otherwise its lists would look like lists without a click.
#[test]
fn a_file_in_which_all_clicks_are_refused_has_no_numbers() {
    for (field, value) in [
        ("ts", json!("today")),
        ("item", json!({"id": 1})),
        ("request_id", Value::Null),
    ] {
        let sample = lines(list_with(|_, _| ()), |_, mut click| {
            click[field] = value.clone();
            click
        });
        let (_, _, dir) = drafted(&sample);
        let events = dir.path().join("events.jsonl");
        let ran = run(&["evaluate", events.to_str().expect("UTF-8")]);
        assert_eq!(ran.code, Some(65), "{field}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("clicks: 13, but none can be read"),
            "{field}: {}",
            ran.stderr
        );
    }
}

#[test]
fn a_user_is_never_a_type_or_an_arm() {
    // Few users that return look like types or arms.
    let user = |shown: &Shown| format!("user-{}", shown.n % 7);
    let missing = list_with(|shown, list| {
        list["user_id"] = user(shown).into();
        if shown.items.is_empty() {
            list["items"] = Value::Null;
        }
    });
    check_own_arms(
        &lines(missing, own_click),
        &["type = \"type\"", "no_items = \"empty\""],
    );
    let beside = list_with(|shown, list| {
        list["user_id"] = user(shown).into();
        list["experiments"]["unit"] = user(shown).into();
        list["experiments"]["mail"] = format!("{}@example.org", user(shown)).into();
        list["experiments"]["bucket"] = (shown.n % 7 * 9).to_string().into();
    });
    check_own_arms(&lines(beside, own_click), &["only = [\"ranker\"]"]);
    for name in ["variant", "experiments"] {
        let alone = list_with(|shown, list| {
            list["user_id"] = user(shown).into();
            list["experiments"] = json!({});
            list[name] = match name {
                "variant" => user(shown).into(),
                _ => json!({"ranker": user(shown)}),
            };
        });
        check_refused(&lines(alone, own_click), &[]);
    }
}

#[test]
fn a_preset_without_arms_is_refused_and_one_with_arms_elsewhere_is_drafted() {
    let list = |more: &dyn Fn(&Shown) -> Value| {
        let lists = |shown: &Shown| {
            let time = jiff::Timestamp::from_millisecond(shown.ts_ms())
                .expect("a time")
                .to_string();
            vec![
                json!({"application": "shop", "query_id": format!("q-{}", shown.n), "client_id": shown.user(), "user_query": "tv",
                "query_attributes": more(shown), "query_response_id": shown.request(), "query_response_hit_ids": shown.items,
                "timestamp": time}),
            ]
        };
        lines(lists, |shown, click| {
            let time = jiff::Timestamp::from_millisecond(shown.ts_ms() + 4_000)
                .expect("a time")
                .to_string();
            json!({"action_name": "click", "query_id": format!("q-{}", shown.n), "client_id": shown.user(), "timestamp": time,
                "event_attributes": {"object": {"object_id": click["item"], "object_id_field": "id"}}})
        })
    };
    check_refused(&list(&|_| json!({})), &["No list names an arm"]);
    let pair = list(&|shown| json!({"experiment": "ranker", "variant": shown.arm}));
    check_own_arms(&pair, &["experiment = \"query_attributes.experiment\""]);
}

#[test]
fn one_pair_of_experiment_and_arm_is_split() {
    let list = list_with(|shown, list| list["experiments"] = format!("ranker:{}", shown.arm).into());
    check_own_arms(&lines(list, own_click), &["arm_separator = \":\""]);
}

#[test]
fn a_single_arm_that_not_in_leaves_is_reported() {
    let list = list_with(|shown, list| list["experiments"] = json!({"new_ranker": shown.arm == "a"}));
    let (_, draft, _dir) = drafted(&lines(list, own_click));
    assert!(
        draft.contains("Only one arm of new_ranker remains. If \"false\" means the control"),
        "{draft}"
    );
}

/// The id of a list is found by its values, as in records of whole lists.
#[test]
fn rows_of_one_list_may_share_an_id_of_any_name() {
    for name in ["imp_id", "page_view_id", "bundle"] {
        let rows = |shown: &Shown| {
            let row = |(position, item): (usize, &String)| {
                json!({"event": "impression", name: shown.request(), "user_id": shown.user(), "ts": shown.ts_ms(), "experiment": "ranker",
                    "arm": shown.arm, "position": position + 1, "item": item})
            };
            shown.items.iter().enumerate().map(row).collect()
        };
        let click = |shown: &Shown, click: Value| json!({"event": "click", name: shown.request(), "ts": click["ts"], "item": click["item"]});
        let world = world();
        let n_lists = |arm: &str| {
            world
                .iter()
                .filter(|shown| shown.arm == arm && !shown.items.is_empty())
                .count() as u64
        };
        let [(_, hits_of_a), (_, hits_of_b)] = expected();
        let expected = [(n_lists("a"), hits_of_a), (n_lists("b"), hits_of_b)];
        check(
            &lines(rows, click),
            &["gather = \"10s\"", &format!("request_id = \"{name}\"")],
            ["a", "b"],
            expected,
        );
    }
}

#[test]
fn a_renamed_time_has_two_paths() {
    let list = list_with(|shown, list| {
        if shown.n >= 20 {
            list["timestamp"] = list["ts"].take();
            list.as_object_mut().expect("an object").remove("ts");
        }
    });
    check_own_arms(
        &lines(list, own_click),
        &["ts = { any = [\"ts\", \"timestamp\"] }"],
    );
}

/// The other experiment has the arms `on` and `off`.
fn other_arm(shown: &Shown) -> &'static str {
    if shown.n % 3 == 0 { "on" } else { "off" }
}

#[test]
fn experiments_in_fields_with_one_beginning_are_drafted() {
    let list = list_with(|shown, list| {
        list.as_object_mut().expect("an object").remove("experiments");
        list["exp_ranker"] = shown.arm.into();
        list["exp_banner"] = other_arm(shown).into();
    });
    check_own_arms(&lines(list, own_click), &["prefix = \"exp_\""]);
    // These two fields describe one experiment.
    let list = list_with(|shown, list| {
        list.as_object_mut().expect("an object").remove("experiments");
        list["exp_name"] = "ranker".into();
        list["exp_arm"] = shown.arm.into();
    });
    check_own_arms(
        &lines(list, own_click),
        &["experiment = \"exp_name\"", "arm = \"exp_arm\""],
    );
}

#[test]
fn the_values_of_flags_are_arms() {
    let features = list_with(|shown, list| {
        list.as_object_mut().expect("an object").remove("experiments");
        list["features"] = json!({"ranker": {"value": shown.arm, "reason": "RULE_MATCH"},
            "banner": {"value": other_arm(shown), "reason": "FALLTHROUGH"}});
    });
    check_own_arms(
        &lines(features, own_click),
        &["experiments = \"features\"", "arm = \"value\""],
    );
    // Features of items or users are not flags.
    let facts = list_with(|shown, list| {
        list.as_object_mut().expect("an object").remove("experiments");
        list["features"] = json!({"age": 30 + shown.n % 3, "country": "de"});
    });
    check_refused(&lines(facts, own_click), &["No list names an arm"]);
}

/// The draft reads one of the experiments, and names the fields of the others.
#[test]
fn further_experiments_are_named() {
    let fields = list_with(|shown, list| {
        list.as_object_mut().expect("an object").remove("experiments");
        list["ranker_variant"] = shown.arm.into();
        list["banner_variant"] = other_arm(shown).into();
    });
    let objects = list_with(|shown, list| {
        list.as_object_mut().expect("an object").remove("experiments");
        list["experiment1"] = json!({"name": "ranker", "variant": shown.arm});
        list["experiment2"] = json!({"name": "banner", "variant": other_arm(shown)});
    });
    for (sample, settings, further) in [
        (
            lines(fields, own_click),
            ["experiment_name = \"ranker\"", "arm = \"ranker_variant\""],
            "`banner_variant`",
        ),
        (
            lines(objects, own_click),
            [
                "experiment = \"experiment1.name\"",
                "arm = \"experiment1.variant\"",
            ],
            "`experiment2.variant`",
        ),
    ] {
        check_own_arms(&sample, &settings);
        let (_, draft, _dir) = drafted(&sample);
        assert!(
            draft.contains(&format!(
                "These fields may also name arms but are not read: {further}."
            )),
            "{draft}"
        );
    }
}

#[test]
fn fields_with_few_values_are_named_if_no_field_is_called_an_arm() {
    let list = list_with(|shown, list| {
        list.as_object_mut().expect("an object").remove("experiments");
        list["Variante"] = if shown.arm == "a" { "Kontrolle" } else { "Neu" }.into();
        list["country"] = "de".into();
    });
    check_refused(
        &lines(list, own_click),
        &["to a name of your choice: `Variante` (Kontrolle 20, Neu 20). Otherwise"],
    );
}

/// Neither the session nor the number within it is unique to a list.
#[test]
fn a_session_and_a_number_within_it_are_an_id() {
    let numbered = |shown: &Shown, mut event: Value| {
        event.as_object_mut().expect("an object").remove("request_id");
        event["session"] = format!("s{}", shown.n % 7).into();
        event["view"] = (shown.n / 7).into();
        event
    };
    check_own_arms(
        &lines(|shown| vec![numbered(shown, shown.list())], numbered),
        &["request_id = { all = [\"session\", \"view\"] }"],
    );
}

/// Names and values that look like those of experiments, and are facts about something else.
#[test]
fn facts_are_neither_arms_nor_clicks() {
    let with = |fields: fn(&Shown) -> Value| {
        list_with(move |shown, list| {
            list["variant"] = shown.arm.into();
            let list = list.as_object_mut().expect("an object");
            list.remove("experiments");
            let fields = fields(shown);
            list.extend(fields.as_object().expect("an object").clone());
        })
    };
    let facts: [fn(&Shown) -> Value; 5] = [
        |shown| json!({"exp_month": shown.n % 12 + 1, "exp_year": 2026 + shown.n % 3}),
        |shown| json!({"exp_points": shown.n % 7 * 10, "exp_level": shown.n % 4}),
        |shown| json!({"test_mode": false, "test_env": if shown.n % 3 == 0 { "stage" } else { "prod" }}),
        |shown| json!({"features": {"price": {"value": 10 + shown.n % 3, "unit": "eur"}}}),
        |shown| json!({"loyalty": {"enrolled": shown.n % 3 > 0}, "device": {"arm64": shown.n % 2 > 0}}),
    ];
    for fields in facts {
        check_own_arms(&lines(with(fields), own_click), &["arm = \"variant\""]);
    }
    for name in ["lastClickedAt", "click_expires_at"] {
        let list = list_with(|shown, list| {
            let item = |item: &String| json!({"id": item, name: "2025-11-19T00:00:00Z"});
            list["items"] = shown.items.iter().map(item).collect();
        });
        let without_clicks: String = world()
            .iter()
            .flat_map(list)
            .map(|event| format!("{event}\n"))
            .collect();
        let (code, draft, _dir) = drafted(&without_clicks);
        assert_eq!(code, Some(65), "{draft}");
        assert!(!draft.contains("\nclicked ="), "{draft}");
    }
}

/// Clicks count their own events, so they agree with some lists by chance.
#[test]
fn numbers_that_agree_by_chance_are_no_id() {
    let numbered = |shown: &Shown, n: i64, mut event: Value| {
        event.as_object_mut().expect("an object").remove("request_id");
        event["session"] = format!("s{}", shown.n % 7).into();
        event["seq"] = n.into();
        event
    };
    let sample = lines(
        |shown| vec![numbered(shown, shown.n / 7, shown.list())],
        |shown, click| numbered(shown, shown.n / 14, click),
    );
    check_refused(&sample, &["docs/cookbook.md#clicks-without-a-list-id"]);
}

#[test]
fn lists_outside_of_their_experiment_are_refused() {
    let with = |experiment: fn(&Shown) -> Value| {
        lines(
            list_with(move |shown, list| list["experiments"] = json!({"ranker": experiment(shown)})),
            own_click,
        )
    };
    let forms: [fn(&Shown) -> Value; 5] = [
        |shown| json!({"variationId": shown.arm, "inExperiment": shown.n % 3 > 0}),
        |shown| json!({"variationId": shown.arm, "in_experiment": i32::from(shown.n % 3 > 0)}),
        |shown| json!({"variationId": shown.arm, "inExperiment": (shown.n % 3 > 0).to_string()}),
        |shown| json!({"variationId": shown.arm, "excluded": shown.n % 3 == 0}),
        |shown| match shown.n % 3 {
            0 => json!({"variationId": shown.arm}),
            _ => json!({"variationId": shown.arm, "reason": {"inExperiment": true}}),
        },
    ];
    for form in forms {
        check_refused(&with(form), &["14 lists are not in their experiment"]);
    }
    // Without a list outside of it, the flag does not matter.
    check_own_arms(
        &with(|shown| json!({"variationId": shown.arm, "inExperiment": true})),
        &["arm = \"variationId\""],
    );
}
