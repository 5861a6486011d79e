//! The catalogue of a running daemon without a broker: read at the start, validated, and reloaded at SIGHUP.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::support::daemon::Daemon;
use crate::support::{tools, wait};

const TWO_ITEMS: &str = "{\"item\":\"a\",\"aspects\":[\"x\"],\"users\":1,\"of_users\":4}\n{\"item\":\"b\"}\n";
const ONE_ITEM: &str = "{\"item\":\"a\"}\n";
/// A catalogue whose third line repeats the item of the first.
const FAULTY: &str = "{\"item\":\"a\"}\n{\"item\":\"b\"}\n{\"item\":\"a\"}\n";

/// A catalogue file, and the configuration of a daemon that uses it and has no broker.
struct Scene {
    catalogue: PathBuf,
    dir: TempDir,
}

impl Scene {
    fn new(text: &str) -> Scene {
        let dir = tools::temporary_dir("catalogue");
        let catalogue = dir.path().join("items.jsonl");
        fs::write(&catalogue, text).expect("write the catalogue");
        Scene { catalogue, dir }
    }

    fn config(&self) -> String {
        format!(
            "{}\n[metrics]\ncatalog = \"{}\"\nmetrics = [\"hit_rate\", \"coverage\", \"popularity\", \"alpha_ndcg\"]\n",
            no_broker(),
            self.catalogue.display()
        )
    }

    /// Replaces the file atomically, as an operator should.
    fn replace(&self, text: &str) {
        let new = self.dir.path().join("new");
        fs::write(&new, text).expect("write the new catalogue");
        fs::rename(&new, &self.catalogue).expect("put it into place");
    }

    /// Runs a command that ends by itself. Returns the exit code and both outputs.
    fn run(&self, command: &str) -> (Option<i32>, String) {
        let file = self.dir.path().join("abgauge.toml");
        fs::write(&file, self.config()).expect("write the configuration");
        let output = Command::new(env!("CARGO_BIN_EXE_abgauge"))
            .args([command, "--config"])
            .arg(&file)
            .env_remove("ABGAUGE_CONFIG")
            .output()
            .expect("abgauge starts");
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
        (output.status.code(), said.concat())
    }
}

fn no_broker() -> String {
    format!("[kafka]\nbrokers = \"127.0.0.1:{}\"", tools::free_port())
}

/// Waits until a scrape shows `n_items` items and this result of the last reload.
#[track_caller]
fn wait_for(daemon: &mut Daemon, n_items: f64, failed: f64) {
    daemon.wait_until("the catalogue to be told", |daemon| {
        daemon.try_get("/healthz").ok()?;
        let metrics = daemon.metrics();
        let seen = ["items", "reload_failed"].map(|it| metrics.value(&format!("abgauge_catalog_{it}"), &[]));
        (seen == [Some(n_items), Some(failed)]).then_some(())
    });
}

fn loaded_seconds(daemon: &Daemon) -> f64 {
    let loaded = daemon
        .metrics()
        .value("abgauge_catalog_loaded_timestamp_seconds", &[]);
    loaded.expect("a catalogue is in use")
}

#[test]
fn an_invalid_catalogue_stops_startup_with_setting_file_line_and_fix() {
    let scene = Scene::new(FAULTY);
    let (code, said) = scene.run("run");
    assert_eq!(code, Some(78), "{said}");
    let file = scene.catalogue.display().to_string();
    // Long paths are wrapped.
    let said: String = said.split_whitespace().filter(|word| *word != "│").collect();
    for words in [
        "metrics.catalog:",
        &file,
        "line3:",
        "\"a\"isalreadyinline1",
        "help:fixline3",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    fs::remove_file(&scene.catalogue).expect("remove it");
    let (code, said) = scene.run("run");
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("cannot open the file"), "{said}");
}

#[test]
fn check_reports_the_size_of_the_catalogue_or_its_error() {
    let scene = Scene::new(TWO_ITEMS);
    let (code, said) = scene.run("check");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("items: 2, aspects: 1, shares of 4 users"), "{said}");
    let lacks = [
        "no item has aspects in the catalogue: there is nothing for alpha_ndcg",
        "no item has shares of users in the catalogue: there is nothing for popularity",
    ];
    assert!(lacks.iter().all(|lack| !said.contains(lack)), "{said}");
    scene.replace(ONE_ITEM);
    let (code, said) = scene.run("check");
    assert_eq!(code, Some(0), "{said}");
    assert!(lacks.iter().all(|lack| said.contains(lack)), "{said}");
    scene.replace(FAULTY);
    let (code, said) = scene.run("check");
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("line 3: item \"a\" is already in line 1"), "{said}");
}

#[test]
fn sighup_rereads_the_catalogue_and_an_invalid_one_is_not_used() {
    let scene = Scene::new(TWO_ITEMS);
    let mut daemon = Daemon::run(&scene.config());
    wait_for(&mut daemon, 2.0, 0.0);
    let first_seconds = loaded_seconds(&daemon);
    scene.replace(FAULTY);
    daemon.signal(libc::SIGHUP);
    wait_for(&mut daemon, 2.0, 1.0);
    assert_eq!(loaded_seconds(&daemon), first_seconds);
    let log = daemon.log();
    let reported = log.lines().find(|line| line.contains("ERROR"));
    let reported = reported.expect("the fault is logged");
    for words in ["items.jsonl, line 3", "stays in use"] {
        assert!(reported.contains(words), "{words}: {reported}");
    }
    let answer = daemon.get("/api/v1/experiments").body;
    assert!(
        answer.contains("\"items\":2") && answer.contains("items.jsonl, line 3"),
        "{answer}"
    );
    scene.replace(ONE_ITEM);
    daemon.signal(libc::SIGHUP);
    wait_for(&mut daemon, 1.0, 0.0);
    assert!(loaded_seconds(&daemon) > first_seconds);
}

/// Waits until the daemon has logged `words` after the position `seen`, and moves the position.
#[track_caller]
fn wait_for_words(daemon: &mut Daemon, seen: &mut usize, words: &str) -> String {
    daemon.wait_until(words, |daemon| {
        let log = daemon.log();
        let new = log.get(*seen..).unwrap_or_default();
        let at = new.find(words)?;
        let line = new[at..].lines().next().unwrap_or_default().to_owned();
        *seen += at + line.len();
        Some(line)
    })
}

#[test]
fn sighup_logs_which_edits_are_applied_and_which_need_a_restart() {
    let scene = Scene::new(TWO_ITEMS);
    let begun = scene.config() + "[log]\nformat = \"text\"\n";
    let mut daemon = Daemon::run(&begun);
    wait_for(&mut daemon, 2.0, 0.0);
    let mut seen = 0;
    daemon.signal(libc::SIGHUP);
    wait_for_words(&mut daemon, &mut seen, "no setting has changed");

    daemon.rewrite("[kafka]\nbrokrs = \"x\"\n");
    daemon.signal(libc::SIGHUP);
    let fault = wait_for_words(&mut daemon, &mut seen, "kafka.brokrs: there is no such setting");
    assert!(
        fault.contains("abgauge.toml line ") && fault.contains("did you mean `brokers`?"),
        "{fault}"
    );
    wait_for_words(&mut daemon, &mut seen, "the previous configuration stays in use");

    let other = scene.catalogue.with_file_name("other.jsonl");
    fs::write(&other, ONE_ITEM).expect("written");
    let moved = begun.replace("items.jsonl", "other.jsonl").replace(
        "format = \"text\"",
        "format = \"text\"\nfilter = \"warn,abgauge=info\"\n[join]\nattribution = \"1h\"\n[limits]\nmax_arms = 7",
    );
    daemon.rewrite(&moved);
    for _ in 0..2 {
        daemon.signal(libc::SIGHUP);
        let words = "changes to these settings need a restart";
        let waiting = wait_for_words(&mut daemon, &mut seen, words);
        assert!(waiting.contains("join.attribution, limits.max_arms"), "{waiting}");
    }
    let log = daemon.log();
    let taken: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("applied the changes"))
        .collect();
    assert_eq!(taken.len(), 1, "{log}");
    assert!(taken[0].contains("log.filter, metrics.catalog"), "{}", taken[0]);
    wait_for(&mut daemon, 1.0, 0.0);
}

#[test]
fn sighup_without_a_catalogue_is_harmless() {
    let mut daemon = Daemon::run(&no_broker());
    daemon.wait_until("an answer", |daemon| daemon.try_get("/healthz").ok());
    daemon.rewrite("");
    daemon.signal(libc::SIGHUP);
    wait_for_words(&mut daemon, &mut 0, "the previous configuration stays in use");
    assert_eq!(daemon.get("/healthz").status, 200);
    daemon.signal(libc::SIGTERM);
    assert_eq!(daemon.wait_exit(wait::PATIENCE), Some(0));
}
