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
//! | [`process`], [`tools`], [`wait`] | what they stand on: child processes, where programs lie, bounded waiting |
//!
//! `tests/run --setup-only` brings the programs. Nothing here waits for luck: every wait polls a condition up to
//! a deadline, in [`wait`].

#![allow(dead_code, reason = "each test binary uses its own part of the support")]

pub mod acls;
pub mod browser;
pub mod busy;
pub mod certificates;
pub mod crowd;
pub mod daemon;
pub mod exposition;
pub mod gate;
pub mod grafana;
pub mod http;
pub mod https;
pub mod kafka;
pub mod log_files;
pub mod process;
pub mod producer;
pub mod prometheus;
pub mod promql;
pub mod proxy;
pub mod tools;
pub mod topics;
pub mod trickle;
pub mod wait;
