//! The daemon itself from the start to the end of its process, with all kinds of broken logs. No broker answers.

#![cfg(target_os = "linux")]

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};

use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::{http, tools, wait};

/// A daemon with a given standard error, killed when dropped.
struct Running {
    child: Child,
    port: u16,
}

impl Running {
    fn start(arguments: &[&str], stderr: impl Into<Stdio>) -> Running {
        let port = tools::free_port();
        let child = crate::support::program::program(arguments)
            .env("ABGAUGE_KAFKA__BROKERS", "127.0.0.1:1")
            .env("ABGAUGE_HTTP__LISTEN", format!("127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("abgauge starts");
        Running { child, port }
    }

    /// Returns the answer once the daemon listens. The daemon must stay alive.
    #[track_caller]
    fn get(&mut self, path: &str) -> String {
        let address = format!("http://127.0.0.1:{}{path}", self.port);
        wait::until(path, wait::PATIENCE, || {
            let ended = self.child.try_wait().expect("ask after a child");
            assert_eq!(ended, None, "abgauge has ended");
            Some(http::get(&address, &[]).ok()?.body)
        })
    }

    #[track_caller]
    fn lines_lost(&mut self) -> f64 {
        let metrics = Exposition::parse(&self.get("/metrics")).expect("a scrape");
        metrics
            .value("abgauge_log_lines_lost_total", &[])
            .expect("the counter")
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: no memory is involved. The child has not been reaped, so the process ID is still its own.
        assert_eq!(unsafe { libc::kill(self.child.id().cast_signed(), signal) }, 0);
    }

    #[track_caller]
    fn wait_exit(&mut self) -> ExitStatus {
        wait::until("abgauge to end", wait::PATIENCE, || {
            self.child.try_wait().expect("ask after a child")
        })
    }

    /// Returns a line of `/proc/PID/status`.
    fn status(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim().to_owned())
    }

    /// Returns whether the process has its own handler for SIGTERM.
    fn catches_sigterm(&self) -> bool {
        let caught = self.status("SigCgt").expect("it runs");
        let caught = u64::from_str_radix(&caught, 16).expect("a mask");
        caught & (1 << (libc::SIGTERM - 1)) != 0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks that the daemon lives, counts the lost lines, and ends when asked to.
#[track_caller]
fn check_lives_without_its_log(stderr: impl Into<Stdio>) {
    let mut daemon = Running::start(&["run"], stderr);
    assert!(daemon.get("/healthz").contains("ok"));
    wait::until("the losses to be counted", wait::PATIENCE, || {
        (daemon.lines_lost() > 0.0).then_some(())
    });
    wait::until("the losses to be told", wait::PATIENCE, || {
        let stream = daemon.get("/api/v1/experiments");
        (stream.contains("log lines that could not be written: ") && stream.contains("AbgaugeLogLinesLost"))
            .then_some(())
    });
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit().code(), Some(0));
}

/// The daemon ended with exit code 101 while a line that could not be written caused a panic.
/// The dashboards take their links from it, and add paths.
#[test]
fn a_daemon_exports_the_address_of_its_page_only_if_it_is_set() {
    let pages = |http: &str| {
        let mut daemon = Daemon::run(&format!("[kafka]\nbrokers = \"127.0.0.1:1\"\n[http]\n{http}"));
        let scrape = daemon.wait_until("a scrape", |daemon| Some(daemon.try_get("/metrics").ok()?.body));
        let pages = scrape
            .lines()
            .filter(|line| line.starts_with("abgauge_page_info"));
        pages.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        pages("public_url = \"https://wiki.example/abgauge/\""),
        [r#"abgauge_page_info{url="https://wiki.example/abgauge"} 1"#]
    );
    assert!(pages("").is_empty());
}

#[test]
fn a_daemon_survives_a_full_log_disk_and_counts_lost_lines() {
    check_lives_without_its_log(
        File::options()
            .write(true)
            .open("/dev/full")
            .expect("Linux has it"),
    );
}

#[test]
fn a_daemon_survives_a_closed_log_pipe_and_counts_lost_lines() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    check_lives_without_its_log(writer);
}

/// Returns a full pipe. With `waits` its writer blocks, otherwise it gets an error.
fn full_pipe(waits: bool) -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    set_flags(&writer, libc::O_NONBLOCK);
    while writer.write(b"\n").map_err(|error| error.kind()) != Err(ErrorKind::WouldBlock) {}
    if waits {
        set_flags(&writer, 0);
    }
    (reader, writer)
}

fn set_flags(pipe: &impl AsRawFd, flags: libc::c_int) {
    // SAFETY: no memory is involved, and the descriptor is ours.
    assert_eq!(unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, flags) }, 0);
}

/// Reads until the text appears.
#[track_caller]
fn read_until(reader: &mut PipeReader, text: &str) -> String {
    set_flags(reader, libc::O_NONBLOCK);
    let mut found = String::new();
    let mut buffer = [0; 4096];
    wait::until(text, wait::PATIENCE, || {
        while let Ok(n @ 1..) = reader.read(&mut buffer) {
            found.push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
        found.contains(text).then_some(())
    });
    found
}

/// A hanging `docker logs` has this effect. The daemon used to wait for its first line to be written before it listened.
#[test]
fn a_daemon_with_a_blocked_log_continues_and_writes_later() {
    let (mut reader, writer) = full_pipe(true);
    let mut daemon = Running::start(&["run"], writer);
    assert!(daemon.get("/healthz").contains("ok"));
    assert!(
        daemon
            .get("/metrics")
            .contains("abgauge_log_lines_lost_total 0\n")
    );
    let text = read_until(&mut reader, "listening on");
    assert!(text.contains("memory is bounded"), "{text}");
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit().code(), Some(0));
}

#[test]
fn a_daemon_with_a_blocked_log_stops_on_sigterm() {
    let (_reader, writer) = full_pipe(true);
    let mut daemon = Running::start(&["run"], writer);
    daemon.get("/healthz");
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit().code(), Some(0));
}

#[test]
fn a_recovered_log_reports_the_number_of_lost_lines() {
    let (mut reader, writer) = full_pipe(false);
    let mut daemon = Running::start(&["run"], writer);
    wait::until("a line to be lost", wait::PATIENCE, || {
        (daemon.lines_lost() > 0.0).then_some(())
    });
    // This makes room for some lines and for a new one.
    let mut buffer = [0; 32 << 10];
    reader.read_exact(&mut buffer).expect("the pipe is full");
    daemon.signal(libc::SIGHUP);
    // Any line may be the first that fits again: also one about the brokers.
    let text = read_until(&mut reader, "log lines are lost");
    assert!(text.contains("\"lost\":"), "{text}");
}

/// Creates a named pipe that nobody has opened.
fn named_pipe(path: &Path) {
    let name = CString::new(path.to_str().expect("UTF-8")).expect("a path");
    // SAFETY: the name ends with 0 and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

/// Opens the other end once the daemon waits for it.
#[track_caller]
fn once_awaited(path: &Path) -> File {
    wait::until("abgauge to wait for its configuration", wait::PATIENCE, || {
        OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .ok()
    })
}

/// The start blocks at its first file. Before there was a handler, the signal itself ended the process (143).
#[test]
fn a_signal_during_startup_exits_with_0() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let dir = tools::temporary_dir("start");
        let config = dir.path().join("abgauge.toml");
        named_pipe(&config);
        let mut daemon = Running::start(
            &["run", "--config", config.to_str().expect("UTF-8")],
            Stdio::null(),
        );
        let _end = once_awaited(&config);
        daemon.signal(signal);
        let status = daemon.wait_exit();
        assert_eq!((status.code(), status.signal()), (Some(0), None));
    }
}

/// All commands used to hang without a message.
#[test]
fn a_piped_configuration_is_waited_for_with_a_message() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/example.jsonl");
    let file = file.to_str().expect("UTF-8");
    for command in [&["check"][..], &["evaluate", file], &["run"]] {
        let dir = tools::temporary_dir("pipe");
        let config = dir.path().join("abgauge.toml");
        named_pipe(&config);
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let path = config.to_str().expect("UTF-8");
        let mut child = Running::start(&[command, &["--config", path]].concat(), writer);
        read_until(&mut reader, &format!("waiting for a writer of the pipe {path}\n"));
        let mut end = once_awaited(&config);
        end.write_all(b"[kafka]\n").expect("abgauge reads");
        drop(end);
        if command == ["run"] {
            assert!(child.get("/healthz").contains("ok"));
            child.signal(libc::SIGTERM);
        }
        assert_eq!(child.wait_exit().code(), Some(0), "{command:?}");
    }
}

/// A signal must not kill a program that is slow before its start. Here it blocks while it reports the error in its arguments.
#[test]
fn signals_are_handled_before_arguments_are_read() {
    for command in ["run", "demo", "simulate"] {
        let (_reader, writer) = full_pipe(true);
        let daemon = Running::start(&[command, "--nonsense"], writer);
        wait::until("abgauge to listen for signals", wait::PATIENCE, || {
            daemon.catches_sigterm().then_some(())
        });
    }
}

#[test]
fn sighup_during_startup_does_not_stop_the_daemon() {
    let dir = tools::temporary_dir("start");
    let config = dir.path().join("abgauge.toml");
    named_pipe(&config);
    let mut daemon = Running::start(
        &["run", "--config", config.to_str().expect("UTF-8")],
        Stdio::null(),
    );
    let mut end = once_awaited(&config);
    daemon.signal(libc::SIGHUP);
    end.write_all(b"[kafka]\n").expect("abgauge reads");
    drop(end);
    assert!(daemon.get("/healthz").contains("ok"));
    // SIGHUP makes it read the file again, which is a pipe without a writer. It can still be stopped.
    let _end = once_awaited(&config);
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit().code(), Some(0));
}

/// The signals start once the handler is installed: at the current number of threads, at one more, and so on.
#[test]
fn a_signal_at_any_moment_of_startup_exits_with_0() {
    // Each of them takes seconds to disconnect from brokers that do not answer.
    let mut stopping = Vec::new();
    for n_threads in 1..=16 {
        let daemon = Running::start(&["run"], Stdio::null());
        wait::until("abgauge to listen for signals", wait::PATIENCE, || {
            daemon.catches_sigterm().then_some(())
        });
        let has_come_so_far = || {
            let n: usize = daemon.status("Threads")?.parse().ok()?;
            (n >= n_threads).then_some(())
        };
        // The daemon may never have that many threads. Then the signal comes at the end of the start.
        let is_listening = format!("http://127.0.0.1:{}/healthz", daemon.port);
        wait::until("the start to come so far", wait::PATIENCE, || {
            has_come_so_far().or_else(|| http::get(&is_listening, &[]).ok().map(drop))
        });
        daemon.signal(libc::SIGTERM);
        stopping.push((n_threads, daemon));
    }
    for (n_threads, mut daemon) in stopping {
        let status = daemon.wait_exit();
        assert_eq!(
            (status.code(), status.signal()),
            (Some(0), None),
            "{n_threads} threads"
        );
    }
}
