//! Simulated users who see lists of two arms and click. They feed looks directly, without Kafka.

use std::num::NonZeroU32;

use abgauge_core::engine::Arm;
use abgauge_core::engine::settling::{Settled, SettledList};
use abgauge_core::ledger::{Epochs, Keep, Ledger, Users};
use abgauge_core::looks::{Experiment, Look, LookRules, Looks, PairNews};
use abgauge_core::metrics::{ListOutcome, Measures, Ranking};
use abgauge_core::statistics::Settings;

pub const EXPERIMENT: &str = "ranker";
const ARMS: [&str; 2] = ["base", "neural"];
const DAYS: i64 = 2;
const DAY_MS: i64 = 86_400_000;
/// Time between looks: four per day.
const EVERY_MS: i64 = DAY_MS / 4;
const LISTS_OF_A_USER: u32 = 2;

/// Traffic by arm.
#[derive(Debug, Clone, Copy)]
pub struct Story {
    pub users_a_day: [u32; 2],
    /// Probability that a list is clicked.
    pub clicked: [f64; 2],
}

/// Returns settings with equal shares, in which one day is enough for a decision.
pub fn experiment() -> Experiment {
    Experiment {
        settings: Some(Settings {
            shares: ARMS.map(|arm| (arm.to_owned(), 0.5)).into(),
            primary: vec!["hit_rate@1".to_owned()],
            min_days: 1.0,
            ..Settings::new(ARMS[0])
        }),
        ..Experiment::default()
    }
}

pub fn ranking() -> Ranking {
    Ranking::new(&Measures::usual(&[NonZeroU32::MIN]))
}

pub struct World {
    story: Story,
    ledger: Ledger,
    looks: Looks,
    random: u64,
}

impl World {
    pub fn new(story: Story) -> World {
        let users = Users::Of([(EXPERIMENT.to_owned(), Epochs::default())].into());
        let mut looks = Looks::new(LookRules {
            every_ms: EVERY_MS,
            ranking: ranking(),
            experiments: [(EXPERIMENT.to_owned(), experiment())].into(),
            counts_users: true,
            window: None,
            max_bytes: u64::MAX,
            bounds_waiting: false,
        });
        looks.take(PairNews::Owned([(0, true)].into()));
        World {
            story,
            ledger: Ledger::new(&ranking(), &Keep::of_users(users, EVERY_MS)),
            looks,
            random: 2_463_534_242,
        }
    }

    /// Returns all looks in order.
    pub fn looks(mut self) -> impl Iterator<Item = Look> {
        self.ledger.admit(&ARMS.map(|arm| Arm {
            experiment: EXPERIMENT.into(),
            arm: arm.into(),
        }));
        let mut arms = self.ledger.arms().to_vec();
        let n_slots = DAYS * DAY_MS / EVERY_MS;
        (0..n_slots).filter_map(move |slot| {
            self.settle(slot);
            self.looks.take(PairNews::Reached {
                pair: 0,
                arms: std::mem::take(&mut arms),
                cells: self.ledger.take_complete(0),
                until_ms: self.ledger.until_ms(),
            });
            self.looks.look()
        })
    }

    /// Settles the lists of a quarter of a day. Every user in it is new.
    fn settle(&mut self, slot: i64) {
        let (start_ms, end_ms) = (slot * EVERY_MS, (slot + 1) * EVERY_MS);
        for (arm, users_a_day) in self.story.users_a_day.into_iter().enumerate() {
            for user in 0..users_a_day / 4 {
                let user = 1 + arm as u32 + 2 * (slot as u32 * users_a_day + user);
                for _ in 0..LISTS_OF_A_USER {
                    let is_clicked = self.chance() < self.story.clicked[arm];
                    self.tell(start_ms, user, arm as u32, is_clicked);
                }
            }
        }
        self.ledger.take(Settled::Slot { start_ms, end_ms });
        self.ledger.cover_until(Some(end_ms));
    }

    fn tell(&mut self, start_ms: i64, user: u32, arm: u32, is_clicked: bool) {
        self.ledger.take(Settled::List(SettledList {
            start_ms,
            ts_ms: start_ms + 5,
            user: NonZeroU32::new(user),
            arms: &[arm],
            capped: &[],
            tags: &[1, 2, 3],
            off_list: &[],
            outcome: ListOutcome {
                n_items: 3,
                clicked: &[u32::from(is_clicked)],
                n_off_list: 0,
            },
            items: None,
        }));
    }

    /// Returns a number from 0 to 1 by xorshift, the same sequence in each run.
    fn chance(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }
}
