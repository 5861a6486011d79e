//! Asks whether the topics are fit for state to be stored, until they are or never will be, and looks whether they stay those that are
//! counted: on a thread, so that the loop never waits.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

use anyhow::Context as _;

use crate::check::{Admission, CheckFailure, Finding, Level, admission, unfit};
use crate::config::Config;
use crate::kafka::inspect::{before_storing, state_topic, topic_ids};
use crate::state::{Difference, Identity};

/// How long a question to the brokers may take.
const ANSWER: Duration = Duration::from_secs(4);
/// How long until they are asked again.
const AGAIN: Duration = Duration::from_secs(2);

/// Pause between two checks of the topics: whether one was created again, and whether the state topic is still fit. With the brokers' answers
/// that is well within 20 s.
const LOOK: Duration = Duration::from_secs(8);

/// Answer about the topics.
pub enum Found {
    /// Before anything is stored, or once a topic of events was made anew.
    Admission(Admission),
    /// While state is stored: what is wrong with the state topic.
    StateTopic(Option<Finding>),
}

/// The thread ends soon after this is dropped.
pub struct Topics {
    identity: Identity,
    answers: Receiver<Found>,
    _stop: Sender<()>,
}

impl Topics {
    /// # Errors
    /// The thread cannot be started.
    pub fn ask(config: &Config, identity: Identity) -> anyhow::Result<Topics> {
        let (reply, answers) = channel();
        let (stop, stopped) = channel();
        let run = {
            let (config, identity) = (config.clone(), identity.clone());
            move || ask_on(&config, &identity, &reply, &stopped)
        };
        std::thread::Builder::new()
            .name("state-topics".into())
            .spawn(run)
            .context("start the thread that asks whether topics are fit")?;
        Ok(Topics {
            identity,
            answers,
            _stop: stop,
        })
    }

    /// The next answer, if there is one.
    ///
    /// # Errors
    /// The thread has ended without one, which it does only where it panics.
    pub fn answer(&self) -> anyhow::Result<Option<Found>> {
        match self.answers.try_recv() {
            Ok(found) => Ok(Some(found)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => {
                anyhow::bail!("the thread that asks whether topics are fit has ended")
            }
        }
    }

    /// Returns the identity that is counted, with the ids of the answer.
    pub fn identity(&self, admission: &Admission) -> Identity {
        match admission {
            Admission::Granted { ids, .. } => with_ids(&self.identity, ids),
            _ => self.identity.clone(),
        }
    }
}

fn with_ids(identity: &Identity, ids: &[u128]) -> Identity {
    let mut identity = identity.clone();
    for (topic, id) in identity.topics.iter_mut().zip(ids) {
        topic.id = *id;
    }
    identity
}

fn ask_on(config: &Config, identity: &Identity, reply: &Sender<Found>, stopped: &Receiver<()>) {
    let Some(state) = &config.state else { return };
    let inputs: Vec<&str> = identity.topics.iter().map(|topic| &*topic.name).collect();
    loop {
        let facts = before_storing(&config.kafka, &state.topic, &inputs, ANSWER);
        let answer = admission(config, facts.as_ref(), identity.n_partitions);
        let granted = match &answer {
            Admission::Granted { ids, .. } => Some(with_ids(identity, ids)),
            _ => None,
        };
        let is_refused = matches!(answer, Admission::Refused(_));
        if reply.send(Found::Admission(answer)).is_err() || is_refused {
            return;
        }
        if let Some(counted) = granted {
            return watch(config, &counted, &inputs, reply, stopped);
        }
        if stopped.recv_timeout(AGAIN) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Until one of the topics is another one: positions may fit into its log all the same. Settings of the state topic may be changed at any
/// time, and a start would refuse it then.
fn watch(
    config: &Config,
    counted: &Identity,
    inputs: &[&str],
    reply: &Sender<Found>,
    stopped: &Receiver<()>,
) {
    let Some(state) = &config.state else { return };
    let mut last = None;
    while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        // Who reads tells of brokers that do not answer, and of topics that are gone.
        let ids = topic_ids(&config.kafka, inputs, ANSWER).ok();
        if let Some(difference) = ids.and_then(|ids| with_ids(counted, &ids).difference(counted)) {
            // Where nobody listens any more the program ends.
            let _ = reply.send(Found::Admission(Admission::Refused(made_anew(&difference))));
            return;
        }
        let facts = state_topic(&config.kafka, &state.topic, ANSWER);
        let found = facts
            .ok()
            .and_then(|facts| unfit(config, &facts, counted.n_partitions));
        if let Some(unfit) = found.filter(|unfit| *unfit != last) {
            last.clone_from(&unfit);
            let _ = reply.send(Found::StateTopic(unfit));
        }
    }
}

fn made_anew(difference: &Difference) -> Finding {
    Finding {
        level: Level::Error(CheckFailure::Configuration),
        text: difference.to_string(),
        remedy: "stop all instances and run `abgauge state forget`: all totals are lost, and what was counted since may be of both topics"
            .to_owned(),
    }
}
