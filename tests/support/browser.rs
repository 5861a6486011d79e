//! Scripts of `tests/browser`, run by Node with playwright-core in headless Chromium.

use std::time::Duration;

use super::process::Process;
use super::tools;

/// Runs `tests/browser/SCRIPT` with these arguments and returns what it printed.
///
/// A script takes its page from `launch.mjs` and fails by throwing.
///
/// # Panics
/// When it fails or outlasts the deadline; its output is printed then.
#[track_caller]
pub fn run(script: &str, args: &[&str], deadline: Duration) -> String {
    let dir = tools::temporary_dir("browser");
    let mut command = tools::command("node");
    command
        .arg(tools::repository("tests/browser").join(script))
        .args(args)
        .env("ABGAUGE_CHROMIUM", tools::cached("bin/chromium"))
        .env("ABGAUGE_BROWSER_MODULES", tools::cached("browser/node_modules"))
        .env("TMPDIR", dir.path());
    let mut node = Process::start(script, command, &dir.path().join("log"));
    let code = node.wait_exit(deadline);
    assert_eq!(code, Some(0), "{script} failed");
    node.log()
}
