//! Arguments of `abgauge state`.

use std::path::PathBuf;
use std::time::Duration;

use abgauge_core::journal::Namespace;
use clap::{Args, Subcommand, ValueEnum};

use super::{ConfigArgs, TableOrJson, parse_duration};

#[derive(Debug, Args)]
pub struct StateArgs {
    #[command(subcommand)]
    pub command: StateCommand,
}

#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// Show the stored state, its owners, and the progress of each pair
    ///
    /// Shows all namespaces of the topic: each combination of consumer group and counting rules has its own. For each pair it shows
    /// the claimant, the current seal, where counting began, the frontier up to which all lists are final, how far the topics were
    /// read, where a restart would read from, bytes, arms, lists and clicks.
    #[command(after_long_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Verify stored state: that it is complete and can be resumed
    ///
    /// Checks every current seal with its blobs and their hashes, that no key was written with two contents, that later seals are
    /// not behind earlier ones, and that this configuration can read totals and cells, which must end at the frontier. If the event
    /// topics can be reached, it also checks that they still hold the records that a restart would read. Temporary conditions, such as
    /// garbage and a claim without its seal yet, are only noted.
    #[command(after_long_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Write final cells and totals as JSON lines, or as Parquet
    ///
    /// Writes a row for each arm, span of time, profile, metric and cut-off. Only current seals are read. Metrics that are not sums over
    /// lists (coverage) have no rows.
    #[command(after_long_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Delete stored state, of all pairs or of one, so that counting restarts from zero
    ///
    /// Stop all instances of the group first: a running instance would write its state again. abgauge refuses while the group has
    /// members, or if something was written within the last minute. Deleted state cannot be restored, and a new start counts only what
    /// the event topics still hold.
    #[command(after_long_help = FORGET_EXAMPLES)]
    Forget(ForgetArgs),
}

/// How the topic is read.
#[derive(Debug, Args)]
pub struct ReadingArgs {
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Time limit for reading the topic
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
    /// Output format
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub format: ExportFormat,
    /// File to write to, `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Also write rows for each pair, before the rows over all pairs
    #[arg(long)]
    pub by_partition: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object per line
    Jsonl,
    /// Apache Parquet
    #[cfg(feature = "parquet")]
    Parquet,
}

#[derive(Debug, Args)]
pub struct ForgetArgs {
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Namespace to delete [default: the namespace of the configuration]
    #[arg(long = "ns", value_name = "NAMESPACE", value_parser = parse_namespace)]
    pub namespace: Option<Namespace>,
    /// Only this pair of partitions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    pub partition: Option<i32>,
    /// Delete it; without this flag, only print what would be deleted
    #[arg(long)]
    pub yes: bool,
    /// Delete even if another process may still write
    #[arg(long)]
    pub force: bool,
}

fn parse_namespace(text: &str) -> Result<Namespace, String> {
    text.parse()
        .map_err(|_| "write 16 hexadecimal digits, as `abgauge state show` prints them".to_owned())
}

pub(super) const STATE_EXAMPLES: &str = "\
Examples:
  abgauge state show --config abgauge.toml
  abgauge state verify --config abgauge.toml
  abgauge state export --config abgauge.toml --format parquet --output numbers.parquet
  abgauge state forget --config abgauge.toml --partition 3 --yes

Exit codes:
   0  success
   1  a failure; verify: state is damaged or cannot be resumed; forget: nothing was deleted, or it was written again
  69  Kafka cannot be reached
  78  a bad configuration, or one without state.topic";

const SHOW_EXAMPLES: &str = "\
Examples:
  abgauge state show --config abgauge.toml
  abgauge state show --config abgauge.toml --format json";

const VERIFY_EXAMPLES: &str = "\
Examples:
  abgauge state verify --config abgauge.toml";

const EXPORT_EXAMPLES: &str = "\
Examples:
  abgauge state export --config abgauge.toml > numbers.jsonl
  abgauge state export --config abgauge.toml --format parquet --output numbers.parquet";

const FORGET_EXAMPLES: &str = "\
Examples:
  abgauge state forget --config abgauge.toml
  abgauge state forget --config abgauge.toml --partition 3 --yes
  abgauge state forget --config abgauge.toml --ns 00c0ffee00c0ffee --yes";
