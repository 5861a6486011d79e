//! Runs of faults, and notes of long ones: one line for each, also if it fails.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use super::{Fleet, Seen, Wanted};
use crate::support::tools;

/// Run that is appended, when dropped, to the file that `ABGAUGE_FAULTS_RUNS` names.
pub struct Run {
    what: &'static str,
    seed: u64,
    commit: String,
    begin: Instant,
    file: Option<PathBuf>,
    n_faults: usize,
    n_records: u64,
    result: String,
}

impl Run {
    pub fn begin(what: &'static str, seed: u64) -> Run {
        Run {
            what,
            seed,
            commit: commit(),
            begin: Instant::now(),
            file: std::env::var_os("ABGAUGE_FAULTS_RUNS").map(PathBuf::from),
            n_faults: 0,
            n_records: 0,
            result: "not held to the end".to_owned(),
        }
    }

    /// Injects the faults by number, from 1 on, with a recount after each `a_round` of them, and checks everything at the
    /// end. Returns the scrapes.
    #[track_caller]
    pub fn inject(
        &mut self,
        fleet: &mut Fleet,
        wanted: &Wanted,
        a_round: usize,
        mut inject: impl FnMut(&mut Fleet, usize),
    ) -> Seen {
        for n in 1..=wanted.n_faults {
            inject(fleet, n);
            if n.is_multiple_of(a_round) {
                let n_records = fleet.assert_recounted(&format!("{n} times {}", self.what));
                self.note(n, n_records);
            }
        }
        let (n_records, seen) = fleet.assert_whole(&format!("all of {}", self.what));
        self.note(wanted.n_faults, n_records);
        seen
    }

    /// Notes how far the run has held.
    fn note(&mut self, n_faults: usize, n_records: u64) {
        (self.n_faults, self.n_records) = (n_faults, n_records);
    }

    /// Notes that the run has held to its end.
    pub fn held(mut self, result: &str) {
        self.result = result.to_owned();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let Some(file) = &self.file else { return };
        let now = jiff::Timestamp::now().to_string();
        let (minute, _) = now.split_at("2026-11-25T21:10".len());
        let result = match std::thread::panicking() {
            true => "failed".to_owned(),
            false => self.result.clone(),
        };
        let Run {
            what,
            seed,
            commit,
            n_faults,
            n_records,
            ..
        } = self;
        let seconds = self.begin.elapsed().as_secs();
        let line = format!(
            "| {} | {commit} | {what} | {seed} | {n_faults} | {n_records} | {seconds} | {result} |\n",
            minute.replace('T', " ")
        );
        let opened = OpenOptions::new().create(true).append(true).open(file);
        let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        if let Err(error) = written {
            eprintln!("{}: {error}: {line}", file.display());
        }
    }
}

/// Returns the last commit that changed the program.
fn commit() -> String {
    let reported = Command::new("git")
        .args(["log", "-1", "--format=%h", "--", "src", "Cargo.lock"])
        .current_dir(tools::repository("."))
        .output();
    reported
        .ok()
        .filter(|reported| reported.status.success())
        .map_or("unknown".to_owned(), |reported| {
            String::from_utf8_lossy(&reported.stdout).trim().to_owned()
        })
}
