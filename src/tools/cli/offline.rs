//! Arguments of the commands that need no broker: `evaluate`, `plan` and `profiles`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use abgauge_core::decode::shape::Path;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, ValueEnum, error};

use super::comparing::{CompareArgs, parse_share};
use super::{between, parse_duration};
use crate::settings::{HttpUrl, LONGEST_LIST, parse_size, parse_span_ms};

/// Headings in the help.
const INPUT: &str = "Input";
const METRICS: &str = "Metrics";
const CLICKS: &str = "Joining clicks to lists";
const PARTS: &str = "Days and groups";
const OUTPUT: &str = "Output";
const DAEMON: &str = "Running daemon";

/// Arguments that select the input, and the metrics to compute.
#[derive(Debug, Args)]
pub struct CountArgs {
    /// Files or directories of events, each with its "type"; `-`, or none in a pipe, for standard input
    ///
    /// JSON, one object per line or in an array, or CSV, plain or compressed with gzip or zstd; Avro files; or Parquet. Tables have one
    /// event per row and one field per column. A directory means all files below it, and a quoted pattern such as 'logs/day=2025-11-*' all that match.
    /// The file type is detected from the first bytes. The order of lines does not matter: clicks may come before their lists.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Files of served lists only, which need no "type"
    ///
    /// Takes all arguments up to the next flag, so files of both kinds come before it. A record of another type is refused.
    #[arg(help_heading = INPUT, long, value_name = "FILE", num_args = 1..)]
    pub lists: Vec<PathBuf>,
    /// Files of clicks only, which need no "type"
    #[arg(help_heading = INPUT, long, value_name = "FILE", num_args = 1..)]
    pub clicks: Vec<PathBuf>,
    /// Daemon configuration with the settings that affect its numbers; flags override it
    ///
    /// Reads profile, metrics, k, alpha and catalog in the section `metrics`; attribution, click_skew, same_list, slot,
    /// max_items, max_experiments, max_lists_per_click, max_off_list and hash_seed in `join`; the section `events`; and
    /// your own profiles. Brokers need not be set. Environment variables override its settings as they do for the daemon.
    #[arg(help_heading = INPUT, long, value_name = "FILE", env = "ABGAUGE_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
    /// Conventions to compute by; several are shown side by side: `abgauge profiles` lists them [default: default]
    #[arg(
        help_heading = METRICS,
        long = "convention",
        value_name = "PROFILE",
        value_delimiter = ',',
        value_parser = parse_name,
        env = "ABGAUGE_EVALUATE_CONVENTION",
        hide_env_values = true
    )]
    pub conventions: Vec<String>,
    /// Metrics to compute, such as hit_rate,ctr,ndcg [default: the metrics of each convention]
    ///
    /// By default a convention shows all metrics that its source reports. `default`, which defines every metric, shows hit_rate,
    /// ctr, mrr, ndcg, precision, recall and map, and with --catalog also alpha_ndcg, coverage, popularity and surprisal.
    #[arg(
        help_heading = METRICS,
        long,
        value_name = "METRIC,…",
        value_delimiter = ',',
        value_parser = parse_name,
        env = "ABGAUGE_EVALUATE_METRICS",
        hide_env_values = true
    )]
    pub metrics: Vec<String>,
    /// Cut-offs; the whole list is always measured too [default: 1,5,10]
    #[arg(
        help_heading = METRICS,
        long,
        value_name = "K,…",
        value_delimiter = ',',
        value_parser = parse_k,
        env = "ABGAUGE_EVALUATE_K",
        hide_env_values = true
    )]
    pub k: Vec<NonZeroU32>,
    /// Item catalogue, one JSON object per line, for the metrics that need it
    ///
    /// Example of a line: {"item":"i1","aspects":["a3"],"users":12,"of_users":200}. `-` for standard input
    #[arg(
        help_heading = METRICS,
        long,
        value_name = "FILE",
        env = "ABGAUGE_EVALUATE_CATALOG",
        hide_env_values = true
    )]
    pub catalog: Option<PathBuf>,
    /// Time after its list in which a click counts [default: 30m]
    #[arg(help_heading = CLICKS, long, value_name = "SPAN", value_parser = parse_span_ms, allow_hyphen_values = true, env = "ABGAUGE_EVALUATE_ATTRIBUTION", hide_env_values = true)]
    pub attribution: Option<i64>,
    /// Time before its list in which a click counts [default: 0s]
    #[arg(help_heading = CLICKS, long, value_name = "SPAN", value_parser = parse_span_ms, allow_hyphen_values = true, env = "ABGAUGE_EVALUATE_CLICK_SKEW", hide_env_values = true)]
    pub click_skew: Option<i64>,
    /// Time between two lists with one request id within which the second is a copy [default: as long as --attribution]
    ///
    /// Lists that are further apart count as different lists.
    #[arg(help_heading = CLICKS, long, value_name = "SPAN", value_parser = parse_span_ms, allow_hyphen_values = true, env = "ABGAUGE_EVALUATE_SAME_LIST", hide_env_values = true)]
    pub same_list: Option<i64>,
    /// Memory limit for lists and clicks, such as 8GiB. Dropped records are reported and the exit code is 65
    #[arg(help_heading = INPUT, long, value_name = "SIZE", value_parser = parse_size, env = "ABGAUGE_EVALUATE_MAX_STATE", hide_env_values = true)]
    pub max_state: Option<u64>,
}

#[derive(Debug, Args)]
pub struct EvaluateArgs {
    #[command(flatten)]
    pub counting: CountArgs,
    /// Discount for a repeated aspect in alpha_ndcg, from 0 to 1 [default: 0.5]
    #[arg(help_heading = METRICS, long, value_name = "NUMBER", value_parser = between([0.0, 1.0]), env = "ABGAUGE_EVALUATE_ALPHA", hide_env_values = true)]
    pub alpha: Option<f64>,
    /// Also print the numbers of each day (UTC)
    #[arg(help_heading = PARTS, long, conflicts_with = "window")]
    pub by_day: bool,
    /// Also print the numbers of each span of this length, such as 1h
    ///
    /// Spans are aligned to 1970-01-01T00:00:00Z. A list and its clicks count in the span of the list's time.
    #[arg(help_heading = PARTS, long, value_name = "SPAN", value_parser = parse_span_ms, allow_hyphen_values = true)]
    pub window: Option<i64>,
    /// Also print the numbers of the lists with each value of a field, such as ctx.device
    ///
    /// A path as in the section `events`: `^.device` is a field of the record around the event. Clicks follow their lists. Lists without
    /// the field are in the group `__absent__`.
    #[arg(help_heading = PARTS, long, value_name = "FIELD", value_parser = parse_field)]
    pub by: Option<Path>,
    /// Maximum number of values that are groups of their own: the first ones; the rest is in the group `__other__`
    #[arg(help_heading = PARTS, long, value_name = "GROUPS", default_value_t = 100, requires = "by", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub max_groups: u16,
    /// Count only lists with this text in a field, such as ctx.device=ios, and their clicks; may be repeated, all must hold
    #[arg(help_heading = INPUT, long = "where", value_name = "FIELD=VALUE", value_parser = parse_filter)]
    pub filters: Vec<(Path, String)>,
    #[command(flatten)]
    pub comparing: CompareArgs,
    /// Also write the numbers to this file, which is replaced: .parquet, .csv or .json
    ///
    /// Parquet has the rows and columns of CSV, with types.
    #[arg(help_heading = OUTPUT, long, value_name = "FILE", value_parser = parse_output)]
    pub output: Option<OutputFile>,
    /// How to print the numbers
    #[arg(
        help_heading = OUTPUT,
        long,
        value_enum,
        default_value_t = Format::Table,
        env = "ABGAUGE_EVALUATE_FORMAT",
        hide_env_values = true
    )]
    pub format: Format,
    /// Exit with 65 if a line cannot be read
    #[arg(help_heading = OUTPUT, long)]
    pub strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a terminal
    Table,
    /// One document
    Json,
    /// One number per row, with its numerator and denominator
    Csv,
    /// Tables in Markdown
    Markdown,
}

/// File for the numbers, with the format that its ending names.
#[derive(Debug, Clone)]
pub struct OutputFile {
    pub path: PathBuf,
    pub format: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    #[cfg(feature = "parquet")]
    Parquet,
    Csv,
    Json,
}

/// Running daemon to query, with its credentials.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// Query a running daemon instead of files: the address of its page, such as http://localhost:9464
    ///
    /// Flags for counting and comparing do not apply: the daemon uses its own configuration, [experiments.NAME] in particular.
    #[arg(help_heading = DAEMON, long, value_name = "URL", value_parser = parse_url)]
    pub from: Option<HttpUrl>,
    /// File with a bearer token, if the daemon requires one
    #[arg(help_heading = DAEMON, long, value_name = "FILE", requires = "from")]
    pub token_file: Option<PathBuf>,
    /// Authorities that sign the daemon's certificate, in PEM [default: the system's]
    #[arg(help_heading = DAEMON, long, value_name = "FILE", requires = "from")]
    pub ca_file: Option<PathBuf>,
    /// Time limit for the daemon's answer
    #[arg(help_heading = DAEMON, long, value_name = "SPAN", default_value = "10s", value_parser = parse_duration, allow_hyphen_values = true, requires = "from")]
    pub timeout: Duration,
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    pub ask: AskArgs,
    #[command(flatten)]
    pub counting: CountArgs,
    #[command(flatten)]
    pub comparing: CompareArgs,
    /// The probability of a false alarm, between 0 and 1 [default: 0.05]
    #[arg(help_heading = super::comparing::COMPARISON, long, value_name = "PROBABILITY", value_parser = parse_share)]
    pub alpha: Option<f64>,
    /// How to print it
    #[arg(help_heading = OUTPUT, long, value_enum, default_value_t = TableOrJson::Table)]
    pub format: TableOrJson,
}

#[derive(Debug, Args)]
pub struct ProfilesArgs {
    /// Show every choice of this profile
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Also include the profiles of this configuration
    #[arg(long, value_name = "FILE", env = "ABGAUGE_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
    /// How to print them
    #[arg(long, value_enum, default_value_t = TableOrJson::Table)]
    pub format: TableOrJson,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableOrJson {
    /// For a terminal
    Table,
    /// One document
    Json,
}

/// Arguments allowed with `plan --from`.
const ASKING: [&str; 5] = ["from", "token_file", "ca_file", "timeout", "format"];

/// Refuses flags that do not apply to a daemon. Their environment variables are accepted, because other commands use them, too.
pub(super) fn refuse_counting(command: &mut Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some(plan) = matches
        .subcommand_matches("plan")
        .filter(|plan| plan.contains_id("from"))
    else {
        return Ok(());
    };
    let is_written =
        |id: &&str| plan.value_source(id) == Some(ValueSource::CommandLine) && !ASKING.contains(id);
    let command = command.find_subcommand_mut("plan").expect("it is there");
    let arguments = command.get_arguments();
    let written = arguments.filter(|argument| is_written(&argument.get_id().as_str()));
    let Some(written) = written.map(ToString::to_string).next() else {
        return Ok(());
    };
    let message = format!(
        "the argument '{written}' cannot be used with '--from <URL>': the daemon's own configuration applies"
    );
    Err(command.error(error::ErrorKind::ArgumentConflict, message))
}

pub(super) const EVALUATE_EXAMPLES: &str = "\
Examples:
  abgauge evaluate events.jsonl
  abgauge evaluate monday.jsonl tuesday.jsonl --k 5,20 --attribution 1h
  abgauge evaluate events.jsonl --convention ranx,rectools --metrics map,ndcg
  abgauge evaluate events.jsonl --catalog items.jsonl --format csv > numbers.csv
  abgauge evaluate events.jsonl --by-day --compare control --format markdown
  abgauge evaluate events.jsonl --compare control --shares control=0.5,b=0.5 --primary hit_rate@10
  abgauge evaluate events.jsonl --compare ranker=base --compare layout=grid --mde layout:0.02
  abgauge evaluate events.jsonl --by ctx.device --where ctx.country=DE
  abgauge evaluate events.jsonl --by-day --output numbers.parquet
  abgauge evaluate events.jsonl --config abgauge.toml --strict
  abgauge evaluate --lists lists.parquet --clicks clicks/day=2025-11-*/*.jsonl.zst
  curl -s https://example.org/events.jsonl.gz | abgauge evaluate - --format json

Skipped input is reported on standard error.

Exit codes:
   0  success
   1  a failure, such as a missing file
   2  wrong usage, such as an unknown metric
  65  a file is damaged, in a format that cannot be read, or without a column that is needed, there is nothing to count, or something could not be counted; with --strict: a line cannot be read
  78  a bad configuration or catalogue";

pub(super) const PLAN_EXAMPLES: &str = "\
Examples:
  abgauge plan events.jsonl --compare control --primary hit_rate@10
  abgauge plan last-week.jsonl --compare base --shares base=.5,neural=.5 --primary ctr --mde 0.02
  abgauge plan events.jsonl --compare ranker=base --primary mrr --guardrail ctr=0.02 --format json
  abgauge plan --from http://localhost:9464
  abgauge plan --from https://abgauge.example --token-file token --format json

Exit codes:
   0  success
   1  a failure, such as a missing file, or a daemon that does not answer or is not ready
   2  wrong usage, such as an unknown metric, or a control without lists
  65  a file is damaged, in a format that cannot be read, or without a column that is needed, there is too little data, or something could not be counted
  78  a bad configuration or catalogue";

pub(super) const PROFILES_EXAMPLES: &str = "\
Examples:
  abgauge profiles               all profiles, and the meaning of each choice
  abgauge profiles ranx          every choice of one, and how to derive your own
  abgauge profiles --format json

Exit codes:
   0  success
   2  wrong usage, such as an unknown name
  78  a bad configuration";

fn parse_url(text: &str) -> Result<HttpUrl, String> {
    HttpUrl::of_setting(text).map_err(|(fault, _)| match fault.contains('@') {
        true => format!("it {fault}: give a token by --token-file FILE"),
        false => format!("it {fault}: write the address of the daemon's page, such as http://localhost:9464"),
    })
}

fn parse_k(text: &str) -> Result<NonZeroU32, String> {
    let k = text
        .trim()
        .parse()
        .ok()
        .filter(|k: &NonZeroU32| k.get() <= LONGEST_LIST);
    k.ok_or_else(|| format!("write whole numbers from 1 to {LONGEST_LIST}"))
}

/// Parses a name in a list, which may have spaces around it.
fn parse_name(text: &str) -> Result<String, std::convert::Infallible> {
    Ok(text.trim().to_owned())
}

fn parse_path(text: &str) -> Result<Path, String> {
    Path::parse(text)
        .map_err(|fault| format!("the path {fault}: write names with dots between them, such as ctx.device"))
}

/// Parses the path of one field.
fn parse_field(text: &str) -> Result<Path, String> {
    match text.contains(',') && !text.contains(['\'', '"']) {
        true => Err("lists are grouped by one field: name only one, or write the path of a name with a comma in quotes".to_owned()),
        false => parse_path(text),
    }
}

/// Parses a path and a text. A quoted name in the path may contain `=`.
fn parse_filter(text: &str) -> Result<(Path, String), String> {
    let places = text
        .match_indices('=')
        .map(|(place, _)| (&text[..place], &text[place + 1..]));
    let parsed = places.filter_map(|(path, value)| Some((path, Path::parse(path).ok()?, value)));
    match parsed.into_iter().next() {
        Some((path, _, value)) if path.ends_with(['!', '<', '>', '~']) || value.starts_with('=') => Err(
            "only = is possible: write FIELD=VALUE, such as ctx.device=ios; --by FIELD shows the numbers of each value".to_owned(),
        ),
        Some((_, _, "")) => Err("the value is empty: lists without a value cannot be selected".to_owned()),
        Some((_, path, value)) => Ok((path, value.to_owned())),
        None => Err("write a path, = and a value, such as ctx.device=ios".to_owned()),
    }
}

fn parse_output(text: &str) -> Result<OutputFile, String> {
    let path = PathBuf::from(text);
    let ending = path
        .extension()
        .map(|ending| ending.to_string_lossy().to_lowercase());
    let format = match ending.as_deref() {
        #[cfg(feature = "parquet")]
        Some("parquet") => OutputFormat::Parquet,
        #[cfg(not(feature = "parquet"))]
        Some("parquet") => {
            return Err(
                "this build cannot write Parquet: build with the feature `parquet`, or name a .csv file"
                    .to_owned(),
            );
        }
        Some("csv") => OutputFormat::Csv,
        Some("json") => OutputFormat::Json,
        _ => return Err("the ending names the format: write .parquet, .csv or .json".to_owned()),
    };
    // Reported before the files are read, which may take long.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(format!(
            "there is no directory {}: create it first",
            folder.display()
        ));
    }
    Ok(OutputFile { path, format })
}
