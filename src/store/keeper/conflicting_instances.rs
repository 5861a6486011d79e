//! Detection of conflicting instances: same group, other counting rules. The group moves pairs back and forth between them
//! and us, and neither can resume from the other's stored state.

use abgauge_core::journal::{Claim, Namespace, RecordKey};
use abgauge_core::ledger::PairId;

/// Age from which a claim no longer counts as evidence, ms.
const YOUNG_MS: i64 = 10 * 60_000;
/// Time between two messages, ms.
const AGAIN_MS: i64 = 60_000;

#[derive(Debug, Default)]
pub(super) struct ConflictingInstances {
    reported_ms: Option<i64>,
}

/// Record of the state topic and the time at which it was read.
pub(super) struct ReadRecord<'a> {
    pub pair: PairId,
    pub key: &'a [u8],
    pub value: Option<&'a [u8]>,
    /// Timestamp given by the log, Unix ms.
    pub written_ms: Option<i64>,
    /// Unix ms.
    pub now_ms: i64,
}

impl ConflictingInstances {
    /// Returns a message if the record shows a conflict, at most once a minute.
    pub fn look(&mut self, own: Namespace, us: &Claim, read: &ReadRecord<'_>) -> Option<String> {
        let claim = conflicting_instance(own, us, read)?;
        let is_reported = self
            .reported_ms
            .is_some_and(|reported_ms| read.now_ms - reported_ms < AGAIN_MS);
        if is_reported {
            return None;
        }
        self.reported_ms = Some(read.now_ms);
        Some(format!(
            "{} has claimed partition {} in the same group `{}`, but counts by other rules ({}; here {}): if a pair moves between two such instances, both count it with gaps. Give all instances of a group the same settings, or each kind its own group (kafka.group_id); during a rollout this ends with the last old instance",
            claim.instance,
            read.pair,
            us.group,
            other_words(&claim.fingerprint, &us.fingerprint),
            other_words(&us.fingerprint, &claim.fingerprint),
        ))
    }
}

/// Returns the claim in a record if it is young, belongs to our group and lies in another namespace.
fn conflicting_instance(own: Namespace, us: &Claim, read: &ReadRecord<'_>) -> Option<Claim> {
    let (namespace, RecordKey::Claim(_)) = RecordKey::parse(read.key)? else {
        return None;
    };
    // Old claims stay in the topic, and prove nothing about the present.
    let is_young = read.now_ms - read.written_ms? < YOUNG_MS;
    let claim = Claim::decode(read.value?).ok()?;
    (namespace != own && is_young && claim.group == us.group).then_some(claim)
}

/// Returns the words of the first fingerprint that the second lacks.
fn other_words(of: &str, than: &str) -> String {
    let known: Vec<&str> = than.split(", ").collect();
    let words: Vec<&str> = of.split(", ").filter(|word| !known.contains(word)).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use abgauge_core::journal::Session;

    use super::*;

    fn claim(group: &str, fingerprint: &str) -> Claim {
        Claim {
            instance: "gauge-7".to_owned(),
            group: group.to_owned(),
            fingerprint: fingerprint.to_owned(),
            ..Claim::default()
        }
    }

    /// Messages for a series of claims. Each is a group, a fingerprint, an age and the time at which it is read.
    fn reported(claims: &[(&str, &str, i64, i64)]) -> Vec<Option<String>> {
        let us = claim("ours", "slot_ms 1000, key user");
        let own = Namespace::of(&us.fingerprint, &us.group);
        let mut conflicts = ConflictingInstances::default();
        let claims = claims.iter().map(|(group, fingerprint, age_ms, now_ms)| {
            let session = Session { epoch: 1, unique: 2 };
            let key = RecordKey::Claim(session).text(Namespace::of(fingerprint, group));
            let read = ReadRecord {
                pair: 3,
                key: key.as_bytes(),
                value: Some(&claim(group, fingerprint).encode()),
                written_ms: Some(now_ms - age_ms),
                now_ms: *now_ms,
            };
            conflicts.look(own, &us, &read)
        });
        claims.collect()
    }

    const OTHER: &str = "slot_ms 5000, key user";

    #[test]
    fn warns_of_a_member_that_counts_by_other_rules() {
        let reported = reported(&[("ours", OTHER, YOUNG_MS - 1, 0)]);
        let text = reported[0].as_deref().expect("it is told");
        for part in [
            "gauge-7 has claimed partition 3 in the same group `ours`",
            "(slot_ms 5000; here slot_ms 1000)",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn ignores_own_claims_other_groups_and_old_claims() {
        let claims = [
            ("ours", "slot_ms 1000, key user", 0, 0),
            ("theirs", OTHER, 0, 0),
            ("ours", OTHER, YOUNG_MS, 0),
        ];
        assert_eq!(reported(&claims), [None, None, None]);
    }

    #[test]
    fn warns_once_a_minute() {
        let times = [0, AGAIN_MS - 1, AGAIN_MS];
        let reported = reported(&times.map(|now_ms| ("ours", OTHER, 0, now_ms)));
        let reported: Vec<bool> = reported.iter().map(Option::is_some).collect();
        assert_eq!(reported, [true, false, true]);
    }
}
