//! Codec for the state of all experiments between two looks.
//!
//! ```text
//! 4 │ number of the look │ limit of memory │ n, experiment given up… │ n, experiment whose window was given up…
//!   │ n, (experiment, settings, time of the start, state before the look, history)…
//! ```
//! Versions 2 and 3 can be read too. Their decisions have an earlier [`Form`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::asked::asked;
use super::kept::Form;
use super::numbers::{map, names, read_map};
use super::{AsOfError, history, kept};
use crate::bytes::{Reader, Writer};
use crate::looks::Looks;
use crate::looks::experiment_progress::ExperimentProgress;
use crate::statistics::{Settings, TestProgress, TestState};

const VERSION: u8 = 4;
/// Version whose decisions lack the time since which they hold.
const EACH_LOOK: u8 = 3;
/// Version whose decisions use the smallest p of any look.
const ANY_LOOK: u8 = 2;

#[derive(Debug, Default)]
pub struct StoredSequences {
    /// Number of the look to take first.
    pub look: i64,
    /// Memory limit under which experiments or windows were given up.
    pub max_bytes: u64,
    pub given_up: BTreeSet<String>,
    pub without_window: BTreeSet<String>,
    pub courses: BTreeMap<String, StoredCourse>,
}

#[derive(Debug)]
pub struct StoredCourse {
    asked: Vec<u8>,
    course: ExperimentProgress,
}

impl StoredCourse {
    /// Returns the stored course if the settings are unchanged. Otherwise the tests restart over the same sums, with a look at
    /// this time (Unix ms). The flag is true if they are unchanged.
    pub fn resume(self, settings: Option<&Settings>, as_of_ms: i64) -> (ExperimentProgress, bool) {
        if self.asked == asked(settings) {
            return (self.course, true);
        }
        let ExperimentProgress {
            kept,
            start_ms,
            history,
        } = self.course;
        // The sums continue, so their start stays.
        let progress = TestProgress {
            since_ms: kept.progress.since_ms,
            ..TestProgress::default()
        };
        let kept = TestState {
            progress,
            ..TestState::default()
        };
        let course = ExperimentProgress {
            kept,
            start_ms,
            history: Arc::new(history.with_new_settings(as_of_ms)),
        };
        (course, false)
    }
}

pub fn encode(looks: &Looks, look: i64, courses: &BTreeMap<String, ExperimentProgress>) -> Vec<u8> {
    let mut to = Writer::default();
    to.byte(VERSION);
    to.signed(look.into());
    to.number(looks.rules.max_bytes);
    names(&mut to, looks.given_up.iter());
    names(&mut to, looks.without_window.iter());
    let courses = courses.iter().filter_map(|(name, course)| {
        let experiment = looks.rules.experiments.get(name)?;
        Some((name.clone(), (asked(experiment.settings.as_ref()), course)))
    });
    map(&mut to, &courses.collect(), |to, (asked, course)| {
        to.part(|to| to.bytes(asked));
        to.time(course.start_ms);
        kept::encode(&course.kept, to);
        history::encode(&course.history, to);
    });
    to.into_bytes()
}

impl StoredSequences {
    pub fn decode(bytes: &[u8]) -> Result<StoredSequences, AsOfError> {
        let mut from = Reader::new(bytes);
        let form = match from.byte()? {
            VERSION => Form::Since,
            EACH_LOOK => Form::EachLook,
            ANY_LOOK => Form::AnyLook,
            _ => return Err(AsOfError::Version),
        };
        let stored = StoredSequences {
            look: from.ms()?,
            max_bytes: from.number()?,
            given_up: read_map(&mut from, |_| Ok(()))?.into_keys().collect(),
            without_window: read_map(&mut from, |_| Ok(()))?.into_keys().collect(),
            courses: read_map(&mut from, |from| {
                let asked = from.part()?.rest().to_vec();
                let start_ms = from.time()?;
                let kept = kept::decode(from, form)?;
                let course = ExperimentProgress {
                    kept,
                    start_ms,
                    history: Arc::new(history::decode(from)?),
                };
                Ok(StoredCourse { asked, course })
            })?,
        };
        from.end()?;
        Ok(stored)
    }
}
