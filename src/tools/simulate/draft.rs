//! Records before their text is written. Most records wait long for their arrival, and drafts take less memory.

use abgauge_core::engine::event::Side;

use super::design::Combination;

/// Reason for a record. All but the first two are noise, which does not change the true values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum RecordKind {
    List,
    Click,
    /// Byte-for-byte repeat of a list, like a producer's retry.
    DuplicateList,
    /// Click on an item that was clicked already.
    RepeatedClick,
    /// Click on an item that is not in its list.
    OffListClick,
    /// Click whose list does not exist.
    OrphanClick,
    /// Click after the attribution window.
    ExpiredClick,
    /// List that arrives later than any lateness. It is refused, and its clicks find nothing.
    LateList,
    /// List or click stamped by a clock that is far ahead.
    Future,
    /// Unreadable event: broken JSON, wrong types, missing fields.
    Broken,
    /// Event of another type.
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

/// Data from which a record is written.
#[derive(Debug, Clone)]
pub struct RecordDraft {
    /// Time of arrival at the topic, Unix ms.
    pub arrival_ms: i64,
    pub side: Side,
    pub kind: RecordKind,
    pub origin: Origin,
    pub content: Content,
}

/// Request that a record belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Origin {
    /// Number, counted from 1.
    pub request: u64,
    pub user: u32,
    /// Arms of the user.
    pub combination: Combination,
}

/// Payload data. A stamp comes from the clock that stamps everything of the request, Unix ms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    List {
        stamp_ms: i64,
        items: Box<[u16]>,
    },
    Click {
        stamp_ms: i64,
        item: u16,
    },
    /// Verbatim text.
    Text(Vec<u8>),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most drafts wait for minutes, and all traffic of that time waits with them.
    #[test]
    fn a_draft_takes_64_bytes_plus_its_items() {
        assert_eq!(size_of::<RecordDraft>(), 64);
    }
}
