//! Current value and origin of every setting, to show them or to compare two configurations.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use toml::{Table, Value};

use super::error::{ErrorReport, SettingOrigin};
use super::redact::hide;
use super::rules::WITHOUT_CONTROL;
use super::{Config, Experiment, derived, names, sample};

const BROKERS: &str = "kafka.brokers";
const VIEWS: &str = "export.views";
/// Column of the comments behind settings, if the line is short enough.
const REMARKS_AT: usize = 40;

/// Current settings. No `Debug`, because values include secrets.
#[derive(Clone)]
pub struct CurrentSettings {
    /// File name as given by the operator, if there is a file.
    file: Option<String>,
    settings: Vec<Setting>,
}

#[derive(Clone)]
struct Setting {
    /// Table path, such as `events.served`, split into names.
    section: Vec<String>,
    name: String,
    /// Value as set, or else as derived. `None` if there is neither.
    value: Option<Value>,
    /// Content of the file that the value names, for files read only at startup.
    content: Option<String>,
    origin: SettingOrigin,
    /// Reason for a default that needs an explanation.
    reason: Option<&'static str>,
}

impl Setting {
    fn key(&self) -> String {
        format!("{}.{}", self.section.join("."), self.name)
    }

    fn is_written(&self) -> bool {
        self.origin != SettingOrigin::Default
    }

    /// Returns whether the operator changed the setting. A derived default does not count: the setting it follows is reported.
    fn differs(&self, other: &Setting) -> bool {
        (self.is_written() || other.is_written())
            && (&self.value, &self.content) != (&other.value, &other.content)
    }
}

impl CurrentSettings {
    /// `written` are the settings as read, without those that have no value. `config` is the configuration made from them.
    pub(super) fn of(written: &Table, config: &Config, report: &ErrorReport) -> CurrentSettings {
        let known = names::known_settings();
        let mut settings = Vec::new();
        for sample::SampleEntry { section, name, .. } in sample::entries() {
            let section: Vec<String> = section.split('.').map(str::to_owned).collect();
            let known = section
                .iter()
                .try_fold(&known, |table, name| table.get(name)?.as_object());
            // A table without known settings has free names.
            let is_free = known.is_some_and(serde_json::Map::is_empty);
            let values = section
                .iter()
                .try_fold(written, |table, name| table.get(name)?.as_table());
            match name {
                Some(name) if !is_free => {
                    let value = values.and_then(|values| values.get(&name)).cloned();
                    settings.push(setting(section, name, value, config, report));
                }
                None if is_free => {
                    for (name, value) in values.into_iter().flatten() {
                        settings.extend(of_free_name(&section, name, value, config, report));
                    }
                }
                _ => {}
            }
        }
        CurrentSettings {
            file: report.file().map(str::to_owned),
            settings,
        }
    }

    /// Formats the settings as TOML, with the origin of each in a comment. Secrets are hidden.
    pub fn show(&self) -> String {
        let mut shown = "# Effective settings. After each: ".to_owned();
        if let Some(file) = &self.file {
            let _ = write!(shown, "its line of {file}, or ");
        }
        shown.push_str("the variable that sets it, or `default`.\n");
        let mut section: &[String] = &[];
        for setting in &self.settings {
            if setting.section != section {
                section = &setting.section;
                let names: Vec<String> = section.iter().map(|name| bare_or_quoted(name)).collect();
                let _ = writeln!(shown, "\n[{}]", names.join("."));
            }
            let name = bare_or_quoted(&setting.name);
            let line = match &setting.value {
                Some(value) => format!("{name} = {}", hide(&setting.key(), value.clone())),
                None => format!("#{name} ="),
            };
            let _ = writeln!(shown, "{line:REMARKS_AT$}  # {}", setting.remark());
        }
        shown
    }

    /// Returns whether the only setting without a default is missing.
    pub fn lacks_brokers(&self) -> bool {
        let mut settings = self.settings.iter();
        settings.any(|setting| setting.is_missing())
    }

    /// Returns the settings that the operator changed between these and `new`.
    pub(super) fn differences(&self, new: &CurrentSettings) -> Vec<String> {
        let keys = |settings: &[Setting]| -> Vec<String> { settings.iter().map(Setting::key).collect() };
        let all: BTreeSet<String> = [keys(&self.settings), keys(&new.settings)]
            .concat()
            .into_iter()
            .collect();
        let differs = |key: &String| match (self.find(key), new.find(key)) {
            (Some(old), Some(new)) => old.differs(new),
            (Some(only), None) | (None, Some(only)) => only.is_written(),
            (None, None) => false,
        };
        all.into_iter().filter(differs).collect()
    }

    /// Takes over the value of `key` from `new`.
    pub(super) fn take(&mut self, key: &str, new: &CurrentSettings) {
        let old = self.settings.iter().position(|setting| setting.key() == key);
        // An experiment may be in only one of the two.
        match (old, new.find(key)) {
            (Some(old), Some(new)) => self.settings[old] = new.clone(),
            (Some(old), None) => _ = self.settings.remove(old),
            (None, new) => self.settings.extend(new.cloned()),
        }
    }

    fn find(&self, key: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key() == key)
    }
}

impl Setting {
    fn is_missing(&self) -> bool {
        self.value.is_none() && self.key() == BROKERS
    }

    fn remark(&self) -> String {
        match (&self.origin, &self.value) {
            (SettingOrigin::Line(line), _) => format!("line {line}"),
            (SettingOrigin::Variable(name), _) => name.clone(),
            (SettingOrigin::Default, None) if self.is_missing() => {
                "missing: set it in the file or by ABGAUGE_KAFKA__BROKERS".to_owned()
            }
            // `export.views` has no value that would express its default.
            (SettingOrigin::Default, None) if self.key() != VIEWS => "not set".to_owned(),
            (SettingOrigin::Default, _) => match self.reason {
                Some(reason) => format!("default: {reason}"),
                None => "default".to_owned(),
            },
        }
    }
}

fn setting(
    section: Vec<String>,
    name: String,
    value: Option<Value>,
    config: &Config,
    report: &ErrorReport,
) -> Setting {
    let key = format!("{}.{name}", section.join("."));
    // These files are read only at startup, so a changed content counts as a change of the setting.
    let is_file_of_a_secret = key.starts_with("kafka.property_files.");
    let content = is_file_of_a_secret.then(|| config.kafka.properties.0.get(&name).cloned());
    Setting {
        value: value.or_else(|| derived::value(&key, config)),
        content: content.flatten(),
        origin: report.origin(&key),
        reason: derived::reason(&key, |other| report.origin(other) != SettingOrigin::Default),
        section,
        name,
    }
}

/// Returns the settings under a name chosen by the operator: a single value, or a table of values.
fn of_free_name(
    section: &[String],
    name: &str,
    value: &Value,
    config: &Config,
    report: &ErrorReport,
) -> Vec<Setting> {
    let Value::Table(inner) = value else {
        return vec![setting(
            section.to_vec(),
            name.to_owned(),
            Some(value.clone()),
            config,
            report,
        )];
    };
    if let Some(experiment) = config
        .experiments
        .get(name)
        // A profile may have the same name as an experiment.
        .filter(|_| section == ["experiments"])
    {
        return of_experiment(name, inner, experiment, config, report);
    }
    let section = [section, &[name.to_owned()]].concat();
    let key = section.join(".");
    let settings = inner.iter().map(|(inner, value)| Setting {
        section: section.clone(),
        name: inner.clone(),
        value: Some(value.clone()),
        content: None,
        origin: report.origin(&key),
        reason: None,
    });
    settings.collect()
}

/// Returns the settings of an experiment in the order of the sample: all of them with a control, otherwise only those that do
/// not need one.
fn of_experiment(
    name: &str,
    written: &Table,
    experiment: &Experiment,
    config: &Config,
    report: &ErrorReport,
) -> Vec<Setting> {
    let of_experiments = sample::entries()
        .into_iter()
        .filter(|entry| entry.section == "experiments");
    let settings = of_experiments
        .filter_map(|entry| entry.name)
        .map(|setting| Setting {
            section: vec!["experiments".to_owned(), name.to_owned()],
            value: written
                .get(&setting)
                .cloned()
                .or_else(|| derived::of_experiment(&setting, experiment)),
            content: None,
            origin: report.origin(&format!("experiments.{name}.{setting}")),
            reason: derived::reason_of_experiment(&setting, name, config),
            name: setting,
        });
    settings
        .filter(|setting| experiment.settings.is_some() || WITHOUT_CONTROL.contains(&setting.name.as_str()))
        .collect()
}

/// Formats a name for the left side of a `=`.
pub(in crate::settings) fn bare_or_quoted(name: &str) -> String {
    let is_bare = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
    match !name.is_empty() && name.bytes().all(is_bare) {
        true => name.to_owned(),
        false => Value::from(name).to_string(),
    }
}
