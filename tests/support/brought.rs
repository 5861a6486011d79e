//! Where the programs lie that `tests/run --setup-only` brought.

use std::path::PathBuf;
use std::process::Command;

/// `tests/run` keeps what it brings here: `bin/` (links to the programs), `kafka-VERSION/libs`, `browser`.
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

/// A file or directory of the cache.
pub fn cached(path: &str) -> PathBuf {
    let found = cache().join(path);
    assert!(
        found.exists(),
        "{} is absent: run `tests/run --setup-only` once",
        found.display()
    );
    found
}

/// A program of the cache, by the name of its link.
pub fn command(program: &str) -> Command {
    Command::new(cached(&format!("bin/{program}")))
}
