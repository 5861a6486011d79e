//! `abgauge config`: prints the default configuration file, the effective settings, and the schema for editors.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};

use super::{note, print, refuse, warn};
use crate::settings::{self, Config, CurrentSettings};
use crate::tools::cli::ConfigCommand;

/// Prints or creates the configuration file.
///
/// # Errors
/// If the output cannot be written.
pub fn config(command: Option<ConfigCommand>) -> anyhow::Result<ExitCode> {
    match command {
        None => print(Config::default_toml())?,
        Some(ConfigCommand::Init { file }) => init(&file)?,
        Some(ConfigCommand::Show(args)) => {
            match settings::current(args.config.as_deref(), settings::environment()) {
                Ok(settings) => show(&settings)?,
                Err(errors) => return Ok(refuse(&errors)),
            }
        }
        Some(ConfigCommand::Schema) => print(&format!("{:#}\n", Config::schema()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show(settings: &CurrentSettings) -> anyhow::Result<()> {
    if settings.lacks_brokers() {
        warn("kafka.brokers is missing, and `abgauge run` requires it");
    }
    print(&settings.show())
}

fn init(path: &Path) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return print(Config::default_toml());
    }
    let shown = path.display();
    // The check and the creation are one step, so a file that appears meanwhile is not overwritten.
    let mut file = File::create_new(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            anyhow!("{shown} already exists and was not overwritten: choose another name or remove it")
        }
        _ => anyhow!("{shown} cannot be written: {error}"),
    })?;
    let written = file.write_all(Config::default_toml().as_bytes());
    written.with_context(|| format!("write {shown}"))?;
    note(&format!(
        "wrote {shown}: set kafka.brokers there, then run `abgauge check --config {shown} --connect`"
    ));
    Ok(())
}
