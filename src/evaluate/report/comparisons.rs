//! Arms against their control: how large a difference is, how sure, and what follows.

use std::collections::BTreeMap;

use super::Report;
use super::grid::{Grid, GridColumn};
use crate::engine::ranking::Column;
use crate::evaluate::comparison::Comparison;
use crate::statistics::{ArmReport, Interval, ListRatio, MetricReport, PerUser, Role};
use crate::table::visible;

/// By experiment, then arm.
pub(super) type Comparisons<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Verdict<'a>>>;

/// What is said of an arm. What is undefined is absent.
#[derive(serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) struct Verdict<'a> {
    control: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<i8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    metrics: BTreeMap<&'a str, MetricVerdict>,
    checks: Checks,
    notes: &'a [&'static str],
}

#[derive(serde::Serialize)]
struct MetricVerdict {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arm: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lift: Option<f64>,
    #[serde(flatten)]
    interval: Option<Bounds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p_adjusted: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p_harm: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    information: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_user: Option<LiftVerdict>,
}

#[derive(serde::Serialize)]
struct LiftVerdict {
    lift: f64,
    #[serde(flatten)]
    interval: Option<Bounds>,
}

#[derive(serde::Serialize)]
struct Bounds {
    lower: f64,
    upper: f64,
}

#[derive(serde::Serialize)]
struct Checks {
    #[serde(skip_serializing_if = "Option::is_none")]
    srm: Option<P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    list_ratio: Option<ListRatioCheck>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multi_arm: Option<Share>,
}

#[derive(serde::Serialize)]
struct P {
    p: f64,
}

#[derive(serde::Serialize)]
struct ListRatioCheck {
    value: f64,
    #[serde(flatten)]
    interval: Option<Bounds>,
    p: f64,
}

#[derive(serde::Serialize)]
struct Share {
    share: f64,
}

impl Bounds {
    fn of(interval: Interval) -> Bounds {
        let Interval { lower, upper } = interval;
        Bounds { lower, upper }
    }
}

impl MetricVerdict {
    fn of(metric: &MetricReport) -> MetricVerdict {
        MetricVerdict {
            role: metric.role.name(),
            control: metric.control,
            arm: metric.arm,
            lift: metric.lift,
            interval: metric.interval.map(Bounds::of),
            p: metric.p,
            p_adjusted: metric.p_adjusted,
            p_harm: metric.p_harm,
            information: metric.information,
            per_user: metric.per_user.map(|per_user| LiftVerdict {
                lift: per_user.lift,
                interval: per_user.interval.map(Bounds::of),
            }),
        }
    }
}

impl ListRatioCheck {
    fn of(ratio: ListRatio) -> ListRatioCheck {
        ListRatioCheck {
            value: ratio.value,
            interval: ratio.interval.map(Bounds::of),
            p: ratio.p,
        }
    }
}

impl<'a> Verdict<'a> {
    fn of(comparison: &'a Comparison, arm: &'a ArmReport) -> Verdict<'a> {
        let report = &comparison.report;
        let decision = arm.decision.as_ref();
        let verdict = decision.map(|decision| decision.state.verdict());
        let metrics = arm.metrics.iter();
        let multi_arm = report.multi_arm.filter(|multi_arm| multi_arm.users > 0.0);
        Verdict {
            control: &comparison.settings.control,
            result: verdict.map(|verdict| verdict.name()),
            value: verdict.map(|verdict| verdict.value()),
            state: decision.map(|decision| decision.state.name()),
            reason: decision.map(|decision| decision.reason.as_str()),
            metrics: metrics
                .map(|(id, metric)| (id.as_str(), MetricVerdict::of(metric)))
                .collect(),
            checks: Checks {
                srm: report.srm_p.map(|p| P { p }),
                list_ratio: arm.list_ratio.map(ListRatioCheck::of),
                multi_arm: multi_arm.map(|multi_arm| Share {
                    share: multi_arm.in_two / multi_arm.users,
                }),
            },
            notes: &report.notes,
        }
    }
}

impl<'a> Report<'a> {
    /// None where nothing is compared.
    pub(super) fn comparisons(self) -> Option<Comparisons<'a>> {
        self.control.filter(|_| !self.evaluation.is_empty())?;
        let experiments = self.evaluation.comparisons.iter();
        let verdicts = experiments.map(|(experiment, comparison)| {
            let arms = comparison.report.arms.iter();
            let arms = arms.map(|(arm, report)| (arm.as_str(), Verdict::of(comparison, report)));
            (experiment.as_str(), arms.collect())
        });
        Some(verdicts.collect())
    }

    /// What is said of a metric of an arm that is compared.
    pub(super) fn compared_metric(
        self,
        experiment: &str,
        arm: &str,
        column: &Column,
    ) -> Option<&'a MetricReport> {
        let comparison = self.evaluation.comparisons.get(experiment)?;
        comparison.report.arms.get(arm)?.metrics.get(&column.key())
    }

    /// For people, an arm after the other; `table` renders their metrics.
    pub(super) fn compared(self, table: impl Fn(&Grid) -> String) -> Vec<String> {
        let order: Vec<String> = self.columns(0).map(Column::key).collect();
        let order = &order;
        let experiments = self.control.map(|_| self.evaluation.comparisons.iter());
        let arms = experiments
            .into_iter()
            .flatten()
            .flat_map(|(experiment, comparison)| {
                let arms = comparison.report.arms.iter();
                arms.map(move |(arm, report)| Versus {
                    order,
                    experiment,
                    arm,
                    comparison,
                    report,
                })
            });
        arms.map(|versus| {
            let [head, foot] = [versus.head(), versus.foot()];
            format!("{head}\n\n{}\n\n{foot}", table(&versus.grid()))
        })
        .collect()
    }
}

/// An arm and its control.
struct Versus<'a> {
    /// Ids of metrics in the order of export.
    order: &'a [String],
    experiment: &'a str,
    arm: &'a str,
    comparison: &'a Comparison,
    report: &'a ArmReport,
}

impl Versus<'_> {
    /// ```text
    /// ranker: neural vs base
    /// lists 7722 vs 7368, users 1500 vs 1500, SRM p 1
    /// lists per user +4.8% [-10.7%, +23.0%]
    /// ```
    fn head(&self) -> String {
        let control = &self.comparison.settings.control;
        let both = |of: &BTreeMap<String, f64>| {
            let [arm, control] =
                [self.arm, control.as_str()].map(|name| of.get(name).copied().unwrap_or(0.0));
            format!("{arm} vs {control}")
        };
        let mut head = format!(
            "{}: {} vs {}\nlists {}",
            visible(self.experiment),
            visible(self.arm),
            visible(control),
            both(&self.comparison.lists)
        );
        if let Some(users) = &self.comparison.users {
            head += &format!(", users {}", both(users));
        }
        if let Some(p) = self.comparison.report.srm_p {
            head += &format!(", SRM p {}", probability(p));
        }
        if let Some(ratio) = self.report.list_ratio {
            let shift = |value: f64| percent(value - 1.0);
            let bounds = ratio
                .interval
                .map(|Interval { lower, upper }| format!(" [{}, {}]", shift(lower), shift(upper)));
            head += &format!(
                "\nlists per user {}{}",
                shift(ratio.value),
                bounds.unwrap_or_default()
            );
        }
        head
    }

    fn foot(&self) -> String {
        let lacks = self.report.burn_in.to_string();
        match &self.report.decision {
            Some(decision) if decision.reason.is_empty() => decision.state.name().to_owned(),
            Some(decision) => format!("{}: {}", decision.state.name(), decision.reason),
            None if lacks.is_empty() => "not tested: it has no share".to_owned(),
            None => format!("not tested: {lacks}"),
        }
    }

    fn grid(&self) -> Grid {
        let mut metrics: Vec<(&String, &MetricReport)> = self.report.metrics.iter().collect();
        let place = |id: &String| {
            self.order
                .iter()
                .position(|other| other == id)
                .unwrap_or(usize::MAX)
        };
        metrics.sort_by_key(|(id, _)| place(id));
        let column = |header: String, cell: &dyn Fn(&MetricReport) -> Option<String>| {
            let cells = metrics.iter();
            GridColumn {
                header,
                cells: cells
                    .map(|(_, metric)| cell(metric).unwrap_or_else(|| "–".to_owned()))
                    .collect(),
            }
        };
        let value = |value: Option<f64>| value.map(|value| format!("{value:.4}"));
        let level = 100.0 * (1.0 - self.comparison.settings.alpha);
        let groups = vec![
            vec![
                column(self.comparison.settings.control.clone(), &|metric| {
                    value(metric.control)
                }),
                column(self.arm.to_owned(), &|metric| value(metric.arm)),
                column("lift".to_owned(), &|metric| metric.lift.map(percent)),
                column(format!("{level}% interval"), &|metric| {
                    metric.interval.map(bounds)
                }),
                column("p".to_owned(), &|metric| metric.p.map(probability)),
            ],
            vec![
                column("p adjusted".to_owned(), &|metric| {
                    metric.p_adjusted.map(probability)
                }),
                column("p of harm".to_owned(), &|metric| metric.p_harm.map(probability)),
                column("per user".to_owned(), &|metric| metric.per_user.map(per_user)),
            ],
        ];
        let name = |(id, metric): &(&String, &MetricReport)| match metric.role {
            Role::Primary => format!("{id} (primary)"),
            Role::Guardrail => format!("{id} (guardrail)"),
            Role::Secondary => (*id).clone(),
        };
        Grid {
            corner: self.experiment.to_owned(),
            rows: metrics.iter().map(name).collect(),
            lead: Vec::new(),
            groups,
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:+.1}%", 100.0 * share)
}

fn bounds(Interval { lower, upper }: Interval) -> String {
    format!("[{}, {}]", percent(lower), percent(upper))
}

fn per_user(per_user: PerUser) -> String {
    let interval = per_user.interval.map(|interval| format!(" {}", bounds(interval)));
    format!("{}{}", percent(per_user.lift), interval.unwrap_or_default())
}

fn probability(p: f64) -> String {
    match p {
        p if p < 0.001 => "<0.001".to_owned(),
        p if p >= 0.9995 => "1".to_owned(),
        p => format!("{p:.3}"),
    }
}
