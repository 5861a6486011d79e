//! Arguments of `catalog`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ConfigArgs;
use crate::settings::parse_size;
use crate::tools::catalogue_count::Touch;

#[derive(Debug, Args)]
pub struct CatalogArgs {
    #[command(subcommand)]
    pub command: CatalogCommand,
}

#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// Write the catalogue of a stream: its items, and how many users touched each
    ///
    /// The file is for `metrics.catalog` and `evaluate --catalog`, so that coverage, popularity and surprisal need no handmade list.
    /// It contains all items of lists and clicks. Counts are exact in any order of the events, and copies of an event count once. A
    /// click without a user belongs to its list's user.
    #[command(
        after_long_help = BUILD_EXAMPLES,
        override_usage = "abgauge catalog build [OPTIONS] <FILE>...\n       abgauge catalog build [OPTIONS] --from-kafka"
    )]
    Build(BuildArgs),
}

#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Files of events, each with its "type"; `-` for standard input
    ///
    /// JSON, one object per line, or CSV, plain or compressed with gzip or zstd; Avro files; or Parquet. They are read with the section `events` of the
    /// configuration, as by `abgauge evaluate`.
    #[arg(
        value_name = "FILE",
        required_unless_present = "from_kafka",
        conflicts_with = "from_kafka"
    )]
    pub files: Vec<PathBuf>,
    /// Read the topics of the configuration from the beginning to the current end
    ///
    /// Joins no group and writes nothing: a daemon keeps running.
    #[arg(long)]
    pub from_kafka: bool,
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Which users touched an item
    #[arg(long, value_enum, default_value_t = Touch::Clicked)]
    pub touched: Touch,
    /// Memory limit for pairs of an item and a user, 10 to 21 bytes each, and for lists whose clicks have no user
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size)]
    pub max_state: u64,
}

pub(super) const CATALOG_EXAMPLES: &str = "\
Examples:
  abgauge catalog build events.jsonl > items.jsonl
  abgauge catalog build --from-kafka --config abgauge.toml > items.jsonl";

const BUILD_EXAMPLES: &str = "\
Examples:
  abgauge catalog build events.jsonl > items.jsonl
  abgauge catalog build monday.jsonl.zst tuesday.jsonl.zst --touched shown > items.jsonl
  abgauge catalog build --from-kafka --config abgauge.toml > items.jsonl

Skipped input is reported on standard error.

Exit codes:
   0  success
   1  a failure, such as a missing file, or --max-state is used up
   2  wrong usage
  65  no item was found, or a file is damaged or in a format that cannot be read
  69  Kafka cannot be reached
  78  a bad configuration, or a missing topic";
