//! Evaluation as one JSON document.

use std::collections::BTreeMap;
use std::io::Write;

use serde::ser::{Serialize, Serializer};

use super::account::Account;
use super::comparisons::Comparisons;
use super::{ControlDifference, ExperimentSums, Part, Report, experiments, time};
use crate::evaluate::TotalsByArm;
use crate::metrics::by_name::{MetricKey, MetricsMap, metrics_map};
use crate::metrics::{CLICKS, LISTS};

/// Document: the numbers, and the account of all lines.
#[derive(serde::Serialize)]
struct EvaluationDocument<'a, T> {
    #[serde(flatten)]
    numbers: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparisons: Option<Comparisons<'a>>,
    #[serde(flatten)]
    account: Account,
}

#[derive(serde::Serialize)]
struct ProfileReports<'a> {
    profiles: BTreeMap<&'a str, ProfileReport<'a>>,
}

#[derive(serde::Serialize)]
struct ProfileReport<'a> {
    #[serde(flatten)]
    whole: PartReport<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<GroupsReport<'a>>,
}

#[derive(serde::Serialize)]
struct PartReport<'a> {
    experiments: BTreeMap<&'a str, ExperimentReport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Vec<SpanReport<'a>>>,
}

#[derive(serde::Serialize)]
struct GroupsReport<'a> {
    field: &'a str,
    groups: BTreeMap<&'a str, PartReport<'a>>,
}

#[derive(serde::Serialize)]
struct SpanReport<'a> {
    start: String,
    experiments: BTreeMap<&'a str, ExperimentReport<'a>>,
}

#[derive(serde::Serialize)]
struct ExperimentReport<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<&'a str>,
    arms: BTreeMap<&'a str, EvaluatedArm<'a>>,
}

#[derive(serde::Serialize)]
struct EvaluatedArm<'a> {
    lists: i128,
    clicks: i128,
    metrics: MetricsMap<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    differences: Option<Differences<'a>>,
}

/// Differences to the control by metric, as far as they are defined.
struct Differences<'a> {
    report: Report<'a>,
    profile: usize,
    sums: &'a [i128],
    control: &'a [i128],
}

impl<'a> Report<'a> {
    /// Writes the evaluation as JSON:
    /// `{"experiments":{E:{"arms":{A:{"lists":N,"clicks":N,"metrics":{"hit_rate@5":0.51,…}}}}}}`. With several profiles it
    /// is `{"profiles":{P:{"experiments":…}}}`.
    ///
    /// - A series adds `"series":[{"start":"2025-11-20T00:00:00Z","experiments":…},…]` next to `experiments`. Spans without
    ///   a list are left out.
    /// - Groups add `"by":{"field":F,"groups":{G:{"experiments":…},…}}` next to `experiments`.
    /// - A comparison adds `"control":A` next to `arms`, and
    ///   `"differences":{"hit_rate@5":{"absolute":0.02,"percent":4.1},…}` next to the `metrics` of each other arm that is
    ///   comparable with it.
    /// - `"comparisons":{E:{A:{…}}}` has the uncertainty of each other arm's lifts, by the first profile.
    /// - The top level also has `records` (lines by outcome), `invalid_records` (by reason), `lists_without_experiment`,
    ///   `click_results`, and `exact`.
    ///
    /// # Errors
    /// The document cannot be written.
    pub fn json(self, mut out: impl Write) -> anyhow::Result<()> {
        let documents = self.profiles().map(|(index, name)| (name, self.document(index)));
        let mut documents: BTreeMap<&str, ProfileReport> = documents.collect();
        // A single profile needs no level of its own.
        match documents.pop_first() {
            Some((_, only)) if documents.is_empty() => self.write(&mut out, only)?,
            first => {
                documents.extend(first);
                self.write(&mut out, ProfileReports { profiles: documents })?;
            }
        }
        writeln!(out)?;
        Ok(())
    }

    fn write(self, out: &mut impl Write, numbers: impl Serialize) -> serde_json::Result<()> {
        let whole = EvaluationDocument {
            numbers,
            comparisons: self.comparisons(),
            account: self.evaluation.account(),
        };
        serde_json::to_writer(out, &whole)
    }

    fn document(self, profile: usize) -> ProfileReport<'a> {
        let groups = || {
            let groups = self.groups();
            let named = groups.map(|part| (part.group.unwrap_or_default(), self.part(part, profile)));
            named.collect()
        };
        ProfileReport {
            whole: self.part(self.whole(), profile),
            by: self.evaluation.by.as_ref().map(|by| GroupsReport {
                field: &by.field,
                groups: groups(),
            }),
        }
    }

    fn part(self, part: Part<'a>, profile: usize) -> PartReport<'a> {
        let series = || {
            let spans = part.spans.iter();
            let spans = spans.map(|(start_ms, totals)| SpanReport {
                start: time(*start_ms),
                experiments: self.experiments(totals, profile),
            });
            spans.collect()
        };
        PartReport {
            experiments: self.experiments(part.total, profile),
            series: self.evaluation.span_ms.map(|_| series()),
        }
    }

    fn experiments(self, totals: &'a TotalsByArm, profile: usize) -> BTreeMap<&'a str, ExperimentReport<'a>> {
        let all = experiments(totals);
        all.map(|experiment| (experiment.name, self.arms(&experiment, profile)))
            .collect()
    }

    fn arms(self, experiment: &ExperimentSums<'a>, profile: usize) -> ExperimentReport<'a> {
        let control = self.control_of(experiment);
        let arm = |name: &str, sums: &'a [i128]| EvaluatedArm {
            lists: sums[LISTS],
            clicks: sums[CLICKS],
            metrics: metrics_map(&self.evaluation.ranking, profile, sums),
            // The control has no difference to itself, and that of an incomparable arm would mislead.
            differences: control
                .filter(|(control, _)| *control != name && self.is_comparable(experiment.name, name))
                .map(|(_, control)| Differences {
                    report: self,
                    profile,
                    sums,
                    control,
                }),
        };
        let arms = experiment.arms.iter();
        ExperimentReport {
            control: control.map(|(control, _)| control),
            arms: arms.map(|(name, sums)| (*name, arm(name, sums))).collect(),
        }
    }
}

impl Serialize for Differences<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = self.report.columns(self.profile);
        serializer.collect_map(columns.filter_map(|column| {
            let difference = ControlDifference::of_sums(column, self.sums, self.control)?;
            Some((MetricKey(column), difference))
        }))
    }
}
