//! Files that settings name: opened without waiting, and refused where they are none. The configuration itself may be a pipe.
//!
//! They are read again, when they change or at SIGHUP. A pipe can be read once only, and to open one without a writer would
//! wait for ever.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use miette::Diagnostic;
use rustix::fs::OFlags;
use thiserror::Error;

use crate::logging;

/// Why a file that a setting names cannot be used, in the words of an error of the configuration.
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
///
/// # Errors
/// As [`read`].
pub(crate) fn read_for(setting: &'static str, path: &Path) -> Result<Vec<u8>, UnusableFile> {
    read(path).map_err(|error| UnusableFile {
        setting,
        message: format!("cannot read the file {}: {error}", path.display()),
        remedy: "name a file that exists and that abgauge's user may read, or leave the setting out"
            .to_owned(),
    })
}

/// The file at `path`, or the one that it links to.
///
/// # Errors
/// It cannot be opened, or is no file: a pipe, a directory, a device.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    match why_no_file(&file.metadata()?) {
        None => Ok(file),
        Some(why) => Err(io::Error::other(why)),
    }
}

/// The content of the file at `path`.
///
/// # Errors
/// It cannot be opened or read, is no file, or is larger than 1 MiB.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    /// A secret is short, chains of certificates take some kilobytes, a thousand hashes a hundred.
    const MAX_BYTES: u64 = 1 << 20;
    let mut bytes = Vec::new();
    open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(io::Error::other("it is larger than 1 MiB")),
        false => Ok(bytes),
    }
}

/// The text of a configuration. From a pipe too, such as a shell makes of `<(command)`; to wait for its writer is said after a
/// second.
///
/// # Errors
/// It cannot be opened or read, is not UTF-8, or is larger than 16 MiB, as a device without end is.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    const MAX_BYTES: u64 = 16 << 20;
    let is_pipe = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    let _told = is_pipe.then(|| tell_after(Duration::from_secs(1), path));
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(io::Error::other("it is larger than 16 MiB")),
        false => Ok(text),
    }
}

/// Says that the writer of a pipe is waited for, unless what this returns is dropped before.
fn tell_after(patience: Duration, pipe: &Path) -> mpsc::Sender<()> {
    let (sender, dropped) = mpsc::channel();
    let message = format!("waiting for a writer of the pipe {}", pipe.display());
    thread::spawn(move || {
        if dropped.recv_timeout(patience) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        match tracing::dispatcher::has_been_set() {
            true => tracing::warn!("{message}"),
            false => logging::say(message),
        }
    });
    sender
}

/// Why what is there is no file that can be read again; none of a file.
pub(crate) fn why_no_file(found: &Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("it is a directory"),
        () if kind.is_fifo() => Some("it is a pipe, which cannot be read again: write its output to a file"),
        () => Some("it is a device or a socket, not a regular file"),
    }
}
