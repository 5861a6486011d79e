//! `abgauge evaluate`: arguments, files, numbers, exit code.

mod compare;
mod plan;

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};

use super::{BAD_CONFIGURATION, error, misuse, note, print, warn, with_counting};
use crate::cli::{EvaluateArgs, Format};
use crate::engine::catalogue::Catalogue;
use crate::evaluate::{self, Compare, Evaluation, Evaluator, Options, source};

/// `EX_DATAERR` of sysexits.h.
const BAD_DATA: u8 = 65;

/// # Errors
/// Where a file cannot be read, or the numbers cannot be written.
pub fn evaluate(args: &EvaluateArgs) -> anyhow::Result<ExitCode> {
    with_counting(args.config.as_deref(), |counting| {
        let plan = match plan::plan(args, &counting) {
            Ok(plan) => plan,
            Err(message) => return Ok(misuse("evaluate", &message)),
        };
        let mut options = plan.options;
        if let Some(path) = plan.catalog {
            match read_catalogue(&path, &options) {
                Ok(catalogue) => options.catalogue = Some(Arc::new(catalogue)),
                // As the daemon does that is started with it.
                Err(fault) => {
                    error(&format!("{fault:#}"));
                    return Ok(ExitCode::from(BAD_CONFIGURATION));
                }
            }
        }
        let evaluation = read(&args.files, &options)?;
        let compare = options.compare.as_ref().filter(|_| !evaluation.is_empty());
        if let Some(message) =
            compare.and_then(|compare| compare::missing(&args.comparing, compare, &evaluation))
        {
            return Ok(misuse("evaluate", &message));
        }
        plan.note.iter().for_each(|text| note(text));
        tell(&evaluation, compare);
        show(&evaluation, args)?;
        let is_bad = evaluation.is_empty() || !evaluation.losses().is_empty();
        let is_strictly_bad = args.strict && evaluation.n_unreadable() > 0;
        Ok(match is_bad || is_strictly_bad {
            true => ExitCode::from(BAD_DATA),
            false => ExitCode::SUCCESS,
        })
    })
}

fn read_catalogue(path: &Path, options: &Options) -> anyhow::Result<Catalogue> {
    let name = path.display();
    let lines: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let file = File::open(path).with_context(|| format!("open {name}"))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            anyhow::bail!("open {name}: it is a directory");
        }
        Box::new(BufReader::new(file))
    };
    evaluate::read_catalogue(lines, options).with_context(|| format!("read the catalogue {name}"))
}

fn read(files: &[PathBuf], options: &Options) -> anyhow::Result<Evaluation> {
    let mut evaluator = Evaluator::new(options);
    let bar = progress(source::total_bytes(files));
    for path in files {
        evaluator.read_file(path, &|n_bytes| bar.inc(n_bytes))?;
    }
    bar.finish_and_clear();
    Ok(evaluator.finish())
}

/// Bytes read, their rate and the remaining time; hidden where nobody would see it.
fn progress(total_bytes: Option<u64>) -> ProgressBar {
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

/// What a reader should know beside the numbers.
fn tell(evaluation: &Evaluation, compare: Option<&Compare>) {
    evaluation.warnings().iter().for_each(|text| warn(text));
    evaluation.notes().iter().for_each(|text| note(text));
    evaluation.nothing().into_iter().for_each(error);
    if let Some(text) = compare.and_then(|compare| compare::left_out(compare, evaluation)) {
        note(&text);
    }
}

fn show(evaluation: &Evaluation, args: &EvaluateArgs) -> anyhow::Result<()> {
    let report = evaluation.report();
    let mut bytes = Vec::new();
    match args.format {
        Format::Json => report.json(&mut bytes)?,
        Format::Csv => report.csv(&mut bytes)?,
        _ if evaluation.is_empty() => {}
        Format::Table => bytes = format!("{}\n", report.table()).into_bytes(),
        Format::Markdown => bytes = format!("{}\n", report.markdown()).into_bytes(),
    }
    print(&String::from_utf8_lossy(&bytes))
}
