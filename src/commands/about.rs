//! What the program tells of itself: manual, completions, version.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;
use serde_json::json;

use super::print;
use crate::cli::Cli;
use crate::kafka;

const NAME: &str = "abgauge";

/// # Errors
/// Where it cannot be written.
pub fn completions(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// The page of the program itself, or one for it and each of its commands as files of `dir`.
///
/// # Errors
/// Where they cannot be written.
pub fn man(dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    // `abgauge help run` is `abgauge run --help`: no pages of its own.
    let command = Cli::command().disable_help_subcommand(true);
    let Some(dir) = dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        print(&String::from_utf8_lossy(&page))?;
        return Ok(ExitCode::SUCCESS);
    };
    let shown = dir.display();
    std::fs::create_dir_all(dir).with_context(|| format!("make the directory {shown}"))?;
    clap_mangen::generate_to(command, dir).with_context(|| format!("write the manual to {shown}"))?;
    Ok(ExitCode::SUCCESS)
}

/// What the build left empty is not known.
fn known(value: &'static str) -> Option<&'static str> {
    (!value.is_empty()).then_some(value)
}

/// # Errors
/// Where it cannot be written.
pub fn version(as_json: bool) -> anyhow::Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    if !as_json {
        print(&format!("{NAME} {version}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let told = json!({
        "name": NAME,
        "version": version,
        "commit": known(env!("ABGAUGE_COMMIT")),
        "rustc": known(env!("ABGAUGE_RUSTC")),
        "librdkafka": kafka::client_version(),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "parquet": cfg!(feature = "parquet"),
    });
    print(&format!("{told:#}\n"))?;
    Ok(ExitCode::SUCCESS)
}
