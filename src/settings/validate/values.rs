//! Checks of single values, whatever the setting.

use std::num::NonZeroU32;
use std::path::PathBuf;

use toml::Spanned;

use crate::settings::error::{ErrorReport, nearest};
use crate::settings::names::EXPERIMENTS;
use crate::settings::raw::setting;
use crate::settings::row::Setting;

/// Returns a whole number, which its row has refused if it does not fit.
pub(super) fn whole<T: TryFrom<i64> + Default>(value: &Spanned<i64>) -> T {
    T::try_from(*value.get_ref()).unwrap_or_default()
}

/// Returns the path of a file, if one is set.
pub(super) fn path(key: &str, path: &Option<Spanned<String>>, report: &mut ErrorReport) -> Option<PathBuf> {
    let path = path.as_ref()?;
    if path.get_ref().is_empty() {
        report.refuse(key, path, "is empty", "write the path of a file, or leave it out");
    }
    Some(path.get_ref().into())
}

/// Refuses the texts among these settings that are written, because they have no effect.
pub(super) fn in_vain<'a>(
    settings: impl IntoIterator<Item = (&'a str, &'a Option<Spanned<String>>)>,
    message: &str,
    remedy: &str,
    report: &mut ErrorReport,
) {
    for (key, value) in settings {
        if let Some(value) = value.as_ref().filter(|_| report.is_sound(key)) {
            report.refuse(key, value, message, remedy);
        }
    }
}

pub(super) fn cut_offs(list: &Spanned<Vec<Spanned<i64>>>) -> Vec<NonZeroU32> {
    let ranks = list.get_ref().iter().map(whole);
    ranks.filter_map(NonZeroU32::new).collect()
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
            report.refuse_twice(key, word, format_args!("\"{}\"", word.get_ref()));
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
    let given = if report.is_written(first.0, first.1) {
        first
    } else {
        second
    };
    sound.then_some(given)
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
