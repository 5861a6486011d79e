//! Dependency rules between modules, checked against the sources.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns every source file with its path below src.
fn sources() -> Vec<(String, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("src can be read") {
            let path = entry.expect("src can be read").path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &mut found);
    let name = |path: &Path| {
        path.strip_prefix(&root)
            .expect("it lies in src")
            .to_string_lossy()
            .into_owned()
    };
    found
        .iter()
        .map(|path| (name(path), fs::read_to_string(path).expect("a source is UTF-8")))
        .collect()
}

/// Returns the lines of code that mention `what`, except in files accepted by `may`.
fn mentions(what: &str, may: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in sources() {
        let code = text
            .lines()
            .map(str::trim_start)
            .filter(|line| !line.starts_with("//"));
        if !may(&name) {
            found.extend(
                code.filter(|line| line.contains(what))
                    .map(|line| format!("{name}: {line}")),
            );
        }
    }
    found
}

#[track_caller]
fn only_in(what: &str, homes: &[&str]) {
    let lives_here = |name: &str| homes.iter().any(|home| name.starts_with(home));
    assert_eq!(
        mentions(what, lives_here),
        Vec::<String>::new(),
        "`{what}` belongs into {homes:?} only"
    );
    let elsewhere = |name: &str| !lives_here(name);
    assert_ne!(
        mentions(what, elsewhere),
        Vec::<String>::new(),
        "`{what}` is nowhere: the rule guards nothing"
    );
}

#[test]
fn the_engine_knows_nobody() {
    let outside = |name: &str| !name.starts_with("engine/");
    let strangers = mentions("crate::", |name| outside(name))
        .into_iter()
        .filter(|line| !line.contains("crate::tidy::engine"));
    assert_eq!(strangers.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn the_ledger_knows_the_engine_alone() {
    let strangers = mentions("crate::", |name| !name.starts_with("ledger/"))
        .into_iter()
        .filter(|line| {
            !["bytes", "engine", "ledger"]
                .iter()
                .any(|may| line.contains(&format!("crate::{may}")))
        });
    assert_eq!(strangers.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn the_stored_state_knows_nobody() {
    let outside = |name: &str| !name.starts_with("state/");
    let strangers = mentions("crate::", outside).into_iter().filter(|line| {
        let mut known = ["bytes", "state"].iter();
        !known.any(|may| line.contains(&format!("crate::{may}")))
    });
    assert_eq!(strangers.collect::<Vec<_>>(), Vec::<String>::new());
    for stranger in ["std::time", "std::fs", "std::io", "std::sync::Mutex", "tracing::"] {
        assert_eq!(mentions(stranger, outside), Vec::<String>::new());
    }
}

#[test]
fn the_statistics_know_nobody() {
    let outside = |name: &str| !name.starts_with("statistics/");
    let strangers = mentions("crate::", outside)
        .into_iter()
        .filter(|line| !line.contains("crate::tidy::statistics"));
    assert_eq!(strangers.collect::<Vec<_>>(), Vec::<String>::new());
    // Formulas must not depend on any of these.
    for stranger in [
        "std::time",
        "std::fs",
        "std::io",
        "std::sync",
        "rand::",
        "tracing::",
    ] {
        assert_eq!(mentions(stranger, outside), Vec::<String>::new());
    }
}

#[test]
fn the_verdict_knows_the_statistics_alone() {
    let strangers = mentions("crate::", |name| !name.starts_with("verdict"))
        .into_iter()
        .filter(|line| !line.contains("crate::tidy::statistics"));
    assert_eq!(strangers.collect::<Vec<_>>(), Vec::<String>::new());
}

/// Modules that are compiled even without the feature `daemon`.
const LIBRARY: [&str; 12] = [
    "bytes",
    "engine",
    "evaluate",
    "ingest::catalogue",
    "ingest::wire",
    "ledger",
    "looks",
    "metrics_map",
    "state",
    "statistics",
    "table",
    "verdict",
];

#[test]
fn the_library_knows_nothing_of_the_daemon() {
    let is_outside = |name: &str| {
        let mut modules = LIBRARY.iter();
        !modules.any(|module| name.starts_with(&module.replace("::", "/")))
    };
    let strangers = mentions("crate::", is_outside).into_iter().filter(|line| {
        let mut modules = LIBRARY.iter();
        !modules.any(|module| line.contains(&format!("crate::{module}")))
    });
    assert_eq!(strangers.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn ingest_and_export_never_meet() {
    let not_in = |folder: &'static str| move |name: &str| !name.starts_with(folder);
    assert_eq!(
        mentions("crate::tidy::export", not_in("ingest/")),
        Vec::<String>::new()
    );
    assert_eq!(
        mentions("crate::tidy::export", not_in("kafka/")),
        Vec::<String>::new()
    );
    assert_eq!(
        mentions("crate::tidy::ingest", not_in("export/")),
        Vec::<String>::new()
    );
    assert_eq!(
        mentions("crate::tidy::kafka", not_in("export/")),
        Vec::<String>::new()
    );
}

#[test]
fn each_foreign_thing_has_one_home() {
    only_in("rdkafka::", &["kafka/"]);
    only_in("dashmap", &["board.rs"]);
    only_in("use prometheus", &["telemetry"]);
    only_in("SystemTime", &["clock.rs"]);
    only_in("x509_cert::", &["certificate.rs"]);
    only_in("hyper_rustls::", &["https.rs"]);
    only_in("use parquet::", &["evaluate/source/", "stored/parquet.rs"]);
    only_in(
        "unsafe {",
        &["engine/prefetch.rs", "ingest/wire/block.rs", "kafka/"],
    );
}

/// The macros panic if the output cannot be written, but a daemon must continue.
#[test]
fn nothing_is_printed_by_macros_that_panic() {
    let is_of_tests = |name: &str| name.contains("tests");
    for print in ["println!", "eprintln!", "print!(", "eprint!("] {
        assert_eq!(mentions(print, is_of_tests), Vec::<String>::new());
    }
}

#[test]
fn only_the_composition_root_knows_everyone() {
    let others = |name: &str| {
        ["app.rs", "demo.rs", "main.rs", "lib.rs", "worker/"]
            .iter()
            .any(|may| name.starts_with(may))
    };
    assert_eq!(mentions("crate::tidy::worker", others), Vec::<String>::new());
    // Nothing that the webhook could block uses it. `check` only validates its files.
    let of_webhook = |name: &str| others(name) || name.starts_with("webhook") || name == "check.rs";
    assert_eq!(mentions("crate::tidy::webhook", of_webhook), Vec::<String>::new());
    assert_eq!(mentions("crate::tidy::app", others), Vec::<String>::new());
}

#[test]
fn there_are_no_globals() {
    let allocator = |name: &str| name == "main.rs";
    assert_eq!(
        mentions("static ", allocator)
            .into_iter()
            .filter(|line| is_static_item(line))
            .collect::<Vec<_>>(),
        Vec::<String>::new()
    );
    assert_eq!(mentions("thread_local!", allocator), Vec::<String>::new());
}

fn is_static_item(line: &str) -> bool {
    let code = line.split_once(": ").map_or("", |(_, code)| code);
    ["static ", "pub static ", "pub(crate) static "]
        .iter()
        .any(|item| code.starts_with(item))
}
