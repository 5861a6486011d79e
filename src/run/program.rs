//! Configuration of a running daemon, re-read on request.

use std::path::PathBuf;

use tracing::{error, info, warn};

use crate::logging::{Losses, ProcessLog};
use crate::settings::{self, Config, Loaded, SettingChanges};

/// Current configuration of the daemon and its origin.
pub struct ProgramSettings {
    /// Absent if settings come from the environment alone.
    path: Option<PathBuf>,
    loaded: Loaded,
    log: ProcessLog,
}

impl ProgramSettings {
    pub fn new(path: Option<PathBuf>, loaded: Loaded, log: ProcessLog) -> ProgramSettings {
        ProgramSettings { path, loaded, log }
    }

    /// Returns the current configuration.
    pub fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// Returns the counter of lost log lines.
    pub fn log_losses(&self) -> Losses {
        self.log.losses()
    }

    /// Re-reads the file and applies the changes that a running daemon can take over. Other changes are logged by name. A
    /// faulty file changes nothing.
    pub async fn read_again(&mut self) {
        let path = self.path.clone();
        let read = move || settings::load_with_origins(path.as_deref(), settings::environment());
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok(new)) => self.take_over(&new),
            Ok(Err(errors)) => {
                for line in errors.lines() {
                    error!("{line}");
                }
                error!("{errors}: the previous configuration stays in use; fix it, then send SIGHUP again");
            }
            Err(panic) => error!(%panic, "could not reload the configuration"),
        }
    }

    fn take_over(&mut self, new: &Loaded) {
        // Only warnings that the new file adds are logged.
        let before = self.config().warnings();
        let SettingChanges {
            taken_over,
            at_a_restart,
        } = self.loaded.take_over(new);
        if taken_over.is_empty() && at_a_restart.is_empty() {
            info!("reloaded the configuration: no setting has changed");
        }
        if !taken_over.is_empty() {
            let settings = taken_over.join(", ");
            info!(settings, "reloaded the configuration: applied the changes");
        }
        if !at_a_restart.is_empty() {
            let settings = at_a_restart.join(", ");
            warn!(
                settings,
                "reloaded the configuration: changes to these settings need a restart"
            );
        }
        for warning in new
            .config
            .warnings()
            .iter()
            .filter(|warning| !before.contains(warning))
        {
            warn!("{warning}");
        }
        if let Err(error) = self.log.set_filter(&self.config().log.filter) {
            error!("log.filter: {error:#}");
        }
    }
}
