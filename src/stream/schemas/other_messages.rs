//! Protobuf messages that a topic's records have instead of the wanted one. With a wrong name, all records would be
//! ignored silently.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use abgauge_core::decode::schema::Schema;
use abgauge_core::engine::event::Side;
use tracing::warn;

use super::schema_file::RecordType;
use crate::settings::TopicFormat;

/// Number of records of other messages after which a reader reports these messages.
pub(super) const REPORTED_AT: u64 = 100;
/// Bound on the names that are kept.
const MAX_NAMES: usize = 10;

/// Messages in the records of a topic, over all of its readers.
pub(super) struct OtherMessages {
    topic: String,
    side: Side,
    /// Name of the wanted message. `None` for any.
    wanted: Option<String>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    has_wanted: bool,
    others: BTreeSet<String>,
    is_reported: bool,
}

impl OtherMessages {
    pub fn new(side: Side, topic: &str, format: &TopicFormat) -> OtherMessages {
        OtherMessages {
            topic: topic.to_owned(),
            side,
            wanted: format.message.clone(),
            seen: Mutex::default(),
        }
    }

    /// Adds the type of a record. A reader does this once for each type.
    pub fn see(&self, record_type: &RecordType) {
        if self.wanted.is_none() {
            return;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match record_type {
            RecordType::Wanted(_) => seen.has_wanted = true,
            RecordType::Other(schema) => {
                if let Schema::Protobuf(schema) = &**schema
                    && seen.others.len() < MAX_NAMES
                {
                    seen.others.insert(schema.name().to_owned());
                }
            }
            _ => {}
        }
    }

    /// Returns a sentence if no record has the wanted message, and others do.
    pub fn fault(&self) -> Option<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = self
            .wanted
            .as_ref()
            .filter(|_| !seen.has_wanted && !seen.others.is_empty())?;
        let others: Vec<&str> = seen.others.iter().map(String::as_str).collect();
        let setting = self.setting();
        Some(format!(
            "no record has the message `{wanted}` of {setting} yet, and the others are ignored: {}",
            others.join(", ")
        ))
    }

    /// Logs the sentence of [`OtherMessages::fault`], once.
    #[cold]
    pub fn report(&self) {
        let Some(fault) = self.fault() else {
            return;
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut seen.is_reported, true) {
            warn!(
                topic = self.topic,
                "{fault}; if they should be read, correct {} or remove it",
                self.setting()
            );
        }
    }

    pub fn setting(&self) -> &'static str {
        match self.side {
            Side::Served => "events.served.message",
            Side::Clicks => "events.click.message",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use abgauge_core::decode::framing::{Format, NoHeaders};

    use super::*;
    use crate::settings;
    use crate::stream::schemas::tests::logged;
    use crate::stream::schemas::{Located, SchemaFile, SchemaReader, Schemas};

    const PROTO: &str = r#"syntax = "proto3"; package shop; message List { string id = 1; } message Click { string id = 1; }"#;

    /// Returns the schemas of a topic that wants clicks, from a file with lists and clicks.
    fn schemas() -> Arc<Schemas> {
        let text = "kafka.brokers = \"b:1\"\nevents.click.format = \"protobuf\"\nevents.click.message = \"shop.Click\"\nregistry.url = \"http://a\"";
        let config = settings::load_text("abgauge.toml", text, std::iter::empty()).expect("valid");
        let schemas = Arc::new(Schemas::open(&config).expect("no files"));
        let file = SchemaFile::parse(Format::Protobuf, PROTO, &[]).expect("a schema");
        let known = super::super::Known::Usable(Arc::new(file));
        schemas.arrived(abgauge_core::decode::framing::SchemaId::Id(7), known, 0);
        schemas
    }

    /// Reads a list or a click.
    fn read(reader: &mut SchemaReader, index: u8) {
        let record = [0, 0, 0, 0, 7, 2, 2 * index, 0x0a, 2, b'r', b'7'];
        let is_ignored = matches!(reader.locate(&record, &NoHeaders), Located::Ignored);
        assert_eq!(is_ignored, index == 0);
    }

    #[test]
    fn a_topic_without_the_wanted_message_is_reported_once() {
        let schemas = schemas();
        let log = logged(|| {
            for _ in 0..2 {
                let mut reader = schemas.reader(Side::Clicks);
                (0..2 * REPORTED_AT).for_each(|_| read(&mut reader, 0));
            }
        });
        assert_eq!(log.matches("no record has the message").count(), 1, "{log}");
        for words in [
            "`shop.Click` of events.click.message",
            "ignored: shop.List",
            "topic=\"clicks\"",
        ] {
            assert!(log.contains(words), "{words}: {log}");
        }
    }

    #[test]
    fn a_topic_with_other_messages_too_is_not_reported() {
        let schemas = schemas();
        let log = logged(|| {
            // Another partition has the wanted message.
            read(&mut schemas.reader(Side::Clicks), 1);
            let mut reader = schemas.reader(Side::Clicks);
            (0..2 * REPORTED_AT).for_each(|_| read(&mut reader, 0));
        });
        assert!(!log.contains("no record has the message"), "{log}");
        assert_eq!(schemas.other_messages(Side::Clicks), None);
    }
}
