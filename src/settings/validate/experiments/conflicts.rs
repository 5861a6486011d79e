//! Settings of an experiment that contradict each other.

use abgauge_core::statistics::per_user::is_per_user;
use abgauge_core::statistics::{Settings, Unit, Validity};
use toml::Spanned;

use crate::settings::EpochStart;
use crate::settings::error::ErrorReport;
use crate::settings::raw::RawExperiment;

/// Maximum factor between the shares of an arm and its control with a planned look. Beyond it the skewness of the small arm
/// does not cancel, and a t test has more false alarms than α.
const MAX_PLANNED_RATIO: f64 = 4.0;

/// Refuses settings that are valid alone but conflict with each other.
pub(super) fn refuse(
    key: &str,
    raw: &RawExperiment,
    settings: &Settings,
    epochs: &[EpochStart],
    report: &mut ErrorReport,
) {
    primary_and_guardrail(key, raw, settings, report);
    per_user(key, raw, settings, report);
    sticky_requests(key, raw, settings, report);
    planned_before_min(key, raw, report);
    planned_and_strict(key, raw, settings, report);
    planned_with_unequal_shares(key, raw, settings, epochs, report);
}

fn primary_and_guardrail(key: &str, raw: &RawExperiment, settings: &Settings, report: &mut ErrorReport) {
    let both = settings
        .primary
        .iter()
        .find(|id| settings.guardrails.contains_key(*id));
    let (Some(id), Some(written)) = (both, &raw.guardrails) else {
        return;
    };
    let (message, remedy) = if raw.primary.is_some() {
        let message = format!("\"{id}\" is also a primary metric");
        (
            message,
            "leave it out of one of them: a primary that falls is a loss in any case",
        )
    } else {
        let message = format!("\"{id}\" is the default primary metric");
        (
            message,
            "write another one as `primary`, or leave it out of the guardrails",
        )
    };
    report.refuse(&format!("{key}.guardrails"), written, message, remedy);
}

/// Metrics per assigned user need shares of users.
fn per_user(key: &str, raw: &RawExperiment, settings: &Settings, report: &mut ErrorReport) {
    let why = match settings.unit {
        Unit::Request => [
            "`unit` is \"request\": no user is assigned to an arm",
            "write unit = \"user\"",
        ],
        Unit::User if raw.shares.is_none() => {
            let remedy = "write the shares of users as `shares`";
            [
                "without `shares` the expected number of users of an arm is unknown",
                remedy,
            ]
        }
        Unit::User => return,
    };
    let primaries = raw.primary.iter().flat_map(|list| list.get_ref());
    let primaries = primaries.map(|word| ("primary", word));
    let guardrails = raw.guardrails.iter().flat_map(|table| table.get_ref().keys());
    let guardrails = guardrails.map(|word| ("guardrails", word));
    for (setting, word) in primaries
        .chain(guardrails)
        .filter(|(_, word)| is_per_user(word.get_ref()))
    {
        let message = format!("\"{}\" is per assigned user, and {}", word.get_ref(), why[0]);
        let remedy = format!("{}, or use a metric per list, such as \"ctr@10\"", why[1]);
        report.refuse(&format!("{key}.{setting}"), word, message, remedy);
    }
}

fn sticky_requests(key: &str, raw: &RawExperiment, settings: &Settings, report: &mut ErrorReport) {
    if let Some(sticky) = raw
        .sticky
        .as_ref()
        .filter(|_| settings.sticky && settings.unit == Unit::Request)
    {
        report.refuse(
            &format!("{key}.sticky"),
            sticky,
            "keeps users in their first arm, but `unit` is \"request\": users have no arm",
            "leave it out, or write unit = \"user\"",
        );
    }
}

fn planned_before_min(key: &str, raw: &RawExperiment, report: &mut ErrorReport) {
    let [planned_key, min_key] = ["planned_days", "min_days"].map(|setting| format!("{key}.{setting}"));
    let Some(planned) = &raw.planned_days else { return };
    let min = raw
        .min_days
        .as_ref()
        .map_or(Settings::new("").min_days, |days| *days.get_ref());
    let days = *planned.get_ref();
    if days < min && report.is_sound(&planned_key) && report.is_sound(&min_key) {
        let message = format!(
            "{days} is fewer than min_days ({min}): the planned analysis would come before anything is decided"
        );
        let remedy = format!("write planned_days = {min} or more, or min_days = {days}");
        report.refuse(&planned_key, planned, message, remedy);
    }
}

/// The planned look is a t test with 4/5 of alpha, so its rate of false alarms is nearly alpha.
fn planned_and_strict(key: &str, raw: &RawExperiment, settings: &Settings, report: &mut ErrorReport) {
    if let Some(planned) = raw
        .planned_days
        .as_ref()
        .filter(|_| settings.validity == Validity::Strict)
    {
        report.refuse(
            &format!("{key}.planned_days"),
            planned,
            "plans one analysis, but validity is \"strict\", which allows hardly any false alarms: that analysis is a t-test at 4/5 of alpha, with nearly alpha false alarms",
            "leave it out; or leave `validity` out: a planned analysis is valid on its own, and the sequence is valid until then",
        );
    }
}

fn planned_with_unequal_shares(
    key: &str,
    raw: &RawExperiment,
    settings: &Settings,
    epochs: &[EpochStart],
    report: &mut ErrorReport,
) {
    let Some(planned) = &raw.planned_days else { return };
    let are_sound = ["shares", "epochs"]
        .iter()
        .all(|setting| report.is_sound(&format!("{key}.{setting}")));
    let later = epochs.iter().map(|epoch| &epoch.shares);
    let unequal = std::iter::once(&settings.shares).chain(later).find_map(|shares| {
        let control = shares.get(&settings.control)?;
        // Exactly fourfold passes, whatever the rounding.
        let is_far = |share: &f64| (share / control).max(control / share) > MAX_PLANNED_RATIO * (1.0 + 1e-9);
        let (arm, share) = shares.iter().find(|(_, share)| is_far(share))?;
        Some(format!("`{arm}` ({share}) and the control ({control})"))
    });
    if let Some(pair) = unequal.filter(|_| are_sound) {
        refuse_planned(key, planned, &pair, report);
    }
}

fn refuse_planned(key: &str, planned: &Spanned<f64>, pair: &str, report: &mut ErrorReport) {
    let message = format!(
        "plans one analysis, but the shares of {pair} differ more than fourfold: the skewness of the small arm does not cancel out, and that analysis has more false alarms than alpha"
    );
    let remedy = "leave it out: the sequence alone is valid; or give both arms similar shares";
    report.refuse(&format!("{key}.planned_days"), planned, message, remedy);
}
