//! The HTTP server against those who may not read it, and those who would keep others from it. The program as it is.

mod access;
mod flood;
mod health;
mod hosts;
mod plan;
mod slow;
mod tls;

#[path = "../support/program.rs"]
mod program;
#[path = "../support/mod.rs"]
mod support;

use support::daemon::Daemon;

/// A daemon whose brokers are not there: it answers nevertheless. These lines go under `[http]`.
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
