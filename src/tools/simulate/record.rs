//! Records of the simulation and the JSON of their payloads.

use abgauge_core::engine::event::Side;

use super::design::{Combination, Design};
use super::draft::{Content, Origin, RecordDraft, RecordKind};
use super::model::Visitor;
use super::random::Random;
use crate::settings::TopicKey;

/// Kafka record, or line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedRecord {
    /// Time of arrival at the topic and record timestamp, Unix ms.
    pub arrival_ms: i64,
    pub side: Side,
    pub kind: RecordKind,
    pub key: Vec<u8>,
    pub payload: Vec<u8>,
}

/// Request of a user.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub origin: Origin,
    pub visitor: Visitor,
    /// Time at which it was served, by a correct clock, Unix ms.
    pub ts_ms: i64,
    /// Offset of the clock that stamps the list and its clicks. One clock stamps both, so a request is refused as a whole
    /// or not at all.
    pub clock_ahead_ms: i64,
    pub items: Vec<u16>,
}

impl Request {
    pub fn stamp_ms(&self) -> i64 {
        self.ts_ms + self.clock_ahead_ms
    }
}

const SERVED: &str = r#""type":"served","#;
const CLICK: &str = r#""type":"click","#;

/// Writer of records. With a type, records carry their kind, as needed for a file or a shared topic.
#[derive(Debug)]
pub struct Json {
    with_type: bool,
    keyed_by: TopicKey,
    /// Prefix of every request id.
    id_prefix: String,
    /// Arms in a list's JSON, by combination.
    experiments: Vec<String>,
}

impl Json {
    pub fn new(with_type: bool, keyed_by: TopicKey, id_prefix: &str, design: &Design) -> Json {
        let combinations = 0..design.n_combinations() as Combination;
        Json {
            with_type,
            keyed_by,
            id_prefix: id_prefix.to_owned(),
            experiments: combinations.map(|it| experiments(design, it)).collect(),
        }
    }

    pub fn record(&self, draft: RecordDraft) -> SimulatedRecord {
        let origin = &draft.origin;
        SimulatedRecord {
            arrival_ms: draft.arrival_ms,
            side: draft.side,
            kind: draft.kind,
            key: match self.keyed_by {
                TopicKey::Request => self.id(origin).into_bytes(),
                TopicKey::User => user(origin).into_bytes(),
            },
            payload: match draft.content {
                Content::List { stamp_ms, items } => self.list(origin, stamp_ms, &items),
                Content::Click { stamp_ms, item } => self.click(origin, stamp_ms, item),
                Content::Text(text) => text,
            },
        }
    }

    fn id(&self, origin: &Origin) -> String {
        format!("{}{}", self.id_prefix, origin.request)
    }

    fn list(&self, origin: &Origin, stamp_ms: i64, items: &[u16]) -> Vec<u8> {
        let (kind, id, user) = (self.kind(SERVED), self.id(origin), user(origin));
        let experiments = &self.experiments[usize::from(origin.combination)];
        let mut text = format!(
            r#"{{{kind}"request_id":"{id}","user_id":"{user}","ts":{stamp_ms},"experiments":{{{experiments}}},"items":["#
        );
        for (rank, item) in items.iter().enumerate() {
            text.push_str(if rank > 0 { r#","i"# } else { r#""i"# });
            text.push_str(itoa::Buffer::new().format(*item));
            text.push('"');
        }
        text.push_str("]}");
        text.into_bytes()
    }

    fn click(&self, origin: &Origin, stamp_ms: i64, item: u16) -> Vec<u8> {
        let (kind, id) = (self.kind(CLICK), self.id(origin));
        format!(r#"{{{kind}"request_id":"{id}","ts":{stamp_ms},"item":"i{item}"}}"#).into_bytes()
    }

    /// Writes a record of a type that abgauge ignores.
    pub fn other_type(&self, request: &Request) -> Vec<u8> {
        let (id, ts_ms) = (self.id(&request.origin), request.ts_ms);
        format!(r#"{{"type":"heartbeat","request_id":"{id}","ts":{ts_ms}}}"#).into_bytes()
    }

    /// Writes an unreadable record of a random kind. It has no line break, so that it fits into a file of lines.
    pub fn broken(&self, request: &Request, random: &mut Random) -> Vec<u8> {
        let Request {
            origin, items, ts_ms, ..
        } = request;
        let (id, kind) = (self.id(origin), self.kind(SERVED));
        let whole = || self.list(origin, request.stamp_ms(), items);
        match random.below(7) {
            0 => {
                let mut text = whole();
                text.truncate(1 + random.below(text.len() as u64 - 1) as usize);
                text
            }
            1 => b"GET /recommendations HTTP/1.1".to_vec(),
            2 => {
                let mut text = whole();
                text.insert(text.len() / 2, 0xff);
                text
            }
            3 => format!(r#"{{{kind}"request_id":"{id}","items":["i1"]}}"#).into_bytes(),
            4 => format!(r#"{{{kind}"request_id":"{id}","ts":{ts_ms},"items":"i1"}}"#).into_bytes(),
            // A time in seconds instead of milliseconds.
            5 => self.list(origin, ts_ms / 1000, items),
            _ => format!(r#"{{{kind}"request_id":"","ts":{ts_ms},"items":["i1"]}}"#).into_bytes(),
        }
    }

    /// Returns the field with the record's kind, or nothing.
    fn kind(&self, field: &'static str) -> &'static str {
        match self.with_type {
            true => field,
            false => "",
        }
    }
}

fn user(origin: &Origin) -> String {
    format!("u-{}", origin.user)
}

/// Returns the arms of a combination as the fields of an object.
fn experiments(design: &Design, combination: Combination) -> String {
    let fields = design
        .arms(combination)
        .map(|(experiment, arm)| format!(r#""{}":"{}""#, experiment.name, arm.name));
    fields.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::simulate::model::{Model, World};

    fn request() -> Request {
        let visitor = Model::new(&World::default(), 1).visitor(7);
        Request {
            origin: Origin {
                request: 1,
                user: 7,
                combination: 2,
            },
            visitor,
            ts_ms: 1_763_596_800_123,
            clock_ahead_ms: 0,
            items: vec![5, 9],
        }
    }

    fn json(with_type: bool) -> Json {
        Json::new(with_type, TopicKey::Request, "r-", &Design::default())
    }

    fn list(json: &Json, request: &Request) -> String {
        String::from_utf8(json.list(&request.origin, request.ts_ms, &request.items)).unwrap()
    }

    fn click(json: &Json, stamp_ms: i64, item: u16) -> String {
        String::from_utf8(json.click(&request().origin, stamp_ms, item)).unwrap()
    }

    #[test]
    fn payloads_have_the_documented_shape() {
        let json = json(false);
        assert_eq!(
            list(&json, &request()),
            r#"{"request_id":"r-1","user_id":"u-7","ts":1763596800123,"experiments":{"ranker":"neural","layout":"grid"},"items":["i5","i9"]}"#,
        );
        let empty = Request {
            items: Vec::new(),
            ..request()
        };
        assert_eq!(
            list(&json, &empty),
            r#"{"request_id":"r-1","user_id":"u-7","ts":1763596800123,"experiments":{"ranker":"neural","layout":"grid"},"items":[]}"#,
        );
        assert_eq!(
            click(&json, 1_763_596_805_123, 9),
            r#"{"request_id":"r-1","ts":1763596805123,"item":"i9"}"#,
        );
    }

    #[test]
    fn a_record_has_the_configured_key() {
        for (keyed_by, key) in [(TopicKey::Request, b"r-1"), (TopicKey::User, b"u-7")] {
            let json = Json::new(false, keyed_by, "r-", &Design::default());
            let record = json.record(RecordDraft {
                arrival_ms: 5,
                side: Side::Clicks,
                kind: RecordKind::Broken,
                origin: request().origin,
                content: Content::Text(b"{".to_vec()),
            });
            assert_eq!((&record.key[..], &record.payload[..]), (&key[..], &b"{"[..]));
        }
    }

    #[test]
    fn lines_of_a_file_have_a_type() {
        let json = json(true);
        assert!(list(&json, &request()).starts_with(r#"{"type":"served","request_id""#));
        assert!(click(&json, 1, 9).starts_with(r#"{"type":"click","request_id""#));
    }

    #[test]
    fn broken_payloads_are_varied_and_fit_on_a_line() {
        let mut random = Random::new(1);
        let json = json(true);
        let mut kinds = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let payload = json.broken(&request(), &mut random);
            assert!(!payload.is_empty() && !payload.contains(&b'\n'));
            kinds.insert(match serde_json::from_slice::<serde_json::Value>(&payload) {
                Err(error) => format!("{:?}", error.classify()),
                Ok(value) => format!("{} {} {}", value["ts"], value["items"], value["request_id"]),
            });
        }
        assert_eq!(
            kinds.len(),
            6,
            "cut short and no JSON, or invalid UTF-8; and four that parse: {kinds:?}"
        );
    }
}
