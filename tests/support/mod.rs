//! Real services for integration tests, which stop when dropped.
//!
//! | module | content |
//! |---|---|
//! | [`kafka`] | Apache Kafka, one process; [`producer`], [`topics`] and [`acls`] act on it, [`proxy`] cuts the network to it, [`gate`] holds back single requests, [`log_files`] damages its logs |
//! | [`prometheus`] | Prometheus scraping given addresses; `promtool`; [`promql`] parses expressions, [`grafana`] dashboards |
//! | [`registry`] | a real schema registry; [`front`] puts faults before it, [`clients`] write records by it |
//! | [`daemon`] | the `abgauge` binary with its log captured; [`busy`] has one that computes every metric under traffic, [`crowd`] one with ten thousand arms, [`trickle`] one whose events are sent one by one |
//! | [`browser`] | a script of `tests/browser` in headless Chromium |
//! | [`certificates`], [`https`] | the test's own authority, and a client that trusts it |
//! | [`http`], [`exposition`] | an HTTP client, and a strict parser of `/metrics` |
//! | [`process`], [`brought`], [`tools`], [`wait`] | the foundation: child processes, paths of programs, files and ports, bounded waiting |
//!
//! `tests/run --setup-only` downloads the programs. Code that starts one exists only with the feature `real-services`, so a
//! suite that does not require the feature cannot use one by accident: it would not compile. Every wait polls a condition up
//! to a deadline, in [`wait`].

#![allow(dead_code, reason = "each test binary uses its own part of the support")]

#[cfg(feature = "real-services")]
pub mod acls;
#[cfg(feature = "real-services")]
pub mod brought;
#[cfg(feature = "real-services")]
pub mod browser;
#[cfg(feature = "real-services")]
pub mod busy;
pub mod certificates;
#[cfg(feature = "real-services")]
pub mod clients;
#[cfg(feature = "real-services")]
pub mod crowd;
pub mod daemon;
pub mod exposition;
#[cfg(feature = "real-services")]
pub mod front;
pub mod gate;
pub mod grafana;
pub mod http;
pub mod https;
#[cfg(feature = "real-services")]
pub mod kafka;
#[cfg(feature = "real-services")]
pub mod log_files;
pub mod looked;
pub mod process;
#[cfg(feature = "real-services")]
pub mod producer;
pub mod program;
#[cfg(feature = "real-services")]
pub mod prometheus;
pub mod promql;
pub mod proxy;
#[cfg(feature = "real-services")]
pub mod registry;
pub mod tools;
#[cfg(feature = "real-services")]
pub mod topics;
#[cfg(feature = "real-services")]
pub mod trickle;
pub mod wait;
