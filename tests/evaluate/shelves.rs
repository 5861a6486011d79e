//! Pages of several shelves that share one request id: `request_id = { all = […] }`.

use serde_json::{Value, json};

use crate::support::program::run;
use crate::{MIDNIGHT_MS, document};

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/events/shelves.toml");

/// Returns the number of lists, of lists with a click, and of clicks, by arm.
fn counted(events: &[Value], config: &[&str]) -> [[u64; 3]; 2] {
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    let metrics = ["--metrics", "hit_rate,ctr", "--k", "3"];
    let json = document(&[&metrics[..], config].concat(), &lines.join("\n"));
    ["a", "b"].map(|arm| {
        let of = &json["experiments"]["ranker"]["arms"][arm];
        let n_lists = of["lists"].as_u64().expect("a number");
        let hit_rate = of["metrics"]["hit_rate@3"].as_f64().expect("a number");
        let n_hits = (hit_rate * n_lists as f64).round() as u64;
        [n_lists, n_hits, of["clicks"].as_u64().expect("a number")]
    })
}

/// Returns lists and clicks of 40 page views with two shelves each, `top` and `similar`, which have one item in common.
fn views() -> [Vec<Value>; 2] {
    let (mut lists, mut clicks) = (Vec::new(), Vec::new());
    for n in 0..40 {
        let (view, ts) = (format!("view-{n}"), MIDNIGHT_MS + n * 1_000);
        let arm = ["a", "b"][n as usize % 2];
        for (shelf, items) in [("top", ["both", "one"]), ("similar", ["two", "both"])] {
            lists.push(
                json!({"type": "served", "page_view": view, "shelf": shelf, "ts": ts,
                "experiments": {"ranker": arm}, "items": items}),
            );
        }
        let mut click = |shelf: Option<&str>, item| {
            clicks.push(
                json!({"type": "click", "page_view": view, "shelf": shelf, "ts": ts + 500, "item": item}),
            );
        };
        match n % 8 {
            0 => click(Some("top"), "both"),
            // The item is on both shelves.
            1 => click(None, "both"),
            2 => click(None, "two"),
            3 => {
                click(None, "one");
                click(Some("top"), "one");
            }
            4 => click(None, "elsewhere"),
            5 => click(Some("similar"), "one"),
            _ => {}
        }
    }
    [lists, clicks]
}

#[test]
fn lists_with_one_id_are_distinguished_by_shelf() {
    let [lists, clicks] = views();
    // In every 8 views, a has a hit in views 0 and 2, and b has two in view 1 and one in view 3.
    let expected = [[40, 10, 10], [40, 15, 15]];
    let config = ["--config", CONFIG];
    assert_eq!(counted(&[&lists[..], &clicks].concat(), &config), expected);
    assert_eq!(counted(&[&clicks[..], &lists].concat(), &config), expected);
    // With the first part alone as id, half of the lists are copies with other items.
    let first = ["page_view", "page_view"].map(|path| format!("request_id = {path:?}\n"));
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("first.toml");
    let text = format!("[events.served]\n{}[events.click]\n{}", first[0], first[1]);
    std::fs::write(&path, text).expect("it can be written");
    let path = path.to_str().expect("UTF-8");
    let n_lists = counted(&[&lists[..], &clicks].concat(), &["--config", path]).map(|[n_lists, ..]| n_lists);
    assert_eq!(n_lists, [20, 20]);
}

#[test]
fn check_shows_the_id_parts_of_a_click() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/events/shelves.jsonl");
    let ran = run(&["check", "--sample", sample, "--config", CONFIG]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    for reported in [
        "line 1: served list v-1 / top of user u-7",
        "click on i5 of list v-1 / top",
        "click on i9 of list v-1 / any",
    ] {
        assert!(ran.stdout.contains(reported), "{reported}:\n{}", ran.stdout);
    }
}
