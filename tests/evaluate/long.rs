//! Files of months and years: every event counts, however sparse the days are.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::support::program::program;
use crate::{MIDNIGHT_MS, click, list};

/// Evaluates `n` lists, each a step after the previous one, with a click on every fourth.
fn counted(n: i64, step_ms: i64) -> Value {
    let mut command = program(&["evaluate", "-", "--strict", "--format", "json"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("abgauge starts");
    let mut input = std::io::BufWriter::new(child.stdin.take().expect("a pipe"));
    let writer = std::thread::spawn(move || -> std::io::Result<()> {
        for id in 0..n {
            let (name, ts_ms) = (id.to_string(), MIDNIGHT_MS + id * step_ms);
            writeln!(input, "{}", list(&name, ts_ms, r#"{"e":"a"}"#))?;
            if id % 4 == 0 {
                writeln!(input, "{}", click(&name, ts_ms + 5_000, "j"))?;
            }
        }
        input.flush()
    });
    let output = child.wait_with_output().expect("abgauge ends");
    writer.join().expect("no panic").expect("all is taken");
    let reported = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{reported}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["experiments"]["e"]["arms"]["a"].clone()
}

/// There used to be a limit of 262,143 lists and clicks in separate slots.
#[test]
fn sixty_days_of_a_list_every_twenty_seconds() {
    let n = 60 * 24 * 60 * 3;
    let arm = counted(n, 20_000);
    assert_eq!((&arm["lists"], &arm["clicks"]), (&n.into(), &(n / 4).into()));
}

#[test]
fn a_year_of_a_list_a_minute() {
    let n = 365 * 24 * 60;
    let arm = counted(n, 60_000);
    assert_eq!((&arm["lists"], &arm["clicks"]), (&n.into(), &(n / 4).into()));
}
