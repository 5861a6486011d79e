//! Tells the program which commit and which compiler it was built of, for `abgauge version --json`.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SOURCE_COMMIT");
    tell("ABGAUGE_COMMIT", commit());
    tell(
        "ABGAUGE_RUSTC",
        env::var("RUSTC")
            .ok()
            .and_then(|rustc| said_by(&rustc, &["--version"])),
    );
}

/// An empty variable stands for what is not known.
fn tell(name: &str, value: Option<String>) {
    println!("cargo::rustc-env={name}={}", value.unwrap_or_default());
}

/// `SOURCE_COMMIT`, for builds without a repository; else what git says, if this is a repository and not a folder of
/// another one. Not while one develops: each commit would compile everything anew.
fn commit() -> Option<String> {
    let given = env::var("SOURCE_COMMIT").ok().filter(|commit| !commit.is_empty());
    if given.is_some() || env::var("PROFILE").as_deref() != Ok("release") || !Path::new(".git").exists() {
        return given;
    }
    for path in ["HEAD", "logs/HEAD"] {
        if let Some(path) = said_by("git", &["rev-parse", "--git-path", path]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    said_by(
        "git",
        &["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
    )
}

fn said_by(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| output.status.success() && !text.is_empty())
}
