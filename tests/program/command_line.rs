//! Commands that need no broker, as typed by an operator.

use std::process::Stdio;

use serde_json::Value;

use crate::support::program::{Ran, file, program, quietly, run, run_with_input, temporary_dir};

const EVENTS: &str = include_str!("../data/lists-a.events.jsonl");
const COMMANDS: [&str; 16] = [
    "run",
    "demo",
    "simulate",
    "evaluate",
    "convert",
    "catalog",
    "plan",
    "profiles",
    "health",
    "hash",
    "check",
    "state",
    "config",
    "completions",
    "man",
    "version",
];

/// Short help is one screen of one-line descriptions. Long help ends with examples that parse.
#[test]
fn every_command_has_help() {
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
        assert!(long.contains("Examples:\n  "), "{command:?}: {long}");
        assert!(!short.contains("Examples:"), "{command:?}: {short}");
    }
    for command in COMMANDS {
        assert!(quietly(&["-h"]).contains(command));
    }
}

#[test]
fn examples_in_the_help_are_valid_commands() {
    use clap::Parser as _;
    let mut n_examples = 0;
    for command in COMMANDS {
        let help = quietly(&[command, "--help"]);
        let examples = help
            .split_once("Examples:\n")
            .map_or("", |(_, examples)| examples);
        for line in examples.lines().filter(|line| line.contains("abgauge ")) {
            // A pipe contains two commands. Text behind two spaces or an arrow is not part of the command.
            for part in line.split(" | ").filter_map(|part| part.split_once("abgauge ")) {
                let words = part
                    .1
                    .split("  ")
                    .next()
                    .and_then(|it| it.split(['<', '>']).next());
                let words = words.expect("a first part").trim_end().split(' ');
                if let Err(error) =
                    abgauge::tools::cli::Cli::try_parse_from(["abgauge"].into_iter().chain(words))
                {
                    panic!("{line}: {error}");
                }
                n_examples += 1;
            }
        }
    }
    assert!(n_examples >= 15, "{n_examples}");
}

#[test]
fn the_version_matches_the_package() {
    assert_eq!(
        quietly(&["--version"]),
        concat!("abgauge ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn the_version_lists_compiler_commit_and_librdkafka() {
    assert_eq!(quietly(&["version"]), quietly(&["--version"]));
    let reported: Value = serde_json::from_str(&quietly(&["version", "--json"])).expect("JSON");
    assert_eq!(reported["version"], env!("CARGO_PKG_VERSION"));
    let rustc = reported["rustc"].as_str().expect("a compiler");
    assert!(rustc.starts_with("rustc 1."), "{rustc}");
    // Only a release build sets it.
    assert!(
        reported["commit"].is_null() || reported["commit"].is_string(),
        "{reported}"
    );
    let client = reported["librdkafka"].as_str().expect("a version");
    assert!(client.starts_with(|c: char| c.is_ascii_digit()), "{client}");
    assert_eq!(reported["kafka_tls"], cfg!(feature = "kafka-tls"));
    assert_eq!(reported["parquet"], cfg!(feature = "parquet"));
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = temporary_dir();
    let pages = dir.path().join("man1");
    quietly(&["man", "--dir", &pages.display().to_string()]);
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).expect(name);
    assert_eq!(page("abgauge.1"), quietly(&["man"]));
    for command in COMMANDS {
        let page = page(&format!("abgauge-{command}.1"));
        let titles = page.lines().filter_map(|line| line.strip_prefix(".SH "));
        let titles: Vec<_> = titles.map(|title| title.trim_matches('"')).collect();
        assert_eq!(titles[..3], ["NAME", "SYNOPSIS", "DESCRIPTION"], "{command}");
        for title in ["EXAMPLES", "SEE ALSO", "VERSION"] {
            assert!(titles.contains(&title), "{command}: {titles:?}");
        }
        assert!(!titles.contains(&"EXTRA"), "{command}: {titles:?}");
        // Lines of examples are not reflowed.
        assert!(
            page.contains(".nf\nabgauge ") || page.contains(".nf\nopenssl "),
            "{command}: {page}"
        );
    }
    assert!(page("abgauge-check.1").contains(".SH \"EXIT STATUS\"\n.nf\n 0  ready to start"));
    assert!(page("abgauge-config-show.1").contains("\\fBabgauge\\-config\\fR"));
}

#[test]
fn wrong_usage_is_reported_on_standard_error() {
    for (arguments, reported) in [
        (&["evaluat"][..], "'evaluate'"),
        (&["evaluate", "x", "--k", "0"], "--k"),
        (&["evaluate", "x", "--attribution", "5"], "such as 30s, 5m"),
        (&["demo", "--rate", "0"], "from 0.1 to 20000"),
        (
            &["simulate", "--brokers", "b:1", "--output", "-"],
            "cannot be used with",
        ),
        (&["simulate"], "<--brokers <HOST:PORT,…>|--output <FILE>>"),
        (&["simulate", "--create-topics"], "--brokers"),
        (
            &["evaluate", "x.jsonl", "--attribution", "-5m"],
            "write a whole number and a unit, such as 30s, 5m, 1h or 7d",
        ),
        (&["simulate", "--brokers", ""], "write HOST:PORT"),
        (
            &["simulate", "--brokers", "kafka:99999"],
            "\"99999\" is not a port",
        ),
        (
            &["simulate", "--brokers", "http://kafka:8082"],
            "http://kafka:8082 is an HTTP address: brokers speak Kafka's own protocol",
        ),
        (
            &["simulate", "--served-topic", "^a"],
            "1 to 249 of the characters",
        ),
        (&["simulate", "--rate", "0"], "from 0.00001 to 1000000"),
        (&["simulate", "--rate", "nan"], "from 0.00001 to 1000000"),
        (&["simulate", "--speed", "-1"], "from 0.00001 to 1000000"),
        (&["simulate", "--partitions", "0"], "from 1 to 10000"),
        (
            &["simulate", "--start", "1999-01-01T00:00:00Z"],
            "from September 2001",
        ),
        (&["demo", "--seed", "-1"], "a whole number from 0"),
        (&["demo", "--users", "0"], "from 1 to 1000000000"),
        (&["demo", "--shares", "control=0.5,neural=0.4"], "add up to 0.9"),
        (
            &["simulate", "--output", "-", "--shares", "neutral=1"],
            "'neutral=1' for '--shares <ARM=SHARE,…>': there is no arm \"neutral\": the arms are control, neural, blend, grid, carousel",
        ),
        (
            &["simulate", "--shares", "control"],
            "such as control=0.5,neural=0.5",
        ),
        (
            &["simulate", "--output", "-", "--effect", "grid=0.1"],
            "grid is the control of layout",
        ),
        (&["demo", "--arms", "ranker"], "such as ranker=control,a,b"),
        (&["demo", "--arms", "ranker=control"], "write at least two arms"),
        (&["demo", "--arms", "ranker=control,a,a"], "a is used twice"),
        (
            &["demo", "--arms", "ranker=control,a b"],
            "letters, digits, - and _",
        ),
        (
            &[
                "demo",
                "--arms",
                "ranker=2000",
                "--arms",
                "layout=grid,list",
                "--arms",
                "color=red,blue,green,white",
            ],
            "combinations of arms",
        ),
        (
            &["demo", "--arms", "ranker=3", "--shares", "neural=1"],
            "the arms are control, arm-1, arm-2",
        ),
        (&["demo", "--effect", "neural=-1"], "from -0.9 to 2"),
        (&["demo", "--aa", "--effect", "neural=0.1"], "cannot be used with"),
        (&["completions", "tcsh"], "bash"),
    ] {
        let ran = run(arguments);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{arguments:?}");
        assert!(ran.stderr.contains(reported), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_password_among_brokers_is_not_shown() {
    let ran = run(&["simulate", "--brokers", "user:hunter2@kafka:9092"]);
    assert_eq!(ran.code, Some(2));
    for part in ["***@kafka:9092", "names a user before an @"] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
}

#[test]
fn a_configuration_without_its_flag_gets_a_hint() {
    for command in [&["run"][..], &["check"], &["health"], &["config", "show"]] {
        let ran = run(&[command, &["abgauge.toml"]].concat());
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{command:?}");
        let tip = "unexpected argument 'abgauge.toml' found\n\n  tip: did you mean --config abgauge.toml?";
        assert!(ran.stderr.contains(tip), "{command:?}: {}", ran.stderr);
    }
    // These commands do not have the flag, or the word is not a file.
    for words in [&["demo", "abgauge.toml"][..], &["run", "now"]] {
        let ran = run(words);
        assert_eq!(ran.code, Some(2));
        assert!(!ran.stderr.contains("--config"), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn state_commands_are_refused_without_a_state_topic() {
    let dir = temporary_dir();
    let path = file(&dir, "abgauge.toml", "kafka.brokers = \"127.0.0.1:1\"\n");
    for command in ["show", "verify", "forget"] {
        let ran = run(&["state", command, "--config", &path]);
        assert_eq!((ran.code, &*ran.stdout), (Some(78), ""), "{command}");
        // The file is named already.
        let advice = format!("set state.topic in {path}");
        assert!(
            ran.stderr.contains(&advice) && !ran.stderr.contains("--config"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn unreachable_brokers_are_distinguished_from_empty_state() {
    let dir = temporary_dir();
    let text = "kafka.brokers = \"127.0.0.1:1\"\nstate.topic = \"kept\"\n";
    let ran = run(&["state", "show", "--config", &file(&dir, "abgauge.toml", text)]);
    assert_eq!((ran.code, &*ran.stdout), (Some(69), ""), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the brokers at 127.0.0.1:1 do not answer"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_namespace_must_have_the_displayed_format() {
    let ran = run(&["state", "forget", "--ns", "f00d"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("write 16 hexadecimal digits"),
        "{}",
        ran.stderr
    );
}

/// The first line and the exit code must agree.
#[test]
fn an_unusable_configuration_is_not_reported_as_valid() {
    let dir = temporary_dir();
    let broken = file(&dir, "items.jsonl", "no item\n");
    let kafka = "[kafka]\nbrokers = \"kafka:9092\"\n";
    for (n, settings) in [
        format!("[metrics]\nmetrics = [\"coverage\"]\ncatalog = \"{broken}\"\n"),
        "[kafka.properties]\n\"sasl.mechansim\" = \"PLAIN\"\n".to_owned(),
        "[http]\ntls_certificate = \"/no/such.crt\"\n".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let path = file(&dir, &format!("{n}.toml"), &format!("{kafka}{settings}"));
        let ran = run(&["check", "--config", &path]);
        assert_eq!(ran.code, Some(78), "{}", ran.stdout);
        assert!(!ran.stdout.contains("valid"), "{}", ran.stdout);
        let first = "note     the settings can be read, but abgauge cannot start; errors to fix: 1\n";
        assert!(ran.stdout.starts_with(first), "{}", ran.stdout);
        assert!(ran.stdout.contains("\nerror    "), "{}", ran.stdout);
    }
}

#[test]
fn a_start_inside_a_slot_is_noted_with_the_effective_time() {
    let dir = temporary_dir();
    let text = "[kafka]\nbrokers = \"kafka:9092\"\n[experiments.ranker]\nstart = \"2026-01-31T09:00:02Z\"\n\
                [experiments.page]\nstart = \"2026-01-31T09:00:05Z\"\n";
    let reported = quietly(&["check", "--config", &file(&dir, "abgauge.toml", text)]);
    let note = "note     experiments.ranker.start (2026-01-31T09:00:02Z) lies inside a slot, but lists are counted by slot (join.slot, 5s): it starts with the next slot, at 2026-01-31T09:00:05Z\n";
    assert!(reported.contains(note), "{reported}");
    assert!(!reported.contains("experiments.page"), "{reported}");
}

#[test]
fn doubtful_experiments_cause_warnings_and_impossible_ones_are_refused() {
    let dir = temporary_dir();
    let kafka = "[kafka]\nbrokers = \"kafka:9092\"\n[experiments.ranker]\n";
    let text = format!("{kafka}control = \"base\"\n");
    let reported = quietly(&["check", "-v", "--config", &file(&dir, "legal.toml", &text)]);
    for part in [
        "\n         1024 MiB of sums by user",
        "\n         statistics: 86 KiB for each arm and epoch of an experiment in a partition (256 buckets x 32 columns x 8 bytes",
        "\nwarning  experiments.ranker has a control but no shares: nothing is decided",
        "\nwarning  kafka.key is \"request\"",
    ] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    let text =
        format!("{kafka}control = \"base\"\nshares = {{ base = 0.9, neural = 0.1 }}\nplanned_days = 14\n");
    let path = file(&dir, "impossible.toml", &text);
    let ran = run(&["check", "--config", &path]);
    assert_eq!(ran.code, Some(78), "{}", ran.stdout);
    let reported = ran.stderr.replace("\n  │ ", " ");
    for part in [
        "experiments.ranker.planned_days: plans one analysis",
        "differ more than fourfold",
        ":6:16]",
        "leave it out",
    ] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
}

/// A start used to wait forever for a writer of the pipe.
#[test]
fn a_pipe_instead_of_a_file_is_refused_at_once() {
    let dir = temporary_dir();
    let pipe = dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    let pipe = pipe.to_str().expect("UTF-8");
    for (variable, setting) in [
        (
            "KAFKA__PROPERTY_FILES__SASL_PASSWORD",
            "kafka.property_files.sasl.password",
        ),
        (
            "KAFKA__PROPERTIES__SSL_CA_LOCATION",
            "kafka.properties.ssl.ca.location",
        ),
        ("HTTP__BEARER_TOKENS_FILE", "http.bearer_tokens_file"),
        ("HTTP__BASIC_PASSWORDS_FILE", "http.basic_passwords_file"),
        ("HTTP__TLS_CERTIFICATE", "http.tls_certificate"),
        ("METRICS__CATALOG", "metrics.catalog"),
    ] {
        for command in ["run", "check"] {
            let mut started = program(&[command])
                .env("ABGAUGE_KAFKA__BROKERS", "127.0.0.1:1")
                .env("ABGAUGE_HTTP__LISTEN", "127.0.0.1:0")
                .env(format!("ABGAUGE_{variable}"), pipe)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("abgauge starts");
            let ended = crate::support::wait::try_until(crate::support::wait::PATIENCE, || {
                started.try_wait().expect("ask after a child")
            });
            let _ = started.kill();
            let output = started.wait_with_output().expect("it has ended");
            let reported = [output.stdout, output.stderr].concat();
            let reported = String::from_utf8_lossy(&reported);
            assert_eq!(
                ended.and_then(|status| status.code()),
                Some(78),
                "{command}, {setting}: {reported}"
            );
            assert!(reported.contains(setting), "{command}: {reported}");
            let why = "it is a pipe, which cannot be read again: write its output to a file";
            assert!(
                reported.replace("\n  │ ", " ").contains(why),
                "{command}, {setting}: {reported}"
            );
        }
    }
}

/// Output that cannot be written must not cause a panic (exit code 101), nor a message if the reader is gone.
#[test]
fn unwritable_output_never_causes_a_panic() {
    let dir = temporary_dir();
    let events = file(&dir, "events.jsonl", &format!("{EVENTS}\nnot json\n"));
    let bad = file(&dir, "bad.toml", "[kafka]\nbrokers = 1\n");
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .expect("Linux has it")
    };
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        writer
    };
    for (arguments, code) in [
        (&["evaluate", &*events][..], 0),
        (&["evaluate", &events, "--strict"], 65),
        (&["run", "--config", &bad], 78),
        (&["check", "--config", &bad], 78),
        (&["simulate", "--output", "-", "--duration", "1s"], 0),
        (&["evaluate", "no/such/file"], 1),
        (&["evaluate", &events, "--metrics", "none"], 2),
    ] {
        for stderr in [Stdio::from(full()), Stdio::from(closed())] {
            let status = program(arguments).stdout(Stdio::null()).stderr(stderr).status();
            assert_eq!(
                status.expect("abgauge starts").code(),
                Some(code),
                "{arguments:?}"
            );
        }
    }
    for arguments in [
        &["evaluate", &*events][..],
        &["config"],
        &["profiles"],
        &["completions", "bash"],
        &["--help"],
        &["simulate", "--output", "-", "--duration", "1h"],
    ] {
        let ran = program(arguments)
            .stdout(closed())
            .output()
            .expect("abgauge starts");
        let reported = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(0), "{arguments:?}: {reported}");
        assert!(
            !reported.contains("error") && !reported.contains("panic"),
            "{arguments:?}: {reported}"
        );
    }
    // The loss is reported if standard error still has a reader.
    let ran = program(&["evaluate", &events])
        .stdout(full())
        .output()
        .expect("abgauge starts");
    let reported = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1));
    assert!(
        reported.contains("error: write to standard output: No space left"),
        "{reported}"
    );
}

#[test]
fn the_printed_configuration_is_valid() {
    let dir = temporary_dir();
    let path = file(&dir, "abgauge.toml", &quietly(&["config"]));
    assert!(quietly(&["check", "--config", &path]).contains("the configuration is valid"));

    let begun = dir.path().join("begun.toml").display().to_string();
    let ran = run(&["config", "init", &begun]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), ""));
    assert!(ran.stderr.contains("set kafka.brokers"), "{}", ran.stderr);
    assert_eq!(
        std::fs::read_to_string(&begun).expect("written"),
        quietly(&["config"])
    );
    assert_eq!(quietly(&["config", "init", "-"]), quietly(&["config"]));
    std::fs::write(&begun, "# mine").expect("write");
    let ran = run(&["config", "init", &begun]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("already exists and was not overwritten"),
        "{}",
        ran.stderr
    );
    assert_eq!(std::fs::read_to_string(&begun).expect("left alone"), "# mine");
}

/// The output is an equivalent configuration, without secrets of the file or the environment.
#[test]
fn config_show_prints_the_file_overridden_by_the_environment() {
    let dir = temporary_dir();
    let text = "[kafka]\nbrokers = \"one:9092\"\n[kafka.properties]\n\"sasl.password\" = \"hunter2\"\n";
    let path = file(&dir, "abgauge.toml", text);
    let output = program(&["config", "show", "--config", &path])
        .env("ABGAUGE_KAFKA__BROKERS", "two:9092")
        .env("ABGAUGE_KAFKA__PROPERTIES__SSL_KEY_PASSWORD", "hunter3")
        .output();
    let ran: Ran = output.expect("abgauge starts").into();
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    let reported: Vec<String> = ran.stdout.lines().map(in_single_spaces).collect();
    for line in [
        "brokers = \"two:9092\" # ABGAUGE_KAFKA__BROKERS",
        "attribution = \"30m\" # default",
        "\"sasl.password\" = \"***\" # line 4",
    ] {
        assert!(
            reported.iter().any(|reported| reported == line),
            "{line}: {}",
            ran.stdout
        );
    }
    assert!(!ran.stdout.contains("hunter"), "{}", ran.stdout);
    let shown = file(&dir, "shown.toml", &ran.stdout);
    let values = |text: &str| -> toml::Table { text.parse().expect("TOML") };
    assert_eq!(
        values(&quietly(&["config", "show", "--config", &shown])),
        values(&ran.stdout)
    );
}

fn in_single_spaces(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn config_show_works_without_brokers() {
    let ran = run(&["config", "show"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("# missing: "), "{}", ran.stdout);
    assert!(ran.stderr.contains("kafka.brokers is missing"), "{}", ran.stderr);
}

#[test]
fn the_schema_has_every_section() {
    let schema: Value = serde_json::from_str(&quietly(&["config", "schema"])).expect("JSON");
    for section in ["kafka", "join", "metrics", "export", "limits", "http", "log"] {
        let properties = &schema["properties"][section]["properties"];
        assert!(
            properties.as_object().is_some_and(|all| !all.is_empty()),
            "{section}"
        );
    }
}

#[test]
fn check_reports_the_place_and_a_fix() {
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
        for reported in [
            "the configuration (abgauge.toml) has 2 errors",
            "kafka.brokrs: there is no such setting",
            "abgauge.toml:3:1",
            "did you mean `brokers`?",
            "join.attribution: ",
            "abgauge.toml:5:15",
            "\"500ms\", \"30s\"",
        ] {
            assert!(ran.stderr.contains(reported), "{reported}: {}", ran.stderr);
        }
    }
    file(&dir, "broken.toml", "[kafka\n");
    for (config, reported) in [("broken.toml", "broken.toml:1:"), ("absent.toml", "absent.toml")] {
        let ran = run_here("check", config);
        assert_eq!((ran.code, &*ran.stdout), (Some(78), ""), "{config}");
        assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    }
}

#[test]
fn environment_variables_override_settings_and_must_be_known() {
    let check = |name: &str, value: &str| -> Ran {
        let mut command = program(&["check"]);
        command
            .env("ABGAUGE_KAFKA__BROKERS", "kafka:9092")
            .env(name, value);
        command.output().expect("abgauge starts").into()
    };
    assert_eq!(check("ABGAUGE_JOIN__ATTRIBUTION", "1h").code, Some(0));
    for (name, reported) in [
        (
            "ABGAUGE_JOIN_ATTRIBUTION",
            "did you mean ABGAUGE_JOIN__ATTRIBUTION?",
        ),
        (
            "ABGAUGE_JOIN__ATTRIBUTON",
            "did you mean ABGAUGE_JOIN__ATTRIBUTION?",
        ),
        ("ABGAUGE_JOIN__ATTRIBUTION", "ABGAUGE_JOIN__ATTRIBUTION"),
    ] {
        let ran = check(name, "much");
        assert_eq!((ran.code, &*ran.stdout), (Some(78), ""), "{name}");
        assert!(ran.stderr.contains(reported), "{name}: {}", ran.stderr);
    }
}

/// `check` detects this without a broker, and `run` does not keep trying.
#[test]
fn a_property_that_librdkafka_refuses_is_a_bad_configuration() {
    for command in ["check", "run"] {
        let mut program = program(&[command]);
        program
            .env("ABGAUGE_KAFKA__BROKERS", "localhost:1")
            .env("ABGAUGE_HTTP__LISTEN", "127.0.0.1:0")
            .env("ABGAUGE_KAFKA__PROPERTIES__SASL_MECHANSIM", "hunter2");
        let ran: Ran = program.output().expect("abgauge starts").into();
        assert_eq!(ran.code, Some(78), "{command}");
        let reported = ran.stdout + &ran.stderr;
        for word in [
            "kafka.properties.sasl.…: librdkafka has no such property",
            "did you mean sasl.mechanism?",
        ] {
            assert!(reported.contains(word), "{command}: {reported}");
        }
        assert!(!reported.contains("hunter2"), "{command}: {reported}");
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
fn simulate_takes_any_arms() {
    let experiments = |arms: &[&str]| {
        let ran = run(&[
            &["simulate", "--output", "-", "--duration", "10s", "--rate", "100"],
            arms,
        ]
        .concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let ran = run_with_input(&["evaluate", "-", "--format", "json"], &ran.stdout);
        let mut json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        json["experiments"].take()
    };
    let arms = |experiment: &Value| -> Vec<String> {
        let arms = experiment["arms"].as_object().expect("arms");
        arms.keys().cloned().collect()
    };
    let named = experiments(&["--arms", "search=bm25,dense", "--arms", "color=red,green,blue"]);
    assert_eq!(arms(&named["search"]), ["bm25", "dense"]);
    assert_eq!(arms(&named["color"]), ["blue", "green", "red"]);
    assert_eq!(named.as_object().map(serde_json::Map::len), Some(2));
    let counted = experiments(&["--arms", "ranker=40", "--effect", "arm-7=1"]);
    let counted = arms(&counted["ranker"]);
    assert_eq!(counted.len(), 40);
    assert!(counted.contains(&"control".to_owned()) && counted.contains(&"arm-39".to_owned()));
}

#[test]
fn simulate_reports_missing_options() {
    for (arguments, reported) in [
        (&["simulate", "--output", "endless"][..], "give --duration"),
        (
            &["simulate", "--output", "no/such/dir/x", "--duration", "1s"],
            "write no/such/dir/x",
        ),
    ] {
        let ran = run(arguments);
        assert_eq!((ran.code, &*ran.stdout), (Some(1), ""), "{arguments:?}");
        assert!(ran.stderr.contains(reported), "{arguments:?}: {}", ran.stderr);
    }
}

/// The error is reported before any broker is asked, like every property that librdkafka refuses.
#[test]
fn simulate_reports_a_refused_property_as_a_bad_configuration() {
    let ran = run(&[
        "simulate",
        "--brokers",
        "localhost:1",
        "-X",
        "sasl.mechansim=hunter2",
    ]);
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("--property sasl.…: librdkafka has no such property")
            && ran.stderr.contains("did you mean sasl.mechanism?"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
}

/// The output contains only errors, without empty lines.
#[test]
fn configuration_errors_are_listed_one_by_one() {
    let output = program(&["check"]).env("ABGAUGE_METRICS__K", "a,1").output();
    let ran: Ran = output.expect("abgauge starts").into();
    assert!(
        ran.stderr
            .starts_with("error: the configuration (environment) has 2 errors\n"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.lines().all(|line| line.trim() != "Error:"),
        "{}",
        ran.stderr
    );
    for line in [
        "metrics.k (from ABGAUGE_METRICS__K): \"a\" is not a whole number",
        "help: write a whole number; separate several by commas",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
}

#[test]
fn a_typo_in_the_variable_of_a_flag_is_refused() {
    for command in [
        &["demo"][..],
        &["simulate", "--output", "-", "--duration", "1s"],
        &["evaluate", "-"],
    ] {
        let output = program(command)
            .env("ABGAUGE_SIMULATE_RAET", "5")
            .stdin(Stdio::null())
            .output();
        let ran: Ran = output.expect("abgauge starts").into();
        assert_eq!(ran.code, Some(78), "{command:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("did you mean ABGAUGE_SIMULATE_RATE?"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn completions_contain_all_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = quietly(&["completions", shell]);
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

/// `head` closes the pipe once it has enough.
#[test]
fn a_reader_that_stops_early_is_not_a_failure() {
    let dir = temporary_dir();
    let events = file(&dir, "events.jsonl", EVENTS);
    let configuration = file(&dir, "abgauge.toml", &quietly(&["config"]));
    for arguments in [
        &["config"][..],
        &["config", "schema"],
        &["man"],
        &["completions", "bash"],
        &["evaluate", &events],
        &["evaluate", &events, "--format", "json"],
        &["evaluate", &events, "--format", "csv"],
        &["profiles"],
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

/// Colors are not used if the output is not a terminal.
#[test]
fn output_to_a_file_has_no_colors() {
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
