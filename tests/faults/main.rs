//! Faults around the daemon with real Kafka: unavailable brokers, missing topics, denied rights, revoked partitions, signals.

mod assignors;
mod broker_gone;
mod chaos;
mod copies;
mod cut_off;
mod damaged_batch;
mod dead_letters;
mod gathered;
mod group;
mod keys;
mod looks;
mod lost_offset;
mod readers;
mod start;
mod static_member;
mod steady;
mod stop;
mod stored;
mod time;
mod traffic;

#[path = "../support/mod.rs"]
mod support;
