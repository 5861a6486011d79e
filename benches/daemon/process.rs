//! What the system says of a process: CPU time and resident memory.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::process::Child;

use crate::common::clock;

/// User and system time of all its threads, ended ones included, in ns.
pub fn cpu_ns(pid: u32) -> u64 {
    let mut clock = 0;
    // SAFETY: the system writes to a variable of ours; an id that is no process is an error code.
    let code = unsafe { libc::clock_getcpuclockid(pid.cast_signed(), &mut clock) };
    assert_eq!(
        code,
        0,
        "the CPU clock of process {pid}: {}",
        io::Error::from_raw_os_error(code)
    );
    clock::cpu_ns(clock)
}

/// Resident memory in bytes.
pub fn resident_bytes(pid: u32) -> u64 {
    status_bytes(pid, "VmRSS:")
}

/// The most that was ever resident, in bytes.
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

/// Waits for a process to end, which it must do with code 0. Returns the most that was ever resident, in bytes.
pub fn peak_bytes_of_ended(child: &Child) -> u64 {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the system fills variables of ours; zeros are valid.
    let (id, usage) = unsafe {
        let id = libc::wait4(child.id().cast_signed(), &mut status, 0, usage.as_mut_ptr());
        (id, usage.assume_init())
    };
    assert_eq!((id, status), (child.id().cast_signed(), 0), "a clean end");
    usage.ru_maxrss as u64 * 1024
}

/// What the system has noted of this thread (`libc::RUSAGE_THREAD`) or of all processes that were waited for
/// (`libc::RUSAGE_CHILDREN`).
pub fn usage(of: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the system fills a variable of ours, which is valid as zeros too.
    unsafe {
        assert_eq!(libc::getrusage(of, usage.as_mut_ptr()), 0);
        usage.assume_init()
    }
}

/// Ticks of 10 ms, over all processors, in which the host of this virtual machine ran something else. 0 where nobody tells.
pub fn stolen_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    // cpu user nice system idle iowait irq softirq steal …
    let steal = stat.split_whitespace().nth(8);
    steal.and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}
