//! The experiments and arms of a list of any shape.
//!
//! ```text
//! {"ranker":"neural"}                       experiments
//! {"ranker":{"arm":"neural","bucket":3}}    experiments, arm
//! [{"name":"ranker","arm":"neural"}]        experiments, experiment, arm
//! "test":"ranker","variant":"neural"        experiment, arm: in the record itself
//! ```

use std::borrow::Cow;
use std::ops::Range;

use super::super::{arms, check_label, json, note, range};
use super::{Field, Fields, Mapped, Sink};
use crate::engine::event::Reason;

impl Mapped {
    pub(super) fn arms(&self, fields: &Fields, sink: &mut Sink) -> Result<Range<u32>, Reason> {
        let start = sink.batch.arms.len();
        let mut arms = Arms {
            only: &self.shape.served.arms.only,
            n: 0,
            sink,
            problem: None,
        };
        match self.shape.served.arms.experiments {
            Some(_) => match fields.unless_null(Field::Experiments)? {
                Some(all) if all.starts_with('[') => self.array(all, &mut arms)?,
                Some(all) => self.object(all, &mut arms)?,
                None => {}
            },
            None => self.record(fields, &mut arms)?,
        }
        let problem = arms.problem;
        let names_none = problem.is_none() && sink.batch.arms.len() == start;
        let spare = &self.shape.served.arms;
        if let (true, Some(experiment), Some(arm)) = (names_none, &spare.experiment_name, &spare.arm_name) {
            arms::push(&sink.hash, experiment, arm, sink.batch);
        }
        arms::sort(start, sink.batch)?;
        problem.map_or(Ok(range(start, sink.batch.arms.len())), Err)
    }

    /// Experiment → arm.
    fn object(&self, object: &str, arms: &mut Arms) -> Result<(), Reason> {
        for (experiment, raw) in json::entries(object)? {
            let arm = match &self.in_arm {
                None => json::text(raw),
                Some(tree) if raw.starts_with('{') => {
                    let arm = tree.find(raw).and_then(|[arm]| arm.required());
                    arm.and_then(word)
                }
                Some(_) => word(raw),
            };
            arms.push(json::text(experiment), arm)?;
        }
        Ok(())
    }

    fn array(&self, array: &str, arms: &mut Arms) -> Result<(), Reason> {
        let tree = self.in_element.as_ref().ok_or(Reason::WrongType)?;
        for element in json::elements(array)? {
            match element.starts_with('{') {
                true => {
                    let [experiment, arm] = tree.find(element)?.map(|found| found.required());
                    arms.push(experiment.and_then(word), arm.and_then(word))?;
                }
                false => {
                    arms.one_more()?;
                    note(&mut arms.problem, Reason::WrongType);
                }
            }
        }
        Ok(())
    }

    /// The experiment that the record itself names.
    fn record(&self, fields: &Fields, arms: &mut Arms) -> Result<(), Reason> {
        let of = &self.shape.served.arms;
        let Some(arm) = fields.unless_null(Field::Arm)? else {
            // An experiment without an arm is as good as none.
            return Ok(());
        };
        let experiment = match (&of.experiment, &of.experiment_name) {
            (Some(_), _) => fields.required(Field::Experiment).and_then(word),
            (None, Some(name)) => Ok(Cow::Borrowed(name.as_str())),
            (None, None) => return Ok(()),
        };
        arms.push(experiment, word(arm))
    }
}

/// The arms of a list on their way into the batch.
struct Arms<'s, 'b> {
    only: &'s [String],
    /// Those of this list so far.
    n: usize,
    sink: &'s mut Sink<'b>,
    problem: Option<Reason>,
}

impl Arms<'_, '_> {
    /// Faulty names enter too, so that an experiment that comes twice is found whatever its arms are.
    ///
    /// # Errors
    /// One too many, whatever its names are.
    fn push<'a>(
        &mut self,
        experiment: Result<Cow<'a, str>, Reason>,
        arm: Result<Cow<'a, str>, Reason>,
    ) -> Result<(), Reason> {
        let is_passed_over =
            |name: &Cow<str>| !self.only.is_empty() && !self.only.iter().any(|known| known == name);
        if experiment.as_ref().is_ok_and(is_passed_over) {
            return Ok(());
        }
        self.one_more()?;
        let mut name = |label: Result<Cow<'a, str>, Reason>| -> Cow<'a, str> {
            let checked = label.as_deref().map_err(|reason| *reason).and_then(check_label);
            checked.unwrap_or_else(|reason| note(&mut self.problem, reason));
            label.unwrap_or_default()
        };
        let (experiment, arm) = (name(experiment), name(arm));
        arms::push(&self.sink.hash, &experiment, &arm, self.sink.batch);
        Ok(())
    }

    /// # Errors
    /// Where these are too many.
    fn one_more(&mut self) -> Result<(), Reason> {
        self.n += 1;
        if self.n > self.sink.max_experiments {
            return Err(Reason::TooManyExperiments);
        }
        Ok(())
    }
}

/// A name: text, or what other systems call an arm by: an integer, `true` or `false`.
pub(super) fn word(raw: &str) -> Result<Cow<'_, str>, Reason> {
    match raw.as_bytes().first() {
        Some(b'"') => json::text(raw),
        Some(b't' | b'f') => Ok(Cow::Borrowed(raw)),
        _ => json::integer(raw).map(Cow::Borrowed),
    }
}
