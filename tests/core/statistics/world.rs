//! Small experiments with a known truth: totals that grow from look to look.

use std::collections::BTreeMap;

use abgauge_core::statistics::{
    ArmTotals, ComparisonReport, Epoch, Goal, LookSpan, RefusedLists, Settings, Terms, TestState, Totals,
    look,
};

pub const DAY_MS: i64 = 86_400_000;
const START_MS: i64 = 1_763_596_800_000;
const N_BUCKETS: usize = 256;

/// Behavior of an arm per day.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    /// Lists by user bucket.
    pub lists: f64,
    /// Share of lists with a click.
    pub rate: f64,
    /// First exposures.
    pub users: f64,
}

impl Default for Truth {
    fn default() -> Truth {
        Truth {
            lists: 40.0,
            rate: 0.25,
            users: 400.0,
        }
    }
}

/// A running experiment.
pub struct World {
    pub settings: Settings,
    pub kept: TestState,
    pub totals: Totals,
    seed: u64,
    day: f64,
}

impl World {
    /// Creates arms `base` and `neural` at equal shares, with `hit_rate` as the primary.
    pub fn new() -> World {
        let mut settings = Settings::new("base");
        settings.shares = shares(&[("base", 0.5), ("neural", 0.5)]);
        settings.primary = vec!["hit_rate".to_owned()];
        World {
            totals: Totals {
                epochs: vec![Epoch {
                    shares: settings.shares.clone(),
                    arms: BTreeMap::new(),
                }],
                multi_arm_users: Some(0.0),
            },
            settings,
            kept: TestState::default(),
            seed: 1,
            day: 0.0,
        }
    }

    pub fn seeded(seed: u64) -> World {
        World { seed, ..World::new() }
    }

    pub fn with(mut self, set: impl Fn(&mut Settings)) -> World {
        set(&mut self.settings);
        self
    }

    /// Runs for some days, with `neural` as given.
    pub fn go(&mut self, days: f64, neural: Truth) -> ComparisonReport {
        self.go_with(days, &[("base", Truth::default()), ("neural", neural)])
    }

    pub fn go_with(&mut self, days: f64, arms: &[(&str, Truth)]) -> ComparisonReport {
        for (name, truth) in arms {
            self.add(name, days, *truth);
        }
        self.look(days)
    }

    /// Takes one look some days later, without new lists.
    pub fn look(&mut self, days: f64) -> ComparisonReport {
        self.day += days;
        let time = self.time();
        look(&self.settings, &mut self.kept, &self.totals, time)
    }

    /// Returns the time of a look now.
    pub fn time(&self) -> LookSpan {
        LookSpan {
            start_ms: START_MS,
            as_of_ms: START_MS + (self.day * DAY_MS as f64).round() as i64,
        }
    }

    fn add(&mut self, name: &str, days: f64, truth: Truth) {
        let mut drawn = Vec::new();
        for _ in 0..N_BUCKETS {
            let lists = (truth.lists * days * (0.5 + self.random())).round();
            let rate = truth.rate * (0.8 + 0.4 * self.random());
            drawn.push([lists, (lists * rate).round()]);
        }
        let epoch = self.totals.epochs.last_mut().expect("there is one");
        let arm = epoch.arms.entry(name.to_owned()).or_insert_with(empty);
        arm.users = arm.users.map(|users| users + truth.users * days);
        for (bucket, [lists, hits]) in drawn.into_iter().enumerate() {
            arm.lists[bucket] += lists;
            arm.hits[bucket] += hits;
            arm.clicks[bucket] += hits;
            let terms = arm.metrics.entry("hit_rate".to_owned()).or_insert_with(no_terms);
            terms.numerators[bucket] += hits;
            terms.denominators[bucket] += lists;
            let misses = arm.metrics.entry("miss_rate".to_owned()).or_insert_with(no_terms);
            misses.numerators[bucket] += lists - hits;
            misses.denominators[bucket] += lists;
        }
    }

    /// Returns a number in [0, 1), by splitmix64.
    fn random(&mut self) -> f64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn empty() -> ArmTotals {
    ArmTotals {
        lists: vec![0.0; N_BUCKETS],
        hits: vec![0.0; N_BUCKETS],
        clicks: vec![0.0; N_BUCKETS],
        users: Some(0.0),
        lists_without_user: 0.0,
        capped_lists: 0.0,
        top_user_lists: None,
        refused: RefusedLists::default(),
        metrics: BTreeMap::new(),
    }
}

fn no_terms() -> Terms {
    Terms {
        numerators: vec![0.0; N_BUCKETS],
        denominators: vec![0.0; N_BUCKETS],
    }
}

pub fn shares(arms: &[(&str, f64)]) -> BTreeMap<String, f64> {
    arms.iter()
        .map(|(arm, share)| ((*arm).to_owned(), *share))
        .collect()
}

pub fn better() -> Truth {
    Truth {
        rate: 0.30,
        ..Truth::default()
    }
}

pub fn worse() -> Truth {
    Truth {
        rate: 0.20,
        ..Truth::default()
    }
}

pub fn non_inferior(settings: &mut Settings) {
    settings.goal = Goal::NonInferior;
}
