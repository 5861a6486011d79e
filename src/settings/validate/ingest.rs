//! `[ingest]`: how records are read, and which are left out.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;

use abgauge_core::engine::event::Side;
use toml::Spanned;

use super::values::whole;
use crate::settings::TopicPartition;
use crate::settings::error::ErrorReport;
use crate::settings::raw::RawIngest;
use crate::settings::skips::{Skips, parse_offsets};
use crate::settings::{Ingest, Kafka};

pub(super) fn ingest(raw: &RawIngest, kafka: &Kafka, report: &mut ErrorReport) -> Ingest {
    raw.check("ingest", report);
    let workers = raw.workers.as_ref().map(whole).and_then(NonZeroUsize::new);
    let entries = raw.skip_records.iter().flat_map(Spanned::get_ref);
    Ingest {
        workers,
        skips: Skips::new(entries.filter_map(|entry| skip(entry, kafka, report))),
    }
}

fn skip(
    entry: &Spanned<String>,
    kafka: &Kafka,
    report: &mut ErrorReport,
) -> Option<(TopicPartition, RangeInclusive<i64>)> {
    const KEY: &str = "ingest.skip_records";
    let text = entry.get_ref();
    let mut parts = text.splitn(3, '/');
    let topic = parts.next().unwrap_or_default();
    // A partition is written like an offset, but it cannot be a range.
    let partition = parts.next().and_then(parse_offsets);
    let partition = partition.filter(|numbers| numbers.start() == numbers.end());
    let partition = partition.and_then(|numbers| i32::try_from(*numbers.start()).ok());
    let offsets = parts.next().and_then(parse_offsets);
    let (Some(partition), Some(offsets)) = (partition, offsets) else {
        let remedy = "write TOPIC/PARTITION/OFFSET or TOPIC/PARTITION/FIRST-LAST, such as \"served/0/1234\" or \
                      \"clicks/3/1234-1300\"";
        report.refuse(KEY, entry, format!("\"{text}\" contains no offsets"), remedy);
        return None;
    };
    let side = if topic == kafka.served_topic {
        Side::Served
    } else if topic == kafka.clicks_topic {
        Side::Clicks
    } else {
        let message = format!("`{topic}` is not a topic that abgauge reads");
        let remedy = format!("write `{}` or `{}`", kafka.served_topic, kafka.clicks_topic);
        report.refuse(KEY, entry, message, remedy);
        return None;
    };
    Some(((side, partition), offsets))
}
