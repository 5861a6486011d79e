//! CPU clocks.

use std::io;

/// Returns the CPU time of the calling thread in ns.
pub fn thread_cpu_ns() -> u64 {
    cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Reads a clock of this process in ns.
pub fn cpu_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the system writes to a local variable.
    let code = unsafe { libc::clock_gettime(clock, &mut time) };
    assert_eq!(code, 0, "read a CPU clock: {}", io::Error::last_os_error());
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
