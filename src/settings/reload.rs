//! Reload of the configuration while the daemon runs: which changes apply at once, and which need a restart.

use super::names::EXPERIMENTS;
use super::row::Setting;
use super::{Config, CurrentSettings, Experiment, raw};

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
            let row = raw::setting(&key).or_else(|| of_experiment(&key));
            let is_taken_over = row.is_some_and(|row| row.reload(&mut self.config, &new.config));
            if is_taken_over {
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
        changes
    }
}

/// Returns the row of a setting such as `experiments.ranker.owner`. The name of an experiment may contain dots.
fn of_experiment(key: &str) -> Option<&'static Setting> {
    let rest = key.strip_prefix(EXPERIMENTS)?.strip_prefix('.')?;
    let (_, setting) = rest.rsplit_once('.')?;
    raw::setting(&format!("{EXPERIMENTS}.{setting}"))
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
