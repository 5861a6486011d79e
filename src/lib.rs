//! abgauge: live ranking metrics of experiment arms, from Kafka to Prometheus.
//!
//! The daemon runs next to production recommenders. It reads *served lists* and *clicks*, joins each click to its list, keeps
//! sliding windows per experiment arm, and exports hit ratio, CTR, MRR, NDCG and related metrics as gauges.
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
//! - `kafka` contains the Kafka client and nothing else does. Its callbacks become `Input`s, `Order`s become its calls, and it
//!   makes no decisions.
//! - [`ingest`] turns bytes into events. It hashes ids while reading (ids of users with a key) and audits the keys of records.
//!   abgauge's own shape of events has a fast decoder; a [`Shape`](ingest::wire::shape::Shape) describes other shapes.
//! - [`engine`] is the join: pure, synchronous, without a clock, one engine for each *pair* of partitions (served p, clicks p).
//!   Time is an argument. All sums are integers, so no result depends on the order of arrival. Once a list is final, the engine
//!   reports it exactly once.
//! - [`ledger`] adds up settled lists. It holds the settled numbers of a pair as a value that can be merged and encoded. Each
//!   aggregate is one kind of sum over settled lists, and a new one does not touch the join.
//! - [`looks`] collects the sums of users in compared experiments, cell by cell from all pairs, and analyzes them at fixed event
//!   times, in order. The result of each look is a value.
//! - [`state`] decides who may write the stored state of a pair and which state is valid, with claims and seals in a single log.
//!   It is a state machine without I/O. `keeper` runs one for each pair, between the state topic (in `kafka`) and a worker.
//!   `stored` encodes the state of a pair, and reads the whole topic for tools. `global` shows the state in force of all pairs,
//!   whichever instance owns them, on a separate board, and passes it to [`looks`].
//! - [`statistics`] interprets sums by user bucket: intervals, tests that stay valid under repeated looks, a decision for each
//!   arm. It takes plain numbers and depends on no other module. [`verdict`] formats the results of an arm as JSON and of an
//!   experiment as a sentence.
//! - `worker` is a plain struct that takes inputs and returns orders. The loop around it, in `app`, makes no decisions. Its
//!   pairs are in shards, which threads read in parallel if many records wait. Between two reads, one thread owns everything.
//! - `board` is the only shared mutable state: a map of arms, each with its windows by pair. A worker hands over the changes of
//!   a pair as one value, under one lock per arm, so a scrape sees only whole deltas.
//! - `export` shows `snapshot`s of the board: gauges, JSON, the page. `telemetry` has numbers about the daemon itself.
//!   `webhook` reports changes in the state of an arm; `https` is the part it shares with `plan --from`.
//! - [`evaluate`] feeds files to the same engine, on behalf of `commands`. `demo` runs the whole system on `simulate`d traffic,
//!   with an embedded broker and one simulated `clock`.
//! - `catalogue_count` counts the users of items in a stream, for a catalogue. `convert` turns tables from notebooks into events.
//! - `config` is the checked configuration, and `catalogue_file` the file it names. `check` compares it with a cluster. `cli` is
//!   the command line. Only `app` depends on all modules.
//!
//! A list counts in the *live* view as soon as it is read. It counts in the *settled* view once its attribution window has
//! closed, and is final from then on. The border between the two is the frontier F of its pair. Final data can be stored
//! ([`state`]), and is then shown only once it is stored. Without stored state, a start rebuilds its windows from the log.
//!
//! Deliberately absent: a wall clock in decisions about events, floating point in stored sums, strings in the state of the
//! join, and locks or allocations per event.
//!
//! # As a library
//!
//! Without the default feature `daemon`, the crate offers [`engine`], [`ledger`], [`state`], [`statistics`],
//! [`ingest::wire`] and [`evaluate`]: the numbers, without Kafka, HTTP or librdkafka. Two lists and their clicks, in any order:
//!
//! ```
//! use abgauge_core::evaluate::{Evaluator, Options};
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

pub mod board;
pub mod clock;
pub mod logging;
pub mod run;
pub mod serve;
pub mod settings;
pub mod store;
pub mod stream;
pub mod telemetry;
pub mod tools;
