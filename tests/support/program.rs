//! Single runs of the program: arguments and input in, exit code and output out.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Outcome of a command.
pub struct Ran {
    pub code: Option<i32>,
    /// Results.
    pub stdout: String,
    /// Remarks and errors.
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
        Ran {
            code: output.status.code(),
            stdout,
            stderr,
        }
    }
}

/// Returns the program's command without `ABGAUGE_` variables in its environment.
pub fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_abgauge"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ABGAUGE_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

pub fn run(arguments: &[&str]) -> Ran {
    program(arguments).output().expect("abgauge starts").into()
}

pub fn run_with_input(arguments: &[&str], input: &str) -> Ran {
    assert_cmd::Command::from_std(program(arguments))
        .write_stdin(input)
        .output()
        .expect("abgauge starts")
        .into()
}

/// Runs the program and returns its results. It must succeed and leave standard error empty.
#[track_caller]
pub fn quietly(arguments: &[&str]) -> String {
    let ran = run(arguments);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{arguments:?}");
    ran.stdout
}

pub fn file(dir: &TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = dir.path().join(name);
    std::fs::write(&path, text).expect("write a file");
    path.to_str().expect("UTF-8").to_owned()
}

pub fn temporary_dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory under target")
}
