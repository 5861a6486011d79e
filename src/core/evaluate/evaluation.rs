//! Numbers of a set of files: over all of it, and for each span of time if a series was requested.

use std::collections::BTreeMap;

use super::UnreadableLines;
use super::comparison::ExperimentComparison;
use super::reading::Filter;
use crate::engine::Arm;
use crate::engine::event::Reason;
use crate::engine::float_times::FloatTimes;
use crate::engine::outcome::Counts;
use crate::ledger::Numbers;
use crate::metrics::Ranking;
use crate::metrics::catalogue::Catalogue;

/// Sums by arm, as wide as the ranking.
pub type TotalsByArm = BTreeMap<Arm, Box<[i128]>>;

/// Numbers of the lists that have one value of a field.
pub struct GroupNumbers {
    /// Value of the field, or [`ABSENT`](super::ABSENT) or [`OTHER_GROUPS`](super::OTHER_GROUPS).
    pub name: String,
    pub total: TotalsByArm,
    /// Totals by start of the span, as in [`Evaluation::spans`].
    pub spans: BTreeMap<i64, TotalsByArm>,
}

/// Numbers by the values of a field.
pub struct GroupedNumbers {
    pub field: String,
    /// Sorted by name.
    pub groups: Vec<GroupNumbers>,
    /// Maximum number of values with a group of their own.
    pub max_groups: usize,
    /// True if some list has the field.
    pub has_field: bool,
    /// Lists whose values have no group of their own.
    pub n_other_lists: u64,
    /// Lists and clicks that were shed for lack of memory.
    pub n_shed: u64,
    /// True if no sum has overflowed.
    pub is_exact: bool,
}

/// The numbers of a set of files.
pub struct Evaluation {
    pub ranking: Ranking,
    pub total: TotalsByArm,
    /// Length of a span, if a series was requested.
    pub span_ms: Option<i64>,
    /// Totals by start of the span, Unix ms; spans without a list are absent.
    pub spans: BTreeMap<i64, TotalsByArm>,
    /// Numbers by the values of a field, if they were requested.
    pub by: Option<GroupedNumbers>,
    /// Comparisons by experiment, for the ones with their control; `None` if nothing was to be compared.
    pub comparisons: Option<BTreeMap<String, ExperimentComparison>>,
    /// Outcome of each line.
    pub counts: Counts,
    /// Served lists that could be read, and were selected.
    pub n_lists: u64,
    /// Served lists that were not selected. They count as ignored.
    pub n_unselected: u64,
    /// Clicks in such lists, which count as ignored too.
    pub n_unselected_clicks: u64,
    /// Filters of lists, with what they found in lists that were not selected.
    pub filters: Vec<Filter>,
    /// Served lists that name no experiment, and so count in no arm.
    pub n_lists_without_arm: u64,
    /// Clicks that could not be read, as far as an unreadable line can be recognized as a click.
    pub n_refused_clicks: u64,
    /// Lists that could not be read, by reason, as far as an unreadable line can be recognized as a list.
    pub refused_lists: BTreeMap<Reason, u64>,
    /// Arms without an accepted list, with the number of their refused lists.
    pub unlisted: BTreeMap<Arm, u64>,
    /// Number of lists, and of list times that a 32-bit float can represent.
    pub float_times: FloatTimes,
    /// True if no sum has overflowed.
    pub exact: bool,
    /// See [`Options::max_duplicate_share`](super::Options::max_duplicate_share).
    pub max_duplicate_share: f64,
    /// See [`Options::max_user_share`](super::Options::max_user_share).
    pub max_user_share: f64,
    pub unreadable: BTreeMap<Reason, UnreadableLines>,
    /// Warnings of lines that were too long to be read, by file.
    pub long_lines: Vec<String>,
}

impl Evaluation {
    /// Returns a metric of the first profile by its key, such as `hit_rate@5`; `None` if the arm has no list, or the metric
    /// divides by 0.
    pub fn value(&self, experiment: &str, arm: &str, key: &str) -> Option<f64> {
        let first = self.ranking.profiles().first()?;
        self.value_of(&first.name, experiment, arm, key)
    }

    /// Returns a metric of any profile.
    pub fn value_of(&self, profile: &str, experiment: &str, arm: &str, key: &str) -> Option<f64> {
        let mut profiles = self.ranking.profiles().iter();
        let profile = profiles.position(|other| other.name == profile)?;
        let is_named = |named: &Arm| &*named.experiment == experiment && &*named.arm == arm;
        let (_, sums) = self.total.iter().find(|(named, _)| is_named(named))?;
        let mut columns = self.ranking.columns().iter();
        let column = columns.find(|column| column.profile == profile && column.key() == key)?;
        column.value(sums)
    }

    /// Returns the comparison of an experiment with its control; `None` if it has none.
    pub fn comparison(&self, experiment: &str) -> Option<&ExperimentComparison> {
        self.comparisons.as_ref()?.get(experiment)
    }

    pub fn is_empty(&self) -> bool {
        self.total.is_empty()
    }
}

/// Returns the sums of arms by name, including distinct counts.
pub(super) fn totals(
    numbers: Numbers,
    arms: &[Arm],
    ranking: &Ranking,
    catalogue: Option<&Catalogue>,
) -> TotalsByArm {
    let named = numbers.sums.iter().map(|(arm, sums)| {
        let mut sums = sums.clone();
        // Distinct counts are not sums of lists: they are computed from the items seen, and need a catalogue.
        if let Some((catalogue, columns)) = catalogue.zip(ranking.coverage()) {
            sums[columns.size] = catalogue.len() as i128;
            if let Some(classes) = numbers.seen.get(arm) {
                let counts = classes.counts(columns.ks.len(), catalogue);
                let seen = sums[columns.seen.clone()].iter_mut();
                seen.zip(counts).for_each(|(sum, count)| *sum = count.into());
            }
        }
        (arms[*arm as usize].clone(), sums)
    });
    named.collect()
}
