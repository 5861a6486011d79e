//! Resolution of a page's parameters to existing windows, metrics and arms.
//!
//! A URL may outlive the configuration that it was made for. Unknown values are therefore not errors: the default is used,
//! and a note is shown.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

use abgauge_core::engine::View;
use abgauge_core::looks::Experiment;
use abgauge_core::metrics::{Column, Cut, DEFAULT_PRIMARY, Metric, Ranking};
use serde::Deserialize;

use super::super::api::window_names;
use super::super::{Exporter, Scope, TOTAL};

/// Number of metrics shown by default.
const N_FIRST: usize = 3;
/// Maximum number of characters of a parameter repeated in a note.
const MAX_ECHO: usize = 40;
/// Maximum number of unknown parameter names repeated in a note.
const MAX_OTHERS: usize = 5;
/// Value of `k` for the whole list.
const WHOLE: &str = "whole";
/// Values that the page handles without the server, and sends only if it does not know them.
const SHOWS: [&str; 2] = ["experiments", "operations"];
const VIEWS: [&str; 3] = ["settled", "both", "live"];
const DIFFERENCES: [&str; 2] = ["relative", "absolute"];

/// Parameters as received, all optional.
#[derive(Debug, Default, Deserialize)]
pub struct ViewParameters {
    pub window: Option<String>,
    /// Number or `whole`.
    pub k: Option<String>,
    pub profile: Option<String>,
    /// Ids separated by commas.
    pub metrics: Option<String>,
    /// `lift`, `name`, `last`, `VIEW.lists`, `VIEW.clicks` or `VIEW.METRIC`; descending with a leading `-`.
    pub sort: Option<String>,
    /// Part of the name of an arm or of an experiment, case-insensitive.
    pub filter: Option<String>,
    /// Single experiment to show.
    pub experiment: Option<String>,
    /// Page number, from 1.
    pub page: Option<String>,
    /// `own` or `global`.
    pub scope: Option<String>,
    /// Sent only if it is none of [`SHOWS`].
    pub show: Option<String>,
    /// Sent only if it is none of [`VIEWS`].
    pub view: Option<String>,
    /// Sent only if it is none of [`DIFFERENCES`].
    pub difference: Option<String>,
    /// Unknown parameters.
    #[serde(flatten)]
    pub others: BTreeMap<String, String>,
}

/// Resolved query. Equal ones share a rendering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewQuery {
    /// Index among the windows, `total` last.
    pub window: usize,
    pub k: Cut,
    pub profile: usize,
    /// Ids, never empty: the primary first if present, the others in the order of export.
    pub metrics: Vec<&'static str>,
    pub sort: Sort,
    /// Lower-case text.
    pub filter: String,
    pub experiment: Option<String>,
    /// Page number from 0. Beyond the last page, the last one is shown.
    pub page: usize,
    pub scope: Scope,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    pub by: By,
    pub descending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Lower end of the lift's interval, which holds for all arms simultaneously.
    Lift,
    Name,
    /// Event time of the newest list.
    Last,
    Lists(View),
    Clicks(View),
    Metric(View, &'static str),
}

impl ViewQuery {
    pub fn of(wanted: ViewParameters, exporter: &Exporter) -> ViewQuery {
        let mut notes = Vec::new();
        let primary = Primary::of(exporter, wanted.experiment.as_deref());
        let windows: Vec<&str> = window_names(&exporter.windows).collect();
        let window = wanted.window.as_deref();
        let window = known(&mut notes, "window", window, &windows, windows.len() - 1);
        let ks: Vec<String> = exporter.k.iter().map(NonZeroU32::to_string).collect();
        let cuts: Vec<&str> = ks.iter().map(String::as_str).chain([WHOLE]).collect();
        let first = exporter.k.iter().position(|k| Some(*k) == primary.k);
        // The whole list follows the cut-offs, and is the default if the primary has none of them.
        let first = first.unwrap_or(exporter.k.len());
        let cut = known(&mut notes, "k", wanted.k.as_deref(), &cuts, first);
        let profiles = exporter.ranking.profiles();
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        let profile = known(&mut notes, "profile", wanted.profile.as_deref(), &names, 0);
        // Only the page uses these. They are checked so that an unknown value gets a note.
        for (what, wanted, all) in [
            ("show", &wanted.show, &SHOWS[..]),
            ("view", &wanted.view, &VIEWS),
            ("difference", &wanted.difference, &DIFFERENCES),
        ] {
            known(&mut notes, what, wanted.as_deref(), all, 0);
        }
        let ids = ids(&exporter.ranking, profile);
        let sort = sort(&mut notes, wanted.sort.as_deref(), &ids);
        let metrics = metrics(&mut notes, wanted.metrics.as_deref(), primary.before(ids));
        let page = page(&mut notes, wanted.page.as_deref());
        let scopes = exporter.scopes();
        let names: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
        let scope = known(&mut notes, "scope", wanted.scope.as_deref(), &names, 0);
        others(&mut notes, wanted.others.keys());
        ViewQuery {
            window,
            k: exporter.k.get(cut).copied(),
            profile,
            metrics,
            sort,
            filter: wanted.filter.unwrap_or_default().trim().to_lowercase(),
            experiment: wanted.experiment.filter(|name| !name.is_empty()),
            page,
            scope: scopes[scope],
            notes,
        }
    }
}

/// Metric shown first: the first primary metric of the selected experiment, or of the first experiment with a control. By
/// default CTR at the largest k.
struct Primary {
    id: &'static str,
    k: Cut,
}

impl Primary {
    fn of(exporter: &Exporter, alone: Option<&str>) -> Primary {
        let columns = exporter.ranking.columns();
        let set = |asked: &Experiment| -> Option<Primary> {
            let key = asked.settings.as_ref()?.primary.first()?;
            let column = columns
                .iter()
                .find(|column| column.profile == 0 && column.key() == *key)?;
            Some(Primary {
                id: column.metric.id,
                k: column.k,
            })
        };
        let alone = alone.and_then(|name| exporter.experiments.get(name));
        let asked = alone.into_iter().chain(exporter.experiments.values());
        asked.filter_map(set).next().unwrap_or(Primary {
            id: DEFAULT_PRIMARY.id,
            k: exporter.k.iter().max().copied(),
        })
    }

    /// Moves the primary to the front, if it is present.
    fn before(&self, mut ids: Vec<&'static str>) -> Vec<&'static str> {
        // The sort is stable, so the others keep their order.
        ids.sort_by_key(|id| *id != self.id);
        ids
    }
}

/// Returns the note about an unknown experiment.
pub(super) fn no_experiment(name: &str) -> String {
    format!("There is no experiment “{}”: all are shown.", echo(name))
}

/// Returns the note about a page beyond the last, both counted from 1.
pub(super) fn no_page(wanted: usize, last: usize) -> String {
    format!("There is no page {wanted} here: page {last} is shown, the last.")
}

/// Returns the index of the wanted value among the known ones, or the default.
fn known(notes: &mut Vec<String>, what: &str, wanted: Option<&str>, all: &[&str], default: usize) -> usize {
    let Some(wanted) = wanted else { return default };
    let place = all.iter().position(|name| *name == wanted);
    place.unwrap_or_else(|| {
        let (wanted, shown) = (echo(wanted), word(what, all[default]));
        let all: Vec<String> = all.iter().map(|value| explained(what, value)).collect();
        notes.push(format!(
            "There is no {what} “{wanted}” here: {shown} is shown. It can be {}.",
            all.join(", ")
        ));
        default
    })
}

/// Returns the page's word for the value of a parameter, which is mostly the value itself.
fn word<'a>(what: &str, value: &'a str) -> &'a str {
    match (what, value) {
        ("view", "settled") => View::Settled.word(),
        ("window", TOTAL) => "since start",
        _ => value,
    }
}

/// Returns a value as it is in an address, followed by the page's word if that is another one.
fn explained(what: &str, value: &str) -> String {
    let word = word(what, value);
    if word == value {
        return value.to_owned();
    }
    format!("{value} ({word})")
}

/// Returns the wanted metrics that the profile has, or its first ones.
fn metrics(notes: &mut Vec<String>, wanted: Option<&str>, ids: Vec<&'static str>) -> Vec<&'static str> {
    let wanted: Vec<&str> = wanted.unwrap_or_default().split(',').collect();
    let chosen: Vec<&'static str> = ids.iter().copied().filter(|id| wanted.contains(id)).collect();
    let shown = match chosen.is_empty() {
        true => ids[..N_FIRST.min(ids.len())].to_vec(),
        false => chosen,
    };
    let unknown = wanted.iter().find(|name| !name.is_empty() && !ids.contains(name));
    if let Some(unknown) = unknown {
        notes.push(format!(
            "There is no metric “{}” in this profile: {} is shown. It can be {}.",
            echo(unknown),
            shown.join(", "),
            ids.join(", ")
        ));
    }
    shown
}

/// Returns the wanted order, if it exists.
fn sort(notes: &mut Vec<String>, wanted: Option<&str>, ids: &[&'static str]) -> Sort {
    let Some(wanted) = wanted else {
        return Sort::BEST_FIRST;
    };
    let is_there = |sort: &Sort| match sort.by {
        By::Metric(_, id) => ids.contains(&id),
        _ => true,
    };
    Sort::parse(wanted).filter(is_there).unwrap_or_else(|| {
        notes.push(format!(
            "Arms cannot be sorted by “{}” here: the best come first.",
            echo(wanted)
        ));
        Sort::BEST_FIRST
    })
}

/// Returns the metrics of a profile, in the order of export.
fn ids(ranking: &Ranking, profile: usize) -> Vec<&'static str> {
    let mut ids = Vec::new();
    let columns = ranking.columns().iter();
    for Column { metric, .. } in columns.filter(|column| column.profile == profile) {
        if !ids.contains(&metric.id) {
            ids.push(metric.id);
        }
    }
    ids
}

fn page(notes: &mut Vec<String>, wanted: Option<&str>) -> usize {
    let Some(wanted) = wanted else { return 0 };
    let number: Option<usize> = wanted.parse().ok();
    number
        .and_then(|number| number.checked_sub(1))
        .unwrap_or_else(|| {
            notes.push(format!(
                "There is no page “{}” here: the first is shown.",
                echo(wanted)
            ));
            0
        })
}

/// Adds a note about unknown parameters.
fn others<'a>(notes: &mut Vec<String>, names: impl Iterator<Item = &'a String>) {
    let names: Vec<String> = names
        .take(MAX_OTHERS)
        .map(|name| format!("“{}”", echo(name)))
        .collect();
    if !names.is_empty() {
        notes.push(format!(
            "{} is not a parameter of this page: it is ignored.",
            names.join(", ")
        ));
    }
}

fn echo(text: &str) -> String {
    text.chars().take(MAX_ECHO).collect()
}

impl Sort {
    /// Default order. Arms without a lift are sorted by name.
    pub const BEST_FIRST: Sort = Sort {
        by: By::Lift,
        descending: true,
    };

    fn parse(text: &str) -> Option<Sort> {
        let (descending, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let by = match (text, text.split_once('.')) {
            ("lift", _) => By::Lift,
            ("name", _) => By::Name,
            ("last", _) => By::Last,
            (_, Some((view, what))) => {
                let view = View::BOTH.into_iter().find(|it| it.name() == view)?;
                match what {
                    "lists" => By::Lists(view),
                    "clicks" => By::Clicks(view),
                    id => By::Metric(view, Metric::named(id)?.id),
                }
            }
            _ => return None,
        };
        Some(Sort { by, descending })
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.descending {
            f.write_str("-")?;
        }
        match self.by {
            By::Lift => f.write_str("lift"),
            By::Name => f.write_str("name"),
            By::Last => f.write_str("last"),
            By::Lists(view) => write!(f, "{}.lists", view.name()),
            By::Clicks(view) => write!(f, "{}.clicks", view.name()),
            By::Metric(view, id) => write!(f, "{}.{id}", view.name()),
        }
    }
}
