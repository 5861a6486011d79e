//! `abgauge state show`: prints namespaces and pairs as a table or as JSON.

use std::collections::BTreeSet;
use std::process::ExitCode;

use abgauge_core::journal::{Namespace, NamespaceContents, Seal, Weight};
use abgauge_core::metrics::{CLICKS, LISTS};
use abgauge_core::table::{self, align_numbers, visible};
use serde::Serialize;

use super::{OpenedTopic, time};
use crate::store::stored::DecodedState;
use crate::store::topic_reader::TopicReader;
use crate::stream::kafka::state_log::StateLog;
use crate::tools::cli::{ShowArgs, TableOrJson};
use crate::tools::commands::print;

/// Content of the whole topic.
#[derive(Serialize)]
struct TopicContents {
    topic: String,
    partitions: i32,
    namespaces: Vec<ShownNamespace>,
}

#[derive(Serialize)]
struct ShownNamespace {
    namespace: String,
    /// Set if it is the configuration's namespace.
    ours: bool,
    /// Group from a claim, because keys contain only its hash.
    group: Option<String>,
    /// Set if the group is the configuration's.
    of_our_group: bool,
    /// Counting rules in words.
    fingerprint: Option<String>,
    pairs: Vec<ShownPair>,
}

#[derive(Serialize)]
struct ShownPair {
    partition: i32,
    claim: Option<ShownClaim>,
    seal: Option<ShownSeal>,
    live_bytes: u64,
    garbage_bytes: u64,
    /// Time of the pair's last record in the log.
    written: Option<String>,
    /// Reason why the seal or its ledger cannot be read.
    unreadable: Option<String>,
}

#[derive(Serialize)]
struct ShownClaim {
    session: String,
    instance: Option<String>,
    version: Option<String>,
}

#[derive(Serialize)]
struct ShownSeal {
    id: String,
    /// Set if no claim is higher. Otherwise an owner is about to resume from this seal.
    in_force: bool,
    content: String,
    begin: Option<String>,
    frontier: Option<String>,
    caught_up: bool,
    exact: bool,
    topics: Vec<ShownTopic>,
    arms: Option<usize>,
    /// Settled lists, summed over arms. A list counts once in each of its experiments.
    lists: Option<i128>,
    clicks: Option<i128>,
}

#[derive(Serialize)]
struct ShownTopic {
    topic: String,
    read_position: i64,
    resume_offset: i64,
}

pub fn show(desk: &OpenedTopic, args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let reader = desk.read(desk.own, &args.reading)?;
    let found = reader
        .partitions()
        .flat_map(|(_, inventory)| inventory.namespaces());
    let mut namespaces: BTreeSet<Namespace> = found.collect();
    namespaces.retain(|found| args.namespace.is_none_or(|asked| asked == *found));
    let namespaces = namespaces
        .iter()
        .map(|namespace| of_namespace(desk, *namespace, &reader));
    let mut shown = TopicContents {
        topic: desk.topic.clone(),
        partitions: desk.n_partitions,
        namespaces: namespaces.collect(),
    };
    // The sort is stable: our own namespace comes first, the others keep their order.
    shown.namespaces.sort_by_key(|namespace| !namespace.ours);
    print(&match args.format {
        TableOrJson::Table => text(&shown),
        TableOrJson::Json => format!("{}\n", serde_json::to_string(&shown)?),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn of_namespace(desk: &OpenedTopic, namespace: Namespace, reader: &TopicReader<StateLog>) -> ShownNamespace {
    let all_contents: Vec<(i32, &NamespaceContents)> = reader
        .contents(namespace)
        .filter(|(_, namespace_contents)| !namespace_contents.is_empty())
        .collect();
    let names = names(desk, namespace, &all_contents);
    let (group, fingerprint) = names.unzip();
    ShownNamespace {
        namespace: namespace.to_string(),
        ours: namespace == desk.own,
        of_our_group: group.as_ref() == Some(&desk.config.kafka.group_id),
        group,
        fingerprint,
        pairs: all_contents
            .iter()
            .map(|(number, namespace_contents)| pair(desk, *number, namespace_contents))
            .collect(),
    }
}

/// Returns the group and fingerprint behind a namespace's hash, if a record contains them. A claim contains both, a seal the
/// fingerprint.
fn names(
    desk: &OpenedTopic,
    namespace: Namespace,
    all_contents: &[(i32, &NamespaceContents)],
) -> Option<(String, String)> {
    let own_group = &desk.config.kafka.group_id;
    let all_contents = all_contents
        .iter()
        .map(|(_, namespace_contents)| *namespace_contents);
    let claims = all_contents
        .clone()
        .filter_map(|namespace_contents| namespace_contents.claim()?.1.as_ref().ok());
    let of_claims = claims.map(|claim| (claim.group.clone(), claim.fingerprint.clone()));
    let seals = all_contents.filter_map(seal);
    let of_seals = seals.map(|(_, seal, _)| (own_group.clone(), seal.header.identity.fingerprint.clone()));
    // Seals do not contain the group, so the configured one is tried. A candidate is right if it hashes to the namespace.
    let own = (own_group.clone(), desk.config.fingerprint());
    let mut names = of_claims.chain(of_seals).chain([own]);
    names.find(|(group, fingerprint)| Namespace::of(fingerprint, group) == namespace)
}

/// Returns the highest seal if it can be read, and whether it is in force.
fn seal(namespace_contents: &NamespaceContents) -> Option<(String, std::sync::Arc<Seal>, bool)> {
    let end = namespace_contents.end()?;
    let in_force = end.current().is_some();
    let (id, seal) = end.seal?;
    Some((id.to_string(), seal.ok()?, in_force))
}

fn pair(desk: &OpenedTopic, partition: i32, namespace_contents: &NamespaceContents) -> ShownPair {
    let claim = namespace_contents.claim().map(|(session, claim)| {
        let claim = claim.as_ref().ok();
        let word = |word: &str| (!word.is_empty()).then(|| word.to_owned());
        ShownClaim {
            session: session.to_string(),
            instance: claim.and_then(|claim| word(&claim.instance)),
            version: claim.and_then(|claim| word(&claim.version)),
        }
    });
    let Weight { live, garbage, .. } = namespace_contents.weight();
    let mut unreadable = None;
    let found = namespace_contents.end().and_then(|end| end.seal);
    if let Some((_, Err(error))) = &found {
        unreadable = Some(error.to_string());
    }
    let seal = seal(namespace_contents).map(|(id, seal, in_force)| {
        let contents = contents(desk, namespace_contents, &seal);
        // A seal can be intact although its contents are not.
        unreadable = contents.as_ref().err().cloned();
        of_seal(id, &seal, in_force, contents.ok().as_ref())
    });
    ShownPair {
        partition,
        claim,
        seal,
        live_bytes: live,
        garbage_bytes: garbage,
        written: namespace_contents.written_ms().map(time),
        unreadable,
    }
}

fn contents(
    desk: &OpenedTopic,
    namespace_contents: &NamespaceContents,
    seal: &Seal,
) -> Result<DecodedState, String> {
    let roles = namespace_contents
        .roles(seal)
        .map_err(|damage| damage.to_string())?;
    DecodedState::read(&seal.header, &roles, &desk.config).map_err(|unusable| unusable.to_string())
}

fn of_seal(id: String, seal: &Seal, in_force: bool, contents: Option<&DecodedState>) -> ShownSeal {
    let header = &seal.header;
    let topics = header.identity.topics.iter().zip(&header.reaches);
    let sum = |column: usize| {
        let arms = contents?.ledger.total().sums.values();
        Some(arms.map(|sums| sums[column]).sum())
    };
    ShownSeal {
        id,
        in_force,
        content: format!("{:032x}", seal.content),
        begin: header.begin_ms.map(time),
        frontier: header.frontier_ms.map(time),
        caught_up: header.was_caught_up,
        exact: header.is_exact,
        topics: topics
            .map(|(topic, reach)| ShownTopic {
                topic: topic.name.clone(),
                read_position: reach.read_position,
                resume_offset: reach.resume_offset,
            })
            .collect(),
        arms: contents.map(|contents| contents.ledger.arms().len()),
        lists: sum(LISTS),
        clicks: sum(CLICKS),
    }
}

fn text(shown: &TopicContents) -> String {
    let mut text = format!(
        "state topic {}, partitions: {}, namespaces: {}\n",
        shown.topic,
        shown.partitions,
        shown.namespaces.len()
    );
    for namespace in &shown.namespaces {
        let whose = match (namespace.ours, namespace.of_our_group) {
            (true, _) => "namespace of the configuration",
            (false, true) => "same group, other rules",
            (false, false) => "of another group",
        };
        let reported = |name: &Option<String>| name.as_deref().map_or("not known".to_owned(), visible);
        text.push_str(&format!(
            "\nnamespace {}: {whose}\ngroup: {}\ncounted by: {}\n\n{}\n",
            namespace.namespace,
            reported(&namespace.group),
            reported(&namespace.fingerprint),
            pairs(&namespace.pairs)
        ));
        for pair in &namespace.pairs {
            if let Some(why) = &pair.unreadable {
                text.push_str(&format!("partition {} cannot be read: {why}\n", pair.partition));
            }
        }
    }
    text
}

/// Formats two tables: owner and content of each pair, and its progress in each topic.
fn pairs(pairs: &[ShownPair]) -> String {
    let mut of_pairs = table::new();
    of_pairs.set_header([
        "partition",
        "claim",
        "instance",
        "version",
        "seal",
        "begin",
        "frontier",
        "exact",
        "live bytes",
        "garbage",
        "arms",
        "lists",
        "clicks",
    ]);
    let mut of_topics = table::new();
    of_topics.set_header(["partition", "topic", "read up to", "read again from"]);
    let or = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    for pair in pairs {
        let claim = pair.claim.as_ref();
        let seal = pair.seal.as_ref();
        let number = |number: Option<i128>| or(number.map(|number| number.to_string()));
        of_pairs.add_row([
            pair.partition.to_string(),
            or(claim.map(|claim| claim.session.clone())),
            or(claim.and_then(|claim| claim.instance.as_deref().map(visible))),
            or(claim.and_then(|claim| claim.version.as_deref().map(visible))),
            or(seal.map(|seal| match seal.in_force {
                true => seal.id.clone(),
                false => format!("{} (a claim waits)", seal.id),
            })),
            or(seal.and_then(|seal| seal.begin.clone())),
            or(seal.and_then(|seal| seal.frontier.clone())),
            or(seal.map(|seal| if seal.exact { "yes" } else { "no" }.to_owned())),
            pair.live_bytes.to_string(),
            pair.garbage_bytes.to_string(),
            number(seal.and_then(|seal| seal.arms).map(|n| n as i128)),
            number(seal.and_then(|seal| seal.lists)),
            number(seal.and_then(|seal| seal.clicks)),
        ]);
        for topic in seal.iter().flat_map(|seal| &seal.topics) {
            of_topics.add_row([
                pair.partition.to_string(),
                visible(&topic.topic),
                topic.read_position.to_string(),
                topic.resume_offset.to_string(),
            ]);
        }
    }
    align_numbers(&mut of_pairs, 8);
    align_numbers(&mut of_topics, 2);
    let lines = of_pairs.lines().chain([String::new()]).chain(of_topics.lines());
    lines.map(|line| format!("{}\n", line.trim_end())).collect()
}
