//! Reads the catalogue at startup, and again on its own thread whenever a reload is requested.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use abgauge_core::metrics::catalogue::Catalogue;
use anyhow::Context as _;
use tracing::{error, info};

use crate::settings::catalogue_file::{CatalogueFile, UnusableCatalogue};
use crate::telemetry::Telemetry;

/// Handle for requesting a reload of the catalogue.
pub struct Reloader {
    requests: SyncSender<()>,
    /// Path of the catalogue.
    path: Arc<Mutex<PathBuf>>,
}

struct CatalogueReader {
    file: CatalogueFile,
    path: Arc<Mutex<PathBuf>>,
    /// Last catalogue read. Its items keep their places in the next one.
    last: Arc<Catalogue>,
    telemetry: Arc<Telemetry>,
    catalogues: SyncSender<Arc<Catalogue>>,
}

impl Reloader {
    /// Reads the catalogue once and starts the thread that re-reads it. The receiver gets catalogues in the order in which
    /// they are to be used.
    ///
    /// # Errors
    /// [`UnusableCatalogue`] if the file cannot be used.
    pub fn start(
        file: CatalogueFile,
        telemetry: Arc<Telemetry>,
    ) -> anyhow::Result<(Reloader, Receiver<Arc<Catalogue>>)> {
        let first = Arc::new(file.read(None)?);
        telemetry.set_reload_fault(None);
        let (catalogues, taken) = sync_channel(1);
        catalogues
            .send(Arc::clone(&first))
            .context("hand the catalogue over")?;
        // One pending request covers all that arrive meanwhile.
        let (requests, asked) = sync_channel(1);
        let path = Arc::new(Mutex::new(file.path().to_owned()));
        let mut reader = CatalogueReader {
            file,
            path: Arc::clone(&path),
            last: first,
            telemetry,
            catalogues,
        };
        std::thread::Builder::new()
            .name("catalogue".into())
            .spawn(move || asked.iter().for_each(|()| reader.read_again()))
            .context("start the thread of the catalogue")?;
        Ok((Reloader { requests, path }, taken))
    }

    /// Requests a reload and returns immediately. If the file cannot be read, the last catalogue stays in use.
    pub fn ask(&self, path: &Path) {
        // Writing a path does not panic, so even a poisoned lock holds a whole path.
        let mut last = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        path.clone_into(&mut last);
        drop(last);
        // If the channel is full, a read is about to happen anyway. If it is closed, the thread has logged why it ended.
        let _ = self.requests.try_send(());
    }
}

impl CatalogueReader {
    fn read_again(&mut self) {
        info!("reloading the catalogue");
        let path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        self.file.move_to(&path);
        drop(path);
        match self.file.read(Some(&self.last)) {
            Ok(catalogue) => {
                self.last = Arc::new(catalogue);
                self.telemetry.set_reload_fault(None);
                // The receiver is gone once the daemon stops.
                let _ = self.catalogues.send(Arc::clone(&self.last));
            }
            Err(UnusableCatalogue { message, remedy }) => {
                error!(
                    "metrics.catalog: {message}; the previous catalogue stays in use: {remedy}, then send SIGHUP"
                );
                self.telemetry.set_reload_fault(Some(message));
            }
        }
    }
}
