//! The commands that need no broker, as an operator types them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const EVENTS: &str = include_str!("data/lists-a.events.jsonl");
const EXPECTED: &str = include_str!("data/lists-a.expected.json");
const COMMANDS: [&str; 7] = [
    "run",
    "demo",
    "simulate",
    "evaluate",
    "check",
    "config",
    "completions",
];

/// What a command left behind.
struct Ran {
    code: Option<i32>,
    /// Results.
    stdout: String,
    /// Remarks and errors.
    stderr: String,
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

/// The program without any setting of ours in its environment.
fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_abgauge"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ABGAUGE_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Ran {
    program(arguments).output().expect("abgauge starts").into()
}

fn run_with_input(arguments: &[&str], input: &str) -> Ran {
    assert_cmd::Command::from_std(program(arguments))
        .write_stdin(input)
        .output()
        .expect("abgauge starts")
        .into()
}

/// Its results; it must succeed without a word on standard error.
#[track_caller]
fn quietly(arguments: &[&str]) -> String {
    let ran = run(arguments);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{arguments:?}");
    ran.stdout
}

fn file(dir: &TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = dir.path().join(name);
    std::fs::write(&path, text).expect("write a file");
    path.to_str().expect("UTF-8").to_owned()
}

fn temporary_dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory under target")
}

/// Short help is a screenful of one-liners, long help ends with examples that parse.
#[test]
fn every_command_helps() {
    for command in [&[][..]]
        .into_iter()
        .chain(COMMANDS.each_ref().map(std::slice::from_ref))
    {
        let short = quietly(&[command, &["-h"]].concat());
        let long = quietly(&[command, &["--help"]].concat());
        for help in [&short, &long] {
            assert!(help.contains("Usage: abgauge"), "{command:?}: {help}");
            let widest = help.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(100), "{command:?}: {help}");
        }
        if *command != ["config"] {
            assert!(long.contains("Examples:\n  "), "{command:?}: {long}");
        }
        assert!(!short.contains("Examples:"), "{command:?}: {short}");
    }
    for command in COMMANDS {
        assert!(quietly(&["-h"]).contains(command));
    }
}

#[test]
fn examples_in_the_help_are_commands_of_the_program() {
    use clap::Parser as _;
    let mut n_examples = 0;
    for command in COMMANDS {
        let help = quietly(&[command, "--help"]);
        let examples = help
            .split_once("Examples:\n")
            .map_or("", |(_, examples)| examples);
        for line in examples.lines().filter(|line| line.contains("abgauge ")) {
            // A pipe has two; what follows two spaces or an arrow is not the command's.
            for part in line.split(" | ").filter_map(|part| part.split_once("abgauge ")) {
                let words = part.1.split("  ").next().and_then(|it| it.split(" > ").next());
                let words = words.expect("a first part").split(' ');
                if let Err(error) = abgauge::cli::Cli::try_parse_from(["abgauge"].into_iter().chain(words)) {
                    panic!("{line}: {error}");
                }
                n_examples += 1;
            }
        }
    }
    assert!(n_examples >= 15, "{n_examples}");
}

#[test]
fn the_version_is_the_packages() {
    assert_eq!(
        quietly(&["--version"]),
        concat!("abgauge ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn wrong_usage_is_told_on_standard_error() {
    for (arguments, told) in [
        (&["evaluat"][..], "similar subcommand exists: 'evaluate'"),
        (&["evaluate"], "<FILE>"),
        (&["evaluate", "x", "--k", "0"], "--k"),
        (&["evaluate", "x", "--attribution", "5"], "such as 30s, 5m"),
        (&["demo", "--rate", "0"], "from 0.1 to 20000"),
        (
            &["simulate", "--brokers", "b:1", "--output", "-"],
            "cannot be used with",
        ),
        (&["simulate", "--create-topics"], "--brokers"),
        (&["completions", "tcsh"], "bash"),
    ] {
        let ran = run(arguments);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{arguments:?}");
        assert!(ran.stderr.contains(told), "{arguments:?}: {}", ran.stderr);
    }
}

/// RePlay's hit rate and MRR and Jurity's CTR, at each k and over the whole list.
#[test]
fn evaluate_gives_what_other_packages_compute() {
    let dir = temporary_dir();
    let path = file(&dir, "lists-a.jsonl", EVENTS);
    let ran = run(&["evaluate", &path, "--k", "1,2,3,5,10,20", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let expected: BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>> =
        serde_json::from_str(EXPECTED).expect("JSON");
    let mut n_compared = 0;
    for (arm, values) in &expected["default"] {
        let ours = &json["experiments"]["ranker"]["arms"][arm]["metrics"];
        let is_ours = |key: &str| ["hit_rate", "ctr", "mrr"].contains(&key.split('@').next().unwrap_or(key));
        for (key, value) in values.iter().filter(|(key, _)| is_ours(key)) {
            let our = ours[key].as_f64().unwrap_or_else(|| panic!("{arm} has no {key}"));
            assert!((our - value).abs() < 1e-9, "{arm} {key}: {our}, not {value}");
            n_compared += 1;
        }
    }
    assert_eq!(
        n_compared,
        3 * 3 * 7,
        "three arms, three metrics, six k and the whole list"
    );
}

#[test]
fn evaluate_does_not_mind_the_order_of_lines_nor_where_they_come_from() {
    let dir = temporary_dir();
    let in_order = run(&["evaluate", &file(&dir, "a", EVENTS), "--format", "json"]).stdout;
    assert!(in_order.contains("\"neural\""), "{in_order}");

    let lines: Vec<&str> = EVENTS.lines().collect();
    let (clicks, lists): (Vec<&str>, Vec<&str>) = lines.iter().partition(|line| line.contains("\"click\""));
    assert!(!clicks.is_empty() && !lists.is_empty());
    // A step coprime to the length visits every line once.
    let shuffled = (0..lines.len()).map(|i| lines[i * 1009 % lines.len()]);
    let shuffled: Vec<&str> = shuffled.collect();
    assert_ne!(lines.len() % 1009, 0);

    for order in [[clicks.clone(), lists.clone()].concat(), shuffled] {
        let from_stdin = run_with_input(&["evaluate", "-", "--format", "json"], &order.join("\n"));
        assert_eq!(from_stdin.code, Some(0), "{}", from_stdin.stderr);
        assert_eq!(from_stdin.stdout, in_order);
    }
    let [clicks, lists] = [clicks, lists].map(|lines| lines.join("\n"));
    let files = [file(&dir, "clicks", &clicks), file(&dir, "lists", &lists)];
    let from_two = run(&["evaluate", &files[0], &files[1], "--format", "json"]);
    assert_eq!(from_two.stdout, in_order);
}

const LIST: &str = r#"{"type":"served","request_id":"r","user_id":"u","ts":1763596800000,"experiments":{"e":"a"},"items":["i","j"]}"#;
const CLICK: &str = r#"{"type":"click","request_id":"r","ts":1763596800001,"item":"j"}"#;

#[test]
fn evaluate_prints_the_arms_of_an_experiment_side_by_side() {
    let other = LIST.replace("\"a\"", "\"b\"").replace("\"r\"", "\"s\"");
    let ran = run_with_input(
        &["evaluate", "-", "--k", "1"],
        &format!("{LIST}\n{CLICK}\n\n{other}\n"),
    );
    assert_eq!(
        (ran.code, &*ran.stderr, &*ran.stdout),
        (
            Some(0),
            "",
            " e                 a        b
──────────────────────────────
 lists             1        1
 clicks            1        0
 hit_rate@1   0.0000   0.0000
 hit_rate     1.0000   0.0000
 ctr@1        0.0000   0.0000
 ctr          0.5000   0.0000
 mrr@1        0.0000   0.0000
 mrr          0.5000   0.0000
"
        )
    );
}

#[test]
fn evaluate_counts_what_it_leaves_out_by_reason_and_place() {
    let lines = [
        LIST,
        "{",
        CLICK,
        "",
        "nor this",
        r#"{"type":"served"}"#,
        "[]",
        "!",
        "!",
        r#"{"type":"view"}"#,
        LIST,
        r#"{"request_id":"r","ts":1763596800001,"item":"j"}"#,
    ];
    let ran = run_with_input(&["evaluate", "-", "--format", "json"], &lines.join("\n"));
    assert_eq!(ran.code, Some(0));
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(json["experiments"]["e"]["arms"]["a"]["metrics"]["hit_rate"], 1.0);
    for told in [
        "not_json: 4 (-:2, -:5, -:8, …)",
        "missing_field: 2 (-:6, -:12)",
        "wrong_type: 1 (-:7)",
        "of another type, ignored: 1",
        "came again, counted once: 1",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
}

#[test]
fn evaluate_names_a_file_that_is_absent_and_says_when_there_is_nothing() {
    let absent = run(&["evaluate", "no/such/file.jsonl"]);
    assert_eq!((absent.code, &*absent.stdout), (Some(1), ""));
    assert!(
        absent.stderr.contains("error: open no/such/file.jsonl: "),
        "{}",
        absent.stderr
    );

    let empty = run_with_input(&["evaluate", "-"], "");
    assert_eq!((empty.code, &*empty.stdout), (Some(0), ""));
    assert!(empty.stderr.contains("no served list"), "{}", empty.stderr);
    let empty = run_with_input(&["evaluate", "-", "--format", "json"], "");
    assert_eq!((empty.code, &*empty.stdout), (Some(0), "{\"experiments\":{}}\n"));
}

#[test]
fn the_printed_configuration_is_a_configuration() {
    let dir = temporary_dir();
    let path = file(&dir, "abgauge.toml", &quietly(&["config"]));
    assert!(quietly(&["check", "--config", &path]).contains("the configuration is valid"));
}

#[test]
fn check_says_where_and_what_to_write_instead() {
    let dir = temporary_dir();
    let run_here = |command: &str, config: &str| -> Ran {
        let mut command = program(&[command, "--config", config]);
        let output = command.current_dir(dir.path()).output();
        output.expect("abgauge starts").into()
    };
    file(
        &dir,
        "abgauge.toml",
        "[kafka]\nbrokers = \"kafka:9092\"\nbrokrs = \"x\"\n[join]\nattribution = \"30 parsecs\"\n",
    );
    for command in ["check", "run"] {
        let ran = run_here(command, "abgauge.toml");
        assert_eq!((ran.code, &*ran.stdout), (Some(78), ""), "{command}");
        for told in [
            "the configuration (abgauge.toml) has 2 errors",
            "kafka.brokrs: there is no such setting",
            "abgauge.toml:3:1",
            "did you mean `brokers`?",
            "join.attribution: ",
            "abgauge.toml:5:15",
            "\"500ms\", \"30s\"",
        ] {
            assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
        }
    }
    file(&dir, "broken.toml", "[kafka\n");
    for (config, told) in [("broken.toml", "broken.toml:1:"), ("absent.toml", "absent.toml")] {
        let ran = run_here("check", config);
        assert_eq!((ran.code, &*ran.stdout), (Some(78), ""), "{config}");
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
}

#[test]
fn environment_variables_override_settings_and_must_exist() {
    let check = |name: &str, value: &str| -> Ran {
        let mut command = program(&["check"]);
        command
            .env("ABGAUGE_KAFKA__BROKERS", "kafka:9092")
            .env(name, value);
        command.output().expect("abgauge starts").into()
    };
    assert_eq!(check("ABGAUGE_JOIN__ATTRIBUTION", "1h").code, Some(0));
    for (name, told) in [
        (
            "ABGAUGE_JOIN__ATTRIBUTON",
            "did you mean ABGAUGE_JOIN__ATTRIBUTION?",
        ),
        ("ABGAUGE_JOIN__ATTRIBUTION", "ABGAUGE_JOIN__ATTRIBUTION"),
    ] {
        let ran = check(name, "much");
        assert_eq!((ran.code, &*ran.stdout), (Some(78), ""), "{name}");
        assert!(ran.stderr.contains(told), "{name}: {}", ran.stderr);
    }
}

#[test]
fn simulated_traffic_is_the_same_for_the_same_seed_and_can_be_evaluated() {
    let simulate = |seed: &str| {
        let ran = run(&["simulate", "--output", "-", "--duration", "5s", "--seed", seed]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains(" lists, "), "{}", ran.stderr);
        ran.stdout
    };
    let traffic = simulate("3");
    assert!(traffic.lines().count() > 200, "{}", traffic.lines().count());
    assert_eq!(traffic, simulate("3"));
    assert_ne!(traffic, simulate("4"));

    let ran = run_with_input(&["evaluate", "-", "--format", "json"], &traffic);
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let arms = |experiment: &str| {
        json["experiments"][experiment]["arms"]
            .as_object()
            .map(|arms| arms.len())
    };
    assert_eq!(
        (arms("ranker"), arms("layout")),
        (Some(3), Some(2)),
        "{}",
        ran.stdout
    );
}

#[test]
fn simulate_says_what_it_lacks() {
    for (arguments, told) in [
        (&["simulate"][..], "give --brokers HOST:PORT, or --output FILE"),
        (&["simulate", "--output", "endless"], "give --duration"),
        (
            &["simulate", "--output", "no/such/dir/x", "--duration", "1s"],
            "write no/such/dir/x",
        ),
    ] {
        let ran = run(arguments);
        assert_eq!((ran.code, &*ran.stdout), (Some(1), ""), "{arguments:?}");
        assert!(ran.stderr.contains(told), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = quietly(&["completions", shell]);
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

/// What `head` does once it has seen enough.
#[test]
fn a_reader_that_stops_early_is_no_failure() {
    let dir = temporary_dir();
    let events = file(&dir, "events.jsonl", EVENTS);
    let configuration = file(&dir, "abgauge.toml", &quietly(&["config"]));
    for arguments in [
        &["config"][..],
        &["completions", "bash"],
        &["evaluate", &events],
        &["evaluate", &events, "--format", "json"],
        &["simulate", "--output", "-"],
        &["check", "--config", &configuration],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = program(arguments).stdout(writer).stderr(Stdio::piped()).output();
        let ran: Ran = output.expect("abgauge starts").into();
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        for word in ["panicked", "error", "roken pipe"] {
            assert!(!ran.stderr.contains(word), "{arguments:?}: {}", ran.stderr);
        }
    }
}

/// No escape sequences where nobody sees colours.
#[test]
fn output_into_a_file_is_plain() {
    for arguments in [
        &["--help"][..],
        &["evaluate", "absent"],
        &["check"],
        &["evaluate", "--k"],
    ] {
        let ran = run(arguments);
        for text in [ran.stdout, ran.stderr] {
            assert!(!text.contains('\x1b'), "{arguments:?}: {text}");
        }
    }
}
