//! The composition root: puts the parts of the daemon together, and takes them apart again.

mod keeping;
mod looker;
mod overview;
mod reload;
mod settings;
mod signals;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

pub use self::settings::Settings;
pub use self::signals::{Signals, StopSignal};

use self::keeping::Keeping;
use self::looker::Looker;
use self::overview::Overview;
use self::reload::Reloader;
use crate::board::Board;
use crate::bounds::Bounds;
use crate::catalogue_file::CatalogueFile;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::engine::catalogue::Catalogue;
use crate::engine::ranking::Ranking;
use crate::export::secured::Secured;
use crate::export::{Exporter, http, server};
use crate::ingest::{Fault, FaultKind, Input, Order, Source};
use crate::kafka::consumer::Consumer;
use crate::kafka::dead_letters::DeadLetters;
use crate::kafka::properties;
use crate::ledger::PairId;
use crate::logging::Losses;
use crate::looks::{GivenUp, Published, StoredLooks};
use crate::telemetry::Telemetry;
use crate::webhook::{self, Webhook};
use crate::worker::{self, Worker};

/// How long records gather between two rounds: as old as one may get before it is counted. Many small batches would cost
/// more than they carry.
const WAIT: Duration = Duration::from_millis(10);
/// After this many records there are probably more: the next round begins immediately.
const MANY: usize = 1000;
/// Its owner tells the webhook.
const FIRST_PAIR: PairId = 0;
/// How long a start may take to its end once it is to stop.
const REST_OF_START: Duration = Duration::from_secs(1);
/// How long the consumer may take to leave its group.
const LEAVE: Duration = Duration::from_secs(7);

/// Whether this process takes huge pages. The allocator asks for them; but of those that it has given back in parts the kernel
/// makes whole ones again, so that the memory of a daemon that runs for long grows while it uses no more; and to clear one
/// takes milliseconds, in which no record is counted.
pub fn take_huge_pages(yes: bool) {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(!yes) {
        tracing::debug!(%error, "transparent huge pages stay as they are");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = yes;
}

/// A daemon at work: a consumer on its own thread, and a web server on the runtime.
pub struct Daemon {
    /// Where it listens.
    pub address: SocketAddr,
    pub exporter: Arc<Exporter>,
    stop: CancellationToken,
    server: tokio::task::JoinHandle<std::io::Result<()>>,
    consumer: JoinHandle<()>,
    ended: oneshot::Receiver<Result<(), Fault>>,
    /// Where there is a catalogue.
    reloader: Option<Reloader>,
    /// Where there is TLS, or not everybody may ask: has the files read again, and those whose hashes are settings.
    reread: Option<watch::Sender<config::Http>>,
}

impl Daemon {
    /// Starts reading and answering. Brokers need not be reachable yet. Lines that the `log` loses are reported as
    /// telemetry. Call it inside a tokio runtime.
    ///
    /// # Errors
    /// [`UnusableCatalogue`](crate::catalogue_file::UnusableCatalogue) for the catalogue;
    /// [`UnusableFile`](crate::config::UnusableFile) for the files of `[http]` and `[webhook]`; properties that librdkafka
    /// [refuses](properties::Refused); an address that cannot be listened on.
    pub fn start(config: &Config, clock: Clock, log: Losses) -> anyhow::Result<Daemon> {
        let kafka = &config.kafka;
        properties::judge(kafka)?;
        let telemetry = Arc::new(Telemetry::new(
            &kafka.served_topic,
            &kafka.clicks_topic,
            env!("CARGO_PKG_VERSION"),
        ));
        let catalogue = CatalogueFile::of(config)
            .map(|file| Reloader::start(file, Arc::clone(&telemetry)))
            .transpose()?;
        let (reloader, catalogues) = catalogue.unzip();
        let secured = Secured::open(&config.http, &Clock::system(), Arc::clone(&telemetry))?;
        let listener = server::bind(config.http.listen)?;
        let address = listener.local_addr().context("read the address listened on")?;
        let ranking = Ranking::new(&config.measures);
        let board = Arc::new(Board::new(config, &ranking));
        let looks = Arc::new(Published::default());
        let looker = looker::start(
            config,
            &ranking,
            Arc::clone(&looks),
            Arc::clone(&telemetry),
            &clock,
        )?;
        let looker = looker.map(
            |Looker {
                 told,
                 given_up,
                 stored,
             }| (told, (given_up, stored)),
        );
        let (told_to_looks, told_by_looks) = looker.unzip();
        let (given_up, looks_stored) = told_by_looks.unzip();
        let (news, inbox) = match told_to_looks {
            Some(looker::Told::News(news)) => (Some(news), None),
            Some(looker::Told::States(inbox)) => (None, Some(inbox)),
            None => (None, None),
        };
        let webhook = config.webhook.as_ref().map(|webhook| {
            let (looks, telemetry) = (Arc::clone(&looks), Arc::clone(&telemetry));
            Webhook::open(webhook, looks, telemetry)
        });
        let overview = config.global.then(|| {
            let lease_ms = Keeping::lease_ms(config);
            Overview::new(config, &ranking, inbox, lease_ms, clock.clone())
        });
        let owner = Arc::clone(&board);
        // Where all instances take the same looks, one tells.
        let speaks = config
            .state
            .as_ref()
            .map(|_| -> webhook::Speaks { Box::new(move || owner.owns(FIRST_PAIR)) });
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
            export: config.export.clone(),
            settle_after_ms: config.join.settle_after_ms(),
            started_ms: clock.now_ms(),
        });
        Bounds::of(config).log();
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
            sources.collect(),
        )
        .with_dead_letters(bury)
        .with_looks(news)
        .with_log_losses(log);
        let stop = CancellationToken::new();
        let (tell, ended) = oneshot::channel();
        let consumer = std::thread::Builder::new()
            .name("consumer".into())
            .spawn({
                let stop = stop.clone();
                let keeping = Keeping::new(config, overview, clock.clone());
                move || {
                    let told = Told {
                        catalogues,
                        given_up,
                        looks_stored,
                    };
                    let result = consume(consumer, worker, keeping, &told, &clock, &stop);
                    // There is no receiver if the daemon was not waited for.
                    let _ = tell.send(result);
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
            // Certificates live by the wall clock, whatever time the events have.
            tokio::spawn(secured.keep_up(Clock::system(), asked, stop.clone()));
            ask
        });
        if let Some(webhook) = webhook {
            tokio::spawn(webhook.run(stop.clone()));
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

    /// Reads the catalogue and the files of `[http]` again, in the background, from where `config` has them. It must have
    /// them where the configuration of the start had.
    pub fn reload(&self, config: &Config) {
        if let (Some(reloader), Some(path)) = (&self.reloader, &config.catalog) {
            reloader.ask(path);
        }
        if let Some(reread) = &self.reread {
            reread.send_replace(config.http.clone());
        }
    }

    /// Waits until the daemon cannot go on, and says why.
    pub async fn ended(&mut self) -> anyhow::Error {
        match (&mut self.ended).await {
            Ok(Err(fault)) => anyhow::anyhow!(fault.message),
            Ok(Ok(())) | Err(_) => anyhow::anyhow!("the consumer ended by itself; its log says why"),
        }
    }

    /// Stops taking input, answers requests already begun, leaves the group.
    pub async fn stop(self) {
        self.stop.cancel();
        let consumer = self.consumer;
        let left = tokio::task::spawn_blocking(move || consumer.join());
        // Side by side, so that slow readers and silent brokers do not add up.
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

/// What other threads tell the loop.
struct Told {
    catalogues: Option<Receiver<Arc<Catalogue>>>,
    /// What of experiments was given up.
    given_up: Option<Receiver<GivenUp>>,
    /// What is to be stored of looks.
    looks_stored: Option<Receiver<StoredLooks>>,
}

impl Told {
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

/// The loop. It decides nothing.
fn consume(
    mut consumer: Consumer,
    mut worker: Worker,
    mut keeping: Keeping,
    told: &Told,
    clock: &Clock,
    stop: &CancellationToken,
) -> Result<(), Fault> {
    while !stop.is_cancelled() {
        for input in told.inputs() {
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
        // First, so that nothing is read of what was revoked.
        carry_out(&mut consumer, &mut keeping, &mut worker);
        let n_records = worker.read();
        if let Some(fault) = worker.fatal() {
            return Err(fault.clone());
        }
        let begin = clock.uptime();
        worker.round(n_records > 0, begin);
        worker.took(clock.uptime().saturating_sub(begin));
        carry_out(&mut consumer, &mut keeping, &mut worker);
        if n_records < MANY {
            std::thread::sleep(WAIT);
        }
    }
    worker.finish();
    carry_out(&mut consumer, &mut keeping, &mut worker);
    // The keeper answers within its own bound.
    while worker.is_leaving() {
        match keeping.inputs() {
            Ok(inputs) => inputs.into_iter().for_each(|input| worker.handle(input)),
            Err(_) => break,
        }
        std::thread::sleep(WAIT);
    }
    // The last states are sealed by now. Others wait for this member to leave, and the keeper may wait for brokers.
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
        // Without these nothing would be read, and they would not be ordered again.
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

/// `abgauge run` with what `settings` loads: until a signal, also one that comes during the start, or until it cannot go on.
/// SIGHUP reads the configuration again, the catalogue and the files of `[http]`.
///
/// # Errors
/// Why there are no settings, or why it could not start or continue: among others
/// [`UnusableCatalogue`](crate::catalogue_file::UnusableCatalogue) for the catalogue, and
/// [`UnusableFile`](crate::config::UnusableFile) for the files of `[http]` and `[webhook]`.
pub async fn run(
    settings: impl FnOnce() -> anyhow::Result<Settings> + Send + 'static,
    Signals { mut stop, mut reload }: Signals,
) -> anyhow::Result<()> {
    // Its files may keep it waiting.
    let mut start = tokio::task::spawn_blocking(move || {
        let settings = settings()?;
        let daemon = Daemon::start(settings.config(), Clock::system(), settings.log_losses())?;
        anyhow::Ok((settings, daemon))
    });
    let (mut settings, mut daemon) = tokio::select! {
        started = &mut start => started.context("the start panicked")??,
        () = stop.received() => {
            info!("stopping before the start is over");
            // One that takes longer ends with the process.
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
