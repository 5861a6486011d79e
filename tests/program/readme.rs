//! Checks of README.md and docs/: examples, events, settings, gauges, links.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroU32;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use abgauge::settings::Config;
use abgauge_core::decode::Decoder;
use abgauge_core::engine::event::{Batch, Body, Kind, Position, Side};
use abgauge_core::metrics::profile::CHOICES;
use abgauge_core::metrics::{METRICS, Measures, Ranking};
use tempfile::TempDir;

/// Returns README.md, CONTRIBUTING.md and all of docs/.
fn documents() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let listed = std::fs::read_dir(folder).expect("docs can be listed");
    let names = listed.map(|entry| entry.expect("it can be read").file_name());
    let mut documents: Vec<String> = names
        .map(|name| format!("docs/{}", name.to_str().expect("UTF-8")))
        .filter(|name| name.ends_with(".md"))
        .chain(["README.md", "CONTRIBUTING.md"].map(str::to_owned))
        .collect();
    documents.sort();
    documents
}

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns a document's code blocks in this language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let text = read(document);
    // Every other part between fences is code that starts with its language.
    let codes = text.split("\n```").skip(1).step_by(2);
    codes
        .filter_map(|code| code.strip_prefix(language)?.strip_prefix('\n'))
        .map(str::to_owned)
        .collect()
}

/// Returns the words of these characters that start with `prefix`, without final periods.
fn words(text: &str, prefix: &str, belongs: impl Fn(char) -> bool) -> BTreeSet<String> {
    text.split(|c| !belongs(c))
        .filter(|word| word.starts_with(prefix))
        .map(|word| word.trim_end_matches('.').to_owned())
        .collect()
}

#[test]
fn commands_print_the_documented_output() {
    let mut n_commands = 0;
    for document in documents() {
        for block in blocks(&document, "console") {
            let reader = Reader::new();
            for (command, shown) in typed(&block) {
                assert_eq!(reader.types(&command), shown, "{document}: {command}");
                n_commands += 1;
            }
        }
    }
    assert!(n_commands >= 5, "{n_commands}");
}

/// Returns the commands of a block, each with its expected output. A backslash continues a command on the next line.
fn typed(block: &str) -> Vec<(String, Vec<&str>)> {
    let mut typed: Vec<(String, Vec<&str>)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), typed.last_mut()) {
            (Some(command), _) => typed.push((command.to_owned(), Vec::new())),
            (None, Some((command, shown))) if shown.is_empty() && command.ends_with('\\') => {
                command.push('\n');
                command.push_str(line);
            }
            (None, Some((_, shown))) => shown.push(line),
            (None, None) => panic!("not a command: {line}"),
        }
    }
    typed
}

/// A shell in a directory with docs/, for the commands of a block.
struct Reader {
    dir: TempDir,
}

impl Reader {
    fn new() -> Reader {
        let dir = tempfile::tempdir().expect("a directory");
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        symlink(docs, dir.path().join("docs")).expect("a link");
        fs::create_dir(dir.path().join("bin")).expect("a directory");
        symlink(env!("CARGO_BIN_EXE_abgauge"), dir.path().join("bin/abgauge")).expect("a link");
        Reader { dir }
    }

    /// Runs a command and returns its output: remarks, then results.
    fn types(&self, command: &str) -> Vec<String> {
        let is_ours = command.starts_with("abgauge ") || command.contains("| abgauge ");
        assert!(is_ours, "not our command: {command}");
        let mut bash = Command::new("bash");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ABGAUGE_") {
                bash.env_remove(name);
            }
        }
        let found = std::env::var("PATH").expect("a PATH");
        let programs = self.dir.path().join("bin");
        let output = bash
            .args(["-euo", "pipefail", "-c", command])
            .env("PATH", format!("{}:{found}", programs.display()))
            .current_dir(self.dir.path())
            .output()
            .expect("bash starts");
        let printed = [output.stderr, output.stdout].map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
        let lines = printed.iter().flat_map(|text| text.lines());
        lines.map(|line| line.trim_end().to_owned()).collect()
    }
}

#[test]
fn the_example_events_are_readable() {
    let events = blocks("README.md", "json");
    let [list, click] = events.as_slice() else {
        panic!("not a list and a click: {events:?}");
    };
    let mut batch = Batch::default();
    for (event, kind) in [(list, Kind::Served), (click, Kind::Click)] {
        let at = Position {
            side: Side::Served,
            offset: 0,
            record_ts_ms: i64::MAX,
        };
        Decoder::new(0, 1000, 100).decode(Some(event.as_bytes()), Some(kind), at, &mut batch);
    }
    let bodies: Vec<&Body> = batch.events.iter().map(|event| &event.body).collect();
    let [Body::Served(list), Body::Click(click)] = bodies.as_slice() else {
        panic!("{bodies:?}");
    };
    assert_eq!(list.id, click.id);
    assert!(batch.items_of(list).contains(&click.item));
}

#[test]
fn gauges_and_counters_exist() {
    let names = read("tests/data/exported-names.tsv");
    let mut exported: BTreeSet<&str> = names.lines().filter_map(|line| line.split('\t').next()).collect();
    // This is not a gauge but the external label of Prometheus with which rules link to their runbooks.
    exported.insert("abgauge_runbooks:");
    for document in documents() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        for name in words(&read(&document), "abgauge_", is_word) {
            assert!(exported.contains(&*name), "{document}: {name} is not exported");
        }
    }
}

#[test]
fn settings_exist() {
    let mut known = BTreeSet::new();
    let mut section = "";
    for line in Config::default_toml()
        .lines()
        .map(|line| line.trim_start_matches('#'))
    {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
            known.insert(name.to_owned());
        } else if let Some((name, _)) = line.split_once(" = ") {
            known.insert(format!("{section}.{name}"));
        }
    }
    let sections = [
        "kafka",
        "events.served",
        "events.click",
        "join",
        "metrics",
        "export",
        "limits",
        "state",
        "http",
        "webhook",
        "log",
    ];
    for document in documents() {
        let text = read(&document);
        for section in sections {
            let is_word = |c: char| c.is_ascii_lowercase() || c == '_' || c == '.';
            for name in words(&text, &format!("{section}."), is_word) {
                // `kafka.Something` is from a Go package, and names of documents are not settings either.
                assert!(
                    name == section || name.ends_with(".md") || known.contains(&name),
                    "{document}: no setting {name}"
                );
            }
        }
        let is_word = |c: char| c.is_ascii_uppercase() || c == '_';
        for variable in words(&text, "ABGAUGE_", is_word)
            .iter()
            .filter(|name| name.contains("__"))
        {
            let name: Vec<_> = variable["ABGAUGE_".len()..].split("__").take(2).collect();
            let name = name.join(".").to_lowercase();
            assert!(known.contains(&name), "{document}: no setting for {variable}");
        }
    }
}

#[test]
fn every_metric_and_every_choice_is_documented() {
    let text = read("docs/metrics.md");
    for metric in METRICS {
        assert!(text.contains(&format!("\n| `{}` | ", metric.id)), "{}", metric.id);
    }
    for choice in CHOICES {
        assert!(
            text.contains(&format!("\n {} ", choice.setting)),
            "{}",
            choice.setting
        );
    }
}

/// The memory table is calculated from the number of sums.
#[test]
fn the_memory_table_has_the_right_number_of_sums() {
    let ks: Vec<NonZeroU32> = [1, 5, 10].into_iter().filter_map(NonZeroU32::new).collect();
    let width = Ranking::new(&Measures::usual(&ks)).width();
    assert_eq!(width, 3 + 7 * (ks.len() + 1));
    let text = read("docs/sizing.md").replace('\n', " ");
    let stated = format!("*w* = 3 + 7 × (number of k's + 1) sums ({width}) for the default metrics");
    assert!(text.contains(&stated), "{stated}");
}

#[test]
fn links_resolve() {
    let log = "benches/LOG.md".to_owned();
    for document in documents().into_iter().chain([log]) {
        let text = read(&document);
        let folder = Path::new(&document).parent().expect("a file has a folder");
        // Code may contain such brackets, too.
        let prose: String = text.split("\n```").step_by(2).collect();
        let targets = prose
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.starts_with("http")) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() {
                document.to_owned()
            } else {
                folder.join(file).display().to_string()
            };
            assert!(
                Path::new(env!("CARGO_MANIFEST_DIR")).join(&file).exists(),
                "{document}: no {file}"
            );
            let anchor = |line: &str| {
                line.trim_start_matches('#')
                    .trim()
                    .to_lowercase()
                    .replace(' ', "-")
            };
            let has_heading = || {
                read(&file)
                    .lines()
                    .any(|line| line.starts_with('#') && anchor(line) == heading)
            };
            assert!(heading.is_empty() || has_heading(), "{document}: no {target}");
        }
    }
}

/// Returns all of src/ as one text. String continuations are joined and quotes unescaped.
fn sources() -> String {
    fn gather(folder: &Path, all: &mut String) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                gather(&path, all);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                all.push_str(&std::fs::read_to_string(&path).expect("UTF-8"));
            }
        }
    }
    let mut all = String::new();
    gather(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
    let mut parts = all.split("\\\n");
    let mut joined = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| joined.push_str(part.trim_start()));
    joined.replace("\\\"", "\"")
}

#[test]
fn quoted_messages_and_named_tests_exist() {
    let sources = sources();
    let text = read("docs/quality.md");
    let (_, section) = text.split_once("\n## Messages\n").expect("the section");
    let rows = section.lines().skip_while(|line| !line.starts_with("| ")).skip(2);
    let mut n_messages = 0;
    for row in rows.take_while(|row| row.starts_with("| ")) {
        let cells: Vec<_> = row.split(" | ").collect();
        let [_, message, _, test] = cells[..] else {
            panic!("four cells: {row}");
        };
        let message = message.split('`').nth(1).expect("a message");
        for part in message.split('…').map(str::trim).filter(|part| part.len() > 3) {
            assert!(sources.contains(part), "{part:?} of {message:?}");
        }
        let files = test.split('`').filter(|path| path.ends_with(".rs"));
        for file in files.filter(|file| file.contains('/')) {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            assert!(path.exists(), "{file}");
        }
        n_messages += 1;
    }
    assert!(n_messages >= 20, "{n_messages}");
}
