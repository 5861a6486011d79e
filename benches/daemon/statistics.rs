//! Cost of statistics: per record if lists are in three compared experiments, and per look at many experiments.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use abgauge_core::engine::Arm;
use abgauge_core::engine::settling::{Settled, SettledList};
use abgauge_core::ledger::{Epochs, Keep, Ledger, Users};
use abgauge_core::looks::{CellWindow, Experiment, LookRules, Looks, PairNews};
use abgauge_core::metrics::{ListOutcome, Measures, Ranking};
use abgauge_core::statistics::Settings;
use rand::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;

use crate::common::clock::thread_cpu_ns;
use crate::common::stream::{ARMS, EXPERIMENT, Shape, further_experiment};
use crate::common::summary::Summary;
use crate::figure::Figure;
use crate::load::{self, Topics};
use crate::reading::{self, By, Reader};
use crate::support::kafka::Kafka;
use crate::throughput::SPAN_MS;

/// Number of additional experiments of each list.
const N_MORE: usize = 2;
const N_USERS: u32 = 1_000_000;

/// Measures CPU per record of daemons that look at three experiments or at none. They take turns over the same topics.
pub fn run(kafka: &Kafka, n_lists: u64, n_rounds: usize) -> Vec<Figure> {
    let shape = Shape {
        n_users: N_USERS,
        n_more: N_MORE,
        ..Shape::default()
    };
    let topics = Topics::holding_of(kafka, &load::stream(n_lists, SPAN_MS), &shape);
    let daemon = |name: &str, config: String| Reader {
        name: name.to_owned(),
        by: By::Daemon(&topics, config),
    };
    let readers = [
        daemon("off", String::new()),
        daemon("on", compared()),
        daemon("off again", String::new()),
    ];
    let rounds = reading::rounds(kafka, n_rounds, &readers);
    let ratio = rounds.ratio(1, 0);
    topics.delete(kafka);
    vec![
        Figure::beside(
            "three experiments, statistics off: CPU µs per record",
            format!("{:.3}", rounds.cpu_us(0)),
        ),
        Figure::beside("A/A: off ÷ itself", rounds.ratio(2, 0)),
        Figure::at_most(
            "three experiments: CPU per record, statistics on ÷ off",
            ratio.median,
            1.10,
            ratio,
        ),
    ]
}

/// Returns configuration sections that compare all experiments of a list.
fn compared() -> String {
    let section = |experiment: &str, arms: &[&str]| {
        let share = 1.0 / arms.len() as f64;
        let shares: Vec<String> = arms.iter().map(|arm| format!("{arm} = {share}")).collect();
        let (control, shares) = (arms[0], shares.join(", "));
        format!("[experiments.{experiment}]\ncontrol = \"{control}\"\nshares = {{ {shares} }}\n")
    };
    let further = (0..N_MORE).map(|number| section(&further_experiment(number), &["grid", "rows"]));
    std::iter::once(section(EXPERIMENT, &ARMS))
        .chain(further)
        .collect()
}

const N_EXPERIMENTS: usize = 100;
const N_ARMS: usize = 10;
/// Event time between two looks in ms.
const EVERY_MS: i64 = 600_000;
/// Number of cells in the window.
const N_CELLS: i64 = 6;

/// Measures one look at 100 experiments with ten arms and ten metrics. All buckets are in use.
pub fn look(n_rounds: usize) -> Vec<Figure> {
    let [one, ten] = [1, 10].map(|k| NonZeroU32::new(k).expect("it is not 0"));
    let ranking = Ranking::new(&Measures {
        metrics: vec!["hit_rate", "ctr", "mrr", "ndcg"],
        ..Measures::usual(&[one, ten])
    });
    let names = (0..N_EXPERIMENTS).map(|number| format!("e{number}"));
    let shares: BTreeMap<String, f64> = (0..N_ARMS).map(|arm| (arm_name(arm), 0.1)).collect();
    let asked = |name: String| {
        let settings = Settings {
            shares: shares.clone(),
            primary: vec!["ctr@10".to_owned(), "hit_rate@10".to_owned()],
            ..Settings::new(&arm_name(0))
        };
        let experiment = Experiment {
            settings: Some(settings),
            ..Experiment::default()
        };
        (name, experiment)
    };
    let experiments: BTreeMap<String, Experiment> = names.map(asked).collect();
    let epochs = experiments.keys().map(|name| (name.clone(), Epochs::default()));
    let keep = Keep::of_users(Users::Of(epochs.collect()), EVERY_MS);
    // The window has few cells, so it fills up. Then each look adds a cell and removes one, as with the longest window.
    let window = CellWindow {
        name: "1h".to_owned(),
        n_cells: N_CELLS,
    };
    let mut looks = Looks::new(LookRules {
        every_ms: EVERY_MS,
        ranking: ranking.clone(),
        experiments,
        counts_users: true,
        window: Some(window),
        max_bytes: u64::MAX,
        bounds_waiting: false,
    });
    looks.take(PairNews::Owned([(0, true)].into()));
    let mut pair = TestPair::new(&ranking, &keep);
    let mut once = |n_lists| {
        looks.take(pair.settle(n_lists));
        let before_ns = thread_cpu_ns();
        let looked = looks.look().expect("it is due");
        assert_eq!(looked.experiments.len(), N_EXPERIMENTS);
        (thread_cpu_ns() - before_ns) as f64 / 1e6
    };
    // This fills all buckets, completes burn-in, and fills the window.
    once(10_000);
    (0..N_CELLS).for_each(|_| _ = once(1_000));
    let took_ms = Summary::of((0..n_rounds).map(|_| once(1_000)));
    vec![Figure::at_most(
        "a look over 100 experiments × 10 arms × 10 metrics: CPU ms",
        took_ms.median,
        50.0,
        took_ms,
    )]
}

fn arm_name(arm: usize) -> String {
    format!("a{arm}")
}

/// A pair in which every user is in one arm of each experiment.
struct TestPair {
    ledger: Ledger,
    random: Pcg64,
    number: i64,
    arms: Vec<Arm>,
}

impl TestPair {
    fn new(ranking: &Ranking, keep: &Keep) -> TestPair {
        let arms = (0..N_EXPERIMENTS * N_ARMS).map(|id| Arm {
            experiment: format!("e{}", id / N_ARMS).into(),
            arm: arm_name(id % N_ARMS).into(),
        });
        let arms: Vec<Arm> = arms.collect();
        let mut ledger = Ledger::new(ranking, keep);
        ledger.admit(&arms);
        TestPair {
            ledger,
            random: Pcg64::seed_from_u64(1),
            number: 0,
            arms,
        }
    }

    /// Settles `n_lists` lists, and completes a cell.
    fn settle(&mut self, n_lists: u32) -> PairNews {
        let start_ms = self.number * EVERY_MS;
        self.number += 1;
        for _ in 0..n_lists {
            let user = self.random.random_range(1..20_000_u32);
            let arm_of = |experiment: usize| {
                let arm = user as usize / (experiment % 7 + 1) % N_ARMS;
                (experiment * N_ARMS + arm) as u32
            };
            let arms: Vec<u32> = (0..N_EXPERIMENTS).map(arm_of).collect();
            let clicked = [self.random.random::<u32>() & self.random.random::<u32>() & 0x3ff];
            self.ledger.take(Settled::List(SettledList {
                start_ms,
                ts_ms: start_ms,
                user: NonZeroU32::new(user),
                arms: &arms,
                capped: &[],
                tags: &[0; 10],
                off_list: &[],
                outcome: ListOutcome {
                    n_items: 10,
                    clicked: &clicked,
                    n_off_list: 0,
                },
                items: None,
            }));
        }
        let end_ms = start_ms + EVERY_MS;
        self.ledger.take(Settled::Slot { start_ms, end_ms });
        PairNews::Reached {
            pair: 0,
            arms: std::mem::take(&mut self.arms),
            cells: self.ledger.take_complete(0),
            until_ms: Some(end_ms),
        }
    }
}
