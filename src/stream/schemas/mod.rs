//! Schemas of records: known ones, and the wait for those that are not known yet.
//!
//! ```text
//! shard ── SchemaReader ──▶ Schemas ◀── thread `registry` ──▶ GET /schemas/ids/7
//!             asks once       known, wanted      fetches what is wanted, with backoff
//! ```
//!
//! A shard keeps the schemas that it has seen, so no record waits for a lock. A record whose schema is unknown holds its pair:
//! its position stays before the record until the schema is known, or until the registry has denied it for
//! [`DENIED_AFTER`].

mod other_messages;
mod reader;
mod record_fault;
mod registry;
mod schema_file;
#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use abgauge_core::decode::framing::{Format, SchemaId};
use abgauge_core::decode::schema::Schema;
use abgauge_core::decode::shape::Shape;
use abgauge_core::engine::event::{Kind, Side};
use tokio::sync::Notify;
use tracing::warn;

use self::other_messages::OtherMessages;
pub use self::reader::{Located, SchemaReader};
use self::record_fault::{RecordFault, ReportedFaults};
pub use self::registry::RegistryClient;
pub use self::schema_file::SchemaFile;
use crate::settings::{Config, Formats, TopicFormat, UnusableFile, files};

/// Time for which a registry must deny a schema before its records are invalid. Replicas of a registry lag behind their leader.
pub const DENIED_AFTER: Duration = Duration::from_secs(60);

/// Memory of a known schema besides its text.
const ENTRY_BYTES: usize = 256;

/// Bound on the memory of known schemas. The oldest ones are fetched again when they are needed.
const MAX_BYTES: usize = 256 << 20;

/// Bound on the schemas that are wanted ahead of their records.
const MAX_WANTED_AHEAD: usize = 1_000;

/// Schemas of both topics, shared by all shards and the client of the registry.
pub struct Schemas {
    formats: Formats,
    /// Paths that records need.
    shape: Shape,
    /// Set if one topic has both kinds.
    is_one_topic: bool,
    /// Schemas of the files, by `Side as usize`.
    files: [Option<Arc<SchemaFile>>; 2],
    /// Unwanted messages in the records of both topics, by `Side as usize`.
    other_messages: [OtherMessages; 2],
    /// Reported faults of records, by `Side as usize`.
    faults: [ReportedFaults; 2],
    state: Mutex<SchemasState>,
    wakes_client: Notify,
}

#[derive(Default)]
struct SchemasState {
    known: HashMap<SchemaId, Known>,
    /// Known schemas in the order of their arrival, with their sizes in bytes.
    arrivals: VecDeque<(SchemaId, usize)>,
    n_bytes: usize,
    /// Schemas that records wait for, with the problem of the last attempt.
    wanted: HashMap<SchemaId, Option<String>>,
    /// Wanted schemas that the client has not taken yet, with the formats of their topics.
    new: Vec<(SchemaId, Format)>,
    /// Schemas that were reported for their missing fields.
    reported: HashSet<(Side, Option<SchemaId>)>,
}

/// What is known about a schema.
#[derive(Clone)]
pub enum Known {
    Usable(Arc<SchemaFile>),
    /// Records with it are invalid: the registry denies it, or it cannot be used. A denied one is asked for again after a while.
    Unusable {
        until: Option<Instant>,
        /// Reason why the schema cannot be used.
        fault: String,
    },
}

impl Schemas {
    /// Reads the files of `[schemas]`.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn open(config: &Config) -> Result<Schemas, UnusableFile> {
        let formats = &config.formats;
        let [served, click] = &formats.topics;
        Ok(Schemas {
            files: [
                open_file("schemas.served", "events.served.message", served)?,
                open_file("schemas.click", "events.click.message", click)?,
            ],
            other_messages: [
                OtherMessages::new(Side::Served, &config.kafka.served_topic, served),
                OtherMessages::new(Side::Clicks, &config.kafka.clicks_topic, click),
            ],
            faults: [
                ReportedFaults::new(Side::Served, &config.kafka.served_topic),
                ReportedFaults::new(Side::Clicks, &config.kafka.clicks_topic),
            ],
            formats: formats.clone(),
            shape: config.events.clone().unwrap_or_default(),
            is_one_topic: config.kafka.served_topic == config.kafka.clicks_topic,
            state: Mutex::default(),
            wakes_client: Notify::new(),
        })
    }

    /// Returns a reader for the records of a topic.
    pub fn reader(self: &Arc<Self>, side: Side) -> SchemaReader {
        SchemaReader::new(Arc::clone(self), side)
    }

    /// Returns what is known about a schema. An unknown one is fetched from now on.
    fn ask(&self, id: SchemaId, format: Format) -> Option<Known> {
        let mut state = self.state();
        let known = state.known.get(&id).cloned();
        match &known {
            // The record that needs it is held, so there are at most as many of these as pairs.
            None => self.want(&mut state, id, format),
            Some(Known::Unusable {
                until: Some(until), ..
            }) if *until <= Instant::now() => {
                self.want_ahead(&mut state, id, format);
            }
            Some(_) => {}
        }
        known
    }

    /// Fetches an unknown schema of records that are not read yet, unless many are wanted already.
    fn ask_ahead(&self, id: SchemaId, format: Format) {
        let mut state = self.state();
        if !state.known.contains_key(&id) {
            self.want_ahead(&mut state, id, format);
        }
    }

    fn want_ahead(&self, state: &mut SchemasState, id: SchemaId, format: Format) {
        if state.wanted.len() < MAX_WANTED_AHEAD {
            self.want(state, id, format);
        }
    }

    fn want(&self, state: &mut SchemasState, id: SchemaId, format: Format) {
        if let Entry::Vacant(entry) = state.wanted.entry(id) {
            entry.insert(None);
            state.new.push((id, format));
            self.wakes_client.notify_one();
        }
    }

    pub fn is_known(&self, id: SchemaId) -> bool {
        self.state().known.contains_key(&id)
    }

    /// Returns why a known schema cannot be used.
    pub fn fault(&self, id: SchemaId) -> Option<String> {
        match self.state().known.get(&id)? {
            Known::Unusable { fault, .. } => Some(fault.clone()),
            Known::Usable(_) => None,
        }
    }

    /// Returns why a schema is not known yet.
    pub fn problem(&self, id: SchemaId) -> Option<String> {
        self.state().wanted.get(&id)?.clone()
    }

    /// Takes the schemas that have become wanted since the last call.
    fn take_new(&self) -> Vec<(SchemaId, Format)> {
        std::mem::take(&mut self.state().new)
    }

    fn failed(&self, id: SchemaId, problem: String) {
        if let Some(last) = self.state().wanted.get_mut(&id) {
            *last = Some(problem);
        }
    }

    pub(in crate::stream) fn arrived(&self, id: SchemaId, known: Known, n_bytes: usize) {
        let mut state = self.state();
        state.wanted.remove(&id);
        // A schema that was unusable may come again.
        if state.known.insert(id, known).is_some()
            && let Some(place) = state.arrivals.iter().position(|(other, _)| *other == id)
            && let Some((_, n_before)) = state.arrivals.remove(place)
        {
            state.n_bytes -= n_before;
        }
        let n_bytes = n_bytes + ENTRY_BYTES;
        state.arrivals.push_back((id, n_bytes));
        state.n_bytes += n_bytes;
        while state.n_bytes > MAX_BYTES {
            let Some((oldest, n_bytes)) = state.arrivals.pop_front() else {
                break;
            };
            state.known.remove(&oldest);
            state.reported.retain(|(_, id)| *id != Some(oldest));
            state.n_bytes -= n_bytes;
        }
    }

    /// Returns a sentence if records of a topic have other messages, and none has the wanted one.
    pub fn other_messages(&self, side: Side) -> Option<String> {
        self.other_messages[side as usize].fault()
    }

    /// Returns the faults of records of a topic so far, each with the setting that fixes it.
    pub fn record_faults(&self, side: Side) -> Vec<String> {
        self.faults[side as usize].messages()
    }

    /// Returns the settings whose paths lead to no field of a schema, although records of the topic need one.
    pub fn lacks(&self, side: Side, schema: &Schema) -> Vec<String> {
        let kind = match side {
            Side::Served => Kind::Served,
            Side::Clicks => Kind::Click,
        };
        let lacks = schema.lacks(&self.shape, kind);
        // In a single topic it may be the schema of the other kind.
        let is_of_other = self.is_one_topic && schema.lacks(&self.shape, Kind::Click).is_empty();
        if is_of_other { Vec::new() } else { lacks }
    }

    /// Returns the settings whose paths lead to no field of the schema in a topic's file, and the fields that it has.
    pub fn lacks_of_file(&self, side: Side) -> Option<(Vec<String>, Vec<String>)> {
        let message = self.formats.topics[side as usize].message.as_deref();
        let is_unused = self.is_one_topic && side == Side::Clicks;
        let file = self.files[side as usize].as_ref().filter(|_| !is_unused)?;
        let schema = file.schema(message)?;
        let lacks = self.lacks(side, schema);
        (!lacks.is_empty()).then(|| (lacks, schema.field_paths()))
    }

    /// Logs once for each schema that it lacks fields.
    fn report_lacks(&self, side: Side, id: Option<SchemaId>, schema: &Schema) {
        let lacks = self.lacks(side, schema);
        if lacks.is_empty() || !self.state().reported.insert((side, id)) {
            return;
        }
        let name = id.map_or("the file".to_owned(), |id| id.to_string());
        let has = schema.field_paths().join(", ");
        warn!(
            schema = name,
            "records of this schema are invalid, because it has no field at {}; it has {has}",
            lacks.join(", ")
        );
    }

    fn state(&self) -> MutexGuard<'_, SchemasState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the file with the schema of a topic, if one is set.
fn open_file(
    setting: &'static str,
    message_setting: &'static str,
    topic: &TopicFormat,
) -> Result<Option<Arc<SchemaFile>>, UnusableFile> {
    let Some(path) = topic.schema.as_deref().filter(|_| topic.format != Format::Json) else {
        return Ok(None);
    };
    let bytes = files::read_for(setting, path)?;
    let file = SchemaFile::of_file(topic.format, &bytes).map_err(|fault| UnusableFile {
        setting,
        message: format!("{}: {fault}", path.display()),
        remedy: match topic.format {
            Format::Avro => "name a file with one Avro schema in JSON (.avsc)".to_owned(),
            _ => "name a descriptor set (`protoc --include_imports --descriptor_set_out`, `buf build -o`), or a .proto file without imports of your own".to_owned(),
        },
    })?;
    match file.fault(topic.message.as_deref()) {
        None => Ok(Some(Arc::new(file))),
        Some((message, remedy)) => Err(UnusableFile {
            setting: message_setting,
            message: format!("{}: {message}", path.display()),
            remedy,
        }),
    }
}
