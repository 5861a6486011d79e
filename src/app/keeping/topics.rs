//! Asks whether the topics are fit for state to be stored, until they are or never will be: on a thread, so that the loop never waits.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

use anyhow::Context as _;

use crate::check::{Admission, admission};
use crate::config::Config;
use crate::kafka::inspect::before_storing;
use crate::state::Identity;

/// How long a question to the brokers may take.
const ANSWER: Duration = Duration::from_secs(4);
/// How long until they are asked again.
const AGAIN: Duration = Duration::from_secs(2);

/// The thread ends soon after this is dropped.
pub struct Topics {
    identity: Identity,
    answers: Receiver<Admission>,
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

    /// The next answer, if there is one, and what is counted with what it tells of that.
    ///
    /// # Errors
    /// The thread has ended without one, which it does only where it panics.
    pub fn answer(&self) -> anyhow::Result<Option<(Admission, Identity)>> {
        let admission = match self.answers.try_recv() {
            Ok(admission) => admission,
            Err(TryRecvError::Empty) => return Ok(None),
            Err(TryRecvError::Disconnected) => {
                anyhow::bail!("the thread that asks whether topics are fit has ended")
            }
        };
        let mut identity = self.identity.clone();
        if let Admission::Granted { ids, .. } = &admission {
            for (topic, id) in identity.topics.iter_mut().zip(ids) {
                topic.id = *id;
            }
        }
        Ok(Some((admission, identity)))
    }
}

fn ask_on(config: &Config, identity: &Identity, reply: &Sender<Admission>, stopped: &Receiver<()>) {
    let Some(state) = &config.state else { return };
    let inputs: Vec<&str> = identity.topics.iter().map(|topic| &*topic.name).collect();
    loop {
        let facts = before_storing(&config.kafka, &state.topic, &inputs, ANSWER);
        let answer = admission(config, facts.as_ref(), identity.n_partitions);
        let is_last = !matches!(answer, Admission::Waits(_));
        if reply.send(answer).is_err() || is_last {
            return;
        }
        if stopped.recv_timeout(AGAIN) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}
