//! The HTTP server of the actual program against clients without access, and against clients that try to block others.

mod access;
mod flood;
mod health;
mod hosts;
mod plan;
mod slow;
mod tls;

use crate::support::daemon::Daemon;

/// Starts a daemon without reachable brokers, which answers all the same. These lines go below `[http]`.
fn daemon(http: &str) -> Daemon {
    let mut daemon = Daemon::run(&config(http));
    daemon.wait_until("abgauge to listen", |daemon| {
        daemon.log().contains("listening on").then_some(())
    });
    daemon
}

fn config(http: &str) -> String {
    format!("[kafka]\nbrokers = \"127.0.0.1:1\"\n[http]\n{http}")
}
