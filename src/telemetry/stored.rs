//! Gauges of stored state for each pair of this process, including the result of its restore.

use prometheus::Registry;
use serde::Serialize;

use super::families::StoredFamilies;
use super::saturated;
use super::series::{forget, set};

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
    /// Set while the topic has all of it, and settings and rights let more be stored.
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

/// Gauges of stored state, labeled by partition.
pub(super) struct StoredGauges(StoredFamilies);

impl StoredGauges {
    pub fn new(registry: &Registry) -> StoredGauges {
        StoredGauges(StoredFamilies::new(registry))
    }

    /// Sets all series of a partition. Without a state, it has none.
    pub fn set(&self, partition: i32, state: Option<&StoredState>) {
        let StoredGauges(families) = self;
        let labels = [&*partition.to_string()];
        let total = |read: fn(&StoredState) -> u64| state.map(read);
        for (counter, n) in [
            (&families.states, total(|state| state.states)),
            (&families.superseded, total(|state| state.superseded)),
            (&families.bytes_written, total(|state| state.bytes_written)),
            (&families.bytes_read, total(|state| state.bytes_read)),
            (&families.lost, total(|state| state.lost)),
        ] {
            let Some(n) = n else {
                forget(counter, &labels);
                continue;
            };
            let counter = counter.with_label_values(&labels);
            // The state has totals, but a counter takes increments. A total that starts over must not lower the counter.
            counter.inc_by(n.saturating_sub(counter.get()));
        }
        let lag = |state: &StoredState| Some((state.end? - state.position).max(0));
        let flag = |read: fn(&StoredState) -> bool| state.map(|state| read(state).into());
        let bytes =
            |read: fn(&Restore) -> Option<u64>| state.and_then(|state| read(&state.restore)).map(saturated);
        for (gauge, value) in [
            (&families.lag, state.and_then(lag)),
            (&families.restoring, flag(|state| state.restore.under_way)),
            (&families.restore_read_bytes, bytes(|restore| restore.read_bytes)),
            (&families.restore_live_bytes, bytes(|restore| restore.live_bytes)),
            (&families.caught_up, flag(|state| state.caught_up)),
            (&families.exact, flag(|state| state.exact)),
            (&families.whole, flag(|state| state.whole)),
        ] {
            set(gauge, &labels, value);
        }
        set(&families.age, &labels, state.map(|state| state.age_seconds));
        set(
            &families.restore_seconds,
            &labels,
            state.map(|state| state.restore.seconds),
        );
    }
}
