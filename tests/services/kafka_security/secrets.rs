//! Whatever a run writes or answers, at the most talkative level of the log, no secret is in it.

use std::fs;
use std::process::{Command, Stdio};

use crate::kafka_security::{config, kafka, mutual, sasl};
use crate::support::daemon::Daemon;
use crate::support::https;
use crate::support::kafka::{Kafka, READER};
use crate::support::tools;

const KEY_PASSWORD: &str = "key-password-0815";
const TOKEN: &str = "token-0123456789abcdef0123456789abcdef";
const HTTP_PASSWORD: &str = "scrapers-password";
/// Of the hashes of ids.
const SEED: &str = "8152391047662";

/// What nobody may read anywhere.
fn secrets(kafka: &Kafka) -> Vec<String> {
    let key = fs::read_to_string(&kafka.encrypted().client.key).expect("a key");
    let secret = key.lines().nth(1).expect("a line of the key").to_owned();
    let plain = [
        READER.1,
        "wrong-password",
        KEY_PASSWORD,
        TOKEN,
        HTTP_PASSWORD,
        SEED,
    ];
    plain.into_iter().map(str::to_owned).chain([secret]).collect()
}

#[track_caller]
fn check_silent(kafka: &Kafka, what: &str, text: &str) {
    assert!(!text.is_empty(), "{what} is empty");
    for secret in secrets(kafka) {
        let place = text.lines().position(|line| line.contains(&secret));
        assert!(
            place.is_none(),
            "{what} holds the secret {secret:?} in line {place:?}"
        );
    }
}

/// A command's output on both ways.
fn said(arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_abgauge"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("abgauge starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// The most that there is to be said, by us and by librdkafka.
const TALKATIVE: &str = "log.filter = \"trace\"\njoin.hash_seed = 8152391047662\n";

#[test]
fn no_output_of_a_run_contains_a_secret() {
    let kafka = kafka();
    let dir = tools::temporary_dir("secrets");
    let password_file = dir.path().join("password");
    fs::write(&password_file, READER.1).expect("written");
    let token = said(&["hash", "token"], TOKEN);
    let user = said(&["hash", "password", "--user", "scraper"], HTTP_PASSWORD);
    let http = format!(
        "[kafka.property_files]\n\"sasl.password\" = {password_file:?}\n[http]\nbearer_tokens = [{:?}]\nbasic_passwords = [{:?}]\n",
        token.trim_end(),
        user.trim_end()
    );
    let mut properties = sasl(&kafka, "SCRAM-SHA-512", READER);
    properties.remove("sasl.password");
    properties.insert("ssl.key.password", KEY_PASSWORD.to_owned());
    properties.insert("debug", "all".to_owned());
    let text = TALKATIVE.to_owned() + &config(&kafka.encrypted().sasl, "secrets", &properties) + &http;
    let mut daemon = Daemon::run(&text);
    daemon.wait_until_ready();
    let authorization = format!("Bearer {TOKEN}");
    let basic = "Basic c2NyYXBlcjpzY3JhcGVycy1wYXNzd29yZA==";
    let paths = [
        "/metrics",
        "/",
        "/page.js",
        "/api/v1/experiments",
        "/readyz",
        "/healthz",
        "/nowhere",
    ];
    for authorization in [authorization.as_str(), basic, "Bearer wrong-password", "Basic !"] {
        for path in paths {
            let headers = [("Authorization", authorization)];
            let answer = https::get(daemon.address(), None, path, &headers).expect("an answer");
            assert!(answer.status != 401 || authorization.contains("wrong") || authorization.ends_with('!'));
            check_silent(&kafka, path, &format!("{answer:?}"));
        }
    }
    daemon.signal(libc::SIGHUP);
    daemon.wait_until("the files to be read again", |daemon| {
        daemon.log().contains("reloaded the configuration").then_some(())
    });
    let arguments = fs::read(format!("/proc/{}/cmdline", daemon.pid())).expect("Linux");
    check_silent(&kafka, "the arguments", &String::from_utf8_lossy(&arguments));
    daemon.signal(libc::SIGTERM);
    daemon.wait_exit(crate::support::wait::LONG);
    let log = daemon.log();
    assert!(
        log.contains("\"level\":\"TRACE\"") && log.contains("librdkafka"),
        "it was not talkative"
    );
    check_silent(&kafka, "the log", &log);
}

#[test]
fn no_refusal_contains_a_secret() {
    let kafka = kafka();
    let brokers = &kafka.encrypted().sasl;
    let key = fs::read_to_string(&kafka.encrypted().client.key).expect("a key");
    let wrong = sasl(&kafka, "PLAIN", (READER.0, "wrong-password"));
    let mut bad_key = mutual(&kafka);
    bad_key.remove("ssl.key.location");
    bad_key.insert("ssl.key.pem", key[..key.len() / 2].to_owned());
    bad_key.insert("ssl.key.password", KEY_PASSWORD.to_owned());
    let mut unknown = sasl(&kafka, "PLAIN", READER);
    unknown.insert("sasl.passwort", READER.1.to_owned());
    let configs = [
        config(brokers, "wrong", &wrong),
        config(&kafka.encrypted().mutual, "bad-key", &bad_key),
        config(brokers, "unknown", &unknown),
        // In place of their hashes.
        format!("[http]\nbearer_tokens = [{TOKEN:?}]\nbasic_passwords = [\"scraper:{HTTP_PASSWORD}\"]\n"),
    ];
    for text in configs {
        let text = TALKATIVE.to_owned() + &text;
        let check = crate::kafka_security::refused::checked(&text);
        assert_ne!(check.code, Some(0), "{}", check.all);
        check_silent(&kafka, "check", &check.all);
        let mut daemon = Daemon::run(&text);
        daemon.wait_until("something to be said", |daemon| {
            let log = daemon.log();
            let has_ended = check.code == Some(78) && log.contains("rror");
            (has_ended || log.contains("credentials")).then_some(())
        });
        check_silent(&kafka, "the log", &daemon.log());
    }
    // A file that is no TOML.
    let broken = crate::kafka_security::refused::checked(&format!("[http]\nbearer_tokens = {TOKEN}\n"));
    assert_eq!(broken.code, Some(78), "{}", broken.all);
    check_silent(&kafka, "check", &broken.all);
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["check", "--help"],
        &["config"],
    ] {
        check_silent(&kafka, "help", &said(arguments, ""));
    }
}
