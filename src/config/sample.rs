//! What `config/abgauge.toml` says of each setting, in its order: the words about it, and its default or an example.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Config;

/// A section of the sample, or a setting in it.
pub(super) struct SampleEntry {
    pub section: String,
    /// None for the section itself.
    pub name: Option<String>,
    pub note: SettingNote,
}

/// What is said of a setting or a section.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SettingNote {
    pub text: String,
    /// Its default, or an example.
    pub value: Option<Value>,
}

/// Every section and every setting in the order of the file: the comment above it or its paragraph, and its value, be it
/// commented out or not. Of a table whose names are the operator's the example is given under the table's own name.
pub(super) fn entries() -> Vec<SampleEntry> {
    let mut entries = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    let mut is_told = false;
    let mut section = String::new();
    for line in Config::default_toml().lines() {
        // What is commented out has no space after its `#`.
        let written = line.strip_prefix('#').unwrap_or(line);
        if let Some(text) = line.strip_prefix("# ") {
            if std::mem::take(&mut is_told) {
                comment.clear();
            }
            comment.push(text);
        } else if let Some(header) = written.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            // An example's name is the operator's: its table is told.
            let table = header.rsplit_once('.').map_or(header, |(table, _)| table);
            section = if line.starts_with('#') { table } else { header }.to_owned();
            let text = comment.join(" ");
            comment.clear();
            entries.push(SampleEntry {
                section: section.clone(),
                name: None,
                note: SettingNote { text, value: None },
            });
        } else if let Some((name, value)) = written.split_once(" = ") {
            is_told = true;
            entries.push(SampleEntry {
                section: section.clone(),
                name: Some(name.to_owned()),
                note: SettingNote {
                    text: comment.join(" "),
                    value: value_of(value),
                },
            });
        } else {
            comment.clear();
        }
    }
    entries
}

/// The same by setting or section.
pub(super) fn notes() -> BTreeMap<String, SettingNote> {
    let key = |entry: &SampleEntry| match &entry.name {
        Some(name) => format!("{}.{name}", entry.section),
        None => entry.section.clone(),
    };
    entries()
        .into_iter()
        .map(|entry| (key(&entry), entry.note))
        .collect()
}

fn value_of(written: &str) -> Option<Value> {
    let table: toml::Table = format!("value = {written}").parse().ok()?;
    serde_json::to_value(table.get("value")?).ok()
}
