//! Fleet of instances in one group that store their state, with traffic for them, a watcher, and a recount of the traffic.
//!
//! The recount decides: a single thread notes what it sends and the sums that must result.

pub mod chain;
pub mod runs;
mod seen;
mod watch;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;

pub use self::seen::Seen;
use self::watch::Watch;
use super::STATE;
use super::step::Step;
use crate::chaos::arms::{Arms, add_settled};
use crate::chaos::number;
use crate::chaos::stream::{Load, Stream};
use crate::support::daemon::Daemon;
use crate::support::exposition::{Exposition, Sample};
use crate::support::gate::{Gate, Kept};
use crate::support::kafka::{Kafka, Options};
use crate::support::wait;
use crate::traffic::{self, now_ms, scrape};

/// Time after which an instance that the group considers gone has hidden everything.
pub const LEASE: Duration = Duration::from_secs(2);
/// Longest time until all traffic has settled on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(240);
/// Longest time to read a log of millions of records in a development build.
const WHOLE_LOG: Duration = Duration::from_secs(1_200);

/// Lock of the current fleet. Several at once starve each other's brokers, and a record that arrives too late counts as
/// late.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Number of faults to inject, and the seed of their order.
pub struct Wanted {
    pub n_faults: usize,
    /// Set if `ABGAUGE_FAULTS` asks for a run whose length is the point.
    pub is_long: bool,
    /// Seed from `ABGAUGE_FAULTS_SEED`, or a different one each time.
    pub seed: u64,
}

impl Wanted {
    pub fn or(n_faults: usize) -> Wanted {
        let asked = number("ABGAUGE_FAULTS");
        let seed = number("ABGAUGE_FAULTS_SEED").unwrap_or_else(|| now_ms() as u64);
        println!("ABGAUGE_FAULTS_SEED={seed}");
        Wanted {
            n_faults: asked.map_or(n_faults, |n| n as usize),
            is_long: asked.is_some(),
            seed,
        }
    }

    pub fn random(&self) -> Pcg64Mcg {
        Pcg64Mcg::seed_from_u64(self.seed)
    }
}

/// Members of a fleet, and the traffic that they read.
pub struct Plan {
    pub n_instances: usize,
    pub load: Load,
    /// Value of `join.lateness`: longer than traffic pauses during a fault.
    pub lateness: &'static str,
    pub options: Options,
}

pub struct Fleet {
    pub kafka: Kafka,
    pub daemons: Vec<Daemon>,
    pub stream: Stream,
    watch: Watch,
    /// Instances that are not supposed to run now.
    gone: BTreeSet<usize>,
    pub state: String,
    load: Load,
    lateness: &'static str,
    /// Dropped last.
    _turn: MutexGuard<'static, ()>,
}

impl Fleet {
    /// Waits for its turn and for the first broker.
    pub fn start(plan: Plan) -> Fleet {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let Plan {
            n_instances,
            load,
            lateness,
            mut options,
        } = plan;
        options.properties.push(("group.min.session.timeout.ms", "1000"));
        let is_proxied = options.proxied;
        let kafka = Kafka::start_with(options);
        let topic = |stem: &str, settings: &[(&str, &str)]| {
            let name = kafka.unique(stem);
            kafka.create_topic(&name, load.n_partitions, settings);
            name
        };
        let (served, clicks, state) = (topic("served", &[]), topic("clicks", &[]), topic("state", &STATE));
        let brokers = match is_proxied {
            true => kafka.proxied_brokers(),
            false => kafka.brokers(),
        };
        let daemons: Vec<Daemon> = (0..n_instances)
            .map(|n| {
                Daemon::run(&config(
                    lateness,
                    &brokers,
                    &served,
                    &clicks,
                    "fleet",
                    &own(n, &state),
                ))
            })
            .collect();
        Fleet {
            stream: Stream::start(&kafka, &served, &clicks, load),
            watch: Watch::start(daemons.iter().map(Daemon::address)),
            kafka,
            daemons,
            gone: BTreeSet::new(),
            state,
            load,
            lateness,
            _turn: turn,
        }
    }

    /// Kills an instance: a crash.
    pub fn kill(&mut self, instance: usize) {
        self.watch.is_gone(instance);
        self.gone.insert(instance);
        self.daemons[instance].kill();
    }

    /// Stops an instance cleanly.
    #[track_caller]
    pub fn leave(&mut self, instance: usize) {
        self.daemons[instance].signal(libc::SIGTERM);
        let code = self.daemons[instance].wait_exit(wait::PATIENCE);
        self.watch.is_gone(instance);
        self.gone.insert(instance);
        assert_eq!(code, Some(0), "{}", self.daemons[instance].log());
    }

    /// Starts an instance again after a crash or a stop.
    pub fn start_again(&mut self, instance: usize) {
        self.gone.remove(&instance);
        self.daemons[instance].start_again();
        self.watch.is_back(instance);
    }

    /// Waits until an instance is at this step, and starts it again first if needed. The step's request or answer is kept.
    pub fn catch(&mut self, instance: usize, step: Step, kept: Kept) -> Arc<Gate> {
        let gate = step.gate(instance, kept, &self.state);
        if step.is_of_a_start() {
            self.kill(instance);
            self.kafka.set_gate(&gate);
            self.start_again(instance);
        } else {
            self.kafka.set_gate(&gate);
        }
        gate.wait_until_caught(&format!("{step:?} of instance {instance}"), wait::LONG);
        gate
    }

    /// Returns the settled numbers of all running instances together; `None` while one of them does not answer.
    fn settled(&self) -> Option<Arms> {
        let living = (0..self.daemons.len()).filter(|instance| !self.gone.contains(instance));
        let mut arms = Arms::new();
        for instance in living {
            add_settled(&scrape(&self.daemons[instance])?, &mut arms);
        }
        Some(arms)
    }

    /// Returns the records of each instance that answers, by topic and outcome. Late lists explain missing counts.
    fn outcomes(&self) -> Vec<Vec<String>> {
        let of_instance = |daemon| {
            let scrape = scrape(daemon)?;
            let samples = scrape.select("abgauge_records_total", &[]);
            let samples = samples.filter(|sample| sample.value > 0.0);
            let line = |sample: &Sample| {
                format!(
                    "{} {}: {}",
                    sample.labels["topic"], sample.labels["outcome"], sample.value
                )
            };
            Some(samples.map(line).collect())
        };
        self.daemons.iter().filter_map(of_instance).collect()
    }

    /// Waits until all traffic has settled, and asserts that it equals the recount. The traffic pauses meanwhile.
    ///
    /// Returns the number of records accepted so far.
    #[track_caller]
    pub fn assert_recounted(&mut self, after: &str) -> u64 {
        self.stream.pause();
        let expected = self.stream.expected();
        let mut counted = None;
        let equal = wait::try_until(PATIENCE, || {
            counted = self.settled();
            (counted.as_ref() == Some(&expected.arms)).then_some(())
        });
        assert!(
            equal.is_some(),
            "after {after}: counted {counted:#?}, sent {:#?}; records by instance: {:#?}",
            expected.arms,
            self.outcomes()
        );
        self.stream.go_on();
        let accepted = expected
            .outcomes
            .iter()
            .filter(|((_, outcome), _)| outcome == "accepted");
        let n_records = accepted.map(|(_, n)| n).sum::<f64>() as u64;
        println!("after {after}: equal, {n_records} records");
        n_records
    }

    /// Asserts the invariants at the end: the recount, the outcomes of all records, one chain of states, and all scrapes.
    ///
    /// Returns the number of accepted records, and the scrapes.
    #[track_caller]
    pub fn assert_whole(&mut self, after: &str) -> (u64, Seen) {
        let n_records = self.assert_recounted(after);
        self.stream.pause();
        self.assert_outcomes();
        let n_states = chain::assert_is_one(&self.kafka.read_all(&self.state));
        let seen = self.watch.seen();
        println!("{n_states} states were in force, one chain; {seen}");
        let broken: Vec<String> = [seen.falls(LEASE), seen.two_owners(LEASE)].concat();
        assert_eq!(broken, Vec::<String>::new());
        (n_records, seen)
    }

    /// Asserts that all records have an outcome that some sent record must have, or were read before.
    #[track_caller]
    fn assert_outcomes(&self) {
        let expected = self.stream.expected();
        let mut may_be: BTreeSet<&str> = expected.outcomes.keys().map(|(_, outcome)| &**outcome).collect();
        may_be.insert("replayed");
        for daemon in &self.daemons {
            let Some(scrape) = scrape(daemon) else { continue };
            let counted = scrape
                .select("abgauge_records_total", &[])
                .filter(|sample| sample.value > 0.0);
            let odd: Vec<_> = counted
                .filter(|sample| !may_be.contains(&*sample.labels["outcome"]))
                .collect();
            assert!(odd.is_empty(), "records of which there are none: {odd:#?}");
            assert_eq!(scrape.value("abgauge_exact", &[]), Some(1.0));
        }
    }

    /// Asserts that one instance, left with all partitions, shows the same digits as one without stored state that has read
    /// the whole log in one run. The fleet ends with this.
    #[track_caller]
    pub fn assert_as_one_run(&mut self) {
        self.stream.pause();
        let expected = self.stream.expected().arms;
        for instance in 1..self.daemons.len() {
            self.kill(instance);
        }
        let left = self.wait_for_all(0, &expected);
        let [served, clicks] = [self.stream.served(), self.stream.clicks()];
        let whole = config(
            self.lateness,
            &self.kafka.brokers(),
            served,
            clicks,
            "never-stopped",
            "",
        );
        self.daemons.push(Daemon::run(&whole));
        let one_run = self.wait_for_all(self.daemons.len() - 1, &expected);
        assert!(left.len() > expected.len(), "{left:#?}");
        assert_eq!(left, one_run);
    }

    /// Waits until an instance shows all of it, and returns its settled series since the start as they are written.
    #[track_caller]
    fn wait_for_all(&mut self, instance: usize, expected: &Arms) -> Vec<String> {
        let daemon = &self.daemons[instance];
        let shown = wait::try_until(WHOLE_LOG, || {
            let text = daemon.try_get("/metrics").ok()?.body;
            let mut arms = Arms::new();
            add_settled(&Exposition::parse(&text).ok()?, &mut arms);
            (arms == *expected).then_some(text)
        });
        let Some(shown) = shown else {
            panic!("instance {instance} does not show all: {}", daemon.log())
        };
        let total = "window=\"total\",view=\"settled\",scope=\"own\"";
        let is_settled = |line: &&str| line.contains(total);
        let mut lines: Vec<String> = shown.lines().filter(is_settled).map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    }

    /// Returns the partitions whose settled numbers an instance shows, by their arms; `None` while it does not answer.
    pub fn shown_by(&self, instance: usize) -> Option<BTreeSet<i32>> {
        let mut arms = Arms::new();
        add_settled(&scrape(&self.daemons[instance])?, &mut arms);
        Some(
            arms.keys()
                .map(|arm| Stream::partition_of_arm(arm, self.load))
                .collect(),
        )
    }

    /// Waits until these instances together show every partition.
    #[track_caller]
    pub fn wait_until_shown_by(&self, instances: &[usize]) {
        let all: BTreeSet<i32> = (0..self.load.n_partitions).collect();
        let mut shown = BTreeSet::new();
        let are_shown = wait::try_until(wait::LONG, || {
            shown = instances
                .iter()
                .filter_map(|&instance| self.shown_by(instance))
                .flatten()
                .collect();
            (shown == all).then_some(())
        });
        assert!(are_shown.is_some(), "instances {instances:?} show {shown:?}");
    }

    /// Waits until each of these shows something, and all together show every partition.
    #[track_caller]
    pub fn wait_until_each_shows(&self, instances: &[usize]) {
        let has_some = |instance: &usize| self.shown_by(*instance).is_some_and(|shown| !shown.is_empty());
        wait::until(
            &format!("instances {instances:?} to show something each"),
            wait::LONG,
            || instances.iter().all(has_some).then_some(()),
        );
        self.wait_until_shown_by(instances);
    }
}

/// Writes the logs of a failed fleet to the directory named by `ABGAUGE_FAULTS_LOGS`.
impl Drop for Fleet {
    fn drop(&mut self) {
        let Some(dir) = std::env::var_os("ABGAUGE_FAULTS_LOGS").filter(|_| std::thread::panicking()) else {
            return;
        };
        for (number, daemon) in self.daemons.iter().enumerate() {
            let file = std::path::Path::new(&dir).join(format!("instance-{number}.log"));
            let waits_for = daemon
                .try_get("/readyz")
                .map(|answer| answer.body)
                .unwrap_or_default();
            if let Err(error) = std::fs::write(&file, daemon.log() + &waits_for) {
                eprintln!("{}: {error}", file.display());
            }
        }
    }
}

/// Returns the settings of an instance that stores its state. The client id is how a proxy recognizes its connections.
fn own(instance: usize, state: &str) -> String {
    format!(
        r#"
        kafka.properties."client.id" = "instance-{instance}"
        state.topic = "{state}"
        state.interval = "1s"
        # So that a proxy can read the keys of what it keeps.
        kafka.properties."compression.codec" = "none"
        "#
    )
}

fn config(lateness: &str, brokers: &str, served: &str, clicks: &str, group: &str, more: &str) -> String {
    let more = format!(
        r#"
        kafka.start = "earliest"
        kafka.properties."session.timeout.ms" = {lease_ms}
        kafka.properties."heartbeat.interval.ms" = 500
        # So long the group waits for a member that was killed while it joined.
        kafka.properties."max.poll.interval.ms" = 3000
        metrics.k = [1, 5]
        export.views = ["settled"]
        export.windows = ["total"]
        {more}
        "#,
        lease_ms = LEASE.as_millis(),
    );
    traffic::config_with_lateness(lateness, brokers, served, clicks, group, &more)
}
