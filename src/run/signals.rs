//! Signals from the system. A listener catches signals from its creation on, so none ends the process before it is awaited.

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that a daemon listens for.
pub struct Signals {
    pub stop: StopSignal,
    pub reload: ReloadSignal,
}

impl Signals {
    /// Starts listening. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The system does not let us listen for signals.
    pub fn listen() -> anyhow::Result<Signals> {
        Ok(Signals {
            stop: StopSignal::listen()?,
            reload: ReloadSignal::listen()?,
        })
    }
}

/// SIGTERM or Ctrl-C.
pub struct StopSignal {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignal {
    /// Starts listening. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The system does not let us listen for signals.
    pub fn listen() -> anyhow::Result<StopSignal> {
        Ok(StopSignal {
            terminate: listen(SignalKind::terminate(), "SIGTERM")?,
            interrupt: listen(SignalKind::interrupt(), "SIGINT")?,
        })
    }

    /// Waits for either signal, including one that arrived earlier since `listen`.
    pub async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// SIGHUP, which asks a daemon to re-read its files.
pub struct ReloadSignal(Signal);

impl ReloadSignal {
    /// Starts listening. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The system does not let us listen for signals.
    pub fn listen() -> anyhow::Result<ReloadSignal> {
        listen(SignalKind::hangup(), "SIGHUP").map(ReloadSignal)
    }

    pub async fn received(&mut self) {
        self.0.recv().await;
    }
}

fn listen(kind: SignalKind, name: &str) -> anyhow::Result<Signal> {
    signal(kind).with_context(|| format!("listen for {name}"))
}
