//! `abgauge check --sample`: checks how the daemon would read the records of a file.

use std::path::Path;
use std::process::ExitCode;

use abgauge_core::engine::event::Kind;
use abgauge_core::evaluate::source;

use super::reading::BAD_DATA;
use super::{misuse, print, warn, with_counting, written};
use crate::tools::check::{self, Finding, Records, ResultLevel, Unmapped};
use crate::tools::cli::CheckArgs;

/// Reads the records of a file and prints the findings.
///
/// # Errors
/// If the file cannot be read, or the findings cannot be written.
pub fn sample(args: &CheckArgs, path: &Path) -> anyhow::Result<ExitCode> {
    if args.suggest {
        return suggest(args, path);
    }
    with_counting(args.config.config.as_deref(), |counting| {
        let decoder = counting.join.decoder();
        let shape = source::shape_of(path, counting.events.as_ref());
        let mut records = Records::new(decoder.reading(shape.as_ref()), args.records_are.map(Kind::from))
            .of_rows(source::has_own_columns(path));
        let long = source::read(path, shape.as_ref(), &|_| {}, |line, record| {
            records.take(line, record)
        })?;
        let mut findings = records.findings();
        if !long.is_empty() {
            findings.push(Finding::new(ResultLevel::Warning, long.to_string(), ""));
        }
        written(check::print(&findings))?;
        Ok(ExitCode::from(check::exit_code(&findings)))
    })
}

/// Drafts the section `[events]` for a file with another shape.
fn suggest(args: &CheckArgs, path: &Path) -> anyhow::Result<ExitCode> {
    with_counting(args.config.config.as_deref(), |counting| {
        if source::has_own_columns(path) {
            let message =
                "--suggest: columns of Parquet are named as our own fields, so there are no paths to draft";
            return Ok(misuse("check", message));
        }
        let mut sample = Unmapped::default();
        // Read without a shape, because the lines themselves are analyzed.
        let long = source::read(path, None, &|_| {}, |line, record| sample.take(line, record))?;
        if !long.is_empty() {
            warn(&long.to_string());
        }
        let suggestion = sample.suggest(&counting.join.decoder(), args.records_are.map(Kind::from));
        print(&suggestion.text)?;
        Ok(match suggestion.is_sound {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(BAD_DATA),
        })
    })
}
