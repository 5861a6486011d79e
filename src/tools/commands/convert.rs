//! `abgauge convert`: converts tables of recommendations and of relevant items to events.

mod relevance;

use std::io::BufWriter;
use std::path::Path;
use std::process::ExitCode;

use abgauge_core::decode::{MAX_ID_BYTES, MAX_LABEL_BYTES};
use abgauge_core::engine::OTHER;
use abgauge_core::evaluate::source::{self, table};
use anyhow::Context as _;
use relevance::{OtherColumns, UnnamedRelevance, is_relevant};

use super::reading::progress;
use super::{BAD_DATA, error, note, warn};
use crate::tools::cli::{ConvertArgs, RecommendationFile};
use crate::tools::convert::{ConvertedCounts, Tables, Writing};

/// A row that cannot be converted.
#[derive(Debug, thiserror::Error)]
#[error("row {row}: {what}")]
struct FaultyRow {
    row: u64,
    what: String,
}

/// Converts the tables and writes the events to standard output.
///
/// # Errors
/// If a table cannot be read, or the events cannot be written.
pub fn convert(args: &ConvertArgs) -> anyhow::Result<ExitCode> {
    let mut reading = Reading {
        args,
        tables: Tables::default(),
        n_empty: 0,
        n_irrelevant: 0,
        n_rows: 0,
    };
    let read = reading.read();
    if let Err(failure) = read {
        if !failure.is::<FaultyRow>() && !failure.is::<UnnamedRelevance>() {
            return Err(failure);
        }
        error(&format!("{failure:#}"));
        return Ok(ExitCode::from(BAD_DATA));
    }
    if reading.n_empty > 0 {
        warn(&format!(
            "skipped rows without a user or an item: {}",
            reading.n_empty
        ));
    }
    if reading.n_irrelevant > 0 {
        note(&format!(
            "skipped rows of the truth that are not relevant: {}",
            reading.n_irrelevant
        ));
    }
    if reading.n_rows == 0 {
        error("the tables have no recommendations");
        return Ok(ExitCode::from(BAD_DATA));
    }
    let writing = Writing {
        experiment: args.experiment.clone(),
        at_ms: args.at,
        empty_lists: args.empty_lists,
        by_score: args.score.is_some(),
    };
    let out = BufWriter::new(std::io::stdout().lock());
    match reading.tables.write(&writing, out) {
        Ok(written) => print_notes(&written, args.empty_lists),
        // A closed pipe is not an error.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        failed => {
            failed.context("write to standard output")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

struct Reading<'a> {
    args: &'a ConvertArgs,
    tables: Tables,
    /// Rows without a user or an item.
    n_empty: u64,
    /// Rows of the truth that `--relevance` excludes.
    n_irrelevant: u64,
    /// Rows of recommendations.
    n_rows: u64,
}

impl Reading<'_> {
    fn read(&mut self) -> anyhow::Result<()> {
        let args = self.args;
        let mut paths: Vec<_> = args
            .recommendations
            .iter()
            .map(|file| file.path.clone())
            .collect();
        paths.push(args.truth.clone());
        for (place, file) in args.recommendations.iter().enumerate() {
            let is_same = |other: &RecommendationFile| (&other.arm, &other.path) == (&file.arm, &file.path);
            if args.recommendations[..place].iter().any(is_same) {
                anyhow::bail!(
                    "--recommendations has {} of the arm {} twice: give each table once",
                    file.path.display(),
                    abgauge_core::table::visible(&file.arm)
                );
            }
        }
        let bar = progress(source::total_bytes(&paths));
        for file in &args.recommendations {
            self.recommendations(&file.path, &file.arm, &|n_bytes| bar.inc(n_bytes))?;
        }
        self.truth(&|n_bytes| bar.inc(n_bytes))?;
        bar.finish_and_clear();
        Ok(())
    }

    fn recommendations(&mut self, path: &Path, arm: &str, watch: &dyn Fn(u64)) -> anyhow::Result<()> {
        let args = self.args;
        let rank = args.rank.as_deref().map(|column| (column, "--rank"));
        let order = rank.or(args.score.as_deref().map(|column| (column, "--score")));
        let columns: Vec<(&str, &str)> = [(args.user.as_str(), "--user"), (args.item.as_str(), "--item")]
            .into_iter()
            .chain(order)
            .chain(args.arm.as_deref().map(|column| (column, "--arm")))
            .collect();
        read(path, &columns, None, watch, |row, cells| {
            let mut cells = cells.into_iter();
            let Some((user, item)) = pair(&mut cells, row)? else {
                self.n_empty += 1;
                return Ok(());
            };
            let place = match &order {
                Some((column, flag)) => number((*column, *flag), cells.next().flatten(), row, |text| {
                    text.parse().ok()
                })?,
                // Without a column for the order, rows are in rank order.
                None => self.n_rows as f64,
            };
            // The lowest place ranks first, but the highest score.
            let place = if args.score.is_some() { -place } else { place };
            let named = match &args.arm {
                Some(column) => Some(label(column, cells.next().flatten(), row)?),
                None => None,
            };
            self.n_rows += 1;
            self.tables
                .recommend(named.as_deref().unwrap_or(arm), user, item, place);
            Ok(())
        })
    }

    fn truth(&mut self, watch: &dyn Fn(u64)) -> anyhow::Result<()> {
        let args = self.args;
        let user = args.truth_user.as_ref().unwrap_or(&args.user);
        let item = args.truth_item.as_ref().unwrap_or(&args.item);
        let columns: Vec<(&str, &str)> = [(user.as_str(), "--truth-user"), (item.as_str(), "--truth-item")]
            .into_iter()
            .chain(args.relevance_column().map(|column| (column, "--relevance")))
            .collect();
        // With `--relevance`, other columns are ignored.
        let (mut names, mut others) = (Vec::new(), OtherColumns::default());
        let other_names = args.relevance.is_none().then_some(&mut names);
        read(&args.truth, &columns, other_names, watch, |row, cells| {
            let mut cells = cells.into_iter();
            let pair = pair(&mut cells, row)?;
            let is_relevant = match args.relevance_column() {
                Some(_) if pair.is_some() => is_relevant(args, cells.next().flatten(), row)?,
                _ => true,
            };
            let Some((user, item)) = pair else {
                self.n_empty += 1;
                return Ok(());
            };
            // The named columns have been taken from the iterator, so the rest are the others.
            others.add(cells);
            match is_relevant {
                true => self.tables.relevant(user, item),
                false => self.n_irrelevant += 1,
            }
            Ok(())
        })?;
        Ok(others.check(&names)?)
    }
}

/// Reads columns of a table, each with the flag that names it. Also returns the other columns' names if `other_names` is
/// given.
fn read(
    path: &Path,
    columns: &[(&str, &str)],
    other_names: Option<&mut Vec<String>>,
    watch: &dyn Fn(u64),
    row: impl FnMut(u64, table::Cells) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let names: Vec<&str> = columns.iter().map(|(column, _)| *column).collect();
    table::read(path, &names, other_names, watch, row).map_err(|failure| {
        let absent = failure.downcast_ref::<table::NoColumn>();
        let flag = columns
            .iter()
            .find(|(column, _)| absent.is_some_and(|absent| absent.column == *column));
        match flag {
            Some((_, flag)) => anyhow::anyhow!("{failure:#}; name the right one with {flag}"),
            None => failure,
        }
    })
}

/// Returns a user and an item, or `None` if either is empty.
fn pair(
    cells: &mut impl Iterator<Item = Option<String>>,
    row: u64,
) -> Result<Option<(String, String)>, FaultyRow> {
    let (user, item) = (cells.next().flatten(), cells.next().flatten());
    for (name, id) in [("user", &user), ("item", &item)] {
        if id.as_ref().is_some_and(|id| id.len() > MAX_ID_BYTES) {
            let what = format!("the {name} is longer than {MAX_ID_BYTES} bytes");
            return Err(FaultyRow { row, what });
        }
    }
    Ok(user.zip(item))
}

/// Returns the finite number in the cell of a column, which a flag names.
fn number(
    (column, flag): (&str, &str),
    cell: Option<String>,
    row: u64,
    parse: impl Fn(&str) -> Option<f64>,
) -> Result<f64, FaultyRow> {
    let text = cell.unwrap_or_default();
    let text = text.trim();
    if let Some(number) = parse(text).filter(|number| number.is_finite()) {
        return Ok(number);
    }
    let what = match text {
        "" => format!(
            "{column} is empty: write a number, such as 0, or delete the row, or name another column with {flag}"
        ),
        _ => {
            let remedy = match parse(&text.replace(',', ".")) {
                Some(_) => "write a decimal point".to_owned(),
                None => format!("correct it, or name another column with {flag}"),
            };
            format!(
                "{column} is \"{}\", which is not a number: {remedy}",
                abgauge_core::table::visible(text)
            )
        }
    };
    Err(FaultyRow { row, what })
}

fn label(column: &str, cell: Option<String>, row: u64) -> Result<String, FaultyRow> {
    let text = cell.unwrap_or_default();
    match text.len() {
        1..=MAX_LABEL_BYTES if text != OTHER => Ok(text),
        _ => Err(FaultyRow {
            row,
            what: format!("{column} must have a name of 1 to {MAX_LABEL_BYTES} bytes other than {OTHER}"),
        }),
    }
}

/// Prints notes and warnings about the events.
fn print_notes(written: &ConvertedCounts, empty_lists: bool) {
    let ConvertedCounts {
        n_lists,
        n_clicks,
        n_on_list,
        n_without_list,
        n_without_truth,
        n_repeated,
        n_tied,
        n_nearly_tied,
    } = written;
    note(&format!(
        "lists: {n_lists}, clicks: {n_clicks}, of them on an item of their list: {n_on_list}"
    ));
    let notes = [
        ("lists of users without relevant items", n_without_truth),
        (
            match empty_lists {
                true => "empty lists of users without recommendations",
                false => {
                    "users of the truth without recommendations, left out in an arm (--empty-lists counts them)"
                }
            },
            n_without_list,
        ),
    ];
    for (what, n) in notes.into_iter().filter(|(_, n)| **n > 0) {
        note(&format!("{what}: {n}"));
    }
    if *n_tied > 0 {
        warn(&format!(
            "lists with equal scores, left in the order of their rows: {n_tied}; trec_eval puts the larger id first, ranx \
             reverses or shuffles lists of 16 items or more"
        ));
    }
    if *n_nearly_tied > 0 {
        warn(&format!(
            "lists with scores that are equal only in single precision, which trec_eval treats as equal: {n_nearly_tied}"
        ));
    }
    if *n_repeated > 0 {
        warn(&format!("skipped duplicate rows of the tables: {n_repeated}"));
    }
    if *n_on_list == 0 {
        warn(
            "no list contains a relevant item: are ids written the same way in all tables? pandas writes 5 as 5.0 if a column has empty cells",
        );
    }
}
