//! What storing state costs a record.

use crate::common::stream::Shape;
use crate::figure::Figure;
use crate::load::{self, N_PARTITIONS, Topics};
use crate::reading::{self, By, Reader};
use crate::support::kafka::Kafka;
use crate::throughput::SPAN_MS;

const SETTINGS: [(&str, &str); 3] = [
    ("cleanup.policy", "compact"),
    ("max.message.bytes", "1048576"),
    ("message.timestamp.type", "LogAppendTime"),
];

/// CPU per record of daemons that store their state each second or not at all, by turns, over the same topics.
pub fn run(kafka: &Kafka, n_lists: u64, n_rounds: usize) -> Vec<Figure> {
    let topics = Topics::holding_of(kafka, &load::stream(n_lists, SPAN_MS), &Shape::default());
    let state = kafka.unique("state");
    kafka.create_topic(&state, N_PARTITIONS, &SETTINGS);
    let daemon = |name: &str, config: &str| Reader {
        name: name.to_owned(),
        by: By::Daemon(&topics, config.to_owned()),
    };
    let on = format!("[state]\ntopic = \"{state}\"\ninterval = \"1s\"\n");
    let readers = [daemon("off", ""), daemon("on", &on), daemon("off again", "")];
    let rounds = reading::rounds(kafka, n_rounds, &readers);
    let ratio = rounds.ratio(1, 0);
    topics.delete(kafka);
    vec![
        Figure::beside("state off: CPU µs per record", format!("{:.3}", rounds.cpu_us(0))),
        Figure::beside("A/A: off ÷ itself", rounds.ratio(2, 0)),
        Figure::at_most("CPU per record, state on ÷ off", ratio.median, 1.05, ratio),
    ]
}
