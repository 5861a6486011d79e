//! `abgauge state forget`: deletes a namespace, unless an instance may still write there.

use std::collections::BTreeSet;
use std::process::ExitCode;

use abgauge_core::journal::{Breach, Namespace, NamespaceContents};
use abgauge_core::nouns::number_of;
use anyhow::Context as _;

use super::{OpenedTopic, time};
use crate::store::topic_reader::TopicReader;
use crate::stream::kafka::state_log::StateLog;
use crate::tools::cli::ForgetArgs;
use crate::tools::commands::{error, note, print, warn};

/// Time in ms within which a writer must have been silent, or it may write again.
const YOUNG_MS: i64 = 60_000;

pub fn forget(desk: &OpenedTopic, args: &ForgetArgs) -> anyhow::Result<ExitCode> {
    let namespace = args.namespace.unwrap_or(desk.own);
    let n = desk.n_partitions;
    if let Some(partition) = args.partition.filter(|partition| *partition >= n) {
        error(&format!(
            "there is no partition {partition}: the state topic has {n}, starting at 0"
        ));
        return Ok(ExitCode::FAILURE);
    }
    let partitions: BTreeSet<i32> = match args.partition {
        Some(partition) => [partition].into(),
        None => (0..n).collect(),
    };
    let mut reader = desk.read(namespace, &args.reading)?;
    let all_contents = all_contents(&reader, namespace, &partitions);
    if all_contents.is_empty() {
        note(&format!("namespace {namespace} has no stored state there"));
        return Ok(ExitCode::SUCCESS);
    }
    // Printed before any refusal, so that a run without `--yes` previews the deletion.
    print_losses(namespace, &all_contents)?;
    if !args.yes {
        error("nothing was deleted: to delete this, give --yes. Deleted state cannot be restored");
        return Ok(ExitCode::FAILURE);
    }
    if let Some(why) = possible_writer(desk, namespace, &all_contents) {
        if !args.force {
            error(&format!(
                "nothing was deleted: {why}, and would write its state again. Stop all instances, then wait a minute; or give --force"
            ));
            return Ok(ExitCode::FAILURE);
        }
        warn(&format!("{why}, and may write its state again"));
    }
    let forgotten = reader.forget(namespace, &partitions, args.reading.timeout);
    let forgotten = forgotten.context("delete the stored state")?;
    if !forgotten.written_again.is_empty() {
        error(&format!(
            "deleted {}, but another process has written to the partitions {:?} again: stop all instances, and repeat the command",
            number_of(forgotten.n_keys, "key"),
            forgotten.written_again
        ));
        return Ok(ExitCode::FAILURE);
    }
    note(&format!("deleted {}", number_of(forgotten.n_keys, "key")));
    Ok(ExitCode::SUCCESS)
}

fn all_contents<'a>(
    reader: &'a TopicReader<StateLog>,
    namespace: Namespace,
    partitions: &BTreeSet<i32>,
) -> Vec<(i32, &'a NamespaceContents)> {
    let all_contents = reader.contents(namespace);
    all_contents
        .filter(|(partition, of)| partitions.contains(partition) && !of.is_empty())
        .collect()
}

/// Prints what is about to be lost.
fn print_losses(namespace: Namespace, all_contents: &[(i32, &NamespaceContents)]) -> anyhow::Result<()> {
    let mut text = format!("namespace {namespace}\n");
    for (partition, namespace_contents) in all_contents {
        let end = namespace_contents.end();
        let seal = end.as_ref().and_then(|end| end.seal.as_ref()?.1.as_ref().ok());
        let of = seal.map_or_else(
            || "nothing is sealed".to_owned(),
            |seal| {
                let [begin, frontier] = [seal.header.begin_ms, seal.header.frontier_ms]
                    .map(|ms| ms.map_or_else(|| "the first record".to_owned(), time));
                format!("final from {begin} to {frontier}")
            },
        );
        text.push_str(&format!(
            "partition {partition}: {}, {of}\n",
            number_of(namespace_contents.keys().count(), "key")
        ));
        for breach in namespace_contents.breaches() {
            match breach {
                Breach::Newer(_) => warn(&format!(
                    "partition {partition}: {breach}, which is kept: delete it with that version"
                )),
                Breach::Malformed(_) => warn(&format!("partition {partition}: {breach}, which is kept")),
                _ => {}
            }
        }
    }
    print(&text)
}

/// Returns the reason why an instance may still write, if there is one.
fn possible_writer(
    desk: &OpenedTopic,
    namespace: Namespace,
    all_contents: &[(i32, &NamespaceContents)],
) -> Option<String> {
    // Only the configured group can be queried, because keys contain just the hash of a group.
    if namespace == desk.own {
        let group = &desk.config.kafka.group_id;
        match desk.survey.n_members() {
            Ok(0) => {}
            Ok(n) => {
                return Some(format!(
                    "the group `{group}` has members ({n}): a running instance owns the pair"
                ));
            }
            Err(failure) => warn(&format!(
                "cannot find out whether the group `{group}` has members: {}",
                failure.detail
            )),
        }
    }
    // An owner in another group, or one that the group does not know, still shows by its recent records.
    let written = all_contents
        .iter()
        .filter_map(|(_, namespace_contents)| namespace_contents.written_ms());
    let age_ms = desk.clock.now_ms() - written.max()?;
    (age_ms < YOUNG_MS).then(|| {
        format!(
            "something was written {} s ago: its owner may be running",
            // The clock of the brokers may be ahead of ours.
            (age_ms / 1_000).max(0)
        )
    })
}
