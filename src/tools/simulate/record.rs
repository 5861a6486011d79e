//! Records of the simulation and the JSON of their payloads.

use abgauge_core::engine::event::Side;

use super::design::{Combination, Design, MOST_BYTES};
use super::draft::{Content, Origin, RecordDraft, RecordKind};
use super::lists::N_ITEMS;
use super::model::Visitor;
use super::random::Random;
use super::text::{ShortText, TextBuffer};
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

/// Record borrowed from the place where it was written.
#[derive(Debug, Clone, Copy)]
pub struct RecordRef<'a> {
    pub arrival_ms: i64,
    pub side: Side,
    pub kind: RecordKind,
    pub key: &'a [u8],
    pub payload: &'a [u8],
}

impl RecordRef<'_> {
    pub fn to_record(self) -> SimulatedRecord {
        SimulatedRecord {
            arrival_ms: self.arrival_ms,
            side: self.side,
            kind: self.kind,
            key: self.key.to_vec(),
            payload: self.payload.to_vec(),
        }
    }
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

/// Writer of records, one at a time. With a type, records carry their kind, as needed for a file or a shared topic.
#[derive(Debug)]
pub struct Json {
    with_type: bool,
    keyed_by: TopicKey,
    /// Prefix of every request id.
    id_prefix: ShortText<32>,
    user_prefix: ShortText<32>,
    /// Arms in a list's JSON, by combination.
    experiments: Vec<ShortText<MOST_BYTES>>,
    /// JSON of each item in a list, with a leading comma. No item is longer than the eight bytes of `,"i2999"`.
    items: Vec<ShortText<8>>,
    /// Key of the record written last.
    key: ShortText<32>,
    text: TextBuffer,
}

impl Json {
    /// Creates a writer.
    ///
    /// # Panics
    /// The prefix has more than 12 bytes.
    pub fn new(with_type: bool, keyed_by: TopicKey, id_prefix: &str, design: &Design) -> Json {
        let combinations = 0..design.n_combinations() as Combination;
        Json {
            with_type,
            keyed_by,
            id_prefix: ShortText::new(id_prefix),
            user_prefix: ShortText::new("u-"),
            experiments: combinations.map(|it| experiments(design, it)).collect(),
            items: (0..N_ITEMS)
                .map(|item| ShortText::new(&format!(r#","i{item}""#)))
                .collect(),
            key: ShortText::default(),
            text: TextBuffer::default(),
        }
    }

    /// Writes a record. It is valid until the next one is written.
    pub fn record(&mut self, draft: &RecordDraft) -> RecordRef<'_> {
        let RecordDraft { origin, .. } = draft;
        let id = self.id(origin);
        match draft.content {
            Content::List { stamp_ms, items } => self.write_list(&id, origin, stamp_ms, items),
            Content::Click { stamp_ms, item } => self.write_click(&id, stamp_ms, item),
            Content::Text(text) => self.replace(text),
        };
        self.key = match self.keyed_by {
            TopicKey::Request => id,
            TopicKey::User => self.user(origin),
        };
        RecordRef {
            arrival_ms: draft.arrival_ms,
            side: draft.side,
            kind: draft.kind,
            key: self.key.as_bytes(),
            payload: self.text.as_bytes(),
        }
    }

    pub fn key(&self, origin: &Origin) -> ShortText<32> {
        match self.keyed_by {
            TopicKey::Request => self.id(origin),
            TopicKey::User => self.user(origin),
        }
    }

    fn id(&self, origin: &Origin) -> ShortText<32> {
        self.id_prefix.with_number(origin.request)
    }

    fn user(&self, origin: &Origin) -> ShortText<32> {
        self.user_prefix.with_number(origin.user.into())
    }

    fn write_list(&mut self, id: &ShortText<32>, origin: &Origin, stamp_ms: i64, items: &[u16]) -> &[u8] {
        self.begin(SERVED, id);
        self.text.put(br#"","user_id":""#);
        self.text.put_short(&self.user(origin));
        self.text.put(br#"","ts":"#);
        self.text.put_number(stamp_ms);
        self.text
            .put_short(&self.experiments[usize::from(origin.combination)]);
        self.text.put(br#","items":"#);
        let bracket = self.text.end();
        for item in items {
            self.text.put_short(&self.items[usize::from(*item)]);
        }
        // The bracket replaces the first comma.
        self.text.put_at(bracket, b'[');
        self.text.put(b"]}");
        self.text.as_bytes()
    }

    fn write_click(&mut self, id: &ShortText<32>, stamp_ms: i64, item: u16) -> &[u8] {
        self.begin(CLICK, id);
        self.text.put(br#"","ts":"#);
        self.text.put_number(stamp_ms);
        self.text.put(br#","item":"i"#);
        self.text.put_number(item.into());
        self.text.put(br#""}"#);
        self.text.as_bytes()
    }

    /// Writes a record of a type that abgauge ignores.
    pub fn other_type(&mut self, request: &Request) -> &[u8] {
        let (id, ts_ms) = (self.id(&request.origin), request.ts_ms);
        self.replace(format!(
            r#"{{"type":"heartbeat","request_id":"{id}","ts":{ts_ms}}}"#
        ))
    }

    /// Writes an unreadable record of a random kind. It has no line break, so that it fits into a file of lines.
    pub fn broken(&mut self, request: &Request, random: &mut Random) -> &[u8] {
        let Request {
            origin, items, ts_ms, ..
        } = request;
        let (id, kind) = (self.id(origin), self.kind(SERVED));
        match random.below(7) {
            0 => {
                let whole = self.write_list(&id, origin, request.stamp_ms(), items);
                let cut = 1 + random.below(whole.len() as u64 - 1);
                &whole[..cut as usize]
            }
            1 => b"GET /recommendations HTTP/1.1",
            2 => {
                let whole = self.write_list(&id, origin, request.stamp_ms(), items);
                let mut text = whole.to_vec();
                text.insert(text.len() / 2, 0xff);
                self.replace(&text)
            }
            3 => self.replace(format!(r#"{{{kind}"request_id":"{id}","items":["i1"]}}"#)),
            4 => self.replace(format!(
                r#"{{{kind}"request_id":"{id}","ts":{ts_ms},"items":"i1"}}"#
            )),
            // A time in seconds instead of milliseconds.
            5 => self.write_list(&id, origin, ts_ms / 1000, items),
            _ => self.replace(format!(
                r#"{{{kind}"request_id":"","ts":{ts_ms},"items":["i1"]}}"#
            )),
        }
    }

    fn begin(&mut self, kind: &'static str, id: &ShortText<32>) {
        self.text.clear();
        self.text.put(b"{");
        if self.with_type {
            self.text.put(kind.as_bytes());
        }
        self.text.put(br#""request_id":""#);
        self.text.put_short(id);
    }

    fn replace(&mut self, text: impl AsRef<[u8]>) -> &[u8] {
        self.text.clear();
        self.text.put(text.as_ref());
        self.text.as_bytes()
    }

    /// Returns the field with the record's kind, or nothing.
    fn kind(&self, field: &'static str) -> &'static str {
        match self.with_type {
            true => field,
            false => "",
        }
    }
}

/// Returns the field that names the arms, starting with its comma.
fn experiments(design: &Design, combination: Combination) -> ShortText<MOST_BYTES> {
    let fields = design
        .arms(combination)
        .map(|(experiment, arm)| format!(r#""{}":"{}""#, experiment.name, arm.name));
    let fields = fields.collect::<Vec<_>>().join(",");
    ShortText::new(&format!(r#","experiments":{{{fields}}}"#))
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
                key_hash: 0,
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

    fn list(json: &mut Json, request: &Request) -> String {
        let list = json.write_list(
            &ShortText::new("r-1"),
            &request.origin,
            request.ts_ms,
            &request.items,
        );
        String::from_utf8(list.to_vec()).unwrap()
    }

    fn click(json: &mut Json, stamp_ms: i64, item: u16) -> String {
        let click = json.write_click(&ShortText::new("r-1"), stamp_ms, item);
        String::from_utf8(click.to_vec()).unwrap()
    }

    #[test]
    fn payloads_have_the_documented_shape() {
        let mut json = json(false);
        assert_eq!(
            list(&mut json, &request()),
            r#"{"request_id":"r-1","user_id":"u-7","ts":1763596800123,"experiments":{"ranker":"neural","layout":"grid"},"items":["i5","i9"]}"#,
        );
        let empty = Request {
            items: Vec::new(),
            ..request()
        };
        assert_eq!(
            list(&mut json, &empty),
            r#"{"request_id":"r-1","user_id":"u-7","ts":1763596800123,"experiments":{"ranker":"neural","layout":"grid"},"items":[]}"#,
        );
        assert_eq!(
            click(&mut json, 1_763_596_805_123, 9),
            r#"{"request_id":"r-1","ts":1763596805123,"item":"i9"}"#,
        );
    }

    #[test]
    fn the_longest_names_of_a_design_fit() {
        let names = |n_bytes: usize| ["e", "b"].map(|begin| begin.repeat(n_bytes));
        let design = |n_bytes: usize| {
            let [experiment, arm] = names(n_bytes);
            Design::new(0.1, &[(&experiment, &["a", &arm])])
        };
        let longest = (1..MOST_BYTES)
            .filter_map(|n_bytes| design(n_bytes).ok())
            .next_back();
        let mut json = Json::new(true, TopicKey::User, "r-", &longest.unwrap());
        let mut request = request();
        request.origin.combination = 1;
        let [experiment, arm] = names(52);
        assert!(list(&mut json, &request).contains(&format!(r#""experiments":{{"{experiment}":"{arm}"}},"#)));
    }

    #[test]
    fn a_record_has_the_configured_key() {
        for (keyed_by, key) in [(TopicKey::Request, b"r-1"), (TopicKey::User, b"u-7")] {
            let mut json = Json::new(false, keyed_by, "r-", &Design::default());
            let record = json.record(&RecordDraft {
                arrival_ms: 5,
                side: Side::Clicks,
                kind: RecordKind::Broken,
                origin: request().origin,
                content: Content::Text(b"{"),
            });
            assert_eq!((record.key, record.payload), (key.as_slice(), b"{".as_slice()));
        }
    }

    #[test]
    fn lines_of_a_file_have_a_type() {
        let mut json = json(true);
        assert!(list(&mut json, &request()).starts_with(r#"{"type":"served","request_id""#));
        assert!(click(&mut json, 1, 9).starts_with(r#"{"type":"click","request_id""#));
    }

    #[test]
    fn broken_payloads_are_varied_and_fit_on_a_line() {
        let mut random = Random::new(1);
        let mut json = json(true);
        let mut kinds = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let payload = json.broken(&request(), &mut random);
            assert!(!payload.is_empty() && !payload.contains(&b'\n'));
            kinds.insert(match serde_json::from_slice::<serde_json::Value>(payload) {
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
