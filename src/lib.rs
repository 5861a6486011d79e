//! abgauge: live ranking metrics of experiment arms, from Kafka to Prometheus.

pub mod app;
pub mod board;
pub mod cli;
pub mod clock;
pub mod config;
pub mod demo;
pub mod engine;
pub mod evaluate;
pub mod export;
pub mod ingest;
pub mod kafka;
pub mod logging;
pub mod simulate;
pub mod snapshot;
pub mod table;
pub mod telemetry;
pub mod worker;
