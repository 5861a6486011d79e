//! The commands over files and tables, from their arguments to their exit codes.

pub mod about;
pub mod catalog;
mod compare;
pub mod config;
pub mod convert;
mod counting;
pub mod evaluate;
mod fetch;
pub mod hash;
pub mod health;
mod inputs;
pub mod man;
pub mod plan;
pub mod profiles;
mod reading;
pub mod sample;
pub mod state;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use abgauge_core::evaluate::source::ReadContext;
use anyhow::Context as _;
use clap::CommandFactory as _;
use clap::error::ErrorKind;
use console::{StyledObject, style};

use crate::logging::say;
use crate::settings::{ConfigErrors, Counting};
use crate::tools::cli::Cli;

/// Exit code `EX_CONFIG` of sysexits.h.
pub const BAD_CONFIGURATION: u8 = 78;

/// Exit code `EX_DATAERR` of sysexits.h.
const BAD_DATA: u8 = 65;

/// Prints text to standard output.
///
/// # Errors
/// If it cannot be written. A closed pipe is not an error.
pub fn print(text: &str) -> anyhow::Result<()> {
    written(std::io::stdout().lock().write_all(text.as_bytes()))
}

/// Ignores a closed pipe.
///
/// # Errors
/// All other errors.
pub fn written(result: std::io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("write to standard output"),
    }
}

/// Reports an error on standard error.
pub fn error(text: &str) {
    remark(style("error:").red(), text);
}

/// Reports why a command failed, and returns its exit code.
pub fn failed(failure: &anyhow::Error) -> ExitCode {
    error(&format!("{failure:#}"));
    match ReadContext::is_to_blame(failure) {
        true => ExitCode::from(BAD_DATA),
        false => ExitCode::FAILURE,
    }
}

/// Reports on standard error a doubt about the results.
fn warn(text: &str) {
    remark(style("warning:").yellow(), text);
}

/// Reports additional information on standard error.
fn note(text: &str) {
    remark(style("note:").cyan(), text);
}

/// Prints one line on standard error, in color only on a terminal.
fn remark(kind: StyledObject<&str>, text: &str) {
    say(format_args!("{} {text}", kind.bold().for_stderr()));
}

/// Reports all errors in a configuration on standard error.
pub fn refuse(errors: &ConfigErrors) -> ExitCode {
    error(&errors.to_string());
    for reported in errors.each() {
        say(format_args!("{:?}", miette::Report::new(reported)));
    }
    ExitCode::from(BAD_CONFIGURATION)
}

/// Loads the settings that affect counting from the file at `path` and the environment, and calls `go` with them.
fn with_counting(
    path: Option<&Path>,
    go: impl FnOnce(Counting) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    match crate::settings::load_counting(path, crate::settings::environment()) {
        Ok(counting) => go(counting),
        Err(errors) => Ok(refuse(&errors)),
    }
}

/// Reports wrong usage that the parser cannot detect, in the parser's format and with its exit code.
fn misuse(command: &str, message: &str) -> ExitCode {
    let mut cli = Cli::command();
    cli.build();
    let command = cli.find_subcommand_mut(command);
    if let Some(command) = command {
        // Standard error may be closed, but the exit code is still correct.
        let _ = command.error(ErrorKind::InvalidValue, message).print();
    }
    ExitCode::from(2)
}

/// Formats the error for an unknown value, with the most similar known one.
fn unknown(value: &str, argument: &str, known: &[&str]) -> String {
    let mut message = format!(
        "invalid value '{}' for '{argument}'\n  [possible values: {}]",
        abgauge_core::table::visible(value),
        abgauge_core::table::visible(&known.join(", "))
    );
    if let Some(near) = crate::settings::nearest(value, known.iter().copied()) {
        message.push_str(&format!("\n\n  tip: a similar value exists: '{near}'"));
    }
    message
}
