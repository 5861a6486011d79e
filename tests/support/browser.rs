//! Scripts of `tests/browser`, run by Node with playwright-core in headless Chromium.

use std::time::Duration;

use tempfile::TempDir;

use super::process::Process;
use super::{brought, tools};

/// Runs `tests/browser/SCRIPT` with these arguments and returns what it printed.
///
/// A script takes its page from `launch.mjs` and fails by throwing.
///
/// # Panics
/// If the script fails or outlasts the deadline. Its output is printed then.
#[track_caller]
pub fn run(script: &str, args: &[&str], deadline: Duration) -> String {
    Script::start(script, args).wait_end(deadline)
}

/// A running script, for tests that act on the daemon meanwhile.
pub struct Script {
    // Dropped first: the process writes into the directory.
    node: Process,
    name: String,
    _dir: TempDir,
}

impl Script {
    pub fn start(script: &str, args: &[&str]) -> Script {
        let dir = tools::temporary_dir("browser");
        let mut command = brought::command("node");
        command
            .arg(tools::repository("tests/browser").join(script))
            .args(args)
            .env("ABGAUGE_CHROMIUM", brought::cached("bin/chromium"))
            .env("ABGAUGE_BROWSER_MODULES", brought::cached("browser/node_modules"))
            .env("TMPDIR", dir.path());
        Script {
            node: Process::start(script, command, &dir.path().join("log")),
            name: script.to_owned(),
            _dir: dir,
        }
    }

    /// Waits until the script has printed `words`.
    ///
    /// # Panics
    /// If the script ends before that or outlasts the deadline.
    #[track_caller]
    pub fn wait_said(&mut self, words: &str, deadline: Duration) {
        let (node, what) = (&mut self.node, format!("{} to say {words:?}", self.name));
        let log = node.log_path();
        node.wait_until(&what, deadline, || {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            said.contains(words).then_some(())
        });
    }

    /// Waits for the end of the script and returns its output.
    #[track_caller]
    pub fn wait_end(mut self, deadline: Duration) -> String {
        let code = self.node.wait_exit(deadline);
        assert_eq!(code, Some(0), "{} failed", self.name);
        self.node.log()
    }
}
