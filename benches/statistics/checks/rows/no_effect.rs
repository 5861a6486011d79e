//! Arms that do not differ: how often a difference is reported nevertheless.

use abgauge::tools::simulate::Activity;
use abgauge_core::statistics::{EpochWeights, Settings, Validity};

use crate::checks::row::{Bound, Figure, Row, indicator};
use crate::checks::scenario::{ARM, DAY_MS, Leg, METRICS, Scale, Scenario};
use crate::checks::watch::{Watch, asked, planned, with_validity};

const ALPHA: f64 = 0.05;

/// Two arms of 5,000 heavy-tailed returning users each, checked at every look: sequence, strict, planned, harm and the fixed
/// test.
pub fn no_effect(scale: Scale) -> Row {
    let scenario = Scenario::new(scale, Activity::Heavy, 10_000.0, 20.0);
    let of = |name: &str, bound: Bound| {
        METRICS.map(|metric| Figure::share(format!("A/A, peeked: {name}, {metric}"), bound))
    };
    let mut figures = Vec::new();
    figures.extend(of("sequence", Bound::AtMost(0.04)));
    figures.extend(of("strict", Bound::AtMost(0.005)));
    figures.extend(of("planned", Bound::AtMost(0.06)));
    figures.extend(of("the fixed test", Bound::AtLeast(0.15)));
    figures.push(Figure::share(
        "A/A, peeked: harm over 3 metrics",
        Bound::AtMost(0.04),
    ));
    Row::new("aa", 400, figures, move |seed| {
        let watch = |settings| Watch::new(&scenario, settings, scale.look_ms);
        let mut watches = [
            watch(asked(&scenario)),
            watch(with_validity(&scenario, Validity::Strict)),
            watch(planned(&scenario)),
            watch(with_validity(&scenario, Validity::OneLook)),
        ];
        scenario.replay(seed, scale.look_ms, |reported| {
            watches.iter_mut().for_each(|watch| watch.take(reported))
        });
        let alarms = |watch: &Watch| METRICS.map(|metric| indicator(watch.alarms(metric, ALPHA)));
        let mut numbers: Vec<f64> = watches[..2].iter().flat_map(alarms).collect();
        numbers.extend(METRICS.map(|metric| indicator(watches[2].decides(metric, ALPHA))));
        numbers.extend(alarms(&watches[3]));
        numbers.push(indicator(watches[0].harms()));
        numbers
    })
}

/// Five arms of 5,000 heavy-tailed users and three metrics: any false alarm among the twelve.
pub fn holm(scale: Scale) -> Row {
    let scenario = Scenario {
        n_arms: 5,
        ..Scenario::new(scale, Activity::Heavy, 25_000.0, 10.0)
    };
    let share = |what: &str, bound| Figure::share(format!("Holm, 5 arms × 3 metrics, peeked: {what}"), bound);
    let figures = vec![
        share("sequence", Bound::AtMost(0.05)),
        share("planned", Bound::AtMost(0.05)),
        share("sequence, uncorrected", Bound::Shown),
    ];
    Row::new("holm", 80, figures, move |seed| {
        let watch = |settings| Watch::new(&scenario, settings, scale.look_ms);
        let mut watches = [asked(&scenario), planned(&scenario)].map(watch);
        scenario.replay(seed, scale.look_ms, |reported| {
            watches.iter_mut().for_each(|watch| watch.take(reported))
        });
        let [sequence, planned] = watches.each_ref().map(|watch| {
            let arms = watch.report().arms.values();
            let metrics = arms.flat_map(|arm| METRICS.map(|metric| arm.metrics[metric]));
            metrics.fold([1.0_f64; 3], |[adjusted, own, decided], metric| {
                let [a, p] = [metric.p_adjusted, metric.p].map(|p| p.expect("burn-in is done"));
                let d = metric.decision.expect("the week is over").metric.p_adjusted;
                [adjusted.min(a), own.min(p), decided.min(d)]
            })
        });
        [sequence[0], planned[2], sequence[1]]
            .map(|p| indicator(p <= ALPHA))
            .to_vec()
    })
}

/// A ramp from 1% over 10% to 50% of 60,000 moderate users, while the base rate rises by half.
pub fn ramp(scale: Scale) -> Row {
    let leg = |days, share: f64, appeal| Leg {
        days,
        shares: vec![1.0 - share, share],
        appeal,
        ..Leg::default()
    };
    let scenario = Scenario {
        legs: vec![leg(2, 0.01, 0.20), leg(2, 0.1, 0.25), leg(3, 0.5, 0.30)],
        ..Scenario::new(scale, Activity::Moderate, 60_000.0, 3.0)
    };
    let of = |what: &str, bound: Bound| {
        METRICS
            .map(|metric| Figure::share(format!("Ramp 1→10→50%, base rate × 1.5, {what}, {metric}"), bound))
    };
    let mut figures = Vec::new();
    figures.extend(of("`overlap`: sequence", Bound::AtMost(0.05)));
    figures.extend(of(
        "`overlap`: single look at the end",
        Bound::Within(0.035, 0.065),
    ));
    figures.extend(of("`lists`: sequence", Bound::Shown));
    Row::new("ramp", 200, figures, move |seed| {
        let lists = Settings {
            epoch_weights: EpochWeights::Lists,
            ..asked(&scenario)
        };
        let watch = |settings| Watch::new(&scenario, settings, scale.look_ms);
        let mut watches = [watch(asked(&scenario)), watch(lists)];
        scenario.replay(seed, scale.look_ms, |reported| {
            watches.iter_mut().for_each(|watch| watch.take(reported))
        });
        let mut single = Watch::new(&scenario, with_validity(&scenario, Validity::OneLook), DAY_MS);
        scenario.replay(seed, DAY_MS, |reported| single.take(reported));
        // Unlike p, an interval is not a running minimum, so the one at the end counts.
        let end = &single.report().arms[ARM].metrics;
        let excludes = |metric: &str| {
            let interval = end[metric].interval.expect("burn-in is done");
            indicator(interval.lower > 0.0 || interval.upper < 0.0)
        };
        let alarms = |watch: &Watch| METRICS.map(|metric| indicator(watch.alarms(metric, ALPHA)));
        [alarms(&watches[0]), METRICS.map(excludes), alarms(&watches[1])].concat()
    })
}
