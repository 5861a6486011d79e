//! abgauge: live ranking metrics of experiment arms, from Kafka to Prometheus.
//!
//! The daemon runs next to production recommenders. It reads *served lists* and *clicks*, joins each click to its list, keeps
//! sliding windows per experiment arm, and exports hit ratio, CTR, MRR, NDCG and related metrics as gauges. The join, the metrics
//! and the statistics are in the crate [`abgauge_core`]; this crate connects them to Kafka, to stored state and to HTTP.
//!
//! ```text
//! main ─▶ run ─▶ tools ─▶ serve ─▶ stream ─▶ store ─▶ board ─▶ settings ─▶ core
//! ```
//!
//! A module may use the modules to its right, and never those to its left. `clock`, `telemetry` and `logging` are open to all.
//! `https`, with TLS trust and secrets for our outgoing requests, uses only the settings.
//!
//! - [`settings`] is the checked configuration, with the files that it names.
//! - [`board`] is the only shared mutable state: a map of arms, each with its windows by pair. A worker hands over the changes of
//!   a pair as one value, under one lock per arm, so a scrape sees only whole deltas. A `snapshot` copies it for exporters.
//! - [`store`] keeps settled numbers beyond the life of a process. `keeper` follows the state topic: it holds one view of each
//!   partition, and runs a state machine over it if the pair is assigned here. `publications` passes states on as they become
//!   current. `global` shows all pairs, whichever instance owns them, and passes their states to looks. `stored` encodes the
//!   state of a pair, and reads the whole topic for tools.
//! - [`stream`] carries records from Kafka to pairs. Only `kafka` contains the client: callbacks become `Input`s, `Order`s
//!   become calls, and it makes no decisions. `worker` is a plain struct that takes inputs and returns orders. Its pairs are in
//!   shards, which threads read in parallel if many records are waiting. Between two reads, one thread owns everything.
//! - [`serve`] shows snapshots of the board: gauges, JSON, the page. `webhook` reports changes in the state of an arm.
//! - [`tools`] has the command line and the other commands: `check`, `evaluate`, `plan`, `simulate`, `state` and so on.
//! - [`run`] wires everything together. Its `demo` runs the whole system on simulated traffic, with an embedded broker and one
//!   simulated clock.
//!
//! A list counts in the *live* view as soon as it is read. It counts in the *settled* view once its attribution window has
//! closed, and is final from then on. The border between the two is the frontier F of its pair. With stored state, final data
//! is shown only once it is stored. Without it, abgauge rebuilds its windows from the log when it starts.
//!
//! Deliberately absent: a wall clock in decisions about events, floating point in stored sums, strings in the state of the
//! join, and locks or allocations per event.

pub mod board;
pub mod clock;
mod https;
pub mod logging;
pub mod run;
pub mod serve;
pub mod settings;
pub mod store;
pub mod stream;
pub mod telemetry;
pub mod tools;
