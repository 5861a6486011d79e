//! Asks where partitions end, on a thread: one request to each broker for all that wait.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::kafka::client::{Quiet, look_for_leaders};
use crate::kafka::producer::explain_refusal;
use crate::state::Question;

/// How long a request may take.
const DEADLINE: Duration = Duration::from_secs(4);

/// Where a partition ended when that was asked.
type End = (i32, Question, i64);

/// Questions and their answers. Dropping it waits for the thread, at most until a request has failed.
pub(super) struct Ends {
    questions: Option<Sender<(i32, Question)>>,
    answers: Receiver<Result<End, KafkaError>>,
    thread: Option<JoinHandle<()>>,
}

impl Ends {
    pub fn start(config: &ClientConfig, topic: &str) -> anyhow::Result<Ends> {
        let client: BaseConsumer<Quiet> = config.create_with_context(Quiet).map_err(explain_refusal)?;
        let (questions, asked) = channel();
        let (reply, answers) = channel();
        let topic = topic.to_owned();
        let run = move || answer_all(&client, &topic, &asked, &reply);
        let thread = std::thread::Builder::new().name("state-ends".into()).spawn(run);
        Ok(Ends {
            questions: Some(questions),
            answers,
            thread: Some(thread.context("start the thread that asks where the state ends")?),
        })
    }

    pub fn ask(&self, partition: i32, question: Question) {
        if let Some(questions) = &self.questions {
            // Where the thread has ended there are no answers, which shows soon enough.
            let _ = questions.send((partition, question));
        }
    }

    pub fn answer(&self) -> Option<Result<End, KafkaError>> {
        self.answers.try_recv().ok()
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.questions = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that asks where the state ends panicked");
        }
    }
}

fn answer_all(
    client: &BaseConsumer<Quiet>,
    topic: &str,
    asked: &Receiver<(i32, Question)>,
    reply: &Sender<Result<End, KafkaError>>,
) {
    while let Ok(first) = asked.recv() {
        // Of two questions about a partition the later one counts.
        let questions: BTreeMap<i32, Question> = [first].into_iter().chain(asked.try_iter()).collect();
        let answers = match ends(client, topic, &questions) {
            Ok(answers) => answers,
            Err(error) => vec![Err(error)],
        };
        if let Some(error) = answers.iter().find_map(|answer| answer.as_ref().err()) {
            look_for_leaders(client, topic, error, DEADLINE);
        }
        for answer in answers {
            if reply.send(answer).is_err() {
                return;
            }
        }
    }
}

fn ends(
    client: &BaseConsumer<Quiet>,
    topic: &str,
    questions: &BTreeMap<i32, Question>,
) -> Result<Vec<Result<End, KafkaError>>, KafkaError> {
    let mut list = TopicPartitionList::new();
    for partition in questions.keys() {
        list.add_partition_offset(topic, *partition, Offset::End)?;
    }
    let found = client.offsets_for_times(list, DEADLINE)?;
    let elements = found.elements();
    let ends = elements.iter().filter_map(|element| {
        let question = questions.get(&element.partition())?;
        match (element.error(), element.offset()) {
            (Err(error), _) => Some(Err(error)),
            (Ok(()), Offset::Offset(end)) => Some(Ok((element.partition(), *question, end))),
            _ => None,
        }
    });
    Ok(ends.collect())
}
