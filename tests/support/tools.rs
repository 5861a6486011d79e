//! Files of the repository, temporary directories and free ports.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};

use tempfile::TempDir;

/// Returns the path of a file in the repository, such as `tests/data/lists-a.events.jsonl`.
pub fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Creates a directory below Cargo's target that is removed when dropped.
pub fn temporary_dir(prefix: &str) -> TempDir {
    tempfile::Builder::new()
        .prefix(&format!("{prefix}-"))
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .expect("a temporary directory under target")
}

/// Returns a port of 127.0.0.1 that nothing listens on.
///
/// The port is below the ephemeral range. So a restarted server finds its port still free, and no client that keeps retrying
/// connects to itself.
pub fn free_port() -> u16 {
    const FIRST: u16 = 10_000;
    const N_PORTS: u16 = 22_000;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Test binaries that run in parallel start far apart.
    let begin = (std::process::id().wrapping_mul(97) % u32::from(N_PORTS)) as u16;
    (0..N_PORTS)
        .map(|_| FIRST + (begin + TAKEN.fetch_add(1, Ordering::Relaxed) % N_PORTS) % N_PORTS)
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .expect("a free port")
}
