//! What a page asks for: from the parameters of its address to what there is.
//!
//! An address outlives the configuration that it was made under. So what is not there is no error: the default stands
//! in, and a note says so.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

use serde::Deserialize;

use super::super::api::window_names;
use super::super::{Exporter, Scope};
use crate::engine::ranking::{Column, Cut, Metric, Ranking};
use crate::snapshot::View;

/// Metrics that are shown until others are chosen.
const N_FIRST: usize = 3;
/// Characters of a parameter that a note repeats.
const MAX_ECHO: usize = 40;
/// Names of parameters that there are not which a note repeats.
const MAX_OTHERS: usize = 5;
/// The `k` of the whole list.
const WHOLE: &str = "whole";
/// What the page draws by itself, so that we hear of it only when the page does not know it.
const VIEWS: [&str; 3] = ["both", "settled", "live"];
const DIFFERENCES: [&str; 2] = ["relative", "absolute"];

/// The parameters as they came, all optional.
#[derive(Debug, Default, Deserialize)]
pub struct Wanted {
    pub window: Option<String>,
    /// A number, or `whole`.
    pub k: Option<String>,
    pub profile: Option<String>,
    /// Ids with commas between.
    pub metrics: Option<String>,
    /// `name`, `last`, `VIEW.lists`, `VIEW.clicks` or `VIEW.METRIC`; descending with `-` before it.
    pub sort: Option<String>,
    /// Part of the name of an arm or of an experiment, whatever the case.
    pub filter: Option<String>,
    /// To be shown alone.
    pub experiment: Option<String>,
    /// From 1.
    pub page: Option<String>,
    /// `own` or `global`.
    pub scope: Option<String>,
    /// Told only where it is none of [`VIEWS`].
    pub view: Option<String>,
    /// Told only where it is none of [`DIFFERENCES`].
    pub difference: Option<String>,
    /// Parameters that there are not.
    #[serde(flatten)]
    pub others: BTreeMap<String, String>,
}

/// What is shown. Equal ones share a rendering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Index among the windows; `total` is the last.
    pub window: usize,
    pub k: Cut,
    pub profile: usize,
    /// Ids, in the order of export; never empty.
    pub metrics: Vec<&'static str>,
    pub sort: Sort,
    /// In lower case.
    pub filter: String,
    pub experiment: Option<String>,
    /// From 0; beyond the last it is the last.
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
    Name,
    /// Event time of the newest list.
    Last,
    Lists(View),
    Clicks(View),
    Metric(View, &'static str),
}

impl Query {
    pub fn of(wanted: Wanted, exporter: &Exporter) -> Query {
        let mut notes = Vec::new();
        let windows: Vec<&str> = window_names(&exporter.windows).collect();
        let window = known(&mut notes, "window", wanted.window.as_deref(), &windows);
        let ks: Vec<String> = exporter.k.iter().map(NonZeroU32::to_string).collect();
        let cuts: Vec<&str> = [WHOLE].into_iter().chain(ks.iter().map(String::as_str)).collect();
        let cut = known(&mut notes, "k", wanted.k.as_deref(), &cuts);
        let profiles = exporter.ranking.profiles();
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        let profile = known(&mut notes, "profile", wanted.profile.as_deref(), &names);
        known(&mut notes, "view", wanted.view.as_deref(), &VIEWS);
        known(
            &mut notes,
            "difference",
            wanted.difference.as_deref(),
            &DIFFERENCES,
        );
        let ids = ids(&exporter.ranking, profile);
        let sort = sort(&mut notes, wanted.sort.as_deref(), &ids);
        let metrics = metrics(&mut notes, wanted.metrics.as_deref(), ids);
        let page = page(&mut notes, wanted.page.as_deref());
        let scopes = exporter.scopes();
        let names: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
        let scope = known(&mut notes, "scope", wanted.scope.as_deref(), &names);
        others(&mut notes, wanted.others.keys());
        Query {
            window,
            k: cut.checked_sub(1).map(|place| exporter.k[place]),
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

/// What a note says of an experiment that is not there.
pub(super) fn no_experiment(name: &str) -> String {
    format!("There is no experiment “{}” here: all are shown.", echo(name))
}

/// What a note says of a page beyond the last, both from 1.
pub(super) fn no_page(wanted: usize, last: usize) -> String {
    format!("There is no page {wanted} here: page {last} is shown, the last.")
}

/// Where what is wanted stands among what there is, else the first.
fn known(notes: &mut Vec<String>, what: &str, wanted: Option<&str>, all: &[&str]) -> usize {
    let Some(wanted) = wanted else { return 0 };
    let place = all.iter().position(|name| *name == wanted);
    place.unwrap_or_else(|| {
        let (wanted, first) = (echo(wanted), all[0]);
        notes.push(format!(
            "There is no {what} “{wanted}” here: {first} is shown. It can be {}.",
            all.join(", ")
        ));
        0
    })
}

/// Those of the wanted metrics that the profile has, else its first ones.
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

/// The order that is wanted, if it is by something that there is.
fn sort(notes: &mut Vec<String>, wanted: Option<&str>, ids: &[&'static str]) -> Sort {
    let Some(wanted) = wanted else {
        return Sort::BY_NAME;
    };
    let is_there = |sort: &Sort| match sort.by {
        By::Metric(_, id) => ids.contains(&id),
        _ => true,
    };
    Sort::parse(wanted).filter(is_there).unwrap_or_else(|| {
        notes.push(format!(
            "Arms cannot be sorted by “{}” here: they are sorted by name.",
            echo(wanted)
        ));
        Sort::BY_NAME
    })
}

/// The metrics that a profile has, in the order of export.
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

/// A note on parameters that there are not.
fn others<'a>(notes: &mut Vec<String>, names: impl Iterator<Item = &'a String>) {
    let names: Vec<String> = names
        .take(MAX_OTHERS)
        .map(|name| format!("“{}”", echo(name)))
        .collect();
    if !names.is_empty() {
        notes.push(format!(
            "Nothing can be chosen by {} in an address: it is passed over.",
            names.join(", ")
        ));
    }
}

fn echo(text: &str) -> String {
    text.chars().take(MAX_ECHO).collect()
}

impl Sort {
    pub const BY_NAME: Sort = Sort {
        by: By::Name,
        descending: false,
    };

    fn parse(text: &str) -> Option<Sort> {
        let (descending, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let by = match (text, text.split_once('.')) {
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
            By::Name => f.write_str("name"),
            By::Last => f.write_str("last"),
            By::Lists(view) => write!(f, "{}.lists", view.name()),
            By::Clicks(view) => write!(f, "{}.clicks", view.name()),
            By::Metric(view, id) => write!(f, "{}.{id}", view.name()),
        }
    }
}
