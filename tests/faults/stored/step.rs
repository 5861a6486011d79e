//! Steps of a session, recognized by their requests, so that a test can catch an instance at one of them.

use std::sync::Arc;

use crate::support::gate::{Gate, Kept, LIST_OFFSETS, OFFSET_COMMIT, PRODUCE, Request};

/// Step that an instance waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Write of its claim.
    Claim,
    /// Question for the end of the partition, after the claim, to read the base.
    Restore,
    /// Write of a seal's blobs.
    Blobs,
    Seal,
    /// Write of tombstones.
    Garbage,
    /// Commit of positions to the group.
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

    /// Returns whether the step occurs only at a start, and not while an instance owns its partitions.
    pub fn is_of_a_start(self) -> bool {
        matches!(self, Step::Claim | Step::Restore)
    }

    /// Returns a gate that catches the next such step of this instance.
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

/// Bytes of a key before its kind: `1|NS`.
const BEFORE_KIND: usize = 18;

/// Returns whether a request writes a record of this kind: puts it, or deletes it. Requests are not compressed.
fn writes(request: &Request, kind: &str, is_put: bool) -> bool {
    let kind = format!("|{kind}|");
    let places = request.bytes.windows(kind.len()).enumerate();
    places
        .filter(|(_, window)| *window == kind.as_bytes())
        .any(|(place, _)| is_of_a_put(request.bytes, place) == Some(is_put))
}

/// Returns whether a record has a value. One byte before the key is twice its length. The byte after the key is the length
/// of the value in the same form, and 1 there is a tombstone.
fn is_of_a_put(bytes: &[u8], place_of_kind: usize) -> Option<bool> {
    let key = place_of_kind.checked_sub(BEFORE_KIND)?;
    let length = usize::from(*bytes.get(key.checked_sub(1)?)? / 2);
    Some(*bytes.get(key + length)? != 1)
}
