//! CPU time and resident memory of a process, as reported by the system.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::process::Child;

use crate::common::clock;

/// Returns user and system time of all its threads in ns, including ended ones.
pub fn cpu_ns(pid: u32) -> u64 {
    let mut clock = 0;
    // SAFETY: the system writes to a local variable. An invalid process ID yields an error code.
    let code = unsafe { libc::clock_getcpuclockid(pid.cast_signed(), &mut clock) };
    assert_eq!(
        code,
        0,
        "the CPU clock of process {pid}: {}",
        io::Error::from_raw_os_error(code)
    );
    clock::cpu_ns(clock)
}

/// Returns the resident memory in bytes.
pub fn resident_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmRSS:")
}

/// Returns the peak resident memory in bytes.
pub fn peak_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmHWM:")
}

fn status_bytes(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("read /proc");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB"));
    kib.and_then(|kib| kib.trim().parse::<u64>().ok())
        .expect("a process has its memory in kB")
        * 1024
}

/// Waits for a process to end with code 0. Returns its peak resident memory in bytes.
pub fn peak_bytes_of_ended(child: &Child) -> u64 {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the system fills local variables, for which zeros are valid.
    let (id, usage) = unsafe {
        let id = libc::wait4(child.id().cast_signed(), &mut status, 0, usage.as_mut_ptr());
        (id, usage.assume_init())
    };
    assert_eq!((id, status), (child.id().cast_signed(), 0), "a clean end");
    usage.ru_maxrss as u64 * 1024
}

/// Returns the resource usage of this thread (`libc::RUSAGE_THREAD`) or of all processes that were waited for
/// (`libc::RUSAGE_CHILDREN`).
pub fn usage(of: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the system fills a local variable, for which zeros are valid.
    unsafe {
        assert_eq!(libc::getrusage(of, usage.as_mut_ptr()), 0);
        usage.assume_init()
    }
}

/// Returns the ticks of 10 ms, over all processors, in which the host of this virtual machine ran something else. 0 if
/// unknown.
pub fn stolen_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    // Fields: cpu user nice system idle iowait irq softirq steal …
    let steal = stat.split_whitespace().nth(8);
    steal.and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}
