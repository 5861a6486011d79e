//! How arms are compared, by the flags.

use std::collections::BTreeMap;

use crate::cli::EvaluateArgs;
use crate::commands::unknown;
use crate::engine::ranking::{Measures, Ranking};
use crate::statistics::Settings;

/// How far shares may be from adding up to 1.
const TOLERANCE: f64 = 1e-6;

/// None without `--compare`, or what is wrong with the flags.
pub(super) fn settings(args: &EvaluateArgs, measures: &Measures) -> Result<Option<Settings>, String> {
    let Some(control) = &args.compare else {
        return Ok(None);
    };
    let primary = known(&args.primary, "--primary <METRIC>", measures)?;
    let guardrails: Vec<String> = args.guardrail.iter().map(|(metric, _)| metric.clone()).collect();
    let guardrails = known(&guardrails, "--guardrail <METRIC=MARGIN>", measures)?;
    if let Some(metric) = primary.iter().find(|metric| guardrails.contains(metric)) {
        return Err(format!(
            "{metric} is named by --primary and by --guardrail: choose one of them"
        ));
    }
    let defaults = Settings::new(control);
    Ok(Some(Settings {
        shares: shares(args, control)?,
        primary,
        guardrails: guardrails
            .into_iter()
            .zip(args.guardrail.iter().map(|(_, margin)| *margin))
            .collect(),
        mde: args.mde.unwrap_or(defaults.mde),
        ..defaults
    }))
}

fn shares(args: &EvaluateArgs, control: &str) -> Result<BTreeMap<String, f64>, String> {
    let shares: BTreeMap<String, f64> = args.shares.iter().cloned().collect();
    let sum: f64 = shares.values().sum();
    if shares.len() < args.shares.len() {
        return Err("an arm is named twice by --shares".to_owned());
    }
    if !shares.is_empty() && (sum - 1.0).abs() > TOLERANCE {
        return Err(format!(
            "the shares of --shares add up to {sum}: write shares that add up to 1"
        ));
    }
    if !shares.is_empty() && !shares.contains_key(control) {
        return Err(format!(
            "--shares has no share of the control, {}",
            crate::table::visible(control)
        ));
    }
    Ok(shares)
}

/// Ids such as `hit_rate@10`, of what the first profile measures.
fn known(ids: &[String], flag: &str, measures: &Measures) -> Result<Vec<String>, String> {
    let ranking = Ranking::new(measures);
    let columns = ranking.columns().iter().filter(|column| column.profile == 0);
    let all: Vec<String> = columns
        .filter(|column| column.metric.is_additive())
        .map(|column| column.key())
        .collect();
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    match ids.iter().find(|id| !all.contains(id)) {
        Some(id) => Err(unknown(id, flag, &names)),
        None => Ok(ids.to_vec()),
    }
}
