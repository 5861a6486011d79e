//! TLS with certificates from files, which are reloaded while the daemon runs. Errors in them are reported.

use std::fs;

use tempfile::TempDir;

use crate::security::{config, daemon};
use crate::support::certificates::{Authority, Signed, Validity};
use crate::support::daemon::Daemon;
use crate::support::https::{self, Trust};
use crate::support::program::{self, Ran};
use crate::support::tools;

const HOST: &str = "127.0.0.1";

fn settings(signed: &Signed) -> String {
    format!(
        "tls_certificate = {:?}\ntls_key = {:?}\n",
        signed.certificate, signed.key
    )
}

fn authority() -> (TempDir, Authority) {
    let dir = tools::temporary_dir("certificates");
    let authority = Authority::new(dir.path(), "authority");
    (dir, authority)
}

fn answers(daemon: &Daemon, trust: &Trust) -> bool {
    https::get(daemon.address(), Some(trust), "/healthz", &[]).is_ok_and(|answer| answer.status == 200)
}

#[test]
fn a_tls_daemon_answers_clients_that_trust_its_authority() {
    let (_dir, authority) = authority();
    let (_other_dir, other) = self::authority();
    let mut daemon = daemon(&settings(&authority.sign("server", &[HOST], Validity::Now)));
    let trust = Trust::of(&authority.file);
    let metrics = https::get(daemon.address(), Some(&trust), "/metrics", &[]).expect("an answer");
    assert_eq!(metrics.status, 200);
    let expiry = "\nabgauge_http_certificate_expiry_timestamp_seconds 4102444800\n";
    assert!(metrics.body.contains(expiry), "{}", metrics.body);
    assert!(
        https::get(daemon.address(), None, "/metrics", &[]).is_err(),
        "in plain text"
    );
    let stranger = https::get(daemon.address(), Some(&Trust::of(&other.file)), "/metrics", &[]);
    assert!(stranger.is_err(), "of another authority");
    daemon.wait_until("both to be counted", |daemon| {
        let metrics = https::get(daemon.address(), Some(&trust), "/metrics", &[]).ok()?;
        let both = "abgauge_http_refused_total{reason=\"tls_handshake\"} 2\n";
        metrics.body.contains(both).then_some(())
    });
    assert!(
        daemon
            .log()
            .contains(&format!("listening on https://{}", daemon.address()))
    );
}

#[test]
fn a_certificate_is_reread_when_it_changes_and_at_sighup() {
    let (_dir, authority) = authority();
    let (_other_dir, other) = self::authority();
    let signed = authority.sign("server", &[HOST], Validity::Now);
    let mut daemon = daemon(&settings(&signed));
    // Each check uses a new client, so that no session is resumed.
    let is_trusted_by = |daemon: &Daemon, authority: &Authority| answers(daemon, &Trust::of(&authority.file));
    assert!(is_trusted_by(&daemon, &authority) && !is_trusted_by(&daemon, &other));

    // The new certificate is in place before its key.
    let new = other.sign("server", &[HOST], Validity::Now);
    fs::copy(&new.certificate, &signed.certificate).expect("copied");
    daemon.signal(libc::SIGHUP);
    daemon.wait_until("the fault to be told", |daemon| {
        daemon
            .log()
            .contains("does not belong to the certificate")
            .then_some(())
    });
    assert!(is_trusted_by(&daemon, &authority), "the last one stays in use");

    // Once the key is there, the daemon loads both without a signal.
    fs::copy(&new.key, &signed.key).expect("copied");
    daemon.wait_until("the new certificate", |daemon| {
        is_trusted_by(daemon, &other).then_some(())
    });
    assert!(!is_trusted_by(&daemon, &authority));
    // The log is written by a thread of its own.
    daemon.wait_until("the reload to be logged", |daemon| {
        daemon
            .log()
            .contains("reloaded the certificate: it is valid until 2100-01-01")
            .then_some(())
    });
}

/// Returns the output of `run` and `check` for a configuration with these lines below `[http]`.
fn said(http: &str) -> [Ran; 2] {
    let dir = program::temporary_dir();
    let listen = format!("listen = \"127.0.0.1:{}\"\n", tools::free_port());
    let file = program::file(&dir, "abgauge.toml", &(config(&listen) + http));
    ["run", "check"].map(|command| program::run(&[command, "--config", &file]))
}

#[test]
fn unusable_files_are_refused_by_run_and_by_check() {
    let (dir, authority) = authority();
    let good = authority.sign("server", &[HOST], Validity::Now);
    let other = authority.sign("other", &[HOST], Validity::Now);
    let mixed = Signed {
        key: other.key,
        ..good.clone()
    };
    let absent = Signed {
        certificate: dir.path().join("absent.crt"),
        ..good
    };
    let table = [
        (
            settings(&mixed),
            [
                "http.tls_key",
                "does not belong to the certificate",
                "name the key",
            ],
        ),
        (
            settings(&absent),
            [
                "http.tls_certificate",
                "absent.crt: No such file",
                "name an existing file",
            ],
        ),
        (
            "bearer_tokens_file = \"/nowhere/tokens\"".to_owned(),
            [
                "http.bearer_tokens_file",
                "/nowhere/tokens: No such file",
                "name an existing file",
            ],
        ),
    ];
    for (http, fragments) in table {
        for Ran { code, stdout, stderr } in said(&http) {
            assert_eq!(code, Some(78), "{stdout}{stderr}");
            // Wrapped lines are joined.
            let text = (stdout + &stderr).replace("\n  │ ", " ");
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for fragment in fragments {
                assert!(text.contains(fragment), "{fragment:?} is missing: {text}");
            }
        }
    }
}

#[test]
fn an_expired_certificate_causes_a_warning() {
    let (dir, authority) = authority();
    let expired = settings(&authority.sign("server", &[HOST], Validity::Expired));
    let reported = "http.tls_certificate: the certificate has expired at 2020-02-01T00:00:00Z";
    let mut daemon = daemon(&expired);
    daemon.wait_for_log("the fault", |log| log.contains(reported));
    assert!(
        !answers(&daemon, &Trust::of(&authority.file)),
        "clients refuse it"
    );
    let file = program::file(&dir, "abgauge.toml", &config(&expired));
    let check = program::run(&["check", "--config", &file]);
    assert_eq!(check.code, Some(0), "{}", check.stderr);
    assert!(
        check.stdout.contains("warning") && check.stdout.contains(reported),
        "{}",
        check.stdout
    );
}

#[test]
fn an_open_listener_without_credentials_is_warned_about_once() {
    let open = daemon(&format!("listen = \"0.0.0.0:{}\"\n", tools::free_port()));
    let log = open.log();
    assert_eq!(log.matches("is open to other machines").count(), 1, "{log}");
    let dir = program::temporary_dir();
    let file = program::file(&dir, "abgauge.toml", &config("listen = \"0.0.0.0:9464\"\n"));
    let check = program::run(&["check", "--config", &file]);
    let reported = check.stdout.matches("is open to other machines").count();
    assert_eq!((check.code, reported), (Some(0), 1), "{}", check.stdout);
}
