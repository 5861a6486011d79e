//! Assignors of the new group protocol (KIP-848): whether each member gets the same partitions of both topics.

use std::collections::BTreeSet;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};

use crate::support::kafka::Kafka;
use crate::support::wait::{self, PATIENCE};

const N_PARTITIONS: i32 = 5;

/// Partitions of one member, in the first and in the second topic.
type Owned = [BTreeSet<i32>; 2];

/// Lets two members share two topics, and returns what each of them owns once no partition is left without an owner.
fn shared_out(assignor: Option<&str>) -> [Owned; 2] {
    let kafka = Kafka::shared();
    let topics = ["first", "second"].map(|stem| kafka.new_topic(stem, N_PARTITIONS));
    let group = kafka.unique("group");
    let members = [(); 2].map(|()| {
        let mut config = ClientConfig::new();
        // The settings of abgauge's own client, apart from those of the classic protocol.
        config
            .set("bootstrap.servers", kafka.brokers())
            .set("group.id", &group)
            .set("group.protocol", "consumer")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("check.crcs", "true")
            .set("isolation.level", "read_committed");
        if let Some(assignor) = assignor {
            config.set("group.remote.assignor", assignor);
        }
        let member: BaseConsumer = config.create().expect("librdkafka accepts these settings");
        member
            .subscribe(&[&topics[0], &topics[1]])
            .expect("it subscribes");
        member
    });
    wait::until(
        "every partition to have its owner, and both members some",
        PATIENCE,
        || {
            let owned = members.each_ref().map(|member| {
                // Polling serves the rebalances. The topics are empty, so it returns errors at most: no position is committed.
                drop(member.poll(Duration::from_millis(10)));
                let assigned = member.assignment().expect("it has an assignment");
                topics.each_ref().map(|topic| {
                    let of_topic = assigned.elements_for_topic(topic);
                    of_topic.iter().map(|element| element.partition()).collect()
                })
            });
            is_shared_out(&owned).then_some(owned)
        },
    )
}

fn is_shared_out([one, other]: &[Owned; 2]) -> bool {
    let n = |owned: &Owned| owned[0].len() + owned[1].len();
    let is_whole = |topic: usize| {
        one[topic].union(&other[topic]).count() == N_PARTITIONS as usize
            && one[topic].is_disjoint(&other[topic])
    };
    n(one) > 0 && n(other) > 0 && is_whole(0) && is_whole(1)
}

#[test]
fn the_range_assignor_gives_each_member_the_same_partitions_of_both_topics() {
    for [first, second] in shared_out(Some("range")) {
        assert_eq!(first, second);
    }
}

/// With a click in one member and its list in the other, no click would ever match.
#[test]
fn the_default_assignor_gives_each_member_a_whole_topic() {
    let all: BTreeSet<i32> = (0..N_PARTITIONS).collect();
    for owned in shared_out(None) {
        assert!(
            owned.contains(&all) && owned.contains(&BTreeSet::new()),
            "{owned:?}"
        );
    }
}
