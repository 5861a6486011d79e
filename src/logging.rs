//! The log: text on a terminal, JSON otherwise, on standard error.

use std::io::{self, IsTerminal as _};

use anyhow::Context as _;
use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// Starts the log of this process.
///
/// # Errors
/// A filter that cannot be read, or a log that was started before.
pub fn start(filter: &str, format: LogFormat) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter).context("read log.filter")?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    let is_text = match format {
        LogFormat::Auto => io::stderr().is_terminal(),
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    let started = if is_text {
        log.with_ansi(io::stderr().is_terminal())
            .with_target(false)
            .try_init()
    } else {
        log.json().flatten_event(true).try_init()
    };
    started.map_err(|error| anyhow::anyhow!("start the log: {error}"))
}
