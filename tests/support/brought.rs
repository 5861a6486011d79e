//! Paths of the programs that `tests/run --setup-only` downloaded.

use std::path::PathBuf;
use std::process::Command;

/// Returns the directory of `tests/run`: `bin/` (links to the programs), `kafka-VERSION/libs`, `browser`.
pub fn cache() -> PathBuf {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("ABGAUGE_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("abgauge")))
        .or_else(|| Some(set("HOME")?.join(".cache/abgauge")))
        .expect("HOME or ABGAUGE_CACHE is set")
}

/// Returns the path of a file or directory in the cache.
pub fn cached(path: &str) -> PathBuf {
    let found = cache().join(path);
    assert!(
        found.exists(),
        "{} is absent: run `tests/run --setup-only` once",
        found.display()
    );
    found
}

/// Returns a command for the program with this link name in the cache.
pub fn command(program: &str) -> Command {
    Command::new(cached(&format!("bin/{program}")))
}
