//! What a page asks for: from the parameters of its address to what there is.
//!
//! An address outlives the configuration that it was made under. So what is not there is no error: the default stands
//! in, and a note says so.

use std::fmt;
use std::num::NonZeroU32;

use serde::Deserialize;

use super::super::Exporter;
use super::super::api::window_names;
use crate::engine::ranking::{Column, Cut, Metric, Ranking};
use crate::snapshot::View;

/// Metrics that are shown until others are chosen.
const N_FIRST: usize = 3;
/// Characters of a parameter that a note repeats.
const MAX_ECHO: usize = 40;
/// The `k` of the whole list.
const WHOLE: &str = "whole";

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
        let ids = ids(&exporter.ranking, profile);
        let sort = wanted.sort.as_deref().map(|text| Sort::parse(text).ok_or(text));
        let sort = sort.unwrap_or(Ok(Sort::BY_NAME)).unwrap_or_else(|text| {
            let echo = echo(text);
            notes.push(format!(
                "Arms cannot be sorted by “{echo}”: they are sorted by name."
            ));
            Sort::BY_NAME
        });
        let metrics = metrics(&mut notes, wanted.metrics.as_deref(), ids);
        Query {
            window,
            k: cut.checked_sub(1).map(|place| exporter.k[place]),
            profile,
            metrics,
            sort,
            filter: wanted.filter.unwrap_or_default().trim().to_lowercase(),
            experiment: wanted.experiment.filter(|name| !name.is_empty()),
            page: page(wanted.page.as_deref()),
            notes,
        }
    }
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
    let unknown = wanted.iter().find(|name| !name.is_empty() && !ids.contains(name));
    if let Some(unknown) = unknown {
        notes.push(format!(
            "There is no metric “{}” in this profile. It can be {}.",
            echo(unknown),
            ids.join(", ")
        ));
    }
    let chosen: Vec<&'static str> = ids.iter().copied().filter(|id| wanted.contains(id)).collect();
    match chosen.is_empty() {
        true => ids.into_iter().take(N_FIRST).collect(),
        false => chosen,
    }
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

fn page(wanted: Option<&str>) -> usize {
    let number: usize = wanted.and_then(|text| text.parse().ok()).unwrap_or(1);
    number.saturating_sub(1)
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
