//! `abgauge plan`: estimates how long experiments must run, from the variance in a few days of lists.

mod daemon;
mod report;

use std::collections::BTreeMap;
use std::process::ExitCode;

use abgauge_core::evaluate::{Compare, Evaluation, ExperimentComparison};
use abgauge_core::statistics::Settings;
use abgauge_core::statistics::days::{
    ExperimentDays, MetricDays, NoEstimate, PlanningSums, TestDesign, days,
};
use abgauge_core::table::visible;

use super::counting::{EvaluationOptions, counted};
use super::reading::{self, print_notes};
use super::{BAD_DATA, compare, error, misuse, note, print, warn, with_counting};
use crate::settings::{Counting, HttpUrl, Schedule};
use crate::tools::cli::{PlanArgs, TableOrJson};

/// Days from first to last list below which some weekday is missing.
const WEEK: f64 = 6.5;
/// Exponent of growth below which users return so often that information grows much more slowly than days. The estimate from
/// 256 buckets is off by about 0.1.
const RETURNING: f64 = 0.8;
const DAY_MS: f64 = 86_400_000.0;
/// Days of lists that are believed: more come from a wrong time.
const MAX_DAYS: f64 = 3650.0;

/// Prints a plan from a daemon's numbers or from files.
///
/// # Errors
/// If a file cannot be read, a daemon does not return its numbers, or the answer cannot be written.
pub fn plan(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    match &args.ask.from {
        Some(url) => from_daemon(url, args),
        None => from_files(args),
    }
}

fn from_daemon(url: &HttpUrl, args: &PlanArgs) -> anyhow::Result<ExitCode> {
    let ask = &args.ask;
    if ask.ca_file.is_some() && !url.is_tls() {
        return Ok(misuse(
            "plan",
            "--ca-file has no effect on plain HTTP: give --from an address that starts with https://",
        ));
    }
    if ask.token_file.is_some() && !url.is_tls() && !url.is_loopback() {
        warn(&format!(
            "{url} is without TLS, so the token can be intercepted: use https://"
        ));
    }
    show(&daemon::plans(url, ask)?, args.format)
}

fn from_files(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    with_counting(args.counting.config.as_deref(), |counting| {
        let schedules = &counting.schedules;
        let counted = match asked(args, &counting) {
            Ok(counted) => counted,
            Err(message) => return Ok(misuse("plan", &message)),
        };
        let evaluation = match reading::evaluation(&args.counting, &counted)? {
            Ok(evaluation) => evaluation,
            Err(code) => return Ok(code),
        };
        if evaluation.is_empty() {
            print_notes(&counted, &evaluation);
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
        print_notes(&counted, &evaluation);
        let code = show(&Plans::of(&evaluation, schedules), args.format)?;
        Ok(match evaluation.losses().is_empty() {
            true => code,
            false => ExitCode::from(BAD_DATA),
        })
    })
}

/// Returns the options. The error explains what is wrong with the flags.
fn asked(args: &PlanArgs, counting: &Counting) -> Result<EvaluationOptions, String> {
    let mut counted = counted(&args.counting, counting)?;
    let compare = compare::compare(&args.comparing, &counted.options.measures)?;
    counted.options.compare = compare.map(|compare| with_alpha(compare, args.alpha));
    let compare = counted.options.compare.iter();
    let mut all = compare.flat_map(|compare| compare.each.values().chain(&compare.all));
    if all.any(|settings| settings.primary.is_empty()) {
        return Err("no metric decides: give --primary METRIC,…, for every experiment".to_owned());
    }
    Ok(counted)
}

fn with_alpha(mut compare: Compare, alpha: Option<f64>) -> Compare {
    // A planned arm may not have a list yet, so shares for all experiments apply to each.
    let shares = std::mem::take(&mut compare.shares);
    for settings in compare.each.values_mut().chain(&mut compare.all) {
        settings.alpha = alpha.unwrap_or(settings.alpha);
        if settings.shares.is_empty() {
            settings.shares.clone_from(&shares);
        }
    }
    // The growth of information is estimated from the state halfway through the file.
    compare.halfway = true;
    compare
}

/// Plans by experiment.
#[derive(Default)]
struct Plans {
    known: BTreeMap<String, Planned>,
    /// Experiments without a plan, each with the reason.
    unknown: Vec<(String, String)>,
    /// Remarks on the known plans.
    remarks: Vec<(String, String)>,
}

/// Plan of an experiment.
struct Planned {
    control: String,
    mde: f64,
    alpha: f64,
    days: ExperimentDays,
    /// Start of a daemon's sums, or of an experiment in the configuration.
    schedule: Option<Schedule>,
    /// Set if a daemon looks at the experiment.
    running: Option<Running>,
}

struct Running {
    /// Design of its test.
    design: Option<TestDesign>,
}

impl Plans {
    fn of(evaluation: &Evaluation, schedules: &BTreeMap<String, Schedule>) -> Plans {
        let mut plans = Plans::default();
        for (experiment, comparison) in evaluation.comparisons.iter().flatten() {
            let needed = needed(comparison).map_err(|why| why.to_string());
            match needed.and_then(|days| believed(&days).map(|()| days)) {
                Ok(days) => {
                    let schedule = schedules.get(experiment).copied();
                    let planned = Planned::of(&comparison.settings, days, schedule);
                    plans.known.insert(experiment.clone(), planned);
                }
                Err(why) => plans.unknown.push((experiment.clone(), why)),
            }
        }
        plans
    }
}

impl Planned {
    fn of(settings: &Settings, days: ExperimentDays, schedule: Option<Schedule>) -> Planned {
        Planned {
            control: settings.control.clone(),
            mde: settings.mde,
            alpha: settings.alpha,
            days,
            schedule,
            running: None,
        }
    }

    /// Returns the time of the decision look after as many weeks as this design needs, Unix ms.
    fn end_ms(&self, design: TestDesign) -> Option<i64> {
        let weeks = self.days.weeks(design)?;
        Some(self.schedule?.after_days(7.0 * f64::from(weeks)))
    }

    fn planned_end_ms(&self) -> Option<i64> {
        self.schedule?.planned_end_ms
    }
}

/// Refuses spans of lists that only a wrong time can make.
fn believed(days: &ExperimentDays) -> Result<(), String> {
    match days.so_far {
        so_far if (0.0..=MAX_DAYS).contains(&so_far) => Ok(()),
        so_far => Err(format!(
            "its lists would span {so_far:.0} days, and 0 to {MAX_DAYS:.0} are believed: a time in it is wrong"
        )),
    }
}

/// Explains what makes the days uncertain.
fn remarks(planned: &Planned) -> Vec<String> {
    let days = &planned.days;
    let mde = if planned.running.is_some() { "mde" } else { "--mde" };
    let mut remarks = Vec::new();
    if days.so_far < WEEK {
        remarks.push(format!(
            "{:.1} days are less than a week, but weekdays differ",
            days.so_far
        ));
    }
    let metrics = days.arms.values().flat_map(|arm| &arm.metrics);
    let known = metrics.filter_map(|(id, metric)| Some((id.as_str(), metric.as_ref()?)));
    let needed = known
        .clone()
        .filter_map(|(_, metric)| Some(metric.needs.get(&TestDesign::Planned)?.days));
    let longest = needed.fold(0.0, f64::max);
    if planned
        .schedule
        .is_some_and(|schedule| schedule.ends_before(longest))
    {
        remarks.push(format!(
            "the planned end is too early to find {}% with power 80%: it takes more planned_days, more users, or a larger {mde}",
            100.0 * planned.mde
        ));
    }
    // Remarks are the same for all arms, except for whether the effect is reached.
    for (id, metric) in known.collect::<BTreeMap<&str, &MetricDays>>() {
        match metric.growth {
            None => remarks.push(format!(
                "{id}: days are extrapolated in proportion, because {} too little information",
                if planned.running.is_some() { "a half or a quarter of them have" } else { "half of them have" }
            )),
            Some(growth) if growth < RETURNING => remarks.push(format!(
                "{id}: doubling the duration adds only {:.1} times the information because users return, so long estimates are optimistic",
                2.0_f64.powf(growth)
            )),
            Some(_) => {}
        }
        if !metric.needs.contains_key(&TestDesign::Sequence) {
            remarks.push(format!(
                "{id}: more days are not enough: use more users, or a larger {mde}"
            ));
        }
    }
    remarks
}

fn needed(comparison: &ExperimentComparison) -> Result<ExperimentDays, NoEstimate> {
    let start_ms = comparison.time.start_ms;
    let sums = |epoch, as_of_ms: i64| PlanningSums {
        epoch,
        days: (as_of_ms - start_ms) as f64 / DAY_MS,
    };
    let halfway = comparison.halfway.as_ref();
    days(
        &comparison.settings,
        sums(&comparison.totals.epochs[0], comparison.time.as_of_ms),
        halfway.map(|half| sums(&half.epoch, half.as_of_ms)),
    )
}

fn show(plans: &Plans, format: TableOrJson) -> anyhow::Result<ExitCode> {
    // If no experiment has a plan, the reasons are errors, and otherwise notes.
    let is_none_known = plans.known.is_empty();
    for (experiment, why) in &plans.unknown {
        let text = format!("{}: {why}", visible(experiment));
        match is_none_known {
            true => error(&text),
            false => note(&text),
        }
    }
    if is_none_known {
        return Ok(ExitCode::from(BAD_DATA));
    }
    for (experiment, text) in &plans.remarks {
        warn(&format!("{}: {text}", visible(experiment)));
    }
    for (experiment, planned) in &plans.known {
        for text in remarks(planned) {
            note(&format!("{}: {text}", visible(experiment)));
        }
    }
    print(&match format {
        TableOrJson::Table => report::table(&plans.known),
        TableOrJson::Json => report::json(&plans.known)?,
    })?;
    Ok(ExitCode::SUCCESS)
}
