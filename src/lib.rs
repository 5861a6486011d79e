//! abgauge: live ranking metrics of experiment arms, from Kafka to Prometheus.
//!
//! A daemon that runs next to production recommenders. It reads *served lists* and *clicks*, joins each click to the
//! list that it came from, keeps sliding windows per experiment arm, and exports hit ratio, CTR, MRR, NDCG and their
//! relatives as gauges.
//!
//! ```text
//! Kafka ─▶ kafka ─▶ ingest ─▶ engine ── live ───────▶ board ─▶ export ─▶ Prometheus, JSON, live page
//!          client    bytes →   events →  └▶ ledger ─┘ shared   view →
//!                    events    outcomes     │         map      text
//!                                           └─ users ─▶ looks ─┘
//!                                                       statistics
//!                 └──────── worker: the loop that carries them ──────────┘
//! ```
//!
//! - `kafka` is the one home of the Kafka client. Its callbacks become `Input`s, and `Order`s its calls; it decides nothing.
//! - [`ingest`] turns bytes into events, hashing ids as it reads (of users with a key), and audits the keys of records. Our
//!   own shape of events has a fast decoder; a [`Shape`](ingest::wire::shape::Shape) says where others have their fields.
//! - [`engine`] joins: pure, synchronous, without a clock, one engine for each *pair* of partitions (served p, clicks p). Time is an
//!   argument. All sums are integers, so no result depends on the order of arrival. Once a list is final, the engine reports
//!   it exactly once.
//! - [`ledger`] adds up settled lists: the settled numbers of a pair, a value that merges with others and has an encoding.
//!   An aggregate is what a settled list adds to; a new one does not touch the join.
//! - [`looks`] takes what the users of compared experiments add up to, cell by cell from all pairs, and looks at it at fixed event
//!   times, in order: what each look shows is a value.
//! - [`state`] says who may write the stored state of a pair, and what of it is believed: claims and seals in one log. It is a machine
//!   without I/O. `keeper` drives one for each pair, between the state topic (in `kafka`) and a worker. `stored` makes what is stored of
//!   a pair, and reads the whole topic for tools. `global` shows what is in force of all pairs, whoever holds them, on a board of its own,
//!   and hands it to [`looks`].
//! - [`statistics`] says what sums by user bucket mean: intervals, tests that hold under peeking, a decision for each arm. It takes
//!   plain numbers and knows no other module. [`verdict`] writes what is said of an arm as JSON,
//!   and of an experiment in a sentence.
//! - `worker` is a plain struct that takes inputs and gives orders; the loop around it, in `app`, decides nothing. Its pairs
//!   live in shards, which threads read in parallel if many records wait. Between two reads, one thread owns everything.
//! - `board` is the only shared mutable state: a map of arms, each with its windows by pair. A worker hands over the changes of
//!   a pair as one value, under one lock for each arm; a scrape sees whole deltas only.
//! - `export` shows `snapshot`s of the board: gauges, JSON, the page. `telemetry` is what the daemon says about itself. `webhook` tells
//!   whom the configuration names when the state of an arm changes; `https` is what it has in common with `plan --from`.
//! - [`evaluate`] feeds files to the same engine, on behalf of `commands`; `demo` runs all of it on `simulate`d traffic,
//!   an embedded broker and one simulated `clock`.
//! - `catalogue_count` counts users of items in a stream, for a catalogue; `convert` turns tables of a notebook into events.
//! - `config` is what the operator wrote, checked, and `catalogue_file` the file that it names; `check` what a cluster makes
//!   of it; `cli` the command line; only `app` knows all modules.
//!
//! A list counts in the *live* view as soon as it is read, and in the *settled* view once its attribution window has
//! closed: from then on it is final. The border is the frontier F of its pair. What is final can be stored ([`state`]), and is
//! then shown once it is; without that a start rebuilds its windows from the log.
//!
//! Deliberately absent: a wall clock in any decision about an event, floating point in any sum that is kept, strings in the
//! state of the join, a lock or an allocation for each event.
//!
//! # As a library
//!
//! Without the feature `daemon`, which is on by default, there remain [`engine`], [`ledger`], [`state`], [`statistics`], [`ingest::wire`] and
//! [`evaluate`]: the numbers, without Kafka, HTTP and librdkafka. Two lists and their clicks, in any order:
//!
//! ```
//! use abgauge::evaluate::{Evaluator, Options};
//!
//! let events = r#"
//! {"type":"served","request_id":"r-1","ts":1763596800000,"experiments":{"ranker":"neural"},"items":["a","b","c"]}
//! {"type":"served","request_id":"r-2","ts":1763596801000,"experiments":{"ranker":"neural"},"items":["d","e"]}
//! {"type":"click","request_id":"r-1","ts":1763596805000,"item":"b"}
//! {"type":"click","request_id":"r-2","ts":1763596806000,"item":"d"}
//! "#;
//! let mut evaluator = Evaluator::new(&Options::default());
//! evaluator.read("events", events.as_bytes())?;
//! let evaluation = evaluator.finish();
//! assert_eq!(evaluation.value("ranker", "neural", "hit_rate@1"), Some(0.5)); // r-2 alone
//! assert_eq!(evaluation.value("ranker", "neural", "mrr"), Some(0.75)); // (1/2 + 1) ÷ 2
//! assert_eq!(evaluation.value("ranker", "neural", "ctr"), Some(0.4)); // 2 of 5 items
//! # Ok::<(), anyhow::Error>(())
//! ```

mod bytes;
pub mod engine;
pub mod evaluate;
pub mod ingest;
pub mod ledger;
pub mod looks;
pub mod metrics_map;
pub mod state;
pub mod statistics;
pub mod table;
pub mod verdict;

#[cfg(feature = "daemon")]
pub mod app;
#[cfg(feature = "daemon")]
pub mod board;
#[cfg(feature = "daemon")]
pub mod bounds;
#[cfg(feature = "daemon")]
pub mod catalogue_count;
#[cfg(feature = "daemon")]
pub mod catalogue_file;
#[cfg(feature = "daemon")]
pub mod certificate;
#[cfg(feature = "daemon")]
pub mod check;
#[cfg(feature = "daemon")]
pub mod cli;
#[cfg(feature = "daemon")]
pub mod clock;
#[cfg(feature = "daemon")]
pub mod commands;
#[cfg(feature = "daemon")]
pub mod config;
#[cfg(feature = "daemon")]
pub mod convert;
#[cfg(feature = "daemon")]
pub mod demo;
#[cfg(feature = "daemon")]
pub mod export;
#[cfg(feature = "daemon")]
pub mod global;
#[cfg(feature = "daemon")]
pub mod health;
#[cfg(feature = "daemon")]
mod https;
#[cfg(feature = "daemon")]
pub mod kafka;
#[cfg(feature = "daemon")]
pub mod keeper;
#[cfg(feature = "daemon")]
pub mod logging;
#[cfg(feature = "daemon")]
pub mod simulate;
#[cfg(feature = "daemon")]
pub mod snapshot;
#[cfg(feature = "daemon")]
pub mod stored;
#[cfg(feature = "daemon")]
pub mod telemetry;
#[cfg(feature = "daemon")]
pub mod webhook;
#[cfg(feature = "daemon")]
pub mod worker;
