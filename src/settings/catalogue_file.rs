//! File named by `metrics.catalog`: read at startup, by `abgauge check`, and again at SIGHUP.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use abgauge_core::decode::Decoder;
use abgauge_core::decode::catalogue;
use abgauge_core::metrics::catalogue::Catalogue;
use miette::Diagnostic;
use thiserror::Error;

use crate::settings::{Config, files};

pub struct CatalogueFile {
    path: PathBuf,
    decoder: Decoder,
}

/// Error: the file cannot be used. Worded like an error of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[error("metrics.catalog: {message}")]
#[diagnostic(help("{remedy}"))]
pub struct UnusableCatalogue {
    /// Message with the name of the file, and the line if the error is in one.
    pub message: String,
    /// Text to write instead.
    pub remedy: String,
}

impl CatalogueFile {
    /// Returns the file, if the configuration names one.
    pub fn of(config: &Config) -> Option<CatalogueFile> {
        Some(CatalogueFile {
            path: config.catalog.clone()?,
            decoder: config.join.decoder(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads from `path` from now on.
    pub fn move_to(&mut self, path: &Path) {
        path.clone_into(&mut self.path);
    }

    /// Reads the file. Items in `previous` keep their places.
    ///
    /// # Errors
    /// If the file cannot be opened, or a line is faulty.
    pub fn read(&self, previous: Option<&Catalogue>) -> Result<Catalogue, UnusableCatalogue> {
        let path = self.path.display();
        let file = files::open(&self.path).map_err(|error| UnusableCatalogue {
            message: format!("cannot open the file {path}: {error}"),
            remedy: "name an existing file that abgauge's user may read, or remove metrics.catalog"
                .to_owned(),
        })?;
        catalogue::read(BufReader::new(file), &self.decoder, previous).map_err(|error| UnusableCatalogue {
            message: format!("{path}, {error}"),
            remedy: format!(
                "fix line {} of the file: one item per line, each item once",
                error.line
            ),
        })
    }
}
