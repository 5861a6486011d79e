//! `abgauge evaluate`: computes metrics from files.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use abgauge_core::evaluate::{Evaluation, GroupBy};
use anyhow::Context as _;

use super::counting::{EvaluationOptions, counted};
use super::reading::{self, print_notes};
use super::{BAD_DATA, compare, misuse, note, print, warn, with_counting};
use crate::settings::{Counting, display_ms};
use crate::tools::cli::{EvaluateArgs, Format, OutputFile, OutputFormat};

const DAY_MS: i64 = 86_400_000;

/// Evaluates the files and prints the result.
///
/// # Errors
/// If a file cannot be read, or the result cannot be written.
pub fn evaluate(args: &EvaluateArgs) -> anyhow::Result<ExitCode> {
    with_counting(args.counting.config.as_deref(), |counting| {
        let counted = match asked(args, &counting) {
            Ok(counted) => counted,
            Err(message) => return Ok(misuse("evaluate", &message)),
        };
        let evaluation = match reading::evaluation(&args.counting, &counted)? {
            Ok(evaluation) => evaluation,
            Err(code) => return Ok(code),
        };
        let compare = counted
            .options
            .compare
            .as_ref()
            // Without events no arm exists, and the lack of events is reported instead.
            .filter(|_| !evaluation.is_empty());
        let missing = compare.and_then(|compare| compare::missing(&args.comparing, compare, &evaluation));
        if let Some(message) = missing {
            return Ok(misuse("evaluate", &message));
        }
        print_notes(&counted, &evaluation);
        for text in compare::on_arms(&evaluation) {
            warn(&text);
        }
        let left_out = compare.and_then(|compare| compare::left_out(compare, &evaluation));
        left_out.iter().for_each(|text| note(text));
        if let Some(compare) = compare {
            for text in compare::without_shares(compare, &evaluation) {
                note(&text);
            }
        }
        if let Some(output) = &args.output {
            write(&evaluation, output)?;
        }
        show(&evaluation, args)?;
        let is_bad = evaluation.unusable().is_some();
        let is_strictly_bad = args.strict && evaluation.n_unreadable() > 0;
        Ok(match is_bad || is_strictly_bad {
            true => ExitCode::from(BAD_DATA),
            false => ExitCode::SUCCESS,
        })
    })
}

/// Returns the options. The error explains what is wrong with the flags.
fn asked(args: &EvaluateArgs, counting: &Counting) -> Result<EvaluationOptions, String> {
    let mut counted = counted(&args.counting, counting)?;
    let options = &mut counted.options;
    options.measures.alpha = args.alpha.unwrap_or(options.measures.alpha);
    options.compare = compare::compare(&args.comparing, &options.measures)?;
    options.span_ms = span_ms(args, options.slot_ms)?;
    options.filters.clone_from(&args.filters);
    options.by = args.by.clone().map(|field| GroupBy {
        field,
        max_groups: args.max_groups.into(),
    });
    if options.by.is_some() && options.compare.is_some() {
        return Err(
            "--by cannot be used with --compare, because a test in each group would find differences by chance: compare one group that you \
             chose before, by --where FIELD=VALUE"
                .to_owned(),
        );
    }
    Ok(counted)
}

fn span_ms(args: &EvaluateArgs, slot_ms: i64) -> Result<Option<i64>, String> {
    let (flag, span_ms) = match (args.by_day, args.window) {
        (true, _) => ("--by-day", DAY_MS),
        (false, Some(span_ms)) => ("--window", span_ms),
        (false, None) => return Ok(None),
    };
    match span_ms > 0 && span_ms % slot_ms == 0 {
        true => Ok(Some(span_ms)),
        false => Err(format!(
            "{flag}: a span of {} is not a multiple of the slot, {}: lists are counted by slot",
            display_ms(span_ms),
            display_ms(slot_ms)
        )),
    }
}

/// Writes the numbers to a file, by way of a temporary file in the same directory: a reader never finds half of them.
fn write(evaluation: &Evaluation, output: &OutputFile) -> anyhow::Result<()> {
    let path = &output.path;
    let mut temporary = path.clone().into_os_string();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let write = || {
        let mut file = BufWriter::new(File::create(&temporary)?);
        let report = evaluation.report();
        match output.format {
            #[cfg(feature = "parquet")]
            OutputFormat::Parquet => report.parquet(&mut file)?,
            OutputFormat::Csv => report.csv(&mut file)?,
            OutputFormat::Json => report.json(&mut file)?,
        }
        file.flush()?;
        std::fs::rename(&temporary, path)?;
        anyhow::Ok(())
    };
    write()
        .inspect_err(|_| _ = std::fs::remove_file(&temporary))
        .with_context(|| format!("write --output {}", path.display()))
}

fn show(evaluation: &Evaluation, args: &EvaluateArgs) -> anyhow::Result<()> {
    let report = evaluation.report();
    let mut bytes = Vec::new();
    match args.format {
        Format::Json => report.json(&mut bytes)?,
        Format::Csv => report.csv(&mut bytes)?,
        // JSON and CSV keep their frame without numbers, but a table would be blank.
        _ if evaluation.is_empty() => {}
        Format::Table => bytes = format!("{}\n", report.table()).into_bytes(),
        Format::Markdown => bytes = format!("{}\n", report.markdown()).into_bytes(),
    }
    print(&String::from_utf8_lossy(&bytes))
}
