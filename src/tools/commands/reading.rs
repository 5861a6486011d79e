//! Reading of the catalogue and the events for an evaluation, with a progress bar on a terminal and notes for the user.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use abgauge_core::evaluate::{self, Evaluation, Options, Progress, evaluate_files, source};
use abgauge_core::metrics::catalogue::Catalogue;
use abgauge_core::metrics::{ALPHA_NDCG, Measures};
use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};

use super::counting::EvaluationOptions;
use super::inputs::{self, InputFile};
use super::{BAD_CONFIGURATION, error, note, warn};
use crate::tools::cli::CountArgs;

/// Evaluates the files. Returns the exit code if the catalogue cannot be used.
pub(super) fn evaluation(
    args: &CountArgs,
    counted: &EvaluationOptions,
) -> anyhow::Result<Result<Evaluation, ExitCode>> {
    let mut options = counted.options.clone();
    if let Some(path) = &counted.catalog {
        match read_catalogue(path, &options) {
            Ok(catalogue) => {
                leave_out(&catalogue, &mut options.measures);
                options.catalogue = Some(Arc::new(catalogue));
            }
            // The daemon also treats this as an invalid configuration.
            Err(fault) => {
                error(&format!("{fault:#}"));
                return Ok(Err(ExitCode::from(BAD_CONFIGURATION)));
            }
        }
    }
    read(&inputs::of_both_kinds(args)?, &options).map(Ok)
}

/// Notes what the catalogue lacks. Without aspects α-NDCG would be 0 everywhere, which is misleading, so it is removed.
/// Metrics that need absent shares are undefined anyway.
fn leave_out(catalogue: &Catalogue, measures: &mut Measures) {
    for lack in catalogue.lacks(&measures.metrics) {
        note(&lack);
    }
    // The only metric is kept, because nothing would be left to show.
    if catalogue.n_aspects() == 0 && measures.metrics.len() > 1 {
        measures.metrics.retain(|id| *id != ALPHA_NDCG.id);
    }
}

fn read_catalogue(path: &Path, options: &Options) -> anyhow::Result<Catalogue> {
    let name = path.display();
    let lines: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let file = File::open(path).with_context(|| format!("open {name}"))?;
        // Linux opens a directory like a file, and only reading it fails.
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            anyhow::bail!("open {name}: it is a directory");
        }
        Box::new(BufReader::new(file))
    };
    evaluate::read_catalogue(lines, options).with_context(|| format!("read the catalogue {name}"))
}

fn read(files: &[InputFile], options: &Options) -> anyhow::Result<Evaluation> {
    let bar = progress(source::total_bytes(files.iter().map(|(_, path)| path)));
    let evaluation = evaluate_files(files, options, &|progress| match progress {
        Progress::Read(n_bytes) => bar.inc(n_bytes),
        Progress::Restart => bar.reset(),
    })?;
    bar.finish_and_clear();
    Ok(evaluation)
}

/// Creates a bar with bytes read, rate and remaining time. It is hidden unless standard error is a terminal.
pub(super) fn progress(total_bytes: Option<u64>) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match total_bytes {
        Some(total) => (
            ProgressBar::new(total),
            "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
        ),
        None => (
            ProgressBar::new_spinner(),
            "{spinner} {bytes} read, {bytes_per_sec}",
        ),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Prints notes and warnings about the evaluation.
pub(super) fn print_notes(counted: &EvaluationOptions, evaluation: &Evaluation) {
    counted.notes.iter().for_each(|text| note(text));
    evaluation.warnings().iter().for_each(|text| warn(text));
    evaluation.notes().iter().for_each(|text| note(text));
    evaluation.nothing().iter().for_each(|text| error(text));
}
