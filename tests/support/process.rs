//! Child processes that do not outlive the test, with their output in a file.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use super::wait;

/// A running or ended child in its own process group. Killed when dropped. If the test is failing then, the end of its log is
/// printed.
pub struct Process {
    name: String,
    child: Child,
    ended: Option<ExitStatus>,
    log: PathBuf,
}

impl Process {
    /// Starts the command with both outputs appended to the file `log`.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Process {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .expect("open the log file");
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("share the log file"))
            .stderr(file)
            .process_group(0);
        let shown = format!("{command:?}");
        let child = spawn(command).unwrap_or_else(|error| panic!("start {name} ({shown}): {error}"));
        Process {
            name: name.to_owned(),
            child,
            ended: None,
            log: log.to_owned(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal such as `libc::SIGTERM` or `libc::SIGSTOP` to the process, not to its group.
    pub fn signal(&self, signal: libc::c_int) {
        assert!(self.ended.is_none(), "{} has ended already", self.name);
        // SAFETY: no memory is involved. The child has not been reaped, so the process ID is still its own.
        let sent = unsafe { libc::kill(self.pid().cast_signed(), signal) };
        assert_eq!(
            sent,
            0,
            "signal {signal} to {}: {}",
            self.name,
            io::Error::last_os_error()
        );
    }

    /// Returns the exit status, or `None` while the process runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("ask after a child");
        }
        self.ended
    }

    /// Waits for the end and returns the exit code, or `None` if a signal ended the process.
    #[track_caller]
    pub fn wait_exit(&mut self, deadline: Duration) -> Option<i32> {
        let what = format!("{} to end", self.name);
        wait::until(&what, deadline, || self.ended()).code()
    }

    /// Polls `probe` while the process lives, and returns its first value.
    ///
    /// # Panics
    /// At the deadline, or as soon as the process ends.
    #[track_caller]
    pub fn wait_until<T>(
        &mut self,
        what: &str,
        deadline: Duration,
        mut probe: impl FnMut() -> Option<T>,
    ) -> T {
        wait::until(what, deadline, || {
            let found = probe();
            if let (None, Some(status)) = (&found, self.ended()) {
                panic!("{} ended ({status}) while the test waited for {what}", self.name);
            }
            found
        })
    }

    /// Kills the whole process group at once, as a power cut would.
    pub fn kill(&mut self) {
        if self.ended().is_some() {
            return;
        }
        // SAFETY: no memory is involved. The child has not been reaped, so the group ID is still its own.
        unsafe { libc::kill(-self.pid().cast_signed(), libc::SIGKILL) };
        self.ended = self.child.wait().ok();
    }

    /// Returns both outputs so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Returns the path of the log file.
    pub fn log_path(&self) -> PathBuf {
        self.log.clone()
    }

    fn print_log_tail(&self) {
        const N_LINES: usize = 60;
        let log = self.log();
        let n_skipped = log.lines().count().saturating_sub(N_LINES);
        eprintln!(
            "--- {}: the end of its log ({n_skipped} lines before) ---",
            self.name
        );
        log.lines().skip(n_skipped).for_each(|line| eprintln!("{line}"));
        eprintln!("--- {}: end ---", self.name);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            self.print_log_tail();
        }
    }
}

type Start = (Command, Sender<io::Result<Child>>);

/// Starts a child that the kernel kills when this process ends for any reason.
///
/// `PR_SET_PDEATHSIG` fires when the *thread* that started the child ends. A test's thread is short-lived while a broker may
/// be shared, so one thread that never ends starts all children.
fn spawn(mut command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<Mutex<Sender<Start>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, starts) = channel::<Start>();
        thread::spawn(move || {
            for (mut command, answer) in starts {
                // If the test no longer waits, the receiver is gone. The child is dropped too, and ends with this process.
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(sender)
    });
    die_with_starter(&mut command);
    let (answer, started) = channel();
    starter
        .lock()
        .expect("no test panics while it holds the starter")
        .send((command, answer))
        .expect("the starter lives as long as the process");
    started.recv().expect("the starter answers each start")
}

#[cfg(target_os = "linux")]
fn die_with_starter(command: &mut Command) {
    let ask_kernel = || {
        // SAFETY: a plain system call, allowed between fork and exec.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(ask_kernel) };
}

#[cfg(not(target_os = "linux"))]
fn die_with_starter(_: &mut Command) {}
