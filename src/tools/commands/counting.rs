//! Options of an evaluation from flags and configuration. Flags take precedence.

use std::num::NonZeroU32;
use std::path::PathBuf;

use abgauge_core::evaluate::Options;
use abgauge_core::metrics::{METRICS, Measures, Metric, Profile};

use crate::settings::{Counting, MAX_CUT_OFFS};
use crate::tools::cli::CountArgs;
use crate::tools::commands::unknown;

/// Options of an evaluation.
pub(super) struct EvaluationOptions {
    /// Options without the catalogue, which is read later.
    pub options: Options,
    pub catalog: Option<PathBuf>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Combines flags and configuration. The error explains what is wrong with the flags.
pub(super) fn counted(args: &CountArgs, counting: &Counting) -> Result<EvaluationOptions, String> {
    check_inputs(args)?;
    let join = &counting.join;
    let attribution_ms = args.attribution.unwrap_or(join.attribution_ms);
    // Unless it is set, it follows attribution, even if a flag sets that.
    let configured_ms = match join.same_list_ms == join.attribution_ms {
        true => attribution_ms,
        false => join.same_list_ms,
    };
    // Records of one gathered list are never two lists.
    let same_list_ms = args.same_list.unwrap_or(configured_ms).max(join.gather_ms);
    let mut profiles = profiles(args, counting)?;
    let (metrics, left_out) = metrics(args, counting, &mut profiles)?;
    let notes = profiles.iter().filter_map(Profile::explain_old_name);
    let notes = notes.chain(left_out).collect();
    // A file named by a flag is always read, so that a mistake in its name is reported.
    let of_file = counting.catalog.clone();
    let of_file = of_file.filter(|_| of_catalogue(&profiles).any(|id| metrics.contains(&id)));
    let catalog = args.catalog.clone().or(of_file);
    let measures = Measures {
        profiles,
        metrics,
        ks: cut_offs(args, counting)?,
        alpha: counting.measures.alpha,
        catalogue: catalog.is_some(),
    };
    let options = Options {
        measures,
        attribution_ms,
        click_skew_ms: args.click_skew.unwrap_or(join.click_skew_ms),
        same_list_ms,
        max_state_bytes: args.max_state.unwrap_or(u64::MAX),
        ..counting_options(counting)
    };
    Ok(EvaluationOptions {
        options,
        catalog,
        notes,
    })
}

/// Checks that every input can be read, and that clicks come with their lists.
fn check_inputs(args: &CountArgs) -> Result<(), String> {
    let is_stdin = |path: &&PathBuf| path.as_os_str() == "-";
    let events = args.files.iter().chain(&args.lists).chain(&args.clicks);
    let n_stdin = events.filter(is_stdin).count();
    if n_stdin > 0 && args.catalog.iter().any(|path| is_stdin(&path)) {
        return Err(
            "standard input is either the events or the catalogue: name a file for one of them".to_owned(),
        );
    }
    if n_stdin > 1 {
        return Err("standard input can be read only once: name a file instead of one `-`".to_owned());
    }
    let (absent, given, kind) = match (args.lists.is_empty(), args.clicks.is_empty()) {
        (false, true) => ("--clicks", "--lists", "clicks"),
        (true, false) => ("--lists", "--clicks", "served lists"),
        _ => return Ok(()),
    };
    match args.files.is_empty() {
        true => Err(format!(
            "{given} needs the {kind} too: give {absent} FILE, or files with both kinds in front of {given}"
        )),
        false => Ok(()),
    }
}

/// Options of the configuration alone, with the default metrics.
pub(super) fn counting_options(counting: &Counting) -> Options {
    let join = &counting.join;
    Options {
        shape: counting.events.clone(),
        attribution_ms: join.attribution_ms,
        click_skew_ms: join.click_skew_ms,
        same_list_ms: join.same_list_ms.max(join.gather_ms),
        slot_ms: join.slot_ms,
        max_items: join.max_items,
        max_experiments: join.max_experiments,
        max_lists_per_click: join.max_lists_per_click,
        max_off_list: join.max_off_list,
        hash_seed: join.hash_seed,
        user_key: join.user_key,
        no_user: join.no_user.clone(),
        max_duplicate_share: counting.limits.max_duplicate_share,
        max_user_share: counting.limits.max_user_share,
        ..Options::default()
    }
}

/// Returns the named profiles in their order, without duplicates.
fn profiles(args: &CountArgs, counting: &Counting) -> Result<Vec<Profile>, String> {
    let known = &counting.known_profiles;
    let mut profiles: Vec<Profile> = Vec::new();
    for name in &args.conventions {
        let Some(profile) = known.iter().find(|profile| profile.name == *name) else {
            let listed = known.iter().filter(|profile| !profile.has_old_name());
            let names: Vec<&str> = listed.map(|profile| profile.name.as_str()).collect();
            return Err(unknown(name, "--convention <PROFILE>", &names));
        };
        if !profiles.contains(profile) {
            profiles.push(profile.clone());
        }
    }
    Ok(match profiles.is_empty() {
        true => counting.measures.profiles.clone(),
        false => profiles,
    })
}

/// Returns the ids chosen by flags or the configuration. If there are none, each profile keeps the metrics it shows by
/// default, and a note lists the metrics of other libraries that need a catalogue.
fn metrics(
    args: &CountArgs,
    counting: &Counting,
    profiles: &mut [Profile],
) -> Result<(Vec<&'static str>, Option<String>), String> {
    let has_catalog = args.catalog.is_some() || counting.catalog.is_some();
    let named = named_metrics(args, profiles, counting, has_catalog)?;
    let Some(chosen) = named.or_else(|| counting.chosen_metrics.clone()) else {
        let note = left_out(profiles).filter(|_| !has_catalog);
        profiles.iter_mut().for_each(narrow);
        return Ok((METRICS.iter().map(|metric| metric.id).collect(), note));
    };
    let mut defined = profiles.iter().flat_map(|profile| &profile.metrics);
    if !defined.any(|id| chosen.contains(id)) {
        return Err(format!(
            "{} defines none of the metrics in the configuration ({}): give --metrics",
            names(profiles.iter()),
            chosen.join(", ")
        ));
    }
    Ok((chosen, None))
}

/// Returns the ids named by `--metrics`, or `None` without the flag.
fn named_metrics(
    args: &CountArgs,
    profiles: &[Profile],
    counting: &Counting,
    has_catalog: bool,
) -> Result<Option<Vec<&'static str>>, String> {
    let mut ids = Vec::new();
    for name in &args.metrics {
        let Some(metric) = Metric::named(name) else {
            let known: Vec<&str> = METRICS.iter().map(|metric| metric.id).collect();
            return Err(unknown(name, "--metrics <METRIC,…>", &known));
        };
        if metric.needs_catalogue() && !has_catalog {
            return Err(format!(
                "the metric '{name}' needs the catalogue of items: give --catalog FILE, or remove it"
            ));
        }
        let defines = |profile: &&Profile| profile.metrics.contains(&metric.id);
        if !profiles.iter().any(|profile| defines(&profile)) {
            let others = counting
                .known_profiles
                .iter()
                // Old names are accepted but not suggested.
                .filter(|profile| !profile.has_old_name());
            let others = others.filter(defines);
            return Err(format!(
                "the metric '{name}' is not defined by {}, only by {}",
                names(profiles.iter()),
                names(others)
            ));
        }
        ids.push(metric.id);
    }
    Ok((!ids.is_empty()).then_some(ids))
}

fn names<'a>(profiles: impl Iterator<Item = &'a Profile>) -> String {
    let names: Vec<&str> = profiles.map(|profile| profile.name.as_str()).collect();
    names.join(", ")
}

/// Reduces a profile that defines every metric, such as `default`, to the usual metrics and those of the catalogue.
fn narrow(profile: &mut Profile) {
    if defines_all(profile) {
        let is_shown = |metric: &&Metric| metric.needs_catalogue() || metric.is_usual;
        let shown = METRICS.iter().filter(is_shown);
        profile.metrics = shown.map(|metric| metric.id).collect();
    }
}

fn defines_all(profile: &Profile) -> bool {
    profile.metrics.len() == METRICS.len()
}

/// Returns the ids of these profiles' metrics that need the catalogue.
fn of_catalogue(profiles: &[Profile]) -> impl Iterator<Item = &'static str> {
    let metrics = METRICS.into_iter().filter(|metric| metric.needs_catalogue());
    let shown = metrics.filter(|metric| {
        let mut profiles = profiles.iter();
        profiles.any(|profile| profile.metrics.contains(&metric.id))
    });
    shown.map(|metric| metric.id)
}

/// Returns a note on the metrics that are left out without a catalogue. Naming a convention that reports them asks for them. A
/// profile that defines every metric has no report of its own.
fn left_out(profiles: &[Profile]) -> Option<String> {
    let asking: Vec<Profile> = profiles
        .iter()
        .filter(|profile| !defines_all(profile))
        .cloned()
        .collect();
    let ids: Vec<&str> = of_catalogue(&asking).collect();
    (!ids.is_empty()).then(|| {
        format!(
            "no {} without a catalogue of items: give --catalog FILE",
            ids.join(", ")
        )
    })
}

fn cut_offs(args: &CountArgs, counting: &Counting) -> Result<Vec<NonZeroU32>, String> {
    if args.k.is_empty() {
        return Ok(counting.measures.ks.clone());
    }
    let mut ks = args.k.clone();
    ks.sort_unstable();
    ks.dedup();
    if ks.len() > MAX_CUT_OFFS {
        return Err(format!("--k has {} cut-offs, more than {MAX_CUT_OFFS}", ks.len()));
    }
    Ok(ks)
}
