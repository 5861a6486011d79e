//! abgauge: live ranking metrics of experiment arms, from Kafka to Prometheus.

pub mod board;
pub mod clock;
pub mod config;
pub mod engine;
pub mod ingest;
pub mod kafka;
pub mod simulate;
pub mod snapshot;
pub mod telemetry;
pub mod worker;
