//! `abgauge demo` from its first line to its last, without any other service.

use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::process::Process;
use crate::support::{http, tools, wait};

/// A demo with its output in a file. It chooses its own port unless the arguments set one.
struct Demo {
    process: Process,
    _dir: TempDir,
}

impl Demo {
    fn start(arguments: &[&str]) -> Demo {
        let dir = tools::temporary_dir("demo");
        let mut command = Command::new(env!("CARGO_BIN_EXE_abgauge"));
        command.arg("demo").args(arguments);
        Demo {
            process: Process::start("abgauge demo", command, &dir.path().join("log")),
            _dir: dir,
        }
    }

    /// Returns the address of the page, once it has been printed.
    fn page(&mut self) -> String {
        let log = self.log_with("the address", "\n\n");
        let line = log.lines().find(|line| line.contains("live page"));
        line.and_then(|line| line.split_whitespace().last())
            .expect("an address")
            .to_owned()
    }

    /// Returns the output once it contains `text`.
    #[track_caller]
    fn log_with(&mut self, what: &str, text: &str) -> String {
        wait::until(what, wait::PATIENCE, || {
            let log = self.process.log();
            if log.contains(text) {
                return Some(log);
            }
            assert!(self.process.ended().is_none(), "it ended: {log}");
            None
        })
    }

    /// Returns the number of lists of all arms since the start.
    fn lists(&self, page: &str, view: &str) -> u64 {
        let Ok(answer) = http::get(&format!("{page}api/v1/experiments"), &[]) else {
            return 0;
        };
        let json: Value = serde_json::from_str(&answer.body).expect("JSON");
        let experiments = json["experiments"].as_object().expect("experiments");
        let arms = experiments
            .values()
            .flat_map(|it| it["arms"].as_object().expect("arms").values());
        arms.filter_map(|arm| arm["windows"]["total"][view]["lists"].as_u64())
            .sum()
    }
}

/// Returns the page's current first sentence about each experiment, as written in the log.
fn said(page: &str) -> Vec<String> {
    let Ok(answer) = http::get(&format!("{page}api/v1/view"), &[]) else {
        return Vec::new();
    };
    let json: Value = serde_json::from_str(&answer.body).expect("JSON");
    let experiments = json["experiments"].as_array().expect("experiments").iter();
    let sentence = |it: &Value| {
        let [name, said] = [&it["name"], &it["verdict"]["sentence"]].map(|text| text.as_str().expect("text"));
        format!("{name}: {said}")
    };
    experiments.map(sentence).collect()
}

/// A line in the final table.
#[derive(Debug)]
struct Row {
    arm: String,
    lists: f64,
    /// Measured and true values of CTR, hit ratio and MRR at k = 10.
    pairs: [(f64, f64); 3],
}

fn rows(log: &str) -> Vec<Row> {
    let rows = log.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let arm = words.next()?.to_owned();
        let numbers: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [lists, _clicks, ctr, true_ctr, hit, true_hit, mrr, true_mrr] = numbers[..] else {
            return None;
        };
        let pairs = [(ctr, true_ctr), (hit, true_hit), (mrr, true_mrr)];
        Some(Row { arm, lists, pairs })
    });
    rows.collect()
}

/// Relative standard error due to the sample of users, a third of 20,000 with very uneven traffic: √(3 Σ share²) times the
/// standard deviation of eagerness.
const OF_USERS: f64 = 0.0093;

/// Checks values to five standard errors. Hits and reciprocal ranks lie between 0 and 1, so v (1 − v) bounds their variance.
/// Clicks on at least five of ten items on average are counts, whose variance is assumed to be twice their mean.
fn check_pairs(row: &Row) {
    let tolerances = [|v: f64| 2.0 * v / 5.0, |v| v * (1.0 - v), |v| v * (1.0 - v)];
    for ((measured, truth), variance) in row.pairs.iter().zip(tolerances) {
        let of_lists = variance(*truth) / row.lists;
        let tolerance = 5.0 * (of_lists + (OF_USERS * truth).powi(2)).sqrt();
        assert!(
            (measured - truth).abs() < tolerance,
            "not within {tolerance:.4}: {row:?}"
        );
    }
}

#[test]
fn settled_values_appear_within_ten_seconds_and_are_correct() {
    let started = Instant::now();
    let mut demo = Demo::start(&["--port", "0", "--duration", "15s", "--rate", "1500"]);
    let page = demo.page();
    wait::until("settled lists", wait::PATIENCE, || {
        (demo.lists(&page, "settled") > 0).then_some(())
    });
    let after = started.elapsed();
    assert!(
        after < Duration::from_secs(10),
        "settled values stood after {after:?}"
    );
    assert_eq!(
        http::get(&format!("{page}metrics"), &[])
            .expect("an answer")
            .status,
        200
    );
    assert!(
        http::get(&page, &[])
            .expect("an answer")
            .body
            .starts_with("<!doctype html>")
    );
    // Readers of the JSON see that the numbers are simulated, too.
    for path in ["api/v1/experiments", "api/v1/view"] {
        let answer = http::get(&format!("{page}{path}"), &[]).expect("an answer");
        let json: Value = serde_json::from_str(&answer.body).expect("JSON");
        assert_eq!(json["demo"], true, "{path}");
    }

    assert_eq!(demo.process.wait_exit(wait::PATIENCE), Some(0));
    let ran = started.elapsed();
    assert!(ran >= Duration::from_secs(15), "it ended after {ran:?}");
    let log = demo.process.log();
    assert!(!log.contains('\x1b'), "a file is no terminal: {log}");
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.starts_with("0:10 of 0:15"))
        .collect();
    assert_eq!(lines.len(), 1, "a line each ten seconds: {log}");
    assert!(
        log.trim_end()
            .ends_with(" records that were produced have been counted."),
        "{log}"
    );
    let rows = rows(&log);
    let arms: Vec<&str> = rows.iter().map(|row| row.arm.as_str()).collect();
    assert_eq!(arms, ["carousel", "grid", "blend", "control", "neural"], "{log}");
    for row in &rows {
        assert!(row.lists > 2_000.0, "{log}");
        check_pairs(row);
    }
}

#[test]
fn the_terminal_and_the_page_show_the_same_sentences() {
    let mut demo = Demo::start(&["--port", "0", "--duration", "1m", "--rate", "1500"]);
    let page = demo.page();
    let mut on_the_page = std::collections::BTreeSet::new();
    // A look is shown for two seconds, which a busy machine may miss: the block at 0:20 or the one at 0:40 will do.
    let (block, reported) = wait::until("both sentences of a block on the page", wait::LONG, || {
        on_the_page.extend(said(&page));
        let log = demo.process.log();
        let blocks = log.split(" of 1:00").skip(1).map(|block| {
            let sentences: Vec<&str> = block.lines().skip(1).collect();
            sentences.join(" ")
        });
        let whole = blocks.filter(|block| block.matches("traffic split OK").count() == 2);
        let mut on_both = whole.map(|block| {
            let of_the_page = on_the_page.iter().filter(|said| block.contains(said.as_str()));
            let reported: Vec<String> = of_the_page.cloned().collect();
            (block, reported)
        });
        on_both.find(|(_, reported)| reported.len() == 2)
    });
    assert!(
        reported[0].starts_with("layout: ") && reported[1].starts_with("ranker: "),
        "{reported:?}"
    );
    assert!(block.contains("CTR@10"), "{block}");
    demo.process.signal(libc::SIGINT);
    assert_eq!(demo.process.wait_exit(Duration::from_secs(10)), Some(0));
}

#[test]
fn ctrl_c_stops_the_demo_cleanly() {
    let mut demo = Demo::start(&["--port", "0", "--duration", "10m"]);
    let page = demo.page();
    wait::until("lists", wait::PATIENCE, || {
        (demo.lists(&page, "live") > 0).then_some(())
    });
    demo.process.signal(libc::SIGINT);
    assert_eq!(demo.process.wait_exit(Duration::from_secs(10)), Some(0));
    let log = demo.process.log();
    assert!(
        log.trim_end()
            .ends_with(" records that were produced have been counted."),
        "{log}"
    );
    for word in ["error", "warning", "panicked"] {
        assert!(!log.contains(word), "{log}");
    }
}

/// With huge pages the resident memory would grow for hours without being used.
#[test]
#[cfg(target_os = "linux")]
fn the_demo_disables_huge_pages() {
    let mut demo = Demo::start(&["--port", "0", "--duration", "10m"]);
    demo.page();
    let status = std::fs::read_to_string(format!("/proc/{}/status", demo.process.pid()));
    let status = status.expect("a status");
    assert!(status.contains("\nTHP_enabled:\t0\n"), "{status}");
}

#[test]
fn the_demo_names_a_port_in_use() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen");
    let port = taken.local_addr().expect("an address").port().to_string();
    let mut demo = Demo::start(&["--port", &port]);
    assert_eq!(demo.process.wait_exit(wait::PATIENCE), Some(1));
    let log = demo.process.log();
    assert!(log.starts_with("error: "), "{log}");
    assert!(log.contains(&format!("127.0.0.1:{port}")), "{log}");
    assert!(log.contains("--port"), "it says what to do: {log}");
}
