//! Lists that arrive as one record per shown item, through real Kafka.

use serde_json::json;

use crate::support::daemon::Daemon;
use crate::support::kafka::Kafka;
use crate::support::producer::Producer;
use crate::traffic::{now_ms, scrape};

const N_LISTS: u32 = 40;

/// Sends one record per shown item, in another order than their positions, and a click on the item of rank 2. Lists alternate
/// between two arms and two partitions.
fn send(producer: &Producer, topics: [&str; 2], number: u32) {
    let id = format!("list-{number}");
    let (arm, partition) = (["a", "b"][number as usize % 2], Some(number as i32 / 2 % 2));
    let ts_ms = now_ms();
    let send = |topic: &str, event: serde_json::Value| {
        let event = event.to_string();
        producer.produce(
            topic,
            partition,
            Some(id.as_bytes()),
            Some(event.as_bytes()),
            None,
        );
    };
    for position in [3, 1, 2] {
        send(
            topics[0],
            json!({
                "request_id": id, "ts": ts_ms + i64::from(position), "experiments": {"e": arm}, "position": position,
                "item": format!("item-{position}"),
            }),
        );
    }
    send(
        topics[1],
        json!({"request_id": id, "ts": ts_ms + 10, "item": "item-2"}),
    );
}

#[test]
fn single_item_records_count_as_lists_even_after_a_kill() {
    let kafka = Kafka::shared();
    let (served, clicks) = (kafka.new_topic("served", 2), kafka.new_topic("clicks", 2));
    let producer = kafka.producer();
    let mut daemon = Daemon::run(&format!(
        "[kafka]
brokers = \"{}\"
served_topic = \"{served}\"
clicks_topic = \"{clicks}\"
group_id = \"{}\"
properties = {{ \"session.timeout.ms\" = 6000, \"heartbeat.interval.ms\" = 500 }}
[join]
attribution = \"10s\"
lateness = \"2s\"
max_future = \"1s\"
idle_after = \"1s\"
slot = \"1s\"
[events.served]
items = \"item\"
position = \"position\"
gather = \"1s\"
",
        kafka.brokers(),
        kafka.unique("group"),
    ));
    daemon.wait_until_ready();
    for n_lists in [N_LISTS / 2, N_LISTS] {
        for number in n_lists - N_LISTS / 2..n_lists {
            send(&producer, [&served, &clicks], number);
        }
        producer.flush();
        daemon.wait_until(&format!("{n_lists} lists with a hit at rank 2"), |daemon| {
            let scrape = scrape(daemon)?;
            let in_arm = |name: &str, arm: &str, more: &[(&str, &str)]| {
                let labels = [("arm", arm), ("window", "total"), ("view", "live")];
                scrape.value(name, &[&labels[..], more].concat())
            };
            for arm in ["a", "b"] {
                let is_counted = in_arm("abgauge_lists", arm, &[])? == f64::from(n_lists / 2)
                    && in_arm("abgauge_clicks", arm, &[])? == f64::from(n_lists / 2)
                    && in_arm("abgauge_hit_ratio", arm, &[("k", "5")])? == 1.0
                    && in_arm("abgauge_mrr", arm, &[("k", "5")])? == 0.5;
                is_counted.then_some(())?;
            }
            Some(())
        });
        daemon.kill();
        daemon.start_again();
    }
}
