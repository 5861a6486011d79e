//! How many series the settings give an arm: what `abgauge check` tells before anything is scraped.

use super::bound::Sizes;
use super::looks::LookGauges;
use super::{Scope, families, places};
use crate::config::Config;
use crate::engine::ranking::Ranking;
use crate::looks::Shown;

/// The most series that one arm has in a scrape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesOfArm {
    /// Of the partitions of an instance.
    pub own: usize,
    /// Of all partitions, where these are shown.
    pub global: usize,
    /// Of looks, in the experiment of which most is shown.
    pub looks: usize,
}

impl SeriesOfArm {
    pub fn of(config: &Config) -> SeriesOfArm {
        let (ranking, export) = (Ranking::new(&config.measures), &config.export);
        let of = |scope| {
            let of_place = Sizes::of(&families(&ranking, export, scope)).most();
            of_place * places(export, &config.windows, scope).len()
        };
        let nothing = Shown::default();
        let looks = LookGauges::new(&nothing, Scope::Own, &ranking, export);
        let window = config.look_window();
        let window = window.as_ref().map(|window| window.name.as_str());
        let experiments = config.experiments.values();
        let of_experiments = experiments.map(|experiment| looks.most_of_arm(experiment, window));
        SeriesOfArm {
            // When its last list was, and that it is a control.
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
