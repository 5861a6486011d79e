//! Relevance of the rows in the truth, and a check for a relevance column that no flag names.

use super::number;
use crate::tools::cli::ConvertArgs;

/// A column of numbers or booleans, some of them 0 or false, that no flag names. Its rows may be graded, and not all relevant.
#[derive(Debug, thiserror::Error)]
#[error(
    "the truth has a column {column} with zeros or false (rows: {n_zeros}); `--relevance {column}` leaves these rows out; \
     `--relevance \"\"` takes every row as relevant"
)]
pub(super) struct UnnamedRelevance {
    column: String,
    n_zeros: u64,
}

/// Returns whether a row of the truth is relevant according to its cell in the column of `--relevance`. Without that column
/// every row is.
pub(super) fn is_relevant(
    args: &ConvertArgs,
    cell: Option<String>,
    row: u64,
) -> Result<bool, super::FaultyRow> {
    let Some(column) = args.relevance_column() else {
        return Ok(true);
    };
    let relevance = number((column, "--relevance"), cell, row, parse)?;
    Ok(match args.min_relevance {
        Some(min) => relevance >= min,
        None => relevance > 0.0,
    })
}

/// Parses a number, or a boolean as 1 or 0.
fn parse(text: &str) -> Option<f64> {
    match text.trim() {
        text if text.eq_ignore_ascii_case("true") => Some(1.0),
        text if text.eq_ignore_ascii_case("false") => Some(0.0),
        text => text.parse().ok(),
    }
}

/// Counts of zeros, including false, and presence of text in the columns that no flag names, in their order.
#[derive(Debug, Default)]
pub(super) struct OtherColumns {
    columns: Vec<OtherColumn>,
}

#[derive(Debug, Default, Clone)]
struct OtherColumn {
    n_zeros: u64,
    has_text: bool,
}

impl OtherColumns {
    pub(super) fn add(&mut self, cells: impl Iterator<Item = Option<String>>) {
        for (place, cell) in cells.enumerate() {
            if self.columns.len() == place {
                self.columns.push(OtherColumn::default());
            }
            let column = &mut self.columns[place];
            match cell.as_deref().map(parse) {
                Some(Some(number)) => column.n_zeros += u64::from(number == 0.0),
                Some(None) => column.has_text = true,
                None => {}
            }
        }
    }

    /// Checks the other columns, given their names.
    ///
    /// # Errors
    /// If one of these columns may contain relevance.
    pub(super) fn check(&self, names: &[String]) -> Result<(), UnnamedRelevance> {
        let mut columns = names.iter().zip(&self.columns);
        // Graded relevance usually has zeros. A column with text, or an index that starts at 0, is something else.
        let found = columns.find(|(name, column)| column.n_zeros > 0 && !column.has_text && !is_index(name));
        match found {
            Some((name, column)) => Err(UnnamedRelevance {
                column: abgauge_core::table::visible(name),
                n_zeros: column.n_zeros,
            }),
            None => Ok(()),
        }
    }
}

/// Returns true for an index written by pandas, which starts at 0.
fn is_index(name: &str) -> bool {
    ["", "index"].contains(&name) || name.starts_with("Unnamed: ") || name.starts_with("__index_level_")
}
