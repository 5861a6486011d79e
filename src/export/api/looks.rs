//! What the last look says of an experiment and of its arms.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ledger::PairId;
use crate::looks::{ArmLook, Experiment, MetricLook, Shown, WindowLook};
use crate::statistics::days::{Design, Needs};
use crate::statistics::{Known, Report, Settings};

/// How far looks at an experiment have come. Times are epoch ms.
#[derive(Serialize)]
pub(in super::super) struct LooksEntry<'a> {
    /// Up to when lists count; null before the first look, as `start`.
    as_of: Option<i64>,
    /// From when on.
    start: Option<i64>,
    /// The partition that is furthest behind: the next look waits for it.
    waits_for: Option<PairId>,
    /// There are no more looks, since statistics took too much memory.
    given_up: bool,
    /// Why users are not counted, if they are not.
    no_users: Option<&'a str>,
    /// What says how long it takes; null before the first look, and without a control.
    power: Option<Power<'a>>,
}

/// How much is known of the primaries, and how much each way to test needs.
#[derive(Serialize)]
struct Power<'a> {
    /// Where sums begin: not at `start`, if lists from then on were not read.
    since: i64,
    mde: f64,
    alpha: f64,
    /// The way that is chosen.
    design: &'static str,
    /// x that the first decision look needs, by the way to test.
    needs: BTreeMap<&'static str, f64>,
    /// Treatment arms × primaries.
    hypotheses: usize,
    guardrails: usize,
    min_days: f64,
    /// x by arm and primary.
    arms: &'a BTreeMap<String, BTreeMap<String, f64>>,
    /// The same a quarter to a half of the days back; null before two days have passed.
    earlier: Option<Earlier<'a>>,
}

#[derive(Serialize)]
struct Earlier<'a> {
    as_of: i64,
    arms: &'a BTreeMap<String, BTreeMap<String, f64>>,
}

/// An arm by itself at the last look.
#[derive(Serialize)]
pub(in super::super) struct LookedArm<'a> {
    lists: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<u64>,
    metrics: BTreeMap<&'a str, LookedMetric>,
    /// By name: those that have intervals, as far as the arm has a list there.
    windows: BTreeMap<&'a str, LookedWindow<'a>>,
}

/// An arm in the window that ends with the last look.
#[derive(Serialize)]
struct LookedWindow<'a> {
    lists: u64,
    metrics: BTreeMap<&'a str, LookedMetric>,
}

/// A metric and its interval, if enough is known.
#[derive(Serialize)]
struct LookedMetric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper: Option<f64>,
}

impl<'a> LooksEntry<'a> {
    /// None where nothing is asked of the experiment.
    pub fn of(
        experiment: &str,
        asked: &BTreeMap<String, Experiment>,
        shown: &'a Shown,
    ) -> Option<LooksEntry<'a>> {
        asked.get(experiment)?;
        let look = shown.experiments.get(experiment);
        Some(LooksEntry {
            as_of: look.map(|look| look.as_of_ms),
            start: look.map(|look| look.start_ms),
            waits_for: shown.waits_for,
            given_up: shown.given_up.iter().any(|name| name == experiment),
            no_users: look.and_then(|look| look.no_users),
            power: look.and_then(|look| {
                let (settings, report) = look.comparison.as_ref()?;
                Some(Power::of(settings, report))
            }),
        })
    }
}

impl<'a> Power<'a> {
    fn of(settings: &Settings, report: &'a Report) -> Power<'a> {
        let n_treatments = report.arms.keys().filter(|arm| settings.tests(arm)).count();
        let needs = Needs::new(settings, n_treatments);
        let grown = &report.grown;
        let earlier = |Known { as_of_ms, arms }: &'a Known| Earlier {
            as_of: *as_of_ms,
            arms,
        };
        Power {
            since: grown.since_ms,
            mde: settings.mde,
            alpha: settings.alpha,
            design: Design::of(settings).name(),
            needs: needs
                .designs()
                .map(|design| (design.name(), needs.x(design, 1)))
                .collect(),
            hypotheses: needs.n_hypotheses,
            guardrails: needs.n_guardrails,
            min_days: needs.min_days,
            arms: &grown.now.arms,
            earlier: grown.earlier.as_ref().map(earlier),
        }
    }
}

impl<'a> LookedArm<'a> {
    pub fn of(look: &'a ArmLook) -> LookedArm<'a> {
        let window = |window: &'a WindowLook| LookedWindow {
            lists: window.lists as u64,
            metrics: looked_metrics(&window.metrics),
        };
        let windows = look.windows.iter();
        LookedArm {
            lists: look.lists as u64,
            users: look.users.map(|users| users as u64),
            metrics: looked_metrics(&look.metrics),
            windows: windows.map(|(name, of)| (name.as_str(), window(of))).collect(),
        }
    }

    /// Leaves windows out, and metrics by their ids.
    pub fn retain_totals(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.metrics.retain(|id, _| is_wanted(id));
        self.windows.clear();
    }
}

fn looked_metrics(metrics: &BTreeMap<String, MetricLook>) -> BTreeMap<&str, LookedMetric> {
    let metrics = metrics.iter();
    metrics
        .map(|(key, metric)| (key.as_str(), LookedMetric::of(metric)))
        .collect()
}

impl LookedMetric {
    fn of(metric: &MetricLook) -> LookedMetric {
        LookedMetric {
            value: metric.value,
            lower: metric.interval.map(|interval| interval.lower),
            upper: metric.interval.map(|interval| interval.upper),
        }
    }
}
