//! `shares` and `epochs`: which users arms are to get, and from when on.

use std::collections::BTreeMap;
use std::ops::RangeBounds as _;

use abgauge_core::statistics::Settings;
use toml::Spanned;

use super::{arm, time_ms};
use crate::settings::bare_or_quoted;
use crate::settings::error::{ErrorReport, nearest};
use crate::settings::ranges::is_between;
use crate::settings::raw::{RawEpoch, RawExperiment, RawNumbers};
use crate::settings::rules::PART;
use crate::settings::{EpochStart, MAX_EPOCHS};

/// Tolerance for the sum of shares around 1.
const TOLERANCE: f64 = 1e-6;

/// Returns the shares of users by arm, valid only if nothing was reported for `key`.
pub(super) fn shares(
    key: &str,
    raw: &RawNumbers,
    control: &str,
    report: &mut ErrorReport,
) -> BTreeMap<String, f64> {
    for (name, share) in raw.get_ref() {
        arm(key, name, report);
        is_between(PART, key, share, report);
    }
    let shares: BTreeMap<String, f64> = raw
        .get_ref()
        .iter()
        .map(|(name, share)| (name.get_ref().clone(), *share.get_ref()))
        .collect();
    if shares.len() < 2 {
        let control = bare_or_quoted(control);
        let remedy = format!("write the shares of all compared arms: {{ {control} = 0.5, ARM = 0.5 }}");
        report.refuse(key, raw, "has fewer than two arms", remedy);
    } else if !shares.contains_key(control) {
        let arms = shares.keys().map(String::as_str);
        let remedy = match nearest(control, arms) {
            Some(near) => format!("is `{near}` the control? Write the same name in both places"),
            None => "add it: arms are compared with it".to_owned(),
        };
        report.refuse(
            key,
            raw,
            format!("has no share of the control, `{control}`"),
            remedy,
        );
    } else if shares.values().all(|share| PART.contains(share)) {
        // Only checked if each share is in its range, because a wrong share makes the sum wrong as well.
        add_up(key, raw, &shares, report);
    }
    shares
}

fn add_up(key: &str, raw: &RawNumbers, shares: &BTreeMap<String, f64>, report: &mut ErrorReport) {
    let sum: f64 = shares.values().sum();
    if (sum - 1.0).abs() > TOLERANCE {
        // Seven digits, so that many arms still add up.
        let scaled = |(arm, share): (&String, &f64)| {
            format!("{} = {}", bare_or_quoted(arm), (share / sum * 1e7).round() / 1e7)
        };
        let scaled: Vec<String> = shares.iter().map(scaled).collect();
        let message = format!("adds up to {}, not to 1", (sum * 1e7).round() / 1e7);
        let remedy = format!("write shares that add up to 1: {{ {} }}", scaled.join(", "));
        report.refuse(key, raw, message, remedy);
    }
}

/// Returns the later allocations, valid only if nothing was reported for them.
pub(super) fn epochs(
    key: &str,
    raw: &RawExperiment,
    start_ms: Option<i64>,
    settings: &Settings,
    report: &mut ErrorReport,
) -> Vec<EpochStart> {
    let Some(written) = &raw.epochs else {
        return Vec::new();
    };
    let key = format!("{key}.epochs");
    if raw.shares.is_none() {
        let message = "lists later shares, but the first shares are not set";
        report.refuse(&key, written, message, "write the first ones as `shares`");
    }
    if written.get_ref().len() > MAX_EPOCHS {
        let remedy = format!("write at most {MAX_EPOCHS}, or restart the experiment");
        report.refuse(&key, written, "has too many epochs", remedy);
    }
    let mut epochs: Vec<EpochStart> = Vec::new();
    for raw in written.get_ref() {
        if let Some(epoch) = epoch(&key, raw, settings, report) {
            let previous_ms = epochs.last().map(|epoch| epoch.start_ms);
            in_order(&key, raw, epoch.start_ms, previous_ms, start_ms, report);
            epochs.push(epoch);
        }
    }
    epochs
}

fn epoch(
    key: &str,
    raw: &Spanned<RawEpoch>,
    settings: &Settings,
    report: &mut ErrorReport,
) -> Option<EpochStart> {
    let RawEpoch { start, shares } = raw.get_ref();
    let (Some(start), Some(shares)) = (start, shares) else {
        let missing = if start.is_none() { "start" } else { "shares" };
        let remedy = "write { start = \"2026-01-31T09:00:00Z\", shares = { control = 0.5, ARM = 0.5 } }";
        report.refuse(key, raw, format!("an epoch has no `{missing}`"), remedy);
        return None;
    };
    let start_ms = time_ms(key, start, report)?;
    let known = &settings.shares;
    let others = shares
        .get_ref()
        .keys()
        // That `shares` is missing is reported once, and not for each arm.
        .filter(|arm| !known.is_empty() && !known.contains_key(arm.get_ref()));
    for arm in others {
        let remedy = match nearest(arm.get_ref(), known.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "an additional arm restarts the experiment: name it in `shares`, and write another `start`"
                    .to_owned()
            }
        };
        let message = format!("`{}` is not among the arms of `shares`", arm.get_ref());
        report.refuse(key, arm, message, remedy);
    }
    Some(EpochStart {
        start_ms,
        shares: self::shares(key, shares, &settings.control, report),
    })
}

/// Checks that each epoch starts after the previous one, and the first one after the experiment.
fn in_order(
    key: &str,
    raw: &Spanned<RawEpoch>,
    starts_ms: i64,
    previous_ms: Option<i64>,
    start_ms: Option<i64>,
    report: &mut ErrorReport,
) {
    let message = match (previous_ms, start_ms) {
        (Some(previous_ms), _) if starts_ms <= previous_ms => "does not start after the epoch before it",
        (None, Some(start_ms)) if starts_ms <= start_ms => "does not start after the experiment (`start`)",
        _ => return,
    };
    let remedy =
        "write epochs in the order of time, each after `start`; the shares from `start` on are `shares`";
    report.refuse(key, raw, message, remedy);
}
