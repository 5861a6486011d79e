//! Records whose schema is not known yet: their pair waits, loses nothing, and others go on.

use abgauge_core::decode::framing::{Format, SchemaId};

use super::*;
use crate::stream::schemas::{Known, SchemaFile};

const SCHEMA: &str = r#"{"type":"record","name":"List","fields":[
    {"name":"request_id","type":"string"},
    {"name":"ts","type":"long"},
    {"name":"items","type":{"type":"array","items":"string"}},
    {"name":"experiments","type":{"type":"map","values":"string"}}]}"#;

/// Returns a list in arm `a`, in Confluent's framing.
fn framed(schema: u32, id: &str, ts_ms: i64) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend(schema.to_be_bytes());
    text(&mut bytes, id);
    long(&mut bytes, ts_ms);
    long(&mut bytes, 1);
    text(&mut bytes, "x");
    long(&mut bytes, 0);
    long(&mut bytes, 1);
    text(&mut bytes, "ranker");
    text(&mut bytes, "a");
    long(&mut bytes, 0);
    bytes
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    long(bytes, text.len() as i64);
    bytes.extend(text.as_bytes());
}

fn long(bytes: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

impl Stage {
    fn of_avro(n_partitions: i32) -> Stage {
        Stage::of_avro_to(n_partitions, [0, 0])
    }

    /// Returns a stage whose logs have these ends at the start.
    fn of_avro_to(n_partitions: i32, ends: [i64; 2]) -> Stage {
        let partitions: Vec<i32> = (0..n_partitions).collect();
        let mut stage = Stage::with(&[
            ("EVENTS__SERVED__FORMAT", "avro"),
            ("REGISTRY__URL", "http://registry.example"),
        ]);
        stage.own(&partitions, ends);
        stage
    }

    fn avro(&mut self, partition: i32, offset: i64, schema: u32) {
        self.push(Owned {
            side: Side::Served,
            partition,
            offset,
            timestamp_ms: T0,
            payload: framed(schema, &format!("r-{partition}-{offset}"), T0),
        });
    }

    fn learn(&self, id: u32) {
        let file = SchemaFile::parse(Format::Avro, SCHEMA, &[]).expect("a schema");
        let known = Known::Usable(Arc::new(file));
        self.schemas.arrived(SchemaId::Id(id), known, SCHEMA.len());
    }

    /// A tenth of a second passes.
    fn tick(&mut self) {
        self.now_ms += 100;
        self.hand.advance_to(self.now_ms);
        self.uptime += Duration::from_millis(100);
        self.round();
    }

    fn n_assigned(&self) -> usize {
        let is_assignment = |order: &&Order| matches!(order, Order::Assign(_));
        self.orders.iter().filter(is_assignment).count()
    }

    fn n_lists(&mut self) -> i128 {
        self.pass(500);
        self.total(View::Live).0
    }
}

#[test]
fn a_pair_waits_for_a_schema_and_loses_nothing() {
    let mut stage = Stage::of_avro(2);
    stage.learn(1);
    for (partition, offset, schema) in [(0, 0, 1), (0, 1, 2), (0, 2, 1), (1, 0, 1), (1, 1, 1)] {
        stage.avro(partition, offset, schema);
    }
    stage.worker.read();
    // The list before the unknown schema counts, and so does the other partition.
    assert_eq!(stage.n_lists(), 3);
    // A late delivery does not pass the record that waits.
    stage.avro(0, 3, 1);
    stage.worker.read();
    assert_eq!(stage.n_lists(), 3);
    assert_eq!(stage.schemas.problem(SchemaId::Id(2)), None);

    stage.pass(2_000);
    let warnings = stage.telemetry.warnings();
    let waits = warnings
        .iter()
        .find(|warning| warning.message.contains("is held"));
    let message = &waits.expect("it is reported").message;
    assert!(
        message.starts_with(
            "partition 0 of topic `served` is held: the record at offset 1 was written with schema 2"
        ),
        "{message}"
    );
    // Nothing more is fetched from the pair.
    let others: Vec<i32> = stage.assigned_offsets().iter().map(|((_, it), _)| *it).collect();
    assert_eq!(others, [1, 1]);

    stage.learn(2);
    stage.pass(500);
    assert!(
        stage.assigned_offsets().contains(&(SERVED, 1)),
        "{:?}",
        stage.assigned_offsets()
    );
    for (offset, schema) in [(1, 2), (2, 1), (3, 1)] {
        stage.avro(0, offset, schema);
    }
    stage.worker.read();
    assert_eq!(stage.n_lists(), 6);
    assert_eq!(stage.telemetry.warnings(), []);
}

#[test]
fn a_wait_of_a_moment_is_not_reported() {
    let mut stage = Stage::of_avro(1);
    stage.avro(0, 0, 7);
    stage.worker.read();
    stage.pass(500);
    assert_eq!(stage.telemetry.warnings(), []);
    stage.learn(7);
    stage.pass(500);
    assert!(stage.assigned_offsets().contains(&(SERVED, 0)));
    stage.avro(0, 0, 7);
    stage.worker.read();
    assert_eq!(stage.n_lists(), 1);
}

#[test]
fn a_start_that_waits_for_a_schema_is_never_ready() {
    let mut stage = Stage::of_avro_to(1, [2, 0]);
    stage.avro(0, 0, 7);
    stage.worker.read();
    stage.pass(500);
    let catching_up = ["catching up in partition 0: 2 records to read"];
    assert_eq!(stage.telemetry.waiting_for(), catching_up);
    stage.pass(1_500);
    let waiting_for = stage.telemetry.waiting_for();
    assert_eq!(waiting_for.len(), 1, "{waiting_for:?}");
    assert!(waiting_for[0].contains("is held: "), "{waiting_for:?}");
}

/// Each assignment interrupts the fetching of all partitions, and a thousand of them may become late one after the other.
#[test]
fn assignments_for_late_schemas_are_paced() {
    let mut stage = Stage::of_avro(2);
    let held_at = |stage: &mut Stage, partition: i32| {
        stage.avro(partition, 0, 7);
        stage.worker.read();
        stage.tick();
    };
    held_at(&mut stage, 0);
    held_at(&mut stage, 1);
    let before = stage.n_assigned();
    let mut assigned = Vec::new();
    while assigned.last() != Some(&(before + 2)) {
        stage.tick();
        assigned.push(stage.n_assigned());
        assert!(assigned.len() < 30, "{assigned:?}");
    }
    // The second one is late a tick after the first, and follows two ticks after it.
    assert_eq!(
        assigned[assigned.len() - 3..],
        [before + 1, before + 1, before + 2]
    );
    assert_eq!(stage.assigned_offsets(), []);
}

#[test]
fn records_of_a_denied_schema_are_invalid_and_the_next_ones_count() {
    let mut stage = Stage::of_avro(1);
    stage.learn(1);
    stage.avro(0, 0, 9);
    stage.avro(0, 1, 1);
    stage.worker.read();
    assert_eq!(stage.n_lists(), 0);
    stage.schemas.arrived(
        SchemaId::Id(9),
        Known::Unusable {
            until: None,
            fault: String::new(),
        },
        0,
    );
    stage.pass(500);
    stage.avro(0, 0, 9);
    stage.avro(0, 1, 1);
    stage.worker.read();
    assert_eq!(stage.n_lists(), 1);
    let mut text = Vec::new();
    stage.telemetry.render(&mut text).expect("it renders");
    let text = String::from_utf8(text).expect("UTF-8");
    let series = "abgauge_invalid_records_total{reason=\"unknown_schema\",topic=\"served\"} 1";
    assert!(text.contains(series), "{text}");
}
