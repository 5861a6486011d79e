//! The log: text on a terminal, JSON otherwise, on standard error. A log that cannot be written ends and delays nothing.
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

use crate::config::LogFormat;

/// Bytes of lines that wait for standard error; a line beyond them is lost.
const MAX_WAITING: usize = 8 << 20;
/// How long the end of the program waits for its last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The log of this process. When it is dropped, what waits is written first.
pub struct Log {
    /// Text and JSON have handles of different types.
    replace: Box<dyn Fn(EnvFilter) -> Result<(), Error> + Send + Sync>,
    lines: Arc<Lines>,
}

impl Log {
    /// From here on other messages are written.
    ///
    /// # Errors
    /// A filter that cannot be read.
    pub fn set_filter(&self, filter: &str) -> anyhow::Result<()> {
        (self.replace)(parse(filter)?).context("replace the filter of the log")
    }

    /// What of it could not be written, from now on.
    pub fn losses(&self) -> Losses {
        self.lines.losses.clone()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.lines.wait_until_written(LAST_LINES);
    }
}

/// Lines of the log that could not be written: standard error is full, closed, or nobody reads it.
#[derive(Debug, Clone, Default)]
pub struct Losses(Arc<LossesInner>);

#[derive(Debug, Default)]
struct LossesInner {
    n_lost: AtomicU64,
    is_failing: AtomicBool,
}

impl Losses {
    /// Since the start.
    pub fn n_lost(&self) -> u64 {
        self.0.n_lost.load(Ordering::Relaxed)
    }

    /// Whether the last line was lost.
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
/// A filter that cannot be read, or a log that was started before.
pub fn start(filter: &str, format: LogFormat) -> anyhow::Result<Log> {
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
        // It would be told on standard error, and a failure of that ends the thread that logs.
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
        (log.try_init(), Log { replace, lines })
    } else {
        let log = log.json().flatten_event(true).with_filter_reloading();
        let handle = log.reload_handle();
        let replace = Box::new(move |filter| handle.reload(filter));
        (log.try_init(), Log { replace, lines })
    };
    started.map_err(|error| anyhow::anyhow!("start the log: {error}"))?;
    Ok(log)
}

/// A line on standard error, of a command that keeps no log. One that nobody can read is no reason to fail: the exit code says
/// how it ended. (The macros that print end a program there.)
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
    /// There are lines, or all of them are written.
    changed: Condvar,
    losses: Losses,
}

#[derive(Default)]
struct UnwrittenLines {
    lines: Vec<Vec<u8>>,
    n_bytes: usize,
    /// Lines were taken and are being written.
    is_writing: bool,
}

impl Lines {
    fn queue(&self) -> MutexGuard<'_, UnwrittenLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut queue = self.queue();
        if queue.n_bytes + line.len() > MAX_WAITING {
            return self.losses.lose();
        }
        queue.n_bytes += line.len();
        queue.lines.push(line.to_vec());
        drop(queue);
        self.changed.notify_all();
    }

    /// Writes lines as they come, for as long as the program runs.
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

    /// All that waits, once there is something. Those taken before are written.
    fn take(&self) -> Vec<Vec<u8>> {
        let mut queue = self.queue();
        queue.is_writing = false;
        self.changed.notify_all();
        let is_empty = |queue: &mut UnwrittenLines| queue.lines.is_empty();
        let queue = self.changed.wait_while(queue, is_empty);
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        queue.is_writing = true;
        queue.n_bytes = 0;
        mem::take(&mut queue.lines)
    }

    fn wait_until_written(&self, at_most: Duration) {
        let is_waiting = |queue: &mut UnwrittenLines| queue.is_writing || !queue.lines.is_empty();
        // In time or not: the program ends.
        drop(self.changed.wait_timeout_while(self.queue(), at_most, is_waiting));
    }
}

/// A line as a whole, or none of it counts. What a failure has left of the one before is ended first.
fn write_line(line: &[u8], out: &mut impl Write, is_cut: &mut bool) -> io::Result<()> {
    if *is_cut {
        out.write_all(b"\n")?;
        *is_cut = false;
    }
    let mut rest = line;
    while !rest.is_empty() {
        let written = out.write(rest).and_then(|n| match n {
            0 => Err(io::ErrorKind::WriteZero.into()),
            n => Ok(n),
        });
        match written {
            Ok(n) => rest = &rest[n..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                *is_cut = rest.len() < line.len();
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Takes the lines of the log. Never fails.
struct LineSink(Arc<Lines>);

impl<'a> MakeWriter<'a> for LineSink {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> LineWriter<'a> {
        LineWriter(&self.0)
    }
}

/// Is given a line at a time.
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

    /// Takes this many bytes, then nothing until it is given more room.
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
    fn a_line_that_was_cut_is_ended_before_the_next_one() {
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
    fn a_line_beyond_the_bound_is_lost_and_counted() {
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
