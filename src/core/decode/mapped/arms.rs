//! The experiments and arms of a list of any shape.
//!
//! ```text
//! {"ranker":"neural"}                         experiments
//! {"ranker":{"arm":"neural","bucket":3}}      experiments, arm
//! {"$feature/ranker":"neural","os":"ios"}     experiments, prefix
//! [{"name":"ranker","arm":"neural"}]          experiments, experiment, arm
//! ["ranker:neural","layout:grid"]             experiments, arm_separator
//! "ranker:neural;layout:grid"                 experiments, arm_separator, pair_separator
//! "{\"ranker\":\"neural\"}"                   any of these as JSON text
//! "test":"ranker","variant":"neural"          experiment, arm: in the event itself
//! ```

use std::ops::Range;

use serde::de::IgnoredAny;

use super::super::value::{Text, Value};
use super::super::{arms, is_label, json, range};
use super::direct::ArmsKey;
use super::{Field, Mapped, MappedFields, Sink};
use crate::engine::OTHER;
use crate::engine::event::Reason;

impl Mapped {
    pub(super) fn arms(&self, fields: &MappedFields, sink: &mut Sink) -> Result<Range<u32>, Reason> {
        let start = sink.batch.arms.len();
        let of = &self.shape.served.arms;
        let mut arms = MappedArms {
            only: &of.only,
            not_in: &of.not_in,
            n: 0,
            has_bad: false,
            has_doubles: false,
            sink,
        };
        match (&of.experiments, &of.prefix) {
            (Some(_), _) => {
                if let Some(all) = fields.unless_null(Field::Experiments)? {
                    self.of_value(all, &mut arms)?;
                }
            }
            (None, Some(_)) => self.object(fields.objects[0], &mut arms)?,
            (None, None) => self.event(fields, &mut arms)?,
        }
        let (has_bad, has_doubles) = (arms.has_bad, arms.has_doubles);
        // With a bad arm the list is in an experiment, so the default arm would be wrong.
        let names_none = !has_bad && sink.batch.arms.len() == start;
        if let (true, Some(experiment), Some(arm)) = (names_none, &of.experiment_name, &of.arm_name) {
            arms::push(&sink.hash, experiment, arm, sink.batch);
        }
        arms::sort(start, sink.batch)?;
        // Only after sorting, which finds a repeated experiment whatever its arms are.
        if has_bad {
            arms::drop_bad(start, sink.batch);
        }
        let arms = range(start, sink.batch.arms.len());
        // These arms stay in the batch, even if the rest of the list is invalid.
        // Bad arms are counted for each list, so lists with any are read each time.
        if let (false, Some(_), Some(key)) = (
            has_bad || has_doubles,
            &self.direct,
            ArmsKey::of_fields(sink.schema, fields),
        ) {
            arms::remember(key.bytes(), arms.clone(), sink.batch);
        }
        Ok(arms)
    }

    fn of_value(&self, value: Value, arms: &mut MappedArms) -> Result<(), Reason> {
        let of = &self.shape.served.arms;
        match value {
            value if value.is_array() => self.array(value, arms),
            value if value.is_text() => {
                let text = value.text()?;
                match &of.pair_separator {
                    Some(separator) => {
                        let pairs = text.split(separator.as_str()).map(str::trim);
                        pairs
                            .filter(|pair| !pair.is_empty())
                            .try_for_each(|pair| self.pair(pair, arms))
                    }
                    None => self.json_text(text.trim(), arms),
                }
            }
            _ => self.object(value, arms),
        }
    }

    /// An object or an array that is text; or one pair.
    fn json_text(&self, text: &str, arms: &mut MappedArms) -> Result<(), Reason> {
        let is_json = text.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok();
        match (is_json, text.is_empty()) {
            (true, _) if json::is_too_deep(text) => Err(Reason::WrongType),
            (true, _) if text.starts_with('[') => self.array(Value::Json(text), arms),
            (true, _) => self.object(Value::Json(text), arms),
            (false, true) => Ok(()),
            (false, false) => self.pair(text, arms),
        }
    }

    /// `ranker:neural`.
    fn pair(&self, pair: &str, arms: &mut MappedArms) -> Result<(), Reason> {
        let separator = self
            .shape
            .served
            .arms
            .arm_separator
            .as_ref()
            .ok_or(Reason::WrongType)?;
        match pair.split_once(separator.as_str()) {
            Some((experiment, arm)) => {
                let [experiment, arm] = [experiment, arm].map(|name| Text::Borrowed(name.trim()));
                arms.push(Ok(experiment), Ok(arm))
            }
            // A flag without a value.
            None => arms.push(Ok(Text::Borrowed(pair)), Err(Reason::MissingField)),
        }
    }

    /// Experiment → arm.
    fn object(&self, object: Value, arms: &mut MappedArms) -> Result<(), Reason> {
        let of = &self.shape.served.arms;
        object.each_entry(|mut experiment, value| {
            if let (Some(prefix), Ok(name)) = (&of.prefix, &mut experiment) {
                match name.strip_prefix(prefix.as_str()) {
                    Some(rest) => *name = Text::Owned(rest.to_owned()),
                    None => return Ok(()),
                }
            }
            let arm = match &self.in_arm {
                Some(tree) if value.is_object() => tree.find(value).and_then(|[arm]| arm.required()),
                _ => Ok(value),
            };
            arms.push_value(experiment, arm, self.is_own_object())
        })
    }

    /// Returns true for our own shape, in which an arm is text and nothing else.
    fn is_own_object(&self) -> bool {
        let of = &self.shape.served.arms;
        self.in_arm.is_none() && of.prefix.is_none() && of.not_in.is_empty()
    }

    fn array(&self, array: Value, arms: &mut MappedArms) -> Result<(), Reason> {
        let start = arms.sink.batch.arms.len();
        let separator = &self.shape.served.arms.arm_separator;
        for element in array.elements()? {
            match (&self.in_element, separator) {
                (None, None) => return Err(Reason::WrongType),
                (Some(tree), _) if element.is_object() => {
                    let [experiment, arm] = tree.find(element)?.map(|found| found.required());
                    arms.push_value(experiment.and_then(Value::word), arm, false)?;
                }
                (_, Some(_)) if element.is_text() => self.pair(&element.text()?, arms)?,
                _ => arms.push(Err(Reason::WrongType), Err(Reason::WrongType))?,
            }
        }
        // Unlike a repeated key, a repeated element is valid JSON, so only its experiment is dropped.
        arms.has_doubles |= arms::drop_doubles(start, arms.sink.batch);
        Ok(())
    }

    /// The experiment that the event itself names.
    fn event(&self, fields: &MappedFields, arms: &mut MappedArms) -> Result<(), Reason> {
        let of = &self.shape.served.arms;
        let Some(arm) = fields.unless_null(Field::Arm)? else {
            // Without an arm, the list is not in the experiment.
            return Ok(());
        };
        let experiment = match (&of.experiment, &of.experiment_name) {
            (Some(_), _) => fields.required(Field::Experiment).and_then(Value::word),
            (None, Some(name)) => Ok(Text::Borrowed(name)),
            (None, None) => return Ok(()),
        };
        arms.push_value(experiment, Ok(arm.only_text()), false)
    }
}

/// The arms of a list on their way into the batch.
struct MappedArms<'s, 'b> {
    only: &'s [String],
    not_in: &'s [String],
    /// Number of arms of this list so far.
    n: usize,
    /// True if a bad arm is to be dropped at the end.
    has_bad: bool,
    /// True if an experiment that occurs twice was dropped and counted.
    has_doubles: bool,
    sink: &'s mut Sink<'b>,
}

impl MappedArms<'_, '_> {
    /// Adds an arm, unless it is `null`.
    fn push_value<'a>(
        &mut self,
        experiment: Result<Text<'a>, Reason>,
        arm: Result<Value<'a>, Reason>,
        is_text: bool,
    ) -> Result<(), Reason> {
        if arm.is_ok_and(Value::is_null) {
            return Ok(());
        }
        let read = if is_text { Value::text } else { Value::word };
        self.push(experiment, arm.and_then(read))
    }

    /// Adds an arm. A bad arm is counted, and its experiment is left out. It is pushed all the same, so that a repeated
    /// experiment is found whatever its arms are.
    ///
    /// # Errors
    /// Too many experiments, whatever their names, or text that is not valid.
    fn push<'a>(
        &mut self,
        experiment: Result<Text<'a>, Reason>,
        arm: Result<Text<'a>, Reason>,
    ) -> Result<(), Reason> {
        let is_among = |names: &[String], name: &str| names.iter().any(|known| known == name);
        if let Ok(name) = &experiment
            && !self.only.is_empty()
            && !is_among(self.only, name)
        {
            return Ok(());
        }
        if let Ok(arm) = &arm
            && is_among(self.not_in, arm)
        {
            return Ok(());
        }
        let faults = [experiment.as_ref().err(), arm.as_ref().err()];
        let unreadable = |reason: &&Reason| matches!(reason, Reason::NotJson | Reason::Malformed);
        if let Some(reason) = faults.into_iter().flatten().find(unreadable) {
            return Err(*reason);
        }
        self.n += 1;
        if self.n > self.sink.max_experiments {
            return Err(Reason::TooManyExperiments);
        }
        let Sink { hash, batch, .. } = &mut *self.sink;
        let arm = arm.ok().filter(|arm| is_label(arm));
        let is_good = arm.is_some() && experiment.as_ref().is_ok_and(|name| is_label(name));
        self.has_bad |= !is_good;
        match (experiment, arm) {
            (Ok(experiment), Some(arm)) if is_good => arms::push(hash, &experiment, &arm, batch),
            (Ok(experiment), _) => {
                batch.count_bad_arm(if is_label(&experiment) { &experiment } else { OTHER });
                arms::push_bad(&experiment, batch);
            }
            (Err(_), _) => batch.count_bad_arm(OTHER),
        }
        Ok(())
    }
}
