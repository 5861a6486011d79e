//! Faults around the daemon: brokers away, topics missing, rights refused, partitions taken, signals. Real Kafka.

mod broker_gone;
mod cut_off;
mod dead_letters;
mod group;
mod keys;
mod lost_offset;
mod start;
mod steady;
mod stop;
mod traffic;

#[path = "../support/mod.rs"]
mod support;
