//! One experiment from look to look: its state and its results.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::arms::{ArmLook, arms};
use super::history::History;
use super::pair::{ExperimentUsers, PairUsers};
use super::sums::{arm_totals, refused_lists};
use super::{Experiment, LookRules};
use crate::ledger::{BucketSums, PairId, RefusedCounts, UnitCounts};
use crate::statistics::{
    ArmTotals, ComparisonReport, Epoch, LookSpan, Settings, Sides, Size, TestProgress, TestState, Totals,
    look_at,
};

/// Result of a look at an experiment. Undefined values are absent.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentLook {
    /// Start of its sums, Unix ms.
    pub start_ms: i64,
    /// Start of the current allocation, Unix ms: of its latest epoch.
    pub shares_since_ms: i64,
    /// End of its sums, Unix ms.
    pub as_of_ms: i64,
    /// Results by arm name.
    pub arms: BTreeMap<String, ArmLook>,
    /// Settings of the experiment, and its comparison with the control. None without a control.
    pub comparison: Option<(Settings, ComparisonReport)>,
    /// Reason why users are not counted, if they are not.
    pub no_users: Option<&'static str>,
    /// Results of all looks so far, including this one.
    pub history: Arc<History>,
}

impl ExperimentLook {
    /// Returns the sample size of each arm and of the control.
    pub fn sizes(&self) -> BTreeMap<&str, Size> {
        let arms = self.arms.iter();
        arms.map(|(name, arm)| (name.as_str(), arm.size)).collect()
    }
}

/// State of an experiment between two looks.
#[derive(Debug, Clone, Default)]
pub(super) struct ExperimentProgress {
    pub kept: TestState,
    /// The configured `start`, or the cell of the first list if that is later. None before the first list.
    pub start_ms: Option<i64>,
    /// Results of all looks so far.
    pub history: Arc<History>,
}

/// Note for experiments whose users are not counted.
const BY_REQUEST: &str = "users are not counted, and no sample ratio is tested: kafka.key is \"request\", so lists of a user come \
                          through several partitions";

impl ExperimentProgress {
    /// Takes a look. None before the experiment's first list.
    pub fn look(
        &mut self,
        name: &str,
        rules: &LookRules,
        pairs: &BTreeMap<PairId, PairUsers>,
        as_of_ms: i64,
    ) -> Option<ExperimentLook> {
        let asked = &rules.experiments[name];
        let of_pairs: Vec<_> = pairs
            .values()
            .filter_map(|pair| Some((pair, pair.of(name)?)))
            .collect();
        if of_pairs.is_empty() && self.start_ms.is_none() {
            return None;
        }
        let start_ms = self.start_ms.unwrap_or_else(|| {
            let first_cell_ms = as_of_ms - rules.every_ms;
            self.kept.progress = TestProgress::since(first_cell_ms);
            // Days count from the first list that was read. If the log is shorter than the experiment, the first look would
            // otherwise lie past whole weeks and the planned end, and decide on ten minutes of data.
            asked
                .start_ms
                .map_or(first_cell_ms, |start_ms| start_ms.max(first_cell_ms))
        });
        self.start_ms = Some(start_ms);
        let totals = totals(asked, &of_pairs, rules);
        let sides = Sides::new(&totals.epochs);
        let comparison = asked.settings.as_ref().map(|settings| {
            let time = LookSpan { start_ms, as_of_ms };
            let report = look_at(settings, &mut self.kept, &totals, &sides, time);
            (settings.clone(), report)
        });
        let changed_ms = asked.shares_since_ms(as_of_ms, rules.every_ms);
        let window_ms = rules
            .window
            .as_ref()
            .map_or(0, |window| window.n_cells * rules.every_ms);
        let is_one_epoch = changed_ms.is_none_or(|changed_ms| changed_ms <= as_of_ms - window_ms);
        let mut look = ExperimentLook {
            start_ms,
            shares_since_ms: changed_ms.unwrap_or(start_ms),
            as_of_ms,
            arms: arms(
                &totals,
                &sides,
                &of_pairs,
                rules,
                comparison.as_ref(),
                is_one_epoch,
            ),
            comparison,
            no_users: (!rules.counts_users).then_some(BY_REQUEST),
            history: Arc::default(),
        };
        Arc::make_mut(&mut self.history).add(&look, rules.every_ms);
        look.history = Arc::clone(&self.history);
        Some(look)
    }
}

/// Sums up all pairs, by epoch. Epochs that have not begun are left out.
fn totals(asked: &Experiment, pairs: &[(&PairUsers, &ExperimentUsers)], rules: &LookRules) -> Totals {
    let epochs = (0..asked.n_epochs()).map(|epoch| Epoch {
        shares: asked.shares(epoch),
        arms: epoch_arms(epoch, pairs, rules),
    });
    let mut epochs: Vec<Epoch> = epochs.collect();
    let n_started = epochs.iter().rposition(|epoch| !epoch.arms.is_empty());
    // Earlier epochs without lists stay, so that each epoch keeps its number.
    epochs.truncate(n_started.map_or(0, |last| last + 1));
    let in_two = pairs.iter().map(|(_, users)| users.n_in_two()).sum::<u64>();
    Totals {
        epochs,
        multi_arm_users: rules.counts_users.then_some(in_two as f64),
    }
}

/// An arm in an epoch, over all pairs.
#[derive(Default)]
struct EpochTotals<'a> {
    sums: Vec<&'a BucketSums>,
    n_users: u64,
    units: UnitCounts,
    refused: RefusedCounts,
}

fn epoch_arms(
    epoch: usize,
    pairs: &[(&PairUsers, &ExperimentUsers)],
    rules: &LookRules,
) -> BTreeMap<String, ArmTotals> {
    let mut arms: BTreeMap<&str, EpochTotals> = BTreeMap::new();
    for (pair, users) in pairs {
        for (arm, epochs) in &users.arms {
            if let Some(arm_users) = epochs.get(&epoch) {
                let of_arm = arms.entry(pair.name(*arm)).or_default();
                of_arm.sums.push(&arm_users.sums);
                of_arm.n_users += arm_users.exposed.first;
                of_arm.units.add(arm_users.units);
                of_arm.refused.add(&arm_users.refused);
            }
        }
    }
    let arms = arms.into_iter();
    arms.map(|(name, of_arm)| {
        let users = rules.counts_users.then_some(of_arm.n_users as f64);
        let totals = ArmTotals {
            lists_without_user: of_arm.units.without_user as f64,
            capped_lists: of_arm.units.capped as f64,
            refused: refused_lists(&of_arm.refused),
            ..arm_totals(&of_arm.sums, users, &rules.ranking)
        };
        (name.to_owned(), totals)
    })
    .collect()
}
