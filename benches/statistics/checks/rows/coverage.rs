//! Coverage: the share of intervals that contain the true value.

use abgauge::tools::simulate::Activity;
use abgauge_core::engine::Arm;
use abgauge_core::ledger::BucketSums;
use abgauge_core::looks::arm_totals;
use abgauge_core::metrics::Ranking;
use abgauge_core::statistics::{
    ArmPair, ArmTotals, Comparison, EpochWeights, Interval, RatioSums, Validity, compare,
};

use crate::checks::row::{Bound, Figure, Row, indicator};
use crate::checks::scenario::{ARM, CONTROL, METRICS, Scale, Scenario, Told, WEEK_MS};
use crate::checks::watch::{Watch, asked, report, with_validity};

const ALPHA: f64 = 0.05;

/// One look at the end of a week of 5,000 heavy-tailed users per arm, with no effect and with an effect of +10%.
pub fn coverage(scale: Scale) -> Row {
    let without = Scenario::new(scale, Activity::Heavy, 10_000.0, 20.0);
    let with = without.clone().with(|leg| leg.effect = 0.1);
    let of = |what: &str, bound: Bound| {
        METRICS.map(|metric| Figure::share(format!("Single look at the end: {what}, {metric}"), bound))
    };
    let mut figures = Vec::new();
    figures.extend(of("A/A alarm", Bound::Within(0.035, 0.065)));
    figures.extend(of("95% interval of Δ under +10%", Bound::Within(0.935, 0.966)));
    figures.extend(of(
        "95% interval of the lift under +10%",
        Bound::Within(0.93, 0.965),
    ));
    figures.push(Figure::share(
        "Single look at the end: naive 95% interval by request, hit_rate",
        Bound::AtMost(0.6),
    ));
    let truths = METRICS.map(|metric| with.truth(metric));
    Row::new("single", 1000, figures, move |seed| {
        let mut numbers = Vec::new();
        let (watch, _) = at_end(&without, seed);
        numbers.extend(METRICS.map(|metric| indicator(watch.alarms(metric, ALPHA))));
        let (watch, sums) = at_end(&with, seed);
        let differences = METRICS.map(|metric| sums.compare(metric).difference.expect("it spreads"));
        for (effect, [control, arm]) in differences.iter().zip(truths) {
            let interval = effect.interval_at_one_look(ALPHA);
            numbers.push(indicator(holds(interval, arm - control)));
        }
        for (metric, [control, arm]) in METRICS.iter().zip(truths) {
            numbers.push(indicator(holds(
                watch.metric(metric).interval,
                arm / control - 1.0,
            )));
        }
        let [control, arm] = truths[0];
        numbers.push(indicator(holds(sums.naive("hit_rate"), arm - control)));
        numbers
    })
}

/// Share of runs in which the sequence's interval misses the true lift at any look. 5,000 heavy-tailed users per arm.
pub fn misses(scale: Scale, effect: f64) -> Row {
    let scenario = Scenario::new(scale, Activity::Heavy, 10_000.0, 20.0).with(|leg| leg.effect = effect);
    let figure = |metric: &str| {
        let percent = 100.0 * effect;
        Figure::share(
            format!("Sequence misses a true {percent:+.0}% at any time, {metric}"),
            Bound::AtMost(0.05),
        )
    };
    let truths = METRICS.map(|metric| scenario.truth(metric));
    let figures = METRICS.map(figure).to_vec();
    Row::new("misses", 150, figures, move |seed| {
        let mut watch = Watch::new(&scenario, asked(&scenario), scale.look_ms);
        let mut missed = [false; METRICS.len()];
        scenario.replay(seed, scale.look_ms, |reported| {
            watch.take_each(reported, |look| {
                let Some(arm) = report(look).arms.get(ARM) else {
                    return;
                };
                for (index, [control, treated]) in truths.into_iter().enumerate() {
                    let interval = arm.metrics.get(METRICS[index]).and_then(|metric| metric.interval);
                    missed[index] |= interval.is_some() && !holds(interval, treated / control - 1.0);
                }
            });
        });
        assert!(watch.metric(METRICS[0]).interval.is_some(), "burn-in is done");
        missed.map(indicator).to_vec()
    })
}

fn holds(interval: Option<Interval>, truth: f64) -> bool {
    interval.is_some_and(|interval| interval.lower <= truth && truth <= interval.upper)
}

/// Returns the only look, and the sums behind it.
pub fn at_end(scenario: &Scenario, seed: u64) -> (Watch, Sums) {
    let mut watch = Watch::new(scenario, with_validity(scenario, Validity::OneLook), WEEK_MS);
    let mut sums = Sums::new(scenario);
    scenario.replay(seed, WEEK_MS, |reported| {
        watch.take(reported);
        sums.take(reported);
    });
    (watch, sums)
}

/// Sums by bucket of control and first treatment, for values that looks do not show: Δ, and variances by request.
pub struct Sums {
    ranking: Ranking,
    arms: Vec<Arm>,
    control: BucketSums,
    arm: BucketSums,
}

impl Sums {
    pub fn new(scenario: &Scenario) -> Sums {
        Sums {
            ranking: scenario.ranking(),
            arms: Vec::new(),
            control: BucketSums::new(),
            arm: BucketSums::new(),
        }
    }

    pub fn take(&mut self, reported: &Told) {
        self.arms.extend_from_slice(&reported.arms);
        for (_, cell) in &reported.cells {
            for (id, more) in cell.numbers().buckets {
                match &*self.arms[*id as usize].arm {
                    CONTROL => self.control.merge(more),
                    ARM => self.arm.merge(more),
                    _ => {}
                }
            }
        }
    }

    fn totals(&self) -> [ArmTotals; 2] {
        [&self.control, &self.arm].map(|sums| arm_totals(&[sums], None, &self.ranking))
    }

    pub fn compare(&self, metric: &str) -> Comparison {
        let [control, arm] = self.totals();
        let pair = ArmPair {
            arm: ratio(&arm, metric),
            control: ratio(&control, metric),
        };
        compare(&[pair], EpochWeights::Overlap).expect("both arms have lists")
    }

    /// R ± 1.96 √(R(1 − R)/lists) of a metric that is 0 or 1 in each list, as if lists of one user were independent.
    fn naive(&self, metric: &str) -> Option<Interval> {
        let [control, arm] = self.totals().map(|totals| {
            let lists: f64 = totals.lists.iter().sum();
            let rate = totals.metrics[metric].numerators.iter().sum::<f64>() / lists;
            (rate, rate * (1.0 - rate) / lists)
        });
        Interval::around(arm.0 - control.0, 1.96 * (arm.1 + control.1).sqrt())
    }
}

fn ratio<'a>(totals: &'a ArmTotals, metric: &str) -> RatioSums<'a> {
    let terms = &totals.metrics[metric];
    RatioSums {
        lists: &totals.lists,
        numerators: &terms.numerators,
        denominators: &terms.denominators,
    }
}
