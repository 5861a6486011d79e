//! Steps of a session by what passes the network then: how a test catches an instance at one of them.

use std::sync::Arc;

use crate::support::gate::{Gate, Kept, LIST_OFFSETS, OFFSET_COMMIT, PRODUCE, Request};

/// What an instance waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Its claim is to land.
    Claim,
    /// It has claimed, and asks where the partition ends, to read its base.
    Restore,
    /// Blobs of a seal are to land.
    Blobs,
    Seal,
    /// Tombstones are to land.
    Garbage,
    /// Positions are committed to the group.
    Commit,
}

impl Step {
    pub const ALL: [Step; 6] = [
        Step::Claim,
        Step::Restore,
        Step::Blobs,
        Step::Seal,
        Step::Garbage,
        Step::Commit,
    ];

    /// Comes at a start, and not while an instance owns what it owns.
    pub fn is_of_a_start(self) -> bool {
        matches!(self, Step::Claim | Step::Restore)
    }

    /// Catches the next one of these, of this instance.
    pub fn gate(self, instance: usize, kept: Kept, state_topic: &str) -> Arc<Gate> {
        let client = format!("instance-{instance}");
        let topic = state_topic.to_owned();
        let mut has_claimed = false;
        Gate::new(kept, move |request| {
            if request.client != client.as_bytes() {
                return false;
            }
            let writes = |kind, is_put| request.api == PRODUCE && writes(request, kind, is_put);
            let claims = writes("claim", true);
            has_claimed |= claims;
            match self {
                Step::Claim => claims,
                Step::Restore => {
                    has_claimed && request.api == LIST_OFFSETS && request.contains(topic.as_bytes())
                }
                Step::Blobs => writes("blob", true),
                Step::Seal => writes("seal", true),
                Step::Garbage => writes("claim", false) || writes("seal", false) || writes("blob", false),
                Step::Commit => request.api == OFFSET_COMMIT,
            }
        })
    }
}

/// Of a key: `1|NS`, before what it is of.
const BEFORE_KIND: usize = 18;

/// Whether a record of this kind is among what is written: put, or deleted. Nothing is compressed.
fn writes(request: &Request, kind: &str, is_put: bool) -> bool {
    let kind = format!("|{kind}|");
    let places = request.bytes.windows(kind.len()).enumerate();
    places
        .filter(|(_, window)| *window == kind.as_bytes())
        .any(|(place, _)| is_of_a_put(request.bytes, place) == Some(is_put))
}

/// Before a key stands twice its length, in one byte; after it that of the value, where 1 is a tombstone.
fn is_of_a_put(bytes: &[u8], place_of_kind: usize) -> Option<bool> {
    let key = place_of_kind.checked_sub(BEFORE_KIND)?;
    let length = usize::from(*bytes.get(key.checked_sub(1)?)? / 2);
    Some(*bytes.get(key + length)? != 1)
}
