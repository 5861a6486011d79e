//! Notes on each setting, read from `config/abgauge.toml` in its order: the comment, and a default or an example.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Config;

/// Section of the sample, or a setting in it.
pub(super) struct SampleEntry {
    pub section: String,
    /// Name of the setting, or `None` for the section itself.
    pub name: Option<String>,
    pub note: SettingNote,
}

/// Comment and example of a setting or a section.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SettingNote {
    pub text: String,
    /// Default, or an example.
    pub value: Option<Value>,
}

/// Returns every section and setting in the order of the file: the comment above it or its paragraph, and its value, even if it
/// is commented out. The example in a table with free names is listed under the name of the table.
pub(super) fn entries() -> Vec<SampleEntry> {
    let mut entries = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    let mut is_reported = false;
    let mut section = String::new();
    for line in Config::default_toml().lines() {
        // Commented-out settings have no space after the `#`.
        let written = line.strip_prefix('#').unwrap_or(line);
        if let Some(text) = line.strip_prefix("# ") {
            // Settings in a row share a comment. A comment after a setting starts a new one.
            if std::mem::take(&mut is_reported) {
                comment.clear();
            }
            comment.push(text);
        } else if let Some(header) = written.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            // The name in an example is free, so list its table.
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
            is_reported = true;
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

/// Returns the notes by setting or section.
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
