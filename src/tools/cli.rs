//! Command line.

mod catalog;
mod comparing;
mod convert;
mod groups;
mod offline;
mod state;
mod traffic;

use std::path::PathBuf;
use std::time::Duration;

use abgauge_core::engine::event::Kind;
pub use catalog::{BuildArgs, CatalogArgs, CatalogCommand};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgGroup, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
pub use comparing::{CompareArgs, Scoped};
pub use convert::{ConvertArgs, RecommendationFile};
pub use offline::{
    AskArgs, CountArgs, EvaluateArgs, Format, OutputFile, OutputFormat, PlanArgs, ProfilesArgs, TableOrJson,
};
pub use state::{
    ExportArgs, ExportFormat, ForgetArgs, ReadingArgs, ShowArgs, StateArgs, StateCommand, VerifyArgs,
};
pub use traffic::TrafficArgs;

use crate::settings::{self, TopicKey, parse_span_ms};
use crate::tools::simulate::EVENT_TIMES_MS;

/// Live ranking metrics of experiment arms, from Kafka to Prometheus
///
/// abgauge reads served recommendations and clicks from Kafka, joins each click to the list that it came from, and
/// keeps ranking metrics per experiment arm as Prometheus gauges, live and final.
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    arg_required_else_help = true,
    max_term_width = groups::WIDTH
)]
#[command(after_long_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon
    ///
    /// Reads both topics, keeps the windows of every arm, and serves /metrics, the live page and the JSON API until
    /// SIGTERM or Ctrl-C. On SIGHUP it reads the configuration, the catalogue, and the files of certificates, tokens and
    /// passwords again. The log lists the changes that take effect, and those that need a restart.
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(ConfigArgs),
    /// Run a complete demo on simulated traffic; nothing to install
    ///
    /// Starts an embedded broker, two experiments with known true rates, and the real daemon with its page and /metrics. The
    /// terminal compares measured and true values. Time is compressed: event time ends at the current time.
    #[command(after_long_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    /// Write simulated traffic to Kafka or to a file
    ///
    /// Simulates two experiments with known true rates, and with delayed clicks, duplicates, late and broken records. The same
    /// seed gives the same traffic. Kafka gets it in real time, a file as fast as it can be written.
    #[command(after_long_help = SIMULATE_EXAMPLES)]
    Simulate(SimulateArgs),
    /// Compute the metrics of events in files
    ///
    /// Runs the daemon's engine over files, with one window over everything. The numbers are identical, to the last bit, to those
    /// of a daemon that accepts the same records. No event in a file is late or from the future. The order of lines does
    /// not matter: clicks may come before their lists.
    #[command(after_long_help = offline::EVALUATE_EXAMPLES)]
    Evaluate(EvaluateArgs),
    /// Convert recommendation and ground-truth tables to events
    ///
    /// Reads CSV or Parquet tables with one recommendation per row, as notebooks write them. Each user gets a served list in each arm,
    /// and a click on each relevant item, so that `abgauge evaluate` computes the metrics of the tables by any convention. The tables
    /// are kept in memory.
    #[command(after_long_help = convert::CONVERT_EXAMPLES)]
    Convert(ConvertArgs),
    /// Build a catalogue from the items in events
    #[command(after_long_help = catalog::CATALOG_EXAMPLES)]
    Catalog(CatalogArgs),
    /// Estimate how long an experiment must run, from past events or a running daemon
    ///
    /// Estimates from the variance in the files how many days are needed to find the smallest effect that matters, with 80% power:
    /// if you can stop in any week (stop any time), decide on a planned day (fixed end, recommended), or judge each arm on its own
    /// every week (strict). Name future arms in --shares: an arm that is not in the files yet is assumed to vary like the control.
    /// Weeks are whole, because weekdays differ.
    ///
    /// With --from, the estimate uses a running daemon's analyses of every experiment with a control.
    #[command(
        after_long_help = offline::PLAN_EXAMPLES,
        override_usage = "abgauge plan [OPTIONS] --compare <CONTROL> --primary <METRIC,…> <FILE>...\n       abgauge plan [OPTIONS] --from <URL>",
        mut_arg("files", |argument| argument.required(false).required_unless_present_any(["from", "lists", "clicks"])),
        mut_arg("compare", |argument| argument
            .required_unless_present("from")
            .help("Control arm to compare the others with, now or later")
            .long_help("Control arm to compare the others with, now or later\n\nApplies to every experiment with such an arm, or as EXPERIMENT=CONTROL to one; may be repeated. Lists of one user count together, so events should carry a `user_id`. In names write `\\=`, `\\:`, `\\,` and `\\\\` for these characters.")),
        mut_arg("shares", |argument| argument
            .help("Planned shares of users, such as control=0.5,neural=0.5 [default: the shares in the files]")
            .long_help("Planned shares of users, such as control=0.5,neural=0.5 [default: the shares in the files]\n\nTo set the shares of one experiment, write ranker:control=0.5,neural=0.5. The flags below take such a prefix too: a value for one experiment overrides the value for all.")),
        mut_arg("primary", |argument| argument.required_unless_present("from")),
    )]
    Plan(PlanArgs),
    /// Print the metric conventions of other libraries, and what each choice means
    ///
    /// Libraries disagree about the same metric. A profile is a row of choices that reproduces the numbers of one of
    /// them. Select it by `evaluate --convention` or the setting `metrics.profile`.
    #[command(after_long_help = offline::PROFILES_EXAMPLES)]
    Profiles(ProfilesArgs),
    /// Check that the local daemon is healthy, for container health checks
    ///
    /// Pass the configuration that the daemon runs with: the request goes to http.listen, over TLS if http.tls_certificate is
    /// set. The certificate is not checked, because the request goes to an address, not to a host name.
    #[command(after_long_help = HEALTH_EXAMPLES)]
    Health(HealthArgs),
    /// Hash a token or a password that gives access to the HTTP server
    ///
    /// The configuration holds hashes only. Reads the secret from standard input, without showing it on a terminal, and
    /// prints the entry for `http.bearer_tokens` or `http.basic_passwords`, or for their files.
    #[command(after_long_help = HASH_EXAMPLES)]
    Hash(HashArgs),
    /// Check the configuration, the brokers and topics (--connect), or a file (--sample)
    #[command(after_long_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Show, verify, export or delete stored state
    ///
    /// Reads the whole state topic `state.topic`, without joining a group or claiming anything: instances keep running.
    #[command(after_long_help = state::STATE_EXAMPLES)]
    State(StateArgs),
    /// Print the configuration file with all settings; write, show or describe one
    #[command(after_long_help = CONFIG_EXAMPLES)]
    Config(ConfigCommandArgs),
    /// Print completions for a shell
    #[command(after_long_help = COMPLETIONS_EXAMPLES)]
    Completions { shell: clap_complete::Shell },
    /// Print the manual, or write a page for each command
    #[command(after_long_help = MAN_EXAMPLES)]
    Man {
        /// Directory for abgauge.1, abgauge-run.1 and the others; without it, abgauge.1 goes to standard output
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print the version, with --json also commit and compiler
    #[command(after_long_help = VERSION_EXAMPLES)]
    Version {
        /// One JSON object: version, commit and compiler too
        #[arg(long)]
        json: bool,
    },
}

/// Parses the command line of this process.
///
/// # Errors
/// If the command line is wrong, or asks for help or the version.
pub fn parse() -> Result<Cli, clap::Error> {
    let mut command = groups::grouped(Cli::command());
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    offline::refuse_counting(&mut command, &matches)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    refuse_traffic(&mut command, &cli.command)?;
    Ok(cli)
}

/// Refuses flags that are invalid only together, such as `--shares` with an arm that `--arms` does not have.
fn refuse_traffic(command: &mut clap::Command, parsed: &Command) -> Result<(), clap::Error> {
    let (name, traffic) = match parsed {
        Command::Demo(args) => ("demo", &args.traffic),
        Command::Simulate(args) => ("simulate", &args.traffic),
        _ => return Ok(()),
    };
    let command = command.find_subcommand_mut(name).expect("it was parsed");
    let refused = |error: anyhow::Error| command.error(ErrorKind::ValueValidation, error);
    traffic.world().map(|_| ()).map_err(refused)
}

/// Improves an error of the command line with what was probably meant: `abgauge run abgauge.toml`.
pub fn explain(mut error: clap::Error) -> clap::Error {
    // The part before an @ may be a password.
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue)
        && let Some((_, host)) = value.rsplit_once('@')
    {
        let hidden = ContextValue::String(format!("***@{host}"));
        error.insert(ContextKind::InvalidValue, hidden);
    }
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) if error.kind() == ErrorKind::UnknownArgument => word.clone(),
        _ => return error,
    };
    let words: Vec<String> = std::env::args().skip(1).collect();
    if unknown.ends_with(".toml") && takes_a_configuration(&words) {
        let tip = format!("did you mean --config {unknown}?").into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// Returns whether the command named by these words has a flag `--config`.
fn takes_a_configuration(words: &[String]) -> bool {
    let mut command = Cli::command();
    for word in words {
        match command.find_subcommand(word).cloned() {
            Some(inner) => command = inner,
            // The first word that is not a command is an argument.
            None => break,
        }
    }
    command
        .get_arguments()
        .any(|argument| argument.get_long() == Some("config"))
}

#[derive(Debug, Args)]
pub struct ConfigCommandArgs {
    #[command(subcommand)]
    pub command: Option<ConfigCommand>,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Write the configuration file with every setting and its default
    Init {
        /// File to write, - for standard output; an existing file is never overwritten
        #[arg(value_name = "FILE", default_value = "abgauge.toml")]
        file: PathBuf,
    },
    /// Print every effective setting and its origin: the file, a variable, or the default
    ///
    /// Prints TOML, with the origin in a comment after each setting. Brokers need not be set. Possible secrets are shown as ***: the
    /// seed of the hashes of ids, and values of Kafka properties except for numbers and the like.
    Show(ConfigArgs),
    /// Print a JSON Schema of the configuration file, for editors
    Schema,
}

#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Configuration file (TOML); without it, the defaults
    ///
    /// Every setting can be overridden by an environment variable: kafka.brokers by ABGAUGE_KAFKA__BROKERS.
    /// `abgauge config` prints a file with all of them.
    #[arg(long, value_name = "FILE", env = "ABGAUGE_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct HealthArgs {
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Check that it has caught up (/readyz), not only that it is alive (/healthz)
    #[arg(long)]
    pub ready: bool,
    /// File with a bearer token, if http.open_probes is false
    ///
    /// Without it, a daemon that requires credentials counts as alive, and --ready fails.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Time limit for the answer
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = parse_duration, allow_hyphen_values = true)]
    pub timeout: Duration,
}

#[derive(Debug, Args)]
pub struct HashArgs {
    #[command(subcommand)]
    pub secret: HashedSecret,
}

#[derive(Debug, Subcommand)]
pub enum HashedSecret {
    /// SHA-256 of a bearer token, which must be long and random
    Token,
    /// NAME:HASH with the bcrypt hash of a password
    Password {
        /// The name that is given with the password
        #[arg(long, value_name = "NAME")]
        user: String,
    },
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Also check the cluster: topics, partitions, partitioners, timestamps, retention
    #[arg(long, group = "records")]
    pub connect: bool,
    /// Also list the parts of the memory bound
    #[arg(long, short, conflicts_with_all = ["sample", "suggest"])]
    pub verbose: bool,
    /// Create the topic of stored state if it does not exist, then check the cluster
    #[arg(long, conflicts_with_all = ["sample", "suggest"])]
    pub create_topics: bool,
    /// Show how the events of a file, a directory or a quoted pattern are read, and why one is refused; `-` for standard input
    ///
    /// A file has records like those of the topics, in any format that `abgauge evaluate` reads. Files are read with the section `events`, `join.max_items`
    /// and `join.max_experiments` of the configuration. Brokers need not be set. The first ten of each outcome are shown; all are
    /// counted.
    #[arg(long, value_name = "FILE", group = "records")]
    pub sample: Option<PathBuf>,
    /// Draft the section `events` for the sample, or with --connect for the topics, as TOML with comments
    ///
    /// Finds fields by their values and names: most clicks contain the id of a list, and one of its items. With --connect, it reads the latest
    /// records of both topics, in any format, with the schemas of the sections `registry` and `schemas`.
    /// The paths in the section `events` of the configuration are ignored. Exits with 65 if a record could not be read with the draft.
    #[arg(long, requires = "records")]
    pub suggest: bool,
    /// Type of the sample's topic: events without a type are read as this one, events of the other type are refused
    #[arg(long = "as", value_name = "KIND", value_parser = word(&[("served", Kind::Served), ("click", Kind::Click)]), requires = "sample")]
    pub records_are: Option<Kind>,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// How long to run
    #[arg(help_heading = TIME, long, value_name = "SPAN", default_value = "5m", value_parser = parse_duration, allow_hyphen_values = true, env = "ABGAUGE_DEMO_DURATION", hide_env_values = true)]
    pub duration: Duration,
    /// Lists served per second
    ///
    /// If the machine cannot keep up, event time falls behind; no record is lost.
    #[arg(help_heading = TIME, long, value_name = "LISTS_PER_SECOND", default_value_t = 300.0, value_parser = between([0.1, 20_000.0]), allow_negative_numbers = true, env = "ABGAUGE_DEMO_RATE", hide_env_values = true)]
    pub rate: f64,
    /// Seconds of event time per second
    #[arg(help_heading = TIME, long, value_name = "FACTOR", default_value_t = 300.0, value_parser = between([1.0, 10_000.0]), allow_negative_numbers = true, env = "ABGAUGE_DEMO_SPEED", hide_env_values = true)]
    pub speed: f64,
    /// Seed of the simulated traffic
    #[arg(
        help_heading = TIME,
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = parse_seed, allow_negative_numbers = true,
        env = "ABGAUGE_DEMO_SEED",
        hide_env_values = true
    )]
    pub seed: u64,
    #[command(flatten)]
    pub traffic: TrafficArgs,
    /// Port of the page and of /metrics; 0 for any free one
    #[arg(
        long,
        value_name = "HTTP_PORT",
        default_value_t = 9464,
        allow_negative_numbers = true,
        env = "ABGAUGE_DEMO_PORT",
        hide_env_values = true
    )]
    pub port: u16,
}

/// Headings in the help of `simulate`.
const DESTINATION: &str = "Destination";
const TIME: &str = "Rate and time";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("destination").args(["brokers", "output"]).required(true))]
pub struct SimulateArgs {
    /// Kafka brokers to write to
    #[arg(
        help_heading = DESTINATION,
        long,
        value_name = "HOST:PORT,…",
        env = "ABGAUGE_SIMULATE_BROKERS",
        hide_env_values = true,
        value_parser = settings::parse_brokers
    )]
    pub brokers: Option<String>,
    /// File to write JSON lines to, `-` for standard output
    #[arg(help_heading = DESTINATION, long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Create missing topics
    #[arg(help_heading = DESTINATION, long, requires = "brokers")]
    pub create_topics: bool,
    /// File to touch every second in which Kafka accepts records: a health check can use its age to see that traffic flows
    #[arg(help_heading = DESTINATION, long, value_name = "FILE", requires = "brokers")]
    pub heartbeat: Option<PathBuf>,
    /// Partitions of topics that are created
    #[arg(help_heading = DESTINATION, long, value_name = "N", default_value_t = 4, value_parser = parse_partitions, allow_negative_numbers = true)]
    pub partitions: usize,
    /// Topic of served lists
    #[arg(
        help_heading = DESTINATION,
        long,
        value_name = "TOPIC",
        default_value = "served",
        value_parser = settings::parse_topic,
        env = "ABGAUGE_SIMULATE_SERVED_TOPIC",
        hide_env_values = true
    )]
    pub served_topic: String,
    /// Topic of clicks
    #[arg(
        help_heading = DESTINATION,
        long,
        value_name = "TOPIC",
        default_value = "clicks",
        value_parser = settings::parse_topic,
        env = "ABGAUGE_SIMULATE_CLICKS_TOPIC",
        hide_env_values = true
    )]
    pub clicks_topic: String,
    /// Lists served per second
    #[arg(
        help_heading = TIME,
        long,
        value_name = "LISTS_PER_SECOND",
        default_value_t = 50.0,
        value_parser = between(ANY), allow_negative_numbers = true,
        env = "ABGAUGE_SIMULATE_RATE",
        hide_env_values = true
    )]
    pub rate: f64,
    /// Seconds of event time per second
    #[arg(help_heading = TIME, long, value_name = "FACTOR", default_value_t = 1.0, value_parser = between(ANY), allow_negative_numbers = true)]
    pub speed: f64,
    /// How long to run; without it, until it is stopped
    #[arg(help_heading = TIME, long, value_name = "SPAN", value_parser = parse_duration, allow_hyphen_values = true)]
    pub duration: Option<Duration>,
    /// Seed of the traffic
    #[arg(help_heading = TIME, long, value_name = "N", default_value_t = 1, value_parser = parse_seed, allow_negative_numbers = true)]
    pub seed: u64,
    #[command(flatten)]
    pub traffic: TrafficArgs,
    /// Key of both topics
    #[arg(help_heading = DESTINATION, long, default_value = "request", value_parser = word(&TopicKey::ALL))]
    pub key: TopicKey,
    /// Event time of the first list (RFC 3339)
    #[arg(help_heading = TIME, long, value_name = "TIME", value_parser = parse_time_ms)]
    pub start: Option<i64>,
    /// librdkafka property, such as security.protocol=sasl_ssl; may be repeated
    #[arg(help_heading = DESTINATION, long = "property", short = 'X', value_name = "NAME=VALUE", value_parser = parse_property)]
    pub properties: Vec<(String, String)>,
}

const EXAMPLES: &str = "\
Examples:
  abgauge demo                                    everything, nothing to install
  abgauge config > abgauge.toml                   a configuration to start from
  abgauge check --connect --config abgauge.toml   problems, before they occur
  abgauge run --config abgauge.toml               the daemon
  abgauge evaluate events.jsonl --k 5,10          the same numbers from a file
  abgauge profiles                                libraries whose numbers it can reproduce

Exit codes:
   0  success
   1  a failure
   2  wrong usage
  65  bad input (evaluate, plan, convert, catalog build, check)
  69  Kafka cannot be reached (check)
  78  a bad configuration";

const RUN_EXAMPLES: &str = "\
Examples:
  abgauge run --config abgauge.toml
  ABGAUGE_KAFKA__BROKERS=kafka-1:9092,kafka-2:9092 abgauge run";

const DEMO_EXAMPLES: &str = "\
Examples:
  abgauge demo                             five minutes, 25 hours of event time
  abgauge demo --duration 30s --port 0     a short run on any free port
  abgauge demo --speed 1 --duration 1h     in real time
  abgauge demo --aa                        arms that do not differ";

const SIMULATE_EXAMPLES: &str = "\
Examples:
  abgauge simulate --brokers localhost:9092 --create-topics
  abgauge simulate --output events.jsonl --duration 1h --seed 7
  abgauge simulate --output - --duration 1h | abgauge evaluate -
  abgauge simulate -o week.jsonl --duration 7d --rate 0.5 --diurnal --shares control=0.5,neural=0.5 --effect neural=+0.1
  abgauge simulate -o five.jsonl --duration 1h --arms ranker=control,a,b,c,d --effect b=+0.1
  abgauge evaluate week.jsonl --compare control --shares control=0.5,neural=0.5 --primary ctr";

const HEALTH_EXAMPLES: &str = "\
Examples:
  abgauge health --config abgauge.toml
  abgauge health --ready --token-file /run/secrets/token

Exit codes:
   0  it is alive; with --ready, it has caught up
   1  it is not, or there is no answer
  78  the section http of the configuration is bad";

const HASH_EXAMPLES: &str = "\
Examples:
  openssl rand -hex 32 > token; abgauge hash token < token
  abgauge hash password --user prometheus";

const CHECK_EXAMPLES: &str = "\
Examples:
  abgauge check --config abgauge.toml
  abgauge check --config abgauge.toml --connect
  abgauge check --sample events.jsonl
  kcat -C -b localhost -t served -c 100 | abgauge check --sample - --as served
  abgauge check --sample events.jsonl --suggest > drafted.toml
  abgauge check --config abgauge.toml --connect --suggest > drafted.toml

Exit codes:
   0  ready to start
  65  the sample or an event in it cannot be read; with --connect: no record of a topic can be read
  69  Kafka or the schema registry cannot be reached
  78  something must be fixed";

const CONFIG_EXAMPLES: &str = "\
Examples:
  abgauge config > abgauge.toml
  abgauge config init /etc/abgauge/abgauge.toml
  abgauge config show --config abgauge.toml
  abgauge config schema > abgauge.schema.json";

const MAN_EXAMPLES: &str = "\
Examples:
  abgauge man > /usr/local/share/man/man1/abgauge.1
  abgauge man --dir /usr/local/share/man/man1";

const VERSION_EXAMPLES: &str = "\
Examples:
  abgauge version --json";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  abgauge completions bash > ~/.local/share/bash-completion/completions/abgauge
  abgauge completions zsh > ~/.zfunc/_abgauge
  abgauge completions fish > ~/.config/fish/completions/abgauge.fish";

/// Parses one of these words to its value.
fn word<T: Copy + Send + Sync + 'static>(
    known: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(known.iter().map(|(word, _)| *word)).map(|word| {
        let (_, value) = known
            .iter()
            .find(|(known, _)| *known == word)
            .expect("the parser accepts only these words");
        *value
    })
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    match parse_span_ms(text)? {
        0 => Err("it must be longer than nothing".into()),
        ms => Ok(Duration::from_millis(ms.unsigned_abs())),
    }
}

/// The lowest and the highest rate and speed of `simulate`. The lowest rate is about one list per day.
const ANY: [f64; 2] = [0.000_01, 1_000_000.0];

fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("write a whole number from 0 to {}", u64::MAX))
}

fn parse_partitions(text: &str) -> Result<usize, String> {
    let n = text.parse().ok().filter(|n| (1..=10_000).contains(n));
    n.ok_or_else(|| "write a whole number from 1 to 10000".to_owned())
}

/// Parses a number within these bounds.
fn between([least, most]: [f64; 2]) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| match text.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        Ok(_) => Err(format!("write a number from {least} to {most}")),
        Err(_) => Err("write a number".to_owned()),
    }
}

fn parse_time_ms(text: &str) -> Result<i64, String> {
    let time: Result<jiff::Timestamp, _> = text.parse();
    let ms = time.map_err(|_| "write a time such as 2026-01-31T08:00:00Z".to_owned())?;
    match ms.as_millisecond() {
        ms if EVENT_TIMES_MS.contains(&ms) => Ok(ms),
        _ => {
            Err("write a time from September 2001 to November 2286: events of others are invalid".to_owned())
        }
    }
}

fn parse_property(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "write NAME=VALUE".to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::settings::OF_COMMANDS;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// The configuration has the same list, so that it can refuse typos.
    #[test]
    fn the_configuration_accepts_exactly_the_variables_of_flags() {
        let cli = Cli::command();
        let arguments = cli.get_subcommands().flat_map(clap::Command::get_arguments);
        let variables: BTreeSet<String> = arguments
            .filter_map(|argument| Some(argument.get_env()?.to_str()?.to_owned()))
            .filter(|name| name != "ABGAUGE_CONFIG")
            .collect();
        let known = OF_COMMANDS.iter().flat_map(|(command, flags)| {
            let whole = move |flag: &&str| format!("ABGAUGE_{command}{flag}");
            flags.iter().map(whole)
        });
        assert_eq!(variables, known.collect());
        let env = variables.into_iter().map(|name| (name, "x".to_owned()));
        let brokers = ("ABGAUGE_KAFKA__BROKERS".to_owned(), "localhost:9092".to_owned());
        let config = crate::settings::load(None, env.chain([brokers])).expect("none is refused");
        assert_eq!(config.warnings(), [""; 0]);
    }
}
