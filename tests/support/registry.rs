//! A real schema registry: Apicurio, which also has Confluent's API, with its storage in memory.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tempfile::TempDir;

use super::process::Process;
use super::{brought, http, tools, wait};

/// A running registry, killed when dropped. It starts empty.
pub struct Registry {
    // Dropped first: the process writes into the directory.
    process: Process,
    port: u16,
    dir: TempDir,
}

impl Registry {
    pub fn start() -> Registry {
        let (port, dir) = (tools::free_port(), tools::temporary_dir("registry"));
        let mut registry = Registry {
            process: launch(port, &dir),
            port,
            dir,
        };
        registry.wait_until_up();
        registry
    }

    /// Returns the registry that all tests of a binary share. It stops when the last reference is dropped.
    pub fn shared() -> Arc<Registry> {
        static SHARED: Mutex<Weak<Registry>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let registry = Arc::new(Registry::start());
            *shared = Arc::downgrade(&registry);
            registry
        })
    }

    /// Returns the address of Confluent's API.
    pub fn url(&self) -> String {
        format!("{}/apis/ccompat/v7", self.root())
    }

    /// Returns the address below which Apicurio's own API lies.
    pub fn root(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Kills the registry. Its schemas are lost.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on the same port, empty. Ids are given out from 1 again.
    pub fn restart(&mut self) {
        self.kill();
        self.process = launch(self.port, &self.dir);
        self.wait_until_up();
    }

    fn wait_until_up(&mut self) {
        let subjects = format!("{}/subjects", self.url());
        self.process.wait_until("the registry to answer", wait::LONG, || {
            http::get(&subjects, &[])
                .ok()
                .filter(|answer| answer.status == 200)
        });
    }
}

fn launch(port: u16, dir: &TempDir) -> Process {
    let mut command = brought::command("java");
    command
        .args([
            "-Xms64m",
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
        ])
        .arg(format!("-Dquarkus.http.port={port}"))
        .args(["-Dquarkus.http.host=127.0.0.1", "-jar"])
        .arg(brought::cached("encodings/registry").join(runner()))
        .current_dir(dir.path());
    Process::start("registry", command, &dir.path().join("log"))
}

/// Returns the name of its jar. `tests/run` brings the version in the pom.
fn runner() -> String {
    const POM: &str = include_str!("../encodings/pom.xml");
    let (_, after) = POM
        .split_once("<apicurio.version>")
        .expect("the pom names Apicurio's version");
    let (version, _) = after.split_once('<').expect("the pom is XML");
    format!("apicurio-registry-app-{version}-runner.jar")
}
