//! Files that settings name: opened without waiting, and refused where they are none.
//!
//! They are read again, when they change or at SIGHUP. A pipe can be read once only, and to open one without a writer would
//! wait for ever.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

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

/// Why what is there is no file that can be read again; none of a file.
pub(crate) fn why_no_file(found: &Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("it is a directory"),
        () if kind.is_fifo() => {
            Some("it is a pipe, which cannot be read again: write what it gives to a file")
        }
        () => Some("it is a device or a socket, and no file"),
    }
}
