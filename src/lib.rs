//! abgauge: live ranking metrics of experiment arms, from Kafka to Prometheus.

pub mod clock;
pub mod config;
pub mod engine;
pub mod export;
pub mod snapshot;
pub mod telemetry;
