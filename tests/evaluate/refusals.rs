//! Wrong lines, files and flags.

use serde_json::{Value, json};

use crate::support::program::{file, program, run, run_with_input, temporary_dir};
use crate::{MIDNIGHT_MS, click, list, two_arms};

#[test]
fn wrong_flags_are_refused_with_a_fix() {
    for (arguments, reported) in [
        (
            &["--convention", "rankx"][..],
            &["'rankx'", "similar value exists: 'ranx'"][..],
        ),
        (
            &["--convention", "default,"],
            &["''", "possible values: default, "],
        ),
        (
            &["--metrics", "recal"],
            &["'recal'", "similar value exists: 'recall'"],
        ),
        (
            &["--metrics", "ctr,hits", "--convention", "ranx,replay"],
            &["'ctr' is not defined by ranx, replay", "only by default, jurity"],
        ),
        (
            &["--window", "7s"],
            &["--window", "7s", "multiple of the slot, 5s"],
        ),
        (&["--window", "0s"], &["--window", "multiple of the slot"]),
        (&["--window", "4000d"], &["--window", "at most ten years"]),
        (&["--window", "1h", "--by-day"], &["cannot be used with"]),
        (&["--alpha", "1.5"], &["--alpha", "from 0 to 1"]),
        (
            &["--catalog", "-"],
            &["standard input is either the events or the catalogue"],
        ),
        (&["--k", "5,100001"], &["'100001' for '--k", "from 1 to 100000"]),
        (&["--k", "0"], &["'0' for '--k", "from 1 to 100000"]),
        (&["--format", "yaml"], &["--format", "table, json, csv, markdown"]),
    ] {
        let ran = run_with_input(&[&["evaluate", "-"], arguments].concat(), &two_arms());
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{arguments:?}");
        for word in reported.iter().chain(&["--help"]) {
            assert!(ran.stderr.contains(word), "{arguments:?}, {word}: {}", ran.stderr);
        }
    }
    let ks: Vec<String> = (1..=101).map(|k| k.to_string()).collect();
    let ran = run_with_input(&["evaluate", "-", "--k", &ks.join(",")], &two_arms());
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("101 cut-offs, more than 100"),
        "{}",
        ran.stderr
    );
}

#[test]
fn bad_lines_are_counted_by_reason_and_place_and_fail_a_strict_run() {
    let [list, click] = [
        list("r", MIDNIGHT_MS, r#"{"e":"a"}"#),
        click("r", MIDNIGHT_MS, "j"),
    ];
    let lines = [
        &*list,
        "{",
        &click,
        "",
        "nor this",
        r#"{"type":"served"}"#,
        "[]",
        "!",
        "!",
        r#"{"type":"view"}"#,
        &list,
        r#"{"request_id":"r","ts":1763596800001,"item":"j"}"#,
    ];
    for (strict, code) in [(&[][..], 0), (&["--strict"], 65)] {
        let arguments = [&["evaluate", "-", "--format", "json"], strict].concat();
        let ran = run_with_input(&arguments, &lines.join("\n"));
        assert_eq!(ran.code, Some(code));
        let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!(json["experiments"]["e"]["arms"]["a"]["metrics"]["hit_rate"], 1.0);
        for reported in [
            "warning: lines skipped as not_json: 4 (standard input:2, standard input:5, standard input:8, …)",
            "warning: lines skipped as missing_field: 2 (standard input:6, standard input:12)",
            "warning: lines skipped as wrong_type: 1 (standard input:7)",
            "note: ignored lines of another type: 1",
            "note: duplicate lists counted once: 1",
        ] {
            assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
        }
    }
    // A file without faulty lines passes `--strict`.
    let good = run_with_input(&["evaluate", "-", "--strict"], &two_arms());
    assert_eq!(good.code, Some(0), "{}", good.stderr);
}

#[test]
fn a_missing_file_is_named_and_empty_input_prints_empty_results() {
    for (arguments, code) in [
        (&["evaluate", "no/such/file"][..], 1),
        (&["evaluate", "-", "--catalog", "no/such/file"], 78),
    ] {
        let absent = run(arguments);
        assert_eq!((absent.code, &*absent.stdout), (Some(code), ""));
        assert!(
            absent.stderr.contains("error: open no/such/file: "),
            "{}",
            absent.stderr
        );
    }
    for (format, shown) in [
        ("table", ""),
        ("markdown", ""),
        ("json", "{\"experiments\":{},\"records\":{"),
        ("csv", "profile,experiment,arm,"),
    ] {
        let empty = run_with_input(&["evaluate", "-", "--compare", "x", "--format", format], "");
        assert_eq!(empty.code, Some(65), "{format}");
        assert!(empty.stdout.starts_with(shown), "{}", empty.stdout);
        assert_eq!(empty.stdout.is_empty(), shown.is_empty(), "{}", empty.stdout);
        assert!(
            empty.stderr.contains("error: no event was found: "),
            "{}",
            empty.stderr
        );
    }
}

/// A pipeline that reads the wrong file must not continue as if it had succeeded.
#[test]
fn input_without_events_fails_with_the_expected_format() {
    let nobody = list("r", MIDNIGHT_MS, "{}");
    let clicked = click("r", MIDNIGHT_MS, "j");
    for (lines, reported) in [
        (
            "\n \n",
            "no event was found: a line is expected to be a JSON object such as {\"type\":\"served\",",
        ),
        (
            "item rank\ni1 1\n",
            "no line can be read as an event: `abgauge check --sample FILE` shows the error of each",
        ),
        (
            &*clicked,
            "no served list was found: lines with \"type\":\"served\" are expected",
        ),
        (r#"{"type":"view"}"#, "no served list was found"),
        (
            r#"{"type":"served","request_id":"r","ts":1,"experiments":{"e":"a"},"items":["i"]}"#,
            "no served list can be read: all were refused (ts_range 1): `abgauge check --sample FILE` shows the error and the fix of each",
        ),
        (
            &list("r", MIDNIGHT_MS, r#"{"e":"a"}"#).replace("\"type\"", "\"kind\""),
            "no line can be read as an event: `abgauge check --sample FILE` shows the field that each lacks; if lists and clicks are in separate \
             files without \"type\", name them: --lists FILE --clicks FILE",
        ),
        (
            &nobody,
            "no served list names an experiment: \"experiments\":{\"NAME\":\"ARM\"} is expected",
        ),
    ] {
        let ran = run_with_input(&["evaluate", "-"], lines);
        assert_eq!((ran.code, &*ran.stdout), (Some(65), ""), "{lines}");
        assert!(
            ran.stderr.contains(&format!("error: {reported}")),
            "{lines}: {}",
            ran.stderr
        );
    }
}

#[test]
fn every_line_is_accounted_for() {
    let lines = [
        list("1", MIDNIGHT_MS, r#"{"e":"a"}"#),
        list("1", MIDNIGHT_MS, r#"{"e":"a"}"#),
        list("2", MIDNIGHT_MS, "{}"),
        click("1", MIDNIGHT_MS, "j"),
        click("1", MIDNIGHT_MS, "j"),
        click("1", MIDNIGHT_MS, "elsewhere"),
        click("nobody", MIDNIGHT_MS, "j"),
        "{".to_owned(),
        r#"{"type":"view"}"#.to_owned(),
    ];
    for several in [&[][..], &["--convention", "ranx,default"]] {
        let arguments = [&["evaluate", "-", "--format", "json"], several].concat();
        let ran = run_with_input(&arguments, &lines.join("\n"));
        assert_eq!(ran.code, Some(0));
        let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        let records = json!({
            "read": 9, "accepted": 6, "duplicate": 1, "ignored": 1, "invalid": 1,
            "late": 0, "future": 0, "after_settled": 0, "late_row": 0, "replayed": 0, "shed": 0, "skipped": 0,
        });
        assert_eq!(json["records"], records);
        assert_eq!(json["invalid_records"], json!({ "not_json": 1 }));
        assert_eq!(json["lists_without_experiment"], 1);
        let results = json!({ "matched": 1, "repeat": 1, "off_list": 1, "unmatched": 1, "undecided": 0 });
        assert_eq!(json["click_results"], results);
        assert_eq!(json["exact"], true);
        let reported = "note: lists that name no experiment, counted in no arm: 1";
        assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    }
}

/// Events over the limit are reported by number, appear in the JSON, and make the run fail, for any number of events.
#[test]
fn shed_events_are_reported_and_fail_the_run() {
    let lines: Vec<String> = (0..2_000)
        .map(|n| list(&n.to_string(), MIDNIGHT_MS, r#"{"e":"a"}"#))
        .collect();
    let events = lines.join("\n");
    let arguments = ["evaluate", "-", "--metrics", "mrr", "--format", "json"];
    let ran = run_with_input(&[&arguments[..], &["--max-state", "100kB"]].concat(), &events);
    assert_eq!(ran.code, Some(65), "{}", ran.stderr);
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let n = |outcome: &str| json["records"][outcome].as_u64().expect("a number");
    assert_eq!(json["exact"], false);
    assert_eq!(json["experiments"]["e"]["arms"]["a"]["lists"], n("accepted"));
    assert!(n("accepted") > 0 && n("shed") > 0, "{}", ran.stdout);
    assert_eq!(n("accepted") + n("shed"), 2_000);
    let reported = format!(
        "warning: lines shed because lists and clicks reached --max-state: {}; the numbers are not exact\n",
        n("shed")
    );
    assert!(ran.stderr.contains(&reported), "{}", ran.stderr);
    let roomy = run_with_input(&[&arguments[..], &["--max-state", "1GiB"]].concat(), &events);
    assert_eq!((roomy.code, &*roomy.stderr), (Some(0), ""));
    let none = run_with_input(&["evaluate", "-", "--max-state", "1B"], &events);
    assert_eq!(none.code, Some(65));
    assert!(none.stderr.contains("--max-state: 2000;"), "{}", none.stderr);
}

#[test]
fn an_unreadable_catalogue_is_reported_with_its_line() {
    let dir = temporary_dir();
    let path = file(&dir, "catalog.jsonl", "{\"item\":\"i\"}\n{\"item\":\n");
    let ran = run_with_input(&["evaluate", "-", "--catalog", &path], &two_arms());
    assert_eq!((ran.code, &*ran.stdout), (Some(78), ""));
    assert!(ran.stderr.contains("catalog.jsonl: line 2: "), "{}", ran.stderr);
}

/// Two shelves of a page share the request id.
#[test]
fn many_copies_with_other_items_are_reported_as_a_shared_id() {
    let shelves = |second: &str| {
        let pages = (0..20).map(|page| {
            let first = list(&format!("r{page}"), MIDNIGHT_MS + page, r#"{"e":"a"}"#);
            format!("{first}\n{}", first.replace(r#"["i","j"]"#, second))
        });
        pages.collect::<Vec<_>>().join("\n")
    };
    let reported = "copies with other items or arms: 20 of 40 lists: several lists share one id; do your pages show several shelves?";
    let ran = run_with_input(&["evaluate", "-"], &shelves(r#"["k"]"#));
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    let retried = run_with_input(&["evaluate", "-"], &shelves(r#"["i","j"]"#)).stderr;
    assert!(!retried.contains("shelves"), "{retried}");
    let mut allowed = program(&["evaluate", "-"]);
    allowed.env("ABGAUGE_LIMITS__MAX_DUPLICATE_SHARE", "0.5");
    let allowed = assert_cmd::Command::from_std(allowed)
        .write_stdin(shelves(r#"["k"]"#))
        .output();
    let allowed = String::from_utf8(allowed.expect("abgauge starts").stderr).expect("UTF-8");
    assert!(!allowed.contains("shelves"), "{allowed}");
}

/// The message used to be that the line is not JSON, and did not name the bound.
#[test]
fn an_oversized_line_is_reported_with_its_size_and_the_bound() {
    let long = format!("{{\"item\":\"{}\"}}", "x".repeat(65 << 20));
    let reported = format!(
        "standard input: line 7 has {} bytes; only lines of less than 64 MiB (67108864 bytes) are read: write one event per line",
        long.len()
    );
    let ran = run_with_input(&["evaluate", "-"], &[two_arms(), long].join("\n"));
    assert!(ran.stderr.contains(&reported), "{reported}: {}", ran.stderr);
    assert_eq!(ran.code, Some(0));
}

#[test]
fn a_sample_may_be_a_directory_or_a_pattern() {
    let dir = temporary_dir();
    // One file of clicks would fill the sample of --suggest.
    let many: Vec<String> = (0..2500)
        .map(|n| click(&n.to_string(), MIDNIGHT_MS, "i"))
        .collect();
    let lists: Vec<String> = (0..40)
        .map(|n| list(&n.to_string(), MIDNIGHT_MS, r#"{"e":"a"}"#))
        .collect();
    for (name, lines) in [("clicks.jsonl", &many), ("lists.jsonl", &lists)] {
        std::fs::write(dir.path().join(name), lines.join("\n")).expect("a file");
    }
    let tree = dir.path().to_str().expect("UTF-8");
    for sample in [tree, &format!("{tree}/*.jsonl")] {
        let ran = run(&["check", "--sample", sample]);
        for shown in [
            &format!("{tree}/lists.jsonl: line 1: served list 0")[..],
            "records: 2540; served lists: 40, clicks: 2500,",
        ] {
            assert!(ran.stdout.contains(shown), "{}{}", ran.stdout, ran.stderr);
        }
        let ran = run(&["check", "--sample", sample, "--suggest"]);
        let shown = "# records: 1040; with it, served lists: 40, clicks: 1000, ignored: 0, refused: 0; further records";
        assert!(ran.stdout.contains(shown), "{}{}", ran.stdout, ran.stderr);
    }
    let ran = run(&["check", "--sample", "s3://logs/a.jsonl"]);
    let remedy = "aws s3 cp 's3://logs/a.jsonl' - | abgauge check --sample -";
    assert!(
        ran.code == Some(1) && ran.stderr.contains(remedy),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_record_in_avro_is_checked_in_its_topic() {
    let remedy = "topic: abgauge check --connect";
    let ran = run_with_input(&["check", "--sample", "-"], "\0\0\0\0\u{1}\u{c}served\u{4}r1");
    assert!(
        ran.code == Some(65) && format!("{}{}", ran.stdout, ran.stderr).contains(remedy),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

/// The first message used to be that the sample has no record, or that the line is not JSON.
#[test]
fn a_sample_reports_an_oversized_line_first() {
    let long = format!("{{\"item\":\"{}\"}}", "x".repeat(70 << 20));
    let bound = format!(
        "has {} bytes; only lines of less than 64 MiB (67108864 bytes) are read: write one event per line",
        long.len()
    );
    for (text, number, summary) in [
        (
            long.clone(),
            1,
            "error    records: 1; served lists: 0, clicks: 0, ignored: 0, refused: 1 (not_json 1)\n",
        ),
        (
            [click("r", MIDNIGHT_MS, "i"), long.clone()].join("\n"),
            2,
            "error    records: 2; served lists: 0, clicks: 1, ignored: 0, refused: 1 (not_json 1)\n",
        ),
    ] {
        let ran = run_with_input(&["check", "--sample", "-"], &text);
        assert_eq!(ran.code, Some(65), "{}", ran.stderr);
        let first = format!("error    line {number} {bound}");
        assert!(ran.stdout.starts_with(&first), "{first}: {}", ran.stdout);
        assert!(ran.stdout.ends_with(summary), "{summary}: {}", ran.stdout);
        assert!(!ran.stdout.contains("refused as"), "{}", ran.stdout);
    }
}

/// Each of these commands used to read `/dev/zero` forever, or until the memory was full, and later exited with 1.
#[test]
fn files_that_cannot_be_read_are_bad_input() {
    let dir = temporary_dir();
    let random = dir.path().join("random");
    // xorshift64*: bytes of any value, which do not start like a known format.
    let mut state = 7_u64;
    let bytes = (0..4096).map(|_| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_be_bytes()[0]
    });
    std::fs::write(&random, bytes.collect::<Vec<u8>>()).expect("write");
    for path in ["/dev/zero", random.to_str().expect("UTF-8")] {
        for arguments in [
            &["evaluate", path][..],
            &["check", "--sample", path],
            &["check", "--sample", path, "--suggest"],
            &["plan", path, "--compare", "a", "--primary", "ctr"],
            &["catalog", "build", "--touched", "clicked", path],
            &[
                "convert",
                "--recommendations",
                &format!("a={path}"),
                "--truth",
                path,
            ],
        ] {
            let ran = run(arguments);
            assert_eq!((ran.code, &*ran.stdout), (Some(65), ""), "{arguments:?}");
            let reported = format!("read {path}: its format is not supported (binary data): write ");
            assert!(ran.stderr.contains(&reported), "{arguments:?}: {}", ran.stderr);
        }
    }
    // A failure of the system is not bad input.
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).expect("a directory");
    for path in ["no/such", empty.to_str().expect("UTF-8")] {
        for arguments in [
            &["evaluate", path][..],
            &["check", "--sample", path],
            &[
                "convert",
                "--recommendations",
                &format!("a={path}"),
                "--truth",
                path,
            ],
        ] {
            let ran = run(arguments);
            assert_eq!(ran.code, Some(1), "{arguments:?}: {}", ran.stderr);
            let reported = format!("error: open {path}: ");
            assert!(ran.stderr.starts_with(&reported), "{arguments:?}: {}", ran.stderr);
        }
    }
    let ran = run(&["check", "--config", "/dev/zero"]);
    assert_eq!(ran.code, Some(78));
    assert!(ran.stderr.contains("it is larger than 16 MiB"), "{}", ran.stderr);
}

/// All lists of `b` lack their items. They are counted by arm, so the loss has a name even without a single accepted list.
#[test]
fn an_arm_whose_lists_are_all_refused_has_no_lift_and_is_named() {
    let lists = (0..40).map(|number| {
        let arm = ["a", "b"][number % 2];
        let list = list(
            &number.to_string(),
            MIDNIGHT_MS + number as i64,
            &format!(r#"{{"e":"{arm}"}}"#),
        );
        if arm == "b" {
            list.replace(r#""items":["i","j"]"#, r#""items":null"#)
        } else {
            list
        }
    });
    let clicks = (0..40).map(|number| click(&number.to_string(), MIDNIGHT_MS + 5000, "i"));
    let events = lists.chain(clicks).collect::<Vec<_>>().join("\n");
    let arguments = ["evaluate", "-", "--compare", "a", "--format", "json"];
    let ran = run_with_input(&arguments, &events);
    let warning =
        "warning: lists of arm b of e: all 20 were refused, so the arm has no numbers and is not compared";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let arms = json["experiments"]["e"]["arms"].as_object().expect("arms");
    assert_eq!(arms.keys().collect::<Vec<_>>(), ["a"]);
    assert!(!ran.stdout.contains("\"lift\""), "{}", ran.stdout);

    // With one accepted list the arm is shown, and the warning is gone.
    let accepted = list("40", MIDNIGHT_MS + 40, r#"{"e":"b"}"#);
    let ran = run_with_input(&arguments, &format!("{events}\n{accepted}"));
    assert!(!ran.stderr.contains("of arm b"), "{}", ran.stderr);
    assert!(ran.stdout.contains("\"b\""), "{}", ran.stdout);
}
