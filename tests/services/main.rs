//! The daemon beside real Kafka, Prometheus, Grafana's own rules, and other packages' programs.

mod bad_input;
mod check;
mod dashboards;
mod encodings;
mod kafka_security;
mod live;
mod packages;
mod real_input;
mod recorded_state;
mod rules;
mod stored_state;
#[path = "../support/mod.rs"]
mod support;
