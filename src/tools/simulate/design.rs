//! Experiments of the simulation: their arms, the users' shares, and the effects of the arms.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

/// Number of a combination with one arm of each experiment. The last experiment's arm varies fastest.
pub type Combination = u16;

/// Experiments that run at the same time. Every request is in each of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    experiments: Vec<SimulatedExperiment>,
    /// Click probability at rank 1 for a user of eagerness 1, by combination.
    appeal: Vec<f64>,
}

/// Experiment of the simulation. Its first arm is the control.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedExperiment {
    pub name: String,
    pub arms: Vec<SimulatedArm>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedArm {
    pub name: String,
    /// Share of the users, from 0 to 1.
    pub share: f64,
    /// Relative number of visits per user, with the control at 1.
    pub visits: f64,
}

/// Tolerance for shares that should add up to 1.
const TOLERANCE: f64 = 1e-6;
/// Range of lifts.
const LIFTS: std::ops::RangeInclusive<f64> = -0.9..=2.0;
const MOST_COMBINATIONS: usize = 10_000;
/// Maximum bytes of JSON that name the arms of one list.
const MOST_BYTES: usize = 128;

impl Default for Design {
    /// Returns the demo's design: two experiments whose arms interact.
    fn default() -> Design {
        const APPEAL: [[f64; 2]; 3] = [[0.060, 0.054], [0.081, 0.069], [0.068, 0.066]];
        let experiments = [
            equal("ranker", &["control", "neural", "blend"]),
            equal("layout", &["grid", "carousel"]),
        ];
        Design {
            experiments: experiments.into(),
            appeal: APPEAL.as_flattened().to_vec(),
        }
    }
}

fn equal(name: &str, arms: &[&str]) -> SimulatedExperiment {
    let arm = |name: &&str| SimulatedArm {
        name: (*name).to_owned(),
        share: 1.0 / arms.len() as f64,
        visits: 1.0,
    };
    SimulatedExperiment {
        name: name.to_owned(),
        arms: arms.iter().map(arm).collect(),
    }
}

impl Design {
    /// Creates experiments with these names and arms, the control first, with equal shares and no differences. `appeal` is
    /// the click probability at rank 1 for a user of eagerness 1.
    ///
    /// # Errors
    /// - no experiment, or one without arms
    /// - a name that is empty, used twice or not made of letters, digits, `-` and `_`
    /// - an `appeal` outside of 0 to 1
    /// - more names or arms than there is room for
    pub fn new(appeal: f64, experiments: &[(&str, &[&str])]) -> Result<Design> {
        let names = experiments.iter();
        let names = names.flat_map(|(name, arms)| std::iter::once(name).chain(*arms));
        let names: Vec<&str> = names.copied().collect();
        let is_plain = |name: &&str| {
            let mut bytes = name.bytes();
            !name.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        if !names.iter().all(is_plain) {
            bail!("names of experiments and arms consist of letters, digits, - and _");
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(**name)) {
            bail!("{twice} is used twice: experiments and arms need different names");
        }
        if experiments.is_empty() || experiments.iter().any(|(_, arms)| arms.is_empty()) {
            bail!("each design has an experiment, and each experiment an arm");
        }
        let n_arms = experiments.iter().map(|(_, arms)| arms.len());
        let n_combinations = n_arms.fold(1, usize::saturating_mul);
        if n_combinations > MOST_COMBINATIONS {
            bail!(
                "there are more than {MOST_COMBINATIONS} combinations of arms: name fewer arms or experiments"
            );
        }
        // Each pair takes `"experiment":"arm",`; 17 bytes are for `,"experiments":{}`.
        let longest = |arms: &[&str]| arms.iter().map(|arm| arm.len()).max().unwrap_or(0);
        let pairs = experiments
            .iter()
            .map(|(name, arms)| name.len() + longest(arms) + 6);
        let n_bytes = 17 + pairs.sum::<usize>();
        if n_bytes > MOST_BYTES {
            bail!("the names take {n_bytes} bytes of a list, more than {MOST_BYTES}: write shorter names");
        }
        if !(0.0..=1.0).contains(&appeal) {
            bail!("a click probability is from 0 to 1, not {appeal}");
        }
        Ok(Design {
            experiments: experiments.iter().map(|(name, arms)| equal(name, arms)).collect(),
            appeal: vec![appeal; n_combinations],
        })
    }

    /// Gives these shares of the users to these arms. Other arms of the same experiments get no users. Other experiments
    /// are unchanged.
    ///
    /// # Errors
    /// An arm does not exist or is named twice, a share is outside of 0 to 1, or shares do not add up to 1.
    pub fn with_shares(mut self, shares: &[(String, f64)]) -> Result<Design> {
        let mut given: Vec<Option<Vec<f64>>> = vec![None; self.experiments.len()];
        for ((experiment, arm), share) in self.find_all(shares)? {
            if !(0.0..=1.0).contains(&share) {
                bail!("a share is from 0 to 1, not {share}");
            }
            let n_arms = self.experiments[experiment].arms.len();
            given[experiment].get_or_insert_with(|| vec![0.0; n_arms])[arm] = share;
        }
        for (experiment, shares) in self.experiments.iter_mut().zip(given) {
            let Some(shares) = shares else { continue };
            let sum: f64 = shares.iter().sum();
            if (sum - 1.0).abs() > TOLERANCE {
                bail!(
                    "the shares of {} add up to {sum}: write shares that add up to 1",
                    experiment.name
                );
            }
            for (arm, share) in experiment.arms.iter_mut().zip(shares) {
                // Removes rounding in the input, so that the shares add up to 1.
                arm.share = share / sum;
            }
        }
        Ok(self)
    }

    /// Multiplies the click probability of these arms by 1 + lift at each rank, relative to the control, for all arms of
    /// other experiments.
    ///
    /// # Errors
    /// An arm does not exist, is a control or is named twice, or a lift is outside of -0.9 to 2.
    pub fn with_effects(mut self, lifts: &[(String, f64)]) -> Result<Design> {
        for ((experiment, arm), factor) in self.factors(lifts)? {
            for combination in 0..self.appeal.len() as Combination {
                if self.arm_of(combination, experiment) == arm {
                    // The control of this experiment, with the same arms in all others.
                    let control = combination - (arm * self.stride(experiment)) as Combination;
                    self.appeal[usize::from(combination)] = factor * self.appeal[usize::from(control)];
                }
            }
        }
        Ok(self)
    }

    /// Multiplies the visits per user of these arms by 1 + lift, relative to the control.
    ///
    /// # Errors
    /// See [`with_effects`](Design::with_effects).
    pub fn with_visits(mut self, lifts: &[(String, f64)]) -> Result<Design> {
        for ((experiment, arm), factor) in self.factors(lifts)? {
            self.experiments[experiment].arms[arm].visits = factor;
        }
        Ok(self)
    }

    /// Makes all arms behave like the controls, for an A/A test. Shares stay.
    pub fn without_differences(mut self) -> Design {
        let of_controls = self.appeal[0];
        self.appeal.fill(of_controls);
        for arm in self.experiments.iter_mut().flat_map(|it| &mut it.arms) {
            arm.visits = 1.0;
        }
        self
    }

    pub fn experiments(&self) -> &[SimulatedExperiment] {
        &self.experiments
    }

    pub fn n_combinations(&self) -> usize {
        self.appeal.len()
    }

    /// Returns the click probability at rank 1 for a user of eagerness 1.
    pub fn appeal(&self, combination: Combination) -> f64 {
        self.appeal[usize::from(combination)]
    }

    /// Returns the arms of a combination, in the order of the experiments.
    pub fn arms(
        &self,
        combination: Combination,
    ) -> impl Iterator<Item = (&SimulatedExperiment, &SimulatedArm)> {
        let experiments = self.experiments.iter().enumerate();
        experiments
            .map(move |(index, experiment)| (experiment, &experiment.arms[self.arm_of(combination, index)]))
    }

    /// Returns the index of a combination's arm in this experiment.
    pub fn arm_of(&self, combination: Combination, experiment: usize) -> usize {
        usize::from(combination) / self.stride(experiment) % self.experiments[experiment].arms.len()
    }

    /// Returns the difference between the numbers of two combinations with adjacent arms of this experiment.
    pub fn stride(&self, experiment: usize) -> usize {
        let faster = &self.experiments[experiment + 1..];
        faster.iter().map(|experiment| experiment.arms.len()).product()
    }

    /// Returns the factors 1 + lift, each with the indices of an arm that is not a control.
    fn factors(&self, lifts: &[(String, f64)]) -> Result<Vec<((usize, usize), f64)>> {
        let found = self.find_all(lifts)?;
        for ((experiment, arm), lift) in &found {
            if *arm == 0 {
                let experiment = &self.experiments[*experiment];
                bail!(
                    "{} is the control of {}, which has no lift",
                    experiment.arms[0].name,
                    experiment.name
                );
            }
            if !LIFTS.contains(lift) {
                bail!(
                    "write a number from {} to {}, not {lift}",
                    LIFTS.start(),
                    LIFTS.end()
                );
            }
        }
        Ok(found.into_iter().map(|(at, lift)| (at, 1.0 + lift)).collect())
    }

    /// Returns the indices of experiment and arm for each named arm.
    fn find_all(&self, numbers: &[(String, f64)]) -> Result<Vec<((usize, usize), f64)>> {
        let mut found = Vec::new();
        for (name, number) in numbers {
            let at = self.find(name)?;
            if found.iter().any(|(other, _)| *other == at) {
                bail!("{name} is named twice");
            }
            found.push((at, *number));
        }
        Ok(found)
    }

    fn find(&self, arm: &str) -> Result<(usize, usize)> {
        for (index, experiment) in self.experiments.iter().enumerate() {
            if let Some(at) = experiment.arms.iter().position(|it| it.name == arm) {
                return Ok((index, at));
            }
        }
        let arms = self.experiments.iter().flat_map(|experiment| &experiment.arms);
        let names: Vec<&str> = arms.map(|arm| arm.name.as_str()).collect();
        bail!("there is no arm {arm:?}: the arms are {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[(&str, f64)]) -> Vec<(String, f64)> {
        numbers
            .iter()
            .map(|(arm, number)| ((*arm).to_owned(), *number))
            .collect()
    }

    #[track_caller]
    fn check_refused(design: Result<Design>, expected: &str) {
        let error = design.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_combination_has_one_arm_of_each_experiment() {
        let design = Design::new(0.1, &[("e", &["a", "b"]), ("f", &["x", "y", "z"])]).unwrap();
        let names = |combination| {
            let arms = design.arms(combination);
            arms.map(|(experiment, arm)| format!("{}={}", experiment.name, arm.name))
                .collect::<Vec<_>>()
        };
        assert_eq!(design.n_combinations(), 6);
        assert_eq!(names(0), ["e=a", "f=x"]);
        assert_eq!(names(2), ["e=a", "f=z"]);
        assert_eq!(names(3), ["e=b", "f=x"]);
        assert_eq!(names(5), ["e=b", "f=z"]);
    }

    #[test]
    fn unnamed_arms_get_no_users_and_other_experiments_are_unchanged() {
        let shares = of(&[("control", 0.9), ("neural", 0.1)]);
        let design = Design::default().with_shares(&shares).unwrap();
        let shares: Vec<Vec<f64>> = design
            .experiments()
            .iter()
            .map(|experiment| experiment.arms.iter().map(|arm| arm.share).collect())
            .collect();
        assert_eq!(shares, [vec![0.9, 0.1, 0.0], vec![0.5, 0.5]]);
    }

    #[test]
    fn an_effect_is_relative_to_the_control_in_any_combination() {
        for lifts in [
            of(&[("neural", 0.1), ("carousel", -0.5)]),
            of(&[("carousel", -0.5), ("neural", 0.1)]),
        ] {
            let design = Design::default().with_effects(&lifts).unwrap();
            let appeal = |combination| design.appeal(combination);
            // The arms are control, neural and blend in the grid layout, then the same in the carousel.
            assert_eq!([appeal(0), appeal(4)], [0.060, 0.068]);
            for (arm, base, factor) in [(2, 0, 1.1), (3, 1, 1.1), (1, 0, 0.5), (5, 4, 0.5)] {
                assert!(
                    (appeal(arm) / appeal(base) - factor).abs() < 1e-12,
                    "{arm} to {base}"
                );
            }
        }
    }

    #[test]
    fn every_arm_equals_the_control_without_differences() {
        let visits = of(&[("neural", 0.1)]);
        let design = Design::default().with_visits(&visits).unwrap();
        let design = design.without_differences();
        for combination in 0..6 {
            assert_eq!(design.appeal(combination), 0.060);
            assert!(design.arms(combination).all(|(_, arm)| arm.visits == 1.0));
        }
    }

    #[test]
    fn an_invalid_design_is_refused_with_a_suggestion() {
        let design = Design::default;
        check_refused(
            design().with_shares(&of(&[("neutral", 1.0)])),
            "control, neural, blend, grid, carousel",
        );
        check_refused(design().with_shares(&of(&[("neural", 0.5)])), "add up to 0.5");
        check_refused(
            design().with_shares(&of(&[("grid", 2.0), ("carousel", -1.0)])),
            "from 0 to 1",
        );
        check_refused(
            design().with_shares(&of(&[("grid", 0.5), ("grid", 0.5)])),
            "twice",
        );
        check_refused(
            design().with_effects(&of(&[("control", 0.1)])),
            "control of ranker",
        );
        check_refused(
            design().with_effects(&of(&[("neural", f64::NAN)])),
            "from -0.9 to 2",
        );
        check_refused(design().with_visits(&of(&[("neural", -1.0)])), "from -0.9 to 2");
        let new = Design::new;
        check_refused(new(0.1, &[]), "an experiment");
        check_refused(new(0.1, &[("e", &[])]), "an arm");
        check_refused(new(0.1, &[("e", &["a", "\""])]), "letters");
        check_refused(new(0.1, &[("e", &["a"]), ("f", &["a"])]), "twice");
        check_refused(new(1.1, &[("e", &["a"])]), "from 0 to 1");
        check_refused(new(0.1, &[("e", &[&"a".repeat(128)])]), "shorter names");
        let many: Vec<String> = (0..101).map(|n| format!("a{n}")).collect();
        let others: Vec<String> = (0..100).map(|n| format!("b{n}")).collect();
        let [many, others] =
            [&many, &others].map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
        check_refused(
            new(0.1, &[("e", &many), ("f", &others)]),
            "more than 10000 combinations",
        );
        assert!(new(0.1, &[("e", &many[1..]), ("f", &others)]).is_ok());
    }
}
