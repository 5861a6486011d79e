//! Reads the catalogue at the start, and again on a thread of its own whenever that is asked for.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use tracing::{error, info};

use crate::catalogue_file::{CatalogueFile, UnusableCatalogue};
use crate::engine::catalogue::Catalogue;
use crate::telemetry::Telemetry;

/// Asks for the catalogue to be read again.
pub struct Reloader {
    requests: SyncSender<()>,
    /// Where it is to be read.
    path: Arc<Mutex<PathBuf>>,
}

struct CatalogueReader {
    file: CatalogueFile,
    path: Arc<Mutex<PathBuf>>,
    /// The last one read: its items keep their places in the next one.
    last: Arc<Catalogue>,
    telemetry: Arc<Telemetry>,
    catalogues: SyncSender<Arc<Catalogue>>,
}

impl Reloader {
    /// Reads the catalogue once, and starts the thread that will read it again. Catalogues come in the order in which
    /// they are to be used.
    ///
    /// # Errors
    /// [`UnusableCatalogue`], where the file is.
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
        // A request that waits stands for those that come meanwhile.
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

    /// Returns at once; a catalogue that cannot be read leaves the last one in use.
    pub fn ask(&self, path: &Path) {
        // No panic can come between: only a path is written there.
        let mut last = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        path.clone_into(&mut last);
        drop(last);
        // Full: it is about to be read anyway. Closed: the thread has said why it ended.
        let _ = self.requests.try_send(());
    }
}

impl CatalogueReader {
    fn read_again(&mut self) {
        info!("reading the catalogue again");
        let path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        self.file.move_to(&path);
        drop(path);
        match self.file.read(Some(&self.last)) {
            Ok(catalogue) => {
                self.last = Arc::new(catalogue);
                self.telemetry.set_reload_fault(None);
                // It has no receiver once the daemon stops.
                let _ = self.catalogues.send(Arc::clone(&self.last));
            }
            Err(UnusableCatalogue { message, remedy }) => {
                error!(
                    "metrics.catalog: {message}; the catalogue before stays in use: {remedy}, then send SIGHUP"
                );
                self.telemetry.set_reload_fault(Some(message));
            }
        }
    }
}
