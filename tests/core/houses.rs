//! The order of the modules: each may use later ones, but no earlier one.

use std::fs;
use std::path::{Path, PathBuf};

/// First-level modules, in the order in which they may use each other.
const HOUSES: [&str; 8] = [
    "run", "tools", "serve", "stream", "store", "board", "https", "settings",
];
/// Modules that every house may use, and that use none.
const OPEN_TO_ALL: [&str; 3] = ["clock", "telemetry", "logging"];

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

/// Returns the lines of code of a file.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim_start)
        .filter(|line| !line.starts_with("//"))
}

/// Returns the first-level modules that a line names.
fn modules_of(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::").skip(1).map(|rest| {
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        &rest[..end]
    })
}

fn rank(module: &str) -> usize {
    HOUSES
        .iter()
        .position(|house| *house == module)
        .unwrap_or(HOUSES.len())
}

#[test]
fn each_module_uses_only_later_ones() {
    let mut backward = Vec::new();
    let mut n_arrows = 0;
    for (name, text) in sources() {
        if name.starts_with("core/") || name == "lib.rs" || name == "main.rs" {
            continue;
        }
        let own = name.split(['/', '.']).next().expect("a name");
        assert!(
            HOUSES.contains(&own) || OPEN_TO_ALL.contains(&own),
            "{name} is in no house"
        );
        for line in code(&text) {
            for module in modules_of(line).filter(|module| *module != own) {
                n_arrows += 1;
                if !OPEN_TO_ALL.contains(&module) && rank(module) <= rank(own) {
                    backward.push(format!("{name}: {line}"));
                }
            }
        }
    }
    assert_eq!(backward, Vec::<String>::new());
    assert!(
        n_arrows > 100,
        "the test found {n_arrows} uses, so it misses some"
    );
}

/// Asserts that code mentions `what` only in these files.
#[track_caller]
fn only_in(what: &str, homes: &[&str]) {
    let (mut at_home, mut elsewhere) = (0, Vec::new());
    for (name, text) in sources() {
        let lines = code(&text).filter(|line| line.contains(what));
        match homes.iter().any(|home| name.starts_with(home)) {
            true => at_home += lines.count(),
            false => elsewhere.extend(lines.map(|line| format!("{name}: {line}"))),
        }
    }
    assert_eq!(
        elsewhere,
        Vec::<String>::new(),
        "`{what}` belongs into {homes:?} only"
    );
    assert!(at_home > 0, "`{what}` is nowhere: the rule guards nothing");
}

#[test]
fn each_external_dependency_has_one_home() {
    only_in("rdkafka::", &["stream/kafka/"]);
    only_in("dashmap", &["board.rs"]);
    only_in("use prometheus", &["telemetry"]);
    only_in("SystemTime", &["clock.rs"]);
    only_in("x509_cert::", &["serve/certificate.rs"]);
    only_in("hyper_rustls::", &["https.rs"]);
    only_in(
        "use parquet::",
        &[
            "core/evaluate/source/",
            "core/parquet_file.rs",
            "store/stored/parquet.rs",
        ],
    );
    only_in(
        "unsafe {",
        &["core/engine/prefetch.rs", "core/decode/block.rs", "stream/kafka/"],
    );
}

/// The manifest of the core crate keeps out runtimes and loggers. Clocks and files are in the standard library.
#[test]
fn the_core_reads_no_clock_and_no_file() {
    for (name, text) in sources() {
        let is_evaluate = name.starts_with("core/evaluate") || name.contains("tests");
        if !name.starts_with("core/") || is_evaluate {
            continue;
        }
        for line in code(&text) {
            for outside in ["Instant", "SystemTime", "std::fs", "std::net", "std::env"] {
                assert!(!line.contains(outside), "{name}: {line}");
            }
        }
    }
}

/// The macros panic if the output cannot be written, but a daemon must continue.
#[test]
fn no_macro_that_panics_prints_output() {
    for (name, text) in sources() {
        for line in code(&text).filter(|_| !name.contains("tests")) {
            for print in ["println!", "print!("] {
                assert!(!line.contains(print), "{name}: {line}");
            }
        }
    }
}

#[test]
fn there_are_no_globals() {
    for (name, text) in sources() {
        for line in code(&text).filter(|_| name != "main.rs") {
            let item = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            let is_global = item.starts_with("static ") || line.contains("thread_local!");
            assert!(!is_global, "{name}: {line}");
        }
    }
}
