//! The log: text on a terminal, JSON otherwise, on standard error.

use std::io::{self, IsTerminal as _};

use anyhow::Context as _;
use tracing_subscriber::reload::Error;
use tracing_subscriber::{EnvFilter, fmt};

use crate::config::LogFormat;

/// The log of this process.
pub struct Log {
    /// Text and JSON have handles of different types.
    replace: Box<dyn Fn(EnvFilter) -> Result<(), Error> + Send + Sync>,
}

impl Log {
    /// From here on other messages are written.
    ///
    /// # Errors
    /// A filter that cannot be read.
    pub fn set_filter(&self, filter: &str) -> anyhow::Result<()> {
        (self.replace)(parse(filter)?).context("replace the filter of the log")
    }
}

/// Starts the log of this process.
///
/// # Errors
/// A filter that cannot be read, or a log that was started before.
pub fn start(filter: &str, format: LogFormat) -> anyhow::Result<Log> {
    let log = fmt().with_env_filter(parse(filter)?).with_writer(io::stderr);
    let is_text = match format {
        LogFormat::Auto => io::stderr().is_terminal(),
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    let (started, log) = if is_text {
        let log = log
            .with_ansi(io::stderr().is_terminal())
            .with_target(false)
            .with_filter_reloading();
        let handle = log.reload_handle();
        let replace = Box::new(move |filter| handle.reload(filter));
        (log.try_init(), Log { replace })
    } else {
        let log = log.json().flatten_event(true).with_filter_reloading();
        let handle = log.reload_handle();
        let replace = Box::new(move |filter| handle.reload(filter));
        (log.try_init(), Log { replace })
    };
    started.map_err(|error| anyhow::anyhow!("start the log: {error}"))?;
    Ok(log)
}

fn parse(filter: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(filter).context("read log.filter")
}
