//! Notes on an arm's numbers, in addition to its state.

use std::collections::BTreeSet;

use super::arm::LookedArm;
use super::decision::ArmState;
use super::definition::name_of;
use super::effect::Interval;
use super::settings::Settings;
use super::test_state::{DecidedLook, DecidedMetric};
use super::totals::Totals;
use super::units::UnitShares;
use crate::nouns::number_of;
use crate::rounding::percentage;

/// Share of lists without a user from which on there is a note.
const WITHOUT_USER: f64 = 0.01;
/// Remedy for lists without a user.
pub(super) const USERS_REMEDY: &str = "send a user id with every list, let events.user_id name a second field, or set unit = \"request\" if \
                                       requests are assigned, not users";
/// Share of refused lists and clicks from which on there is a note.
const REFUSED: f64 = 0.01;
/// Share of the variance in one bucket of users above which there is a note.
const TOP_BUCKET: f64 = 0.5;

/// Returns the notes on an arm, most important first.
pub(super) fn notes(name: &str, arm: &LookedArm, units: &UnitShares, settings: &Settings) -> Vec<String> {
    let mut notes = Vec::new();
    let sides = [name, &settings.control];
    for (side, share) in sides.iter().zip(units.without_user.iter().flatten()) {
        if *share >= WITHOUT_USER {
            notes.push(format!(
                "{} of the lists of {side} have no user, so intervals are too narrow: {USERS_REMEDY}",
                percent(*share)
            ));
        }
    }
    for (side, share) in sides.iter().zip(units.refused.shares) {
        if share >= REFUSED {
            notes.push(format!(
                "{} of the lists of {side} were refused or lost a click",
                percent(share)
            ));
        }
    }
    notes.extend(top_bucket_note(arm, settings));
    if let Some([of_arm, of_control]) = units.capped {
        notes.push(format!(
            "max_lists_per_user leaves out {} of the lists of {name} and {} of {}",
            percent(of_arm),
            percent(of_control),
            settings.control
        ));
    }
    notes
}

/// Returns a note if a large part of a variance comes from one bucket: of a primary or guardrail or, without any, of any metric.
fn top_bucket_note(arm: &LookedArm, settings: &Settings) -> Option<String> {
    let watched = settings.watched();
    let metrics = arm.metrics.iter();
    let shares = metrics.filter_map(|(id, metric)| Some((id, metric.measure.top_bucket_share?)));
    let is_noted = |id: &str, share: f64| share > TOP_BUCKET && (watched.is_empty() || watched.contains(id));
    let noted: Vec<(&String, f64)> = shares.filter(|(id, share)| is_noted(id, *share)).collect();
    // A crawler dominates many metrics, so one of them stands for all.
    let (id, share) = noted.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let others = match noted.len() - 1 {
        0 => String::new(),
        n => format!(" (and more than half for {})", number_of(n, "other metric")),
    };
    Some(format!(
        "{} of the variance of {} comes from one user or very few{others}: filter crawlers, or set max_lists_per_user",
        percent(*share),
        name_of(id)
    ))
}

/// Returns the notes on an experiment whose arms do not match its shares.
pub(super) fn notes_on_arms(totals: &Totals) -> Vec<String> {
    let shares = totals.epochs.iter().flat_map(|epoch| epoch.shares.keys());
    let planned: BTreeSet<&str> = shares.map(String::as_str).collect();
    // Without shares, no arm is planned or unplanned.
    if planned.is_empty() {
        return Vec::new();
    }
    let arms = totals.epochs.iter().flat_map(|epoch| &epoch.arms);
    let with_lists = arms.filter(|(_, arm)| arm.lists.iter().any(|n| *n > 0.0));
    let came: BTreeSet<&str> = with_lists.map(|(name, _)| name.as_str()).collect();
    let names = |arms: Vec<&&str>| arms.into_iter().copied().collect::<Vec<_>>().join(", ");
    let absent = names(planned.difference(&came).collect());
    let unplanned = names(came.difference(&planned).collect());
    let mut notes = Vec::new();
    if !absent.is_empty() {
        notes.push(format!("arms with a share but no list: {absent}"));
    }
    if !unplanned.is_empty() {
        // An arm missing on each side is most likely a misspelled name in the shares.
        let hint = if absent.is_empty() {
            ""
        } else {
            "; if the shares misspell an arm, correct its name there"
        };
        notes.push(format!("arms with lists but no share: {unplanned}{hint}"));
    }
    notes
}

/// Writes the reason of a decision by a metric whose interval now contains 0: "CTR@10 was worse, p = 0.010, decided on day 7; since
/// then its interval has come to include 0".
pub(super) fn open_again_reason(reason: &str, metric: &str) -> String {
    let name = name_of(metric);
    let Some(claim) = reason.strip_prefix(&format!("{name} is ")) else {
        // The reason is about another metric, whose interval may still exclude 0.
        return format!("{reason}; since then the interval of {name} has come to include 0");
    };
    // A state that no longer agrees with its interval does not hold since the first of its days.
    let claim = claim.replacen(", since day ", ", decided on day ", 1);
    format!("{name} was {claim}; since then its interval has come to include 0")
}

/// Writes the note on a decision whose interval now contains 0.
pub(super) fn open_again_note(metric: &str, day: u32) -> String {
    format!(
        "since the decision of day {day} the interval of {} has come to include 0",
        name_of(metric)
    )
}

/// Returns the metric by which a current win or loss is open again: 0 now lies in its t interval for one look, or in its band.
pub(super) fn open_again(arm: &LookedArm, decided: &DecidedLook) -> Option<String> {
    if !matches!(decided.state, ArmState::Win | ArmState::Loss) {
        return None;
    }
    let is_open = |(id, then): &(&String, &DecidedMetric)| -> bool {
        let Some(now) = arm.metrics.get(*id).map(|metric| &metric.report) else {
            return false;
        };
        let holds_zero =
            |interval: Option<Interval>| interval.is_some_and(|interval| !interval.excludes_zero());
        // The band counts only if it excluded 0 at the decision. It is wider, so it may have contained 0 all along.
        holds_zero(now.interval_at_one_look) || (then.band_excludes_zero && holds_zero(now.interval))
    };
    let decisive = decided
        .metrics
        .iter()
        .filter(|(_, then)| then.interval.is_some_and(Interval::excludes_zero));
    let (id, _) = decisive.into_iter().find(is_open)?;
    Some(id.clone())
}

fn percent(share: f64) -> String {
    percentage(share, 1)
}

#[cfg(test)]
mod tests {
    use super::super::totals::{ArmTotals, Epoch};
    use super::*;

    #[test]
    fn a_lost_metric_was_worse_once_its_interval_includes_zero_again() {
        for (reason, open_again) in [
            (
                "CTR@10 is worse, p = 0.010, decided on day 7",
                "CTR@10 was worse, p = 0.010, decided on day 7; since then its interval has come to include 0",
            ),
            (
                "CTR@10 is better, p = 0.010, since day 7, last confirmed on day 14",
                "CTR@10 was better, p = 0.010, decided on day 7, last confirmed on day 14; since then its interval has come to include 0",
            ),
            (
                "CTR@1 is worse, p = 0.010, decided on day 7",
                "CTR@1 is worse, p = 0.010, decided on day 7; since then the interval of CTR@10 has come to include 0",
            ),
        ] {
            assert_eq!(open_again_reason(reason, "ctr@10"), open_again);
        }
    }

    #[test]
    fn absent_arms_and_unplanned_arms_are_named() {
        let notes = |shares: &[&str], arms: &[(&str, f64)]| {
            let lists = |n: f64| ArmTotals {
                lists: vec![0.0, n],
                ..ArmTotals::default()
            };
            let epoch = Epoch {
                shares: shares.iter().map(|arm| ((*arm).to_owned(), 0.5)).collect(),
                arms: arms
                    .iter()
                    .map(|(arm, n)| ((*arm).to_owned(), lists(*n)))
                    .collect(),
            };
            notes_on_arms(&Totals {
                epochs: vec![epoch],
                multi_arm_users: None,
            })
        };
        let seen = [("a", 5.0), ("b", 5.0), ("c", 0.0)];
        assert!(notes(&[], &seen).is_empty());
        assert!(notes(&["a", "b"], &seen).is_empty());
        assert_eq!(notes(&["a"], &seen), ["arms with lists but no share: b"]);
        assert_eq!(
            notes(&["a", "b", "c", "d"], &seen),
            ["arms with a share but no list: c, d"]
        );
        assert_eq!(
            notes(&["a", "bb"], &seen),
            [
                "arms with a share but no list: bb",
                "arms with lists but no share: b; if the shares misspell an arm, correct its name there"
            ]
        );
    }
}
