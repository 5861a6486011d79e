//! `abgauge plan --from` against a daemon with TLS and credentials.

use std::fs;

use crate::security::daemon;
use crate::support::certificates::{Authority, Validity};
use crate::support::program::{Ran, run, run_with_input};
use crate::support::{tools, wait};

const TOKEN: &str = "c0ffee00c0ffee00c0ffee00c0ffee00";

#[test]
fn plan_queries_a_daemon_over_tls_with_a_token() {
    let dir = tools::temporary_dir("plan");
    let authority = Authority::new(dir.path(), "authority");
    let signed = authority.sign("server", &["127.0.0.1"], Validity::Now);
    let hash: Ran = run_with_input(&["hash", "token"], TOKEN);
    let mut daemon = daemon(&format!(
        "tls_certificate = {:?}\ntls_key = {:?}\nbearer_tokens = [{:?}]\n",
        signed.certificate,
        signed.key,
        hash.stdout.trim()
    ));
    let token = dir.path().join("token");
    fs::write(&token, format!("{TOKEN}\n")).expect("written");
    let url = format!("https://{}", daemon.address());
    let asked = |more: &[&str], why: &str| {
        let ran = run(&[&["plan", "--from", &url], more].concat());
        assert_eq!((ran.code, &*ran.stdout), (Some(1), ""), "{more:?}");
        assert!(ran.stderr.contains(why), "{more:?}: {}", ran.stderr);
    };
    let [token, trusted] = [&token, &authority.file].map(|path| path.to_str().expect("UTF-8"));
    asked(
        &["--ca-file", trusted],
        "requires credentials: give --token-file FILE",
    );
    // Access was granted. Without a broker there is no experiment.
    asked(&["--ca-file", trusted, "--token-file", token], "is not ready: ");
    asked(&["--token-file", token], "name that: --ca-file FILE");
    let stranger = Authority::new(dir.path(), "stranger");
    let stranger = stranger.file.to_str().expect("UTF-8");
    asked(
        &["--ca-file", stranger, "--token-file", token],
        "--ca-file must name the authority that has signed it",
    );
    asked(&["--ca-file", token], "--ca-file: ");

    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit(wait::PATIENCE), Some(0));
}
