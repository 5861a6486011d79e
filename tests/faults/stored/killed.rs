//! Instances of one group that are killed at random points: what they have settled adds up to a recount.
//!
//! `cargo test` kills ten times. For as often as you like:
//!
//! ```sh
//! ABGAUGE_KILLS=200 tests/run --test faults -- killed --nocapture
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use rand::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::STATE;
use crate::chaos::stream::{N_PARTITIONS, OfArm, Stream};
use crate::support::daemon::Daemon;
use crate::support::exposition::Exposition;
use crate::support::kafka::{Kafka, Options};
use crate::support::wait;
use crate::traffic::{self, now_ms, scrape};

const N_INSTANCES: usize = 3;
const KILLS: usize = 10;
/// Kills between two looks at the numbers.
const KILLS_A_ROUND: usize = 5;

type Arms = BTreeMap<String, OfArm>;

/// What all instances together have settled since the start.
fn settled(daemons: &[Daemon]) -> Option<Arms> {
    let scrapes: Option<Vec<Exposition>> = daemons.iter().map(scrape).collect();
    let mut arms = Arms::new();
    for scrape in scrapes? {
        add(&scrape, "abgauge_lists", &[], &mut arms, |arm| &mut arm.lists);
        add(&scrape, "abgauge_clicks", &[], &mut arms, |arm| &mut arm.clicks);
        let at_1 = [("metric", "hit_rate"), ("k", "1")];
        add(&scrape, "abgauge_metric_numerator", &at_1, &mut arms, |arm| {
            &mut arm.hits_at_1
        });
    }
    Some(arms)
}

fn add(
    scrape: &Exposition,
    name: &str,
    more: &[(&str, &str)],
    arms: &mut Arms,
    field: fn(&mut OfArm) -> &mut f64,
) {
    let labels = [&[("view", "settled"), ("window", "total")], more].concat();
    for sample in scrape.select(name, &labels) {
        *field(arms.entry(sample.labels["arm"].clone()).or_default()) += sample.value;
    }
}

#[test]
fn instances_that_are_killed_at_random_points_add_up_to_a_recount() {
    let n_kills = std::env::var("ABGAUGE_KILLS").map_or(KILLS, |n| n.parse().expect("a whole number"));
    let seed = now_ms() as u64;
    println!("seed {seed}");
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let kafka = Kafka::start_with(Options {
        properties: vec![("group.min.session.timeout.ms", "1000")],
        ..Options::default()
    });
    let topic = |stem: &str, settings: &[(&str, &str)]| {
        let name = kafka.unique(stem);
        kafka.create_topic(&name, N_PARTITIONS, settings);
        name
    };
    let (served, clicks, state) = (topic("served", &[]), topic("clicks", &[]), topic("state", &STATE));
    let more = format!(
        r#"
        kafka.start = "earliest"
        kafka.properties."session.timeout.ms" = 2000
        kafka.properties."heartbeat.interval.ms" = 500
        # So long the group waits for a member that was killed while it joined.
        kafka.properties."max.poll.interval.ms" = 2000
        state.topic = "{state}"
        state.interval = "1s"
        "#
    );
    let config = traffic::config(&kafka.brokers(), &served, &clicks, "killed", &more);
    let mut daemons: Vec<Daemon> = (0..N_INSTANCES).map(|_| Daemon::run(&config)).collect();
    let stream = Stream::start(&kafka, &served, &clicks);
    for n in 1..=n_kills {
        let pause = Duration::from_millis(random.random_range(100..4_000));
        wait::try_until(pause, || None::<()>);
        let victim = random.random_range(0..N_INSTANCES);
        daemons[victim].kill();
        daemons[victim].start_again();
        if n % KILLS_A_ROUND == 0 || n == n_kills {
            stream.pause();
            let expected = stream.expected().arms;
            let mut counted = None;
            let equal = wait::try_until(wait::LONG, || {
                counted = settled(&daemons);
                (counted.as_ref() == Some(&expected)).then_some(())
            });
            assert!(
                equal.is_some(),
                "after {n} kills: counted {counted:#?}, sent {expected:#?}"
            );
            println!(
                "after {n} kills: equal, {} lists",
                expected.values().map(|arm| arm.lists).sum::<f64>()
            );
            stream.go_on();
        }
    }
}
