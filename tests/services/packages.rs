//! Checks of the unit in deploy/systemd by systemd-analyze: validity, and exposure.

use std::fs;
use std::process::Output;

use tempfile::TempDir;

use crate::support::{brought, tools};

const UNIT: &str = "abgauge.service";

/// Drop-in files for the unit.
const EXAMPLES: [&str; 2] = ["secrets.conf", "stored.conf"];

/// Returns a directory with the unit, the examples as drop-ins, and the binary built for tests.
fn installed() -> TempDir {
    let dir = tools::temporary_dir("systemd");
    let read =
        |name: &str| fs::read_to_string(tools::repository(&format!("deploy/systemd/{name}"))).expect(name);
    let unit = read(UNIT).replace("/usr/bin/abgauge", env!("CARGO_BIN_EXE_abgauge"));
    fs::write(dir.path().join(UNIT), unit).expect("write the unit");
    let drop_in = dir.path().join(format!("{UNIT}.d"));
    fs::create_dir(&drop_in).expect("make a directory");
    for example in EXAMPLES {
        fs::write(drop_in.join(example), read(example)).expect("write the example");
    }
    dir
}

fn analyze(arguments: &[&str], dir: &TempDir) -> Output {
    brought::command("systemd-analyze")
        .args(arguments)
        .arg(dir.path().join(UNIT))
        .output()
        .expect("systemd-analyze starts")
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes))
        .concat()
}

#[test]
fn the_unit_is_valid() {
    let output = analyze(&["verify", "--man=no"], &installed());
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    // Warnings do not make it fail, not even for an unknown directive.
    for file in [UNIT].into_iter().chain(EXAMPLES) {
        assert!(!said.contains(file), "{said}");
    }
}

#[test]
fn detects_an_unknown_directive() {
    let dir = installed();
    let file = dir.path().join(UNIT);
    let unit = fs::read_to_string(&file).expect("just written");
    fs::write(&file, unit.replace("ProtectHome=", "ProtectHoem=")).expect("write the unit");
    assert!(said(&analyze(&["verify", "--man=no"], &dir)).contains("ProtectHoem"));
}

/// The exposure is out of 10, where 0 is a service that can do nothing. The rest is due to the network, sockets and the root
/// directory.
#[test]
fn the_unit_has_little_exposure() {
    let output = analyze(
        &["security", "--offline=yes", "--threshold=15", "--no-pager"],
        &installed(),
    );
    assert!(output.status.success(), "{}", said(&output));
}
