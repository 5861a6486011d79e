//! Plans from the numbers of a running daemon.

use std::collections::BTreeMap;

use abgauge_core::statistics::MetricRole;
use abgauge_core::statistics::days::{ExperimentDays, RunningPower, TestDesign, of_looks};
use abgauge_core::table::visible;
use serde::Deserialize;

use super::{Planned, Plans, Running, believed};
use crate::settings::{HttpUrl, Schedule};
use crate::tools::cli::AskArgs;
use crate::tools::commands::fetch::fetch;

const PATH: &str = "/api/v1/experiments";
/// Supported version of the API's shape.
const VERSION: u32 = 1;

/// The parts of the answer that are read.
#[derive(Deserialize)]
struct Document {
    version: u32,
    experiments: BTreeMap<String, Experiment>,
    stream: Stream,
}

#[derive(Deserialize)]
struct Stream {
    waiting_for: Vec<String>,
}

#[derive(Deserialize)]
struct Experiment {
    control: Option<String>,
    looks: Option<Looks>,
    arms: BTreeMap<String, Arm>,
}

#[derive(Deserialize)]
struct Looks {
    as_of: Option<i64>,
    given_up: bool,
    power: Option<RunningPower<'static>>,
}

#[derive(Deserialize)]
struct Arm {
    comparison: Option<Comparison>,
}

#[derive(Deserialize)]
struct Comparison {
    state: Option<String>,
    reason: Option<String>,
    /// Absent from a daemon of an earlier version.
    planned_end: Option<i64>,
    metrics: BTreeMap<String, Metric>,
}

#[derive(Deserialize)]
struct Metric {
    role: MetricRole,
    control: Option<f64>,
}

/// Fetches plans from a daemon.
///
/// # Errors
/// If it does not return its numbers, or has none yet. The message names a remedy.
pub(super) fn plans(url: &HttpUrl, asked: &AskArgs) -> anyhow::Result<Plans> {
    let body = fetch(url, PATH, asked)?;
    read(&body).map_err(|why| anyhow::anyhow!("abgauge at {url} {why}"))
}

/// Parses the answer. Errors continue a sentence that starts with "abgauge at URL ".
fn read(body: &[u8]) -> Result<Plans, String> {
    let document: Document = serde_json::from_slice(body).map_err(|error| {
        format!("does not answer with abgauge's numbers ({error}): --from is the address of its page")
    })?;
    if document.version != VERSION {
        return Err(format!(
            "reports its numbers in version {} of their format, but this program reads version {VERSION}: use the same version of abgauge as the daemon",
            document.version
        ));
    }
    if document.experiments.is_empty() {
        return Err(match &document.stream.waiting_for[..] {
            [] => "has no list of any experiment yet".to_owned(),
            waiting => format!("is not ready: {}", visible(&waiting.join(", "))),
        });
    }
    let mut plans = Plans::default();
    for (name, experiment) in document.experiments {
        match experiment.planned(&name) {
            Ok(planned) => {
                let remarks = experiment.remarks();
                plans
                    .remarks
                    .extend(remarks.into_iter().map(|text| (name.clone(), text)));
                plans.known.insert(name, planned);
            }
            Err(why) => plans.unknown.push((name, why)),
        }
    }
    Ok(plans)
}

fn other_version() -> String {
    "the daemon does not report what its decisions need: it is another version".to_owned()
}

impl Experiment {
    /// Returns the plan, or the reason why there is none.
    fn planned(&self, name: &str) -> Result<Planned, String> {
        let power = self.power(name)?;
        let as_of = self.looks.as_ref().and_then(|looks| looks.as_of);
        let grown = power.grown(as_of.unwrap_or(power.since_ms));
        let needs = power.needs().ok_or_else(other_version)?;
        let mut days = of_looks(&grown, &needs);
        // A wrong time in the answer would give absurd days.
        believed(&days)?;
        if grown
            .earlier
            .as_ref()
            .is_some_and(|earlier| !(grown.since_ms..=grown.now.as_of_ms).contains(&earlier.as_of_ms))
        {
            return Err(
                "its earlier analysis does not lie between its start and its latest analysis: a time in it is wrong"
                    .to_owned(),
            );
        }
        self.complete(&mut days);
        if days
            .arms
            .values()
            .all(|arm| arm.metrics.values().all(Option::is_none))
        {
            return Err(self.lacks());
        }
        Ok(Planned {
            control: self.control.clone().unwrap_or_default(),
            mde: power.mde,
            alpha: power.alpha,
            days,
            schedule: Some(Schedule {
                start_ms: power.since_ms,
                planned_end_ms: self
                    .comparisons()
                    .find_map(|(_, comparison)| comparison.planned_end),
            }),
            running: Some(Running {
                design: TestDesign::named(&power.design),
            }),
        })
    }

    fn power(&self, name: &str) -> Result<&RunningPower<'static>, String> {
        let section = || format!("[experiments.{}]", visible(name));
        let Some(looks) = &self.looks else {
            return Err(format!(
                "it has no control: set `control` and `primary` under {}",
                section()
            ));
        };
        if looks.given_up {
            let why = "it was given up: raise limits.max_statistics, and restart abgauge";
            return Err(why.to_owned());
        }
        if looks.as_of.is_none() {
            return Err("there is no analysis yet: its first lists must become final".to_owned());
        }
        let is_compared = self.arms.values().any(|arm| arm.comparison.is_some());
        looks.power.as_ref().ok_or_else(|| match is_compared {
            true => other_version(),
            false => format!(
                "it has no control: set `control` and `primary` under {}",
                section()
            ),
        })
    }

    /// Adds the primaries without any information yet, and the control's values.
    fn complete(&self, days: &mut ExperimentDays) {
        for (name, arm) in &mut days.arms {
            let comparison = self.arms.get(name).and_then(|arm| arm.comparison.as_ref());
            let metrics = comparison.into_iter().flat_map(|comparison| &comparison.metrics);
            for (id, metric) in metrics.filter(|(_, metric)| metric.role == MetricRole::Primary) {
                // A primary without information gets an entry without days, so that it is listed.
                if let Some(days) = arm.metrics.entry(id.clone()).or_default() {
                    days.control = metric.control;
                }
            }
        }
    }

    /// Returns the reason why nothing is known of any arm.
    fn lacks(&self) -> String {
        let collecting = self.comparisons().find_map(|(_, comparison)| {
            let is_collecting = comparison.state.as_deref() == Some("collecting");
            comparison.reason.as_deref().filter(|_| is_collecting)
        });
        match collecting {
            Some(reason) => format!("there is too little data yet, {}", visible(reason)),
            None => "no arm has data for a primary metric yet".to_owned(),
        }
    }

    /// Returns reasons to distrust the plan.
    fn remarks(&self) -> Vec<String> {
        let invalid = self.comparisons().filter_map(|(arm, comparison)| {
            let state = comparison
                .state
                .as_deref()
                .filter(|state| state.starts_with("invalid"))?;
            let reason = comparison.reason.as_deref().unwrap_or_default();
            Some(format!(
                "{}: {}, {}",
                visible(arm),
                visible(state),
                visible(reason)
            ))
        });
        invalid.collect()
    }

    fn comparisons(&self) -> impl Iterator<Item = (&str, &Comparison)> {
        let arms = self.arms.iter();
        arms.filter_map(|(name, arm)| Some((name.as_str(), arm.comparison.as_ref()?)))
    }
}
