//! Commands in the documents' `sh` blocks are run by bash as written. Exceptions are listed below with a reason, and the
//! names in them are checked instead.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use abgauge::tools::cli::Cli;
use clap::Parser as _;
use tempfile::TempDir;

use crate::support::program::{Ran, file, temporary_dir};

/// Check for a command that is not run.
enum Look {
    /// The program accepts the arguments.
    Arguments,
    /// Cargo accepts the flags, and the target exists.
    Cargo,
    /// The fuzz target, and the files and directories given to it, exist.
    Fuzzing,
    /// Bash parses our script, and the script accepts the flags.
    Script,
    /// The services exist in docker-compose.yml.
    Compose,
    /// The directory contains a kustomization.
    Kustomization,
    /// The file is a manifest.
    Manifest,
    /// The Debian package installs the files.
    Package,
    Nothing,
}

/// Prefix of each command that is not run, the reason, and the check instead.
const NOT_RUN: [(&str, &str, Look); 43] = [
    (
        "cargo demo",
        "builds for minutes; tests/program/demo.rs runs the demo",
        Look::Arguments,
    ),
    (
        "cargo run --release --example",
        "builds for minutes; tests/core/statistics/ holds what it prints",
        Look::Cargo,
    ),
    (
        "cargo install --locked --profile dist --path .",
        "builds for minutes",
        Look::Cargo,
    ),
    ("cargo install cargo-fuzz", "brings another program", Look::Cargo),
    ("cargo test", "is what runs this", Look::Cargo),
    ("cargo bench", "measures for minutes, or for hours", Look::Cargo),
    (
        "cargo +nightly fuzz",
        "needs nightly Rust, and fuzzes for minutes",
        Look::Fuzzing,
    ),
    (
        "LDFLAGS=-fsanitize=address cargo +nightly fuzz",
        "the same",
        Look::Fuzzing,
    ),
    ("RUSTFLAGS=", "builds for minutes", Look::Cargo),
    ("MIRIFLAGS=", "needs nightly Rust", Look::Cargo),
    (
        "mkdir /tmp/corpus",
        "makes room for what the fuzzer keeps",
        Look::Nothing,
    ),
    ("tests/run", "is what runs this", Look::Script),
    (
        "ABGAUGE_CHAOS_ROUNDS=24 tests/run",
        "brings faults about for minutes",
        Look::Script,
    ),
    (
        "ABGAUGE_FAULTS=200 ABGAUGE_FAULTS_RUNS=docs/recovery-runs.md tests/run",
        "the same, of stored state",
        Look::Script,
    ),
    (".ci/run", "runs what runs this", Look::Script),
    (
        ".ci/pictures",
        "writes where this reads; .ci/book holds it",
        Look::Script,
    ),
    (
        ".ci/instructions",
        "builds, and counts for minutes; .ci/run runs it",
        Look::Script,
    ),
    (
        "benches/peers/run",
        "brings packages and measures for minutes",
        Look::Script,
    ),
    (
        "ABGAUGE=/usr/bin/abgauge benches/peers/run",
        "the same",
        Look::Script,
    ),
    (
        "python3.13 tests/data/sources/sources.py",
        "installs packages for minutes, by a newer Python",
        Look::Nothing,
    ),
    ("deploy/debian/build", "builds for minutes", Look::Script),
    ("deploy/release", "builds for minutes", Look::Script),
    ("tests/compose/run", "starts containers, as root", Look::Script),
    ("sudo deploy/debian/try", "needs root and a package", Look::Script),
    ("sudo apt install", "changes the machine, as root", Look::Package),
    ("sudoedit", "changes the machine, as root", Look::Package),
    ("sudo systemctl", "changes the machine, as root", Look::Package),
    ("docker compose", "needs Docker", Look::Compose),
    (
        "kubectl apply --kustomize",
        "needs a cluster",
        Look::Kustomization,
    ),
    ("kubectl apply --filename", "needs a cluster", Look::Manifest),
    (
        "kafka-configs.sh",
        "needs Kafka's programs and a broker",
        Look::Nothing,
    ),
    ("kafka-transactions.sh", "the same", Look::Nothing),
    (
        "printf '%s \\n' 'KEY' | kcat",
        "needs a broker; tests/faults/stored/unsurpassable.rs runs it with a real one",
        Look::Nothing,
    ),
    ("openssl s_client", "needs a broker", Look::Nothing),
    (
        "jq ",
        "needs jq; tests/evaluate/recipes.rs runs the scripts",
        Look::Nothing,
    ),
    (
        "abgauge check --connect",
        "needs brokers; tests/services/check.rs asks real ones",
        Look::Arguments,
    ),
    (
        "abgauge catalog build --from-kafka",
        "needs brokers; tests/services/check.rs reads real ones",
        Look::Arguments,
    ),
    (
        "abgauge evaluate --lists",
        "needs files of one kind; tests/evaluate/tables.rs has some",
        Look::Arguments,
    ),
    (
        "abgauge evaluate events.jsonl --where",
        "needs lists with these fields; tests/evaluate/groups.rs has some",
        Look::Arguments,
    ),
    (
        "abgauge plan --from",
        "needs a daemon; tests/evaluate/asked.rs asks what stands for one, tests/faults/looks.rs a real one",
        Look::Arguments,
    ),
    (
        "abgauge run",
        "needs brokers; tests/services/live.rs runs it beside real ones",
        Look::Arguments,
    ),
    (
        "abgauge state",
        "needs brokers; tests/faults/stored.rs asks real ones",
        Look::Arguments,
    ),
    (
        "abgauge simulate --brokers",
        "needs brokers; tests/services/live.rs writes to real ones",
        Look::Arguments,
    ),
];

fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

fn read(relative: &str) -> String {
    fs::read_to_string(path(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"))
}

/// Returns the documents with commands for readers.
fn documents() -> Vec<String> {
    let listed = fs::read_dir(path("docs")).expect("docs can be listed");
    let names = listed.map(|entry| entry.expect("it can be read").file_name().into_string());
    let mut documents: Vec<String> = names
        .map(|name| format!("docs/{}", name.expect("UTF-8")))
        .filter(|name| name.ends_with(".md"))
        .collect();
    documents.sort();
    let others = ["README.md", "CONTRIBUTING.md", "benches/peers/README.md"];
    others.map(str::to_owned).into_iter().chain(documents).collect()
}

/// Returns the `sh` blocks of a document.
fn blocks(document: &str) -> Vec<String> {
    let text = read(document);
    // Every other part between fences is code that starts with its language.
    let codes = text.split("\n```").skip(1).step_by(2);
    codes
        .filter_map(|code| code.strip_prefix("sh\n").map(str::to_owned))
        .collect()
}

/// Returns the commands of a document, each on one line, without comments.
fn commands(document: &str) -> Vec<String> {
    let lines = |block: String| -> Vec<String> {
        let joined = block.replace("\\\n", " ");
        joined.lines().map(str::to_owned).collect()
    };
    let command = |line: String| {
        let command = line.split(" #").next().unwrap_or_default();
        let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
        (!command.is_empty() && !command.starts_with('#')).then_some(command)
    };
    blocks(document)
        .into_iter()
        .flat_map(lines)
        .filter_map(command)
        .collect()
}

/// Returns the longest exception that matches a command.
fn exception(command: &str) -> Option<&'static (&'static str, &'static str, Look)> {
    let fits = |(begin, ..): &&(&str, &str, Look)| command.starts_with(begin);
    NOT_RUN.iter().filter(fits).max_by_key(|(begin, ..)| begin.len())
}

#[test]
fn every_block_is_valid_bash() {
    let mut n_blocks = 0;
    for document in documents() {
        for block in blocks(&document) {
            let output = Command::new("bash").args(["-n", "-c", &block]).output();
            let ran: Ran = output.expect("bash starts").into();
            assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{document}: {block}");
            n_blocks += 1;
        }
    }
    assert!(n_blocks >= 20, "{n_blocks}");
}

/// Working directory of a reader who types the commands of one document.
struct Reader {
    dir: TempDir,
}

impl Reader {
    /// Prepares our program and the files that examples assume: events, a catalogue, and a configuration unless the document
    /// creates one.
    fn of(commands: &[String]) -> Reader {
        let dir = temporary_dir();
        let programs = dir.path().join("bin");
        fs::create_dir(&programs).expect("a directory");
        symlink(env!("CARGO_BIN_EXE_abgauge"), programs.join("abgauge")).expect("a link");
        if Command::new("openssl").arg("version").output().is_err() {
            // `openssl` is the only program in the examples that is neither ours nor part of bash.
            let stand_in = programs.join("openssl");
            fs::write(
                &stand_in,
                "#!/bin/sh\nod -An -tx1 -N32 /dev/urandom | tr -d ' \\n'; echo\n",
            )
            .expect("a file");
            fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).expect("ours");
        }
        fs::create_dir(dir.path().join("home")).expect("a directory");
        file(&dir, "events.jsonl", &events());
        file(&dir, "items.jsonl", &items());
        // These tables look like the output of a notebook.
        let recommended = "user_id,item_id,score,model\n7,i5,0.9,als\n7,i2,0.4,als\n8,i5,0.7,als\n";
        for name in ["als.csv", "popular.csv", "all.csv"] {
            file(&dir, name, recommended);
        }
        file(&dir, "test.csv", "user_id,item_id\n7,i2\n8,i9\n");
        file(&dir, "judged.csv", "user_id,item_id,rating\n7,i2,5\n8,i9,0\n");
        if !commands.iter().any(|command| command == "abgauge config init") {
            file(&dir, "abgauge.toml", &read("config/abgauge.toml"));
        }
        Reader { dir }
    }

    fn types(&self, command: &str) -> Output {
        let programs = self.dir.path().join("bin");
        let found = std::env::var("PATH").expect("a PATH");
        let mut bash = Command::new("bash");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ABGAUGE_") {
                bash.env_remove(name);
            }
        }
        bash.args(["-euo", "pipefail", "-c", command])
            .env("PATH", format!("{}:{found}", programs.display()))
            .env("HOME", self.dir.path().join("home"))
            .env("EDITOR", "test -s")
            .current_dir(self.dir.path());
        let mut bash = assert_cmd::Command::from_std(bash);
        bash.write_stdin("correct horse battery staple\n");
        bash.output().expect("bash starts")
    }
}

/// Returns the events of docs/example.jsonl, and a copy for a control.
fn events() -> String {
    let neural = read("docs/example.jsonl");
    let control = neural
        .replace("\"neural\"", "\"control\"")
        .replace("\"r-", "\"c-");
    neural + &control
}

/// Returns a catalogue of their items.
fn items() -> String {
    let events = events();
    let events = events
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let items: BTreeSet<String> = events
        .flat_map(|event| event["items"].as_array().cloned().unwrap_or_default())
        .map(|item| item.to_string())
        .collect();
    let line =
        |item: &String| format!("{{\"item\":{item},\"aspects\":[\"a\"],\"users\":1,\"of_users\":4}}\n");
    items.iter().map(line).collect()
}

#[test]
fn commands_without_an_exception_succeed() {
    let mut n_run = 0;
    for document in documents() {
        let commands = commands(&document);
        let reader = Reader::of(&commands);
        for command in commands.iter().filter(|command| exception(command).is_none()) {
            let ran: Ran = reader.types(command).into();
            assert_eq!(
                ran.code,
                Some(0),
                "{document}: {command}: {}{}",
                ran.stdout,
                ran.stderr
            );
            assert!(
                !ran.stderr.contains("error"),
                "{document}: {command}: {}",
                ran.stderr
            );
            // The command has written its output file.
            if let Some((_, target)) = command.split_once("> ") {
                let target = target.replace('~', "home");
                let written = fs::metadata(reader.dir.path().join(target)).expect(command);
                assert!(written.len() > 0, "{document}: {command}");
            }
            n_run += 1;
        }
    }
    assert!(n_run >= 20, "{n_run}");
}

#[test]
fn exceptions_match_existing_commands() {
    let mut used = BTreeSet::new();
    for document in documents() {
        for command in commands(&document) {
            if let Some((begin, _, look)) = exception(&command) {
                used.insert(*begin);
                look.at(&command);
            }
        }
    }
    for (begin, ..) in &NOT_RUN {
        assert!(used.contains(begin), "no document has `{begin}`");
    }
}

impl Look {
    #[track_caller]
    fn at(&self, command: &str) {
        let words: Vec<&str> = command.split(' ').collect();
        match self {
            Look::Arguments => look_at_arguments(command),
            Look::Cargo => look_at_cargo(command, &words),
            Look::Fuzzing => look_at_fuzzing(command, &words),
            Look::Script => look_at_script(command, &words),
            Look::Compose => look_at_compose(command, &words),
            Look::Kustomization => {
                let directory = words.last().expect("a word");
                assert!(path(directory).join("kustomization.yaml").exists(), "{command}");
            }
            Look::Manifest => {
                let manifest = fs::read_to_string(path(words.last().expect("a word")));
                let manifest = manifest.unwrap_or_else(|error| panic!("{command}: {error}"));
                assert!(manifest.contains("\napiVersion: "), "{command}");
            }
            Look::Package => look_at_package(command),
            Look::Nothing => {}
        }
    }
}

#[track_caller]
fn look_at_arguments(command: &str) {
    let arguments = match command.strip_prefix("cargo ") {
        Some(alias) => aliased(alias),
        None => command.strip_prefix("abgauge ").expect("our program").to_owned(),
    };
    let arguments = arguments.split(' ');
    if let Err(error) = Cli::try_parse_from(["abgauge"].into_iter().chain(arguments)) {
        panic!("{command}: {error}");
    }
}

/// Returns the arguments that an alias in .cargo/config.toml passes to our program, and checks its profile.
#[track_caller]
fn aliased(alias: &str) -> String {
    let config: toml::Table = read(".cargo/config.toml").parse().expect("TOML");
    let (name, more) = alias.split_once(' ').unwrap_or((alias, ""));
    let command = config["alias"][name].as_str().expect("an alias");
    let (of_cargo, ours) = command.split_once(" -- ").expect("it passes arguments on");
    let profile = of_cargo.split_once("--profile ").expect("a profile").1;
    let profile = profile.split(' ').next().expect("a name");
    assert!(
        read("Cargo.toml").contains(&format!("\n[profile.{profile}]\n")),
        "{alias}: no profile {profile}"
    );
    format!("{ours} {more}").trim_end().to_owned()
}

/// Checks cargo's long flags against its help, and then the bench and its arguments.
#[track_caller]
fn look_at_cargo(command: &str, words: &[&str]) {
    let (of_cargo, behind) = match words.iter().position(|word| *word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &words[..0]),
    };
    let mut names = of_cargo
        .iter()
        .skip_while(|word| **word != "cargo")
        .skip(1)
        .filter(|word| !word.starts_with('+') && **word != "miri");
    let subcommand = names.next().expect("a subcommand");
    let output = Command::new("cargo").args([subcommand, "--help"]).output();
    let help = String::from_utf8(output.expect("cargo starts").stdout).expect("UTF-8");
    for flag in of_cargo.iter().filter(|word| word.starts_with("--")) {
        assert!(
            help.contains(&format!(" {flag}")),
            "{command}: cargo has no {flag}"
        );
    }
    if let Some(example) = of_cargo.iter().position(|word| *word == "--example") {
        let source = format!("examples/{}.rs", of_cargo[example + 1]);
        assert!(path(&source).exists(), "{command}: no {source}");
    }
    let Some(bench) = of_cargo.iter().position(|word| *word == "--bench") else {
        return;
    };
    let bench = of_cargo[bench + 1];
    assert!(
        read("Cargo.toml").contains(&format!("[[bench]]\nname = \"{bench}\"")),
        "{command}: no bench {bench}"
    );
    if let Some((figure, flags)) = behind.split_first() {
        let sources = fs::read_dir(path(&format!("benches/{bench}"))).expect(bench);
        let sources: String = sources
            .map(|source| fs::read_to_string(source.expect(bench).path()).expect(bench))
            .collect();
        let words = figure.split('-');
        let variant: String = words.map(|word| word[..1].to_uppercase() + &word[1..]).collect();
        assert!(
            sources.contains(&format!("    {variant}")),
            "{command}: no {figure}"
        );
        for flag in flags.iter().filter_map(|word| word.strip_prefix("--")) {
            let field = format!("{}:", flag.replace('-', "_"));
            assert!(sources.contains(&field), "{command}: no --{flag}");
        }
    }
}

#[track_caller]
fn look_at_fuzzing(command: &str, words: &[&str]) {
    let manifest = read("fuzz/Cargo.toml");
    let known = |word: &&&str| manifest.contains(&format!("[[bin]]\nname = \"{word}\""));
    assert_eq!(words.iter().filter(known).count(), 1, "{command}: no such target");
    let given = words.iter().filter_map(|word| word.strip_prefix("-dict="));
    let read_from = words
        .iter()
        .filter(|word| word.starts_with("tests/") || word.starts_with("fuzz/seeds/"));
    for file in given.chain(read_from.copied()) {
        assert!(path(file).exists(), "{command}: no {file}");
    }
}

#[track_caller]
fn look_at_script(command: &str, words: &[&str]) {
    let at = words
        .iter()
        .position(|word| word.contains('/') && !word.contains('='));
    let (script, flags) = words[at.expect("a script")..].split_first().expect("a script");
    let mode = fs::metadata(path(script)).expect(script).permissions().mode();
    assert_eq!(mode & 0o111, 0o111, "{script} is not executable");
    let text = read(script);
    if text.starts_with("#!/usr/bin/env bash") {
        let parsed = Command::new("bash").arg("-n").arg(path(script)).status();
        assert!(parsed.expect("bash starts").success(), "{script}");
    }
    for flag in flags.iter().filter(|word| word.starts_with("--")) {
        assert!(text.contains(*flag), "{command}: {script} knows no {flag}");
    }
}

#[track_caller]
fn look_at_compose(command: &str, words: &[&str]) {
    let compose: serde_json::Value =
        serde_saphyr::from_str(&read("docker-compose.yml")).expect("docker-compose.yml is YAML");
    let named = words[3..].iter().filter(|word| !word.starts_with('-'));
    for service in named {
        assert!(
            compose["services"][service].is_object(),
            "{command}: no {service}"
        );
    }
}

#[track_caller]
fn look_at_package(command: &str) {
    let manifest: toml::Table = read("Cargo.toml").parse().expect("TOML");
    let deb = &manifest["package"]["metadata"]["deb"];
    let last = command.split(' ').next_back().expect("a word");
    match last {
        "abgauge" => assert_eq!(
            deb["systemd-units"]["unit-name"].as_str(),
            Some(last),
            "{command}"
        ),
        "./target/debian/*.deb" => assert!(
            read("deploy/debian/build").contains("target/debian/"),
            "{command}"
        ),
        file => {
            let kept = deb["conf-files"].as_array().expect("conf-files");
            assert!(kept.iter().any(|kept| kept.as_str() == Some(file)), "{command}");
        }
    }
}
