//! One example per format, worked by hand.

use serde_json::{Value, json};

use crate::support::program::run_with_input;
use crate::{ALL, CATALOG, EVENTS, MIDNIGHT_MS, click, document, list, printed, two_arms};

#[test]
fn a_table_shows_the_arms_side_by_side() {
    let ran = run_with_input(&["evaluate", "-", "--k", "1"], &two_arms());
    assert_eq!(
        (ran.code, &*ran.stderr, &*ran.stdout),
        (
            Some(0),
            "",
            " e                  a        b
───────────────────────────────
 lists              2        2
 clicks             1        1
 hit_rate@1    0.0000   0.5000
 hit_rate      0.5000   0.5000
 ctr@1         0.0000   0.5000
 ctr           0.2500   0.2500
 mrr@1         0.0000   0.5000
 mrr           0.2500   0.5000
 ndcg@1        0.0000   0.5000
 ndcg          0.3155   0.5000
 precision@1   0.0000   0.5000
 precision     0.2500   0.2500
 recall@1      0.0000   1.0000
 recall        1.0000   1.0000
 map@1         0.0000   0.5000
 map           0.2500   0.5000

 f                  x
──────────────────────
 lists              1
 clicks             0
 hit_rate@1    0.0000
 hit_rate      0.0000
 ctr@1         0.0000
 ctr           0.0000
 mrr@1         0.0000
 mrr           0.0000
 ndcg@1        0.0000
 ndcg          0.0000
 precision@1   0.0000
 precision     0.0000
 recall@1           –
 recall             –
 map@1         0.0000
 map           0.0000
"
        )
    );
}

#[test]
fn a_table_shows_conventions_side_by_side_for_each_arm() {
    let shown = printed(
        &[
            "--convention",
            "ranx,default",
            "--convention",
            "seed-2",
            "--k",
            "1",
            "--metrics",
            "hits,mrr,ctr",
        ],
        &two_arms(),
    );
    let of_a = " e / a      ranx   default   seed-2
────────────────────────────────────
 lists         2         2        2
 clicks        1         1        1
 ctr@1              0.0000
 ctr                0.2500
 mrr@1    0.0000    0.0000
 mrr      0.5000    0.2500   0.5000
 hits@1   0.0000    0.0000   0.0000
 hits     1.0000    0.5000   1.0000
";
    assert!(shown.starts_with(of_a), "{shown}");
    assert!(
        shown.contains("\n e / b ") && shown.contains("\n f / x "),
        "{shown}"
    );
}

#[test]
fn tables_stay_within_80_columns() {
    for arguments in [
        &["--convention", ALL, "--catalog", CATALOG][..],
        &[
            "--compare",
            "control",
            "--window",
            "1m",
            "--convention",
            "ranx,default",
        ],
        &["--by-day", "--catalog", CATALOG],
    ] {
        let shown = printed(arguments, EVENTS);
        let tables = shown.lines().filter(|line| line.starts_with([' ', '─']));
        let widest = tables.map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{arguments:?}: {widest:?}");
        assert!(widest > Some(40));
    }
}

#[test]
fn json_has_lists_clicks_and_defined_metrics() {
    let shown = printed(
        &["--metrics", "recall,mrr", "--k", "1", "--format", "json"],
        &two_arms(),
    );
    let expected = concat!(
        r#"{"experiments":{"e":{"arms":{"#,
        r#""a":{"lists":2,"clicks":1,"metrics":{"mrr@1":0.0,"mrr":0.25,"recall@1":0.0,"recall":1.0}},"#,
        r#""b":{"lists":2,"clicks":1,"metrics":{"mrr@1":0.5,"mrr":0.5,"recall@1":1.0,"recall":1.0}}}},"#,
        r#""f":{"arms":{"x":{"lists":1,"clicks":0,"metrics":{"mrr@1":0.0,"mrr":0.0}}}}},"#,
        r#""records":{"accepted":6,"after_settled":0,"duplicate":0,"future":0,"ignored":0,"invalid":0,"late":0,"late_row":0,"read":6,"#,
        r#""replayed":0,"shed":0,"skipped":0},"invalid_records":{},"lists_without_experiment":0,"#,
        r#""click_results":{"matched":2,"off_list":0,"repeat":0,"undecided":0,"unmatched":0},"exact":true}"#,
        "\n"
    );
    assert_eq!(shown, expected);

    let several = document(&["--convention", "ranx,default", "--metrics", "mrr"], &two_arms());
    let mrr = |profile: &str| {
        several["profiles"][profile]["experiments"]["e"]["arms"]["a"]["metrics"]["mrr"].clone()
    };
    assert_eq!((mrr("default"), mrr("ranx")), (json!(0.25), json!(0.5)));
    assert_eq!(several["experiments"], Value::Null);
}

#[test]
fn csv_has_one_number_per_row_and_quotes_names() {
    let events = [
        list("1", MIDNIGHT_MS, r#"{"e,1":"a \"b\""}"#),
        click("1", MIDNIGHT_MS, "j"),
    ];
    let shown = printed(
        &["--metrics", "mrr,precision", "--k", "1", "--format", "csv"],
        &events.join("\n"),
    );
    assert_eq!(
        shown,
        r#"profile,experiment,arm,metric,k,value,numerator,denominator
default,"e,1","a ""b""",lists,,1,,
default,"e,1","a ""b""",clicks,,1,,
default,"e,1","a ""b""",mrr,1,0,0,1
default,"e,1","a ""b""",mrr,,0.5,0.5,1
default,"e,1","a ""b""",precision,1,0,0,1
default,"e,1","a ""b""",precision,,0.5,0.5,1
"#
    );
    let header = shown.lines().next();
    let nothing = run_with_input(&["evaluate", "-", "--format", "csv"], "");
    assert_eq!(nothing.stdout.lines().next(), header, "even of nothing");
}

/// The name of an arm could make a spreadsheet run a formula. Numbers stay numbers.
#[test]
fn csv_neutralizes_names_that_a_spreadsheet_would_execute() {
    let events = [
        list(
            "1",
            MIDNIGHT_MS,
            r#"{"=1+1":"@SUM(A1)","-e":"\u001b[2J","+e":"a\u202eb","e":"\t=1"}"#,
        ),
        list("2", MIDNIGHT_MS, r#"{"e":"control"}"#),
        click("2", MIDNIGHT_MS, "i"),
    ];
    let arguments = [
        "--metrics",
        "mrr",
        "--k",
        "1",
        "--format",
        "csv",
        "--compare",
        "control",
        "--unit",
        "request",
    ];
    let shown = printed(&arguments, &events.join("\n"));
    for row in [
        "default,'=1+1,'@SUM(A1),lists,,1,,,,,,,,,",
        "default,'-e,\\u{1b}[2J,lists,,1,,,,,,,,,",
        "default,'+e,a\\u{202e}b,lists,,1,,,,,,,,,",
        "default,e,\\t=1,lists,,1,,,,,,,,,",
        "default,e,\\t=1,mrr,,0,0,1,-1,-100,,,,,",
    ] {
        assert!(shown.lines().any(|line| line == row), "{row}: {shown}");
    }
}

#[test]
fn markdown_escapes_its_special_characters() {
    let events = list("1", MIDNIGHT_MS, r#"{"e|1":"a*b"}"#);
    let shown = printed(&["--metrics", "mrr", "--k", "1", "--format", "markdown"], &events);
    assert_eq!(
        shown,
        "| e\\|1 | a\\*b |\n|:---|---:|\n| lists | 1 |\n| clicks | 0 |\n| mrr@1 | 0.0000 |\n| mrr | 0.0000 |\n"
    );
}
