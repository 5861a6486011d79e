//! What is refused is named with its setting: in the log, by `/readyz`, and by `check --connect`.

use std::process::{Command, Stdio};

use crate::kafka_security::{Properties, config, kafka, mutual, sasl, tls};
use crate::support::daemon::Daemon;
use crate::support::kafka::READER;
use crate::support::tools;

const CERTIFICATE: &str = "the brokers' certificate is refused";
const OURS: &str = "the brokers require a client certificate, or refuse it";
const CREDENTIALS: &str = "refuse the credentials";

/// What a command left behind.
pub struct Checked {
    pub code: Option<i32>,
    pub stdout: String,
    pub all: String,
}

/// `abgauge check --connect` with this configuration.
pub fn checked(config: &str) -> Checked {
    let dir = tools::temporary_dir("check");
    let file = dir.path().join("abgauge.toml");
    std::fs::write(&file, config).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_abgauge"))
        .args(["check", "--connect", "--config"])
        .arg(&file)
        .stdin(Stdio::null())
        .output()
        .expect("abgauge starts");
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("UTF-8"));
    Checked {
        code: output.status.code(),
        all: stdout.clone() + &stderr,
        stdout,
    }
}

/// All three say what is wrong, and name the settings.
#[track_caller]
fn check_refused(brokers: &str, properties: &Properties, what: &str, settings: &[&str]) {
    let config = config(brokers, "refused", properties);
    let fits = |text: &str| {
        // In JSON.
        let text = text.replace("\\\"", "\"");
        text.contains(what) && settings.iter().all(|name| text.contains(name))
    };
    let mut daemon = Daemon::run(&config);
    let said = daemon.wait_until("the fault to be told", |daemon| {
        let answer = daemon.try_get("/readyz").ok()?;
        (answer.status == 503 && fits(&answer.body)).then_some(answer.body)
    });
    daemon.wait_for_log("the same", fits);
    println!("/readyz: {said}");
    let check = checked(&config);
    assert_eq!(check.code, Some(69), "{}", check.all);
    assert!(fits(&check.stdout), "{}", check.stdout);
}

#[test]
fn invalid_broker_certificates_are_refused() {
    let kafka = kafka();
    let listeners = kafka.encrypted();
    let mut stranger = sasl(&kafka, "PLAIN", READER);
    stranger.insert("ssl.ca.location", listeners.other_authority.display().to_string());
    let to_do = [
        "kafka.properties.\"ssl.ca.location\"",
        "kafka.brokers",
        "expired",
        "openssl s_client",
    ];
    check_refused(&listeners.sasl, &stranger, CERTIFICATE, &to_do);
    check_refused(&listeners.misnamed, &tls(&kafka), CERTIFICATE, &to_do);
    check_refused(&listeners.expired, &tls(&kafka), CERTIFICATE, &to_do);
}

#[test]
fn wrong_passwords_are_refused_by_every_mechanism() {
    let kafka = kafka();
    let settings = ["kafka.properties.\"sasl.mechanism\"", "\"sasl.password\""];
    for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] {
        let wrong = sasl(&kafka, mechanism, (READER.0, "hunter2"));
        check_refused(&kafka.encrypted().sasl, &wrong, CREDENTIALS, &settings);
    }
}

#[test]
fn a_client_without_the_required_certificate_is_refused() {
    let kafka = kafka();
    let settings = [
        "kafka.properties.\"ssl.certificate.location\"",
        "\"ssl.key.location\"",
    ];
    check_refused(&kafka.encrypted().mutual, &tls(&kafka), OURS, &settings);
}

#[test]
fn a_key_of_another_certificate_is_refused_at_once() {
    let kafka = kafka();
    let mut mixed = mutual(&kafka);
    let broker = kafka.encrypted().authority.with_file_name("broker.key");
    mixed.insert("ssl.key.location", broker.display().to_string());
    let check = checked(&config(&kafka.encrypted().mutual, "mixed", &mixed));
    assert_eq!(check.code, Some(78), "{}", check.all);
    assert!(check.stdout.contains("ssl.key.location"), "{}", check.stdout);
}
