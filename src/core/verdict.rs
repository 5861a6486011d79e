//! Result of an arm at a look as one JSON document, the same from a daemon and from a file, and an experiment's summary sentence.

mod label;
mod sentence;

use std::collections::BTreeMap;

use serde::Serialize;

pub use self::label::Label;
pub use self::sentence::{
    Badge, Chance, ComparedLook, Headline, SentencePart, count, given_up, lower_ends, of_look, uncompared,
    waiting,
};
use crate::statistics::decision::MultiArm;
use crate::statistics::{ArmReport, ComparisonReport, ListRatio, MetricReport, MetricRole, Settings};

/// Version of the document. It changes whenever readers would have to.
const VERSION: u32 = 1;

/// An arm against its control. Undefined values are absent. An untested arm also lacks `result`, `value`, `state`, `reason`
/// and `label`.
///
/// ```json
/// {"version":1,"experiment":"ranker","arm":"neural","control":"base","result":"hold","value":0,"state":"no_decision",
///  "reason":"10.2 of 14 days","waits_for":{"days":10.2,"min_days":14.0,"guardrails":["mrr"],"information":0.4,"days_needed":28.0},
///  "label":"Undecided","as_of":1764478200000,"look":1469,"next_decision":1764806400000,
///  "planned_end":1764806400000,"metrics":{"hit_rate@10":{"role":"primary","control":0.25,"arm":0.275,
///   "parts":{"control":{"numerator":1000,"denominator":4000},"arm":{"numerator":1100,"denominator":4000}},
///   "lift":0.1,"lower":-0.04,"upper":0.25,"absolute":{"value":0.025,"lower":-0.01,"upper":0.06},"p":0.25,
///   "p_adjusted":0.5,"p_harm":1.0,"information":0.4,"days_needed":28.0,"per_user":{"lift":0.16,"lower":-0.2,"upper":0.6},
///   "decision":{"look":1008,"at":1764201600000,"since":1764201600000,"k":1,"lift":0.1,"lower":-0.01,"upper":0.21,"p":0.1,"p_adjusted":0.2}},
///   "mrr":{"role":"guardrail","control":0.1,"arm":0.1,"lift":0.02,"lower":-0.04,"upper":0.08,"p":0.5,"p_adjusted":0.5,"p_harm":1.0,
///   "guardrail":{"margin":0.05,"bound":-0.04,"state":"holds"}}},
///  "checks":{"srm":{"p":1.0},"list_ratio":{"value":1.05,"lower":0.8,"upper":1.4,"p":1.0},"multi_arm":{"share":0.0},
///   "refused":{"arm":0.02,"control":0.0}},
///  "notes":[]}
/// ```
/// Times are Unix ms.
#[derive(Debug, Serialize)]
pub struct ArmVerdict<'a> {
    version: u32,
    experiment: &'a str,
    arm: &'a str,
    control: &'a str,
    #[serde(flatten)]
    of_arm: &'a ArmReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Label>,
    #[serde(flatten)]
    report: &'a ComparisonReport,
    metrics: BTreeMap<&'a str, &'a MetricReport>,
    checks: Checks,
    notes: Vec<&'a str>,
}

/// Builds the document of an arm. None if the report lacks the arm, as it does the control. `no_users` is the reason why users
/// are not counted, if they are not: it is added to the notes of the report.
pub fn of_arm<'a>(
    experiment: &'a str,
    arm: &str,
    settings: &'a Settings,
    report: &'a ComparisonReport,
    no_users: Option<&'a str>,
) -> Option<ArmVerdict<'a>> {
    let (arm, of_arm) = report.arms.get_key_value(arm)?;
    let metrics = of_arm.metrics.iter();
    Some(ArmVerdict {
        version: VERSION,
        experiment,
        arm,
        control: &settings.control,
        of_arm,
        label: Label::of(settings, of_arm),
        report,
        metrics: metrics.map(|(id, metric)| (id.as_str(), metric)).collect(),
        checks: Checks::new(report, of_arm),
        notes: report
            .notes
            .iter()
            .chain(&of_arm.notes)
            .map(String::as_str)
            .chain(no_users)
            .collect(),
    })
}

impl ArmVerdict<'_> {
    /// Removes metrics by their ids and roles.
    pub fn retain_metrics(&mut self, is_wanted: impl Fn(&str, MetricRole) -> bool) {
        self.metrics.retain(|id, metric| is_wanted(id, metric.role));
    }
}

#[derive(Debug, Serialize)]
struct Checks {
    #[serde(skip_serializing_if = "Option::is_none")]
    srm: Option<SampleRatio>,
    #[serde(skip_serializing_if = "Option::is_none")]
    list_ratio: Option<ListRatio>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multi_arm: Option<Share>,
    /// Absent if no list and no click was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<RefusedShares>,
}

#[derive(Debug, Serialize)]
struct SampleRatio {
    p: f64,
}

/// Shares of refused lists and clicks.
#[derive(Debug, Serialize)]
struct RefusedShares {
    arm: f64,
    control: f64,
}

#[derive(Debug, Serialize)]
struct Share {
    share: f64,
}

impl Checks {
    fn new(report: &ComparisonReport, arm: &ArmReport) -> Checks {
        let [of_arm, control] = arm.refused;
        Checks {
            srm: report.srm_p.map(|p| SampleRatio { p }),
            list_ratio: arm.list_ratio,
            multi_arm: report
                .multi_arm
                .and_then(MultiArm::share)
                .map(|share| Share { share }),
            refused: (of_arm + control > 0.0).then_some(RefusedShares { arm: of_arm, control }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Parts;
    use crate::statistics::burn_in::BurnIn;
    use crate::statistics::{
        AbsoluteEffect, ArmState, Basis, ComparedParts, DecidedAt, DecidedMetric, Decision, GuardrailReport,
        GuardrailState, HarmBound, Interval, MetricDecision, PerUser, Waiting,
    };

    fn report(arm: ArmReport) -> ComparisonReport {
        ComparisonReport {
            as_of_ms: 1_764_478_200_000,
            look: 1469,
            next_decision_ms: Some(1_764_806_400_000),
            planned_end_ms: Some(1_764_806_400_000),
            srm_p: Some(1.0),
            multi_arm: Some(MultiArm {
                in_two: 5.0,
                users: 1000.0,
            }),
            grown: Default::default(),
            arms: [("neural".to_owned(), arm)].into(),
            notes: vec!["a note".to_owned()],
        }
    }

    fn text(arm: ArmReport) -> String {
        let (settings, report) = (Settings::new("base"), report(arm));
        let verdict =
            of_arm("ranker", "neural", &settings, &report, Some("no users")).expect("the arm is there");
        serde_json::to_string(&verdict).expect("JSON")
    }

    fn known() -> ArmReport {
        let interval = |lower, upper| Some(Interval { lower, upper });
        let parts = |numerator| Parts {
            numerator,
            denominator: 4000.0,
        };
        let metric = MetricReport {
            role: MetricRole::Primary,
            control: Some(0.25),
            arm: Some(0.27),
            parts: Some(ComparedParts {
                control: parts(1000.0),
                arm: parts(1080.0),
            }),
            lift: Some(0.08),
            interval: interval(-0.04, 0.2),
            absolute: Some(AbsoluteEffect {
                value: 0.02,
                interval: interval(-0.01, 0.05),
            }),
            standard_error: Some(0.04),
            p: Some(0.25),
            p_adjusted: Some(0.5),
            p_harm: Some(1.0),
            information: Some(0.4),
            top_bucket_share: Some(0.01),
            harm_since_ms: Some(1_763_500_000_000),
            harm: Some(HarmBound {
                bound: -0.004,
                level: 0.975,
            }),
            guardrail: Some(GuardrailReport {
                margin: 0.05,
                bound: Some(-0.04),
                state: GuardrailState::Holds,
            }),
            days_needed: Some(28.0),
            interval_at_one_look: None,
            decision: Some(MetricDecision {
                at: DecidedAt {
                    look: 1008,
                    as_of_ms: 1_764_201_600_000,
                    since_ms: 1_763_596_800_000,
                    day: 7,
                    since_day: 0,
                    k: Some(1),
                },
                metric: DecidedMetric {
                    lift: Some(0.1),
                    interval: interval(0.01, 0.19),
                    p: 0.02,
                    p_adjusted: 0.04,
                    band_excludes_zero: false,
                },
            }),
            per_user: Some(PerUser {
                lift: 0.157,
                interval: interval(-0.2, 0.6),
            }),
        };
        ArmReport {
            decision: Some(Decision {
                state: ArmState::NoDecision,
                reason: "10.2 of 14 days".to_owned(),
                basis: Basis::Earlier,
            }),
            waiting: Some(Waiting {
                days: 10.2,
                min_days: Some(14.0),
                guardrails: vec!["mrr".to_owned()],
                information: Some(0.4),
                days_needed: Some(28.0),
            }),
            notes: vec!["a note on the arm".to_owned()],
            burn_in: BurnIn {
                occupied: 256,
                expected_hits: 900.0,
            },
            list_ratio: Some(ListRatio {
                g: 0.0469,
                value: 1.048,
                interval: interval(0.8, 1.37),
                p: 1.0,
            }),
            metrics: [("hit_rate@10".to_owned(), metric)].into(),
            ..ArmReport::default()
        }
    }

    #[test]
    fn a_verdict_has_the_documented_fields_in_their_order() {
        let expected = concat!(
            r#"{"version":1,"experiment":"ranker","arm":"neural","control":"base","result":"hold","value":0,"#,
            r#""state":"no_decision","reason":"10.2 of 14 days","#,
            r#""waits_for":{"days":10.2,"min_days":14.0,"guardrails":["mrr"],"information":0.4,"days_needed":28.0},"#,
            r#""label":"Undecided","as_of":1764478200000,"look":1469,"#,
            r#""next_decision":1764806400000,"planned_end":1764806400000,"metrics":{"hit_rate@10":{"role":"primary","control":0.25,"arm":0.27,"#,
            r#""parts":{"control":{"numerator":1000,"denominator":4000},"arm":{"numerator":1080,"denominator":4000}},"#,
            r#""lift":0.08,"lower":-0.04,"upper":0.2,"absolute":{"value":0.02,"lower":-0.01,"upper":0.05},"p":0.25,"p_adjusted":0.5,"p_harm":1.0,"harm_since":1763500000000,"#,
            r#""harm":{"bound":-0.004,"level":0.975},"guardrail":{"margin":0.05,"bound":-0.04,"state":"holds"},"#,
            r#""information":0.4,"days_needed":28.0,"per_user":{"lift":0.157,"lower":-0.2,"upper":0.6},"decision":{"look":1008,"at":1764201600000,"since":1763596800000,"k":1,"#,
            r#""lift":0.1,"lower":0.01,"upper":0.19,"p":0.02,"p_adjusted":0.04}}},"checks":{"srm":{"p":1.0},"#,
            r#""list_ratio":{"value":1.048,"lower":0.8,"upper":1.37,"p":1.0},"multi_arm":{"share":0.005}},"#,
            r#""notes":["a note","a note on the arm","no users"]}"#,
        );
        assert_eq!(text(known()), expected);
    }

    #[test]
    fn undefined_values_are_absent() {
        let metric = MetricReport::untested(MetricRole::Secondary, Some(0.25), None);
        let text = text(ArmReport {
            decision: None,
            list_ratio: None,
            waiting: None,
            metrics: [("mrr".to_owned(), metric)].into(),
            ..known()
        });
        let ends = r#""metrics":{"mrr":{"role":"secondary","control":0.25}},"checks":{"srm":{"p":1.0},"multi_arm":{"share":0.005}},"notes":["a note","a note on the arm","no users"]}"#;
        assert!(
            text.contains(r#""control":"base","as_of":1764478200000,"#),
            "{text}"
        );
        assert!(text.ends_with(ends), "{text}");
    }

    #[test]
    fn the_control_and_unknown_arms_have_no_verdict() {
        let (settings, report) = (Settings::new("base"), report(known()));
        for arm in ["base", "other"] {
            assert!(of_arm("ranker", arm, &settings, &report, None).is_none());
        }
    }
}
