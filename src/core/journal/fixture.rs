//! States for tests.

use std::collections::BTreeMap;

use super::content::{CountedColumn, Header, ReplayDigest, Role, SharedBytes, State, TopicProgress};
use super::identity::{CountedTopic, LogIdentity};

pub fn identity() -> LogIdentity {
    let topic = |name: &str, id| CountedTopic {
        name: name.to_owned(),
        id,
    };
    LogIdentity {
        fingerprint: "attribution 30m; slot 5s".to_owned(),
        topics: vec![topic("served", 7), topic("clicks", 1 << 100)],
        n_partitions: 12,
    }
}

/// Returns the header of a pair with this read position.
pub fn header(read_position: i64) -> Header {
    let reach = |read_position| TopicProgress {
        read_position,
        resume_offset: read_position / 2,
        resume_max_ms: Some(1_763_596_800_000),
        digest: ReplayDigest {
            n_events: 3,
            sum: u64::MAX,
        },
    };
    Header {
        identity: identity(),
        begin_ms: Some(1_763_590_000_000),
        frontier_ms: Some(1_763_596_000_000),
        reaches: vec![reach(read_position), reach(300)],
        was_caught_up: true,
        is_exact: true,
        columns: vec![CountedColumn {
            id: "hit_rate@5".to_owned(),
            since_ms: -1,
        }],
    }
}

pub fn roles(roles: &[(&str, &str)]) -> BTreeMap<Role, SharedBytes> {
    let roles = roles.iter();
    roles
        .map(|(role, bytes)| ((*role).into(), bytes.as_bytes().into()))
        .collect()
}

pub fn state(read_position: i64, of: &[(&str, &str)]) -> State {
    State::new(header(read_position), roles(of))
}
