//! Asks for the ends and begins of partitions, on a thread: one request to each broker for all that wait.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use abgauge_core::journal::EndQuestion;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::stream::kafka::answering::AnsweringThread;
use crate::stream::kafka::client::{SilentContext, look_for_leaders};
use crate::stream::kafka::producer::explain_refusal;

/// Timeout of a request.
const DEADLINE: Duration = Duration::from_secs(4);

/// Pause between two questions for the begin of a partition.
const BEGIN_EVERY: Duration = Duration::from_secs(1);

/// End of a partition at the time of the question.
pub(super) struct PartitionEnd {
    pub partition: i32,
    pub question: EndQuestion,
    pub end: i64,
    /// First offset; none if that was asked a moment ago, or was not answered.
    pub begin: Option<i64>,
}

/// Questions about partitions and their answers.
pub(super) type EndRequests = AnsweringThread<(i32, EndQuestion), Result<PartitionEnd, KafkaError>>;

/// Starts the thread with a client of its own.
pub(super) fn start(config: &ClientConfig, topic: &str) -> anyhow::Result<EndRequests> {
    let client: BaseConsumer<SilentContext> = config
        .create_with_context(SilentContext)
        .map_err(explain_refusal)?;
    let topic = topic.to_owned();
    AnsweringThread::start("state-ends", move |asked, reply| {
        answer_all(&client, &topic, &asked, &reply);
    })
}

fn answer_all(
    client: &BaseConsumer<SilentContext>,
    topic: &str,
    asked: &Receiver<(i32, EndQuestion)>,
    reply: &Sender<Result<PartitionEnd, KafkaError>>,
) {
    let mut starts_asked: BTreeMap<i32, Instant> = BTreeMap::new();
    while let Ok(first) = asked.recv() {
        // If a partition was asked about twice, the later question counts.
        let questions: BTreeMap<i32, EndQuestion> = [first].into_iter().chain(asked.try_iter()).collect();
        // Asked before the ends, because a log only grows: so a begin is not beyond its end.
        let begins = begins(client, topic, &questions, &mut starts_asked);
        let answers = match ends(client, topic, &questions, &begins) {
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
    client: &BaseConsumer<SilentContext>,
    topic: &str,
    questions: &BTreeMap<i32, EndQuestion>,
    begins: &BTreeMap<i32, i64>,
) -> Result<Vec<Result<PartitionEnd, KafkaError>>, KafkaError> {
    let found = offsets(client, topic, questions.keys(), Offset::End)?;
    let elements = found.elements();
    let ends = elements.iter().filter_map(|element| {
        let partition = element.partition();
        let question = questions.get(&partition)?;
        match (element.error(), element.offset()) {
            (Err(error), _) => Some(Err(error)),
            (Ok(()), Offset::Offset(end)) => Some(Ok(PartitionEnd {
                partition,
                question: *question,
                end,
                begin: begins.get(&partition).copied(),
            })),
            _ => None,
        }
    });
    Ok(ends.collect())
}

/// Asks for the first offset of the partitions not asked recently. If this fails, the question for the ends fails too, so only
/// that one reports it.
fn begins(
    client: &BaseConsumer<SilentContext>,
    topic: &str,
    questions: &BTreeMap<i32, EndQuestion>,
    asked: &mut BTreeMap<i32, Instant>,
) -> BTreeMap<i32, i64> {
    let is_due = |partition: &&i32| {
        asked
            .get(*partition)
            .is_none_or(|asked| asked.elapsed() >= BEGIN_EVERY)
    };
    let due: Vec<i32> = questions.keys().filter(is_due).copied().collect();
    if due.is_empty() {
        return BTreeMap::new();
    }
    let Ok(found) = offsets(client, topic, due.iter(), Offset::Beginning) else {
        return BTreeMap::new();
    };
    let mut begins = BTreeMap::new();
    for element in found.elements() {
        if let (Ok(()), Offset::Offset(begin)) = (element.error(), element.offset()) {
            asked.insert(element.partition(), Instant::now());
            begins.insert(element.partition(), begin);
        }
    }
    begins
}

fn offsets<'a>(
    client: &BaseConsumer<SilentContext>,
    topic: &str,
    partitions: impl Iterator<Item = &'a i32>,
    place: Offset,
) -> Result<TopicPartitionList, KafkaError> {
    let mut list = TopicPartitionList::new();
    for partition in partitions {
        list.add_partition_offset(topic, *partition, place)?;
    }
    client.offsets_for_times(list, DEADLINE)
}
