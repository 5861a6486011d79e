//! Checks that the topics are fit for stored state, until they are or never will be, then watches that they stay the same;
//! on its own thread, so that the loop never waits.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

use abgauge_core::journal::{LogDifference, LogIdentity};
use anyhow::Context as _;

use crate::settings::Config;
use crate::stream::kafka::inspect::{before_storing, while_storing};
use crate::tools::check::{Admission, CheckFailure, Finding, ResultLevel, admission, unfit};

/// Time limit for an answer from the brokers.
const ANSWER: Duration = Duration::from_secs(4);
/// Delay before the brokers are asked again.
const AGAIN: Duration = Duration::from_secs(2);

/// Pause between two checks of the topics: an event topic may have been re-created, and the state topic may have unfit
/// settings.
const PAUSE: Duration = Duration::from_secs(8);

/// Time limit for one check, however many of its answers are late. With the pause, changes are noticed well within 20 s.
const CHECK: Duration = Duration::from_secs(6);

/// Answer about the topics.
pub enum TopicAnswer {
    /// Before anything is stored, or once an event topic was re-created. With the identity that is counted, as far as its ids
    /// are known.
    Admission(Admission, LogIdentity),
    /// While state is stored: the fault of the state topic, if it has one.
    StateTopic(Option<Finding>),
}

/// Handle of the thread, which ends soon after the handle is dropped.
pub struct TopicWatch {
    answers: Receiver<TopicAnswer>,
    _stop: Sender<()>,
}

impl TopicWatch {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn ask(config: &Config, identity: LogIdentity) -> anyhow::Result<TopicWatch> {
        let (reply, answers) = channel();
        let (stop, stopped) = channel();
        let config = config.clone();
        std::thread::Builder::new()
            .name("state-topics".into())
            .spawn(move || ask_on(&config, &identity, &reply, &stopped))
            .context("start the thread that checks the topics")?;
        Ok(TopicWatch { answers, _stop: stop })
    }

    /// Returns the next answer, if there is one.
    ///
    /// # Errors
    /// The thread has ended without an answer, which happens only if it panics.
    pub fn answer(&self) -> anyhow::Result<Option<TopicAnswer>> {
        match self.answers.try_recv() {
            Ok(found) => Ok(Some(found)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => {
                anyhow::bail!("the thread that checks the topics has ended")
            }
        }
    }
}

fn with_ids(identity: &LogIdentity, ids: &[u128]) -> LogIdentity {
    let mut identity = identity.clone();
    for (topic, id) in identity.topics.iter_mut().zip(ids) {
        topic.id = *id;
    }
    identity
}

fn ask_on(config: &Config, identity: &LogIdentity, reply: &Sender<TopicAnswer>, stopped: &Receiver<()>) {
    let Some(state) = &config.state else { return };
    let inputs: Vec<&str> = identity.topics.iter().map(|topic| &*topic.name).collect();
    loop {
        let facts = before_storing(&config.kafka, &state.topic, &inputs, ANSWER);
        let answer = admission(config, facts.as_ref(), identity.n_partitions);
        let (counted, is_granted) = match &answer {
            Admission::Granted { ids, .. } => (with_ids(identity, ids), true),
            _ => (identity.clone(), false),
        };
        let is_refused = matches!(answer, Admission::Refused(_));
        // A refusal is final, because the program ends.
        let sent = reply.send(TopicAnswer::Admission(answer, counted.clone()));
        if sent.is_err() || is_refused {
            return;
        }
        if is_granted {
            return watch(config, &counted, &inputs, reply, stopped);
        }
        // The wait ends early only if the handle was dropped.
        if stopped.recv_timeout(AGAIN) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Watches until one of the event topics is re-created. Stored positions may exist in the new log too, so offsets alone do
/// not reveal the change. Also reports settings of the state topic that a start would refuse, since they may change any time.
fn watch(
    config: &Config,
    counted: &LogIdentity,
    inputs: &[&str],
    reply: &Sender<TopicAnswer>,
    stopped: &Receiver<()>,
) {
    let Some(state) = &config.state else { return };
    let mut last = None;
    while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
        // No client, no answer: a file that a property names may be absent for now.
        let Ok(found) = while_storing(&config.kafka, &state.topic, inputs, CHECK) else {
            continue;
        };
        // The consumer reports silent brokers and missing topics.
        if let Some(difference) = found
            .ids
            .ok()
            .and_then(|ids| with_ids(counted, &ids).difference(counted))
        {
            // Without a receiver the program is ending.
            let refused = Admission::Refused(recreated(&difference));
            let _ = reply.send(TopicAnswer::Admission(refused, counted.clone()));
            return;
        }
        let facts = found.state.ok();
        let found = facts.and_then(|facts| unfit(config, &facts, counted.n_partitions));
        // Only changes are reported.
        if let Some(unfit) = found.filter(|unfit| *unfit != last) {
            last.clone_from(&unfit);
            let _ = reply.send(TopicAnswer::StateTopic(unfit));
        }
    }
}

fn recreated(difference: &LogDifference) -> Finding {
    Finding {
        level: ResultLevel::Error(CheckFailure::Configuration),
        text: difference.to_string(),
        remedy: "stop all instances and run `abgauge state forget`: all totals are lost, and counts since then may include both topics"
            .to_owned(),
    }
}
