//! Prints what the pictures of docs/statistics.md show: experiments without an effect, looked at every ten minutes for a week,
//! and one for two weeks whose effect changes.
//!
//! ```text
//! cargo run --release --example peeking > docs/statistics.txt
//! ```
//! `.ci/pictures` draws from it, and tests/core/statistics/ holds it to the code.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use abgauge_core::statistics::{
    ArmPair, ArmTotals, Comparison, DecidedLook, Effect, Epoch, EpochWeights, Interval, LookSpan, RatioSums,
    RefusedLists, Settings, Terms, TestState, Totals, compare, look,
};

/// Seeds 1 to this many.
const N_EXPERIMENTS: u64 = 400;
/// The experiment whose looks are drawn.
const SHOWN: u64 = 1;

/// Arms that do not differ.
const ALIKE: Plan = Plan {
    n_users: 5_000,
    n_weeks: 1,
    effect: |_| 0.0,
};

/// An effect whose average over each week is 0. There are more users, so that the band shows it on day 2.
const CHANGING: Plan = Plan {
    n_users: 20_000,
    n_weeks: 2,
    effect: |day| if day % 7.0 < 2.0 { 0.12 } else { -0.048 },
};

const N_BUCKETS: usize = 256;
const ALPHA: f64 = 0.05;

/// In a week.
const N_LOOKS: usize = 1_008;
const LOOKS_AN_HOUR: usize = 6;
const LOOK_MS: i64 = 600_000;

const METRIC: &str = "hit_rate@10";

fn main() {
    print!("{}{}", text(1..=N_EXPERIMENTS), changing());
}

/// The size of an experiment, and what its arm does.
struct Plan {
    /// In each arm.
    n_users: usize,
    n_weeks: usize,
    /// Lift of the click rate of the arm, by days since the start.
    effect: fn(f64) -> f64,
}

impl Plan {
    /// Effect during the hour that ends at `hour`. It changes on the hour only.
    fn effect_of(&self, hour: usize) -> f64 {
        (self.effect)((hour - 1) as f64 / 24.0)
    }

    /// True lift since the start. Each hour counts alike, since traffic is even.
    fn lift_since_start(&self, hour: usize) -> f64 {
        let effects = (1..=hour).map(|hour| self.effect_of(hour));
        effects.sum::<f64>() / hour as f64
    }
}

/// Prints the experiment whose effect changes.
pub fn changing() -> String {
    let mut text = String::new();
    Course::of(&CHANGING, SHOWN).write_change(&CHANGING, &mut text);
    text
}

/// What experiments of these seeds give.
pub fn text(seeds: impl Iterator<Item = u64>) -> String {
    let mut text = String::new();
    for seed in seeds {
        let course = Course::of(&ALIKE, seed);
        if seed == SHOWN {
            course.write_looks(&mut text);
        }
        course.write_end(seed, &mut text);
    }
    text
}

/// A list, as much of it as the statistics take.
struct List {
    look: usize,
    arm: usize,
    bucket: usize,
    is_hit: bool,
}

/// What one look shows: lifts, in percent.
struct Seen {
    lift: f64,
    /// Fixed beforehand, and looked at once.
    fixed: Interval,
    /// Holds at all looks.
    sequence: Interval,
}

/// An experiment from look to look.
struct Course {
    /// None before burn-in is done.
    looks: Vec<Option<Seen>>,
    /// Each decision look.
    decisions: Vec<DecidedLook>,
    /// At the end, of independent lists: half the width of the interval of the lift, in percent.
    by_list: f64,
}

impl Course {
    fn of(plan: &Plan, seed: u64) -> Course {
        let mut lists = lists(plan, &mut Random(seed));
        lists.sort_by_key(|list| list.look);
        let mut lists = lists.into_iter().peekable();
        let (settings, mut kept, mut totals) = (settings(), TestState::default(), nothing());
        let (mut looks, mut decisions) = (Vec::new(), Vec::new());
        for number in 0..plan.n_weeks * N_LOOKS {
            while let Some(list) = lists.next_if(|list| list.look == number) {
                add(&mut totals, &list);
            }
            let time = LookSpan {
                start_ms: 0,
                as_of_ms: (number as i64 + 1) * LOOK_MS,
            };
            let report = look(&settings, &mut kept, &totals, time);
            let arm = &report.arms["arm"];
            let sequence = arm.metrics.get(METRIC).and_then(|metric| metric.interval);
            looks.push(sequence.and_then(|sequence| seen(&totals, sequence)));
            // A report repeats the last decision look until the next one.
            if let Some(decided) = &arm.decided
                && decisions.last() != Some(decided)
            {
                decisions.push(decided.clone());
            }
        }
        Course {
            looks,
            decisions,
            by_list: by_list(&totals),
        }
    }

    fn write_looks(&self, text: &mut String) {
        for (hour, seen) in self.hours() {
            let [fixed, sequence] = [seen.fixed, seen.sequence].map(ends);
            writeln!(text, "look {hour} {:.2} {fixed} {sequence}", seen.lift).expect("a String takes all");
        }
    }

    /// Writes the sequence and the true lift, hour by hour, then each decision look.
    fn write_change(&self, plan: &Plan, text: &mut String) {
        for (hour, seen) in self.hours() {
            let effect = 100.0 * plan.effect_of(hour);
            let truth = 100.0 * plan.lift_since_start(hour);
            let (lift, sequence) = (seen.lift, ends(seen.sequence));
            writeln!(text, "change {hour} {effect:.1} {truth:.2} {lift:.2} {sequence}")
                .expect("a String takes all");
        }
        for decided in &self.decisions {
            let metric = &decided.metrics[METRIC];
            let (at, lift, interval) = decided
                .at
                .zip(metric.lift)
                .zip(metric.interval)
                .map(|((at, lift), interval)| (at, 100.0 * lift, ends(percent(interval))))
                .expect("burn-in is done after a week");
            writeln!(text, "decision {} {lift:.2} {interval}", at.day).expect("a String takes all");
        }
    }

    /// The looks on the hour, from burn-in on.
    fn hours(&self) -> impl Iterator<Item = (usize, &Seen)> {
        let on_the_hour = self.looks.iter().skip(LOOKS_AN_HOUR - 1).step_by(LOOKS_AN_HOUR);
        let hours = (1..).zip(on_the_hour);
        hours.filter_map(|(hour, seen)| Some((hour, seen.as_ref()?)))
    }

    /// The look from which on each interval was once without 0, and widths at the end.
    fn write_end(&self, seed: u64, text: &mut String) {
        let first = |interval: &dyn Fn(&Seen) -> Interval| {
            let misses = |seen: &Seen| interval(seen).lower > 0.0 || interval(seen).upper < 0.0;
            let at = self
                .looks
                .iter()
                .position(|seen| seen.as_ref().is_some_and(misses));
            at.map_or("-".to_owned(), |at| (at + 1).to_string())
        };
        let [fixed, sequence] = [first(&|seen| seen.fixed), first(&|seen| seen.sequence)];
        let end = self
            .looks
            .last()
            .and_then(Option::as_ref)
            .expect("burn-in is done after a week");
        let half = (end.fixed.upper - end.fixed.lower) / 2.0;
        let (lift, by_list) = (end.lift, self.by_list);
        writeln!(
            text,
            "experiment {seed} {fixed} {sequence} {lift:.2} {half:.2} {by_list:.2}"
        )
        .expect("a String takes all");
    }
}

/// Users of both arms, who come as often as they like and each have a click rate of their own.
fn lists(plan: &Plan, random: &mut Random) -> Vec<List> {
    let mut lists = Vec::new();
    for user in 0..2 * plan.n_users {
        let bucket = (random.next() * N_BUCKETS as f64) as usize;
        // Log-normal, 4 in the mean: one user in a hundred has a seventh of all lists.
        let lists_a_week = 4.0 * (1.3 * random.normal() - 1.3 * 1.3 / 2.0).exp();
        // Beta(1, 3), 0.25 in the mean.
        let rate = 1.0 - random.next().powf(1.0 / 3.0);
        let mut week = 0.0;
        loop {
            week -= (1.0 - random.next()).ln() / lists_a_week;
            if week >= plan.n_weeks as f64 {
                break;
            }
            let arm = user % ARMS.len();
            let effect = match ARMS[arm] {
                "control" => 0.0,
                _ => (plan.effect)(7.0 * week),
            };
            lists.push(List {
                look: (week * N_LOOKS as f64) as usize,
                arm,
                bucket,
                is_hit: random.next() < rate * (1.0 + effect),
            });
        }
    }
    lists
}

const ARMS: [&str; 2] = ["arm", "control"];

fn settings() -> Settings {
    Settings {
        shares: ARMS.map(|arm| (arm.to_owned(), 0.5)).into(),
        primary: vec![METRIC.to_owned()],
        alpha: ALPHA,
        ..Settings::new("control")
    }
}

fn nothing() -> Totals {
    let column = || vec![0.0; N_BUCKETS];
    let arm = || ArmTotals {
        lists: column(),
        hits: column(),
        clicks: column(),
        users: None,
        lists_without_user: 0.0,
        capped_lists: 0.0,
        top_user_lists: None,
        refused: RefusedLists::default(),
        metrics: BTreeMap::from([(
            METRIC.to_owned(),
            Terms {
                numerators: column(),
                denominators: column(),
            },
        )]),
    };
    Totals {
        epochs: vec![Epoch {
            shares: settings().shares,
            arms: ARMS.map(|name| (name.to_owned(), arm())).into(),
        }],
        multi_arm_users: None,
    }
}

fn add(totals: &mut Totals, list: &List) {
    let arm = totals.epochs[0]
        .arms
        .get_mut(ARMS[list.arm])
        .expect("both are there");
    let terms = arm.metrics.get_mut(METRIC).expect("it is there");
    let hit = f64::from(u8::from(list.is_hit));
    for column in [&mut arm.hits, &mut arm.clicks, &mut terms.numerators] {
        column[list.bucket] += hit;
    }
    for column in [&mut arm.lists, &mut terms.denominators] {
        column[list.bucket] += 1.0;
    }
}

fn seen(totals: &Totals, sequence: Interval) -> Option<Seen> {
    let lift = compared(totals).lift?;
    Some(Seen {
        lift: 100.0 * lift.value,
        fixed: percent(Effect::interval_at_one_look(&lift, ALPHA)?),
        sequence: percent(sequence),
    })
}

fn percent(of: Interval) -> Interval {
    Interval {
        lower: 100.0 * of.lower,
        upper: 100.0 * of.upper,
    }
}

fn ends(of: Interval) -> String {
    format!("{:.2} {:.2}", of.lower, of.upper)
}

fn compared(totals: &Totals) -> Comparison {
    let [arm, control] = ARMS.map(|name| {
        let arm = &totals.epochs[0].arms[name];
        RatioSums {
            lists: &arm.lists,
            numerators: &arm.metrics[METRIC].numerators,
            denominators: &arm.metrics[METRIC].denominators,
        }
    });
    compare(&[ArmPair { arm, control }], EpochWeights::Overlap).expect("both have lists")
}

/// What those get who take each list as independent: half the width of the 95% interval of the lift, in percent.
fn by_list(totals: &Totals) -> f64 {
    let Comparison { arm, control, .. } = compared(totals);
    let variance = |rate: f64, name: &str| {
        let lists: f64 = totals.epochs[0].arms[name].lists.iter().sum();
        rate * (1.0 - rate) / lists
    };
    let ratio = arm / control;
    let of_lift = (variance(arm, "arm") + ratio * ratio * variance(control, "control")) / (control * control);
    100.0 * 1.959_964 * of_lift.sqrt()
}

/// splitmix64.
struct Random(u64);

impl Random {
    /// In [0, 1).
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let [radius, angle] = [1.0 - self.next(), self.next()];
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}
