//! Composition root: assembles the parts of the daemon and shuts them down.

pub mod demo;
mod look_thread;
mod overview;
mod program;
mod reload;
mod signals;
mod storage;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

use abgauge_core::ledger::PairId;
use abgauge_core::looks::{GivenUp, Published, StoredLooks};
use abgauge_core::metrics::Ranking;
use abgauge_core::metrics::catalogue::Catalogue;
use anyhow::Context as _;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use self::look_thread::LookChannels;
use self::overview::Overview;
pub use self::program::ProgramSettings;
use self::reload::Reloader;
pub use self::signals::{Signals, StopSignal};
use self::storage::Keeping;
use crate::board::Board;
use crate::clock::Clock;
use crate::logging::Losses;
use crate::serve::secured::Secured;
use crate::serve::webhook::{self, WebhookSender};
use crate::serve::{About, Exporter, http, server};
use crate::settings::catalogue_file::CatalogueFile;
use crate::settings::{self, Config};
use crate::stream::bounds::MemoryBounds;
use crate::stream::kafka::consumer::Consumer;
use crate::stream::kafka::dead_letters::DeadLetters;
use crate::stream::kafka::properties;
use crate::stream::schemas::{RegistryClient, Schemas};
use crate::stream::worker::{self, Worker};
use crate::stream::{Fault, FaultKind, Input, Order, Source};
use crate::telemetry::Telemetry;

/// Time that records gather between two rounds, which bounds the age of a record before it is counted. Many small batches
/// would cost more than they carry.
const WAIT: Duration = Duration::from_millis(10);
/// Number of records in a round from which more are probably available, so the next round starts immediately.
const MANY: usize = 1000;
/// Pair whose owner calls the webhook.
const FIRST_PAIR: PairId = 0;
/// Time that a start may still take after a stop signal.
const REST_OF_START: Duration = Duration::from_secs(1);
/// Time that the consumer may take to leave its group.
const LEAVE: Duration = Duration::from_secs(7);

/// Enables or disables transparent huge pages for this process. The allocator asks for huge pages, but the kernel
/// re-assembles those that it has partly freed, so the resident size of a long-running daemon grows while its use does not.
/// Clearing a huge page also takes milliseconds, in which no record is counted.
pub fn take_huge_pages(yes: bool) {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(!yes) {
        tracing::debug!(%error, "transparent huge pages stay as they are");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = yes;
}

/// Running daemon: a consumer on its own thread and a web server on the runtime.
pub struct Daemon {
    /// Address that the web server listens on.
    pub address: SocketAddr,
    pub exporter: Arc<Exporter>,
    stop: CancellationToken,
    server: tokio::task::JoinHandle<std::io::Result<()>>,
    consumer: JoinHandle<()>,
    ended: oneshot::Receiver<Result<(), Fault>>,
    /// Present with a catalogue.
    reloader: Option<Reloader>,
    /// Present with TLS or restricted access. Triggers a re-read of the files of `[http]` and passes on hashes from the
    /// configuration.
    reread: Option<watch::Sender<settings::Http>>,
}

impl Daemon {
    /// Starts reading and answering. Brokers need not be reachable yet. Log lines lost by `log` are reported as telemetry.
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// - [`UnusableCatalogue`](crate::settings::catalogue_file::UnusableCatalogue) for the catalogue
    /// - [`UnusableFile`](crate::settings::UnusableFile) for the files of `[http]`, `[webhook]`, `[registry]` and `[schemas]`
    /// - properties that librdkafka [refuses](properties::RefusedProperties)
    /// - an address that cannot be listened on
    pub fn start(config: &Config, clock: Clock, log: Losses) -> anyhow::Result<Daemon> {
        let kafka = &config.kafka;
        // Properties are checked before anything is opened, so that a refused one is the only error.
        properties::judge(kafka)?;
        let telemetry = Arc::new(Telemetry::new(
            &kafka.served_topic,
            &kafka.clicks_topic,
            env!("CARGO_PKG_VERSION"),
        ));
        if let Some(url) = &config.http.public_url {
            telemetry.set_page(url);
        }
        let catalogue = CatalogueFile::of(config)
            .map(|file| Reloader::start(file, Arc::clone(&telemetry)))
            .transpose()?;
        let (reloader, catalogues) = catalogue.unzip();
        let secured = Secured::open(&config.http, &Clock::system(), Arc::clone(&telemetry))?;
        let schemas = Arc::new(Schemas::open(config)?);
        let registry = RegistryClient::open(&schemas)?;
        // Bound before the client starts, so that a taken port is reported at once.
        let listener = server::bind(config.http.listen)?;
        let address = listener.local_addr().context("read the address listened on")?;
        let ranking = Ranking::new(&config.measures);
        let board = Arc::new(Board::new(config, &ranking));
        let looks = Arc::new(Published::default());
        let LookChannels {
            news,
            inbox,
            given_up,
            stored: looks_stored,
        } = look_thread::start(
            config,
            &ranking,
            Arc::clone(&looks),
            Arc::clone(&telemetry),
            &clock,
        )?;
        let webhook = config.webhook.as_ref().map(|webhook| {
            let (looks, telemetry) = (Arc::clone(&looks), Arc::clone(&telemetry));
            WebhookSender::open(webhook, looks, telemetry)
        });
        let overview = config.global.then(|| {
            let lease_ms = Keeping::lease_ms(config);
            Overview::new(config, &ranking, inbox, lease_ms, clock.clone())
        });
        let owner = Arc::clone(&board);
        // All instances with stored state take the same looks, so only one of them sends.
        let speaks = config
            .state
            .as_ref()
            .map(|_| -> webhook::IsSender { Box::new(move || owner.owns(FIRST_PAIR)) });
        let webhook = webhook.transpose()?.map(|webhook| webhook.while_it(speaks));
        let exporter = Arc::new(Exporter {
            telemetry: Arc::clone(&telemetry),
            source: Arc::clone(&board) as _,
            global: overview.as_ref().map(Overview::scope),
            looks: Arc::clone(&looks),
            ranking: ranking.clone(),
            windows: config.windows.clone(),
            k: config.measures.ks.clone(),
            controls: config.experiment_controls(),
            experiments: config.experiments.clone(),
            about: About::new(config),
            export: config.export.clone(),
            settle_after_ms: config.join.settle_after_ms(),
            started_ms: clock.now_ms(),
        });
        MemoryBounds::of(config).log();
        let (consumer, readers) = Consumer::new(&Keeping::kafka(config), config.ingest.n_workers())?;
        let sources = readers
            .into_iter()
            .map(|reader| -> Box<dyn Source> { Box::new(reader) });
        let dead_letters = DeadLetters::start(kafka, Arc::clone(&telemetry))?;
        let bury = dead_letters.map(|letters| -> worker::DeadLetterSink {
            Arc::new(move |record, reason| letters.send(record, reason))
        });
        let worker = Worker::new(
            config,
            ranking,
            board,
            Arc::clone(&telemetry),
            clock.clone(),
            Arc::clone(&schemas),
            sources.collect(),
        )
        .with_dead_letters(bury)
        .with_looks(news)
        .with_log_losses(log);
        let stop = CancellationToken::new();
        let (sender, ended) = oneshot::channel();
        let consumer = std::thread::Builder::new()
            .name("consumer".into())
            .spawn({
                let stop = stop.clone();
                let keeping = Keeping::new(config, overview, clock.clone());
                move || {
                    let inputs = LoopInputs {
                        catalogues,
                        given_up,
                        looks_stored,
                    };
                    let result = consume(consumer, worker, keeping, &inputs, &clock, &stop);
                    // The receiver is gone if the daemon was dropped before.
                    let _ = sender.send(result);
                }
            })
            .context("start the thread of the consumer")?;
        let server = tokio::spawn({
            let (router, tls) = (
                secured.guard(http::router(Arc::clone(&exporter), &config.http, stop.clone())),
                secured.acceptor(),
            );
            let (http, stop) = (config.http.clone(), stop.clone());
            async move { server::serve(listener, router, tls, &http, telemetry, stop, server::GRACE).await }
        });
        info!("listening on {}://{address}", secured.scheme());
        let reread = secured.is_closed().then(|| {
            let (ask, asked) = watch::channel(config.http.clone());
            // Certificates expire by the wall clock, whatever time the events have.
            tokio::spawn(secured.keep_up(Clock::system(), asked, stop.clone()));
            ask
        });
        if let Some(webhook) = webhook {
            tokio::spawn(webhook.run(stop.clone()));
        }
        if let Some(registry) = registry {
            tokio::spawn(registry.run(stop.clone()));
        }
        Ok(Daemon {
            address,
            exporter,
            stop,
            server,
            consumer,
            ended,
            reloader,
            reread,
        })
    }

    /// Applies new descriptions of experiments. Re-reads the catalogue and the files of `[http]` in the background, at the paths
    /// in `config`. A catalogue or TLS can be neither added nor removed this way.
    pub fn reload(&self, config: &Config) {
        self.exporter.about.replace(config);
        if let (Some(reloader), Some(path)) = (&self.reloader, &config.catalog) {
            reloader.ask(path);
        }
        if let Some(reread) = &self.reread {
            reread.send_replace(config.http.clone());
        }
    }

    /// Waits until the daemon cannot continue, and returns the reason.
    pub async fn ended(&mut self) -> anyhow::Error {
        match (&mut self.ended).await {
            Ok(Err(fault)) => anyhow::anyhow!(fault.message),
            Ok(Ok(())) | Err(_) => anyhow::anyhow!("the consumer stopped on its own; its log has the reason"),
        }
    }

    /// Stops taking input, finishes requests in flight and leaves the group.
    pub async fn stop(self) {
        self.stop.cancel();
        let consumer = self.consumer;
        let left = tokio::task::spawn_blocking(move || consumer.join());
        // Both wait at the same time, so that the delays of slow clients and silent brokers do not add up.
        let (served, left) = tokio::join!(self.server, tokio::time::timeout(LEAVE, left));
        match served {
            Ok(Ok(())) => {}
            Ok(Err(error)) => error!(%error, "the web server failed"),
            Err(error) => error!(%error, "the web server panicked"),
        }
        match left {
            Ok(Ok(Ok(()))) => info!("left the group"),
            Ok(_) => error!("the consumer panicked"),
            Err(_) => {
                warn!("timed out leaving the group: its session timeout removes this member")
            }
        }
    }
}

/// Inputs from other threads to the loop.
struct LoopInputs {
    catalogues: Option<Receiver<Arc<Catalogue>>>,
    /// Experiments, or their windows, given up at `limits.max_statistics`.
    given_up: Option<Receiver<GivenUp>>,
    /// Looks to be stored.
    looks_stored: Option<Receiver<StoredLooks>>,
}

impl LoopInputs {
    fn inputs(&self) -> impl Iterator<Item = Input> {
        let catalogues = self.catalogues.iter().flat_map(Receiver::try_iter);
        let given_up = self.given_up.iter().flat_map(Receiver::try_iter);
        let stored = self.looks_stored.iter().flat_map(Receiver::try_iter);
        catalogues
            .map(Input::Catalogue)
            .chain(given_up.map(Input::GivenUp))
            .chain(stored.map(Input::LooksStored))
    }
}

/// Runs the loop, which makes no decisions.
fn consume(
    mut consumer: Consumer,
    mut worker: Worker,
    mut keeping: Keeping,
    inputs: &LoopInputs,
    clock: &Clock,
    stop: &CancellationToken,
) -> Result<(), Fault> {
    while !stop.is_cancelled() {
        for input in inputs.inputs() {
            if let Input::Catalogue(catalogue) = &input {
                keeping.set_catalogue(catalogue);
            }
            worker.handle(input);
        }
        match keeping.inputs() {
            Ok(inputs) => inputs.into_iter().for_each(|input| worker.handle(input)),
            Err(error) => worker.handle(Input::Fault(fault(&error, FaultKind::Fatal))),
        }
        consumer.poll(|input| worker.handle(input));
        // Orders come before reading, so that nothing is read from a revoked partition.
        carry_out(&mut consumer, &mut keeping, &mut worker);
        let n_records = worker.read();
        if let Some(fault) = worker.fatal() {
            return Err(fault.clone());
        }
        let begin = clock.uptime();
        worker.round(n_records > 0, begin);
        // The pause between hand-overs to the board depends on how long the last one took.
        worker.took(clock.uptime().saturating_sub(begin));
        carry_out(&mut consumer, &mut keeping, &mut worker);
        if n_records < MANY {
            std::thread::sleep(WAIT);
        }
    }
    // A clean stop hands over, stores and commits everything that was read.
    worker.finish();
    carry_out(&mut consumer, &mut keeping, &mut worker);
    // The keeper answers within its own time limit.
    while worker.is_leaving() {
        match keeping.inputs() {
            Ok(inputs) => inputs.into_iter().for_each(|input| worker.handle(input)),
            Err(_) => break,
        }
        std::thread::sleep(WAIT);
    }
    // The last states are sealed by now. Other instances wait for this member to leave, and the keeper may wait for
    // brokers, so the consumer goes first.
    drop(worker);
    drop(consumer);
    drop(keeping);
    Ok(())
}

fn fault(error: &anyhow::Error, kind: FaultKind) -> Fault {
    Fault {
        message: format!("{error:#}"),
        kind,
    }
}

fn carry_out(consumer: &mut Consumer, keeping: &mut Keeping, worker: &mut Worker) {
    for order in worker.orders() {
        if let Order::Keep(identity) = order {
            if let Err(error) = keeping.start(identity) {
                worker.handle(Input::Fault(fault(&error, FaultKind::Fatal)));
            }
            continue;
        }
        // Without these orders the worker would read no records, and it would not repeat them.
        let is_vital = matches!(order, Order::Subscribe | Order::Assign(_));
        if let Err(error) = consumer.execute(order) {
            let kind = if is_vital {
                FaultKind::Fatal
            } else {
                FaultKind::Refusal
            };
            worker.handle(Input::Fault(fault(&error, kind)));
        }
    }
}

/// Runs `abgauge run` with the loaded `settings` until a signal or a fatal error. A signal during the start is honored too.
/// SIGHUP re-reads the configuration, the catalogue and the files of `[http]`.
///
/// # Errors
/// The settings cannot be loaded, or the daemon could not start or continue. Among others:
/// [`UnusableCatalogue`](crate::settings::catalogue_file::UnusableCatalogue) for the catalogue and
/// [`UnusableFile`](crate::settings::UnusableFile) for the files of `[http]` and `[webhook]`.
pub async fn run(
    settings: impl FnOnce() -> anyhow::Result<ProgramSettings> + Send + 'static,
    Signals { mut stop, mut reload }: Signals,
) -> anyhow::Result<()> {
    // Reading files may block, so the start has a thread of its own and can be interrupted.
    let mut start = tokio::task::spawn_blocking(move || {
        let settings = settings()?;
        let daemon = Daemon::start(settings.config(), Clock::system(), settings.log_losses())?;
        anyhow::Ok((settings, daemon))
    });
    let (mut settings, mut daemon) = tokio::select! {
        started = &mut start => started.context("the start panicked")??,
        () = stop.received() => {
            info!("stopping during the start");
            // A start that takes longer ends with the process.
            if let Ok(Ok(Ok((_settings, daemon)))) = tokio::time::timeout(REST_OF_START, start).await {
                daemon.stop().await;
            }
            return Ok(());
        }
    };
    let result = loop {
        tokio::select! {
            () = stop.received() => break Ok(()),
            () = reload.received() => tokio::select! {
                () = stop.received() => break Ok(()),
                () = settings.read_again() => daemon.reload(settings.config()),
            },
            error = daemon.ended() => break Err(error),
        }
    };
    if result.is_ok() {
        info!("stopping");
    }
    daemon.stop().await;
    result
}
