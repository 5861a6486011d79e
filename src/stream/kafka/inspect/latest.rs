//! Latest records of a topic, from which settings are drafted.

use std::ffi::CStr;

use abgauge_core::decode::framing::{HEADERS, Headers};
use rdkafka::message::Message as _;

use super::sample::{RecordHeaders, StopCondition, starts};
use super::{Failure, Survey};

/// Maximum size of all records that are kept.
const MAX_BYTES: usize = 64 << 20;

/// One of the latest records of a topic.
#[derive(Debug, Default)]
pub struct LatestRecord {
    pub partition: i32,
    pub offset: i64,
    pub payload: Vec<u8>,
    /// Headers that name the schema of the record.
    headers: Vec<(&'static CStr, Vec<u8>)>,
}

impl Headers for LatestRecord {
    fn last(&self, name: &CStr) -> Option<&[u8]> {
        let header = self.headers.iter().find(|(header, _)| *header == name)?;
        Some(&header.1)
    }
}

impl Survey {
    /// Reads up to `n_records` of the latest records of a topic, in the order of their partitions. Tombstones are left out.
    ///
    /// # Errors
    /// Same as [`Survey::n_partitions`], or no record arrives within some seconds.
    pub fn latest(&self, topic: &str, n_records: i64) -> Result<Vec<LatestRecord>, Failure> {
        let logs = self.logs(topic)?;
        let (begins, ends): (Vec<i64>, Vec<i64>) = logs.iter().map(|log| (log.low, log.high)).unzip();
        let starts = starts(&begins, &ends, n_records);
        let mut records = Vec::new();
        if starts.is_empty() {
            return Ok(records);
        }
        let mut n_bytes = 0;
        self.asker
            .read(topic, &starts, &ends, StopCondition::Seconds, |record| {
                let Some(payload) = record.payload() else {
                    return true;
                };
                n_bytes += payload.len();
                let all = RecordHeaders(record);
                let header = |name| Some((name, all.last(name)?.to_vec()));
                records.push(LatestRecord {
                    partition: record.partition(),
                    offset: record.offset(),
                    payload: payload.to_vec(),
                    headers: HEADERS.into_iter().filter_map(header).collect(),
                });
                n_bytes < MAX_BYTES
            })?;
        records.sort_by_key(|record: &LatestRecord| (record.partition, record.offset));
        Ok(records)
    }
}
