//! Partitions owned by the members of our group, according to the brokers.

use std::collections::BTreeSet;
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::stream::GroupState;

/// Reads the state of a group. `topics` are the topics whose owned partitions are counted.
///
/// # Errors
/// If the brokers do not answer, or refuse to answer.
pub(super) fn state<C: ClientContext + ConsumerContext>(
    client: &BaseConsumer<C>,
    group_id: &str,
    topics: [&str; 2],
    deadline: Duration,
) -> Result<GroupState, KafkaError> {
    let list = client.fetch_group_list(Some(group_id), deadline)?;
    let group = list.groups().iter().find(|group| group.name() == group_id);
    let group = group.ok_or(KafkaError::GroupListFetch(RDKafkaErrorCode::GroupIdNotFound))?;
    let owned: BTreeSet<(String, i32)> = group
        .members()
        .iter()
        .filter_map(|member| owned(member.assignment()?))
        .flatten()
        .collect();
    let n_owned = |topic: &str| owned.iter().filter(|(name, _)| name == topic).count() as i32;
    Ok(GroupState {
        is_stable: group.state() == "Stable",
        n_owned: topics.map(n_owned),
    })
}

/// Decodes topics and partitions from the assignment of a member, or returns `None` if it is not in the format of Kafka's own
/// clients.
///
/// ```text
/// version i16 │ n i32 │ n × ( length i16, name │ m i32 │ m × partition i32 ) │ user data
/// ```
fn owned(mut assignment: &[u8]) -> Option<Vec<(String, i32)>> {
    let rest = &mut assignment;
    // The version is not needed: all versions begin alike.
    take(rest, 2)?;
    let mut owned = Vec::new();
    for _ in 0..number(rest)? {
        let length = i16::from_be_bytes(take(rest, 2)?.try_into().ok()?);
        let name = take(rest, usize::try_from(length).ok()?)?;
        let name = String::from_utf8_lossy(name).into_owned();
        for _ in 0..number(rest)? {
            owned.push((name.clone(), number(rest)?));
        }
    }
    Some(owned)
}

fn number(rest: &mut &[u8]) -> Option<i32> {
    Some(i32::from_be_bytes(take(rest, 4)?.try_into().ok()?))
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(n)?;
    *rest = left;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 3, `served` with partitions 0 and 7, and no user data.
    const SERVED: &[u8] = b"\0\x03\0\0\0\x01\0\x06served\0\0\0\x02\0\0\0\0\0\0\0\x07\xff\xff\xff\xff";

    #[test]
    fn an_assignment_lists_topics_and_partitions() {
        let served = |partition| ("served".to_owned(), partition);
        assert_eq!(owned(SERVED), Some(vec![served(0), served(7)]));
        assert_eq!(owned(b"\0\0\0\0\0\0"), Some(vec![]));
    }

    #[test]
    fn a_truncated_assignment_is_unreadable() {
        for n in 0..26 {
            assert_eq!(owned(&SERVED[..n]), None, "{n} bytes");
        }
        assert_eq!(owned(b"\0\0\x7f\xff\xff\xff"), None);
    }
}
