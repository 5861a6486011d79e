//! Gauges of stored state for each pair of this process, including the result of its restore.

use prometheus::core::{Collector, GenericCounterVec, GenericGaugeVec};
use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Registry};
use serde::Serialize;

use super::{family, forget, saturated};

/// Stored state of a pair.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StoredState {
    /// Phase of its owner: `reading`, `claiming`, `holding`, `superseded`, `refused`, or `away` before it was started.
    pub standing: &'static str,
    /// Time since a state of the pair was last found current, or since the pair was assigned if none was.
    pub age_seconds: f64,
    /// States found current, and higher claims read, since the start.
    pub states: u64,
    pub superseded: u64,
    /// Next offset in its partition of the state topic, and the end of that partition when last queried.
    pub position: i64,
    pub end: Option<i64>,
    /// Bytes of keys and values since the start.
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub restore: Restore,
    /// Set once the pair has reached the ends of its logs, here or on another instance.
    pub caught_up: bool,
    /// Set if no records of the pair were ever shed.
    pub exact: bool,
    /// The topic has all of it, and nothing keeps it from being stored.
    pub whole: bool,
    /// Losses of the topic since the start, and the time since the last one.
    pub lost: u64,
    pub seconds_since_loss: Option<f64>,
}

/// Cost of finding the stored state of a pair.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Restore {
    pub under_way: bool,
    /// Time from the assignment to the end of the restore, or to now.
    pub seconds: f64,
    /// Bytes of keys and values read for it, absent while it is running.
    pub read_bytes: Option<u64>,
    /// Bytes of the state that was found, absent if there was none.
    pub live_bytes: Option<u64>,
}

/// Stored state of a pair in the JSON API.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredStatus {
    pub partition: i32,
    #[serde(flatten)]
    pub state: StoredState,
}

/// Families of gauges, labeled by partition.
pub(super) struct StoredGauges {
    age: GaugeVec,
    states: IntCounterVec,
    superseded: IntCounterVec,
    bytes_written: IntCounterVec,
    bytes_read: IntCounterVec,
    lag: IntGaugeVec,
    restoring: IntGaugeVec,
    restore_seconds: GaugeVec,
    restore_read_bytes: IntGaugeVec,
    restore_live_bytes: IntGaugeVec,
    caught_up: IntGaugeVec,
    exact: IntGaugeVec,
    whole: IntGaugeVec,
    lost: IntCounterVec,
}

impl StoredGauges {
    pub fn new(registry: &Registry) -> StoredGauges {
        StoredGauges {
            age: gauge(
                registry,
                "abgauge_stored_age_seconds",
                "Time since a stored state of a partition was last confirmed as current, or since the partition was assigned.",
            ),
            states: counter(
                registry,
                "abgauge_stored_states_total",
                "Stored states of a partition that were confirmed as current.",
            ),
            superseded: counter(
                registry,
                "abgauge_stored_superseded_total",
                "Times that another instance claimed the stored state of a partition.",
            ),
            bytes_written: counter(
                registry,
                "abgauge_stored_bytes_written_total",
                "Bytes of keys and values handed over for storing.",
            ),
            bytes_read: counter(
                registry,
                "abgauge_stored_bytes_read_total",
                "Bytes of keys and values read from the state topic.",
            ),
            lag: gauge(
                registry,
                "abgauge_stored_lag_records",
                "Offsets between the read position in the state topic and its end.",
            ),
            restoring: gauge(
                registry,
                "abgauge_stored_restoring",
                "1 while the stored state of a partition is being read, else 0.",
            ),
            restore_seconds: gauge(
                registry,
                "abgauge_stored_restore_seconds",
                "Time that reading the stored state of a partition took, or has taken so far.",
            ),
            restore_read_bytes: gauge(
                registry,
                "abgauge_stored_restore_read_bytes",
                "Bytes of keys and values read to restore a partition.",
            ),
            restore_live_bytes: gauge(
                registry,
                "abgauge_stored_restore_live_bytes",
                "Bytes of live state within abgauge_stored_restore_read_bytes.",
            ),
            caught_up: gauge(
                registry,
                "abgauge_stored_caught_up",
                "1 once a partition has reached the ends of its topics, here or before, else 0.",
            ),
            exact: gauge(
                registry,
                "abgauge_stored_exact",
                "1 if no record of a partition was ever shed since its stored state began, else 0.",
            ),
            whole: gauge(
                registry,
                "abgauge_stored_whole",
                "1 while the state topic has all of the stored state of a partition and takes more, else 0.",
            ),
            lost: counter(
                registry,
                "abgauge_stored_lost_total",
                "How often the state topic had lost some of the stored state of a partition, which was then written again.",
            ),
        }
    }

    pub fn set(&self, partition: i32, state: &StoredState) {
        let labels = [&*partition.to_string()];
        let restore = &state.restore;
        self.age.with_label_values(&labels).set(state.age_seconds);
        for (counter, n) in [
            (&self.states, state.states),
            (&self.superseded, state.superseded),
            (&self.bytes_written, state.bytes_written),
            (&self.bytes_read, state.bytes_read),
            (&self.lost, state.lost),
        ] {
            let counter = counter.with_label_values(&labels);
            // The state has totals, but a counter takes increments. A total that starts over must not lower the counter.
            counter.inc_by(n.saturating_sub(counter.get()));
        }
        let flag = |is: bool| Some(i64::from(is));
        for (gauge, value) in [
            // The end is queried from time to time, so the position may have passed it.
            (&self.lag, state.end.map(|end| (end - state.position).max(0))),
            (&self.restoring, flag(restore.under_way)),
            (&self.restore_read_bytes, restore.read_bytes.map(saturated)),
            (&self.restore_live_bytes, restore.live_bytes.map(saturated)),
            (&self.caught_up, flag(state.caught_up)),
            (&self.exact, flag(state.exact)),
            (&self.whole, flag(state.whole)),
        ] {
            match value {
                Some(value) => gauge.with_label_values(&labels).set(value),
                None => forget(gauge, &labels),
            }
        }
        self.restore_seconds
            .with_label_values(&labels)
            .set(restore.seconds);
    }

    pub fn forget(&self, partition: i32) {
        let labels = [&*partition.to_string()];
        forget(&self.age, &labels);
        forget(&self.restore_seconds, &labels);
        for counter in [
            &self.states,
            &self.superseded,
            &self.bytes_written,
            &self.bytes_read,
            &self.lost,
        ] {
            forget(counter, &labels);
        }
        for gauge in [
            &self.lag,
            &self.restoring,
            &self.restore_read_bytes,
            &self.restore_live_bytes,
            &self.caught_up,
            &self.exact,
            &self.whole,
        ] {
            forget(gauge, &labels);
        }
    }
}

const LABELS: [&str; 1] = ["partition"];

fn gauge<P>(registry: &Registry, name: &str, help: &str) -> GenericGaugeVec<P>
where
    P: prometheus::core::Atomic + 'static,
    GenericGaugeVec<P>: Collector + Clone,
{
    family(registry, GenericGaugeVec::new, name, help, &LABELS)
}

fn counter<P>(registry: &Registry, name: &str, help: &str) -> GenericCounterVec<P>
where
    P: prometheus::core::Atomic + 'static,
    GenericCounterVec<P>: Collector + Clone,
{
    family(registry, GenericCounterVec::new, name, help, &LABELS)
}
