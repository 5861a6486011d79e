//! Every kind of bad record is counted by its reason and disturbs nothing, within bounds of memory. Real Kafka.

mod bounds;
mod feed;
mod kinds;
mod shared_ids;
mod spellings;
mod topics;

#[path = "../support/mod.rs"]
mod support;
