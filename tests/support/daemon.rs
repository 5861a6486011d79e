//! The `abgauge` binary as an operator runs it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::exposition::Exposition;
use super::http::{self, Response};
use super::process::Process;
use super::{tools, wait};

/// A running `abgauge`, killed when dropped. If the test fails, the end of its log is printed.
pub struct Daemon {
    // Dropped first: the process writes into the directory.
    process: Process,
    address: SocketAddr,
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    log: PathBuf,
    dir: TempDir,
}

/// Returns the build under test unless `ABGAUGE_PROGRAM` names another, so that a long run survives a rebuild.
pub fn program() -> PathBuf {
    std::env::var_os("ABGAUGE_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_abgauge").into(), PathBuf::from)
}

const CONFIG: &str = "abgauge.toml";

impl Daemon {
    /// Starts `abgauge run` with this configuration (TOML). `http.listen` is a free port unless the configuration sets it.
    pub fn run(config: &str) -> Daemon {
        Daemon::run_with(config, &[])
    }

    /// Like `run`, with environment variables.
    pub fn run_with(config: &str, env: &[(&str, &str)]) -> Daemon {
        Daemon::run_program(&program(), config, env)
    }

    /// Like `run_with`, with another build of abgauge.
    pub fn run_program(program: &Path, config: &str, env: &[(&str, &str)]) -> Daemon {
        let (config, listen) = listening(config, free_address);
        let dir = tools::temporary_dir("daemon");
        let file = dir.path().join(CONFIG);
        fs::write(&file, config).expect("write the configuration");
        let args = ["run", "--config", file.to_str().expect("UTF-8")];
        Daemon::start(program, &args, env, listen, dir)
    }

    /// Replaces the daemon's configuration file. The address stays the same.
    pub fn rewrite(&self, config: &str) {
        let (config, _) = listening(config, || self.address);
        fs::write(self.dir.path().join(CONFIG), config).expect("write the configuration");
    }

    /// Starts `abgauge demo` on a free port with these additional arguments.
    pub fn demo(args: &[&str]) -> Daemon {
        let address = free_address();
        let port = address.port().to_string();
        let args = [&["demo", "--port", &port], args].concat();
        Daemon::start(&program(), &args, &[], address, tools::temporary_dir("demo"))
    }

    fn start(
        program: &Path,
        args: &[&str],
        env: &[(&str, &str)],
        address: SocketAddr,
        dir: TempDir,
    ) -> Daemon {
        let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let env: Vec<_> = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let log = dir.path().join("log");
        let process = Process::start("abgauge", command(program, &args, &env), &log);
        Daemon {
            process,
            address,
            program: program.to_owned(),
            args,
            env,
            log,
            dir,
        }
    }

    /// Starts the same command again, after it has ended or been killed.
    pub fn start_again(&mut self) {
        assert!(self.process.ended().is_some(), "abgauge still runs");
        self.process = Process::start(
            "abgauge",
            command(&self.program, &self.args, &self.env),
            &self.log,
        );
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gets a path such as `/readyz`.
    #[track_caller]
    pub fn get(&self, path: &str) -> Response {
        self.try_get(path)
            .unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    /// Gets a path. Returns an error while the daemon does not listen.
    pub fn try_get(&self, path: &str) -> Result<Response, ureq::Error> {
        http::get(&format!("http://{}{path}", self.address), &[])
    }

    /// Scrapes `/metrics` and parses the answer strictly.
    #[track_caller]
    pub fn metrics(&self) -> Exposition {
        let answer = self.get("/metrics");
        assert_eq!(answer.status, 200, "{}", answer.body);
        Exposition::parse(&answer.body).unwrap_or_else(|error| panic!("/metrics: {error}"))
    }

    /// Waits until `/readyz` answers 200.
    #[track_caller]
    pub fn wait_until_ready(&mut self) {
        self.wait_until("abgauge to be ready", |daemon| {
            daemon
                .try_get("/readyz")
                .ok()
                .filter(|answer| answer.status == 200)
        });
    }

    /// Waits until `probe` returns a value. Fails at once if the daemon ends.
    #[track_caller]
    pub fn wait_until<T>(&mut self, what: &str, mut probe: impl FnMut(&Daemon) -> Option<T>) -> T {
        wait::until(what, wait::LONG, || {
            let found = probe(self);
            if let (None, Some(status)) = (&found, self.process.ended()) {
                panic!("abgauge ended ({status}) while the test waited for {what}");
            }
            found
        })
    }

    /// Waits until the log satisfies `fits`. A log line may be written a moment after the event it reports is visible.
    #[track_caller]
    pub fn wait_for_log(&mut self, what: &str, fits: impl Fn(&str) -> bool) {
        self.wait_until(&format!("the log to tell {what}"), |daemon| {
            fits(&daemon.log()).then_some(())
        });
    }

    /// Sends `libc::SIGTERM`, `SIGINT`, `SIGSTOP`, `SIGCONT`, ….
    pub fn signal(&self, signal: libc::c_int) {
        self.process.signal(signal);
    }

    /// Kills the daemon as a crash would, and waits for its end.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Waits for the end and returns the exit code, or `None` if a signal ended the daemon.
    #[track_caller]
    pub fn wait_exit(&mut self, deadline: Duration) -> Option<i32> {
        self.process.wait_exit(deadline)
    }

    /// Returns both outputs of all runs so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// Adds an address to listen on if the configuration has none.
fn listening(config: &str, or: impl FnOnce() -> SocketAddr) -> (String, SocketAddr) {
    let mut config: toml::Table = config.parse().expect("the test's configuration is TOML");
    let http = config.entry("http").or_insert_with(|| toml::Table::new().into());
    let listen = http
        .as_table_mut()
        .expect("http is a table")
        .entry("listen")
        .or_insert_with(|| or().to_string().into())
        .as_str()
        .and_then(|listen| listen.parse().ok())
        .expect("http.listen is an address");
    (config.to_string(), listen)
}

fn free_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, tools::free_port()))
}

/// Returns the program's command with only those `ABGAUGE_` variables that the test sets.
fn command(program: &Path, args: &[String], env: &[(String, String)]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("ABGAUGE_")) {
            command.env_remove(name);
        }
    }
    command
        .args(args)
        .envs(env.iter().map(|(name, value)| (name, value)));
    command
}
