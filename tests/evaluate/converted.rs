//! `abgauge convert`: tables from a notebook become events with the metrics of the tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::program::{Ran, file, run, run_with_input, temporary_dir};

/// Returns the metrics of events by arm.
fn metrics(events: &str, arguments: &[&str]) -> Value {
    let ran = run_with_input(
        &[&["evaluate", "-", "--format", "json"], arguments].concat(),
        events,
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    report["experiments"]["offline"]["arms"].clone()
}

fn convert(arguments: &[&str]) -> Ran {
    run(&[&["convert"], arguments].concat())
}

/// By hand: in als, u1 sees b and a, of which a is relevant, at rank 2; u2 sees x, and nothing is relevant. In pop, u1 sees
/// a. u3 has no list.
#[test]
fn tables_become_ranked_lists_and_clicks_on_relevant_items() {
    let dir = temporary_dir();
    let als = file(
        &dir,
        "als.csv",
        "user_id,item_id,score\nu1,a,0.5\nu1,b,0.9\nu2,x,0.1\n,x,0.1\n",
    );
    let pop = file(&dir, "p.csv", "user_id\titem_id\tscore\nu1\ta\t7\n");
    let truth = file(&dir, "test.csv", "uid;sku\nu1;a\nu3;b\n");
    let popular = format!("pop={pop}");
    let tables = [
        "--recommendations",
        &als,
        "--recommendations",
        &popular,
        "--truth",
        &truth,
        "--truth-user",
        "uid",
        "--truth-item",
        "sku",
        "--score",
        "score",
    ];
    let ran = convert(&tables);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for reported in [
        "skipped rows without a user or an item: 1",
        "lists: 3, clicks: 2, of them on an item of their list: 2",
        "lists of users without relevant items: 1",
        "left out in an arm (--empty-lists counts them): 2",
    ] {
        assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
    }
    let found = metrics(&ran.stdout, &["--metrics", "hit_rate,mrr", "--k", "1,5"]);
    let als = &found["als"];
    assert_eq!((&als["lists"], &als["clicks"]), (&2.into(), &1.into()));
    assert_eq!(als["metrics"]["hit_rate@1"], 0.0);
    assert_eq!(als["metrics"]["hit_rate@5"], 0.5);
    assert_eq!(als["metrics"]["mrr"], 0.25);
    assert_eq!(found["pop"]["metrics"]["hit_rate@1"], 1.0);

    let ran = convert(&[&tables[..], &["--empty-lists"]].concat());
    let found = metrics(&ran.stdout, &["--metrics", "hit_rate", "--k", "1"]);
    assert_eq!(
        (&found["als"]["lists"], &found["pop"]["lists"]),
        (&3.into(), &2.into())
    );
    assert_eq!(found["pop"]["metrics"]["hit_rate@1"], 0.5);
}

/// An endless sequence of numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A row: arm, user, item, rank.
type Row = (&'static str, u64, u64, u64);

/// Computes hit_rate@3, mrr and ctr of an arm from the tables.
fn recount(rows: &[Row], truth: &BTreeSet<(u64, u64)>, arm: &str) -> [f64; 3] {
    let mut lists: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for (_, user, item, rank) in rows.iter().filter(|row| row.0 == arm) {
        lists.entry(*user).or_default().push((*rank, *item));
    }
    let (mut hits, mut reciprocal, mut clicks, mut shown) = (0.0, 0.0, 0.0, 0.0);
    for (user, list) in &mut lists {
        list.sort();
        let relevant: Vec<bool> = list
            .iter()
            .map(|(_, item)| truth.contains(&(*user, *item)))
            .collect();
        hits += f64::from(u8::from(relevant.iter().take(3).any(|is| *is)));
        let first = relevant.iter().position(|is| *is);
        reciprocal += first.map_or(0.0, |place| 1.0 / (place + 1) as f64);
        clicks += relevant.iter().filter(|is| **is).count() as f64;
        shown += relevant.len() as f64;
    }
    let n = lists.len() as f64;
    [hits / n, reciprocal / n, clicks / shown]
}

#[test]
fn metrics_equal_a_recount_of_the_tables() {
    let mut numbers = Numbers(7);
    for _ in 0..5 {
        let mut rows: Vec<Row> = Vec::new();
        for arm in ["als", "pop"] {
            for user in 0..30 {
                let n = numbers.below(8);
                let mut items: Vec<u64> = (0..20).collect();
                for rank in 0..n {
                    let item = items.swap_remove(numbers.below(items.len() as u64) as usize);
                    rows.push((arm, user, item, 100 - rank));
                }
            }
        }
        let truth: BTreeSet<(u64, u64)> = (0..60).map(|_| (numbers.below(32), numbers.below(20))).collect();
        let mut table = String::from("item_id,model,user_id,rank\n");
        for (arm, user, item, rank) in &rows {
            let _ = writeln!(table, "{item},{arm},{user},{rank}");
        }
        let mut relevant = String::from("item_id,user_id\n");
        for (user, item) in &truth {
            let _ = writeln!(relevant, "{item},{user}");
        }
        let dir = temporary_dir();
        let (table, relevant) = (file(&dir, "all.csv", &table), file(&dir, "test.csv", &relevant));
        let ran = convert(&[
            "--recommendations",
            &table,
            "--arm",
            "model",
            "--rank",
            "rank",
            "--truth",
            &relevant,
        ]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let found = metrics(&ran.stdout, &["--metrics", "hit_rate,mrr,ctr", "--k", "3"]);
        for arm in ["als", "pop"] {
            let expected = recount(&rows, &truth, arm);
            let metric = |name: &str| found[arm]["metrics"][name].as_f64().expect(name);
            for (name, expected) in ["hit_rate@3", "mrr", "ctr"].into_iter().zip(expected) {
                assert!(
                    (metric(name) - expected).abs() < 1e-9,
                    "{arm} {name}: {} and {expected}",
                    metric(name)
                );
            }
        }
    }
}

/// By hand: of the four relevance values in the truth, 0, 1, 4 and -1, two are above 0 and one is at least 4.
#[test]
fn a_relevance_column_selects_the_relevant_rows() {
    let dir = temporary_dir();
    let table = file(&dir, "als.csv", "user_id,item_id\nu1,a\nu1,b\nu1,c\n");
    let judged = file(
        &dir,
        "judged.csv",
        ",user_id,item_id,rating,note\n0,u1,a,0,0\n1,u1,b,1,x\n2,u1,c,4,0\n3,u1,d,-1,0\n",
    );
    let convert =
        |more: &[&str]| convert(&[&["--recommendations", &table, "--truth", &judged], more].concat());
    let clicks = |ran: &Ran| ran.stdout.matches(r#""type":"click""#).count();
    for (more, n_clicks, reported) in [
        (&["--relevance", "rating"][..], 2, "that are not relevant: 2"),
        (
            &["--relevance", "rating", "--min-relevance", "4"],
            1,
            "that are not relevant: 3",
        ),
        (
            &["--relevance", "rating", "--min-relevance", "-1"],
            4,
            "clicks: 4",
        ),
        (&["--relevance", ""], 4, "clicks: 4"),
    ] {
        let ran = convert(more);
        assert_eq!(
            (ran.code, clicks(&ran)),
            (Some(0), n_clicks),
            "{more:?}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
    }
    // A pandas index in the first column is not a relevance column, and neither is `note`, which contains text.
    for (more, code, reported) in [
        (
            &[][..],
            65,
            "the truth has a column rating with values that look like \"not relevant\" (2 rows; the first is \"0\"); `--relevance rating` leaves these rows out; ",
        ),
        (
            &["--relevance", "note"],
            65,
            "row 2: note is \"x\", which is not a number: correct it, or name another column with --relevance",
        ),
        (
            &["--relevance", "grade"],
            1,
            "name the right one with --relevance",
        ),
        (&["--min-relevance", "1"], 2, "--relevance"),
    ] {
        let ran = convert(more);
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        assert!(
            ran.stdout.is_empty() && ran.stderr.contains(reported),
            "{reported}: {}",
            ran.stderr
        );
    }
}

/// Checks the conversion of a truth in which the user u1 liked a and c, but not b.
#[track_caller]
fn check_booleans(dir: &TempDir, truth: &str) {
    let table = file(dir, "als.csv", "user_id,item_id\nu1,a\nu1,b\nu1,c\n");
    let convert = |more: &[&str]| convert(&[&["--recommendations", &table, "--truth", truth], more].concat());
    let ran = convert(&["--relevance", "liked"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for (item, n) in [("a", 1), ("b", 0), ("c", 1)] {
        let click = format!(r#""item":"{item}"}}"#);
        assert_eq!(ran.stdout.matches(&click).count(), n, "{item}");
    }
    let ran = convert(&[]);
    assert_eq!((ran.code, &*ran.stdout), (Some(65), ""), "{}", ran.stderr);
    for reported in [
        "(1 row; the first is \"",
        "; `--relevance liked` leaves these rows out",
    ] {
        assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    }
}

/// pandas writes `True` and `False`. Every row used to become a click.
#[test]
fn booleans_in_csv_are_relevance() {
    let dir = temporary_dir();
    for [yes, no] in [["True", "False"], ["true", "false"]] {
        let text = format!("user_id,item_id,liked\nu1,a,{yes}\nu1,b,{no}\nu1,c,{yes}\n");
        check_booleans(&dir, &file(&dir, "truth.csv", &text));
    }
}

/// Values of a column that no flag names. Each of those that look like "not relevant" used to become a click, except zeros and false.
#[test]
fn a_truth_with_values_that_look_like_not_relevant_is_refused() {
    let dir = temporary_dir();
    let table = file(&dir, "als.csv", "user_id,item_id\nu1,a\nu1,b\n");
    for (values, first) in [
        (["1", "0"], Some("(1 row; the first is \"0\")")),
        (["0", "-0.0"], Some("(2 rows; the first is \"0\")")),
        (["1", "-1"], Some("(1 row; the first is \"-1\")")),
        (["-0.5", "2"], Some("(1 row; the first is \"-0.5\")")),
        (["nan", "2"], Some("(1 row; the first is \"nan\")")),
        (["1", ""], Some("(1 row; the first is an empty cell)")),
        (["5", " "], Some("(1 row; the first is an empty cell)")),
        (["yes", "no"], Some("(1 row; the first is \"no\")")),
        (["No", ""], Some("(2 rows; the first is \"No\")")),
        (["y", "n"], Some("(1 row; the first is \"n\")")),
        (["F", "t"], Some("(1 row; the first is \"F\")")),
        (["true", "FALSE"], Some("(1 row; the first is \"FALSE\")")),
        (["TRUE", ""], Some("(1 row; the first is an empty cell)")),
        (["1", "2.5"], None),
        (["yes", "true"], None),
        // A column with text, or without any value, is not relevance.
        (["no", "maybe"], None),
        (["2025-01-01", ""], None),
        (["", ""], None),
    ] {
        let [one, other] = values;
        // The last row has neither a user nor an item, so it is not a click.
        let rows = format!("user_id,item_id,grade\nu1,a,{one}\nu1,b,{other}\n,,\n");
        let truth = file(&dir, "truth.csv", &rows);
        let arguments = ["--recommendations", &table, "--truth", &truth];
        let ran = convert(&arguments);
        match first {
            None => assert_eq!(ran.code, Some(0), "{values:?}: {}", ran.stderr),
            Some(first) => {
                assert_eq!((ran.code, &*ran.stdout), (Some(65), ""), "{values:?}");
                for part in [
                    "the truth has a column grade ",
                    first,
                    "; `--relevance grade` leaves ",
                ] {
                    assert!(ran.stderr.contains(part), "{values:?}: {}", ran.stderr);
                }
                let has_empty = values.iter().any(|value| value.trim().is_empty());
                assert_eq!(
                    ran.stderr
                        .contains("after you fill its empty cells, for example with 0"),
                    has_empty
                );
            }
        }
        let all = convert(&[&arguments[..], &["--relevance", ""]].concat());
        assert_eq!(all.stdout.matches(r#""type":"click""#).count(), 2, "{values:?}");
    }
}

/// The advised flag leaves out rows with each of these values.
#[test]
fn negative_numbers_and_words_are_relevance() {
    let dir = temporary_dir();
    let table = file(&dir, "als.csv", "user_id,item_id\nu1,a\nu1,b\n");
    for [yes, no] in [
        ["1", "-1"],
        ["Yes", "NO"],
        ["yes", "no"],
        ["Y", "n"],
        ["t", "F"],
        ["0.1", "0"],
    ] {
        let rows = format!("user_id,item_id,grade\nu1,a,{yes}\nu1,b,{no}\n");
        let truth = file(&dir, "truth.csv", &rows);
        let ran = convert(&[
            "--recommendations",
            &table,
            "--truth",
            &truth,
            "--relevance",
            "grade",
        ]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(ran.stdout.matches(r#""type":"click""#).count(), 1, "{no}");
        assert!(ran.stdout.contains(r#""item":"a"}"#), "{}", ran.stdout);
    }
}

#[cfg(feature = "parquet")]
mod parquet {
    use std::fs::File;
    use std::sync::Arc;

    use ::parquet::data_type::{BoolType, ByteArrayType, DataType};
    use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use ::parquet::schema::parser::parse_message_type;

    use super::*;

    fn write<T: DataType>(row_group: &mut SerializedRowGroupWriter<File>, values: [T::T; 3]) {
        let mut column = row_group.next_column().expect("write").expect("one more");
        let written = column.typed::<T>().write_batch(&values, None, None);
        written.expect("write");
        column.close().expect("write");
    }

    /// Parquet's BOOLEAN used to be left out, so that every row became a click.
    #[test]
    fn booleans_in_parquet_are_relevance() {
        let dir = temporary_dir();
        let path = dir.path().join("truth.parquet");
        let schema = "message truth {
            required binary user_id (STRING);
            required binary item_id (STRING);
            required boolean liked;
        }";
        let schema = Arc::new(parse_message_type(schema).expect("a schema"));
        let file = File::create(&path).expect("a file");
        let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).expect("write");
        let mut rows = writer.next_row_group().expect("write");
        write::<ByteArrayType>(&mut rows, ["u1", "u1", "u1"].map(Into::into));
        write::<ByteArrayType>(&mut rows, ["a", "b", "c"].map(Into::into));
        write::<BoolType>(&mut rows, [true, false, true]);
        rows.close().expect("write");
        writer.close().expect("write");
        check_booleans(&dir, path.to_str().expect("UTF-8"));
    }
}

#[test]
fn an_empty_number_is_reported_with_its_row_column_and_remedy() {
    let dir = temporary_dir();
    let table = file(&dir, "als.csv", "user_id,item_id,score\nu1,a,1\nu1,b,\n");
    let truth = file(
        &dir,
        "test.csv",
        "user_id,item_id,rating\nu1,a,1\nu1,b,2\nu1,c, \n",
    );
    for (more, reported) in [
        (
            ["--relevance", "rating"],
            "test.csv: row 3: rating is empty: write a number, such as 0, or delete the row, or name another column with --relevance",
        ),
        (
            ["--score", "score"],
            "als.csv: row 2: score is empty: write a number, such as 0, or delete the row, or name another column with --score",
        ),
    ] {
        let ran = convert(&[&["--recommendations", &table, "--truth", &truth], &more[..]].concat());
        assert_eq!((ran.code, &*ran.stdout), (Some(65), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
    }
}

#[test]
fn lists_with_equal_scores_are_reported() {
    let dir = temporary_dir();
    let table = file(
        &dir,
        "als.csv",
        "user_id,item_id,score\nu1,a,1\nu1,b,1\nu2,a,1\nu2,b,1.000000001\n",
    );
    let truth = file(&dir, "test.csv", "user_id,item_id\nu1,a\n");
    let tables = ["--recommendations", &table, "--truth", &truth];
    let ran = convert(&[&tables[..], &["--score", "score"]].concat());
    for reported in [
        "lists with equal scores, left in the order of their rows: 1; trec_eval puts the larger id first",
        "equal only in single precision, which trec_eval treats as equal: 1",
    ] {
        assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
    }
    let by_rank = convert(&[&tables[..], &["--rank", "score"]].concat());
    assert!(!by_rank.stderr.contains("equal"), "{}", by_rank.stderr);
}

#[test]
fn an_invalid_table_is_explained() {
    let dir = temporary_dir();
    let table = file(&dir, "als.csv", "user_id,item_id,score\nu1,a,high\n");
    let empty = file(&dir, "none.csv", "user_id,item_id,score\n");
    let commas = file(&dir, "commas.csv", "user_id;item_id;score\nu1;a;0,5\n");
    let truth = file(&dir, "test.csv", "user_id,item_id\nu1,5.0\n");
    for (recommendations, more, code, reported) in [
        (
            &table,
            &["--score", "score"][..],
            65,
            "als.csv: row 1: score is \"high\", which is not a number: correct it, or name another column with --score",
        ),
        (
            &table,
            &["--score", "scores"],
            1,
            "it has no column scores: its columns are user_id, item_id, score; name the right one with --score",
        ),
        (
            &table,
            &["--truth-user", "uid"],
            1,
            "test.csv: it has no column uid: its columns are user_id, item_id; name the right one with --truth-user",
        ),
        (
            &commas,
            &["--score", "score"],
            65,
            "score is \"0,5\", which is not a number: write a decimal point",
        ),
        (&empty, &[], 65, "the tables have no recommendations"),
        (
            &table,
            &["--score", "score", "--rank", "score"],
            2,
            "cannot be used with",
        ),
        (
            &table,
            &["--arm", "score", "--experiment", "__other__"],
            2,
            "other than __other__",
        ),
    ] {
        let ran = convert(&[&["--recommendations", recommendations, "--truth", &truth], more].concat());
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        assert!(
            ran.stdout.is_empty() && ran.stderr.contains(reported),
            "{reported}: {}",
            ran.stderr
        );
    }
    let ran = convert(&["--recommendations", &table, "--truth", &truth]);
    assert!(
        ran.stderr.contains("are ids written the same way"),
        "{}",
        ran.stderr
    );
}
