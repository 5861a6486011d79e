//! What a reader must know of the numbers of an arm, beside its state.

use super::arm::LookedArm;
use super::decision::State;
use super::effect::Interval;
use super::kept::{Decided, DecidedMetric};
use super::names::name_of;
use super::settings::Settings;
use super::units::Units;

/// Share of lists without a user from which on it is noted.
const WITHOUT_USER: f64 = 0.01;
/// Share of refused lists from which on it is noted.
const REFUSED: f64 = 0.01;
/// Share of the variance in one bucket of users above which it is noted.
const TOP_BUCKET: f64 = 0.5;

/// Notes on an arm, in the order of how much they matter.
pub(super) fn notes(name: &str, arm: &LookedArm, units: &Units, settings: &Settings) -> Vec<String> {
    let mut notes = Vec::new();
    let sides = [name, &settings.control];
    for (side, share) in sides.iter().zip(units.without_user.iter().flatten()) {
        if *share >= WITHOUT_USER {
            notes.push(format!(
                "{} of the lists of {side} have no user, so intervals are too narrow: send a user id with every \
                 list, or let events.user_id name a second field",
                percent(*share)
            ));
        }
    }
    for (side, share) in sides.iter().zip(units.refused.shares) {
        if share >= REFUSED {
            notes.push(format!("{} of the lists of {side} were refused", percent(share)));
        }
    }
    for metric in settings.watched() {
        let comparison = arm
            .metrics
            .get(metric)
            .and_then(|of| of.measure.comparison.as_ref());
        let share = comparison.and_then(|comparison| comparison.top_bucket_share);
        if let Some(share) = share.filter(|share| *share > TOP_BUCKET) {
            notes.push(format!(
                "{} of the variance of {} comes from one user or very few: filter crawlers, or set max_lists_per_user",
                percent(share),
                name_of(metric)
            ));
        }
    }
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

/// A note on a decision whose interval has come to hold 0.
pub(super) fn open_again_note(metric: &str, day: u32) -> String {
    format!(
        "since the decision of day {day} the interval of {} has come to hold 0",
        name_of(metric)
    )
}

/// The metric of a standing win or loss that is open again: 0 has come to lie in its t interval for one look, or in its band.
pub(super) fn open_again(arm: &LookedArm, decided: &Decided) -> Option<String> {
    if !matches!(decided.state, State::Win | State::Loss) {
        return None;
    }
    let is_open = |(id, then): &(&String, &DecidedMetric)| -> bool {
        let Some(now) = arm.metrics.get(*id).and_then(|metric| metric.judged.as_ref()) else {
            return false;
        };
        let holds_zero =
            |interval: Option<Interval>| interval.is_some_and(|interval| !interval.excludes_zero());
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
    format!("{:.1}%", 100.0 * share)
}
