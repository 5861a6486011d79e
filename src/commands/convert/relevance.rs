//! Relevance of the rows of the truth: by the column of `--relevance`, and a check for such a column that no flag names.

use super::number;
use crate::cli::ConvertArgs;

/// A column of numbers, some of them 0, that no flag names: its rows may be judged, and not all relevant.
#[derive(Debug, thiserror::Error)]
#[error(
    "the truth has a column {column} with numbers, of which {n_zeros} are 0: `--relevance {column}` leaves these rows out; \
     `--relevance \"\"` takes every row as relevant"
)]
pub(super) struct UnnamedRelevance {
    column: String,
    n_zeros: u64,
}

/// Decides by the cell of `--relevance` whether a row of the truth is relevant; without that column every row is.
pub(super) fn is_relevant(
    args: &ConvertArgs,
    cell: Option<String>,
    row: u64,
) -> Result<bool, super::FaultyRow> {
    let Some(column) = args.relevance_column() else {
        return Ok(true);
    };
    let relevance = number(column, cell, row)?;
    Ok(match args.min_relevance {
        Some(min) => relevance >= min,
        None => relevance > 0.0,
    })
}

/// Zeros and texts in the columns that no flag names, in the order of the columns.
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
            match cell.as_deref().map(|text| text.trim().parse::<f64>()) {
                Some(Ok(number)) => column.n_zeros += u64::from(number == 0.0),
                Some(Err(_)) => column.has_text = true,
                None => {}
            }
        }
    }

    /// # Errors
    /// One of these columns, by their names, may be one of relevance.
    pub(super) fn check(&self, names: &[String]) -> Result<(), UnnamedRelevance> {
        let mut columns = names.iter().zip(&self.columns);
        let found = columns.find(|(name, column)| column.n_zeros > 0 && !column.has_text && !is_index(name));
        match found {
            Some((name, column)) => Err(UnnamedRelevance {
                column: crate::table::visible(name),
                n_zeros: column.n_zeros,
            }),
            None => Ok(()),
        }
    }
}

/// Recognises an index that pandas wrote, which starts at 0.
fn is_index(name: &str) -> bool {
    ["", "index"].contains(&name) || name.starts_with("Unnamed: ") || name.starts_with("__index_level_")
}
