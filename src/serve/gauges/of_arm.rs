//! Number of series that the settings give an arm, which `abgauge check` reports before the first scrape.

use abgauge_core::looks::PublishedLooks;
use abgauge_core::metrics::Ranking;

use super::bound::Sizes;
use super::looks::LookGauges;
use super::{Scope, families, places};
use crate::settings::Config;

/// Maximum number of series for one arm in a scrape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesOfArm {
    /// Series of this instance's partitions.
    pub own: usize,
    /// Series of all partitions, if these are shown.
    pub global: usize,
    /// Series of looks, for the experiment with the most.
    pub looks: usize,
}

impl SeriesOfArm {
    pub fn of(config: &Config) -> SeriesOfArm {
        let (ranking, export) = (Ranking::new(&config.measures), &config.export);
        let of = |scope| {
            let of_place = Sizes::of(&families(&ranking, export, scope)).most();
            of_place * places(export, &config.windows, scope).len()
        };
        let nothing = PublishedLooks::default();
        let looks = LookGauges::new(&nothing, Scope::Own, &ranking, export);
        let window = config.look_window();
        let window = window.as_ref().map(|window| window.name.as_str());
        let experiments = config.experiments.values();
        let of_experiments = experiments.map(|experiment| looks.most_of_arm(experiment, window));
        SeriesOfArm {
            // Two series without a scope: the time of the last list, and the mark of a control.
            own: of(Scope::Own) + 2,
            global: if config.global { of(Scope::Global) } else { 0 },
            looks: of_experiments.max().unwrap_or(0),
        }
    }

    pub fn sum(&self) -> usize {
        self.own + self.global + self.looks
    }
}

#[cfg(test)]
mod tests;
