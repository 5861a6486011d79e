//! Tokens and passwords. Hashes come from `abgauge hash` and are read from files or settings. All can be replaced.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::security::{config, daemon};
use crate::support::daemon::Daemon;
use crate::support::http::Response;
use crate::support::program::{self, Ran, run_with_input};
use crate::support::{https, tools};

const TOKEN: &str = "c0ffee00c0ffee00c0ffee00c0ffee00";
/// Credentials for `scraper:hunter2`.
const SCRAPER: &str = "Basic c2NyYXBlcjpodW50ZXIy";

fn hashed(arguments: &[&str], secret: &str) -> String {
    let Ran { code, stdout, stderr } = run_with_input(arguments, secret);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    stdout.trim_end().to_owned()
}

fn ask(daemon: &Daemon, path: &str, authorization: &str) -> Response {
    let headers = [("Authorization", authorization)];
    let headers = if authorization.is_empty() {
        &[][..]
    } else {
        &headers
    };
    https::get(daemon.address(), None, path, headers).expect("an answer")
}

fn status(daemon: &Daemon, path: &str, authorization: &str) -> u16 {
    ask(daemon, path, authorization).status
}

#[test]
fn only_credentials_from_hash_are_accepted() {
    let token = hashed(&["hash", "token"], &format!("{TOKEN}\n"));
    let password = hashed(&["hash", "password", "--user", "scraper"], "hunter2\n");
    let daemon = daemon(&format!(
        "bearer_tokens = [{token:?}]\nbasic_passwords = [{password:?}]\n"
    ));
    for path in [
        "/metrics",
        "/",
        "/api/v1/experiments",
        "/api/v1/verdict",
        "/api/v1/view",
        "/api/v1/view/charts",
        "/page/page.js",
        "/runbooks",
        "/nowhere",
    ] {
        let refused = ask(&daemon, path, "");
        assert_eq!(refused.status, 401, "{path}");
        assert!(refused.headers["www-authenticate"].contains("realm=\"abgauge\""));
        assert!(!refused.body.contains("abgauge_"), "{}", refused.body);
        for wrong in [
            "Bearer hunter2",
            &format!("Bearer {token}"),
            "Basic c2NyYXBlcjpodW50ZXIz",
        ] {
            assert_eq!(status(&daemon, path, wrong), 401, "{path} {wrong}");
        }
        let right = match path {
            "/nowhere" => 404,
            "/api/v1/verdict" | "/api/v1/view/charts" => 400,
            _ => 200,
        };
        assert_eq!(status(&daemon, path, &format!("Bearer {TOKEN}")), right, "{path}");
        assert_eq!(status(&daemon, path, SCRAPER), right, "{path}");
    }
    assert_eq!(status(&daemon, "/healthz", ""), 200);
    assert_eq!(status(&daemon, "/readyz", ""), 503);
    let reported = ask(&daemon, "/metrics", SCRAPER).body;
    for (reason, n) in [("no_credentials", 9), ("wrong_credentials", 27)] {
        let series = format!("abgauge_http_refused_total{{reason=\"{reason}\"}} {n}\n");
        assert!(reported.contains(&series), "{series:?} is not in {reported}");
    }
    let log = daemon.log();
    assert_eq!(
        log.matches("refused a request with a wrong token or password")
            .count(),
        1,
        "{log}"
    );
}

/// Without the cache of valid passwords each scrape would use a core for a tenth of a second or more.
#[test]
fn scrapes_with_a_password_are_cheap_after_the_first() {
    let password = hashed(&["hash", "password", "--user", "scraper"], "hunter2");
    let daemon = daemon(&format!("basic_passwords = [{password:?}]\n"));
    let time = |authorization: &str| {
        let begin = Instant::now();
        (status(&daemon, "/metrics", authorization), begin.elapsed())
    };
    let (first, slow) = time(SCRAPER);
    assert_eq!(first, 200);
    let mut fast: Vec<Duration> = (0..20).map(|_| time(SCRAPER).1).collect();
    fast.sort();
    assert!(fast[10] < slow / 4, "first {slow:?}, then {:?}", fast[10]);
    println!("the first scrape took {slow:?}, the others {:?}", fast[10]);
}

#[test]
fn credentials_can_be_changed_at_runtime() {
    let dir = tools::temporary_dir("access");
    let file = dir.path().join("tokens");
    let hash = |token: &str| hashed(&["hash", "token"], token);
    let new = TOKEN.replace('c', "d");
    fs::write(&file, hash(TOKEN)).expect("written");
    let mut daemon = daemon(&format!("bearer_tokens_file = {file:?}\nopen_probes = false\n"));
    assert_eq!(status(&daemon, "/healthz", ""), 401, "probes are closed");
    assert_eq!(status(&daemon, "/healthz", &format!("Bearer {TOKEN}")), 200);

    fs::write(&file, "c0ffee\n").expect("written");
    daemon.signal(libc::SIGHUP);
    daemon.wait_until("the fault to be told", |daemon| {
        let reported = "http.bearer_tokens_file: ";
        daemon.log().contains(reported).then_some(())
    });
    assert!(!daemon.log().contains("c0ffee"), "{}", daemon.log());
    assert_eq!(status(&daemon, "/healthz", &format!("Bearer {TOKEN}")), 200);

    fs::write(&file, hash(&new)).expect("written");
    daemon.signal(libc::SIGHUP);
    daemon.wait_until("the new token to be known", |daemon| {
        (status(daemon, "/healthz", &format!("Bearer {new}")) == 200).then_some(())
    });
    assert_eq!(status(&daemon, "/healthz", &format!("Bearer {TOKEN}")), 401);
}

/// Removing a token from the configuration and sending SIGHUP must revoke it.
#[test]
fn a_token_removed_from_the_configuration_is_revoked() {
    let hash = |token: &str| hashed(&["hash", "token"], token);
    let new = TOKEN.replace('c', "d");
    let tokens = |hash: String| format!("bearer_tokens = [{hash:?}]\n");
    let mut daemon = daemon(&tokens(hash(TOKEN)));
    assert_eq!(status(&daemon, "/metrics", &format!("Bearer {TOKEN}")), 200);
    daemon.rewrite(&config(&tokens(hash(&new))));
    daemon.signal(libc::SIGHUP);
    daemon.wait_until("the new token to be known", |daemon| {
        (status(daemon, "/metrics", &format!("Bearer {new}")) == 200).then_some(())
    });
    assert_eq!(status(&daemon, "/metrics", &format!("Bearer {TOKEN}")), 401);
    daemon.wait_for_log("the reload", |log| log.contains("http.bearer_tokens"));
}

#[test]
fn an_invalid_secret_is_refused_without_being_shown() {
    let long = "x".repeat(73);
    let table: [(&[&str], &str, &str); 3] = [
        (&["hash", "token"], "hunter2", "at least 32 characters"),
        (
            &["hash", "password", "--user", "a:b"],
            "hunter2",
            "must not contain a colon",
        ),
        (&["hash", "password", "--user", "a"], &long, "at most 72 bytes"),
    ];
    for (arguments, secret, fragment) in table {
        let Ran { code, stdout, stderr } = run_with_input(arguments, secret);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains(fragment) && !stderr.contains(secret), "{stderr}");
    }
}

/// Every user of the machine can read a process's arguments.
#[test]
fn secrets_are_not_accepted_as_arguments() {
    for arguments in [["hash", "token", TOKEN], ["hash", "password", "hunter2"]] {
        let mut child = program::program(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("abgauge starts");
        // The program may have ended before it reads.
        let _ = child.stdin.take().expect("piped").write_all(b"x");
        let output = child.wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(2));
    }
}
