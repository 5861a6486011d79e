//! Metrics by which arms can be compared: the ones of the first profile whose sums add up over users, and the ones per user.

use std::num::NonZeroU32;

use abgauge_core::looks;
use abgauge_core::metrics::{Column, Measures, Metric, Ranking};
use abgauge_core::statistics::per_user::{self, is_per_user};
use toml::Spanned;

use crate::settings::error::{ErrorReport, nearest};

/// Settings that decide which metrics are measured.
const MEASURES: [&str; 5] = [
    "metrics.k",
    "metrics.metrics",
    "metrics.profile",
    "metrics.alpha",
    "export.metrics",
];

pub(super) struct Comparable<'a> {
    measures: &'a Measures,
    /// `None` if it is unknown what is measured, so metrics cannot be checked.
    columns: Option<Vec<Column>>,
}

impl<'a> Comparable<'a> {
    pub fn of(measures: &'a Measures, report: &ErrorReport) -> Comparable<'a> {
        let is_sound = MEASURES.iter().all(|key| report.is_sound(key)) && !measures.profiles.is_empty();
        let columns = is_sound.then(|| looks::compared(&Ranking::new(measures)).copied().collect());
        Comparable { measures, columns }
    }

    /// Returns the default: CTR at the largest cut-off, or else the first available metric.
    pub fn default_primary(&self) -> Option<String> {
        looks::default_primary(self.columns.as_ref()?.iter())
    }

    /// Returns the ids of a list of metrics, each once.
    pub fn list(
        &self,
        key: &str,
        list: &Spanned<Vec<Spanned<String>>>,
        report: &mut ErrorReport,
    ) -> Vec<String> {
        let mut ids = Vec::new();
        for word in list.get_ref() {
            let Some(id) = self.id(key, word, report) else {
                continue;
            };
            if ids.contains(&id) {
                report.refuse_twice(key, word, format_args!("\"{}\"", word.get_ref()));
            }
            ids.push(id);
        }
        ids
    }

    /// Returns the id of a metric, which may be written with the name of its gauge.
    pub fn id(&self, key: &str, word: &Spanned<String>, report: &mut ErrorReport) -> Option<String> {
        let id = by_id(word.get_ref());
        let Some(columns) = &self.columns else {
            return Some(id);
        };
        if is_per_user(&id) || columns.iter().any(|column| column.key() == id) {
            return Some(id);
        }
        let (message, remedy) = self.unlike(word.get_ref(), &id, columns);
        report.refuse(key, word, message, remedy);
        None
    }

    /// Returns the problem with an id, and the remedy.
    fn unlike(&self, written: &str, id: &str, columns: &[Column]) -> (String, String) {
        let (name, cut) = id.split_once('@').unzip();
        let Some(metric) = Metric::named(name.unwrap_or(id)) else {
            return unknown(written, id, columns);
        };
        let other = self
            .default_primary()
            .unwrap_or_else(|| per_user::LISTS_PER_USER.to_owned());
        let own: Vec<&Column> = columns
            .iter()
            .filter(|column| column.metric.id == metric.id)
            .collect();
        if !metric.is_additive {
            let message = format!(
                "\"{written}\" counts distinct items: it is not a sum over users, so it cannot compare arms"
            );
            return (message, format!("write another metric, such as \"{other}\""));
        }
        match nearest_cut(&own, cut) {
            Some(column) => other_cut(written, cut, column, own.len() == 1),
            None => self.not_measured(written, &metric, &other),
        }
    }

    fn not_measured(&self, written: &str, metric: &Metric, other: &str) -> (String, String) {
        let (id, first) = (metric.id, &self.measures.profiles[0]);
        let message = format!(
            "\"{written}\" is not measured by the first profile, {}",
            first.name
        );
        let remedy = if !first.metrics.contains(&id) {
            format!("put a profile first that has it (`abgauge profiles` lists them), or write \"{other}\"")
        } else if metric.needs_catalogue() && !self.measures.catalogue {
            format!(
                "it needs \"{id}\" in `metrics` and catalog = \"FILE\" under [metrics]; or write \"{other}\""
            )
        } else {
            format!("add \"{id}\" to `metrics` under [metrics], or write \"{other}\"")
        };
        (message, remedy)
    }
}

fn unknown(written: &str, id: &str, columns: &[Column]) -> (String, String) {
    let all: Vec<String> = columns.iter().map(Column::key).collect();
    let remedy = match nearest(id, all.iter().map(String::as_str).chain(per_user::ids())) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "write a metric with its cut-off, such as \"hit_rate@10\", or \"mrr\" over the whole list"
            .to_owned(),
    };
    (format!("\"{written}\" is not a metric"), remedy)
}

/// Describes a metric that is measured at other cut-offs only; `near` is the closest of them.
fn other_cut(written: &str, cut: Option<&str>, near: &Column, is_alone: bool) -> (String, String) {
    let write = format!("write \"{}\"", near.key());
    if is_alone && near.k.is_none() {
        let message = format!(
            "\"{written}\" has a cut-off, and the first profile has this metric over the whole list only"
        );
        return (message, write);
    }
    let remedy = match cut.and_then(|cut| cut.parse::<NonZeroU32>().ok()) {
        Some(k) => format!("{write}, or add {k} to `k` under [metrics]"),
        None => write,
    };
    (
        format!("\"{written}\" has a cut-off that is not computed"),
        remedy,
    )
}

/// Returns the column of a metric with the cut-off closest to the written one, or the longest if that is not a number.
fn nearest_cut<'a>(columns: &[&'a Column], cut: Option<&str>) -> Option<&'a Column> {
    let wanted = cut.and_then(|cut| cut.parse::<u32>().ok());
    let distance = |column: &&&Column| {
        let k = column.k.map_or(u32::MAX, |k| k.get());
        wanted.map_or(u32::MAX - k, |wanted| k.abs_diff(wanted))
    };
    columns.iter().min_by_key(distance).copied()
}

/// Replaces the name of a gauge by the id of its metric: `hit_ratio@5` becomes `hit_rate@5`.
fn by_id(written: &str) -> String {
    let (name, cut) = written.split_at(written.find('@').unwrap_or(written.len()));
    match Metric::named(name) {
        Some(metric) => format!("{}{cut}", metric.id),
        None => written.to_owned(),
    }
}
