//! Arguments that define the visitors of simulated traffic, and the effects of the arms on them.

use std::num::NonZeroU32;

use abgauge_core::table::visible;
use anyhow::anyhow;
use clap::Args;

use crate::tools::simulate::{Design, Population, World};

/// Heading in the help.
const USERS_AND_ARMS: &str = "Users and arms";

#[derive(Debug, Args)]
pub struct TrafficArgs {
    /// Number of returning users
    ///
    /// Some come often, most rarely: 1% of them have 10% of all lists. Each user is always in the same arms.
    #[arg(help_heading = USERS_AND_ARMS, long, value_name = "N", default_value_t = Population::default().n_users, value_parser = parse_users, allow_negative_numbers = true)]
    pub users: NonZeroU32,
    /// Arms of an experiment, the control first, such as ranker=control,a,b, or their number, such as ranker=12; may be repeated
    ///
    /// Replaces the default experiments: ranker with the arms control, neural and blend, and layout with grid and carousel. A number
    /// stands for the arms control, arm-1, arm-2 and so on. These arms do not differ, except by --effect.
    #[arg(help_heading = USERS_AND_ARMS, long, value_name = "EXPERIMENT=ARM,…", value_parser = parse_arms)]
    pub arms: Vec<ExperimentArms>,
    /// Shares of users, such as control=0.5,neural=0.5 [default: equal]
    ///
    /// An unnamed arm gets no users, unless no arm of its experiment is named.
    #[arg(help_heading = USERS_AND_ARMS, long, value_name = "ARM=SHARE,…", value_parser = parse_shares)]
    pub shares: Option<ArmNumbers>,
    /// Lift of an arm's click rate over its control, such as neural=+0.10
    ///
    /// The lift is relative and applies at each rank, so it is also the true lift of CTR. The control of an experiment is its first
    /// arm. By default neural is clicked 32% more often, blend 18% more, and carousel 10% less.
    #[arg(help_heading = USERS_AND_ARMS, long, value_name = "ARM=LIFT,…", value_parser = parse_effects)]
    pub effect: Option<ArmNumbers>,
    /// No differences between arms: an A/A test
    #[arg(help_heading = USERS_AND_ARMS, long, conflicts_with = "effect")]
    pub aa: bool,
    /// Vary the rate by hour of the day (UTC)
    ///
    /// The daily mean stays the same. There are seven times as many lists in the evening as at night.
    #[arg(help_heading = super::TIME, long)]
    pub diurnal: bool,
}

impl TrafficArgs {
    /// Creates the simulated world.
    ///
    /// # Errors
    /// If a flag has arms that cannot be simulated or that no experiment has. The error names the flag.
    pub fn world(&self) -> anyhow::Result<World> {
        let mut design = Design::default();
        if !self.arms.is_empty() {
            let arms = self
                .arms
                .iter()
                .map(|it| it.arms.iter().map(String::as_str).collect());
            let arms: Vec<Vec<&str>> = arms.collect();
            let names = self.arms.iter().map(|it| it.experiment.as_str());
            let experiments: Vec<(&str, &[&str])> = names.zip(arms.iter().map(Vec::as_slice)).collect();
            design = Design::new(design.appeal(0), &experiments)
                .map_err(|error| anyhow!("invalid values for '--arms <EXPERIMENT=ARM,…>': {error}"))?;
        }
        if self.aa {
            design = design.without_differences();
        }
        if let Some(shares) = &self.shares {
            let with_shares = design.with_shares(&shares.numbers);
            design = with_shares.map_err(|error| shares.refused("--shares <ARM=SHARE,…>", &error))?;
        }
        if let Some(lifts) = &self.effect {
            let with_effects = design.with_effects(&lifts.numbers);
            design = with_effects.map_err(|error| lifts.refused("--effect <ARM=LIFT,…>", &error))?;
        }
        Ok(World {
            population: Population {
                n_users: self.users,
                ..Population::default()
            },
            design,
            ..World::default()
        })
    }
}

/// Experiment with its arms, the control first.
#[derive(Debug, Clone)]
pub struct ExperimentArms {
    experiment: String,
    arms: Vec<String>,
}

/// Number for each listed arm, with the text that it was parsed from.
#[derive(Debug, Clone)]
pub struct ArmNumbers {
    text: String,
    numbers: Vec<(String, f64)>,
}

impl ArmNumbers {
    /// Returns the error in the parser's format.
    fn refused(&self, flag: &str, error: &anyhow::Error) -> anyhow::Error {
        anyhow!("invalid value '{}' for '{flag}': {error}", visible(&self.text))
    }
}

const MOST_USERS: u32 = 1_000_000_000;

fn parse_users(text: &str) -> Result<NonZeroU32, String> {
    let users = text.parse().ok().filter(|n: &NonZeroU32| n.get() <= MOST_USERS);
    users.ok_or_else(|| format!("write a whole number from 1 to {MOST_USERS}"))
}

/// Maximum number of arms of an experiment, as many as [`Design::new`] takes.
const MOST_ARMS: usize = 10_000;

fn parse_arms(text: &str) -> Result<ExperimentArms, String> {
    let (experiment, arms) = text
        .split_once('=')
        .ok_or("write an experiment and its arms, such as ranker=control,a,b")?;
    let mut names: Vec<String> = arms.split(',').map(|arm| arm.trim().to_owned()).collect();
    if let [number] = &names[..] {
        let n = number.parse().ok().filter(|n| (2..=MOST_ARMS).contains(n));
        let n: usize = n.ok_or_else(|| {
            format!(
                "write at least two arms, such as ranker=control,a, or a number of arms from 2 to {MOST_ARMS}"
            )
        })?;
        names = (0..n)
            .map(|n| {
                if n == 0 {
                    "control".to_owned()
                } else {
                    format!("arm-{n}")
                }
            })
            .collect();
    }
    Ok(ExperimentArms {
        experiment: experiment.trim().to_owned(),
        arms: names,
    })
}

fn parse_shares(text: &str) -> Result<ArmNumbers, String> {
    parse_for_arms(text, "control=0.5,neural=0.5")
}

fn parse_effects(text: &str) -> Result<ArmNumbers, String> {
    parse_for_arms(text, "neural=+0.10")
}

/// Parses `ARM=NUMBER,…`.
fn parse_for_arms(text: &str, example: &str) -> Result<ArmNumbers, String> {
    let pair = |part: &str| {
        let (arm, number) = part.split_once('=')?;
        Some((arm.trim().to_owned(), number.trim().parse().ok()?))
    };
    let numbers: Option<Vec<_>> = text.split(',').map(pair).collect();
    Ok(ArmNumbers {
        text: text.to_owned(),
        numbers: numbers.ok_or_else(|| format!("write an arm and a number, such as {example}"))?,
    })
}
