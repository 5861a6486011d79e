//! Arguments of `convert`.

use std::path::{Path, PathBuf};

use abgauge_core::decode::MAX_LABEL_BYTES;
use clap::{ArgGroup, Args};

use super::parse_time_ms;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("order").args(["rank", "score"]))]
pub struct ConvertArgs {
    /// Table with one recommendation per row, as ARM=FILE; may be repeated [default arm: the name of the file]
    #[arg(long, value_name = "[ARM=]FILE", required = true, value_parser = parse_recommendations)]
    pub recommendations: Vec<RecommendationFile>,
    /// Ground-truth table, one row for each user and relevant item
    #[arg(long, value_name = "FILE")]
    pub truth: PathBuf,
    /// Column of the user, in all tables
    #[arg(long, value_name = "COLUMN", default_value = "user_id")]
    pub user: String,
    /// Column of the item, in all tables
    #[arg(long, value_name = "COLUMN", default_value = "item_id")]
    pub item: String,
    /// Column of the user in the ground-truth table [default: same as --user]
    #[arg(long, value_name = "COLUMN")]
    pub truth_user: Option<String>,
    /// Column of the item in the ground-truth table [default: same as --item]
    #[arg(long, value_name = "COLUMN")]
    pub truth_item: Option<String>,
    /// Column of numbers or booleans in that table: rows above 0 and true ones are relevant; "" takes every row [default: every row, if no column has values such as 0, -1, false, n, no or empty cells]
    #[arg(long, value_name = "COLUMN")]
    pub relevance: Option<String>,
    /// Minimum relevance of a relevant row, instead of any value above 0
    #[arg(long, value_name = "X", requires = "relevance", value_parser = parse_finite, allow_negative_numbers = true)]
    pub min_relevance: Option<f64>,
    /// Column of the rank: the lowest is shown first [default: rows are in rank order]
    #[arg(long, value_name = "COLUMN")]
    pub rank: Option<String>,
    /// Column of the score: the highest is shown first
    #[arg(long, value_name = "COLUMN")]
    pub score: Option<String>,
    /// Column of the arm in the tables of recommendations, if one table has several
    #[arg(long, value_name = "COLUMN")]
    pub arm: Option<String>,
    /// Name of the experiment
    #[arg(long, value_name = "NAME", default_value = "offline", value_parser = parse_label)]
    pub experiment: String,
    /// Also give an empty list to users with relevant items but no recommendations
    ///
    /// Such a list counts as a miss of its arm, as in libraries that average over all users of the ground truth.
    #[arg(long)]
    pub empty_lists: bool,
    /// Time of the lists (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = parse_time_ms, default_value = "2025-01-01T00:00:00Z")]
    pub at: i64,
}

impl ConvertArgs {
    /// Returns the column of relevance, if `--relevance` names one and is not empty.
    pub fn relevance_column(&self) -> Option<&str> {
        self.relevance.as_deref().filter(|column| !column.is_empty())
    }
}

/// Table of recommendations, with its arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecommendationFile {
    pub arm: String,
    pub path: PathBuf,
}

fn parse_recommendations(text: &str) -> Result<RecommendationFile, String> {
    let (arm, path) = match text.split_once('=') {
        // The first `=` ends the arm, because a path may contain others.
        Some((arm, path)) => (arm.to_owned(), path),
        None => (stem(Path::new(text)), text),
    };
    if path.is_empty() {
        return Err("write ARM=FILE, or FILE".to_owned());
    }
    Ok(RecommendationFile {
        arm: parse_label(&arm)?,
        path: path.into(),
    })
}

fn parse_finite(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok();
    let number = number.filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "write a number".to_owned())
}

/// Returns the name of a file up to its first dot.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

fn parse_label(text: &str) -> Result<String, String> {
    match text.len() {
        1..=MAX_LABEL_BYTES if text != abgauge_core::engine::OTHER => Ok(text.to_owned()),
        _ => Err(format!(
            "write a name of 1 to {MAX_LABEL_BYTES} bytes other than {}",
            abgauge_core::engine::OTHER
        )),
    }
}

pub(super) const CONVERT_EXAMPLES: &str = "\
Examples:
  abgauge convert --recommendations als.csv --truth test.csv --score score | abgauge evaluate -
  abgauge convert --recommendations als=a.parquet --truth test.parquet --rank rank > e.jsonl
  abgauge convert --recommendations all.csv --arm model --truth test.csv --rank pos > e.jsonl
  abgauge convert --recommendations als.csv --truth judged.csv --relevance rating --min-relevance 4

Skipped input is reported on standard error.

Exit codes:
   0  success
   1  a failure, such as a missing file or column
   2  wrong usage
  65  a table is damaged or in a format that cannot be read, a rank, score or relevance is not a number, a column looks like relevance but no flag names it, or there are no recommendations";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_precedes_its_file_or_has_the_name_of_the_file() {
        for (text, arm, path) in [
            ("als=a/b.csv", "als", "a/b.csv"),
            ("a/als.csv.gz", "als", "a/als.csv.gz"),
            ("x=y=z.csv", "x", "y=z.csv"),
        ] {
            let expected = RecommendationFile {
                arm: arm.to_owned(),
                path: path.into(),
            };
            assert_eq!(parse_recommendations(text), Ok(expected));
        }
        for text in ["=a.csv", "a=", "", "__other__=a.csv", "/", ".csv"] {
            assert!(parse_recommendations(text).is_err(), "{text}");
        }
    }
}
