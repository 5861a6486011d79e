//! Lift of each arm at the latest look, next to the true lift, and whether its interval covers the truth.

use std::collections::BTreeMap;
use std::sync::Arc;

use abgauge_core::looks::{Experiment, ExperimentLook, PublishedLooks};
use abgauge_core::statistics::{ArmReport, Settings};
use abgauge_core::verdict::Label;
use console::style;

use crate::tools::simulate::{Design, Truth};

/// Metric that decides and whose lift is shown: the default of a configuration.
pub const PRIMARY: &str = "ctr@10";
/// Days of event time before the first decision, short enough to see one.
const MIN_DAYS: f64 = 0.25;

/// Returns the experiments to compare: their first arm is the control, and shares come from the simulation.
pub fn asked(design: &Design) -> BTreeMap<String, Experiment> {
    let experiments = design.experiments().iter().map(|experiment| {
        let arms = experiment.arms.iter().filter(|arm| arm.share > 0.0);
        let settings = Settings {
            shares: arms.map(|arm| (arm.name.clone(), arm.share)).collect(),
            primary: vec![PRIMARY.to_owned()],
            min_days: MIN_DAYS,
            ..Settings::new(&experiment.arms[0].name)
        };
        let asked = Experiment {
            settings: Some(settings),
            ..Experiment::default()
        };
        (experiment.name.clone(), asked)
    });
    experiments.collect()
}

/// Returns a line for each compared arm. Names take `width` columns.
pub fn lines(shown: &PublishedLooks, truths: &[Truth], width: usize) -> Vec<String> {
    let of_experiment = |(experiment, look): (&String, &Arc<ExperimentLook>)| -> Vec<String> {
        let Some((settings, report)) = &look.comparison else {
            return Vec::new();
        };
        let tested = report.arms.iter().filter(|(_, arm)| arm.decision.is_some());
        tested
            .map(|(name, arm)| {
                let truth = true_lift(truths, experiment, name, &settings.control);
                format!("{name:<width$} {}", line(settings, arm, truth))
            })
            .collect()
    };
    shown.experiments.iter().flat_map(of_experiment).collect()
}

fn line(settings: &Settings, arm: &ArmReport, truth: Option<f64>) -> String {
    let label = Label::of(settings, arm).map_or("", Label::words);
    let reason = arm
        .decision
        .as_ref()
        .map_or("", |decision| decision.reason.as_str());
    let primary = arm.metrics.get(PRIMARY);
    let lift = primary.and_then(|metric| Some((metric.lift?, metric.interval?)));
    let Some((lift, interval)) = lift else {
        return format!("{PRIMARY}: {label}, {reason}");
    };
    let percent = |share: f64| format!("{:+.1}%", 100.0 * share);
    let [low, high] = [interval.lower, interval.upper].map(percent);
    let truth = truth.map_or_else(String::new, |truth| {
        let covers = interval.lower <= truth && truth <= interval.upper;
        let word = if covers { "covered" } else { "not covered" };
        style(format!("  true {} {word}", percent(truth)))
            .dim()
            .to_string()
    });
    format!("{PRIMARY} {} [{low}, {high}]{truth}  {label}", percent(lift))
}

fn true_lift(truths: &[Truth], experiment: &str, arm: &str, control: &str) -> Option<f64> {
    let of = |arm: &str| {
        let is_it =
            |truth: &&Truth| truth.experiment == experiment && truth.arm == arm && truth.key == PRIMARY;
        truths.iter().find(is_it).map(|truth| truth.value)
    };
    Some(of(arm)? / of(control)? - 1.0)
}

#[cfg(test)]
mod tests {
    use abgauge_core::statistics::burn_in::BurnIn;
    use abgauge_core::statistics::{ArmState, Basis, Decision, Interval, MetricReport, MetricRole};

    use super::*;

    fn report(lift: Option<(f64, f64, f64)>) -> ArmReport {
        let metric = MetricReport {
            lift: lift.map(|(lift, ..)| lift),
            interval: lift.map(|(_, lower, upper)| Interval { lower, upper }),
            ..MetricReport::untested(MetricRole::Primary, Some(0.1), Some(0.12))
        };
        ArmReport {
            decision: Some(Decision {
                state: ArmState::Collecting,
                reason: "users in 131 of 220 buckets".to_owned(),
                basis: Basis::Earlier,
            }),
            burn_in: BurnIn {
                occupied: 131,
                expected_hits: 64.0,
            },
            metrics: [(PRIMARY.to_owned(), metric)].into(),
            ..ArmReport::default()
        }
    }

    #[track_caller]
    fn check(lift: Option<(f64, f64, f64)>, truth: f64, expected: &str) {
        let line = line(&Settings::new("control"), &report(lift), Some(truth));
        assert_eq!(console::strip_ansi_codes(&line), expected);
    }

    #[test]
    fn shows_an_interval_next_to_the_truth_and_whether_it_covers_it() {
        check(
            Some((0.2, 0.1, 0.3)),
            0.25,
            "ctr@10 +20.0% [+10.0%, +30.0%]  true +25.0% covered  Collecting",
        );
        check(
            Some((0.2, 0.1, 0.3)),
            -0.05,
            "ctr@10 +20.0% [+10.0%, +30.0%]  true -5.0% not covered  Collecting",
        );
        check(None, 0.25, "ctr@10: Collecting, users in 131 of 220 buckets");
    }

    #[test]
    fn compares_all_simulated_arms_by_their_shares() {
        let asked = asked(&Design::default());
        let ranker = asked["ranker"].settings.as_ref().expect("it has a control");
        assert_eq!(ranker.control, "control");
        assert!((ranker.shares.values().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(ranker.shares.len(), 3);
    }
}
