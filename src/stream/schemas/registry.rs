//! Client of a schema registry: fetches the schemas that records wait for.

mod session;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use abgauge_core::decode::framing::{Format, SchemaId};
use anyhow::Context as _;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

#[cfg(test)]
pub(super) use self::session::is_denial;
use self::session::{AT_ONCE, Denial, Failure, Fetched, Session};
use super::{DENIED_AFTER, Known, Schemas};
use crate::settings::{Registry, UnusableFile};

/// Wait after the first failure. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// Wait after a denial: a replica may lag.
const AFTER_DENIAL: Duration = Duration::from_secs(2);
/// Time until a schema that is denied for good is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// Factor by which a denial must last longer while another address cannot be reached, because that one may have the schema.
const LONGER_IF_UNREACHABLE: u32 = 10;

/// Background task that fetches schemas.
pub struct RegistryClient {
    schemas: Arc<Schemas>,
    registry: Arc<Registry>,
    /// Index of the address that answered last.
    address: Arc<AtomicUsize>,
    attempts: BTreeMap<SchemaId, Attempts>,
    denied_after: Duration,
}

/// Attempts to fetch a schema so far.
#[derive(Debug, Clone, Copy)]
struct Attempts {
    format: Format,
    n_failed: u32,
    next: Instant,
    is_in_flight: bool,
    /// Time since which every answer has been a denial.
    denied_since: Option<Instant>,
    /// Time since which every answer has been a denial by all addresses.
    denied_by_all_since: Option<Instant>,
}

impl Attempts {
    fn new(format: Format, now: Instant) -> Attempts {
        Attempts {
            format,
            n_failed: 0,
            next: now,
            is_in_flight: false,
            denied_since: None,
            denied_by_all_since: None,
        }
    }

    /// Takes a denial into account. Returns the time for which denials must last before they count, and whether they have.
    fn denied(&mut self, denial: &Denial, denied_after: Duration, now: Instant) -> (Duration, bool) {
        self.n_failed = 0;
        self.next = now + AFTER_DENIAL;
        let since = *self.denied_since.get_or_insert(now);
        let (since, after) = match denial.unreachable {
            None => (*self.denied_by_all_since.get_or_insert(now), denied_after),
            Some(_) => {
                self.denied_by_all_since = None;
                (since, denied_after * LONGER_IF_UNREACHABLE)
            }
        };
        (after, now.duration_since(since) >= after)
    }

    fn failed(&mut self, now: Instant) {
        (self.denied_since, self.denied_by_all_since) = (None, None);
        self.next = now + (FIRST_WAIT * 2_u32.pow(self.n_failed.min(16))).min(LONGEST_WAIT);
        self.n_failed += 1;
    }
}

impl RegistryClient {
    /// Returns the client; `None` without a registry.
    ///
    /// # Errors
    /// A file of `[registry]` cannot be used.
    pub fn open(schemas: &Arc<Schemas>) -> Result<Option<RegistryClient>, UnusableFile> {
        let Some(registry) = &schemas.formats.registry else {
            return Ok(None);
        };
        let client = RegistryClient {
            registry: Arc::new(registry.clone()),
            schemas: Arc::clone(schemas),
            address: Arc::default(),
            attempts: BTreeMap::new(),
            denied_after: DENIED_AFTER,
        };
        // Checks the files. They are read again later, so that renewed ones need no restart.
        Session::open(&client.registry, &client.address)?;
        Ok(Some(client))
    }

    /// Replaces the time for which the registry must deny a schema.
    pub fn denying_after(self, denied_after: Duration) -> RegistryClient {
        RegistryClient { denied_after, ..self }
    }

    /// Runs until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let work = async {
            loop {
                self.fetch_due().await;
                self.until_due().await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    /// Fetches the wanted schemas, once. Afterwards each of them is known or has a problem.
    ///
    /// # Errors
    /// If no runtime can be started.
    pub fn fetch_once(&mut self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("start the asynchronous runtime")?;
        for attempts in self.attempts.values_mut() {
            *attempts = Attempts::new(attempts.format, Instant::now());
        }
        runtime.block_on(self.fetch_due());
        Ok(())
    }

    /// Fetches the schemas that are due, and those that become due meanwhile.
    async fn fetch_due(&mut self) {
        let mut session: Option<Arc<Session>> = None;
        let mut in_flight = FuturesUnordered::new();
        loop {
            while in_flight.len() < AT_ONCE
                && let Some((id, format)) = self.next_due()
            {
                match self.session(&mut session).await {
                    Ok(session) => in_flight.push(async move { (id, session.fetch(id, format).await) }),
                    Err(error) => self.take(id, Err(error.into())),
                }
            }
            let is_full = in_flight.len() == AT_ONCE;
            tokio::select! {
                answer = in_flight.next() => {
                    let Some((id, answer)) = answer else { return };
                    if answer.is_err() {
                        // The files may have been renewed, so the next request reads them again.
                        session = None;
                    }
                    self.take(id, answer);
                }
                () = self.until_due(), if !is_full => {}
            }
        }
    }

    /// Returns the open session, or opens one.
    async fn session(&self, open: &mut Option<Arc<Session>>) -> anyhow::Result<Arc<Session>> {
        if let Some(session) = open {
            return Ok(Arc::clone(session));
        }
        let (registry, address) = (Arc::clone(&self.registry), Arc::clone(&self.address));
        // Files may be on a slow volume, so they are not read on a thread of the runtime.
        let opened = tokio::task::spawn_blocking(move || Session::open(&registry, &address));
        let session = Arc::new(opened.await.context("read the files")??);
        *open = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Takes the wanted schema that has been due for longest.
    fn next_due(&mut self) -> Option<(SchemaId, Format)> {
        let now = Instant::now();
        for (id, format) in self.schemas.take_new() {
            self.attempts.insert(id, Attempts::new(format, now));
        }
        let due = self.attempts.iter_mut();
        let due = due.filter(|(_, attempts)| !attempts.is_in_flight && attempts.next <= now);
        let (id, attempts) = due.min_by_key(|(_, attempts)| attempts.next)?;
        attempts.is_in_flight = true;
        Some((*id, attempts.format))
    }

    /// Waits until a schema is due, or a new one is wanted.
    async fn until_due(&self) {
        let waiting = self.attempts.values().filter(|attempts| !attempts.is_in_flight);
        let next = waiting.map(|attempts| attempts.next).min();
        let pause = next.map_or(ASK_AGAIN, |next| next.saturating_duration_since(Instant::now()));
        tokio::select! {
            () = self.schemas.wakes_client.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }

    fn take(&mut self, id: SchemaId, answer: Result<Fetched, Failure>) {
        let now = Instant::now();
        let Some(attempts) = self.attempts.get_mut(&id) else {
            return;
        };
        attempts.is_in_flight = false;
        match answer {
            Ok(Fetched { file, n_bytes }) => {
                self.attempts.remove(&id);
                info!(schema = %id, "fetched a schema");
                self.schemas.arrived(id, Known::Usable(Arc::new(file)), n_bytes);
            }
            Err(Failure::Unusable(fault)) => {
                self.attempts.remove(&id);
                warn!(
                    schema = %id,
                    "a schema of the registry cannot be used: {fault}; its records count as invalid (unknown_schema)"
                );
                let fault = format!("it cannot be used: {fault}");
                self.schemas
                    .arrived(id, Known::Unusable { until: None, fault }, 0);
            }
            Err(Failure::Denied(denial)) => match attempts.denied(&denial, self.denied_after, now) {
                (_, true) => {
                    self.attempts.remove(&id);
                    warn!(
                        schema = %id,
                        "{denial}: records of this schema count as invalid (unknown_schema) until it is registered{}",
                        hint(id)
                    );
                    let until = Some(now + ASK_AGAIN);
                    let fault = format!("{denial}{}", hint(id));
                    self.schemas.arrived(id, Known::Unusable { until, fault }, 0);
                }
                (after, false) => {
                    let problem = format!(
                        "{denial}; after {} s such records count as invalid (unknown_schema){}",
                        after.as_secs(),
                        hint(id)
                    );
                    self.schemas.failed(id, problem);
                }
            },
            Err(Failure::Other(error)) => {
                attempts.failed(now);
                self.schemas.failed(id, format!("{error:#}{}", hint(id)));
            }
        }
    }
}

/// Returns the likely mistake behind an id. Registries count from 1, and an id of 8 bytes starts with zeros.
fn hint(id: SchemaId) -> &'static str {
    match id {
        SchemaId::Id(0) => {
            "; if Apicurio 2 wrote these records, set events.served.framing (or events.click.framing) = \"apicurio2\""
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Duration = Duration::from_secs(60);

    fn denied(attempts: &mut Attempts, unreachable: Option<&str>, now: Instant) -> bool {
        let denial = Denial {
            unreachable: unreachable.map(str::to_owned),
            ..Denial::default()
        };
        let (_, counts) = attempts.denied(&denial, AFTER, now);
        counts
    }

    #[test]
    fn a_denial_counts_once_it_has_lasted() {
        let start = Instant::now();
        let mut attempts = Attempts::new(Format::Avro, start);
        assert!(!denied(&mut attempts, None, start));
        assert!(!denied(&mut attempts, None, start + AFTER - AFTER_DENIAL));
        attempts.failed(start + AFTER);
        assert!(
            !denied(&mut attempts, None, start + AFTER * 2),
            "it failed between"
        );
        assert!(denied(&mut attempts, None, start + AFTER * 3));
    }

    /// The unreachable address may be the only one that already has the schema, or it may be gone for good.
    #[test]
    fn a_denial_by_some_addresses_must_last_longer() {
        let start = Instant::now();
        let mut attempts = Attempts::new(Format::Avro, start);
        assert!(!denied(&mut attempts, Some("no route"), start));
        assert!(!denied(&mut attempts, Some("no route"), start + AFTER * 9));
        let mut back = attempts;
        assert!(denied(&mut attempts, Some("no route"), start + AFTER * 10));
        // The address that comes back has its own minute.
        assert!(!denied(&mut back, None, start + AFTER * 9));
        assert!(denied(&mut back, None, start + AFTER * 10));
    }
}
