//! Comparisons of arms with their control: the size of each difference, its uncertainty, and the decision.

use std::collections::BTreeMap;

use super::Report;
use super::grid::{Grid, GridColumn};
use crate::evaluate::comparison::ExperimentComparison;
use crate::metrics::Column;
use crate::rounding::signed_percentage;
use crate::statistics::probability::in_column;
use crate::statistics::{ArmReport, Interval, MetricReport, MetricRole, PerUser, srm};
use crate::table::visible;
use crate::verdict::{self, ArmVerdict};

/// Note below all comparisons.
const ONE_LOOK: &str = "one look: valid only if the end date was chosen before looking at results";

/// Verdicts by experiment, then arm.
pub(super) type Comparisons<'a> = BTreeMap<&'a str, BTreeMap<&'a str, ArmVerdict<'a>>>;

impl<'a> Report<'a> {
    /// Returns all verdicts; `None` if nothing is compared.
    pub(super) fn comparisons(self) -> Option<Comparisons<'a>> {
        let comparisons = self.evaluation.comparisons.as_ref();
        let comparisons = comparisons.filter(|_| !self.evaluation.is_empty())?;
        let verdicts = comparisons.iter().map(|(experiment, comparison)| {
            let ExperimentComparison { settings, report, .. } = comparison;
            let arms = report.arms.keys().map(String::as_str);
            let verdicts = arms.filter_map(|arm| {
                let verdict = verdict::of_arm(experiment, arm, settings, report, None)?;
                Some((arm, verdict))
            });
            (experiment.as_str(), verdicts.collect())
        });
        Some(verdicts.collect())
    }

    /// Returns the report on one metric of a compared arm.
    pub(super) fn compared_metric(
        self,
        experiment: &str,
        arm: &str,
        column: &Column,
    ) -> Option<&'a MetricReport> {
        let comparison = self.evaluation.comparison(experiment)?;
        comparison.report.arms.get(arm)?.metrics.get(&column.key())
    }

    /// Renders the comparisons for people, one arm after the other. `table` renders their metrics.
    pub(super) fn compared(self, table: impl Fn(&Grid) -> String) -> Vec<String> {
        // Only the first profile is compared.
        let order: Vec<String> = self.columns(0).map(Column::key).collect();
        let order = &order;
        let comparisons = self.evaluation.comparisons.iter().flatten();
        let arms = comparisons.flat_map(|(experiment, comparison)| {
            let arms = comparison.report.arms.iter();
            arms.map(move |(arm, report)| ArmAndControl {
                order,
                experiment,
                arm,
                comparison,
                report,
            })
        });
        let mut texts: Vec<String> = arms
            .map(|versus| {
                let [head, foot] = [versus.head(), versus.foot()];
                format!("{head}\n\n{}\n\n{foot}", table(&versus.grid()))
            })
            .collect();
        if !texts.is_empty() {
            texts.push(ONE_LOOK.to_owned());
        }
        texts
    }
}

/// Arm and its control.
struct ArmAndControl<'a> {
    /// Ids of metrics in the order of export.
    order: &'a [String],
    experiment: &'a str,
    arm: &'a str,
    comparison: &'a ExperimentComparison,
    report: &'a ArmReport,
}

impl ArmAndControl<'_> {
    /// Returns the lines above the table:
    ///
    /// ```text
    /// ranker: neural vs base
    /// lists 7722 vs 7368, users 1500 vs 1500, traffic split OK (p = 1)
    /// lists per user +4.8% [-10.7%, +23.0%]
    /// ```
    fn head(&self) -> String {
        let comparison = self.comparison;
        let names = [self.arm, &comparison.settings.control];
        let [arm, control] = names.map(visible);
        let [lists, of_control] = names.map(|name| comparison.lists(name));
        let experiment = visible(self.experiment);
        let mut head = format!("{experiment}: {arm} vs {control}\nlists {lists} vs {of_control}");
        // Only if both are counted: a number of users on one side alone compares with nothing.
        if let [Some(users), Some(of_control)] = names.map(|name| comparison.users(name)) {
            head += &format!(", users {users} vs {of_control}");
        }
        if let Some(p) = self.comparison.report.srm_p {
            head += &format!(", {}", srm::in_words(p));
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
        let notes = self.comparison.report.notes.iter().chain(&self.report.notes);
        let notes: String = notes.map(|note| format!("\nnote: {}", visible(note))).collect();
        let state = match &self.report.decision {
            Some(decision) if decision.reason.is_empty() => decision.state.name().to_owned(),
            Some(decision) => format!("{}: {}", decision.state.name(), decision.reason),
            // Burn-in is over, so only a missing share keeps it from being tested.
            None if self.report.burn_in.is_done() => "not tested: it has no share".to_owned(),
            None => format!("not tested: {lacks}"),
        };
        state + &notes
    }

    fn grid(&self) -> Grid {
        let mut metrics: Vec<(&String, &MetricReport)> = self.report.metrics.iter().collect();
        // Metrics without a column of their own, such as metrics per user, come last.
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
                column("p".to_owned(), &|metric| metric.p.map(in_column)),
            ],
            vec![
                column("p adjusted".to_owned(), &|metric| {
                    metric.p_adjusted.map(in_column)
                }),
                column("p of harm".to_owned(), &|metric| metric.p_harm.map(in_column)),
                column("per user".to_owned(), &|metric| metric.per_user.map(per_user)),
            ],
        ];
        let name = |(id, metric): &(&String, &MetricReport)| match metric.role {
            MetricRole::Primary => format!("{id} (primary)"),
            MetricRole::Guardrail => format!("{id} (guardrail)"),
            MetricRole::Secondary => (*id).clone(),
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
    signed_percentage(share, 1)
}

fn bounds(Interval { lower, upper }: Interval) -> String {
    format!("[{}, {}]", percent(lower), percent(upper))
}

fn per_user(per_user: PerUser) -> String {
    let interval = per_user.interval.map(|interval| format!(" {}", bounds(interval)));
    format!("{}{}", percent(per_user.lift), interval.unwrap_or_default())
}
