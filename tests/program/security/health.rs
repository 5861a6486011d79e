//! `abgauge health` against a daemon with TLS and credentials.

use std::fs;

use crate::security::{config, daemon};
use crate::support::certificates::{Authority, Validity};
use crate::support::program::{Ran, program};
use crate::support::{tools, wait};

const TOKEN: &str = "c0ffee00c0ffee00c0ffee00c0ffee00";

fn health(config: &std::path::Path, arguments: &[&str]) -> Ran {
    let mut command = program(&["health", "--config"]);
    command.arg(config).args(arguments);
    command.output().expect("abgauge starts").into()
}

#[test]
fn health_works_over_tls_and_with_credentials() {
    let dir = tools::temporary_dir("health");
    let signed =
        Authority::new(dir.path(), "authority").sign("server", &["elsewhere.example"], Validity::Now);
    let hash: Ran = crate::support::program::run_with_input(&["hash", "token"], TOKEN);
    let http = format!(
        "tls_certificate = {:?}\ntls_key = {:?}\nbearer_tokens = [{:?}]\nopen_probes = false\n",
        signed.certificate,
        signed.key,
        hash.stdout.trim()
    );
    let mut daemon = daemon(&http);
    let file = dir.path().join("abgauge.toml");
    // Only the section `[http]` is needed. Other sections may contain values that the daemon refuses.
    let text = config(&http) + &format!("listen = \"{}\"\n[join]\nslot = 5\n", daemon.address());
    fs::write(&file, text.replacen("brokers = \"127.0.0.1:1\"", "", 1)).expect("written");
    let token = dir.path().join("token");
    fs::write(&token, format!("{TOKEN}\n")).expect("written");
    let token = token.to_str().expect("UTF-8");

    let lives = health(&file, &[]);
    assert_eq!((lives.code, &*lives.stderr), (Some(0), ""));
    assert!(lives.stdout.contains("requires credentials"), "{}", lives.stdout);
    let lives = health(&file, &["--token-file", token]);
    assert_eq!((lives.code, &*lives.stderr), (Some(0), ""));

    let refused = health(&file, &["--ready"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("--token-file"), "{}", refused.stderr);
    let waits = health(&file, &["--ready", "--token-file", token]);
    assert_eq!(waits.code, Some(1));
    assert!(waits.stderr.contains(" answers 503: "), "{}", waits.stderr);

    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit(wait::PATIENCE), Some(0));
    let gone = health(&file, &[]);
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.contains("does not answer"), "{}", gone.stderr);
}

/// A device has no end, so reading it as a token took all memory.
#[test]
fn a_device_is_refused_as_a_token_file() {
    let dir = tempfile::TempDir::new().expect("a temporary directory");
    let file = dir.path().join("abgauge.toml");
    fs::write(&file, "[http]\nlisten = \"127.0.0.1:1\"\n").expect("written");
    let refused = health(&file, &["--token-file", "/dev/zero"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused
            .stderr
            .contains("--token-file: cannot read the file /dev/zero"),
        "{}",
        refused.stderr
    );
}
