//! Files that settings of `[http]` name, read whole within a bound.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use miette::Diagnostic;
use thiserror::Error;

/// Why a file of `[http]` cannot be used, in the words of an error of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[error("{setting}: {message}")]
#[diagnostic(help("{remedy}"))]
pub struct Unusable {
    /// Such as `http.tls_key`.
    pub setting: &'static str,
    /// Names the file, and the line where it is one; never what stands there.
    pub message: String,
    /// What to do instead.
    pub remedy: String,
}

/// Chains of certificates take some kilobytes, a thousand hashes a hundred.
const MAX_BYTES: u64 = 1 << 20;

/// The content of the file at `path`, which `setting` names.
pub(super) fn read(setting: &'static str, path: &Path) -> Result<Vec<u8>, Unusable> {
    bytes(path).map_err(|error| Unusable {
        setting,
        message: format!("cannot read the file {}: {error}", path.display()),
        remedy: "name a file that exists and that abgauge's user may read, or leave the setting out"
            .to_owned(),
    })
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(bytes)
}
