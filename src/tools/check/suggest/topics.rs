//! Sample of `abgauge check --connect --suggest`, from the latest records of the topics.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use abgauge_core::decode::framing::{Format, Framing};
use abgauge_core::engine::event::{Kind, Side};
use abgauge_core::nouns::number_of;
use serde_json::Value;

use super::super::{Finding, judge};
use super::{MAX_RECORDS, Unmapped};
use crate::settings::{Config, TopicFormat};
use crate::stream::kafka::inspect::{LatestRecord, SampleReader, Survey};

/// Number of lists among which clicked ones are searched. It is large because few lists are clicked.
const MAX_SEARCHED: i64 = 20_000;
/// Maximum number of records of a topic in the sample.
const MAX_OF_TOPIC: usize = MAX_RECORDS / 2;

/// Maximum number of reasons shown for records of a topic that cannot be read.
const MAX_REASONS: usize = 5;

/// Sample of both topics, with warnings about records that are not in it.
pub struct TopicsSample {
    pub sample: Unmapped,
    pub warnings: Vec<String>,
}

/// Records of a topic that can be read, as JSON.
struct TopicRecords<'a> {
    topic: &'a str,
    kind: Option<Kind>,
    encoding: TopicFormat,
    records: Vec<(&'a LatestRecord, Value)>,
    /// Number of records that cannot be read, by reason.
    unread: BTreeMap<String, usize>,
}

/// Reads the sample, with the schemas of `[registry]` and `[schemas]`.
///
/// # Errors
/// A topic or its records cannot be read from the brokers.
pub fn of_topics(config: &Config) -> Result<TopicsSample, Finding> {
    let kafka = &config.kafka;
    let survey = Survey::new(kafka).map_err(|failure| judge::no_way_in(config, &failure))?;
    let latest = |topic: &str, n_records| {
        let latest = survey.latest(topic, n_records);
        latest.map_err(|failure| judge::no_records(config, topic, failure))
    };
    let is_shared = kafka.served_topic == kafka.clicks_topic;
    let mut sample = Unmapped::default();
    let mut warnings = Vec::new();
    let n_lists = if is_shared {
        MAX_RECORDS as i64
    } else {
        MAX_SEARCHED
    };
    let lists = latest(&kafka.served_topic, n_lists)?;
    let kind = (!is_shared).then_some(Kind::Served);
    let lists = TopicRecords::new(config, Side::Served, kind, &lists);
    if is_shared {
        lists.put(&mut sample, (0..lists.records.len()).collect());
        lists.report(&mut sample, &mut warnings);
        return Ok(TopicsSample { sample, warnings });
    }
    let clicks = latest(&kafka.clicks_topic, MAX_OF_TOPIC as i64)?;
    let clicks = TopicRecords::new(config, Side::Clicks, Some(Kind::Click), &clicks);
    lists.put(&mut sample, lists.related(&clicks));
    clicks.put(&mut sample, (0..clicks.records.len()).collect());
    for topic in [lists, clicks] {
        topic.report(&mut sample, &mut warnings);
    }
    Ok(TopicsSample { sample, warnings })
}

impl<'a> TopicRecords<'a> {
    /// Reads the records in the configured format, or in another one that reads more of them.
    fn new(
        config: &'a Config,
        side: Side,
        kind: Option<Kind>,
        latest: &'a [LatestRecord],
    ) -> TopicRecords<'a> {
        let configured = config.formats.topics[side as usize].format;
        let others = Format::ALL.into_iter().map(|(_, format)| format);
        let others = others.filter(|format| *format != configured);
        let mut best: Option<TopicRecords> = None;
        for format in [configured].into_iter().chain(others) {
            let read = TopicRecords::in_format(config, side, kind, latest, format);
            if best
                .as_ref()
                .is_none_or(|best| read.records.len() > best.records.len())
            {
                best = Some(read);
            }
            if best
                .as_ref()
                .is_some_and(|best| best.records.len() == latest.len())
            {
                break;
            }
        }
        let mut best = best.expect("at least one format was tried");
        let names_schema = |record: &LatestRecord| {
            let framed = Framing::Detect.of(Format::Avro, &record.payload, record);
            framed.is_some_and(|framed| framed.id.is_of_registry())
        };
        if best.records.is_empty() && config.formats.registry.is_none() && latest.iter().any(names_schema) {
            let reason = "they name schemas of a registry: set registry.url".to_owned();
            best.unread = BTreeMap::from([(reason, latest.len())]);
        }
        best
    }

    fn in_format(
        config: &'a Config,
        side: Side,
        kind: Option<Kind>,
        latest: &'a [LatestRecord],
        format: Format,
    ) -> TopicRecords<'a> {
        let mut config_of_format = config.clone();
        config_of_format.formats.topics[side as usize].format = format;
        let mut read = TopicRecords {
            topic: match side {
                Side::Served => &config.kafka.served_topic,
                Side::Clicks => &config.kafka.clicks_topic,
            },
            kind,
            encoding: config_of_format.formats.topics[side as usize].clone(),
            records: Vec::new(),
            unread: BTreeMap::new(),
        };
        match SampleReader::new(&config_of_format, side, kind) {
            Ok(mut reader) => {
                for record in latest {
                    let json = reader.json(&record.payload, record);
                    let value = json
                        .and_then(|json| serde_json::from_slice(&json).map_err(|_| "not_json".to_owned()));
                    match value {
                        Ok(value) => read.records.push((record, value)),
                        Err(reason) => *read.unread.entry(reason).or_default() += 1,
                    }
                }
            }
            Err(fault) => {
                read.unread.insert(fault.to_string(), latest.len());
            }
        }
        read
    }

    /// Chooses lists for the sample: up to half are lists that were clicked, and the others are the latest.
    fn related(&self, clicks: &TopicRecords) -> Vec<usize> {
        let mut n_lists: HashMap<String, usize> = HashMap::new();
        for (_, click) in &clicks.records {
            visit_ids(click, &mut |id| {
                n_lists.insert(id, 0);
            });
        }
        let mut shared: Vec<Vec<String>> = Vec::new();
        for (_, list) in &self.records {
            let mut ids = Vec::new();
            visit_ids(list, &mut |id| {
                if n_lists.contains_key(&id) && !ids.contains(&id) {
                    ids.push(id);
                }
            });
            for id in &ids {
                n_lists.entry(id.clone()).and_modify(|n| *n += 1);
            }
            shared.push(ids);
        }
        // The rarest value that a list shares with the clicks is its id rather than an item or an arm.
        let rarest = |number: &usize| shared[*number].iter().map(|id| n_lists[id]).min();
        let mut chosen: Vec<usize> = (0..self.records.len())
            .filter(|number| rarest(number).is_some())
            .collect();
        chosen.sort_by_key(|number| (rarest(number), Reverse(*number)));
        chosen.truncate(MAX_OF_TOPIC / 2);
        chosen.sort_unstable();
        let latest = (0..self.records.len()).rev();
        let latest: Vec<usize> = latest
            .filter(|number| chosen.binary_search(number).is_err())
            .take(MAX_OF_TOPIC - chosen.len())
            .collect();
        chosen.extend(latest);
        chosen.sort_unstable();
        chosen
    }

    fn put(&self, sample: &mut Unmapped, numbers: Vec<usize>) {
        for (record, value) in numbers.into_iter().map(|number| &self.records[number]) {
            let place = format_args!(
                "offset {} of partition {} of `{}`",
                record.offset, record.partition, self.topic
            );
            sample.take(place, self.kind, value.to_string().as_bytes());
        }
    }

    /// Adds the settings of the encoding, and a warning for each reason why records could not be read.
    fn report(self, sample: &mut Unmapped, warnings: &mut Vec<String>) {
        let side = self.kind.map_or(0, |kind| usize::from(kind == Kind::Click));
        let TopicFormat {
            format,
            message,
            framing,
            ..
        } = &self.encoding;
        let mut settings = String::new();
        if *format != Format::Json {
            let _ = writeln!(settings, "format = \"{}\"", format.name());
        }
        if let Some(message) = message {
            let _ = writeln!(settings, "message = \"{message}\"");
        }
        if let Some((name, _)) = Framing::ALL.iter().find(|(_, other)| other == framing)
            && *framing != Framing::default()
        {
            let _ = writeln!(settings, "framing = \"{name}\"");
        }
        sample.encodings[side] = settings;
        let topic = self.topic;
        if self.records.is_empty() && self.unread.is_empty() {
            warnings.push(format!(
                "topic `{topic}` has no records, so nothing is drafted for it"
            ));
        }
        let mut unread: Vec<_> = self.unread.iter().collect();
        // Most frequent reasons first.
        unread.sort_by_key(|(_, n)| Reverse(**n));
        warnings.extend(unread.into_iter().take(MAX_REASONS).map(|(reason, n)| {
            format!(
                "topic `{topic}`: {} cannot be read: {reason}",
                number_of(n, "record")
            )
        }));
    }
}

/// Passes each text and number in a record to `visit`, as text.
fn visit_ids(value: &Value, visit: &mut impl FnMut(String)) {
    match value {
        Value::String(text) => visit(text.clone()),
        Value::Number(number) => visit(number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| visit_ids(value, visit)),
        Value::Object(fields) => fields.values().for_each(|value| visit_ids(value, visit)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A topic of lists has many more records than its clicks refer to.
    #[test]
    fn the_clicked_lists_are_in_the_sample_however_few_they_are() {
        let record = LatestRecord::default();
        let topic = |records: Vec<Value>| TopicRecords {
            topic: "served",
            kind: None,
            encoding: TopicFormat::default(),
            records: records.into_iter().map(|value| (&record, value)).collect(),
            unread: BTreeMap::new(),
        };
        let list = |n: usize| json!({"id": format!("r-{n}"), "user": n % 50, "items": ["i1", format!("i{}", n % 7)]});
        let lists = topic((0..5000).map(list).collect());
        let clicked: Vec<usize> = (0..2000).step_by(100).collect();
        let click = |n: &usize| json!({"of": format!("r-{n}"), "user": n % 50, "item": "i1"});
        let chosen = lists.related(&topic(clicked.iter().map(click).collect()));
        assert_eq!(chosen.len(), MAX_OF_TOPIC);
        assert!(chosen.is_sorted());
        assert!(clicked.iter().all(|n| chosen.contains(n)));
        // The others are the latest, so that lists without clicks are in the sample, too.
        assert!((4500..5000).all(|n| chosen.contains(&n)));
    }
}
