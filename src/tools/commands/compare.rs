//! Settings from the comparison flags, and a check that the files contain the experiments, arms and metrics in them.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use abgauge_core::evaluate::{Compare, Evaluation};
use abgauge_core::looks::compared;
use abgauge_core::metrics::{Measures, Ranking};
use abgauge_core::statistics::per_user::{self, is_per_user};
use abgauge_core::statistics::{Settings, Unit};
use abgauge_core::table::visible;

use crate::tools::cli::{CompareArgs, Scoped};
use crate::tools::commands::unknown;

/// Maximum difference between the sum of shares and 1.
const TOLERANCE: f64 = 1e-6;

/// Returns `None` without `--compare`. The error explains what is wrong with the flags.
pub(super) fn compare(args: &CompareArgs, measures: &Measures) -> Result<Option<Compare>, String> {
    if args.compare.is_empty() {
        return Ok(None);
    }
    let flags = Flags {
        args,
        metrics: metrics(measures),
    };
    let has_control = args
        .compare
        .iter()
        .any(|values_of| values_of.experiment.is_none());
    // Without a control for all experiments, only the named ones are compared.
    let all = has_control.then(|| flags.settings(None)).transpose()?;
    let each = experiments(args)
        .into_keys()
        .map(|experiment| Ok((experiment.to_owned(), flags.settings(Some(experiment))?)));
    Ok(Some(Compare {
        all,
        each: each.collect::<Result<_, String>>()?,
        shares: flat(&args.shares, None).into_iter().collect(),
        halfway: false,
        max_lists_per_user: args.max_lists_per_user.and_then(NonZeroU32::new),
    }))
}

/// Returns ids such as `hit_rate@10`, of the first profile's metrics and of sums per user.
fn metrics(measures: &Measures) -> Vec<String> {
    let ranking = Ranking::new(measures);
    let per_user = per_user::ids().into_iter().map(str::to_owned);
    compared(&ranking)
        .map(|column| column.key())
        .chain(per_user)
        .collect()
}

/// Returns the named experiments, with the first flag that names each.
fn experiments(args: &CompareArgs) -> BTreeMap<&str, &'static str> {
    fn named<'a, T>(
        flag: &'static str,
        values_of: &'a [Scoped<T>],
    ) -> impl Iterator<Item = (&'a str, &'static str)> {
        values_of
            .iter()
            .filter_map(move |values_of| Some((values_of.experiment.as_deref()?, flag)))
    }
    // Later entries replace earlier ones in the map, so the most important flag comes last.
    let all = named("--unit <EXPERIMENT:UNIT>", &args.unit)
        .chain(named("--mde <EXPERIMENT:SHARE>", &args.mde))
        .chain(named("--guardrail <EXPERIMENT:METRIC=MARGIN,…>", &args.guardrail))
        .chain(named("--primary <EXPERIMENT:METRIC,…>", &args.primary))
        .chain(named("--shares <EXPERIMENT:ARM=SHARE,…>", &args.shares))
        .chain(named("--compare <EXPERIMENT=CONTROL>", &args.compare));
    all.collect()
}

struct Flags<'a> {
    args: &'a CompareArgs,
    /// Ids that may be named.
    metrics: Vec<String>,
}

impl Flags<'_> {
    /// Returns the settings of one experiment, or those of all experiments that are not named.
    fn settings(&self, experiment: Option<&str>) -> Result<Settings, String> {
        let args = self.args;
        let control = once(&args.compare, experiment, "--compare")?;
        let control = control.ok_or_else(|| self.without_control(experiment))?;
        let primary = flat(&args.primary, experiment);
        let guardrails = flat(&args.guardrail, experiment);
        let guarded = guardrails.iter().map(|(metric, _)| metric);
        self.check("--primary <METRIC,…>", primary.iter())?;
        self.check("--guardrail <METRIC=MARGIN,…>", guarded.clone())?;
        if let Some(metric) = guarded.clone().find(|metric| primary.contains(metric)) {
            return Err(format!(
                "{metric} is in both --primary and --guardrail: choose one of them"
            ));
        }
        let shares = shares(&flat(&args.shares, experiment), control, experiment)?;
        let defaults = Settings::new(control);
        let unit = once(&args.unit, experiment, "--unit")?;
        let unit = unit.copied().unwrap_or(defaults.unit);
        let mut named = primary.iter().chain(guarded);
        if let Some(metric) = named.find(|metric| is_per_user(metric)) {
            if unit == Unit::Request {
                return Err(format!(
                    "{metric} is per assigned user, and with --unit request no user is assigned: leave one of them out"
                ));
            }
            if shares.is_empty() {
                return Err(format!(
                    "{metric} needs shares of users: give --shares ARM=SHARE,…"
                ));
            }
        }
        let has_own = args
            .shares
            .iter()
            .any(|values_of| values_of.experiment.as_deref() == experiment);
        Ok(Settings {
            // Shares given for all experiments are applied once the arms of each are known.
            shares: if experiment.is_some() && has_own {
                shares
            } else {
                BTreeMap::new()
            },
            primary,
            guardrails: guardrails.into_iter().collect(),
            mde: once(&args.mde, experiment, "--mde")?
                .copied()
                .unwrap_or(defaults.mde),
            unit,
            ..defaults
        })
    }

    fn without_control(&self, experiment: Option<&str>) -> String {
        let experiment = visible(experiment.unwrap_or_default());
        format!("{experiment} has no control: give --compare {experiment}=ARM")
    }

    fn check<'b>(&self, flag: &str, mut ids: impl Iterator<Item = &'b String>) -> Result<(), String> {
        let known: Vec<&str> = self.metrics.iter().map(String::as_str).collect();
        match ids.find(|id| !self.metrics.contains(id)) {
            Some(id) => Err(unknown(id, flag, &known)),
            None => Ok(()),
        }
    }
}

/// Returns the values of a flag for an experiment, or else those for all experiments.
fn values_of<'a, T>(flag: &'a [Scoped<T>], experiment: Option<&str>) -> Vec<&'a T> {
    let of = |experiment: Option<&str>| {
        let values_of = flag
            .iter()
            .filter(|values_of| values_of.experiment.as_deref() == experiment);
        values_of.map(|values_of| &values_of.value).collect::<Vec<_>>()
    };
    let own = of(experiment);
    if own.is_empty() { of(None) } else { own }
}

/// Returns the value of a flag that may be given only once.
fn once<'a, T>(flag: &'a [Scoped<T>], experiment: Option<&str>, name: &str) -> Result<Option<&'a T>, String> {
    match values_of(flag, experiment)[..] {
        [] => Ok(None),
        [value] => Ok(Some(value)),
        _ => Err(format!("{name} is given twice{}", scope_text(experiment))),
    }
}

fn flat<T: Clone>(flag: &[Scoped<Vec<T>>], experiment: Option<&str>) -> Vec<T> {
    values_of(flag, experiment)
        .into_iter()
        .flatten()
        .cloned()
        .collect()
}

fn scope_text(experiment: Option<&str>) -> String {
    experiment.map_or(String::new(), |experiment| {
        format!(" for {}", visible(experiment))
    })
}

fn shares(
    given: &[(String, f64)],
    control: &str,
    experiment: Option<&str>,
) -> Result<BTreeMap<String, f64>, String> {
    let shares: BTreeMap<String, f64> = given.iter().cloned().collect();
    let sum: f64 = shares.values().sum();
    if shares.len() < given.len() {
        return Err("an arm is named twice by --shares".to_owned());
    }
    if !shares.is_empty() && (sum - 1.0).abs() > TOLERANCE {
        return Err(format!(
            "--shares adds up to {sum}: write shares that add up to 1"
        ));
    }
    if !shares.is_empty() && !shares.contains_key(control) {
        return Err(format!(
            "--shares has no share of the control{}, {}",
            scope_text(experiment),
            visible(control)
        ));
    }
    Ok(shares)
}

/// Returns an error if the flags name something that the files do not contain.
pub(super) fn missing(args: &CompareArgs, compare: &Compare, evaluation: &Evaluation) -> Option<String> {
    let arms = evaluation.arms();
    let experiments: Vec<&str> = arms.keys().copied().collect();
    for (experiment, flag) in self::experiments(args) {
        if !arms.contains_key(experiment) {
            return Some(unknown(experiment, flag, &experiments));
        }
    }
    // A control for all experiments need only exist in one of them.
    let any: BTreeSet<&str> = arms.values().flatten().copied().collect();
    if let Some(all) = &compare.all
        && !any.contains(all.control.as_str())
    {
        let any: Vec<&str> = any.into_iter().collect();
        return Some(unknown(&all.control, "--compare <CONTROL>", &any));
    }
    arms.iter().find_map(|(experiment, arms)| {
        let own = compare.each.get(*experiment)?;
        let flag = format!("--compare <{}=CONTROL>", visible(experiment));
        let is_there = arms.contains(&own.control.as_str());
        (!is_there).then(|| unknown(&own.control, &flag, arms))
    })
}

/// Returns a warning for each experiment whose arms differ from those with a share.
pub(super) fn on_arms(evaluation: &Evaluation) -> Vec<String> {
    let comparisons = evaluation.comparisons.iter().flatten();
    let notes = comparisons.flat_map(|(experiment, comparison)| {
        let notes = comparison.report.notes.iter();
        notes.map(move |note| visible(&format!("{experiment}: {note}")))
    });
    notes.collect()
}

/// Returns a note for each experiment that is compared without the shares given for all.
pub(super) fn without_shares(compare: &Compare, evaluation: &Evaluation) -> Vec<String> {
    let arms = evaluation.arms();
    let without = compare.without_shares(&arms).into_iter();
    let notes = without.map(|experiment| {
        let own = &arms[experiment];
        let missing = compare.shares.keys().map(String::as_str);
        let missing: Vec<&str> = missing.filter(|arm| !own.contains(arm)).collect();
        let experiment = visible(experiment);
        format!(
            "{experiment} is compared without shares: it has no arm {}; for its own arms ({}) give --shares {experiment}:ARM=SHARE,…",
            visible(&missing.join(", ")),
            visible(&own.join(", "))
        )
    });
    notes.collect()
}

/// Returns a note on the experiments without a control, if there are any.
pub(super) fn left_out(compare: &Compare, evaluation: &Evaluation) -> Option<String> {
    let arms = evaluation.arms();
    let others = arms
        .keys()
        .filter(|experiment| evaluation.comparison(experiment).is_none());
    let others: Vec<&str> = others.copied().collect();
    let control = match &compare.all {
        Some(all) => format!("an arm {}", visible(&all.control)),
        None => "a control".to_owned(),
    };
    let others = (!others.is_empty()).then(|| visible(&others.join(", ")))?;
    Some(format!("experiments without {control}, not compared: {others}"))
}
