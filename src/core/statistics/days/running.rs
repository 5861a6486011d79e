//! Power of a running experiment, as the API sends it and `plan --from` reads it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Needs, TestDesign};
use crate::statistics::{ComparisonReport, InformationGrowth, Known, Settings};

/// Information about the primaries so far, and the information that each design needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunningPower<'a> {
    /// Start of the sums, Unix ms. Later than the experiment's start if lists after that were not read.
    #[serde(rename = "since")]
    pub since_ms: i64,
    pub mde: f64,
    pub alpha: f64,
    /// Name of the configured design.
    pub design: Cow<'a, str>,
    /// Information x needed at the first decision look, by design.
    needs: BTreeMap<Cow<'a, str>, f64>,
    /// Treatment arms × primaries. None, like the next two, from a daemon with an earlier decision rule.
    hypotheses: Option<usize>,
    guardrails: Option<usize>,
    min_days: Option<f64>,
    /// Information x by arm and primary.
    arms: Cow<'a, BTreeMap<String, BTreeMap<String, f64>>>,
    /// Information a quarter to a half of the days earlier. None before two days have passed.
    earlier: Option<Cow<'a, Known>>,
}

impl<'a> RunningPower<'a> {
    pub fn new(settings: &Settings, report: &'a ComparisonReport) -> RunningPower<'a> {
        let n_treatments = report.arms.keys().filter(|arm| settings.tests(arm)).count();
        let needs = Needs::new(settings, n_treatments);
        let by_design = needs
            .designs()
            .map(|design| (design.name().into(), needs.x(design, 1)));
        let grown = &report.grown;
        RunningPower {
            since_ms: grown.since_ms,
            mde: settings.mde,
            alpha: settings.alpha,
            design: TestDesign::of(settings).name().into(),
            needs: by_design.collect(),
            hypotheses: Some(needs.n_hypotheses),
            guardrails: Some(needs.n_guardrails),
            min_days: Some(needs.min_days),
            arms: Cow::Borrowed(&grown.now.arms),
            earlier: grown.earlier.as_ref().map(Cow::Borrowed),
        }
    }

    /// Returns the requirements of its designs. None from a daemon with an earlier decision rule.
    pub fn needs(&self) -> Option<Needs> {
        Some(Needs {
            alpha: self.alpha,
            n_hypotheses: self.hypotheses?,
            n_guardrails: self.guardrails?,
            min_days: self.min_days?,
            may_plan: self.needs.contains_key(TestDesign::Planned.name()),
        })
    }

    /// Returns the growth of the information up to a look at this time, Unix ms.
    pub fn grown(&self, as_of_ms: i64) -> InformationGrowth {
        InformationGrowth {
            since_ms: self.since_ms,
            now: Known {
                as_of_ms,
                arms: self.arms.clone().into_owned(),
            },
            earlier: self.earlier.clone().map(Cow::into_owned),
        }
    }
}
