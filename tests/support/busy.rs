//! A daemon under steady traffic that computes every metric with two profiles and a catalogue.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

use super::daemon::Daemon;
use super::kafka::Kafka;
use super::process::Process;
use super::tools;

/// Profile names. Series of the first have no label `profile`. The second is trec_eval under a name that does not match
/// itself as a regular expression, and it has no MRR at a cut-off.
pub const PROFILES: [&str; 2] = ["default", "a+b(c)"];
/// Control of `ranker`. The experiment also has an arm called `control`.
pub const CONTROL: &str = "neural";
/// Address of the page.
pub const PAGE: &str = "https://abgauge.example/team";
/// Size of the catalogue. Simulated lists show `i0` to `i2999`; the other 1,500 items are never shown.
pub const N_ITEMS: usize = 4_500;

const N_PARTITIONS: i32 = 4;

pub struct Busy {
    pub daemon: Daemon,
    _simulator: Process,
    _kafka: Arc<Kafka>,
    _dir: TempDir,
}

impl Busy {
    /// Starts the daemon and waits until it is ready. The simulator runs for five minutes at 300 times real time.
    pub fn start() -> Busy {
        let kafka = Kafka::shared();
        let [served, clicks] = ["served", "clicks"].map(|stem| kafka.new_topic(stem, N_PARTITIONS));
        let dir = tools::temporary_dir("busy");
        let catalogue = dir.path().join("items.jsonl");
        fs::write(&catalogue, items()).expect("write the catalogue");
        let config = format!(
            "{section}[metrics]
profile = {PROFILES:?}
catalog = \"{catalogue}\"
metrics = [\"hit_rate\", \"ctr\", \"mrr\", \"ndcg\", \"precision\", \"recall\", \"map\", \"map_by_k\", \"mar\", \"hits\",
    \"alpha_ndcg\", \"coverage\", \"popularity\", \"surprisal\"]
[export]
numerators = [\"map\"]
[http]
public_url = \"{PAGE}\"
[profile.{further:?}]
base = \"trec_eval\"
[experiments.ranker]
control = \"{CONTROL}\"
",
            further = PROFILES[1],
            section = kafka.section(&served, &clicks),
            catalogue = catalogue.display(),
        );
        let mut daemon = Daemon::run(&config);
        daemon.wait_until_ready();
        let mut command = Command::new(env!("CARGO_BIN_EXE_abgauge"));
        command
            .args(["simulate", "--brokers", &kafka.brokers()])
            .args(["--served-topic", &served, "--clicks-topic", &clicks])
            .args(["--rate", "200", "--speed", "300", "--duration", "5m"]);
        let simulator = Process::start("abgauge simulate", command, &dir.path().join("log"));
        Busy {
            daemon,
            _simulator: simulator,
            _kafka: kafka,
            _dir: dir,
        }
    }
}

/// Builds the catalogue. At most a tenth of the users touched an item, and each has two aspects.
fn items() -> String {
    let mut text = String::new();
    for n in 0..N_ITEMS {
        let (users, kind, place) = (2000 * 10 / (n + 10), n % 7, n % 5);
        writeln!(
            text,
            r#"{{"item":"i{n}","aspects":["kind-{kind}","place-{place}"],"users":{users},"of_users":20000}}"#
        )
        .expect("write to a string");
    }
    text
}
