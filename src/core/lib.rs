//! The numbers of abgauge, without Kafka and HTTP: decoding, the join, metrics, settled numbers, statistics.
//!
//! Time is an argument here. No code in this crate reads a clock, starts a runtime or logs, and it has no dependency for any of
//! these. [`evaluate`] is the only module that reads files.
//!
//! ```text
//! evaluate ─▶ looks ─▶ verdict ─▶ statistics
//!    │          └────▶ ledger ──▶ engine ─▶ metrics
//!    └─▶ decode ───────────────────▲          journal
//! ```
//!
//! - [`decode`] turns bytes into events. It hashes ids while reading (user ids with a key). A [`Shape`](decode::shape::Shape)
//!   describes events that are not in abgauge's own shape. Our own shape and most others have a fast decoder.
//! - [`engine`] is the join: pure and synchronous, one engine for each *pair* of partitions (served p, clicks p). All sums are
//!   integers, so no result depends on the order of arrival. Once a list is final, the engine reports it exactly once.
//! - [`metrics`] has one file for each ranking metric, with its formula, its source and a case worked by hand.
//! - [`ledger`] adds up settled lists. It holds the settled numbers of a pair as a value that can be merged and encoded. Each
//!   aggregate is one kind of sum over settled lists, and a new one does not touch the join.
//! - [`journal`] decides who may write the stored state of a pair and which state is valid, with claims and seals in a single
//!   log. It is a state machine without I/O.
//! - [`looks`] collects the sums of users in compared experiments, cell by cell from all pairs, and analyzes them at fixed event
//!   times, in order. The result of each look is a value.
//! - [`statistics`] interprets sums by user bucket: intervals, tests that stay valid under repeated looks, a decision for each
//!   arm. It takes plain numbers and depends on no other module except [`nouns`] and [`rounding`]. [`verdict`] formats the results of
//!   an arm as JSON and of an experiment as a sentence.
//! - [`evaluate`] feeds files to the same engine.
//!
//! Two lists and their clicks, in any order:
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

pub mod bytes;
pub mod decode;
pub mod engine;
pub mod evaluate;
pub mod journal;
pub mod ledger;
pub mod looks;
pub mod metrics;
pub mod nouns;
#[cfg(feature = "parquet")]
pub mod parquet_file;
pub mod rounding;
pub mod statistics;
pub mod table;
pub mod verdict;
