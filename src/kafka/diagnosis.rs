//! Complaints about brokers' certificates, told with their cause: a thread of its own finds it out, so that nobody waits.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::client;
use super::handshake::{self, Broker, Cause};
use crate::config;
use crate::ingest::{Fault, FaultKind};

/// A broker's certificate is looked at once in this time. librdkafka tries again, and complains again, more often.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Complaints that wait; what is beyond comes again.
const MAX_WAITING: usize = 16;
/// Brokers whose causes are remembered.
const MAX_BROKERS: usize = 1000;

pub(super) struct Diagnosis {
    complaints: SyncSender<String>,
    faults: Receiver<Fault>,
}

impl Diagnosis {
    /// The thread ends once this is dropped, and the look that it is at is over.
    pub fn start(kafka: &config::Kafka) -> anyhow::Result<Diagnosis> {
        let (complaints, asked) = sync_channel(MAX_WAITING);
        let (tell, faults) = channel();
        let kafka = kafka.clone();
        std::thread::Builder::new()
            .name("diagnosis".into())
            .spawn(move || explain(&kafka, &asked, &tell))
            .context("start the thread that looks at brokers' certificates")?;
        Ok(Diagnosis { complaints, faults })
    }

    /// Takes librdkafka's words of a certificate that was refused.
    pub fn ask(&self, complaint: String) {
        // It comes again as long as it is true.
        let _ = self.complaints.try_send(complaint);
    }

    /// What has become of complaints.
    pub fn faults(&self) -> impl Iterator<Item = Fault> {
        self.faults.try_iter()
    }
}

fn explain(kafka: &config::Kafka, complaints: &Receiver<String>, tell: &Sender<Fault>) {
    let mut known: HashMap<Broker, (Instant, Option<Cause>)> = HashMap::new();
    for complaint in complaints {
        known.retain(|_, (looked, _)| looked.elapsed() < LOOK_AGAIN);
        let broker =
            Broker::of(&complaint).filter(|broker| known.len() < MAX_BROKERS || known.contains_key(broker));
        let cause = broker.and_then(|broker| {
            let (_, cause) = known.entry(broker).or_insert_with_key(|broker| {
                let cause = handshake::cause(kafka, broker);
                (Instant::now(), cause)
            });
            cause.clone()
        });
        let message = match cause {
            Some(Cause { what, remedy }) => format!("{} ({what}): {remedy}", client::CERTIFICATE_REFUSED),
            None => client::tls_refused(&complaint),
        };
        let kind = FaultKind::Barred;
        if tell.send(Fault { message, kind }).is_err() {
            return;
        }
    }
}
