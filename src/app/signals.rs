//! What the system asks of a running program. Listening begins with the value, so that no signal ends us before.

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// All that a daemon listens for.
pub struct Signals {
    pub stop: StopSignal,
    pub reload: ReloadSignal,
}

impl Signals {
    /// To be called inside a tokio runtime.
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
    /// To be called inside a tokio runtime.
    ///
    /// # Errors
    /// The system does not let us listen for signals.
    pub fn listen() -> anyhow::Result<StopSignal> {
        Ok(StopSignal {
            terminate: listen(SignalKind::terminate(), "SIGTERM")?,
            interrupt: listen(SignalKind::interrupt(), "SIGINT")?,
        })
    }

    /// Waits for either; also where it came since we listen.
    pub async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// SIGHUP, by which a daemon is asked to read its files again.
pub struct ReloadSignal(Signal);

impl ReloadSignal {
    /// To be called inside a tokio runtime.
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
