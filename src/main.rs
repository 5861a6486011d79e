//! Entry point: arguments, configuration, program, exit code.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use abgauge::run::demo;
use abgauge::run::{Signals, StopSignal};
use abgauge::settings::catalogue_file;
use abgauge::settings::{self, Config, ConfigErrors, LogFormat, Properties};
use abgauge::stream::kafka::properties;
use abgauge::tools::cli::{self, CheckArgs, Command, DemoArgs, SimulateArgs};
use abgauge::tools::commands::{self, written};
use abgauge::tools::{check, simulate};
use abgauge::{logging, run};
use anyhow::Context as _;
use tokio::runtime::Runtime;

/// Allocator of the whole program, including librdkafka. A good one halves the cost of a record.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // First, so that a signal can end the startup, too.
    let early = Early::listen();
    // Wrap lines only on a terminal: logs are searched.
    let is_terminal = std::io::stderr().is_terminal();
    let style = move |_: &_| -> Box<dyn miette::ReportHandler> {
        Box::new(miette::MietteHandlerOpts::new().wrap_lines(is_terminal).build())
    };
    miette::set_hook(Box::new(style)).expect("it is set only once");
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(error) => cli::explain(error).exit(),
    };
    match execute(cli.command, early) {
        Ok(code) => code,
        Err(failure) => commands::failed(&failure),
    }
}

fn execute(command: Command, early: Early) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => run(args.config, early.daemon()?),
        Command::Demo(args) => with_flags(|| demo(&args, early.other()?)),
        Command::Simulate(args) => with_flags(|| simulate(args, early.other()?)),
        Command::Evaluate(args) => commands::evaluate::evaluate(&args),
        Command::Convert(args) => commands::convert::convert(&args),
        Command::Catalog(args) => commands::catalog::catalog(&args),
        Command::Plan(args) => commands::plan::plan(&args),
        Command::Profiles(args) => commands::profiles::profiles(&args),
        Command::Check(args) => check(&args),
        Command::Health(args) => commands::health::health(&args),
        Command::Hash(args) => commands::hash::hash(&args),
        Command::State(args) => commands::state::state(&args).or_else(as_bad_configuration),
        Command::Config(args) => commands::config::config(args.command),
        Command::Completions { shell } => commands::about::completions(shell),
        Command::Man { dir } => commands::man::man(dir.as_deref()).map(|()| ExitCode::SUCCESS),
        Command::Version { json } => commands::about::version(json),
    }
}

/// Runtime with a signal listener.
type Listening<S> = anyhow::Result<(Runtime, S)>;

/// Signal listeners created before the arguments are parsed, chosen by what the first argument seems to be.
struct Early {
    daemon: Option<Listening<Signals>>,
    other: Option<Listening<StopSignal>>,
}

impl Early {
    fn listen() -> Early {
        let command = std::env::args_os().nth(1).unwrap_or_default();
        let is_other = command == "demo" || command == "simulate";
        Early {
            daemon: (command == "run").then(|| listening(Signals::listen)),
            other: is_other.then(|| listening(StopSignal::listen)),
        }
    }

    fn daemon(self) -> Listening<Signals> {
        self.daemon.unwrap_or_else(|| listening(Signals::listen))
    }

    fn other(self) -> Listening<StopSignal> {
        self.other.unwrap_or_else(|| listening(StopSignal::listen))
    }
}

fn listening<S>(listen: fn() -> anyhow::Result<S>) -> Listening<S> {
    let runtime = runtime()?;
    let signals = {
        let _inside = runtime.enter();
        listen()?
    };
    Ok((runtime, signals))
}

fn run(path: Option<PathBuf>, (runtime, signals): (Runtime, Signals)) -> anyhow::Result<ExitCode> {
    let settings = move || {
        let loaded = settings::load_with_origins(path.as_deref(), settings::environment())?;
        let log = logging::start(&loaded.config.log.filter, loaded.config.log.format)?;
        run::take_huge_pages(false);
        let warnings = loaded.config.warnings();
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let notes = loaded.config.notes();
        notes.iter().for_each(|note| tracing::info!("{note}"));
        anyhow::Ok(run::ProgramSettings::new(path, loaded, log))
    };
    let outcome = runtime.block_on(run::run(settings, signals));
    // A consumer whose brokers do not answer may exceed its time for leaving. It ends with the process.
    runtime.shutdown_background();
    outcome.map(|()| ExitCode::SUCCESS).or_else(as_bad_configuration)
}

/// Loads the configuration, or reports all errors in it.
fn with_config(
    path: Option<&Path>,
    go: impl FnOnce(Config) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    match settings::load(path, settings::environment()) {
        Ok(config) => go(config),
        Err(errors) => Ok(commands::refuse(&errors)),
    }
}

/// Runs a command that reads no configuration. Typos in variables of its flags must not go unnoticed.
fn with_flags(go: impl FnOnce() -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    match settings::check_flags(settings::environment()) {
        Ok(()) => go(),
        Err(errors) => Ok(commands::refuse(&errors)),
    }
}

/// Reports all errors in a configuration. Faulty files named by it and refusals of the Kafka client are reported the same way.
fn as_bad_configuration(error: anyhow::Error) -> anyhow::Result<ExitCode> {
    let error = match error.downcast::<ConfigErrors>() {
        Ok(errors) => return Ok(commands::refuse(&errors)),
        Err(error) => error,
    };
    let reports = error
        .downcast::<catalogue_file::UnusableCatalogue>()
        .map(|fault| vec![miette::Report::new(fault)])
        .or_else(|error| {
            error
                .downcast::<settings::UnusableFile>()
                .map(|fault| vec![miette::Report::new(fault)])
        })
        .or_else(|error| {
            let refused = error.downcast::<properties::RefusedProperties>()?;
            commands::error(&refused.to_string());
            anyhow::Ok(refused.faults.into_iter().map(miette::Report::new).collect())
        })?;
    for report in reports {
        logging::say(format_args!("{report:?}"));
    }
    Ok(ExitCode::from(commands::BAD_CONFIGURATION))
}

fn runtime() -> anyhow::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).thread_name("web").enable_all();
    builder.build().context("start the asynchronous runtime")
}

fn demo(args: &DemoArgs, (runtime, stop): (Runtime, StopSignal)) -> anyhow::Result<ExitCode> {
    // Log lines of the daemon would break up the table. Anything that matters is returned as an error.
    let log = logging::start("error", LogFormat::Auto)?;
    run::take_huge_pages(false);
    let options = demo::DemoOptions {
        duration: args.duration,
        rate: args.rate,
        speed: args.speed,
        seed: args.seed,
        world: args.traffic.world()?,
        diurnal: args.traffic.diurnal,
        port: args.port,
    };
    runtime.block_on(demo::run(&options, log.losses(), stop))?;
    Ok(ExitCode::SUCCESS)
}

fn simulate(args: SimulateArgs, (runtime, mut stop): (Runtime, StopSignal)) -> anyhow::Result<ExitCode> {
    // Broker problems are returned as errors. librdkafka would log them twice more.
    let _log = logging::start("warn,librdkafka=off,rdkafka=off", LogFormat::Auto)?;
    let options = simulate::SimulateOptions {
        brokers: args.brokers,
        properties: Properties(args.properties.into_iter().collect()),
        output: args.output,
        topics: simulate::TrafficTopics {
            served: args.served_topic,
            clicks: args.clicks_topic,
        },
        create_topics: args.create_topics,
        heartbeat: args.heartbeat,
        partitions: args.partitions,
        rate: args.rate,
        speed: args.speed,
        duration: args.duration,
        seed: args.seed,
        world: args.traffic.world()?,
        diurnal: args.traffic.diurnal,
        key: args.key,
        start_ms: args.start,
    };
    if let Err(refused) = properties::judge_flags(&options.properties) {
        return as_bad_configuration(refused.into());
    }
    let cancel = Arc::new(AtomicBool::new(false));
    runtime.spawn({
        let cancel = Arc::clone(&cancel);
        async move {
            stop.received().await;
            cancel.store(true, Ordering::Relaxed);
        }
    });
    let outcome = simulate::simulate(&options, &cancel);
    outcome.map(|_| ExitCode::SUCCESS).or_else(as_bad_configuration)
}

fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.sample {
        return commands::sample::sample(args, path);
    }
    with_config(args.config.config.as_deref(), |config| {
        if args.suggest {
            return commands::sample::suggest_of_topics(args, &config);
        }
        let created = args.create_topics.then(|| check::create_topics(&config));
        let mut findings = check::findings(&config, args.connect || args.create_topics, args.verbose);
        // Insert it after the verdict.
        findings.splice(1..1, created);
        written(check::print(&findings))?;
        Ok(ExitCode::from(check::exit_code(&findings)))
    })
}
