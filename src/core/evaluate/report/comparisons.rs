//! Comparisons of arms with their control: the size of each difference, its uncertainty, and the decision.

use std::collections::BTreeMap;

use super::grid::{Grid, GridColumn};
use super::tables::COUNTS;
use super::{ExperimentSums, Report, experiments};
use crate::evaluate::comparison::ExperimentComparison;
use crate::metrics::Column;
use crate::nouns::number_of;
use crate::rounding::signed_percentage;
use crate::statistics::probability::in_column;
use crate::statistics::{ArmReport, ArmState, Interval, MetricReport, MetricRole, srm};
use crate::table::visible;
use crate::verdict::{self, ArmVerdict, Label, count};

/// Note below all comparisons.
const ONE_LOOK: &str = "note: valid only if the end date was chosen before looking at results";

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

    /// Returns whether the table of a comparison has all numbers of the experiment, so that no other table is needed. If lists are
    /// capped, a comparison counts only some of them.
    pub(super) fn is_in_comparison(self, experiment: &str) -> bool {
        self.evaluation.comparison(experiment).is_some_and(|comparison| {
            let mut arms = comparison
                .totals
                .epochs
                .iter()
                .flat_map(|epoch| epoch.arms.values());
            !comparison.report.arms.is_empty() && arms.all(|arm| arm.capped_lists == 0.0)
        })
    }

    /// Renders the comparisons for people: for each experiment a line about its users, a table by `table`, the state of each arm,
    /// and notes.
    pub(super) fn compared(self, table: impl Fn(&Grid) -> String) -> Vec<String> {
        let compared = experiments(&self.evaluation.total).filter_map(|sums| {
            let comparison = self.evaluation.comparison(sums.name)?;
            (!comparison.report.arms.is_empty()).then(|| ComparedExperiment {
                comparison,
                sums,
                // Only the first profile is compared.
                columns: self.columns(0).collect(),
            })
        });
        let mut texts: Vec<String> = compared
            .map(|compared| {
                let [head, foot] = [compared.head(), compared.foot()];
                format!("{head}\n\n{}\n\n{foot}", table(&compared.grid()))
            })
            .collect();
        if !texts.is_empty() {
            texts.push(ONE_LOOK.to_owned());
        }
        texts
    }
}

/// Experiment with a control and other arms.
struct ComparedExperiment<'a> {
    comparison: &'a ExperimentComparison,
    sums: ExperimentSums<'a>,
    /// Metrics in the order of export.
    columns: Vec<&'a Column>,
}

/// Cells of a row: the arm, the value of the control and of the arm, lift, interval, p and state. Absent ones are empty.
type Cells = [String; 7];

/// Rows of the table, each with its name.
type Rows = Vec<(String, Cells)>;

/// Maximum number of arms named in a hint.
const MOST_IN_HINT: usize = 5;

impl<'a> ComparedExperiment<'a> {
    /// Returns the line above the table: "ranker: neural vs base, 3,988 and 3,965 users, traffic split OK (p = 1)".
    fn head(&self) -> String {
        let control = &*self.comparison.settings.control;
        let users = |arm: &str| self.comparison.users(arm);
        let arms: Vec<&str> = self.arms().collect();
        let (arms, users) = match arms[..] {
            [arm] => {
                let users = users(arm).zip(users(control));
                let users = users.map(|(arm, control)| format!("{} and {}", count(arm), count(control)));
                (visible(arm), users)
            }
            _ => {
                let all = arms.iter().copied().chain([control]);
                (
                    number_of(arms.len(), "arm"),
                    all.map(users).sum::<Option<f64>>().map(count),
                )
            }
        };
        let mut head = format!("{}: {arms} vs {}", visible(self.sums.name), visible(control));
        if let Some(users) = users {
            head += &format!(", {users} users");
        }
        if let Some(p) = self.comparison.report.srm_p {
            head += &format!(", {}", srm::in_words(p));
        }
        head
    }

    /// Returns the lines below the table: each state with its arms and its reason, then each note once.
    fn foot(&self) -> String {
        let report = &self.comparison.report;
        let mut states: Vec<(String, Vec<String>)> = Vec::new();
        for (arm, report) in &report.arms {
            let (arm, state) = (visible(arm), self.state_of(report));
            match states.iter_mut().find(|(other, _)| *other == state) {
                Some((_, arms)) => arms.push(arm),
                None => states.push((state, vec![arm])),
            }
        }
        let states = states.iter();
        let states = states.map(|(state, arms)| format!("{}: {state}", arms.join(", ")));
        let mut lines: Vec<String> = states.collect();
        let of_arms = report.arms.values().flat_map(|report| &report.notes);
        for note in report.notes.iter().chain(of_arms) {
            let line = format!("note: {}", visible(note));
            // A note about the control is a note about every arm.
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines.join("\n")
    }

    /// Returns the state of an arm with its reason: "Better, CTR@10 is better, p = 0.002".
    fn state_of(&self, report: &ArmReport) -> String {
        let settings = &self.comparison.settings;
        let reason = match &report.decision {
            Some(decision) if decision.state == ArmState::NoDecision && settings.shares.is_empty() => {
                format!(
                    "traffic shares are unknown: add --shares {}",
                    self.example_of_shares()
                )
            }
            Some(decision) if decision.state == ArmState::NoDecision && settings.primary.is_empty() => {
                "no metric decides: add --primary METRIC".to_owned()
            }
            Some(decision) => decision.reason.clone(),
            // Burn-in is over, so only a missing share keeps it from being tested.
            None if report.burn_in.is_done() => "it has no share".to_owned(),
            None => report.burn_in.to_string(),
        };
        let state = self.label(report);
        match reason.is_empty() {
            true => state.to_owned(),
            false => format!("{state}, {reason}"),
        }
    }

    fn label(&self, report: &ArmReport) -> &'static str {
        Label::of(&self.comparison.settings, report).map_or("not tested", Label::words)
    }

    /// Returns shares for all arms as a flag takes them: equal ones for two arms, such as `base=0.5,neural=0.5`.
    fn example_of_shares(&self) -> String {
        let arms = [&*self.comparison.settings.control]
            .into_iter()
            .chain(self.arms());
        let arms: Vec<String> = arms.map(visible).collect();
        match arms.len() {
            2 => format!("{}=0.5", arms.join("=0.5,")),
            ..=MOST_IN_HINT => format!("{}=SHARE", arms.join("=SHARE,")),
            _ => "ARM=SHARE,…".to_owned(),
        }
    }

    /// Returns the names of the arms other than the control.
    fn arms(&self) -> impl Iterator<Item = &'a str> {
        self.comparison.report.arms.keys().map(String::as_str)
    }

    /// Returns the table: counts, then metrics, those that decide first. Rows of one metric are adjacent.
    fn grid(&self) -> Grid {
        let settings = &self.comparison.settings;
        let mut rows = self.counts();
        rows.extend(self.metrics());
        let interval = format!("{}% interval", 100.0 * (1.0 - settings.alpha));
        let only_arm = self.arms().next().filter(|_| self.arms().count() == 1);
        let headers = [
            "arm",
            &settings.control,
            only_arm.unwrap_or("value"),
            "lift",
            &interval,
            "p adjusted",
            "state",
        ];
        let (arm, state) = (0, headers.len() - 1);
        let columns = headers.iter().enumerate().map(|(index, header)| GridColumn {
            header: (*header).to_owned(),
            cells: rows.iter().map(|(_, cells)| cells[index].clone()).collect(),
            is_text: index == arm || index == state,
        });
        // One arm is named in the heading of its values. Without metrics that decide, no row has a state.
        let is_shown = |(index, column): &(usize, GridColumn)| match *index {
            index if index == arm => only_arm.is_none(),
            index if index == state => column.cells.iter().any(|cell| !cell.is_empty()),
            _ => true,
        };
        let columns = columns.enumerate().filter(is_shown).map(|(_, column)| column);
        Grid {
            corner: self.sums.name.to_owned(),
            groups: vec![columns.collect()],
            rows: rows.into_iter().map(|(name, _)| name).collect(),
            lead: Vec::new(),
        }
    }

    /// Returns a row for each arm. Only the first one has a name, so that the rows of a metric read as a group.
    fn rows(&self, name: &str, cells: impl Fn(&'a str, &'a ArmReport) -> [String; 6]) -> Rows {
        let arms = self.comparison.report.arms.iter().enumerate();
        arms.map(|(index, (arm, report))| {
            let name = if index == 0 { name } else { "" };
            let [control, value, lift, interval, p, state] = cells(arm, report);
            (
                name.to_owned(),
                [arm.clone(), control, value, lift, interval, p, state],
            )
        })
        .collect()
    }

    /// Returns the rows of users, lists and clicks.
    fn counts(&self) -> Rows {
        let control = &*self.comparison.settings.control;
        let row = |name: &str, count: &dyn Fn(&str) -> Option<String>| {
            let count = |arm: &str| count(arm).unwrap_or_else(undefined);
            self.rows(name, |arm, _| {
                [
                    count(control),
                    count(arm),
                    String::new(),
                    String::new(),
                    String::new(),
                    String::new(),
                ]
            })
        };
        let mut rows = Rows::new();
        if self.comparison.counts_users() {
            rows.extend(row("users", &|arm| Some(self.comparison.users(arm)?.to_string())));
        }
        for (name, column) in COUNTS {
            rows.extend(row(name, &|arm| Some(self.sums.sums(arm)?[column].to_string())));
        }
        rows
    }

    /// Returns the rows of all metrics. Metrics per user have no column, and come after those that have one.
    fn metrics(&self) -> Rows {
        let settings = &self.comparison.settings;
        let columns = self.columns.iter().map(|column| (column.key(), Some(*column)));
        let mut metrics: Vec<(String, Option<&Column>)> = columns.collect();
        for id in self
            .comparison
            .report
            .arms
            .values()
            .flat_map(|arm| arm.metrics.keys())
        {
            if !metrics.iter().any(|(other, _)| other == id) {
                metrics.push((id.clone(), None));
            }
        }
        let role = |id: &String| match id {
            id if settings.primary.contains(id) => MetricRole::Primary,
            id if settings.guardrails.contains_key(id) => MetricRole::Guardrail,
            _ => MetricRole::Secondary,
        };
        let place = |id: &String| match role(id) {
            MetricRole::Primary => 0,
            MetricRole::Guardrail => 1,
            MetricRole::Secondary => 2,
        };
        metrics.sort_by_key(|(id, _)| place(id));
        let rows = metrics.iter().flat_map(|(id, column)| {
            let name = match role(id) {
                MetricRole::Primary => format!("{id} (primary)"),
                MetricRole::Guardrail => format!("{id} (guardrail)"),
                MetricRole::Secondary => id.clone(),
            };
            self.rows(&name, |arm, report| match report.metrics.get(id) {
                Some(metric) => self.compared_cells(report, metric),
                // A metric that is not a sum over lists has values only.
                None => {
                    let value = |arm: &str| column.and_then(|column| column.value(self.sums.sums(arm)?));
                    let values = [&*settings.control, arm].map(|arm| value_or_dash(value(arm)));
                    let [control, value] = values;
                    [
                        control,
                        value,
                        undefined(),
                        undefined(),
                        undefined(),
                        String::new(),
                    ]
                }
            })
        });
        rows.collect()
    }

    fn compared_cells(&self, report: &ArmReport, metric: &MetricReport) -> [String; 6] {
        let state = match metric.role {
            MetricRole::Primary => self.label(report),
            MetricRole::Guardrail => metric.guardrail.map_or("", |guardrail| guardrail.state.words()),
            MetricRole::Secondary => "",
        };
        [
            value_or_dash(metric.control),
            value_or_dash(metric.arm),
            metric.lift.map_or_else(undefined, percent),
            metric.interval.map_or_else(undefined, bounds),
            metric.p_adjusted.map_or_else(undefined, in_column),
            state.to_owned(),
        ]
    }
}

fn undefined() -> String {
    "–".to_owned()
}

fn value_or_dash(value: Option<f64>) -> String {
    value.map_or_else(undefined, |value| format!("{value:.4}"))
}

fn percent(share: f64) -> String {
    signed_percentage(share, 1)
}

fn bounds(Interval { lower, upper }: Interval) -> String {
    format!("[{}, {}]", percent(lower), percent(upper))
}
