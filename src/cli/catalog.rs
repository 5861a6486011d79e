//! Arguments of `catalog`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ConfigArgs;
use crate::catalogue_count::Touch;
use crate::config::parse_size;

#[derive(Debug, Args)]
pub struct CatalogArgs {
    #[command(subcommand)]
    pub command: CatalogCommand,
}

#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// Write the catalogue of a stream: its items, and how many users touched each
    ///
    /// As `metrics.catalog` and `evaluate --catalog` read it, so that coverage, popularity and surprisal need no list made by hand.
    /// Counts are exact, whatever the order of the events, and copies of them count once. All items of lists and clicks are there. A
    /// click that names no user is that of the user of its list.
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
    /// JSON, one object a line, plain or packed with gzip or zstd; or Parquet. They are read with the section `events` of the
    /// configuration, as by `abgauge evaluate`.
    #[arg(
        value_name = "FILE",
        required_unless_present = "from_kafka",
        conflicts_with = "from_kafka"
    )]
    pub files: Vec<PathBuf>,
    /// Read the topics of the configuration from their begins to where they end now
    ///
    /// No group is joined, and nothing is written: a daemon goes on meanwhile.
    #[arg(long)]
    pub from_kafka: bool,
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Who touched an item
    #[arg(long, value_enum, default_value_t = TouchArg::Clicked)]
    pub touched: TouchArg,
    /// Memory that it may take: pairs of an item and a user are kept, 10 to 21 bytes each, and lists whose clicks name no user
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size)]
    pub max_state: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TouchArg {
    /// Those who clicked it
    Clicked,
    /// Those to whom a list showed it
    Shown,
}

impl From<TouchArg> for Touch {
    fn from(touch: TouchArg) -> Touch {
        match touch {
            TouchArg::Clicked => Touch::Clicked,
            TouchArg::Shown => Touch::Shown,
        }
    }
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

What was left out, and why, is told on standard error.

Exit codes:
   0  a clean end
   1  a failure, such as a file that is absent, or --max-state is used up
   2  wrong usage
  65  no item was found
  69  Kafka is out of reach
  78  a bad configuration, or a topic that is absent";
