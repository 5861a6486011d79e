//! Real Prometheus with given targets, and `promtool`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::exposition::Sample;
use super::process::Process;
use super::{brought, http, tools, wait};

/// A running Prometheus with an empty store, killed when dropped.
pub struct Prometheus {
    // Dropped first: it writes into the directory.
    _process: Process,
    address: SocketAddr,
    _dir: TempDir,
}

impl Prometheus {
    /// Scrapes `/metrics` of each target twice a second, job `abgauge`.
    pub fn start(targets: &[SocketAddr]) -> Prometheus {
        Prometheus::start_with_rules(targets, &[])
    }

    /// Like `start`, and evaluates recording and alerting rules at every scrape interval.
    pub fn start_with_rules(targets: &[SocketAddr], rule_files: &[PathBuf]) -> Prometheus {
        let dir = tools::temporary_dir("prometheus");
        let config = dir.path().join("prometheus.yml");
        fs::write(&config, configuration(targets, rule_files)).expect("write prometheus.yml");
        let address = SocketAddr::from(([127, 0, 0, 1], tools::free_port()));
        let mut command = brought::command("prometheus");
        command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                dir.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"));
        let mut process = Process::start("prometheus", command, &dir.path().join("log"));
        let ready = format!("http://{address}/-/ready");
        process.wait_until("prometheus to be ready", wait::LONG, || {
            http::get(&ready, &[]).ok().filter(|answer| answer.status == 200)
        });
        Prometheus {
            _process: process,
            address,
            _dir: dir,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs an instant query that returns a vector. `name` is empty if the expression drops it.
    #[track_caller]
    pub fn query(&self, promql: &str) -> Vec<Sample> {
        let url = format!("http://{}/api/v1/query", self.address);
        let answer =
            http::get(&url, &[("query", promql)]).unwrap_or_else(|error| panic!("{promql}: {error}"));
        assert_eq!(answer.status, 200, "{promql}: {}", answer.body);
        let answer: Value = serde_json::from_str(&answer.body).expect("Prometheus answers JSON");
        let data = &answer["data"];
        assert_eq!(data["resultType"], "vector", "{promql} gives no vector");
        data["result"]
            .as_array()
            .expect("a vector")
            .iter()
            .map(sample)
            .collect()
    }

    /// Returns every rule with its `health`, its `lastError` and, for an alert, its `state`.
    #[track_caller]
    pub fn rules(&self) -> Vec<Value> {
        let url = format!("http://{}/api/v1/rules", self.address);
        let answer = http::get(&url, &[]).expect("Prometheus answers");
        let answer: Value = serde_json::from_str(&answer.body).expect("Prometheus answers JSON");
        let groups = answer["data"]["groups"].as_array().expect("groups").iter();
        groups
            .flat_map(|group| group["rules"].as_array().expect("rules").clone())
            .collect()
    }

    /// Waits until a query returns at least one sample.
    #[track_caller]
    pub fn wait_for(&self, promql: &str, deadline: Duration) -> Vec<Sample> {
        let what = format!("an answer to {promql}");
        wait::until(&what, deadline, || {
            Some(self.query(promql)).filter(|samples| !samples.is_empty())
        })
    }
}

fn configuration(targets: &[SocketAddr], rule_files: &[PathBuf]) -> String {
    let mut text =
        String::from("global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}\n");
    let targets: Vec<_> = targets.iter().map(|target| format!("'{target}'")).collect();
    let scrape = format!(
        "{{job_name: abgauge, static_configs: [{{targets: [{}]}}]}}",
        targets.join(", ")
    );
    writeln!(text, "scrape_configs: [{scrape}]").expect("write to a string");
    let files: Vec<_> = rule_files
        .iter()
        .map(|file| format!("'{}'", file.display()))
        .collect();
    writeln!(text, "rule_files: [{}]", files.join(", ")).expect("write to a string");
    text
}

fn sample(result: &Value) -> Sample {
    let mut labels: BTreeMap<String, String> =
        serde_json::from_value(result["metric"].clone()).expect("labels are strings");
    let name = labels.remove("__name__").unwrap_or_default();
    let value = result["value"][1]
        .as_str()
        .and_then(|text| text.parse().ok())
        .expect("a value is a number");
    Sample { name, labels, value }
}

/// Runs `promtool check metrics`. The error holds its objections.
pub fn check_metrics(text: &str) -> Result<(), String> {
    let mut command = brought::command("promtool");
    command.args(["check", "metrics"]);
    judge(command, text)
}

/// Runs `promtool check rules FILE`.
pub fn check_rules(file: &Path) -> Result<(), String> {
    let mut command = brought::command("promtool");
    command.args(["check", "rules"]).arg(file);
    judge(command, "")
}

/// Runs `promtool test rules FILE`.
pub fn test_rules(file: &Path) -> Result<(), String> {
    let mut command = brought::command("promtool");
    command.args(["test", "rules"]).arg(file);
    judge(command, "")
}

fn judge(mut command: Command, input: &str) -> Result<(), String> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("start promtool");
    // The pipe closes at the end of the statement. If promtool stops reading early, its output explains why.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("wait for promtool");
    let said = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    if output.status.success() {
        Ok(())
    } else {
        Err(said)
    }
}
