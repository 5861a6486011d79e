//! Relevance of the rows in the truth, and a check for a relevance column that no flag names.

use abgauge_core::nouns::number_of;

use super::number;
use crate::tools::cli::ConvertArgs;

/// A column of numbers or booleans that no flag names, with values that look like "not relevant".
#[derive(Debug, thiserror::Error)]
#[error(
    "the truth has a column {column} with values that look like \"not relevant\" ({rows}; the first is {first}); \
     `--relevance {column}` leaves these rows out{condition}; `--relevance \"\"` takes every row as relevant"
)]
pub(super) struct UnnamedRelevance {
    column: String,
    first: String,
    /// Number of such rows.
    rows: String,
    /// Condition of that advice.
    condition: &'static str,
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
        None => is_positive(relevance),
    })
}

/// Returns whether an item with this relevance is relevant.
fn is_positive(relevance: f64) -> bool {
    relevance > 0.0
}

/// Parses a number, or a boolean as 1 or 0.
fn parse(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_any = |words: [&str; 4]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match text {
        _ if is_any(["true", "yes", "t", "y"]) => Some(1.0),
        _ if is_any(["false", "no", "f", "n"]) => Some(0.0),
        _ => text.parse().ok(),
    }
}

/// Columns that no flag names, in their order.
#[derive(Debug, Default)]
pub(super) struct OtherColumns {
    columns: Vec<OtherColumn>,
}

#[derive(Debug, Default, Clone)]
struct OtherColumn {
    n_irrelevant: u64,
    /// The first cell that is not relevant.
    first: Option<String>,
    has_empty: bool,
    has_number: bool,
    has_text: bool,
}

impl OtherColumns {
    pub(super) fn add(&mut self, cells: impl Iterator<Item = Option<String>>) {
        for (place, cell) in cells.enumerate() {
            if self.columns.len() == place {
                self.columns.push(OtherColumn::default());
            }
            self.columns[place].add(cell.filter(|cell| !cell.trim().is_empty()));
        }
    }

    /// Checks the other columns, given their names.
    ///
    /// # Errors
    /// If one of these columns may contain relevance.
    pub(super) fn check(&self, names: &[String]) -> Result<(), UnnamedRelevance> {
        let mut columns = names.iter().zip(&self.columns);
        let found = columns.find(|(name, column)| column.is_graded() && !is_index(name));
        match found {
            Some((name, column)) => Err(UnnamedRelevance {
                column: abgauge_core::table::visible(name),
                first: match &column.first {
                    Some(cell) => format!("\"{}\"", abgauge_core::table::visible(cell)),
                    None => "an empty cell".to_owned(),
                },
                rows: number_of(column.n_irrelevant, "row"),
                condition: match column.has_empty {
                    true => ", after you fill its empty cells, for example with 0",
                    false => "",
                },
            }),
            None => Ok(()),
        }
    }
}

impl OtherColumn {
    fn add(&mut self, cell: Option<String>) {
        let is_irrelevant = match cell.as_deref().map(parse) {
            Some(Some(relevance)) => {
                self.has_number = true;
                !is_positive(relevance)
            }
            Some(None) => {
                self.has_text = true;
                false
            }
            None => {
                self.has_empty = true;
                true
            }
        };
        if is_irrelevant {
            if self.n_irrelevant == 0 {
                self.first = cell;
            }
            self.n_irrelevant += 1;
        }
    }

    /// Returns whether the column may contain relevance: numbers or booleans, and some look like "not relevant". A column with text
    /// is something else, and so is one without any value.
    fn is_graded(&self) -> bool {
        self.n_irrelevant > 0 && self.has_number && !self.has_text
    }
}

/// Returns true for an index written by pandas, which starts at 0.
fn is_index(name: &str) -> bool {
    ["", "index"].contains(&name) || name.starts_with("Unnamed: ") || name.starts_with("__index_level_")
}
