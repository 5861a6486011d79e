//! A watcher of an experiment under one setting, look by look.

use std::collections::BTreeMap;
use std::sync::Arc;

use abgauge_core::looks::{EpochStart, Experiment, ExperimentLook, LookRules, Looks, PairNews};
use abgauge_core::metrics::Ranking;
use abgauge_core::statistics::{ArmReport, ComparisonReport, MetricReport, MetricRole, Settings, Validity};

use super::scenario::{ARM, CONTROL, DAY_MS, EXPERIMENT, START_MS, Scenario, Told};

/// The only pair.
const PAIR: i32 = 0;

/// Looks under one setting.
pub struct Watch {
    looks: Looks,
    last: Option<Arc<ExperimentLook>>,
}

/// Default settings of a scenario: all metrics are primary, and shares are the scenario's.
pub fn asked(scenario: &Scenario) -> Settings {
    Settings {
        shares: shares(scenario, 0),
        primary: scenario
            .metrics
            .iter()
            .map(|metric| (*metric).to_owned())
            .collect(),
        ..Settings::new(CONTROL)
    }
}

pub fn with_validity(scenario: &Scenario, validity: Validity) -> Settings {
    Settings {
        validity,
        ..asked(scenario)
    }
}

/// Default settings with one look at the end of the week that gets most of α.
pub fn planned(scenario: &Scenario) -> Settings {
    Settings {
        planned_days: Some(7.0),
        ..asked(scenario)
    }
}

fn shares(scenario: &Scenario, leg: usize) -> BTreeMap<String, f64> {
    let arms = scenario.arms();
    let equal = vec![1.0 / arms.len() as f64; arms.len()];
    let own = &scenario.legs[leg].shares;
    let shares = if own.is_empty() { &equal } else { own };
    arms.iter()
        .map(|arm| (*arm).to_owned())
        .zip(shares.iter().copied())
        .collect()
}

impl Watch {
    /// Watches a scenario with this time between looks. Later legs open epochs if they change the shares.
    pub fn new(scenario: &Scenario, settings: Settings, every_ms: i64) -> Watch {
        let mut start_ms = START_MS;
        let mut epochs = Vec::new();
        for (number, leg) in scenario.legs.iter().enumerate() {
            if number > 0 && shares(scenario, number) != shares(scenario, number - 1) {
                epochs.push(EpochStart {
                    start_ms,
                    shares: shares(scenario, number),
                });
            }
            start_ms += leg.days * DAY_MS;
        }
        let experiment = Experiment {
            start_ms: Some(START_MS),
            settings: Some(settings),
            epochs,
            max_lists_per_user: scenario.max_lists_per_user,
        };
        Watch::of(experiment, scenario.ranking(), every_ms)
    }

    /// Watches an experiment with these settings.
    pub fn of(experiment: Experiment, ranking: Ranking, every_ms: i64) -> Watch {
        let mut looks = Looks::new(LookRules {
            every_ms,
            ranking,
            experiments: [(EXPERIMENT.to_owned(), experiment)].into(),
            counts_users: true,
            window: None,
            max_bytes: u64::MAX,
            bounds_waiting: false,
        });
        looks.take(PairNews::Owned([(PAIR, true)].into()));
        Watch { looks, last: None }
    }

    /// Takes all looks that are due, and passes each to `show`.
    pub fn take_each(&mut self, reported: &Told, mut show: impl FnMut(&ExperimentLook)) {
        self.looks.take(PairNews::Reached {
            pair: PAIR,
            arms: reported.arms.clone(),
            cells: reported.cells.clone(),
            until_ms: reported.until_ms,
        });
        while let Some(looked) = self.looks.look() {
            if let Some(look) = looked.experiments.get(EXPERIMENT) {
                show(look);
                self.last = Some(Arc::clone(look));
            }
        }
    }

    pub fn take(&mut self, reported: &Told) {
        self.take_each(reported, |_| ());
    }

    /// Returns the last look. None before the first list has settled.
    pub fn last(&self) -> Option<&ExperimentLook> {
        self.last.as_deref()
    }

    /// Returns the last report on all arms. Its p-values run: they are the smallest over all looks.
    pub fn report(&self) -> &ComparisonReport {
        report(self.last.as_ref().expect("there were looks"))
    }

    /// Returns the last result of a metric in the first treatment.
    pub fn metric(&self, metric: &str) -> &MetricReport {
        &self.report().arms[ARM].metrics[metric]
    }

    /// Reports whether the running p of a metric is at most `alpha`.
    pub fn alarms(&self, metric: &str, alpha: f64) -> bool {
        self.metric(metric).p.expect("burn-in is done") <= alpha
    }

    /// Reports whether the last decision look finds a metric at `alpha`.
    pub fn decides(&self, metric: &str, alpha: f64) -> bool {
        self.metric(metric).decision.expect("the week is over").metric.p <= alpha
    }

    /// Reports whether the first treatment harms by one of its metrics.
    pub fn harms(&self) -> bool {
        arm_harms(&self.report().arms[ARM], 0.05)
    }
}

pub fn report(look: &ExperimentLook) -> &ComparisonReport {
    let (_, report) = look.comparison.as_ref().expect("there is a control");
    report
}

/// Reports whether M · p_harm ≤ α for any of the M primary metrics. Before burn-in nothing harms.
pub fn arm_harms(arm: &ArmReport, alpha: f64) -> bool {
    let primaries = || {
        arm.metrics
            .values()
            .filter(|metric| metric.role == MetricRole::Primary)
    };
    let n_metrics = primaries().count() as f64;
    primaries()
        .filter_map(|metric| metric.p_harm)
        .any(|p| n_metrics * p <= alpha)
}
