//! Every kind of bad record is counted by its reason and has no other effect, within memory bounds. Real Kafka.

mod bounds;
mod feed;
mod kinds;
mod shared_ids;
mod spellings;
mod topics;
