//! Output of `abgauge simulate`: to Kafka at its pace, or JSON lines as fast as possible.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write, stdout};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use abgauge_core::nouns::number_of;
use anyhow::{Context as _, Result, bail};

use super::driver::{Driver, TrafficTopics};
use super::heartbeat::Heartbeat;
use super::progress::ProgressDisplay;
use super::traffic::Traffic;
use super::{SimulateOptions, Summary};
use crate::stream::kafka::producer::Producer;
use crate::stream::kafka::topics::create_topics;

/// Time that a record may wait to be batched. Throughput matters more here than latency.
const LINGER: Duration = Duration::from_millis(20);

/// Writes to the topics in wall time.
pub(super) fn to_kafka(
    options: &SimulateOptions,
    brokers: &str,
    traffic: Traffic,
    cancel: &AtomicBool,
) -> Result<Summary> {
    let TrafficTopics { served, clicks } = &options.topics;
    if options.create_topics {
        let topics = [served.as_str(), clicks];
        create_topics(brokers, &options.properties, &topics, options.partitions, -1)?;
    }
    let producer = Producer::connect(brokers, &options.properties, LINGER)?;
    check_topics(&producer, &options.topics)?;
    let mut progress = ProgressDisplay::new(traffic.settings().duration_ms, true);
    let driver = Driver::new(traffic, producer, options.topics.clone(), options.speed)
        .with_heartbeat(options.heartbeat.clone().map(Heartbeat::new));
    let summary = driver.run(cancel, |done_ms, summary| progress.show(done_ms, summary))?;
    progress.finish(&summary);
    Ok(summary)
}

/// Checks that both topics exist with the same number of partitions. Otherwise clicks could not find their lists.
fn check_topics(producer: &Producer, topics: &TrafficTopics) -> Result<()> {
    let count = |topic: &str| match producer.n_partitions(topic)? {
        Some(n) => Ok(n),
        None => bail!("topic {topic} does not exist: create it, or let --create-topics do so"),
    };
    let TrafficTopics { served, clicks } = topics;
    let (n_served, n_clicks) = (count(served)?, count(clicks)?);
    if n_served != n_clicks {
        bail!(
            "topic {served} has {} and {clicks} has {n_clicks}: a click would not be in the \
             partition of its list; give both the same number",
            number_of(n_served, "partition")
        );
    }
    Ok(())
}

/// Writes a file, or standard output if the path is `-`.
pub(super) fn to_file(path: &Path, traffic: Traffic, cancel: &AtomicBool) -> Result<Summary> {
    let to_stdout = path == Path::new("-");
    let start_ms = traffic.settings().start_ms;
    let total_ms = traffic.settings().duration_ms;
    // On a terminal, a progress bar would garble the lines.
    let mut progress = ProgressDisplay::new(total_ms, !(to_stdout && stdout().is_terminal()));
    let show = |arrival_ms, summary: &Summary| progress.show(arrival_ms - start_ms, summary);
    let summary = if to_stdout {
        write_lines(traffic, stdout().lock(), cancel, show).context("write to standard output")?
    } else {
        if total_ms.is_none() {
            bail!("an endless file would fill the disk: give --duration, or write to - (standard output)");
        }
        let context = || format!("write {}", path.display());
        let file = File::create(path).with_context(context)?;
        write_lines(traffic, file, cancel, show).with_context(context)?
    };
    progress.finish(&summary);
    Ok(summary)
}

/// Writes one record per line, in the order of arrival, until there are no more, `cancel` is set, or the reader of a pipe
/// closes it. `watch` is called now and then with the arrival time reached.
///
/// # Errors
/// The writer fails.
pub fn write_lines(
    mut traffic: Traffic,
    out: impl Write,
    cancel: &AtomicBool,
    mut watch: impl FnMut(i64, &Summary),
) -> std::io::Result<Summary> {
    const RECORDS_BETWEEN_LOOKS: u64 = 1024;
    let mut summary = Summary::default();
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let mut write_all = || {
        while let Some(record) = traffic.next_until(i64::MAX) {
            if summary.records() % RECORDS_BETWEEN_LOOKS == 0 {
                watch(record.arrival_ms, &summary);
            }
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            out.write_all(&record.payload)?;
            out.write_all(b"\n")?;
            summary.count(record.kind);
        }
        out.flush()
    };
    match write_all() {
        // A reader that has enough closes the pipe, which is not a failure.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(summary),
    }
}
