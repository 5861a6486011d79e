//! What it does with lines, files and flags that are wrong.

use serde_json::Value;

use crate::program::{file, run, run_with_input, temporary_dir};
use crate::{MIDNIGHT_MS, click, list, two_arms};

#[test]
fn wrong_flags_are_refused_with_what_is_right() {
    for (arguments, told) in [
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
        for word in told.iter().chain(&["--help"]) {
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
        for told in [
            "warning: lines skipped as not_json: 4 (standard input:2, standard input:5, standard input:8, …)",
            "warning: lines skipped as missing_field: 2 (standard input:6, standard input:12)",
            "warning: lines skipped as wrong_type: 1 (standard input:7)",
            "note: lines of another type, ignored: 1",
            "note: lists that came again, counted once: 1",
        ] {
            assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
        }
    }
    // What is no fault of a line fails nothing.
    let good = run_with_input(&["evaluate", "-", "--strict"], &two_arms());
    assert_eq!(good.code, Some(0), "{}", good.stderr);
}

#[test]
fn a_file_that_is_absent_is_named_and_nothing_is_said_to_be_nothing() {
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
        ("json", "{\"experiments\":{}}\n"),
    ] {
        for (strict, code) in [(&[][..], 0), (&["--strict"], 65)] {
            let arguments = [&["evaluate", "-", "--compare", "x", "--format", format], strict].concat();
            let empty = run_with_input(&arguments, "");
            assert_eq!((empty.code, &*empty.stdout), (Some(code), shown));
            assert!(empty.stderr.contains("note: no served list"), "{}", empty.stderr);
        }
    }
}

#[test]
fn a_catalogue_that_cannot_be_read_is_told_by_its_line() {
    let dir = temporary_dir();
    let path = file(&dir, "catalog.jsonl", "{\"item\":\"i\"}\n{\"item\":\n");
    let ran = run_with_input(&["evaluate", "-", "--catalog", &path], &two_arms());
    assert_eq!((ran.code, &*ran.stdout), (Some(78), ""));
    assert!(ran.stderr.contains("catalog.jsonl: line 2: "), "{}", ran.stderr);
}
