//! An evaluation as JSON, CSV and tables, with warnings and notes about what was left out.

mod account;
mod comparisons;
mod csv;
mod grid;
mod json;
#[cfg(feature = "parquet")]
mod parquet;
mod rows;
mod tables;

use std::collections::BTreeMap;

use super::{ABSENT, Evaluation, GroupedNumbers, OTHER_GROUPS, TotalsByArm};
use crate::engine::outcome::{ClickResult, Outcome, SHELVES};
use crate::metrics::Column;
use crate::statistics::top_user::top_user_warning;
use crate::table::visible;

/// Printable form of an evaluation.
#[derive(Clone, Copy)]
pub struct Report<'a> {
    evaluation: &'a Evaluation,
}

impl Evaluation {
    /// Returns the report; if arms are compared, it includes the difference of each to its control.
    pub fn report(&self) -> Report<'_> {
        Report { evaluation: self }
    }

    /// Returns the names of experiments, and of the arms of each, sorted.
    pub fn arms(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut arms: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for arm in self.total.keys() {
            arms.entry(&arm.experiment).or_default().push(&arm.arm);
        }
        arms
    }

    /// Returns the number of lines that could not be read, for any reason.
    pub fn n_unreadable(&self) -> u64 {
        self.unreadable.values().map(|unreadable| unreadable.n).sum()
    }

    /// Returns the reasons to doubt the numbers, a line each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (reason, unreadable) in &self.unreadable {
            let places = unreadable.places.join(", ");
            // Only the first places are kept.
            let is_all = unreadable.n == unreadable.places.len() as u64;
            let more = if is_all { "" } else { ", …" };
            warnings.push(format!(
                "lines skipped as {}: {} ({places}{more})",
                reason.name(),
                unreadable.n
            ));
        }
        warnings.extend(self.long_lines.iter().cloned());
        warnings.extend(self.unlisted.iter().map(|(arm, n)| {
            format!(
                "lists of arm {} of {}: all {n} were refused, so the arm has no numbers and is not compared",
                visible(&arm.arm),
                visible(&arm.experiment)
            )
        }));
        warnings.extend(self.losses());
        warnings.extend(self.float_times.warning("lists"));
        if self.has_conflicts() {
            let n_conflicts = self.counts.conflicting_lists;
            warnings.push(format!(
                "copies with other items or arms: {n_conflicts} of {} lists: {SHELVES}",
                self.n_lists
            ));
        }
        for (experiment, comparison) in self.comparisons.iter().flatten() {
            for (arm, [lists, of_user]) in comparison.top_user_lists() {
                let names = [&*visible(experiment), &*visible(arm)];
                warnings.extend(top_user_warning(names, lists, of_user, self.max_user_share));
            }
        }
        let by = self.by.as_ref().filter(|by| !by.has_field && self.n_lists > 0);
        warnings.extend(by.map(|by| {
            format!(
                "--by {}: no list has this field, so all of them are in the group {ABSENT}: write it as in [events], such as \
                 ctx.device, or ^.device in the record around the event",
                by.field
            )
        }));
        warnings.extend(self.without_a_hit());
        warnings
    }

    /// Returns further notes for the reader, a line each.
    pub fn notes(&self) -> Vec<String> {
        let outcome = |outcome| self.n_of(outcome);
        let result = |result| self.counts.result(result);
        let notes = [
            (
                "ignored lines of another type",
                outcome(Outcome::Ignored).saturating_sub(self.n_unselected + self.n_unselected_clicks),
            ),
            ("lists left out by --where", self.n_unselected),
            (
                "lists that name no experiment, counted in no arm",
                self.n_lists_without_arm,
            ),
            (
                "skipped elements of lists that are not items",
                self.counts.skipped_elements,
            ),
            ("duplicate lists counted once", outcome(Outcome::Duplicate)),
            (
                "duplicates with other content; the first counts",
                self.counts.conflicting_lists,
            ),
            (
                match self.n_unselected {
                    0 => "clicks without a list in the attribution window",
                    _ => "clicks without a selected list in the attribution window",
                },
                result(ClickResult::Unmatched),
            ),
            (
                "clicks on items that their list does not show",
                result(ClickResult::OffList),
            ),
        ];
        let notes = notes.into_iter().filter(|(_, n)| *n > 0);
        let bad_arms = self.counts.bad_arms.iter();
        let bad_arms = bad_arms.map(|(experiment, n)| {
            format!("lists left out of {experiment} because their arm is not text of 1 to 128 bytes: {n}")
        });
        notes
            .map(|(what, n)| format!("{what}: {n}"))
            .chain(bad_arms)
            .chain(self.by.as_ref().and_then(note_on_groups))
            .collect()
    }
}

/// Returns a note on lists that are not in a group of their value.
fn note_on_groups(by: &GroupedNumbers) -> Option<String> {
    let (field, max, n) = (&by.field, by.max_groups, by.n_other_lists);
    (n > 0).then(|| {
        format!(
            "--by {field}: only its first {max} values have groups of their own, and {n} lists are in the group {OTHER_GROUPS}: raise \
             --max-groups"
        )
    })
}

impl<'a> Report<'a> {
    /// Returns the numbers over all lists.
    fn whole(self) -> Part<'a> {
        Part {
            group: None,
            total: &self.evaluation.total,
            spans: &self.evaluation.spans,
        }
    }

    /// Returns the numbers of each group.
    fn groups(self) -> impl Iterator<Item = Part<'a>> {
        let groups = self.evaluation.by.iter().flat_map(|by| &by.groups);
        groups.map(|group| Part {
            group: Some(&group.name),
            total: &group.total,
            spans: &group.spans,
        })
    }

    /// Returns the names of the profiles, each with its index.
    fn profiles(self) -> impl Iterator<Item = (usize, &'a str)> {
        let profiles = self.evaluation.ranking.profiles().iter();
        profiles.map(|profile| profile.name.as_str()).enumerate()
    }

    /// Returns the metrics of a profile, in the order of export.
    fn columns(self, profile: usize) -> impl Iterator<Item = &'a Column> {
        let columns = self.evaluation.ranking.columns().iter();
        columns.filter(move |column| column.profile == profile)
    }

    /// Returns the control of an experiment.
    fn control(self, experiment: &str) -> Option<&'a str> {
        let comparison = self.evaluation.comparison(experiment)?;
        Some(&comparison.settings.control)
    }

    /// Returns the control of an experiment with its sums, if it has a list.
    fn control_of(self, experiment: &ExperimentSums<'a>) -> Option<(&'a str, &'a [i128])> {
        let control = self.control(experiment.name)?;
        Some((control, experiment.sums(control)?))
    }

    /// Returns whether the difference of an arm to its control is shown.
    fn is_comparable(self, experiment: &str, arm: &str) -> bool {
        let comparison = self.evaluation.comparison(experiment);
        let report = comparison.and_then(|comparison| comparison.report.arms.get(arm));
        report.is_none_or(|report| report.incomparable.is_none())
    }
}

/// Numbers over all lists, or over the lists of a group.
#[derive(Clone, Copy)]
struct Part<'a> {
    group: Option<&'a str>,
    total: &'a TotalsByArm,
    /// By start of the span.
    spans: &'a BTreeMap<i64, TotalsByArm>,
}

/// The arms of one experiment by name, each with its sums.
struct ExperimentSums<'a> {
    name: &'a str,
    arms: Vec<(&'a str, &'a [i128])>,
}

impl<'a> ExperimentSums<'a> {
    fn sums(&self, arm: &str) -> Option<&'a [i128]> {
        let mut arms = self.arms.iter();
        arms.find(|(name, _)| *name == arm).map(|(_, sums)| *sums)
    }
}

/// Returns the experiments, sorted by name.
fn experiments(totals: &TotalsByArm) -> impl Iterator<Item = ExperimentSums<'_>> {
    let all: Vec<(&str, &str, &[i128])> = totals
        .iter()
        .map(|(arm, sums)| (&*arm.experiment, &*arm.arm, &**sums))
        .collect();
    // Totals are sorted by experiment, so each chunk has all arms of one.
    let of_each: Vec<ExperimentSums> = all
        .chunk_by(|a, b| a.0 == b.0)
        .map(|arms| ExperimentSums {
            name: arms[0].0,
            arms: arms.iter().map(|(_, arm, sums)| (*arm, *sums)).collect(),
        })
        .collect();
    of_each.into_iter()
}

/// Difference of a value to the control's.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
struct ControlDifference {
    absolute: f64,
    /// Percentage of the control's value; none if that is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<f64>,
}

impl ControlDifference {
    fn of(value: f64, control: f64) -> ControlDifference {
        let absolute = value - control;
        ControlDifference {
            absolute,
            percent: (control != 0.0).then(|| absolute / control * 100.0),
        }
    }

    /// Returns the difference of one metric; `None` if one of the two values is undefined.
    fn of_sums(column: &Column, sums: &[i128], control: &[i128]) -> Option<ControlDifference> {
        Some(ControlDifference::of(column.value(sums)?, column.value(control)?))
    }
}

/// Formats a time as RFC 3339 in UTC.
fn time(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => time.to_string(),
        Err(_) => ms.to_string(),
    }
}
