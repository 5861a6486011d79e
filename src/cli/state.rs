//! Arguments of `abgauge state`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{ConfigArgs, TableOrJson, parse_duration};
use crate::state::Namespace;

#[derive(Debug, Args)]
pub struct StateArgs {
    #[command(subcommand)]
    pub command: StateCommand,
}

#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// Show what is stored, whose it is, and how far each pair has come
    ///
    /// All namespaces of the topic: what counts by other rules, or in another group, has another one. Of each pair: who has claimed it,
    /// the seal in force, where counting began, the frontier up to which all has settled, how far the topics were read, where
    /// they would be read again from, bytes, arms, lists and clicks.
    #[command(after_long_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Check what is stored: that it is whole, and can be gone on with
    ///
    /// Every seal in force with its blobs and their hashes, that no key has had two contents, that nothing goes back, that totals and
    /// cells can be read by this configuration and end at the frontier; and, if the topics of events can be asked, that they still
    /// hold what would be read again. What passes by itself, such as garbage and a claim that waits for its seal, is only noted.
    #[command(after_long_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Write settled cells and totals as JSON lines, or as Parquet
    ///
    /// A row for each arm, span of time, profile, metric and cut-off. Only seals in force are read. Of metrics that are not sums over lists
    /// (coverage) there is no row.
    #[command(after_long_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Delete what is stored, of all pairs or of one, so that counting begins anew
    ///
    /// Stop all instances of the group first: one that lives would write its state again. It is refused while the group has members, or
    /// something was written within the last minute. What is deleted cannot be brought back, and a new start counts only what
    /// the topics of events still hold.
    #[command(after_long_help = FORGET_EXAMPLES)]
    Forget(ForgetArgs),
}

/// How the topic is read.
#[derive(Debug, Args)]
pub struct ReadingArgs {
    #[command(flatten)]
    pub config: ConfigArgs,
    /// How long reading the topic may take
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = parse_duration, allow_hyphen_values = true)]
    pub timeout: Duration,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Only this namespace
    #[arg(long = "ns", value_name = "NAMESPACE", value_parser = parse_namespace)]
    pub namespace: Option<Namespace>,
    /// How to show it
    #[arg(long, value_enum, default_value_t = TableOrJson::Table)]
    pub format: TableOrJson,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub reading: ReadingArgs,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// What to write
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub format: ExportFormat,
    /// File to write to, `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Rows for each pair as well, before those over all pairs
    #[arg(long)]
    pub by_partition: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object a line
    Jsonl,
    /// Apache Parquet
    #[cfg(feature = "parquet")]
    Parquet,
}

#[derive(Debug, Args)]
pub struct ForgetArgs {
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// This namespace [default: that of the configuration]
    #[arg(long = "ns", value_name = "NAMESPACE", value_parser = parse_namespace)]
    pub namespace: Option<Namespace>,
    /// Only this pair of partitions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub partition: Option<i32>,
    /// Delete it; without it, only tell what would be deleted
    #[arg(long)]
    pub yes: bool,
    /// Also while somebody may still write
    #[arg(long)]
    pub force: bool,
}

fn parse_namespace(text: &str) -> Result<Namespace, String> {
    text.parse()
        .map_err(|_| "write 16 hexadecimal digits, as `abgauge state show` has them".to_owned())
}

pub(super) const STATE_EXAMPLES: &str = "\
Examples:
  abgauge state show --config abgauge.toml
  abgauge state verify --config abgauge.toml
  abgauge state export --config abgauge.toml --format parquet --output settled.parquet
  abgauge state forget --config abgauge.toml --partition 3 --yes

Exit codes:
   0  done
   1  a failure; verify: something is damaged, or cannot be gone on with; forget: nothing was deleted, or it was written again
  69  Kafka is out of reach
  78  a bad configuration, or one that stores nothing";

const SHOW_EXAMPLES: &str = "\
Examples:
  abgauge state show --config abgauge.toml
  abgauge state show --config abgauge.toml --format json";

const VERIFY_EXAMPLES: &str = "\
Examples:
  abgauge state verify --config abgauge.toml";

const EXPORT_EXAMPLES: &str = "\
Examples:
  abgauge state export --config abgauge.toml > settled.jsonl
  abgauge state export --config abgauge.toml --format parquet --output settled.parquet";

const FORGET_EXAMPLES: &str = "\
Examples:
  abgauge state forget --config abgauge.toml
  abgauge state forget --config abgauge.toml --partition 3 --yes
  abgauge state forget --config abgauge.toml --ns 00c0ffee00c0ffee --yes";
