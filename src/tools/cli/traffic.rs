//! Arguments that define the visitors of simulated traffic, and the effects of the arms on them.

use std::num::NonZeroU32;

use clap::Args;

use crate::tools::simulate::{Design, Population, World};

#[derive(Debug, Args)]
pub struct TrafficArgs {
    /// Number of returning users
    ///
    /// Some come often, most rarely: 1% of them have 10% of all lists. Each user is always in the same arms.
    #[arg(long, value_name = "N", default_value_t = Population::default().n_users, value_parser = parse_users, allow_negative_numbers = true)]
    pub users: NonZeroU32,
    /// Shares of users, such as control=0.5,neural=0.5 [default: equal]
    ///
    /// The arms are control, neural and blend of the experiment ranker, and grid and carousel of layout. An unnamed arm
    /// gets no users, unless no arm of its experiment is named.
    #[arg(long, value_name = "ARM=SHARE,…", value_parser = parse_shares)]
    pub shares: Option<ArmNumbers>,
    /// Lift of an arm's click rate over its control, such as neural=+0.10
    ///
    /// The lift is relative and applies at each rank, so it is also the true lift of CTR. The controls are control and grid. By default
    /// neural is clicked 32% more often, blend 18% more, and carousel 10% less.
    #[arg(long, value_name = "ARM=LIFT,…", value_parser = parse_effects)]
    pub effect: Option<ArmNumbers>,
    /// No differences between arms: an A/A test
    #[arg(long, conflicts_with = "effect")]
    pub aa: bool,
    /// Vary the rate by hour of the day (UTC)
    ///
    /// The daily mean stays the same. There are seven times as many lists in the evening as at night.
    #[arg(long)]
    pub diurnal: bool,
}

impl TrafficArgs {
    /// Creates the simulated world.
    ///
    /// # Errors
    /// None, for values accepted by the command line.
    pub fn world(&self) -> anyhow::Result<World> {
        let mut design = Design::default();
        if self.aa {
            design = design.without_differences();
        }
        if let Some(ArmNumbers(shares)) = &self.shares {
            design = design.with_shares(shares)?;
        }
        if let Some(ArmNumbers(lifts)) = &self.effect {
            design = design.with_effects(lifts)?;
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

/// Number for each listed arm.
#[derive(Debug, Clone)]
pub struct ArmNumbers(Vec<(String, f64)>);

const MOST_USERS: u32 = 1_000_000_000;

fn parse_users(text: &str) -> Result<NonZeroU32, String> {
    let users = text.parse().ok().filter(|n: &NonZeroU32| n.get() <= MOST_USERS);
    users.ok_or_else(|| format!("write a whole number from 1 to {MOST_USERS}"))
}

fn parse_shares(text: &str) -> Result<ArmNumbers, String> {
    parse_for_arms(text, "control=0.5,neural=0.5", Design::with_shares)
}

fn parse_effects(text: &str) -> Result<ArmNumbers, String> {
    parse_for_arms(text, "neural=+0.10", Design::with_effects)
}

/// Parses `ARM=NUMBER,…` and checks it against the design.
fn parse_for_arms(
    text: &str,
    example: &str,
    takes: impl Fn(Design, &[(String, f64)]) -> anyhow::Result<Design>,
) -> Result<ArmNumbers, String> {
    let pair = |part: &str| {
        let (arm, number) = part.split_once('=')?;
        Some((arm.trim().to_owned(), number.trim().parse().ok()?))
    };
    let pairs: Option<Vec<_>> = text.split(',').map(pair).collect();
    let pairs = pairs.ok_or_else(|| format!("write an arm and a number, such as {example}"))?;
    // Checked while parsing, so that the error names the flag.
    takes(Design::default(), &pairs).map_err(|error| error.to_string())?;
    Ok(ArmNumbers(pairs))
}
