//! `--by` and `--where`: a group has the same numbers as its lists, filtered by hand, with all clicks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::program::{Ran, file, run, run_with_input, temporary_dir};
use crate::{MIDNIGHT_MS, click, tables, two_arms};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// Devices as events name them, and the groups of their lists.
fn devices() -> Vec<(Value, &'static str)> {
    vec![
        (json!("ios"), "ios"),
        (json!("=web"), "=web"),
        (json!(7), "7"),
        (json!(true), "true"),
        (json!(0.5), "0.5"),
        (json!(["ios"]), "ios"),
        (json!(null), "__absent__"),
        (json!(""), "__absent__"),
        (json!({"name": "ios"}), "__absent__"),
        (json!(["ios", "web"]), "__absent__"),
    ]
}

/// Returns lists and clicks in random order, each list with its group. Some lists share a request id, within a group and across groups, and
/// some are copies.
fn events() -> Vec<(Value, Option<&'static str>)> {
    let mut random = Random(3);
    let mut events = Vec::new();
    for n in 0..400 {
        let (device, group) = devices().swap_remove(random.below(10) as usize);
        let id = random.below(300);
        let arm = if id.is_multiple_of(2) { "a" } else { "b" };
        let items: Vec<u64> = (0..random.below(6)).collect();
        let ts = MIDNIGHT_MS + 600_000 * n;
        let list = json!({"type": "served", "request_id": id, "ts": ts, "experiments": {"e": arm}, "items": items,
                          "ctx": {"device": device, "country": if id.is_multiple_of(3) { "DE" } else { "FR" }}});
        let n_copies = 1 + usize::from(random.below(5) == 0);
        events.extend(vec![(list, Some(group)); n_copies]);
        for _ in 0..random.below(4) {
            let ts = ts + 1_000 * i64::try_from(random.below(3600)).expect("small");
            let click = json!({"type": "click", "request_id": id, "ts": ts, "item": random.below(7)});
            events.push((click, None));
        }
    }
    // Clicks come before their lists, too.
    for place in (1..events.len()).rev() {
        events.swap(place, random.below(place as u64 + 1) as usize);
    }
    events
}

fn lines<'a>(events: impl IntoIterator<Item = &'a Value>) -> String {
    events.into_iter().map(|event| format!("{event}\n")).collect()
}

#[track_caller]
fn document(arguments: &[&str], events: &str) -> Value {
    let ran = run_with_input(
        &[&["evaluate", "-", "--format", "json"], arguments].concat(),
        events,
    );
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn a_group_has_the_numbers_of_its_lists_filtered_by_hand() {
    let events = events();
    let all = lines(events.iter().map(|(event, _)| event));
    for arguments in [&["--by-day"][..], &["--k", "2", "--window", "1h"]] {
        let grouped = document(&[arguments, &["--by", "ctx.device"]].concat(), &all);
        let whole = document(arguments, &all);
        for part in ["experiments", "series", "records", "click_results"] {
            assert_eq!(grouped[part], whole[part], "{part}");
        }
        let by = &grouped["by"];
        assert_eq!(by["field"], "ctx.device");
        let names: BTreeSet<&str> = devices().into_iter().map(|(_, name)| name).collect();
        let groups = by["groups"].as_object().expect("groups");
        assert!(
            groups.keys().map(String::as_str).eq(names.iter().copied()),
            "{groups:?}"
        );
        for name in names {
            let of_group = events
                .iter()
                .filter(|(_, group)| group.is_none_or(|group| group == name));
            let by_hand = document(arguments, &lines(of_group.map(|(event, _)| event)));
            for part in ["experiments", "series"] {
                assert_eq!(groups[name][part], by_hand[part], "{name}: {part}");
            }
            // No list without a value can be selected, and == is refused.
            if name == "__absent__" || name.starts_with('=') {
                continue;
            }
            let filter = format!("ctx.device={name}");
            let selected = document(&[arguments, &["--where", &filter]].concat(), &all);
            for part in ["experiments", "series"] {
                assert_eq!(selected[part], by_hand[part], "{filter}: {part}");
            }
        }
    }
}

#[test]
fn all_filters_must_hold_and_groups_are_of_what_is_left() {
    let events = events();
    let all = lines(events.iter().map(|(event, _)| event));
    let is_left = |event: &Value| event["type"] == "click" || event["ctx"]["country"] == "DE";
    let left = lines(
        events
            .iter()
            .map(|(event, _)| event)
            .filter(|event| is_left(event)),
    );
    let by = ["--by", "ctx.device"];
    let by_hand = document(&by, &left);
    let selected = document(&[&by[..], &["--where", "ctx.country=DE"]].concat(), &all);
    assert_eq!(
        (&selected["by"], &selected["experiments"]),
        (&by_hand["by"], &by_hand["experiments"])
    );
    let both = document(&["--where", "ctx.country=DE", "--where", "ctx.device=ios"], &all);
    assert_eq!(both["experiments"], by_hand["by"]["groups"]["ios"]["experiments"]);
    // Lists that are left out are ignored, and reported as such.
    let ran = run_with_input(&["evaluate", "-", "--where", "ctx.country=DE"], &all);
    assert!(
        ran.stderr.contains("note: lists left out by --where: "),
        "{}",
        ran.stderr
    );
    assert!(
        !ran.stderr.contains("ignored lines of another type"),
        "{}",
        ran.stderr
    );
}

/// Two values are groups. The lists of the others form one more, as filtered by hand.
#[test]
fn further_values_are_in_one_group() {
    let list = |id: u64, device: &str| json!({"type": "served", "request_id": id, "ts": MIDNIGHT_MS, "experiments": {"e": "a"}, "items": ["i"], "device": device});
    let events = [
        list(1, "ios"),
        list(2, "web"),
        list(3, "tv"),
        list(4, "car"),
        list(5, "web"),
    ];
    let clicks = ["1", "3"].map(|id| click(id, MIDNIGHT_MS + 5, "i")).join("\n");
    let all = lines(&events) + &clicks;
    let arguments = [
        "evaluate",
        "-",
        "--by",
        "device",
        "--max-groups",
        "2",
        "--metrics",
        "ctr",
        "--k",
        "1",
        "--format",
        "csv",
    ];
    let ran = run_with_input(&arguments, &all);
    let expected = "\
profile,group,experiment,arm,metric,k,value,numerator,denominator
default,,e,a,lists,,5,,
default,,e,a,clicks,,2,,
default,,e,a,ctr,1,0.4,2,5
default,,e,a,ctr,,0.4,2,5
default,ios,e,a,lists,,1,,
default,ios,e,a,clicks,,1,,
default,ios,e,a,ctr,1,1,1,1
default,ios,e,a,ctr,,1,1,1
default,web,e,a,lists,,2,,
default,web,e,a,clicks,,0,,
default,web,e,a,ctr,1,0,0,2
default,web,e,a,ctr,,0,0,2
default,__other__,e,a,lists,,2,,
default,__other__,e,a,clicks,,1,,
default,__other__,e,a,ctr,1,0.5,1,2
default,__other__,e,a,ctr,,0.5,1,2
";
    assert_eq!((ran.code, &*ran.stdout), (Some(0), expected), "{}", ran.stderr);
    let note = "note: --by device: only its first 2 values have groups of their own, and 2 lists are in the group __other__: raise \
                --max-groups\n";
    assert_eq!(ran.stderr, note);
    let table = run_with_input(
        &["evaluate", "-", "--by", "device", "--metrics", "ctr", "--k", "1"],
        &all,
    )
    .stdout;
    assert!(table.contains(" device = car / e "), "{table}");
}

#[test]
fn fields_are_found_in_any_shape_and_format() {
    let dir = temporary_dir();
    let config = |text: &str| file(&dir, "abgauge.toml", text);
    let of_pages = config("[events]\nrecords = \"events\"\nuser_id = \"^.user\"\n");
    let list = |id: &str, device: &str| json!({"type": "served", "request_id": id, "ts": MIDNIGHT_MS, "experiments": {"e": "a"}, "items": ["i"], "device": device});
    let click: Value = serde_json::from_str(&click("1", MIDNIGHT_MS + 1, "i")).expect("JSON");
    let pages = [
        json!({"user": "u1", "page": "home", "events": [list("1", "ios"), list("2", "web"), click]}),
        json!({"user": "u2", "page": "cart", "events": [list("3", "ios")]}),
    ];
    let grouped = |field: &str| {
        let document = document(&["--config", &of_pages, "--by", field], &lines(&pages));
        let groups = document["by"]["groups"].as_object().expect("groups").clone();
        let lists = groups.iter().map(|(name, group)| {
            let arm = &group["experiments"]["e"]["arms"]["a"];
            (
                name.clone(),
                [&arm["lists"], &arm["clicks"]].map(|n| n.as_u64().expect("a number")),
            )
        });
        lists.collect::<BTreeMap<String, [u64; 2]>>()
    };
    let expected = |groups: [(&str, [u64; 2]); 2]| groups.map(|(name, n)| (name.to_owned(), n)).into();
    assert_eq!(grouped("^.page"), expected([("home", [2, 1]), ("cart", [1, 0])]));
    assert_eq!(grouped("device"), expected([("ios", [2, 1]), ("web", [1, 0])]));
}

#[test]
fn columns_of_tables_and_fields_of_avro_select_like_those_of_json() {
    let dir = temporary_dir();
    let config = |more: &str| {
        format!(
            "[events]\ntype = \"kind\"\n[events.served]\ntypes = [\"list\"]\nrequest_id = \"rec\"\nts = \"context.time\"\nitems = \
             \"shown\"\n{more}\nexperiments = \"\"\nexperiment_name = \"ranker\"\narm = \"context.variant\"\n[events.click]\ntypes = \
             [\"tap\"]\nrequest_id = \"rec\"\nts = \"context.time\"\nitem = \"sku\"\n"
        )
    };
    let of_objects = file(&dir, "objects.toml", &config("item_id = \"sku\""));
    let mut found = Vec::new();
    let mut files = vec![format!("{DATA}/avro/null.avro")];
    if cfg!(feature = "parquet") {
        files.push(format!("{DATA}/parquet/nested.parquet"));
    }
    let columns = ["kind", "rec", "context", "shown", "sku"];
    let table = file(&dir, "events.csv", &tables::csv(&columns, &tables::events()));
    for (path, config) in [
        (&files[0], &of_objects),
        (files.last().expect("a file"), &of_objects),
        (&table, &file(&dir, "flat.toml", &config(""))),
    ] {
        let arguments = [
            "evaluate",
            path,
            "--config",
            config,
            "--format",
            "json",
            "--by",
            "context.user",
            "--where",
            "context.variant=NEURAL",
        ];
        let ran = run(&arguments);
        assert_eq!(ran.code, Some(0), "{path}: {}", ran.stderr);
        let document: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert!(
            document["by"]["groups"]
                .as_object()
                .is_some_and(|groups| groups.len() > 5),
            "{document}"
        );
        found.push((document["by"].clone(), document["experiments"].clone()));
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{found:#?}");
}

#[test]
fn directories_have_fields_that_select_and_group_the_lists_below_them() {
    let dir = temporary_dir();
    let list = |id: &str, own: Value| {
        let mut list = json!({"type": "served", "request_id": id, "ts": MIDNIGHT_MS, "experiments": {"e": "a"}, "items": ["i"]});
        list.as_object_mut()
            .expect("an object")
            .extend(own.as_object().expect("an object").clone());
        list
    };
    let write = |name: &str, text: String| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    };
    // The field of a record wins.
    let lines = [list("1", json!({})), list("2", json!({"country": "own"}))];
    write(
        "country=DE/a.jsonl",
        lines.map(|line| line.to_string()).join("\n"),
    );
    write(
        "country=S%C3%A3o/a.csv",
        format!(
            "type,request_id,ts,experiments,items\nserved,3,{MIDNIGHT_MS},\"{{\"\"e\"\":\"\"a\"\"}}\",\"[\"\"i\"\"]\"\n"
        ),
    );
    write(
        "country=__HIVE_DEFAULT_PARTITION__/a.jsonl",
        list("4", json!({})).to_string(),
    );
    let tree = dir.path().to_str().expect("UTF-8");
    let evaluate = |arguments: &[&str]| {
        let ran = run(&[
            &["evaluate", tree, "--metrics", "hit_rate", "--format", "json"],
            arguments,
        ]
        .concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).expect("JSON")
    };
    let document = evaluate(&["--by", "country"]);
    let groups = document["by"]["groups"].as_object().expect("groups");
    assert_eq!(
        groups.keys().collect::<Vec<_>>(),
        ["DE", "São", "__absent__", "own"],
        "{document}"
    );
    let document = evaluate(&["--where", "country=DE"]);
    assert_eq!(
        (&document["records"]["accepted"], &document["records"]["ignored"]),
        (&json!(1), &json!(3))
    );
}

fn refused(arguments: &[&str]) -> Ran {
    run_with_input(&[&["evaluate", "-"], arguments].concat(), &two_arms())
}

#[test]
fn a_field_that_no_list_has_is_reported_with_its_remedy() {
    let ran = refused(&["--by", "ctx.device"]);
    assert_eq!(ran.code, Some(0));
    let warning = "warning: --by ctx.device: no list has this field, so all of them are in the group __absent__: write it as in [events]";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    let ran = refused(&["--where", "ctx.device=ios"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(65), ""));
    assert!(
        ran.stderr
            .contains("error: no served list was selected: --where leaves out all 4 of them, because none has the field ctx.device: correct the path\n"),
        "{}",
        ran.stderr
    );
    let ran = refused(&["--where", "type=click"]);
    assert!(
        ran.stderr
            .contains("--where leaves out all 4 of them, because they have other values, such as served in type; --by with the same field shows all its values\n"),
        "{}",
        ran.stderr
    );
    for (arguments, reported) in [
        (
            &["--by", "a..b"][..],
            "the path has an empty name: write names with dots between them",
        ),
        (
            &["--where", "device"],
            "write a path, = and a value, such as ctx.device=ios",
        ),
        (&["--where", "device="], "the value is empty"),
        (&["--where", "country!=DE"], "only = is possible"),
        (&["--where", "country==DE"], "only = is possible"),
        (&["--where", "price>=5"], "only = is possible"),
        (&["--by", "device,country"], "lists are grouped by one field"),
        (
            &["--by", "device", "--compare", "a"],
            "--by cannot be used with --compare",
        ),
        (&["--by", "device", "--max-groups", "0"], "--max-groups"),
        (&["--max-groups", "5"], "--by <FIELD>"),
    ] {
        let ran = refused(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}");
        assert!(ran.stderr.contains(reported), "{arguments:?}: {}", ran.stderr);
    }
}
