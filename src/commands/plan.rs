//! `abgauge plan`: how long experiments must run, from what their lists of some days spread.

mod report;

use std::collections::BTreeMap;
use std::process::ExitCode;

use super::counting::{Counted, counted};
use super::reading::{self, BAD_DATA, tell};
use super::{compare, error, misuse, note, print, with_counting};
use crate::cli::{PlanArgs, TableOrJson};
use crate::config::Counting;
use crate::evaluate::{Compare, Comparison, Evaluation};
use crate::statistics::days::{ExperimentDays, Unknown, days};
use crate::table::visible;

/// A file of fewer days, from its first list to its last one, does not have every weekday.
const WEEK: f64 = 6.5;

/// # Errors
/// Where a file cannot be read, or the answer cannot be written.
pub fn plan(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    with_counting(args.counting.config.as_deref(), |counting| {
        let counted = match asked(args, &counting) {
            Ok(counted) => counted,
            Err(message) => return Ok(misuse("plan", &message)),
        };
        let evaluation = match reading::evaluation(&args.counting.files, &counted)? {
            Ok(evaluation) => evaluation,
            Err(code) => return Ok(code),
        };
        if evaluation.is_empty() {
            tell(&counted, &evaluation);
            return Ok(ExitCode::from(BAD_DATA));
        }
        let compare = counted.options.compare.iter();
        for compare in compare {
            if let Some(message) = compare::missing(&args.comparing, compare, &evaluation) {
                return Ok(misuse("plan", &message));
            }
            compare::left_out(compare, &evaluation)
                .iter()
                .for_each(|text| note(text));
        }
        tell(&counted, &evaluation);
        show(&evaluation, args.format)
    })
}

/// What is to be counted and compared, or what is wrong with the flags.
fn asked(args: &PlanArgs, counting: &Counting) -> Result<Counted, String> {
    let mut counted = counted(&args.counting, counting)?;
    let compare = compare::compare(&args.comparing, &counted.options.measures)?;
    counted.options.compare = compare.map(|compare| with_alpha(compare, args.alpha));
    let compare = counted.options.compare.iter();
    let mut all = compare.flat_map(|compare| compare.each.values().chain(&compare.all));
    if all.any(|settings| settings.primary.is_empty()) {
        return Err("nothing decides: give --primary METRIC,…, for every experiment".to_owned());
    }
    Ok(counted)
}

fn with_alpha(mut compare: Compare, alpha: Option<f64>) -> Compare {
    for settings in compare.each.values_mut().chain(&mut compare.all) {
        settings.alpha = alpha.unwrap_or(settings.alpha);
    }
    compare
}

/// What is known of an experiment.
struct Planned<'a> {
    comparison: &'a Comparison,
    days: ExperimentDays,
}

fn show(evaluation: &Evaluation, format: TableOrJson) -> anyhow::Result<ExitCode> {
    let mut known: BTreeMap<&str, Planned> = BTreeMap::new();
    let mut unknown: Vec<(&str, Unknown)> = Vec::new();
    for (experiment, comparison) in evaluation.comparisons.iter().flatten() {
        match days(
            &comparison.settings,
            &comparison.totals.epochs[0],
            comparison.time,
        ) {
            Ok(days) => {
                known.insert(experiment, Planned { comparison, days });
            }
            Err(why) => unknown.push((experiment, why)),
        }
    }
    let is_none_known = known.is_empty();
    for (experiment, why) in unknown {
        let text = format!("{}: {why}", visible(experiment));
        match is_none_known {
            true => error(&text),
            false => note(&text),
        }
    }
    if is_none_known {
        return Ok(ExitCode::from(BAD_DATA));
    }
    for (experiment, planned) in known.iter().filter(|(_, planned)| planned.days.so_far < WEEK) {
        note(&format!(
            "{}: {:.1} days are less than a week, and weekdays differ",
            visible(experiment),
            planned.days.so_far
        ));
    }
    print(&match format {
        TableOrJson::Table => report::table(&known),
        TableOrJson::Json => report::json(&known)?,
    })?;
    Ok(match evaluation.losses().is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(BAD_DATA),
    })
}
