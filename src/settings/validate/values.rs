//! Checks of single values, whatever the setting.

use std::num::NonZeroU32;
use std::ops::{Bound, RangeBounds as _, RangeInclusive};
use std::path::PathBuf;

use toml::Spanned;

use crate::settings::error::{ErrorReport, nearest};
use crate::settings::names::EXPERIMENTS;
use crate::settings::raw::setting;
use crate::settings::row::Setting;
use crate::settings::rules::SHARE;
use crate::settings::units::TimeSpan;

pub(super) fn positive(key: &str, span: &Spanned<TimeSpan>, report: &mut ErrorReport) -> i64 {
    if span.get_ref().ms == 0 {
        report.refuse(
            key,
            span,
            "must be longer than nothing",
            "write a longer span, such as \"5s\"",
        );
    }
    span.get_ref().ms
}

pub(super) fn whole<T>(key: &str, value: &Spanned<i64>, report: &mut ErrorReport) -> T
where
    T: TryFrom<i64> + Default,
{
    let (number, range) = (*value.get_ref(), range(key));
    match T::try_from(number) {
        Ok(fits) if range.contains(&number) => fits,
        _ => {
            let remedy = format!("write a number from {} to {}", range.start(), range.end());
            let what = match setting(key).is_some_and(Setting::is_secret) {
                true => "it".to_owned(),
                false => number.to_string(),
            };
            report.refuse(key, value, format!("{what} is out of range"), remedy);
            T::default()
        }
    }
}

/// Returns the range of a whole number.
pub(super) fn range(key: &str) -> RangeInclusive<i64> {
    let range = setting(key).and_then(Setting::range);
    range.expect("the row of a whole number has its range")
}

/// Returns the path of a file, if one is set.
pub(super) fn path(key: &str, path: &Option<Spanned<String>>, report: &mut ErrorReport) -> Option<PathBuf> {
    let path = path.as_ref()?;
    if path.get_ref().is_empty() {
        report.refuse(key, path, "is empty", "write the path of a file, or leave it out");
    }
    Some(path.get_ref().into())
}

/// Checks a number from 0 to 1.
pub(super) fn share(key: &str, value: &Spanned<f64>, report: &mut ErrorReport) -> f64 {
    let share = *value.get_ref();
    if !SHARE.contains(&share) {
        let message = format!("{share} is out of range");
        report.refuse(key, value, message, "write a number from 0 to 1");
    }
    share
}

pub(super) fn cut_offs(
    key: &str,
    list: &Spanned<Vec<Spanned<i64>>>,
    report: &mut ErrorReport,
) -> Vec<NonZeroU32> {
    let mut rank = |written| NonZeroU32::new(whole(key, written, report));
    list.get_ref().iter().filter_map(&mut rank).collect()
}

/// Returns the value that `word` means.
pub(super) fn choice<T: Clone>(
    key: &str,
    word: &Spanned<String>,
    known: &[(&str, T)],
    report: &mut ErrorReport,
) -> Option<T> {
    let text = word.get_ref();
    if let Some((_, value)) = known.iter().find(|(name, _)| name == text) {
        return Some(value.clone());
    }
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let all = any_of(&names);
    let remedy = match nearest(text, names) {
        Some(near) => format!("did you mean \"{near}\"? It can be {all}"),
        None if known.is_empty() => "leave it out".to_owned(),
        None => format!("write {all}"),
    };
    report.refuse(key, word, format!("\"{text}\" is not known here"), remedy);
    None
}

/// `"a", "b" or "c"`
fn any_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}

/// Returns the values that a list of words means, each once.
pub(super) fn chosen<T: Clone + PartialEq>(
    key: &str,
    list: &Spanned<Vec<Spanned<String>>>,
    known: &[(&str, T)],
    report: &mut ErrorReport,
) -> Vec<T> {
    let mut values = Vec::new();
    for word in list.get_ref() {
        let Some(value) = choice(key, word, known, report) else {
            continue;
        };
        if values.contains(&value) {
            report.refuse(
                key,
                word,
                format!("\"{}\" is there twice", word.get_ref()),
                "leave one of them out",
            );
        }
        values.push(value);
    }
    values
}

/// Picks the setting to complain about if two contradict each other: the one that was written, not a default. `None` if one of
/// them is refused already.
pub(super) fn either<'a, T>(
    pair: [(&'a str, &'a Spanned<T>); 2],
    report: &ErrorReport,
) -> Option<(&'a str, &'a Spanned<T>)> {
    let [first, second] = pair;
    let sound = report.is_sound(first.0) && report.is_sound(second.0);
    let given = if report.is_given(first.0, first.1) {
        first
    } else {
        second
    };
    sound.then_some(given)
}

/// Refuses a number that a setting of an experiment cannot have.
pub(super) fn is_between(key: &str, name: &str, value: &Spanned<f64>, report: &mut ErrorReport) {
    let number = value.get_ref();
    let row = setting(&format!("{EXPERIMENTS}.{name}"));
    let range = row
        .and_then(Setting::bounds)
        .expect("the row of a number has its range");
    if !range.contains(number) {
        let remedy = match range {
            (Bound::Excluded(low), Bound::Excluded(high)) => {
                format!("write a number above {low} and below {high}, such as 0.05 for 5%")
            }
            (Bound::Excluded(low), Bound::Included(high)) => {
                format!("write a number of days above {low} and at most {high}, such as 7 or 14")
            }
            _ => String::new(),
        };
        report.refuse(key, value, format!("{number} is out of range"), remedy);
    }
}

/// Refuses a text that a setting of an experiment cannot have: a blank one, or one that is too long.
pub(super) fn is_short_text(key: &str, name: &str, value: &Spanned<String>, report: &mut ErrorReport) {
    let row = setting(&format!("{EXPERIMENTS}.{name}"));
    let most = row
        .and_then(Setting::at_most)
        .expect("the row of a text has its maximum");
    let n_chars = value.get_ref().chars().count();
    if value.get_ref().trim().is_empty() {
        report.refuse(key, value, "is blank", "write a text, or leave it out");
    } else if n_chars > most {
        let message = format!("has {n_chars} characters");
        report.refuse(key, value, message, format!("write at most {most} characters"));
    }
}
