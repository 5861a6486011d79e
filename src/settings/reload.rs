//! Reload of the configuration while the daemon runs: which changes apply at once, and which need a restart.

use super::{Config, CurrentSettings, Experiment, Http};

/// Configuration, with the current value and origin of every setting.
pub struct Loaded {
    pub config: Config,
    pub current: CurrentSettings,
}

/// Names of changed settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SettingChanges {
    /// Settings that apply from now on.
    pub taken_over: Vec<String>,
    /// Settings whose old value applies until a restart.
    pub at_a_restart: Vec<String>,
}

impl Loaded {
    /// Takes over everything that a running daemon can change. Remaining differences are reported again at the next reload.
    pub fn take_over(&mut self, new: &Loaded) -> SettingChanges {
        let mut changes = SettingChanges::default();
        for key in self.current.differences(&new.current) {
            if can_be_taken_over(&key, &self.config, &new.config) {
                self.current.take(&key, &new.current);
                changes.taken_over.push(key);
            } else {
                changes.at_a_restart.push(key);
            }
        }
        let by_name = empty_in_one(&self.config, &new.config);
        changes
            .at_a_restart
            .extend(by_name.map(|name| format!("experiments.{name}")));
        self.config = taking_over(&self.config, &new.config);
        changes
    }
}

/// Returns experiments that only one configuration names, by an empty table. No setting would show that difference.
fn empty_in_one<'a>(old: &'a Config, new: &'a Config) -> impl Iterator<Item = &'a String> {
    let without = |one: &'a Config, other: &'a Config| {
        let empty = one
            .experiments
            .iter()
            .filter(|(_, of)| **of == Experiment::default());
        empty.filter_map(|(name, _)| (!other.experiments.contains_key(name)).then_some(name))
    };
    without(old, new).chain(without(new, old))
}

/// Returns whether a setting can change at runtime. Another catalogue, certificate or list of credentials is only another file.
/// Adding or removing one altogether changes more than the content read from files.
fn can_be_taken_over(key: &str, old: &Config, new: &Config) -> bool {
    match key {
        "log.filter" => true,
        "metrics.catalog" => old.catalog.is_some() && new.catalog.is_some(),
        "http.tls_certificate" | "http.tls_key" => have_tls(old, new),
        "http.bearer_tokens"
        | "http.bearer_tokens_file"
        | "http.basic_passwords"
        | "http.basic_passwords_file" => are_guarded(old, new),
        _ => false,
    }
}

fn taking_over(old: &Config, new: &Config) -> Config {
    let mut config = old.clone();
    config.log.filter.clone_from(&new.log.filter);
    if old.catalog.is_some() && new.catalog.is_some() {
        config.catalog.clone_from(&new.catalog);
    }
    let Http { tls, access, .. } = &mut config.http;
    if have_tls(old, new) {
        tls.clone_from(&new.http.tls);
    }
    if are_guarded(old, new) {
        // This setting is not read from a file, so it waits for a restart.
        let open_probes = access.open_probes;
        access.clone_from(&new.http.access);
        access.open_probes = open_probes;
    }
    config
}

fn have_tls(old: &Config, new: &Config) -> bool {
    old.http.tls.is_some() && new.http.tls.is_some()
}

fn are_guarded(old: &Config, new: &Config) -> bool {
    !old.http.access.is_open() && !new.http.access.is_open()
}
