//! `abgauge check --sample` and `--suggest`: show how the daemon would read the records of a file, and draft settings that read them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use abgauge_core::decode::shape::Shape;
use abgauge_core::evaluate::source::{self, EventFields};
use abgauge_core::evaluate::{Evaluation, Evaluator, Options};

use super::counting::counting_options;
use super::inputs;
use super::{BAD_DATA, error, print, warn, with_counting, written};
use crate::settings::Config;
use crate::tools::check::{self, CheckFailure, Finding, Records, ResultLevel, TopicsSample, Unmapped};
use crate::tools::cli::CheckArgs;

/// Maximum bytes of lists and clicks that are joined.
const MAX_JOINED_BYTES: u64 = 256 << 20;

/// Reads the records of a file, or of several, and prints the findings.
///
/// # Errors
/// If the file cannot be read, or the findings cannot be written.
pub fn sample(args: &CheckArgs, path: &Path) -> anyhow::Result<ExitCode> {
    let files = inputs::files(&[path.to_owned()], "check --sample -")?;
    if args.suggest {
        return suggest(args, &files);
    }
    with_counting(args.config.config.as_deref(), |counting| {
        let kind = args.records_are;
        let options = Options {
            max_state_bytes: MAX_JOINED_BYTES,
            ..counting_options(&counting)
        };
        let decoder = options.decoder().reading(options.shape.as_ref());
        let has_own_fields = options.shape.as_ref().is_none_or(Shape::has_own_fields);
        let mut records = Records::new(decoder, kind)
            .of_rows(has_own_fields && files.iter().all(|path| source::is_parquet(path)));
        let fields = EventFields {
            shape: options.shape.as_ref(),
            kind,
            ..EventFields::default()
        };
        let mut evaluator = Evaluator::new(&options);
        let mut findings = Vec::new();
        for path in &files {
            let name = source::name(path);
            let file = shown_name(&files, path);
            let long = source::read(path, &fields, &|_| {}, |line, record| {
                match record.bytes {
                    // A line that is too long comes as an empty record.
                    [] => records.take_long_line(),
                    _ => records.take(&format_args!("{file}line {line}"), record),
                }
                evaluator.read_record(kind, &name, line, record);
            })?;
            if !long.is_empty() {
                let level = ResultLevel::Error(CheckFailure::Data);
                findings.push(Finding::new(level, format!("{file}{long}"), ""));
            }
        }
        findings.extend(records.findings());
        // A sample of one kind has no clicks on its lists.
        if kind.is_none() {
            findings.extend(without_a_hit(&evaluator.finish()));
        }
        written(check::print(&findings))?;
        Ok(ExitCode::from(check::exit_code(&findings)))
    })
}

/// Reports clicks if `evaluate` would count none of them. A sample that is too large to join is not judged.
fn without_a_hit(evaluation: &Evaluation) -> Option<Finding> {
    let fault = evaluation
        .without_a_hit()
        .filter(|_| evaluation.losses().is_empty())?;
    Some(Finding::new(ResultLevel::Error(CheckFailure::Data), fault, ""))
}

/// Drafts the section `[events]` from the latest records of the topics.
///
/// # Errors
/// If the draft cannot be written.
pub fn suggest_of_topics(args: &CheckArgs, config: &Config) -> anyhow::Result<ExitCode> {
    let TopicsSample { sample, warnings } = match check::of_topics(config) {
        Ok(sample) => sample,
        Err(finding) => {
            error(&format!("--suggest: {}", finding.reported()));
            return Ok(ExitCode::from(check::exit_code(&[finding])));
        }
    };
    warnings.iter().for_each(|warning| warn(warning));
    if sample.is_empty() {
        error("--suggest: nothing is drafted, because no record of the topics can be read");
        return Ok(ExitCode::from(BAD_DATA));
    }
    suggested(args, &sample, &[])
}

/// Returns the prefix that names the file of a line; empty if there is only one file.
fn shown_name(files: &[PathBuf], path: &Path) -> String {
    match files {
        [_] => String::new(),
        _ => format!("{}: ", path.display()),
    }
}

/// Drafts the section `[events]` for files with another shape.
fn suggest(args: &CheckArgs, files: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let kind = args.records_are;
    let mut sample = Unmapped::default();
    // Read without a shape, because the records themselves are analyzed.
    let fields = EventFields {
        every_column: true,
        ..EventFields::default()
    };
    for (n_before, path) in files.iter().enumerate() {
        let file = shown_name(files, path);
        sample.begin_file(files.len() - n_before);
        let long = source::read(path, &fields, &|_| {}, |line, record| {
            // A line that is too long comes as an empty record.
            if !record.bytes.is_empty() {
                sample.take(format_args!("{file}line {line}"), kind, &record.to_json());
            }
        })?;
        if !long.is_empty() {
            warn(&format!("{file}{long}"));
        }
    }
    suggested(args, &sample, files)
}

/// Prints the draft for a sample of these files.
fn suggested(args: &CheckArgs, sample: &Unmapped, files: &[PathBuf]) -> anyhow::Result<ExitCode> {
    with_counting(args.config.config.as_deref(), |counting| {
        let options = counting_options(&counting);
        let suggestion = sample.suggest(&options);
        // The sample has columns of any type, but our own fields are read from columns of their types only.
        if suggestion.has_own_fields {
            let fields = EventFields {
                kind: args.records_are,
                ..EventFields::default()
            };
            for path in files.iter().filter(|path| source::is_parquet(path)) {
                source::read(path, &fields, &|_| {}, |_, _| {})?;
            }
        }
        print(&suggestion.text)?;
        Ok(match suggestion.fault {
            None => ExitCode::SUCCESS,
            Some(fault) => {
                error(&format!(
                    "--suggest: the draft cannot be used unchanged: {fault}; its comments have the details"
                ));
                ExitCode::from(BAD_DATA)
            }
        })
    })
}
