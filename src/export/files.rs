//! Files that settings of `[http]` name, read whole within a bound.

use std::path::Path;

use miette::Diagnostic;
use thiserror::Error;

use crate::config::files;

/// Why a file of `[http]` cannot be used, in the words of an error of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[error("{setting}: {message}")]
#[diagnostic(help("{remedy}"))]
pub struct UnusableFile {
    /// Such as `http.tls_key`.
    pub setting: &'static str,
    /// Names the file, and the line where it is one; never what stands there.
    pub message: String,
    /// What to do instead.
    pub remedy: String,
}

/// The content of the file at `path`, which `setting` names.
pub(super) fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, UnusableFile> {
    files::read(path).map_err(|error| UnusableFile {
        setting,
        message: format!("cannot read the file {}: {error}", path.display()),
        remedy: "name a file that exists and that abgauge's user may read, or leave the setting out"
            .to_owned(),
    })
}
