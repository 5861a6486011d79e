//! The keeper of the stored state: started once it is known how many pairs there are.

use anyhow::Context as _;

use crate::clock::Clock;
use crate::config::{Config, Kafka, StateTopic};
use crate::ingest::Input;
use crate::kafka::state_log::StateLog;
use crate::keeper::{Handle, Keeper, Settings};
use crate::state::{self, Claim, Identity, Namespace};

/// So long an answer of the brokers is waited for, ms.
const ANSWER_MS: i64 = 5_000;
/// A keeper that did nothing for longer shows nothing, ms.
const STILL_MS: i64 = 5_000;
/// So long a last state may take, ms.
const LEAVE_MS: i64 = 3_000;
/// The property that says after how long without a heartbeat the group takes a member for gone.
const SESSION_TIMEOUT: &str = "session.timeout.ms";
/// Its value where state is stored and the operator says nothing, ms: a crash is noticed three times sooner than by librdkafka's default.
const SESSION_TIMEOUT_MS: i64 = 15_000;

/// None where nothing is stored.
pub struct Keeping {
    config: Config,
    clock: Clock,
    keeper: Option<Keeper>,
}

impl Keeping {
    pub fn new(config: &Config, clock: Clock) -> Keeping {
        Keeping {
            config: config.clone(),
            clock,
            keeper: None,
        }
    }

    /// # Errors
    /// librdkafka refuses a property, or no thread can be started.
    pub fn start(&mut self, identity: Identity) -> anyhow::Result<Option<Handle>> {
        let Some(StateTopic {
            topic,
            interval,
            max_bytes_per_second,
        }) = &self.config.state
        else {
            return Ok(None);
        };
        let namespace = Namespace::of(&identity.fingerprint, &self.config.kafka.group_id);
        let log = StateLog::start(&self.config.kafka, topic, namespace, self.clock.clone())
            .context("open the state topic")?;
        let settings = Settings {
            owner: state::Settings {
                namespace,
                identity,
                claim: Claim {
                    instance: String::new(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    generation: None,
                },
                answer_ms: ANSWER_MS,
                lease_ms: session_timeout_ms(&self.config.kafka),
                still_ms: STILL_MS,
            },
            interval_ms: interval.as_millis() as i64,
            max_bytes_per_second: *max_bytes_per_second,
            seed: getrandom::u64()
                .map_err(|error| anyhow::anyhow!("ask the system for a random number: {error}"))?,
            leave_ms: LEAVE_MS,
        };
        let keeper = Keeper::start(log, settings, self.clock.clone())?;
        let handle = keeper.handle();
        self.keeper = Some(keeper);
        Ok(Some(handle))
    }

    /// The settings of the client, as they are where state is stored.
    pub fn kafka(config: &Config) -> Kafka {
        let mut kafka = config.kafka.clone();
        if config.state.is_some() {
            let timeout_ms = session_timeout_ms(&kafka).to_string();
            kafka.properties.0.insert(SESSION_TIMEOUT.to_owned(), timeout_ms);
        }
        kafka
    }

    /// What the keeper has ordered since.
    ///
    /// # Errors
    /// Its thread has ended.
    pub fn inputs(&self) -> anyhow::Result<Vec<Input>> {
        let mut inputs = Vec::new();
        if let Some(keeper) = &self.keeper {
            while let Some((pair, order)) = keeper.poll()? {
                inputs.push(Input::Kept(pair, order));
            }
        }
        Ok(inputs)
    }
}

/// As the operator sets it.
fn session_timeout_ms(kafka: &Kafka) -> i64 {
    let set = kafka.properties.0.get(SESSION_TIMEOUT);
    set.and_then(|ms| ms.parse().ok()).unwrap_or(SESSION_TIMEOUT_MS)
}
