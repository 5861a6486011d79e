//! What the simulation emits: records, and the JSON of their payloads.

use super::model::{EXPERIMENTS, Visitor};
use super::random::Random;
use crate::engine::event::Side;

/// One Kafka record, or one line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When it reaches the topic (epoch ms): its record timestamp.
    pub arrival_ms: i64,
    pub side: Side,
    pub kind: RecordKind,
    pub key: Vec<u8>,
    pub payload: Vec<u8>,
}

/// Why the simulation emits a record. All but the first two are noise, which leaves the true values as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(usize)]
pub enum RecordKind {
    List,
    Click,
    /// A list again, byte for byte: a producer's retry.
    DuplicateList,
    /// A click on an item that was clicked already.
    RepeatedClick,
    /// A click on an item that is not in its list.
    OffListClick,
    /// A click whose list does not exist.
    OrphanClick,
    /// A click after the attribution window.
    ExpiredClick,
    /// A list that arrives later than any lateness: refused, and its clicks find nothing.
    LateList,
    /// A list or click by a clock that runs far ahead.
    Future,
    /// No event: broken JSON, wrong types, missing fields.
    Broken,
    /// Of a type that is not ours.
    OtherType,
}

impl RecordKind {
    pub const ALL: [RecordKind; 11] = [
        RecordKind::List,
        RecordKind::Click,
        RecordKind::DuplicateList,
        RecordKind::RepeatedClick,
        RecordKind::OffListClick,
        RecordKind::OrphanClick,
        RecordKind::ExpiredClick,
        RecordKind::LateList,
        RecordKind::Future,
        RecordKind::Broken,
        RecordKind::OtherType,
    ];
}

/// Writes payloads. With `with_type` they say what they are, as a file or a shared topic needs it.
#[derive(Debug, Clone, Copy)]
pub struct Json {
    pub with_type: bool,
}

/// One request, as its payloads name it.
#[derive(Debug, Clone)]
pub struct Request {
    pub id: String,
    pub user: String,
    pub visitor: Visitor,
    /// When it was served, by a true clock (epoch ms).
    pub ts_ms: i64,
    /// By how much the clock is ahead that stamps its list and its clicks: one clock stamps both, so that either all
    /// of a request is refused, or nothing.
    pub clock_ahead_ms: i64,
    pub items: Vec<u64>,
}

const SERVED: &str = r#""type":"served","#;
const CLICK: &str = r#""type":"click","#;

impl Json {
    pub fn list(self, request: &Request) -> Vec<u8> {
        self.list_with_ts(request, request.ts_ms + request.clock_ahead_ms)
    }

    fn list_with_ts(self, request: &Request, ts_ms: i64) -> Vec<u8> {
        let Request { id, user, .. } = request;
        // Room for all that a list of the longest kind needs.
        let mut json = Text(Vec::with_capacity(176 + 8 * request.items.len()));
        json.put(&[
            "{",
            self.kind(SERVED),
            r#""request_id":""#,
            id,
            r#"","user_id":""#,
            user,
        ])
        .put(&[r#"","ts":"#])
        .put_number(ts_ms)
        .put(&[r#","experiments":{"#]);
        for (index, (experiment, arm)) in EXPERIMENTS.iter().zip(request.visitor.arms).enumerate() {
            let comma = if index == 0 { "" } else { "," };
            json.put(&[comma, "\"", experiment.name, r#"":""#, experiment.arms[arm], "\""]);
        }
        json.put(&[r#"},"items":["#]);
        for (index, item) in request.items.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            json.put(&[comma, "\"i"]).put_number(*item).put(&["\""]);
        }
        json.put(&["]}"]);
        json.0
    }

    pub fn click(self, request_id: &str, ts_ms: i64, item: u64) -> Vec<u8> {
        let mut json = Text(Vec::with_capacity(112));
        json.put(&[
            "{",
            self.kind(CLICK),
            r#""request_id":""#,
            request_id,
            r#"","ts":"#,
        ])
        .put_number(ts_ms)
        .put(&[r#","item":"i"#])
        .put_number(item)
        .put(&[r#""}"#]);
        json.0
    }

    /// A record of a type that abgauge ignores.
    pub fn other_type(self, request: &Request) -> Vec<u8> {
        let Request { id, ts_ms, .. } = request;
        format!(r#"{{"type":"heartbeat","request_id":"{id}","ts":{ts_ms}}}"#).into_bytes()
    }

    /// Something that cannot be read, of one of several kinds; without a line break, so that it fits into a file.
    pub fn broken(self, request: &Request, random: &mut Random) -> Vec<u8> {
        let Request { id, ts_ms, .. } = request;
        let kind = self.kind(SERVED);
        match random.below(7) {
            0 => {
                let whole = self.list(request);
                let cut = 1 + random.below(whole.len() as u64 - 1);
                whole[..cut as usize].to_vec()
            }
            1 => b"GET /recommendations HTTP/1.1".to_vec(),
            2 => {
                let mut json = self.list(request);
                json.insert(json.len() / 2, 0xff);
                json
            }
            3 => format!(r#"{{{kind}"request_id":"{id}","items":["i1"]}}"#).into_bytes(),
            4 => format!(r#"{{{kind}"request_id":"{id}","ts":{ts_ms},"items":"i1"}}"#).into_bytes(),
            5 => self.list_with_ts(request, ts_ms / 1000),
            _ => format!(r#"{{{kind}"request_id":"","ts":{ts_ms},"items":["i1"]}}"#).into_bytes(),
        }
    }

    /// The field that says what a record is, or nothing.
    fn kind(self, field: &'static str) -> &'static str {
        match self.with_type {
            true => field,
            false => "",
        }
    }
}

/// Text by parts: `format!` takes three times as long, and a list has some sixty of them.
struct Text(Vec<u8>);

impl Text {
    fn put(&mut self, parts: &[&str]) -> &mut Text {
        parts
            .iter()
            .for_each(|part| self.0.extend_from_slice(part.as_bytes()));
        self
    }

    fn put_number(&mut self, number: impl itoa::Integer) -> &mut Text {
        self.put(&[itoa::Buffer::new().format(number)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::model::Model;

    fn request() -> Request {
        let mut visitor = Model::new(1).visitor(7);
        visitor.arms = [1, 0];
        Request {
            id: "r-1".to_owned(),
            user: "u-7".to_owned(),
            visitor,
            ts_ms: 1_763_596_800_123,
            clock_ahead_ms: 0,
            items: vec![5, 9],
        }
    }

    #[track_caller]
    fn check(payload: Vec<u8>, expected: &str) {
        assert_eq!(String::from_utf8(payload).unwrap(), expected);
    }

    #[test]
    fn payloads_have_the_documented_shape() {
        let json = Json { with_type: false };
        check(
            json.list(&request()),
            r#"{"request_id":"r-1","user_id":"u-7","ts":1763596800123,"experiments":{"ranker":"neural","layout":"grid"},"items":["i5","i9"]}"#,
        );
        check(
            json.click("r-1", 1_763_596_805_123, 9),
            r#"{"request_id":"r-1","ts":1763596805123,"item":"i9"}"#,
        );
    }

    #[test]
    fn lines_of_a_file_say_what_they_are() {
        let json = Json { with_type: true };
        assert!(
            json.list(&request())
                .starts_with(br#"{"type":"served","request_id""#)
        );
        assert!(
            json.click("r-1", 1, 9)
                .starts_with(br#"{"type":"click","request_id""#)
        );
    }

    #[test]
    fn broken_payloads_are_of_many_kinds_and_fit_on_a_line() {
        let mut random = Random::new(1);
        let json = Json { with_type: true };
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
