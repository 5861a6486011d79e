//! `abgauge completions` and `abgauge version`.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;
use serde_json::json;

use super::print;
use crate::stream::kafka;
use crate::tools::cli::Cli;

const NAME: &str = "abgauge";

/// Prints the completion script for a shell.
///
/// # Errors
/// If it cannot be written.
pub fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Maps a value that the build left empty to `None`.
fn known(value: &'static str) -> Option<&'static str> {
    (!value.is_empty()).then_some(value)
}

/// Prints the version.
///
/// # Errors
/// If it cannot be written.
pub fn version(as_json: bool) -> anyhow::Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    if !as_json {
        print(&format!("{NAME} {version}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let reported = json!({
        "name": NAME,
        "version": version,
        "commit": known(env!("ABGAUGE_COMMIT")),
        "rustc": known(env!("ABGAUGE_RUSTC")),
        "librdkafka": kafka::client_version(),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "kafka_tls": cfg!(feature = "kafka-tls"),
        "parquet": cfg!(feature = "parquet"),
    });
    print(&format!("{reported:#}\n"))?;
    Ok(ExitCode::SUCCESS)
}
