//! Status of stored state, for telemetry and as text for whatever waits on it.

use std::collections::BTreeMap;
use std::ops::Range;

use abgauge_core::engine::Checkpoint;
use abgauge_core::engine::event::Side;
use abgauge_core::ledger::PairId;

use super::{StoredPairs, stored};
use crate::store::keeper::{LogProgress, OwnerStatus, PairStatus};
use crate::stream::worker::pair::Pair;
use crate::stream::worker::phase::Phase;
use crate::stream::worker::shards::Shards;
use crate::stream::worker::stored_pair::StoredPair;
use crate::telemetry::{Restore, StoredState, Warning};

/// Ratio of bytes read to live bytes above which the state topic is reported as not cleaned.
const MAX_READ_TO_LIVE: u64 = 10;
/// Size below which nothing is concluded: the cleaner skips the segment that is being written.
const SEGMENT_BYTES: u64 = 16 << 20;
/// Age after which a pair that waits to be stored is reported. A pair that catches up may wait briefly at any time.
const TELL_UNSEALED_AFTER_SECONDS: f64 = 60.0;

impl StoredPairs {
    /// Returns the stored state of the pairs that this process has. `now_ms` is on a clock that counts suspension.
    pub fn states(&self, shards: &Shards, now_ms: i64) -> BTreeMap<PairId, StoredState> {
        let ours = shards
            .phases()
            .filter(|(_, phase)| !matches!(phase, Phase::Parked(_)));
        let states = ours.filter_map(|(pair, phase)| {
            let mut state = state(&self.door.keeper.status(pair), stored(phase), now_ms)?;
            // Wrong settings of the topic or missing rights on it affect every pair.
            state.whole &= self.unfit.is_none() && !self.door.keeper.is_forbidden();
            Some((pair, state))
        });
        states.collect()
    }

    /// Describes the wait until the stored state of these pairs is known.
    pub fn restoring(&self, pairs: &[PairId]) -> Option<String> {
        let statuses: Vec<PairStatus> = pairs.iter().map(|pair| self.door.keeper.status(*pair)).collect();
        restoring(pairs, &statuses)
    }

    /// Describes the wait until the logs of a pair have been replayed up to the counted positions.
    pub fn reading_again(&self, partition: PairId, pair: &Pair) -> Option<String> {
        let own = pair.stored.as_ref()?;
        if !pair.engine().is_replaying() {
            return None;
        }
        Some(reading_again(partition, &own.counted, pair.positions()))
    }
}

/// Offsets of each log that are read again: from the resume offset to the read position.
pub(super) fn counted(checkpoint: &Checkpoint) -> Vec<(Side, Range<i64>)> {
    let logs = checkpoint.logs_for_copies();
    logs.map(|log| (log.side, log.resume.offset..log.position.offset))
        .collect()
}

/// Converts a keeper's status; `None` before the keeper knows the pair.
fn state(status: &PairStatus, own: Option<&StoredPair>, now_ms: i64) -> Option<StoredState> {
    let assigned_ms = status.assigned_ms?;
    let seconds = |ms: i64| ms.max(0) as f64 / 1000.0;
    let restored = status.restored;
    Some(StoredState {
        standing: name(status.standing),
        // While the pair was elsewhere, its state was not ours to store, so the age counts from the assignment at the
        // earliest.
        age_seconds: seconds(now_ms - status.sealed_ms.map_or(assigned_ms, |ms| ms.max(assigned_ms))),
        states: status.n_sealed,
        superseded: status.n_superseded,
        position: status.progress.position,
        end: status.progress.end,
        bytes_read: status.progress.n_bytes,
        bytes_written: status.n_bytes_written,
        restore: Restore {
            under_way: restored.is_none(),
            seconds: seconds(restored.map_or(now_ms - assigned_ms, |restored| restored.took_ms)),
            read_bytes: restored.map(|restored| restored.n_bytes_read),
            live_bytes: restored.and_then(|restored| restored.n_bytes_live),
        },
        caught_up: own.is_some_and(|own| own.was_caught_up),
        exact: own.is_none_or(|own| own.is_exact),
        whole: status.trouble.is_none(),
        lost: status.n_lost,
        seconds_since_loss: status.lost_ms.map(|lost_ms| seconds(now_ms - lost_ms)),
    })
}

fn name(standing: OwnerStatus) -> &'static str {
    match standing {
        OwnerStatus::Away => "away",
        OwnerStatus::Reading => "reading",
        OwnerStatus::Claiming => "claiming",
        OwnerStatus::Holding => "holding",
        OwnerStatus::Superseded => "superseded",
        OwnerStatus::Refused => "refused",
    }
}

fn restoring(pairs: &[PairId], statuses: &[PairStatus]) -> Option<String> {
    let whose = match pairs {
        [] => return None,
        [one] => format!("partition {one}"),
        [..] => format!("{} partitions", pairs.len()),
    };
    let progress = statuses.iter().map(|status| status.progress);
    // The sum is `None` until all ends are known.
    let end: Option<i64> = progress.clone().map(|progress| progress.end).sum();
    // Records behind the end do not count, so the progress does not exceed the total.
    let position = |LogProgress { position, end, .. }: LogProgress| position.min(end.unwrap_or(position));
    let position: i64 = progress.clone().map(position).sum();
    let megabytes = progress.map(|progress| progress.n_bytes).sum::<u64>() as f64 / 1e6;
    Some(match end {
        None => format!("reading the stored state of {whose}"),
        Some(end) if position < end => {
            format!(
                "reading the stored state of {whose}: {position} of {end} records, {megabytes:.1} MB so far"
            )
        }
        Some(_) => format!("claiming the stored state of {whose}: {megabytes:.1} MB read"),
    })
}

fn reading_again(
    partition: PairId,
    counted: &[(Side, Range<i64>)],
    positions: impl Iterator<Item = (Side, i64)>,
) -> String {
    let positions: BTreeMap<usize, i64> = positions
        .map(|(side, position)| (side as usize, position))
        .collect();
    let n_read = |(side, range): &(Side, Range<i64>)| {
        let position = positions.get(&(*side as usize)).copied().unwrap_or(range.start);
        // Outside its range, a log has nothing that is read again.
        position.clamp(range.start, range.end) - range.start
    };
    let n_read: i64 = counted.iter().map(n_read).sum();
    let n: i64 = counted.iter().map(|(_, range)| range.end - range.start).sum();
    format!("rereading records of partition {partition} that are not final yet: {n_read} of {n}")
}

/// Returns whether a restore had to read far more than the live bytes, because the topic is not cleaned.
fn is_not_cleaned(restore: &Restore) -> bool {
    let (Some(read), Some(live)) = (restore.read_bytes, restore.live_bytes) else {
        return false;
    };
    read > SEGMENT_BYTES && read > MAX_READ_TO_LIVE * live
}

/// Warns about a state topic that is not cleaned.
pub fn not_cleaned(stored: &BTreeMap<PairId, StoredState>) -> Option<Warning> {
    let bad = stored.iter().filter(|(_, state)| is_not_cleaned(&state.restore));
    let (worst, restore) = bad
        .map(|(pair, state)| (pair, &state.restore))
        .max_by_key(|(_, restore)| restore.read_bytes)?;
    let (read, live) = (restore.read_bytes?, restore.live_bytes?);
    let warning = format!(
        "partition {worst} of the state topic has {:.1} MB, of which only {:.1} MB are live: the brokers do not compact it, and each start reads all of it; check that cleanup.policy is compact and that their log cleaner is running (`abgauge check --connect`)",
        read as f64 / 1e6,
        live as f64 / 1e6,
    );
    Some(Warning::new(warning).see("AbgaugeStateNotCleaned"))
}

/// Warns about pairs that are paused because their settled numbers wait to be stored.
pub fn unsealed(stored: &StoredPairs, states: &BTreeMap<PairId, StoredState>) -> Option<Warning> {
    let waiting = states.iter().filter_map(|(pair, state)| {
        let n_bytes = stored.door.too_many_bytes(*pair)?;
        let is_long = state.age_seconds >= TELL_UNSEALED_AFTER_SECONDS;
        is_long.then_some((*pair, n_bytes, state.age_seconds))
    });
    let waiting: Vec<(PairId, u64, f64)> = waiting.collect();
    let (pair, n_bytes, seconds) = waiting
        .iter()
        .copied()
        .max_by(|one, other| one.2.total_cmp(&other.2))?;
    let others = match waiting.len() {
        1 => String::new(),
        n => format!(" (one of {n})"),
    };
    let warning = format!(
        "reading of partition {pair} is paused{others}: {:.1} MB of final counts wait to be stored, but the state topic `{}` has had no new state of it for {seconds:.0} s. Nothing is lost, and reading continues once the topic accepts writes (`abgauge check --connect` shows the problem); if it does, raise state.max_bytes_per_second",
        n_bytes as f64 / 1e6,
        stored.topic,
    );
    Some(Warning::critical(warning).see("AbgaugeStateNotSealed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::keeper::Restored;

    fn status(position: i64, end: Option<i64>, n_bytes: u64) -> PairStatus {
        PairStatus {
            assigned_ms: Some(1_000),
            progress: LogProgress {
                position,
                end,
                n_bytes,
            },
            ..PairStatus::default()
        }
    }

    #[test]
    fn reports_restore_progress_in_records_and_bytes() {
        assert_eq!(restoring(&[], &[]), None);
        assert_eq!(
            restoring(&[3], &[status(0, None, 0)]).as_deref(),
            Some("reading the stored state of partition 3")
        );
        let (one, two) = (
            status(1_000, Some(4_000), 1_200_000),
            status(500, Some(400), 100_000),
        );
        assert_eq!(
            restoring(&[0, 3], &[one, two.clone()]).as_deref(),
            Some("reading the stored state of 2 partitions: 1400 of 4400 records, 1.3 MB so far"),
            "what came behind the end does not count"
        );
        assert_eq!(
            restoring(&[3], &[two]).as_deref(),
            Some("claiming the stored state of partition 3: 0.1 MB read")
        );
    }

    #[test]
    fn reports_replay_progress_over_both_topics() {
        let counted = [(Side::Served, 100..180), (Side::Clicks, 30..50)];
        let reported = |positions: [i64; 2]| {
            let positions = [(Side::Served, positions[0]), (Side::Clicks, positions[1])];
            reading_again(2, &counted, positions.into_iter())
        };
        assert_eq!(
            reported([112, 30]),
            "rereading records of partition 2 that are not final yet: 12 of 100"
        );
        assert!(
            reported([500, 49]).ends_with(" 99 of 100"),
            "{}",
            reported([500, 49])
        );
    }

    #[test]
    fn age_counts_from_the_last_state_in_force_since_the_assignment() {
        assert_eq!(state(&PairStatus::default(), None, 5_000), None, "not known yet");
        let age = |sealed_ms| {
            let status = PairStatus {
                sealed_ms,
                ..status(0, None, 0)
            };
            state(&status, None, 5_000).map(|state| state.age_seconds)
        };
        assert_eq!(age(None), Some(4.0), "since it was assigned");
        assert_eq!(age(Some(400)), Some(4.0), "that was before it went elsewhere");
        assert_eq!(age(Some(4_500)), Some(0.5));
    }

    #[test]
    fn warns_of_an_uncleaned_topic_once_a_segment_was_read() {
        let reported = |n_bytes_read, n_bytes_live| {
            let status = PairStatus {
                restored: Some(Restored {
                    took_ms: 10,
                    n_bytes_read,
                    n_bytes_live,
                }),
                ..status(0, None, 0)
            };
            let state = state(&status, None, 5_000).expect("it is assigned");
            not_cleaned(&BTreeMap::from([(7, state)])).map(|warning| warning.message)
        };
        assert_eq!(reported(SEGMENT_BYTES, Some(1)), None);
        assert_eq!(reported(30 << 20, Some(3 << 20)), None, "ten times is borne");
        assert_eq!(reported(30 << 20, None), None, "nothing was stored");
        let message = reported(40_000_000, Some(3_000_000)).expect("told");
        assert!(
            message.starts_with("partition 7 of the state topic has 40.0 MB, of which only 3.0 MB are live"),
            "{message}"
        );
    }
}
