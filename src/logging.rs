//! Log on standard error, as text on a terminal and as JSON otherwise. If the log cannot be written, nothing stops or waits for
//! it.
//!
//! ```text
//! any thread ──▶ Lines (bounded) ──▶ thread `log` ──▶ standard error
//!                  └── full ─▶ lost ◀── refused ──┘
//! ```

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::reload::Error;
use tracing_subscriber::{EnvFilter, fmt};

/// Form of the log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    Text,
    Json,
}

/// Maximum bytes of lines waiting for standard error. Lines beyond it are lost.
const MAX_WAITING: usize = 8 << 20;
/// Time that shutdown waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Log of this process. Dropping it first writes all waiting lines.
pub struct ProcessLog {
    /// Boxed because the handles for text and JSON have different types.
    replace: Box<dyn Fn(EnvFilter) -> Result<(), Error> + Send + Sync>,
    lines: Arc<Lines>,
}

impl ProcessLog {
    /// Replaces the filter.
    ///
    /// # Errors
    /// If the filter is invalid.
    pub fn set_filter(&self, filter: &str) -> anyhow::Result<()> {
        (self.replace)(parse(filter)?).context("replace the filter of the log")
    }

    /// Returns the counter of lost lines, which continues to count.
    pub fn losses(&self) -> Losses {
        self.lines.losses.clone()
    }
}

impl Drop for ProcessLog {
    fn drop(&mut self) {
        self.lines.wait_until_written(LAST_LINES);
    }
}

/// Lost lines of the log: standard error is full or closed, or has no reader.
#[derive(Debug, Clone, Default)]
pub struct Losses(Arc<LossesInner>);

#[derive(Debug, Default)]
struct LossesInner {
    n_lost: AtomicU64,
    is_failing: AtomicBool,
}

impl Losses {
    /// Returns the number of lost lines since the start.
    pub fn n_lost(&self) -> u64 {
        self.0.n_lost.load(Ordering::Relaxed)
    }

    /// Returns whether the last line was lost.
    pub fn is_failing(&self) -> bool {
        self.0.is_failing.load(Ordering::Relaxed)
    }

    fn lose(&self) {
        self.0.n_lost.fetch_add(1, Ordering::Relaxed);
        self.0.is_failing.store(true, Ordering::Relaxed);
    }

    fn wrote(&self) {
        self.0.is_failing.store(false, Ordering::Relaxed);
    }
}

/// Starts the log of this process.
///
/// # Errors
/// If the filter is invalid, or the log was started before.
pub fn start(filter: &str, format: LogFormat) -> anyhow::Result<ProcessLog> {
    let filter = parse(filter)?;
    let lines = Arc::new(Lines::default());
    let writer = Arc::clone(&lines);
    std::thread::Builder::new()
        .name("log".into())
        .spawn(move || writer.write_to(&mut io::stderr()))
        .context("start the thread of the log")?;
    let log = fmt()
        .with_env_filter(filter)
        .with_writer(LineSink(Arc::clone(&lines)))
        // They would go to standard error, and a failure there ends the thread that logs.
        .log_internal_errors(false);
    let is_text = match format {
        LogFormat::Auto => io::stderr().is_terminal(),
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    let (started, log) = if is_text {
        let log = log
            .with_ansi(io::stderr().is_terminal())
            .with_target(false)
            .with_filter_reloading();
        let handle = log.reload_handle();
        let replace = Box::new(move |filter| handle.reload(filter));
        (log.try_init(), ProcessLog { replace, lines })
    } else {
        let log = log.json().flatten_event(true).with_filter_reloading();
        let handle = log.reload_handle();
        let replace = Box::new(move |filter| handle.reload(filter));
        (log.try_init(), ProcessLog { replace, lines })
    };
    started.map_err(|error| anyhow::anyhow!("start the log: {error}"))?;
    Ok(log)
}

/// Prints a line on standard error, for commands without a log. Failing to print is not an error, because the exit code shows
/// the result. (The print macros would panic.)
pub fn say(text: impl Display) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

fn parse(filter: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(filter).context("read log.filter")
}

/// Lines on their way to the thread that writes them.
#[derive(Default)]
struct Lines {
    waiting: Mutex<UnwrittenLines>,
    /// Notified when lines arrive and when all of them are written.
    changed: Condvar,
    losses: Losses,
}

#[derive(Default)]
struct UnwrittenLines {
    lines: Vec<Vec<u8>>,
    n_bytes: usize,
    /// Whether lines were taken and are still being written.
    is_writing: bool,
}

impl Lines {
    fn queue(&self) -> MutexGuard<'_, UnwrittenLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut queue = self.queue();
        if queue.n_bytes + line.len() > MAX_WAITING {
            // A thread that logs must not wait for standard error, so the line is dropped.
            return self.losses.lose();
        }
        queue.n_bytes += line.len();
        queue.lines.push(line.to_vec());
        // Released before the wake-up, so that the writer does not block on the lock at once.
        drop(queue);
        self.changed.notify_all();
    }

    /// Writes lines as they arrive, for as long as the program runs.
    fn write_to(&self, out: &mut impl Write) {
        let mut is_cut = false;
        loop {
            let taken = self.take();
            for line in &taken {
                match write_line(line, out, &mut is_cut) {
                    Ok(()) => self.losses.wrote(),
                    Err(_) => self.losses.lose(),
                }
            }
        }
    }

    /// Waits for lines and takes all of them. The lines taken before are written by then.
    fn take(&self) -> Vec<Vec<u8>> {
        let mut queue = self.queue();
        // All lines taken before are written by now. A shutdown may be waiting for that.
        queue.is_writing = false;
        self.changed.notify_all();
        let is_empty = |queue: &mut UnwrittenLines| queue.lines.is_empty();
        let queue = self.changed.wait_while(queue, is_empty);
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        queue.is_writing = true;
        // Only waiting lines count, so at most twice the bound is in memory: lines being written and lines waiting.
        queue.n_bytes = 0;
        mem::take(&mut queue.lines)
    }

    fn wait_until_written(&self, at_most: Duration) {
        let is_waiting = |queue: &mut UnwrittenLines| queue.is_writing || !queue.lines.is_empty();
        // The program ends, whether or not they were written in time.
        drop(self.changed.wait_timeout_while(self.queue(), at_most, is_waiting));
    }
}

/// Writes a whole line, or fails. If the line before was cut off, ends it first.
fn write_line(line: &[u8], out: &mut impl Write, is_cut: &mut bool) -> io::Result<()> {
    if *is_cut {
        out.write_all(b"\n")?;
        *is_cut = false;
    }
    let mut rest = line;
    while !rest.is_empty() {
        let written = out.write(rest).and_then(|n| match n {
            // A sink that takes nothing would be retried forever.
            0 => Err(io::ErrorKind::WriteZero.into()),
            n => Ok(n),
        });
        match written {
            Ok(n) => rest = &rest[n..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                // If none of the line was written, there is no fragment to end.
                *is_cut = rest.len() < line.len();
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Sink for the lines of the log. Never fails.
struct LineSink(Arc<Lines>);

impl<'a> MakeWriter<'a> for LineSink {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter(&self.0)
    }
}

/// Writer that receives one line at a time.
struct LineWriter<'a>(&'a Lines);

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writer that accepts this many bytes, then nothing until it gets more room.
    struct Disk {
        room: usize,
        held: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.room.min(bytes.len()) {
                0 => Err(io::ErrorKind::StorageFull.into()),
                n => {
                    self.room -= n;
                    self.held.extend(&bytes[..n]);
                    Ok(n)
                }
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_truncated_line_is_terminated_before_the_next_line() {
        let mut disk = Disk {
            room: 6,
            held: Vec::new(),
        };
        let mut is_cut = false;
        let mut write = |disk: &mut Disk, line: &[u8]| write_line(line, disk, &mut is_cut).is_ok();
        assert!(write(&mut disk, b"one\n"));
        assert!(!write(&mut disk, b"second\n"), "two bytes fit");
        assert!(!write(&mut disk, b"third\n"), "nothing fits");
        disk.room = 100;
        assert!(write(&mut disk, b"fourth\n"));
        assert!(write(&mut disk, b"fifth\n"));
        assert_eq!(disk.held, b"one\nse\nfourth\nfifth\n");
    }

    #[test]
    fn a_line_over_the_bound_is_dropped_and_counted() {
        let lines = Lines::default();
        let line = vec![b'x'; MAX_WAITING / 4];
        (0..6).for_each(|_| lines.push(&line));
        assert_eq!((lines.losses.n_lost(), lines.losses.is_failing()), (2, true));
        assert_eq!(lines.take().len(), 4);
        lines.push(b"room again\n");
        assert_eq!(lines.take(), [b"room again\n"]);
        assert_eq!(lines.losses.n_lost(), 2);
    }
}
