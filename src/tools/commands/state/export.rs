//! `abgauge state export`: exports settled cells and totals of the seals in force to other programs.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use abgauge_core::journal::NamespaceContents;
use abgauge_core::metrics::Ranking;
use anyhow::Context as _;

use super::OpenedTopic;
use crate::store::stored::{DecodedState, SettledRow, rows};
use crate::tools::cli::{ExportArgs, ExportFormat};
use crate::tools::commands::{error, note, warn};

pub fn export(desk: &OpenedTopic, args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let reader = desk.read(desk.own, &args.reading)?;
    let mut pairs = Vec::new();
    let mut is_whole = true;
    for (partition, inventory) in reader.partitions() {
        match contents(desk, inventory.of(desk.own)) {
            Ok(Some(contents)) => pairs.push((partition, contents)),
            Ok(None) => note(&format!("partition {partition}: no seal is stored")),
            Err(why) => {
                error(&format!(
                    "partition {partition}: {why}: see `abgauge state verify`"
                ));
                is_whole = false;
            }
        }
    }
    // Rows over all pairs would be wrong without one of them, so nothing is written.
    if !is_whole {
        return Ok(ExitCode::FAILURE);
    }
    write(desk, args, pairs)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the highest seal, which stays valid while a newer claim has no seal yet.
fn contents(
    desk: &OpenedTopic,
    namespace_contents: Option<&NamespaceContents>,
) -> Result<Option<DecodedState>, String> {
    let sealed = namespace_contents.and_then(|contents| Some((contents, contents.end()?.seal?)));
    let Some((namespace_contents, (_, seal))) = sealed else {
        return Ok(None);
    };
    let seal = seal.map_err(|error| error.to_string())?;
    let roles = namespace_contents
        .roles(&seal)
        .map_err(|damage| damage.to_string())?;
    let contents = DecodedState::read(&seal.header, &roles, &desk.config);
    contents.map(Some).map_err(|unusable| unusable.to_string())
}

fn write(desk: &OpenedTopic, args: &ExportArgs, pairs: Vec<(i32, DecodedState)>) -> anyhow::Result<()> {
    let path = &args.output;
    let out: Box<dyn Write + Send> = match path == Path::new("-") {
        true => Box::new(std::io::stdout()),
        false => Box::new(File::create(path).with_context(|| format!("write {}", path.display()))?),
    };
    let ranking = Ranking::new(&desk.config.measures);
    if ranking.columns().iter().any(|column| !column.metric.is_additive) {
        warn("skipped metrics that are not sums over lists (coverage)");
    }
    let written = write_rows(args, pairs, &ranking, BufWriter::new(out));
    match written {
        // A closed pipe is not an error.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        written => written.with_context(|| format!("write {}", path.display())),
    }
}

fn write_rows(
    args: &ExportArgs,
    pairs: Vec<(i32, DecodedState)>,
    ranking: &Ranking,
    mut out: impl Write + Send,
) -> anyhow::Result<()> {
    match args.format {
        ExportFormat::Jsonl => {
            let mut take = |row: SettledRow| {
                serde_json::to_writer(&mut out, &row)?;
                out.write_all(b"\n").map_err(anyhow::Error::from)
            };
            rows(pairs, ranking, args.by_partition, &mut take)?;
            Ok(out.flush()?)
        }
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => {
            let mut writer = crate::store::stored::ParquetWriter::new(out)?;
            rows(pairs, ranking, args.by_partition, &mut |row| writer.take(row))?;
            writer.finish()
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = match error.downcast_ref::<serde_json::Error>() {
        Some(error) => error.io_error_kind(),
        None => error.downcast_ref::<std::io::Error>().map(std::io::Error::kind),
    };
    kind == Some(std::io::ErrorKind::BrokenPipe)
}
