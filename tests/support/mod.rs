//! Starts the real things that integration tests talk to, and stops them when dropped.
//!
//! | module | what it starts or does |
//! |---|---|
//! | [`kafka`] | Apache Kafka, one process; [`producer`], [`topics`], [`acls`] act on it, [`proxy`] cuts the way to it, [`gate`] keeps single requests, [`log_files`] damages what it keeps |
//! | [`prometheus`] | Prometheus scraping given addresses; `promtool`; [`promql`] reads expressions, [`grafana`] dashboards |
//! | [`daemon`] | the `abgauge` binary with its log captured; [`busy`] has one that measures everything under traffic, [`crowd`] one with ten thousand arms, [`trickle`] one whose events come one by one |
//! | [`browser`] | a script of `tests/browser` in headless Chromium |
//! | [`certificates`], [`https`] | an authority of the test's own, and a client that trusts it |
//! | [`http`], [`exposition`] | a client, and a strict reader of what `/metrics` answers |
//! | [`process`], [`brought`], [`tools`], [`wait`] | what they stand on: child processes, where programs lie, files and ports, bounded waiting |
//!
//! `tests/run --setup-only` brings the programs. What starts one exists with the feature `real-services` only, so a suite
//! that does not require that feature cannot come to need one unnoticed: it would not compile without it. Nothing here waits for luck:
//! every wait polls a condition up to a deadline, in [`wait`].

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
pub mod crowd;
pub mod daemon;
pub mod exposition;
pub mod gate;
pub mod grafana;
pub mod http;
pub mod https;
#[cfg(feature = "real-services")]
pub mod kafka;
#[cfg(feature = "real-services")]
pub mod log_files;
pub mod process;
#[cfg(feature = "real-services")]
pub mod producer;
#[cfg(feature = "real-services")]
pub mod prometheus;
pub mod promql;
pub mod proxy;
pub mod tools;
#[cfg(feature = "real-services")]
pub mod topics;
#[cfg(feature = "real-services")]
pub mod trickle;
pub mod wait;
