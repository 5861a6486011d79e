//! Files named by settings. They must be regular files and are opened without blocking. Only the configuration itself may be a
//! pipe.
//!
//! The files are read again when they change or at SIGHUP. A pipe can be read only once, and opening one without a writer would
//! block forever.

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

/// Error: a file named by a setting cannot be used. Worded like an error of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Error, Diagnostic)]
#[error("{setting}: {message}")]
#[diagnostic(help("{remedy}"))]
pub struct UnusableFile {
    /// Setting, such as `http.tls_key`.
    pub setting: &'static str,
    /// Message with the name of the file, and the line if it is about one. It never quotes the content.
    pub message: String,
    /// Text to write instead.
    pub remedy: String,
}

/// Reads the file at `path`, which `setting` names.
///
/// # Errors
/// Same as [`read`].
pub(crate) fn read_for(setting: &'static str, path: &Path) -> Result<Vec<u8>, UnusableFile> {
    read(path).map_err(|error| UnusableFile {
        setting,
        message: format!("cannot read the file {}: {error}", path.display()),
        remedy: "name an existing file that abgauge's user may read, or remove the setting".to_owned(),
    })
}

/// Opens the file at `path`, or the file it links to.
///
/// # Errors
/// If it cannot be opened, or is not a regular file: a pipe, a directory, a device.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        // Opening a pipe without a writer would block forever. With this flag it succeeds, and the pipe is refused below.
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    // The open file is checked, because the path may lead to another one by now.
    match why_no_file(&file.metadata()?) {
        None => Ok(file),
        Some(why) => Err(io::Error::other(why)),
    }
}

/// Reads the file at `path`.
///
/// # Errors
/// If it cannot be opened or read, is not a regular file, or is larger than 1 MiB.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    /// Size limit. A secret is short, certificate chains take some kilobytes, and a thousand hashes a hundred kilobytes.
    const MAX_BYTES: u64 = 1 << 20;
    let mut bytes = Vec::new();
    // One byte more than allowed is enough to detect a larger file, even an endless one.
    open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(io::Error::other("it is larger than 1 MiB")),
        false => Ok(bytes),
    }
}

/// Reads the text of a configuration. It may come from a pipe, such as the shell's `<(command)`. Waiting for the writer is
/// logged after a second.
///
/// # Errors
/// If it cannot be opened or read, is not UTF-8, or is larger than 16 MiB, as an endless device is.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    const MAX_BYTES: u64 = 16 << 20;
    let is_pipe = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    // Dropped when this function returns, which cancels the message.
    let _told = is_pipe.then(|| report_after(Duration::from_secs(1), path));
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(io::Error::other("it is larger than 16 MiB")),
        false => Ok(text),
    }
}

/// Logs that a pipe has no writer yet, unless the returned sender is dropped before `patience` is over.
fn report_after(patience: Duration, pipe: &Path) -> mpsc::Sender<()> {
    let (sender, dropped) = mpsc::channel();
    let message = format!("waiting for a writer of the pipe {}", pipe.display());
    thread::spawn(move || {
        // The sender was dropped, so the wait is over.
        if dropped.recv_timeout(patience) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        // The configuration is usually read before the log is started.
        match tracing::dispatcher::has_been_set() {
            true => tracing::warn!("{message}"),
            false => logging::say(message),
        }
    });
    sender
}

/// Returns why something is not a file that can be read again, or `None` for a regular file.
pub(crate) fn why_no_file(found: &Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("it is a directory"),
        () if kind.is_fifo() => Some("it is a pipe, which cannot be read again: write its output to a file"),
        () => Some("it is a device or a socket, not a regular file"),
    }
}
