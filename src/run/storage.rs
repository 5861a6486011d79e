//! Keeper of the stored state and global view, started once the number of pairs is known and the topics are
//! found fit for it.

mod topics;

use std::sync::Arc;

use abgauge_core::journal::{self, Claim, LogIdentity, Namespace};
use abgauge_core::metrics::catalogue::Catalogue;
use anyhow::Context as _;
use tracing::warn;

use self::topics::{TopicAnswer, TopicWatch};
use super::overview::Overview;
use crate::clock::Clock;
use crate::settings::{Config, Kafka, StateTopic};
use crate::store::keeper::{Keeper, KeeperSettings};
use crate::stream::kafka::state_log::StateLog;
use crate::stream::{Fault, FaultKind, Input};
use crate::tools::check::Admission;

/// Time limit for an answer from the brokers, ms.
const ANSWER_MS: i64 = 5_000;
/// Idle time after which a keeper shows nothing, ms.
const STILL_MS: i64 = 5_000;
/// Time that storing a last state may take, ms.
const LEAVE_MS: i64 = 3_000;
/// Property with the time without a heartbeat after which the group removes a member.
const SESSION_TIMEOUT: &str = "session.timeout.ms";
/// Default of `session.timeout.ms` with `[state]`, ms. A crash is noticed three times sooner than with librdkafka's
/// default.
const SESSION_TIMEOUT_MS: i64 = 15_000;

/// Property that makes this process a static member of the group.
const GROUP_INSTANCE_ID: &str = "group.instance.id";
/// File that contains the host name on Linux.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// State keeper and global view of this process. Inactive without `[state]`.
pub struct Keeping {
    config: Config,
    clock: Clock,
    /// Check that the topics are fit, and that they stay the same.
    topics: Option<TopicWatch>,
    keeper: Option<Keeper>,
    /// Present if all partitions are shown.
    overview: Option<Overview>,
}

impl Keeping {
    pub fn new(config: &Config, overview: Option<Overview>, clock: Clock) -> Keeping {
        Keeping {
            config: config.clone(),
            clock,
            topics: None,
            keeper: None,
            overview,
        }
    }

    /// Starts the check of the topics. Once they are fit, [`Keeping::inputs`] returns the keeper.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(&mut self, identity: LogIdentity) -> anyhow::Result<()> {
        self.topics = Some(TopicWatch::ask(&self.config, identity)?);
        Ok(())
    }

    /// Starts the keeper.
    ///
    /// # Errors
    /// librdkafka refuses a property, or no thread can be started.
    fn admit(&mut self, identity: LogIdentity, has_read: bool) -> anyhow::Result<Option<Input>> {
        let Some(StateTopic {
            topic,
            interval,
            max_bytes_per_second,
        }) = &self.config.state
        else {
            return Ok(None);
        };
        let namespace = Namespace::of(&identity.fingerprint, &self.config.kafka.group_id);
        if let Some(overview) = &mut self.overview {
            overview.start(&self.config)?;
        }
        let log = StateLog::start(&self.config.kafka, topic, namespace, self.clock.clone())
            .context("open the state topic")?;
        let settings = KeeperSettings {
            owner: journal::OwnerSettings {
                namespace,
                identity: identity.clone(),
                claim: self.claim(&identity),
                answer_ms: ANSWER_MS,
                lease_ms: session_timeout_ms(&self.config.kafka),
                still_ms: STILL_MS,
            },
            interval_ms: interval.as_millis() as i64,
            max_bytes_per_second: *max_bytes_per_second,
            seed: getrandom::u64()
                .map_err(|error| anyhow::anyhow!("ask the system for a random number: {error}"))?,
            leave_ms: LEAVE_MS,
            has_read,
        };
        let publications = self.overview.as_ref().map(Overview::publications);
        let keeper = Keeper::start(log, settings, publications, self.clock.clone())?;
        let handle = keeper.handle();
        self.keeper = Some(keeper);
        Ok(Some(Input::Keeper(handle, identity)))
    }

    /// Returns this process's claim, which names it to other instances.
    fn claim(&self, identity: &LogIdentity) -> Claim {
        let kafka = &self.config.kafka;
        // A static member keeps its name across restarts. Without one, host and process id are the best that an
        // operator can look up.
        let named = kafka.properties.0.get(GROUP_INSTANCE_ID);
        Claim {
            instance: named.cloned().unwrap_or_else(process),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            group: kafka.group_id.clone(),
            fingerprint: identity.fingerprint.clone(),
        }
    }

    /// Sets the catalogue with which coverage over all partitions is measured from now on.
    pub fn set_catalogue(&self, catalogue: &Arc<Catalogue>) {
        self.overview
            .iter()
            .for_each(|overview| overview.set_catalogue(catalogue));
    }

    /// Returns how long a current state stays shown, ms: as long as the group takes to miss a member.
    pub fn lease_ms(config: &Config) -> i64 {
        session_timeout_ms(&config.kafka)
    }

    /// Returns the Kafka settings, with the shorter session timeout if `[state]` is set.
    pub fn kafka(config: &Config) -> Kafka {
        let mut kafka = config.kafka.clone();
        if config.state.is_some() {
            let timeout_ms = session_timeout_ms(&kafka).to_string();
            kafka.properties.0.insert(SESSION_TIMEOUT.to_owned(), timeout_ms);
        }
        kafka
    }

    /// Returns new inputs for the worker: the keeper, a fault that keeps it from starting, or its orders.
    ///
    /// # Errors
    /// A thread has ended, or the keeper cannot be started.
    pub fn inputs(&mut self) -> anyhow::Result<Vec<Input>> {
        self.overview.as_ref().map_or(Ok(()), Overview::check)?;
        let mut inputs = Vec::new();
        match self
            .topics
            .as_ref()
            .map(TopicWatch::answer)
            .transpose()?
            .flatten()
        {
            Some(TopicAnswer::Admission(admission, identity)) => {
                inputs.extend(self.take(admission, identity)?);
            }
            Some(TopicAnswer::StateTopic(finding)) => {
                // An absent finding is passed on, too: it clears the fault that was found before.
                let reported = finding.map(|finding| finding.reported());
                if let Some(reported) = &reported {
                    warn!("{reported}");
                }
                inputs.push(Input::StateTopic(reported));
            }
            None => {}
        }
        if let Some(keeper) = &self.keeper {
            while let Some((pair, order)) = keeper.poll()? {
                inputs.push(Input::Kept(pair, order));
            }
        }
        Ok(inputs)
    }

    fn take(&mut self, admission: Admission, identity: LogIdentity) -> anyhow::Result<Option<Input>> {
        let (finding, kind) = match admission {
            Admission::Granted { doubts, has_read, .. } => {
                // Doubts do not keep the state from being used.
                doubts.iter().for_each(|doubt| warn!("{}", doubt.reported()));
                return self.admit(identity, has_read);
            }
            Admission::Waits(finding) => (finding, FaultKind::Refusal),
            Admission::Refused(finding) => (finding, FaultKind::Fatal),
        };
        let message = finding.reported();
        Ok(Some(Input::Fault(Fault { message, kind })))
    }
}

/// Returns host and process id, for display.
fn process() -> String {
    let host = std::fs::read_to_string(HOST_NAME).unwrap_or_default();
    format!("{}/{}", host.trim(), std::process::id())
}

/// Returns the operator's value or the default.
fn session_timeout_ms(kafka: &Kafka) -> i64 {
    let set = kafka.properties.0.get(SESSION_TIMEOUT);
    set.and_then(|ms| ms.parse().ok()).unwrap_or(SESSION_TIMEOUT_MS)
}
