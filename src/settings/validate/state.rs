//! `[state]`: topic in which settled numbers outlive a process. `[global]`: shows all pairs together.

use super::kafka::topic;
use crate::settings::error::ErrorReport;
use crate::settings::raw::{RawGlobal, RawState};
use crate::settings::{Kafka, StateTopic};

/// Minimum rate. A single seal would not fit into less.
const MIN_BYTES_PER_SECOND: u64 = 4 << 10;
/// Minimum interval. With a shorter one, each look at the ends of the topic would find new records.
const MIN_INTERVAL_MS: i64 = 1_000;

/// Returns the state topic; `None` if no state is stored.
pub(super) fn state(raw: &RawState, kafka: &Kafka, report: &mut ErrorReport) -> Option<StateTopic> {
    raw.check("state", report);
    if raw.interval.get_ref().ms < MIN_INTERVAL_MS && report.is_sound("state.interval") {
        let remedy = "write \"1s\" or more";
        report.refuse("state.interval", &raw.interval, "is too often", remedy);
    }
    let max_bytes_per_second = raw.max_bytes_per_second.get_ref().bytes;
    if max_bytes_per_second < MIN_BYTES_PER_SECOND {
        let remedy = "write \"4KiB\" or more";
        report.refuse(
            "state.max_bytes_per_second",
            &raw.max_bytes_per_second,
            "is too little to store anything",
            remedy,
        );
    }
    // The limits above are validated even without a topic, so that no error goes unnoticed.
    let name = raw.topic.as_ref()?;
    let others = [
        Some(&kafka.served_topic),
        Some(&kafka.clicks_topic),
        kafka.dead_letter_topic.as_ref(),
    ];
    if others.contains(&Some(name.get_ref())) {
        let remedy =
            "write another topic, which only abgauge writes: `cleanup.policy=compact` would delete events";
        report.refuse("state.topic", name, "is used for something else", remedy);
    }
    Some(StateTopic {
        topic: topic("state.topic", name, report),
        interval: raw.interval.get_ref().duration(),
        max_bytes_per_second,
    })
}

/// Returns whether all pairs are shown together: if they are stored, unless switched off. Statistics of the whole need it.
pub(super) fn global(
    raw: &RawGlobal,
    state: &RawState,
    has_experiments: bool,
    report: &mut ErrorReport,
) -> bool {
    raw.check("global", report);
    let enabled = raw.enabled.as_ref();
    let is_needed = state.topic.is_some() && has_experiments;
    if let Some(enabled) = enabled.filter(|enabled| is_needed && !*enabled.get_ref()) {
        report.refuse(
            "global.enabled",
            enabled,
            "leaves no instance that sees all users of the experiments under [experiments]: with state.topic their analyses cover all partitions",
            "leave it out, or move [experiments] to other instances, in their own group",
        );
    }
    if let Some(enabled) = enabled.filter(|enabled| *enabled.get_ref() && state.topic.is_none()) {
        report.refuse(
            "global.enabled",
            enabled,
            "needs the stored state of all instances, but no state is stored",
            "set state.topic, or leave it out",
        );
    }
    state.topic.is_some() && enabled.is_none_or(|enabled| *enabled.get_ref())
}
