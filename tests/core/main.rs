//! The join, metrics, state machine and statistics against independent models, on simulated time.

#[path = "../../benches/statistics/checks/mod.rs"]
mod checks;
mod conventions;
mod decoding;
mod houses;
mod keeper;
mod metrics_twin;
mod must_hold;
mod oracle;
mod partitioners;
mod sources;
mod state;
mod statistics;
#[path = "../support/mod.rs"]
mod support;
mod twin;
